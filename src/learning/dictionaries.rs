//! Training of a dictionary from clean speech: the model of the denoiser with a free dictionary.
//!
//! Frames are divided into groups by their position in the corpus alone, and statistics are summed group by group. The
//! dictionary is therefore bit-identical for any number of threads and processes.

#[cfg(test)]
mod tests;

use super::checkpoints::{CheckpointStore, fill};
use super::groups::{Group, first_spectra, group_frames, groups, normalise, sum_in_order};
use crate::inference::em::multiply;
use crate::model::{
    Dictionary, DictionaryError, DictionaryHeader, Factor, MIN_POWER, MarginalTable, Mixture, Prior,
    validate_prior,
};
use crate::parallel::*;
use crate::random::SeedTree;
use crate::range::{SettingsError, within};
use crate::samplers::distributed::{Communicator, Local, pack, unpack};
use crate::signal::ErrorKind;
use crate::signal::progress::{self, Cancelled, ProgressCallback};
use crate::signal::{SAMPLE_RATE_RANGE, Signal, counted};
use crate::stable::ALPHA_RANGE;
use crate::transform::{DEFAULT_WINDOW_SECONDS, Stft};
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::Range;

/// Minimum frequency of speech, Hz; clean recordings have rumble below it.
const MIN_SPEECH_HERTZ: f64 = 65.0;

/// Dispersion of the noise assumed in clean speech of mean power one.
const BACKGROUND: f32 = 1e-7;
/// Frames with a mean power below this fraction of their recording's count as silence.
const SILENCE: f32 = 1e-4;

/// Settings of [`Corpus::train`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingSettings {
    /// Number of spectra, 1 to 1,000.
    pub rank: usize,
    /// Characteristic exponent of speech, 0.2 to 2.
    pub alpha: f64,
    /// Sweeps over the corpus, 1 to 100,000.
    pub iterations: usize,
    /// Seed of the initial spectra.
    pub seed: u64,
    /// Length of the analysis window, s.
    pub window_seconds: f64,
    /// Prior of the activations. With a sparse prior, each spectrum represents one sound.
    pub prior: Prior,
}

impl Default for TrainingSettings {
    fn default() -> Self {
        let prior = Prior::Gamma { shape: 0.1, rate: 0.0 };
        Self { rank: 100, alpha: 0.8, iterations: 60, seed: 0, window_seconds: DEFAULT_WINDOW_SECONDS, prior }
    }
}

/// Why a dictionary could not be trained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainingError {
    /// A setting is out of range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The sample rate of a recording is below that of the dictionary.
    #[error("sample rate is {found} Hz; expected at least {expected} Hz")]
    SampleRate {
        /// The recording's sample rate, Hz.
        found: u32,
        /// Sample rate of the dictionary, Hz.
        expected: u32,
    },
    /// A recording without content above the dictionary's band.
    #[error("no content above {hertz} Hz, the dictionary's band; expected full-band speech")]
    NothingAbove {
        /// Upper edge of the dictionary's band, Hz.
        hertz: u32,
    },
    /// There is too little speech.
    #[error(
        "{} of speech; expected at least one for each of {rank} spectra", counted(*frames as u64, "frame")
    )]
    TooLittleSpeech {
        /// Frames that are not silent.
        frames: usize,
        /// Number of spectra.
        rank: usize,
    },
    /// The result is not a dictionary.
    #[error(transparent)]
    Dictionary(#[from] DictionaryError),
    /// The progress callback cancelled the training.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// A checkpoint cannot be written or read.
    #[error("checkpoint after {sweeps} sweeps: {reason}")]
    Checkpoint {
        /// Number of sweeps at the checkpoint.
        sweeps: usize,
        /// Underlying error.
        reason: io::Error,
    },
}

impl TrainingError {
    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Settings(_) => ErrorKind::Setting,
            Self::SampleRate { .. } | Self::NothingAbove { .. } | Self::TooLittleSpeech { .. } => {
                ErrorKind::Input
            }
            Self::Dictionary(error) => error.kind(),
            Self::Cancelled(_) => ErrorKind::Cancelled,
            Self::Checkpoint { .. } => ErrorKind::Other,
        }
    }
}

/// Clean training speech: the powers of its frames without silence.
#[derive(Debug, Clone)]
pub struct Corpus {
    settings: TrainingSettings,
    sample_rate: u32,
    bins: usize,
    /// `|X|^2`, bins x frames, every recording at a mean of one.
    power: Vec<f32>,
    files: usize,
    /// Runs of frames with an equal hop: hop (s) and number of frames.
    hops: Vec<(f64, u64)>,
}

impl Corpus {
    /// An empty corpus for a dictionary up to half of `sample_rate` (Hz).
    ///
    /// # Errors
    /// [`TrainingError::Settings`] if a setting is out of range.
    pub fn new(sample_rate: u32, settings: TrainingSettings) -> Result<Self, TrainingError> {
        within("rank", settings.rank, 1..=1_000)?;
        within("alpha", settings.alpha, ALPHA_RANGE)?;
        within("iterations", settings.iterations, 1..=100_000)?;
        within("sample_rate", sample_rate, SAMPLE_RATE_RANGE)?;
        validate_prior(&settings.prior)?;
        let bins = Stft::new(sample_rate, settings.window_seconds)?.bins();
        Ok(Self { settings, sample_rate, bins, power: Vec::new(), files: 0, hops: Vec::new() })
    }

    /// Adds all channels of a recording, up to the dictionary's band; the bin spacing is equal at every sample rate.
    /// Rumble below 65 Hz counts as silence.
    ///
    /// # Errors
    /// [`TrainingError::SampleRate`] if its sample rate is below that of the dictionary.
    pub fn add(&mut self, speech: &Signal) -> Result<(), TrainingError> {
        if speech.sample_rate() < self.sample_rate {
            return Err(TrainingError::SampleRate {
                found: speech.sample_rate(),
                expected: self.sample_rate,
            });
        }
        let stft = Stft::new(speech.sample_rate(), self.settings.window_seconds)?;
        let rumble = (MIN_SPEECH_HERTZ * self.settings.window_seconds).ceil() as usize;
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
                self.power.extend(frame.iter().map(|x| (x.norm_sqr() / mean).max(MIN_POWER as f32)));
                add_hops(&mut self.hops, stft.hop() as f64 / f64::from(speech.sample_rate()), 1);
            }
        }
        self.files += 1;
        Ok(())
    }

    /// Duration of the speech so far without silence, s.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        total(&self.hops)
    }

    /// Trains the dictionary by expectation maximisation with the impulse variables integrated out.
    ///
    /// # Errors
    /// [`TrainingError::TooLittleSpeech`] if there are fewer frames than spectra.
    pub fn train(self) -> Result<Dictionary, TrainingError> {
        self.train_with_progress(&mut ())
    }

    /// Like [`train`](Self::train); `progress` receives the completed fraction, 0 to 1.
    ///
    /// # Errors
    /// As [`train`](Self::train), and [`TrainingError::Cancelled`] if `progress` cancels it.
    pub fn train_with_progress(
        self,
        progress: &mut dyn ProgressCallback,
    ) -> Result<Dictionary, TrainingError> {
        self.train_distributed(&mut Local::alone(), &mut (), progress)
    }

    /// Trains the dictionary from the recordings of all processes, in the order of the processes. Each process returns the
    /// dictionary that one process would train from all recordings, bit for bit on equal processors; so does a run that
    /// resumes from a checkpoint. `progress` receives the completed fraction, 0 to 1.
    ///
    /// # Errors
    /// As [`train_with_progress`](Self::train_with_progress), and [`TrainingError::Checkpoint`] if a checkpoint cannot be written
    /// or read. The error of one process is not reported to the others.
    pub fn train_distributed(
        self,
        processes: &mut dyn Communicator,
        checkpoints: &mut dyn CheckpointStore,
        progress: &mut dyn ProgressCallback,
    ) -> Result<Dictionary, TrainingError> {
        let Part { corpus, frames, held, first_group } = self.divide(processes);
        let Self { settings, sample_rate, bins, power, files, hops } = corpus;
        let (rank, alpha) = (settings.rank, settings.alpha);
        if frames < rank {
            return Err(TrainingError::TooLittleSpeech { frames, rank });
        }
        let mut rng = SeedTree::new(settings.seed).rng(0);
        let spectra = first_spectra(bins, &power, &held, frames, &settings, &mut rng, processes);
        let mut mixture = Mixture {
            bins,
            speech: Factor { alpha, spectra },
            noise: Factor { alpha: 2.0, spectra: vec![BACKGROUND; bins] },
        };
        let table = MarginalTable::new(alpha, 2.0);
        let mut groups = groups(bins, &power, frames, rank, alpha);
        drop(power);
        let start =
            resume(checkpoints, settings.iterations, &mut mixture.speech.spectra, &mut groups, first_group)?;
        for iteration in start..settings.iterations {
            groups.par_iter_mut().for_each(|group| group.sweep(&mixture, &table, settings.prior));
            let sums = sum_in_order(&groups, bins * rank, processes);
            multiply(&mut mixture.speech.spectra, &sums.0, &sums.1, 0.5);
            let scales = normalise(&mut mixture.speech.spectra, bins);
            groups.par_iter_mut().for_each(|group| {
                for column in group.tiles.iter_mut().flat_map(|(_, h)| h.chunks_exact_mut(rank + 1)) {
                    column.iter_mut().zip(&scales).for_each(|(h, scale)| *h *= scale);
                }
            });
            let sweeps = iteration + 1;
            if checkpoints.is_due(sweeps) {
                save_state(checkpoints, sweeps, &mixture.speech.spectra, &groups, first_group, processes)
                    .map_err(|reason| TrainingError::Checkpoint { sweeps, reason })?;
            }
            progress::report(progress, sweeps as f64 / settings.iterations as f64)?;
        }
        let header = DictionaryHeader {
            alpha,
            sample_rate,
            window_seconds: settings.window_seconds,
            rank,
            iterations: settings.iterations,
            seed: settings.seed,
            files,
            seconds: total(&hops),
            continuation: None,
        };
        Ok(Dictionary::new(header, mixture.speech.spectra)?)
    }

    /// Exchanges frames so that each process has those of its groups. Files and durations become totals over all
    /// processes.
    fn divide(mut self, processes: &mut dyn Communicator) -> Part {
        let mut own = vec![(self.power.len() / self.bins) as u64, self.files as u64];
        own.extend(self.hops.iter().flat_map(|&(seconds, count)| [seconds.to_bits(), count]));
        self.files = 0;
        self.hops.clear();
        let mut bounds = vec![0];
        for message in processes.all_gather(&pack(&own)) {
            let numbers: Vec<u64> = unpack(&message);
            let [frames, files, hops @ ..] = &numbers[..] else { continue };
            bounds.push(bounds[bounds.len() - 1] + *frames as usize);
            self.files += *files as usize;
            for hop in hops.chunks_exact(2) {
                add_hops(&mut self.hops, f64::from_bits(hop[0]), hop[1]);
            }
        }
        let (rank, count, frames) = (processes.rank(), processes.ranks(), bounds[processes.ranks()]);
        let length = group_frames(frames);
        let groups = frames.div_ceil(length);
        let first_group = |rank: usize| (rank * groups).div_ceil(count);
        let held = |rank: usize| {
            (first_group(rank) * length).min(frames)..(first_group(rank + 1) * length).min(frames)
        };
        let read = |rank: usize| bounds[rank]..bounds[rank + 1];
        let frame_bytes = self.bins * size_of::<f32>();
        // One message of MPI has at most 2^31 bytes.
        let longest = ((1 << 30) / frame_bytes).max(1);
        let rounds = (0..count).map(|rank| read(rank).len().div_ceil(longest)).max().unwrap_or(0);
        let mut power = Vec::with_capacity(held(rank).len() * self.bins);
        let mut parts: Vec<(usize, Vec<f32>)> = Vec::new();
        for round in 0..rounds {
            let piece = |from: usize, to: usize| {
                let read = read(from);
                let read = (read.start + round * longest).min(read.end)
                    ..(read.start + (round + 1) * longest).min(read.end);
                overlap(&read, &held(to))
            };
            let outgoing = (0..count).map(|to| (to, piece(rank, to))).filter(|(_, piece)| !piece.is_empty());
            let start = bounds[rank];
            let outgoing = outgoing.map(|(to, piece)| {
                (to, pack(&self.power[(piece.start - start) * self.bins..(piece.end - start) * self.bins]))
            });
            let sources: Vec<usize> = (0..count).filter(|&from| !piece(from, rank).is_empty()).collect();
            let arrived = processes.exchange(outgoing.collect(), &sources);
            for (from, message) in sources.into_iter().zip(arrived) {
                parts.push((piece(from, rank).start, unpack(&message)));
            }
        }
        parts.sort_by_key(|&(start, _)| start);
        parts.into_iter().for_each(|(_, part)| power.extend(part));
        self.power = power;
        Part { corpus: self, frames, held: held(rank), first_group: first_group(rank) }
    }
}

/// The part of the corpus of one process.
struct Part {
    /// The corpus with the powers of the frames held.
    corpus: Corpus,
    /// Number of frames of all processes.
    frames: usize,
    held: Range<usize>,
    first_group: usize,
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// Adds `count` frames with a hop of `seconds`.
fn add_hops(hops: &mut Vec<(f64, u64)>, seconds: f64, count: u64) {
    match hops.last_mut() {
        Some((last, total)) if *last == seconds => *total += count,
        _ => hops.push((seconds, count)),
    }
}

/// The duration of all frames, summed one by one: it must not depend on the division among processes.
fn total(hops: &[(f64, u64)]) -> f64 {
    hops.iter().fold(0.0, |sum, &(seconds, count)| (0..count).fold(sum, |sum, _| sum + seconds))
}

/// Loads the latest state of at most `iterations` sweeps, if any; returns its number of sweeps.
fn resume(
    checkpoints: &mut dyn CheckpointStore,
    iterations: usize,
    spectra: &mut [f32],
    groups: &mut [Group],
    first_group: usize,
) -> Result<usize, TrainingError> {
    let sweeps = checkpoints.latest().unwrap_or(0);
    if sweeps > iterations {
        let reason = format!("it is of more sweeps than the {iterations} to train");
        return Err(TrainingError::Checkpoint { sweeps, reason: io::Error::other(reason) });
    }
    if sweeps > 0 {
        load_state(checkpoints, sweeps, spectra, groups, first_group)
            .map_err(|reason| TrainingError::Checkpoint { sweeps, reason })?;
    }
    Ok(sweeps)
}

/// Loads the state after `sweeps` sweeps: the spectra, and the activations of the groups, numbered from `first_group`.
fn load_state(
    checkpoints: &mut dyn CheckpointStore,
    sweeps: usize,
    spectra: &mut [f32],
    groups: &mut [Group],
    first_group: usize,
) -> io::Result<()> {
    fill(vec![spectra], &unpack(&checkpoints.load(sweeps, 0)?))?;
    for (index, group) in groups.iter_mut().enumerate() {
        let activations = group.tiles.iter_mut().map(|(_, activations)| &mut activations[..]);
        fill(activations.collect(), &unpack(&checkpoints.load(sweeps, 1 + first_group + index)?))?;
    }
    Ok(())
}

/// Stores the state for [`load_state`], and marks it as complete when all processes have stored their groups.
fn save_state(
    checkpoints: &mut dyn CheckpointStore,
    sweeps: usize,
    spectra: &[f32],
    groups: &[Group],
    first_group: usize,
    processes: &mut dyn Communicator,
) -> io::Result<()> {
    if processes.rank() == 0 {
        checkpoints.save(sweeps, 0, &pack(spectra))?;
    }
    for (index, group) in groups.iter().enumerate() {
        let bytes: Vec<u8> = group.tiles.iter().flat_map(|(_, activations)| pack(activations)).collect();
        checkpoints.save(sweeps, 1 + first_group + index, &bytes)?;
    }
    processes.all_gather(&[]);
    if processes.rank() == 0 { checkpoints.commit(sweeps) } else { Ok(()) }
}
