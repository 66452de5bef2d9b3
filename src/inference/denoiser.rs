//! From a noisy recording to the voice.

use super::gibbs::Gibbs;
use super::impulses;
use super::separation::{Carried, Free, Separation, Start};
use super::settings::{Settings, SettingsError};
use crate::audio::{InvalidSignal, InvalidWindow, Signal, Spectrogram, Stft};
use crate::model::{Dictionary, MarginalTable};
use crate::random::Streams;
use crate::samplers::SamplerError;
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Frames that are separated together at most: half as many again at the end of a recording.
const BLOCK_FRAMES: usize = 1024;
/// Frames at the end of a block that the next block separates again; their gains are cross-faded.
const OVERLAP_FRAMES: usize = 32;
/// Frames with a mean power below this share of the recording's count as digital silence.
const SILENCE: f32 = 1e-9;

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
    /// Sampler moves that were rejected because they were not finite.
    pub divergences: usize,
}

/// Why a recording could not be denoised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DenoiseError {
    /// A setting is out of its range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The sampler refused its settings.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The dictionary's window is of no use at this sample rate.
    #[error(transparent)]
    Window(#[from] InvalidWindow),
    /// The result is not a signal.
    #[error("the result is not a signal: {0}")]
    Signal(#[from] InvalidSignal),
    /// The progress callback asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Told the share of the work that is done, 0 to 1; may ask to stop.
pub type Progress<'a> = &'a mut dyn FnMut(f64) -> ControlFlow<()>;

/// A channel without the impulses that the spectral model cannot see.
fn repaired(samples: &[f32], sample_rate: u32) -> Cow<'_, [f32]> {
    let (samples, found) = impulses::repair(samples, sample_rate);
    if found != impulses::Impulses::None {
        tracing::info!(?found, "impulses were removed in time");
    }
    samples
}

impl Denoiser {
    /// A denoiser with a dictionary of speech.
    ///
    /// # Errors
    /// If a setting is out of its range.
    pub fn new(dictionary: Dictionary, settings: Settings) -> Result<Self, DenoiseError> {
        settings.validate()?;
        let alpha = settings.alpha_speech.unwrap_or(dictionary.header().alpha);
        let table = Arc::new(MarginalTable::new(alpha, settings.alpha_noise));
        Ok(Self { dictionary, settings, table })
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

    /// Denoises a recording. All channels get the same gain, so that the stereo image stays.
    ///
    /// # Errors
    /// [`DenoiseError::Interrupted`] if `progress` asked to stop; otherwise only if the settings do not fit
    /// the recording.
    pub fn denoise(&self, noisy: &Signal, progress: Progress) -> Result<Denoised, DenoiseError> {
        let stft = Stft::new(noisy.sample_rate(), self.dictionary.header().window_seconds)?;
        let mut spectrograms: Vec<Spectrogram> = noisy
            .channels()
            .iter()
            .map(|samples| stft.analyse(&repaired(samples, noisy.sample_rate())))
            .collect();
        let (gain, divergences) = self.gain(&spectrograms, progress)?;
        let floor = libm::pow(10.0, self.settings.floor_db / 20.0) as f32;
        let (mut energy_in, mut energy_out, mut energy_speech) = (0.0, 0.0, 0.0);
        for spectrogram in &mut spectrograms {
            for (value, &gain) in spectrogram.as_mut_slice().iter_mut().zip(&gain) {
                let power = f64::from(value.norm_sqr());
                *value *= gain.max(floor);
                energy_in += power;
                energy_out += f64::from(value.norm_sqr());
                energy_speech += f64::from(gain) * power;
            }
        }
        let channels =
            spectrograms.iter().map(|spectrogram| stft.synthesise(spectrogram, noisy.len())).collect();
        let decibels = |ratio: f64| 10.0 * libm::log10(ratio);
        let summary = Summary {
            input_snr_db: decibels(energy_speech / (energy_in - energy_speech)),
            attenuation_db: decibels(energy_in / energy_out),
            divergences,
        };
        Ok(Denoised { signal: noisy.with_channels(channels)?, summary })
    }

    /// The posterior-mean gain of every bin (bins x frames), and the number of divergences.
    fn gain(
        &self,
        spectrograms: &[Spectrogram],
        progress: Progress,
    ) -> Result<(Vec<f32>, usize), DenoiseError> {
        let bins = spectrograms[0].bins();
        let frames = spectrograms[0].frames();
        let mut power = vec![0.0_f32; bins * frames];
        for spectrogram in spectrograms {
            power.iter_mut().zip(spectrogram.as_slice()).for_each(|(power, x)| *power += x.norm_sqr());
        }
        let mut gain = vec![0.0; bins * frames];
        let mean = power.iter().map(|&x| f64::from(x)).sum::<f64>() / power.len() as f64;
        if mean == 0.0 {
            return Ok((gain, 0));
        }
        power.iter_mut().for_each(|x| *x = (f64::from(*x) / mean) as f32);
        let streams = Streams::new(self.settings.seed);
        let spectra = self.dictionary.rows(bins);
        let (mut carried, mut divergences) = (None, 0);
        let mut first = 0;
        for block in 0.. {
            let last = if frames - first <= BLOCK_FRAMES * 3 / 2 { frames } else { first + BLOCK_FRAMES };
            // Digital silence says nothing of the noise elsewhere, and has no need of a gain.
            let sounding: Vec<usize> = (first..last)
                .filter(|t| power[t * bins..(t + 1) * bins].iter().sum::<f32>() > SILENCE * bins as f32)
                .collect();
            if !sounding.is_empty() {
                let block_power: Vec<f32> =
                    sounding.iter().flat_map(|t| power[t * bins..(t + 1) * bins].iter().copied()).collect();
                let progress = &mut |share: f64| {
                    progress((first as f64 + share * (last - first) as f64) / frames as f64)
                };
                let streams = streams.child(block);
                let separated = self.separate(&spectra, &block_power, carried.as_ref(), streams, progress)?;
                divergences += separated.divergences;
                carried = Some(separated.carried);
                for (&t, new) in sounding.iter().zip(separated.gain.chunks_exact(bins)) {
                    let overlap = OVERLAP_FRAMES as f32 + 1.0;
                    let weight = if block == 0 { 1.0 } else { ((t - first + 1) as f32 / overlap).min(1.0) };
                    let frame = &mut gain[t * bins..(t + 1) * bins];
                    frame.iter_mut().zip(new).for_each(|(gain, new)| *gain += weight * (new - *gain));
                }
            }
            if last == frames {
                break;
            }
            first = last - OVERLAP_FRAMES;
        }
        Ok((gain, divergences))
    }

    /// Separates one block of powers (bins x frames).
    fn separate(
        &self,
        spectra: &[f32],
        power: &[f32],
        carried: Option<&Carried>,
        streams: Streams,
        progress: Progress,
    ) -> Result<Separated, DenoiseError> {
        let settings = &self.settings;
        let start = Start {
            bins: spectra.len() / self.dictionary.header().rank,
            speech_spectra: spectra,
            alpha_speech: settings.alpha_speech.unwrap_or(self.dictionary.header().alpha),
            alpha_noise: settings.alpha_noise,
            noise_rank: settings.noise_rank,
            speech_prior: settings.speech_prior,
            carried,
        };
        let mut separation = Separation::new(&start, power, &self.table, streams.child(0));
        let sweeps = settings.warm_start + settings.iterations;
        let mut averaged = 0;
        let mut advance = |done: usize| match progress(done as f64 / sweeps as f64) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(DenoiseError::Interrupted),
        };
        for sweep in 0..settings.warm_start {
            // The noise keeps its start until the speech has taken what is its own.
            let settled = 3 * sweep >= settings.warm_start;
            separation.maximise(0.5, Free { noise: settled, channel: settled && settings.channel });
            if settings.iterations == 0 && 4 * (settings.warm_start - sweep) <= settings.warm_start + 3 {
                separation.accumulate(0);
                averaged += 1;
            }
            advance(sweep + 1)?;
        }
        let mut divergences = 0;
        if settings.iterations > 0 {
            let mut gibbs = Gibbs::new(&mut separation, settings, streams.child(1))?;
            for sweep in 0..settings.iterations {
                let chain = gibbs.sweep(&mut separation);
                if sweep >= settings.burn_in {
                    separation.accumulate(chain);
                    averaged += 1;
                }
                advance(settings.warm_start + sweep + 1)?;
            }
            divergences = gibbs.divergences();
        }
        let scale = 1.0 / averaged as f32;
        let gain =
            separation.tiles.iter().flat_map(|tile| tile.gain_sum.iter().map(|sum| sum * scale)).collect();
        Ok(Separated { gain, divergences, carried: separation.carry() })
    }
}

/// The outcome of one block.
struct Separated {
    gain: Vec<f32>,
    divergences: usize,
    carried: Carried,
}
