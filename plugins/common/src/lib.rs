#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

use alphamf::denoiser::{LiveControls, LiveSettings};
use alphamf::model::DictionaryError;
use alphamf::{DenoiseError, Denoiser, Dictionary, LiveDenoiser, Settings};
use std::ops::Range;
use std::sync::OnceLock;

/// Samples per channel that are taken from the host's buffers together.
const CHUNK: usize = 256;

/// A number that a user may turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Knob {
    /// The least that it can be.
    pub least: f32,
    /// The most that it can be.
    pub most: f32,
    /// What it is at first.
    pub default: f32,
}

/// The power that gains are raised to.
pub const STRENGTH: Knob = Knob { least: 0.0, most: 2.0, default: 1.0 };
/// What is left of the noise, dB. Its default is a quarter of the way up, one of the places that LADSPA can tell.
pub const FLOOR_DB: Knob = Knob { least: -60.0, most: 0.0, default: -45.0 };
/// How much of the result is the voice.
pub const MIX: Knob = Knob { least: 0.0, most: 1.0, default: 1.0 };

/// Why a plugin cannot run.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The dictionary that is built in is damaged.
    #[error(transparent)]
    Dictionary(#[from] DictionaryError),
    /// The sound of the host cannot be denoised: its sample rate is out of range.
    #[error(transparent)]
    Denoise(#[from] DenoiseError),
}

/// The one denoiser of the process: its tables take a while to make.
fn denoiser() -> Result<&'static Denoiser, PluginError> {
    static DENOISER: OnceLock<Denoiser> = OnceLock::new();
    if let Some(denoiser) = DENOISER.get() {
        return Ok(denoiser);
    }
    let made = Denoiser::new(Dictionary::built_in()?, Settings::default())?;
    // Of two that were made at once, one stays.
    Ok(DENOISER.get_or_init(|| made))
}

/// A host's samples. All channels of a range are taken before any is given: an output may be the memory of an input.
pub trait Buffers {
    /// Writes those that have come in a channel, for a range, to a slice of its length.
    fn take(&self, channel: usize, range: Range<usize>, samples: &mut [f32]);
    /// Hands on those that go out.
    fn give(&mut self, channel: usize, range: Range<usize>, samples: &[f32]);
}

/// A plugin of `WIDTH` channels that runs. Once it is made, nothing here allocates, waits or panics.
pub struct Plugin<const WIDTH: usize> {
    live: LiveDenoiser,
    learns: bool,
}

impl<const WIDTH: usize> Plugin<WIDTH> {
    /// One for so many samples per second.
    ///
    /// # Errors
    /// If the rate is not one from 8 to 192 kHz.
    pub fn new(sample_rate: u32) -> Result<Self, PluginError> {
        let live = denoiser()?.live(sample_rate, WIDTH, LiveSettings::default())?;
        Ok(Self { live, learns: false })
    }

    /// Samples by which the output is late.
    #[must_use]
    pub fn latency(&self) -> usize {
        self.live.latency()
    }

    /// Follows the host's controls, smoothly; those out of range are taken for the nearest in range.
    pub fn set_controls(&mut self, controls: LiveControls) {
        self.live.set_controls(controls);
    }

    /// Whether all that comes is taken for noise, and learned.
    pub fn learn(&mut self, learns: bool) {
        if learns != self.learns {
            self.learns = learns;
            self.live.learn_noise(if learns { f64::MAX } else { 0.0 });
        }
    }

    /// Forgets all that has come; controls need not be faded in.
    pub fn reset(&mut self) {
        self.live.reset();
        self.learns = false;
    }

    /// Denoises a range of the samples of every channel.
    pub fn run(&mut self, range: Range<usize>, buffers: &mut impl Buffers) {
        let mut channel = [0.0_f32; CHUNK];
        let (mut input, mut output) = ([[0.0_f32; WIDTH]; CHUNK], [[0.0_f32; WIDTH]; CHUNK]);
        for first in range.clone().step_by(CHUNK) {
            let chunk = first..range.end.min(first + CHUNK);
            let length = chunk.len();
            let (channel, input, output) =
                (&mut channel[..length], &mut input[..length], &mut output[..length]);
            for index in 0..WIDTH {
                buffers.take(index, chunk.clone(), channel);
                input.iter_mut().zip(&*channel).for_each(|(frame, sample)| frame[index] = *sample);
            }
            self.live.process(input.as_flattened(), output.as_flattened_mut());
            for index in 0..WIDTH {
                channel.iter_mut().zip(&*output).for_each(|(sample, frame)| *sample = frame[index]);
                buffers.give(index, chunk.clone(), channel);
            }
        }
    }
}
