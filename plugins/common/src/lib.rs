#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

use alphamf::denoiser::{LiveControls, LiveSettings};
use alphamf::model::DictionaryError;
use alphamf::{DenoiseError, Denoiser, Dictionary, LiveDenoiser, Settings};
use std::ops::Range;
use std::sync::OnceLock;

/// Number of samples per channel that are copied from the host's buffers at once.
const CHUNK: usize = 256;

/// Range and default of a control.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knob {
    /// Minimum.
    pub min: f32,
    /// Maximum.
    pub max: f32,
    /// Default.
    pub default: f32,
}

/// Exponent applied to the gain.
pub const GAIN_EXPONENT: Knob = Knob { min: 0.0, max: 2.0, default: 1.0 };
/// Minimum gain, dB. LADSPA can express this default: a quarter of the range.
pub const FLOOR_DB: Knob = Knob { min: -60.0, max: 0.0, default: -45.0 };
/// Fraction of the denoised signal in the output.
pub const MIX: Knob = Knob { min: 0.0, max: 1.0, default: 1.0 };

/// Why a plugin cannot run.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The built-in dictionary is damaged.
    #[error(transparent)]
    Dictionary(#[from] DictionaryError),
    /// The host's sample rate is out of range.
    #[error(transparent)]
    Denoise(#[from] DenoiseError),
}

/// Denoiser of the process, shared because its tables take long to compute.
fn denoiser() -> Result<&'static Denoiser, PluginError> {
    static DENOISER: OnceLock<Denoiser> = OnceLock::new();
    if let Some(denoiser) = DENOISER.get() {
        return Ok(denoiser);
    }
    let made = Denoiser::new(Dictionary::built_in()?, Settings::default())?;
    // If two threads create one concurrently, one of them is kept.
    Ok(DENOISER.get_or_init(|| made))
}

/// A host's buffers. All channels of a range are read before any is written: input and output may share memory.
pub trait Buffers {
    /// Copies a range of an input channel to `samples`, a slice of the range's length.
    fn read(&self, channel: usize, range: Range<usize>, samples: &mut [f32]);
    /// Copies `samples` to a range of an output channel.
    fn write(&mut self, channel: usize, range: Range<usize>, samples: &[f32]);
}

/// Running plugin of `WIDTH` channels. After its creation nothing allocates, blocks or panics.
pub struct Plugin<const WIDTH: usize> {
    live: LiveDenoiser,
    sample_rate: u32,
    learning: bool,
}

impl<const WIDTH: usize> Plugin<WIDTH> {
    /// Creates a plugin for a sample rate in Hz.
    ///
    /// # Errors
    /// If the sample rate is outside of 8 to 192 kHz.
    pub fn new(sample_rate: u32) -> Result<Self, PluginError> {
        let live = denoiser()?.live(sample_rate, WIDTH, LiveSettings::default())?;
        Ok(Self { live, sample_rate, learning: false })
    }

    /// Sample rate, Hz.
    #[must_use]
    pub fn sample_rate(&self) -> u32 {
        self.sample_rate
    }

    /// Delay of the output in samples.
    #[must_use]
    pub fn latency(&self) -> usize {
        self.live.latency()
    }

    /// Sets the controls, with smooth transitions; values out of range are clamped.
    pub fn set_controls(&mut self, controls: LiveControls) {
        self.live.set_controls(controls);
    }

    /// Starts or stops learning the noise from the input.
    pub fn learn(&mut self, learning: bool) {
        if learning != self.learning {
            self.learning = learning;
            self.live.learn_noise(if learning { f64::INFINITY } else { 0.0 });
        }
    }

    /// Mean power per bin of the last learned noise, if any.
    #[must_use]
    pub fn learned_noise(&self) -> Option<&[f32]> {
        self.live.learned_noise()
    }

    /// Starts the noise estimate from previously learned noise, or discards learned noise if `None`. Noise of another
    /// sample rate counts as `None`.
    pub fn set_learned_noise(&mut self, power: Option<&[f32]>) {
        // Learning in progress restarts.
        self.learning = false;
        if self.live.set_learned_noise(power).is_err() {
            self.live.set_learned_noise(None).ok();
        }
    }

    /// Clears all state except learned noise, from which the estimate restarts; the next controls apply without
    /// transition.
    pub fn reset(&mut self) {
        self.live.reset_to_learned_noise();
        self.learning = false;
    }

    /// Denoises a range of samples of every channel.
    pub fn run(&mut self, range: Range<usize>, buffers: &mut impl Buffers) {
        let mut channel = [0.0_f32; CHUNK];
        let (mut input, mut output) = ([[0.0_f32; WIDTH]; CHUNK], [[0.0_f32; WIDTH]; CHUNK]);
        for first in range.clone().step_by(CHUNK) {
            let chunk = first..range.end.min(first + CHUNK);
            let length = chunk.len();
            let (channel, input, output) =
                (&mut channel[..length], &mut input[..length], &mut output[..length]);
            for index in 0..WIDTH {
                buffers.read(index, chunk.clone(), channel);
                input.iter_mut().zip(&*channel).for_each(|(frame, sample)| frame[index] = *sample);
            }
            self.live.process(input.as_flattened(), output.as_flattened_mut());
            for index in 0..WIDTH {
                channel.iter_mut().zip(&*output).for_each(|(sample, frame)| *sample = frame[index]);
                buffers.write(index, chunk.clone(), channel);
            }
        }
    }
}
