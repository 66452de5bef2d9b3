//! From a noisy recording to the voice.

use super::monte_carlo::MonteCarlo;
use super::profile::NoiseProfile;
use super::settings::{NoiseModel, Settings, SettingsError};
use super::stream::DenoiseStream;
use crate::audio::{InvalidSignal, InvalidWindow, Signal};
use crate::model::{Dictionary, MarginalTable};
use crate::refiner::{Refiner, RefinerError};
use crate::samplers::SamplerError;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Separates speech from noise.
///
/// ```no_run
/// use alphamf::inference::{Denoiser, Settings};
/// use alphamf::model::Dictionary;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let denoiser = Denoiser::new(Dictionary::shipped()?, Settings::default())?;
/// let noisy = alphamf::audio::read("noisy.wav")?;
/// let denoised = denoiser.denoise(&noisy, &mut |_| std::ops::ControlFlow::Continue(()))?;
/// alphamf::audio::write("clean.wav", &denoised.signal)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Denoiser {
    dictionary: Dictionary,
    settings: Settings,
    table: Arc<MarginalTable>,
    refiner: Option<Arc<Refiner>>,
}

/// A denoised recording.
#[derive(Debug, Clone)]
pub struct Denoised {
    /// The voice, in the format of the input.
    pub signal: Signal,
    /// What was found.
    pub summary: Summary,
}

/// What the separation found out about a recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Estimated ratio of speech to noise before, dB; NaN for silence.
    pub input_snr_db: f64,
    /// Energy of the output below that of the input, dB; NaN for silence.
    pub attenuation_db: f64,
    /// How exact the posterior mean of the gain is, given the number of draws.
    pub monte_carlo: MonteCarlo,
    /// Sampler moves that were rejected because they were not finite.
    pub divergences: usize,
    /// Clicks in time that were cut out, all channels together.
    pub clicks: usize,
    /// Blocks of a channel in which a noise with heavy tails was suppressed in time.
    pub heavy_tailed_blocks: usize,
}

/// Why a recording could not be denoised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DenoiseError {
    /// A setting is out of its range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The refiner that is built in is damaged.
    #[error(transparent)]
    Refiner(#[from] RefinerError),
    /// The sampler refused its settings.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The dictionary's window is of no use at this sample rate.
    #[error(transparent)]
    Window(#[from] InvalidWindow),
    /// The result is not a signal.
    #[error("the result is not a signal: {0}")]
    Signal(#[from] InvalidSignal),
    /// The stretch that the noise is to be learned from holds no noise.
    #[error("the stretch that should hold the noise is silent or shorter than a window")]
    NoNoise,
    /// The progress callback asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Told how far the work is, as the function that takes it says; may ask to stop.
pub type Progress<'a> = &'a mut dyn FnMut(f64) -> ControlFlow<()>;

/// Shown the number of Gibbs sweeps so far and the recording as denoised by then.
pub type Observer<'a> = dyn FnMut(usize, &Signal) + 'a;

impl Denoiser {
    /// A denoiser with a dictionary of speech.
    ///
    /// # Errors
    /// If a setting is out of its range.
    pub fn new(dictionary: Dictionary, settings: Settings) -> Result<Self, DenoiseError> {
        settings.validate()?;
        let alpha = settings.alpha_speech.unwrap_or(dictionary.header().alpha);
        let table = Arc::new(MarginalTable::new(alpha, settings.alpha_noise));
        let denoiser = Self { dictionary, settings, table, refiner: None };
        if !denoiser.settings.refine {
            return Ok(denoiser);
        }
        Ok(denoiser.with_refiner(Refiner::shipped()?))
    }

    /// The same with another refiner than the one that is built in. It has no effect with a dictionary of another
    /// window than it was learned with, nor where the noise is made of constant spectra.
    #[must_use]
    pub fn with_refiner(mut self, refiner: Refiner) -> Self {
        let fits = refiner.header().window_seconds == self.dictionary.header().window_seconds
            && matches!(self.settings.noise, NoiseModel::Drifting(_));
        self.refiner = fits.then(|| Arc::new(refiner));
        self
    }

    /// The dictionary in use.
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// The settings in use.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What corrects the gains, if anything does.
    #[must_use]
    pub fn refiner(&self) -> Option<&Refiner> {
        self.refiner.as_deref()
    }

    /// Denoises a recording. All channels get the same gain, so that the stereo image stays. `progress` is told
    /// the share that is done, 0 to 1.
    ///
    /// # Errors
    /// [`DenoiseError::Interrupted`] if `progress` asked to stop; otherwise only if the settings do not fit
    /// the recording.
    pub fn denoise(&self, noisy: &Signal, progress: Progress) -> Result<Denoised, DenoiseError> {
        self.denoise_observed(noisy, 0, &mut |_, _| (), progress)
    }

    /// Denoises a recording, with the same result, and shows how it develops: every `every` Gibbs sweeps
    /// (0 for never) `observer` is given the result by the mean gain of the last 20 of them or, once the
    /// burn-in is over, of all since. Only recordings of a single block (8 s) are shown.
    ///
    /// # Errors
    /// As [`Denoiser::denoise`].
    pub fn denoise_observed(
        &self,
        noisy: &Signal,
        every: usize,
        observer: &mut Observer,
        progress: Progress,
    ) -> Result<Denoised, DenoiseError> {
        let mut stream = self.stream(noisy.sample_rate(), noisy.channels().len())?;
        let length = noisy.len();
        let mut channels = vec![Vec::with_capacity(length); noisy.channels().len()];
        let step = stream.block_samples();
        let duration = noisy.duration();
        let progress: Progress = &mut |seconds| progress((seconds / duration).min(1.0));
        for start in (0..length).step_by(step) {
            let end = (start + step).min(length);
            let block: Vec<&[f32]> = noisy.channels().iter().map(|samples| &samples[start..end]).collect();
            append(&mut channels, stream.push(&block, progress)?);
        }
        let mut show = |sweep: usize, channels: Vec<Vec<f32>>| {
            // What does not make a signal here is reported at the end.
            if let Ok(signal) = noisy.with_channels(channels) {
                observer(sweep, &signal);
            }
        };
        let (rest, summary) = stream.finish_observed(every, &mut show, progress)?;
        append(&mut channels, rest);
        Ok(Denoised { signal: noisy.with_channels(channels)?, summary })
    }

    /// Denoises a recording of any length that comes in blocks, in memory that does not grow.
    ///
    /// # Errors
    /// If the dictionary's window does not fit the sample rate (Hz).
    pub fn stream(&self, sample_rate: u32, channels: usize) -> Result<DenoiseStream<'_>, DenoiseError> {
        DenoiseStream::new(self, sample_rate, channels)
    }

    /// Learns the noise's spectrum from a stretch that holds noise alone.
    ///
    /// # Errors
    /// As for [`Denoiser::stream`].
    pub fn noise_profile(&self, sample_rate: u32, channels: usize) -> Result<NoiseProfile, DenoiseError> {
        NoiseProfile::new(self, sample_rate, channels)
    }

    /// The expectations given the dispersions of a bin, for the exponents in use.
    pub(super) fn table(&self) -> &Arc<MarginalTable> {
        &self.table
    }
}

fn append(channels: &mut [Vec<f32>], block: Vec<Vec<f32>>) {
    channels.iter_mut().zip(block).for_each(|(channel, samples)| channel.extend(samples));
}
