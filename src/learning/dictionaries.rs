//! Learning a dictionary from clean speech: the model of the denoiser with its dictionary free.

use crate::kernels::vector;
use crate::model::{
    Dictionary, DictionaryError, DictionaryHeader, Factor, ImpulseVariables, MarginalTable, Mixture, Prior,
    SMALLEST_POWER, Workspace,
};
use crate::parallel::*;
use crate::random::{Stream, Streams};
use crate::separation::settings::{ALPHAS, SettingsError, within};
use crate::separation::state::{TILE_FRAMES, multiply};
use crate::signal::{LOWEST_VOICE_HERTZ, SAMPLE_RATES, Signal};
use crate::transform::{InvalidWindow, Stft, WINDOW_SECONDS};
use crate::watch::{self, Cancelled, ErrorKind, Watch};
use rand::RngExt;
use serde::{Deserialize, Serialize};

/// Tiles that pass over one copy of the statistics: their number never depends on that of threads.
const GROUPS: usize = 16;
/// The dispersion of the noise that is assumed beside clean speech of mean power one.
const BACKGROUND: f32 = 1e-7;
/// Frames whose mean power is below this share of their recording's count as silence.
const SILENCE: f32 = 1e-4;

/// Settings of [`Corpus::learn`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingSettings {
    /// Number of spectra, 1 to 1,000.
    pub rank: usize,
    /// Characteristic exponent of speech, in (0, 2].
    pub alpha: f64,
    /// Sweeps over the speech, 1 to 100,000.
    pub iterations: usize,
    /// Seed of the start.
    pub seed: u64,
    /// Length of the analysis window, s.
    pub window_seconds: f64,
    /// Prior of the activations. A sparse one makes spectra that each stand for a sound of its own.
    pub prior: Prior,
}

impl Default for TrainingSettings {
    fn default() -> Self {
        let prior = Prior::Gamma { shape: 0.1, rate: 0.0 };
        Self { rank: 100, alpha: 0.8, iterations: 60, seed: 0, window_seconds: 0.064, prior }
    }
}

/// Why no dictionary could be learned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainingError {
    /// A setting is out of its range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The window is out of range.
    #[error(transparent)]
    Window(#[from] InvalidWindow),
    /// A recording ends below the dictionary's band.
    #[error("a sample rate of {found} Hz; this dictionary needs at least {expected} Hz")]
    SampleRate {
        /// The recording's sample rate, Hz.
        found: u32,
        /// That of the dictionary, Hz.
        expected: u32,
    },
    /// There is not enough speech.
    #[error("{frames} frames of speech for {rank} spectra; at least as many are needed")]
    TooLittleSpeech {
        /// Frames that are not silent.
        frames: usize,
        /// Number of spectra.
        rank: usize,
    },
    /// The result is not a dictionary.
    #[error(transparent)]
    Dictionary(#[from] DictionaryError),
    /// The watch ended it.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl TrainingError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Settings(_) | Self::Window(_) => ErrorKind::Setting,
            Self::SampleRate { .. } | Self::TooLittleSpeech { .. } => ErrorKind::Input,
            Self::Dictionary(_) => ErrorKind::Model,
            Self::Cancelled(_) => ErrorKind::Cancelled,
        }
    }
}

/// Clean speech to learn from: the powers of its frames, silence left out.
#[derive(Debug, Clone)]
pub struct Corpus {
    settings: TrainingSettings,
    sample_rate: u32,
    bins: usize,
    /// `|X|^2`, bins x frames, every recording at a mean of one.
    power: Vec<f32>,
    files: usize,
    seconds: f64,
}

/// Tiles that share the sums of their statistics.
struct Group {
    /// Powers (bins x frames) and activations (rank + 1 x frames) of each tile.
    tiles: Vec<(Vec<f32>, Vec<f32>)>,
    raise: Vec<f32>,
    lower: Vec<f32>,
}

impl Corpus {
    /// An empty corpus for a dictionary up to half of `sample_rate` (Hz).
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(sample_rate: u32, settings: TrainingSettings) -> Result<Self, TrainingError> {
        within("rank", settings.rank, 1..=1_000)?;
        within("alpha of speech", settings.alpha, ALPHAS)?;
        within("iterations", settings.iterations, 1..=100_000)?;
        within("window in seconds", settings.window_seconds, WINDOW_SECONDS)?;
        within("sample rate in Hz", sample_rate, SAMPLE_RATES)?;
        let bins = Stft::new(sample_rate, settings.window_seconds)?.bins();
        Ok(Self { settings, sample_rate, bins, power: Vec::new(), files: 0, seconds: 0.0 })
    }

    /// Adds a recording, all channels. Of one with a higher sample rate, the band of the dictionary is used:
    /// bins are equally far apart at every rate. What lies below the voice counts as silence.
    ///
    /// # Errors
    /// If its sample rate is below that of the dictionary.
    pub fn add(&mut self, speech: &Signal) -> Result<(), TrainingError> {
        if speech.sample_rate() < self.sample_rate {
            return Err(TrainingError::SampleRate {
                found: speech.sample_rate(),
                expected: self.sample_rate,
            });
        }
        let stft = Stft::new(speech.sample_rate(), self.settings.window_seconds)?;
        let rumble = (LOWEST_VOICE_HERTZ * self.settings.window_seconds).ceil() as usize;
        for samples in speech.channels() {
            let mut spectrogram = stft.analyse(samples);
            for frame in spectrogram.as_mut_slice().chunks_exact_mut(stft.bins()) {
                frame[..rumble].fill(Default::default());
            }
            let frames = || spectrogram.as_slice().chunks_exact(stft.bins()).map(|frame| &frame[..self.bins]);
            let level = |frame: &[_]| {
                frame.iter().map(num_complex::Complex::norm_sqr).sum::<f32>() / self.bins as f32
            };
            let mean = frames().map(level).sum::<f32>() / spectrogram.frames() as f32;
            for frame in frames().filter(|frame| level(frame) > SILENCE * mean) {
                self.power.extend(frame.iter().map(|x| (x.norm_sqr() / mean).max(SMALLEST_POWER as f32)));
                self.seconds += stft.hop() as f64 / f64::from(speech.sample_rate());
            }
        }
        self.files += 1;
        Ok(())
    }

    /// Speech so far, silence left out, s.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Learns the dictionary by expectation maximisation with the impulse variables integrated out.
    ///
    /// # Errors
    /// If there are fewer frames than spectra.
    pub fn learn(self) -> Result<Dictionary, TrainingError> {
        self.learn_with(&mut ())
    }

    /// The same; `watch` is told the share that is done, 0 to 1.
    ///
    /// # Errors
    /// As [`Corpus::learn`], and if `watch` ended it.
    pub fn learn_with(self, watch: &mut dyn Watch) -> Result<Dictionary, TrainingError> {
        let Self { settings, bins, power, .. } = self;
        let (rank, alpha) = (settings.rank, settings.alpha);
        let frames = power.len() / bins;
        if frames < rank {
            return Err(TrainingError::TooLittleSpeech { frames, rank });
        }
        let spectra = first_spectra(bins, &power, rank, alpha, &mut Streams::new(settings.seed).stream(0));
        let mut mixture = Mixture {
            bins,
            speech: Factor { alpha, spectra },
            noise: Factor { alpha: 2.0, spectra: vec![BACKGROUND; bins] },
        };
        let table = MarginalTable::new(alpha, 2.0);
        let mut groups = groups(bins, &power, rank, alpha);
        drop(power);
        for iteration in 0..settings.iterations {
            groups.par_iter_mut().for_each(|group| group.sweep(&mixture, &table, settings.prior));
            let mut sums = (vec![0.0; bins * rank], vec![0.0; bins * rank]);
            for group in &groups {
                sums.0.iter_mut().zip(&group.raise).for_each(|(sum, x)| *sum += x);
                sums.1.iter_mut().zip(&group.lower).for_each(|(sum, x)| *sum += x);
            }
            multiply(&mut mixture.speech.spectra, &sums.0, &sums.1, 0.5);
            let scales = normalise(&mut mixture.speech.spectra, bins);
            groups.par_iter_mut().for_each(|group| {
                for column in group.tiles.iter_mut().flat_map(|(_, h)| h.chunks_exact_mut(rank + 1)) {
                    column.iter_mut().zip(&scales).for_each(|(h, scale)| *h *= scale);
                }
            });
            watch::advance(watch, (iteration + 1) as f64 / settings.iterations as f64)?;
        }
        let header = DictionaryHeader {
            alpha,
            sample_rate: self.sample_rate,
            window_seconds: settings.window_seconds,
            rank,
            iterations: settings.iterations,
            seed: settings.seed,
            files: self.files,
            seconds: self.seconds,
        };
        Ok(Dictionary::new(header, mixture.speech.spectra)?)
    }
}

impl Group {
    /// Updates the activations of all tiles, and sums up the slopes of the spectra.
    fn sweep(&mut self, mixture: &Mixture<f32>, table: &MarginalTable, prior: Prior) {
        let (columns, split) = (mixture.rank(), mixture.speech_rank());
        self.raise.fill(0.0);
        self.lower.fill(0.0);
        let mut workspace = Workspace::default();
        let (mut raise, mut lower) = (Vec::new(), Vec::new());
        for (power, activations) in &mut self.tiles {
            raise.resize(activations.len(), 0.0);
            lower.resize(activations.len(), 0.0);
            let mut dispersed = workspace.disperse(mixture, activations);
            let slopes = dispersed.evaluate(ImpulseVariables::Integrated(table), power).slopes();
            slopes.add_speech(&mut self.raise, &mut self.lower);
            slopes.activations(&mut raise, &mut lower);
            let slopes = raise.chunks_exact(columns).zip(lower.chunks_exact_mut(columns));
            for (column, (raise, lower)) in activations.chunks_exact_mut(columns).zip(slopes) {
                prior.add_gradient(&column[..split], &mut lower[..split]);
                multiply(&mut column[..split], raise, lower, 0.5);
            }
        }
    }
}

/// Cuts powers (bins x frames) into groups of tiles, with level activations.
fn groups(bins: usize, power: &[f32], rank: usize, alpha: f64) -> Vec<Group> {
    let half_alpha = (alpha / 2.0) as f32;
    let tiles = power.len().div_ceil(TILE_FRAMES * bins);
    power
        .chunks(TILE_FRAMES * bins * tiles.div_ceil(GROUPS))
        .map(|power| Group {
            tiles: power
                .chunks(TILE_FRAMES * bins)
                .map(|power| {
                    let mut activations = vec![1.0; power.len() / bins * (rank + 1)];
                    for (column, power) in
                        activations.chunks_exact_mut(rank + 1).zip(power.chunks_exact(bins))
                    {
                        let level =
                            power.iter().map(|&x| vector::powf(x, half_alpha)).sum::<f32>() / bins as f32;
                        column[..rank].fill(level / rank as f32);
                    }
                    (power.to_vec(), activations)
                })
                .collect(),
            raise: vec![0.0; bins * rank],
            lower: vec![0.0; bins * rank],
        })
        .collect()
}

/// Spectra to start from: the mean of a few random frames each, with jitter.
fn first_spectra(bins: usize, power: &[f32], rank: usize, alpha: f64, stream: &mut Stream) -> Vec<f32> {
    let frames = power.len() / bins;
    let mut spectra = Vec::with_capacity(bins * rank);
    for _ in 0..rank {
        let picks: [usize; 3] = std::array::from_fn(|_| stream.random_range(0..frames));
        for bin in 0..bins {
            let level = |&t: &usize| vector::powf(power[t * bins + bin].max(1e-9), (alpha / 2.0) as f32);
            spectra.push(picks.iter().map(level).sum::<f32>() * stream.random_range(0.5..1.5));
        }
    }
    normalise(&mut spectra, bins);
    spectra
}

/// Divides every spectrum by its mean, and returns the means.
fn normalise(spectra: &mut [f32], bins: usize) -> Vec<f32> {
    spectra
        .chunks_exact_mut(bins)
        .map(|spectrum| {
            let mean = (spectrum.iter().sum::<f32>() / bins as f32).max(1e-20);
            spectrum.iter_mut().for_each(|x| *x = (*x / mean).max(1e-9));
            mean
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::SampleFormat;
    use rand_distr::{Distribution, StandardNormal};

    #[test]
    fn rumble_is_not_learned() {
        const RATE: u32 = 8_000;
        let mut stream = Streams::new(3).stream(0);
        let samples = (0..2 * RATE).map(|n| {
            let noise: f32 = StandardNormal.sample(&mut stream);
            let rumble = libm::sinf(2.0 * std::f32::consts::PI * 30.0 * n as f32 / RATE as f32);
            0.1 * noise + 0.5 * rumble
        });
        let speech = Signal::new(RATE, SampleFormat::Float32, vec![samples.collect()]).unwrap();
        let settings = TrainingSettings { rank: 2, iterations: 20, ..TrainingSettings::default() };
        let mut corpus = Corpus::new(RATE, settings).unwrap();
        corpus.add(&speech).unwrap();
        let dictionary = corpus.learn().unwrap();
        for spectrum in dictionary.rows(257).chunks_exact(257) {
            let flat = spectrum[10..].iter().sum::<f32>() / 247.0;
            assert!(spectrum[..5].iter().all(|&x| x < 1e-3 * flat), "{:?}", &spectrum[..6]);
            assert!(spectrum[5..].iter().all(|&x| x > 0.1 * flat && x < 10.0 * flat));
        }
    }
}
