//! Learning a dictionary from clean speech: the model of the denoiser with its dictionary free.
//!
//! Frames are divided into groups by their place in the corpus alone, and statistics are summed group by group. So
//! the dictionary is the same bit for bit for any number of threads, and of ranks that share the work.

use super::checkpoints::{Checkpoints, fill};
use super::sharing::section;
use crate::inference::state::{TILE_FRAMES, multiply};
use crate::kernels::vector;
use crate::model::{
    Dictionary, DictionaryError, DictionaryHeader, Factor, ImpulseVariables, MIN_POWER, MarginalTable,
    Mixture, Prior, Workspace,
};
use crate::parallel::*;
use crate::random::{SeedTree, SeededRng};
use crate::range::{SettingsError, within};
use crate::samplers::distributed::{Communicator, Local, pack, unpack};
use crate::signal::ErrorKind;
use crate::signal::progress::{self, Cancelled, ProgressCallback};
use crate::signal::{SAMPLE_RATE_RANGE, Signal};
use crate::stable::ALPHA_RANGE;
use crate::transform::{InvalidWindow, Stft, WINDOW_RANGE_SECONDS};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::Range;

/// Speech has nothing below this, Hz; many a clean recording has rumble there.
const LOWEST_VOICE_HERTZ: f64 = 65.0;

/// Tiles that share one copy of the statistics: their number depends on that of frames alone.
const GROUPS: usize = 16;
/// Beyond `GROUPS` groups of this many tiles, 18.6 hours at the usual hop, there are more groups: enough to go around.
const LARGEST_GROUP: usize = 1 << 13;
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
    /// A recording of the whole band is needed, and this one has nothing above the dictionary's.
    #[error("nothing above {hertz} Hz, where the dictionary ends: speech of the whole band is needed")]
    NothingAbove {
        /// Where the dictionary ends, Hz.
        hertz: u32,
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
    /// A checkpoint cannot be kept or read.
    #[error("the checkpoint after {sweeps} sweeps: {reason}")]
    Checkpoint {
        /// Sweeps over the speech when it was made.
        sweeps: usize,
        /// What went wrong.
        reason: io::Error,
    },
}

impl TrainingError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Settings(_) | Self::Window(_) => ErrorKind::Setting,
            Self::SampleRate { .. } | Self::NothingAbove { .. } | Self::TooLittleSpeech { .. } => {
                ErrorKind::Input
            }
            Self::Dictionary(_) => ErrorKind::Model,
            Self::Cancelled(_) => ErrorKind::Cancelled,
            Self::Checkpoint { .. } => ErrorKind::Other,
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
    /// How many frames in a row lie how far apart, s.
    hops: Vec<(f64, u64)>,
}

/// Tiles that share the sums of their statistics.
struct Group {
    /// Powers (bins x frames) and activations (rank + 1 x frames) of each tile.
    tiles: Vec<(Vec<f32>, Vec<f32>)>,
    numerator: Vec<f32>,
    denominator: Vec<f32>,
}

impl Corpus {
    /// An empty corpus for a dictionary up to half of `sample_rate` (Hz).
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(sample_rate: u32, settings: TrainingSettings) -> Result<Self, TrainingError> {
        within("rank", settings.rank, 1..=1_000)?;
        within("alpha of speech", settings.alpha, ALPHA_RANGE)?;
        within("iterations", settings.iterations, 1..=100_000)?;
        within("window in seconds", settings.window_seconds, WINDOW_RANGE_SECONDS)?;
        within("sample rate in Hz", sample_rate, SAMPLE_RATE_RANGE)?;
        let bins = Stft::new(sample_rate, settings.window_seconds)?.bins();
        Ok(Self { settings, sample_rate, bins, power: Vec::new(), files: 0, hops: Vec::new() })
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
                self.power.extend(frame.iter().map(|x| (x.norm_sqr() / mean).max(MIN_POWER as f32)));
                add_hops(&mut self.hops, stft.hop() as f64 / f64::from(speech.sample_rate()), 1);
            }
        }
        self.files += 1;
        Ok(())
    }

    /// Speech so far, silence left out, s.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        total(&self.hops)
    }

    /// Learns the dictionary by expectation maximisation with the impulse variables integrated out.
    ///
    /// # Errors
    /// If there are fewer frames than spectra.
    pub fn learn(self) -> Result<Dictionary, TrainingError> {
        self.train_with_progress(&mut ())
    }

    /// The same; `watch` is told the share that is done, 0 to 1.
    ///
    /// # Errors
    /// As [`Corpus::learn`], and if `watch` ended it.
    pub fn train_with_progress(self, watch: &mut dyn ProgressCallback) -> Result<Dictionary, TrainingError> {
        self.train_distributed(&mut Local::alone(), &mut (), watch)
    }

    /// The same, from the recordings of all ranks: those of the first rank come first, and so on. Every rank returns
    /// the dictionary that one rank with all of these recordings would learn, bit for bit on processors alike, and a
    /// run that goes on from a checkpoint the one that it would have returned without.
    ///
    /// # Errors
    /// As [`Corpus::train_with_progress`], and if a checkpoint cannot be kept or read. One rank's error is not known to the
    /// others.
    pub fn train_distributed(
        self,
        ranks: &mut dyn Communicator,
        checkpoints: &mut dyn Checkpoints,
        watch: &mut dyn ProgressCallback,
    ) -> Result<Dictionary, TrainingError> {
        let Share { corpus, frames, held, first_group } = self.divide(ranks);
        let Self { settings, sample_rate, bins, power, files, hops } = corpus;
        let (rank, alpha) = (settings.rank, settings.alpha);
        if frames < rank {
            return Err(TrainingError::TooLittleSpeech { frames, rank });
        }
        let mut stream = SeedTree::new(settings.seed).rng(0);
        let spectra = first_spectra(bins, &power, &held, frames, &settings, &mut stream, ranks);
        let mut mixture = Mixture {
            bins,
            speech: Factor { alpha, spectra },
            noise: Factor { alpha: 2.0, spectra: vec![BACKGROUND; bins] },
        };
        let table = MarginalTable::new(alpha, 2.0);
        let mut groups = groups(bins, &power, frames, rank, alpha);
        drop(power);
        let start = checkpoints.newest().unwrap_or(0);
        let failed = |sweeps| move |reason| TrainingError::Checkpoint { sweeps, reason };
        if start > 0 {
            let mut load = |part, into: Vec<&mut [f32]>| {
                let numbers = checkpoints.load(start, part).map_err(failed(start))?;
                fill(into, &unpack(&numbers)).map_err(failed(start))
            };
            load(0, vec![&mut mixture.speech.spectra[..]])?;
            for (index, group) in groups.iter_mut().enumerate() {
                let activations = group.tiles.iter_mut().map(|(_, activations)| &mut activations[..]);
                load(1 + first_group + index, activations.collect())?;
            }
        }
        for iteration in start..settings.iterations {
            groups.par_iter_mut().for_each(|group| group.sweep(&mixture, &table, settings.prior));
            let sums = sum_in_order(&groups, bins * rank, ranks);
            multiply(&mut mixture.speech.spectra, &sums.0, &sums.1, 0.5);
            let scales = normalise(&mut mixture.speech.spectra, bins);
            groups.par_iter_mut().for_each(|group| {
                for column in group.tiles.iter_mut().flat_map(|(_, h)| h.chunks_exact_mut(rank + 1)) {
                    column.iter_mut().zip(&scales).for_each(|(h, scale)| *h *= scale);
                }
            });
            let sweeps = iteration + 1;
            if checkpoints.due(sweeps) {
                if ranks.rank() == 0 {
                    let spectra = pack(&mixture.speech.spectra);
                    checkpoints.save(sweeps, 0, &spectra).map_err(failed(sweeps))?;
                }
                for (index, group) in groups.iter().enumerate() {
                    let bytes: Vec<u8> = group.tiles.iter().flat_map(|(_, h)| pack(h)).collect();
                    checkpoints.save(sweeps, 1 + first_group + index, &bytes).map_err(failed(sweeps))?;
                }
                ranks.all_gather(&[]);
                if ranks.rank() == 0 {
                    checkpoints.complete(sweeps).map_err(failed(sweeps))?;
                }
            }
            progress::report(watch, sweeps as f64 / settings.iterations as f64)?;
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

    /// Gives every rank the frames of its groups, in exchange for those of others. Files and seconds become those of
    /// all ranks.
    fn divide(mut self, ranks: &mut dyn Communicator) -> Share {
        let mut own = vec![(self.power.len() / self.bins) as u64, self.files as u64];
        own.extend(self.hops.iter().flat_map(|&(seconds, count)| [seconds.to_bits(), count]));
        self.files = 0;
        self.hops.clear();
        let mut bounds = vec![0];
        for message in ranks.all_gather(&pack(&own)) {
            let numbers: Vec<u64> = unpack(&message);
            let [frames, files, hops @ ..] = &numbers[..] else { continue };
            bounds.push(bounds[bounds.len() - 1] + *frames as usize);
            self.files += *files as usize;
            for hop in hops.chunks_exact(2) {
                add_hops(&mut self.hops, f64::from_bits(hop[0]), hop[1]);
            }
        }
        let (rank, count, frames) = (ranks.rank(), ranks.ranks(), bounds[ranks.ranks()]);
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
            let arrived = ranks.exchange(outgoing.collect(), &sources);
            for (from, message) in sources.into_iter().zip(arrived) {
                parts.push((piece(from, rank).start, unpack(&message)));
            }
        }
        parts.sort_by_key(|&(start, _)| start);
        parts.into_iter().for_each(|(_, part)| power.extend(part));
        self.power = power;
        Share { corpus: self, frames, held: held(rank), first_group: first_group(rank) }
    }
}

/// What one rank works on.
struct Share {
    /// With the powers of the frames held alone.
    corpus: Corpus,
    /// Frames of all ranks.
    frames: usize,
    held: Range<usize>,
    first_group: usize,
}

/// Frames of a group, of so many in all.
fn group_frames(frames: usize) -> usize {
    TILE_FRAMES * frames.div_ceil(TILE_FRAMES).div_ceil(GROUPS).clamp(1, LARGEST_GROUP)
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    a.start.max(b.start)..a.end.min(b.end)
}

/// Adds `count` frames that lie `seconds` apart.
fn add_hops(hops: &mut Vec<(f64, u64)>, seconds: f64, count: u64) {
    match hops.last_mut() {
        Some((last, total)) if *last == seconds => *total += count,
        _ => hops.push((seconds, count)),
    }
}

/// The seconds of all frames, added one by one: the sum must not depend on who counted them.
fn total(hops: &[(f64, u64)]) -> f64 {
    hops.iter().fold(0.0, |sum, &(seconds, count)| (0..count).fold(sum, |sum, _| sum + seconds))
}

/// The statistics of all groups of all ranks, `size` numbers that numerator the spectra and as many that denominator them, added
/// group by group. Each rank adds up a section of the numbers for all.
fn sum_in_order(groups: &[Group], size: usize, ranks: &mut dyn Communicator) -> (Vec<f32>, Vec<f32>) {
    let count = ranks.ranks();
    let outgoing = |to: usize| {
        let parts = groups.iter().flat_map(|group| [&group.numerator, &group.denominator]);
        (to, parts.flat_map(|part| pack(&part[section(to, size, count)])).collect())
    };
    let all: Vec<usize> = (0..count).collect();
    let own = section(ranks.rank(), size, count);
    let mut sums = (vec![0.0_f32; own.len()], vec![0.0_f32; own.len()]);
    for message in ranks.exchange(all.iter().map(|&to| outgoing(to)).collect(), &all) {
        for group in unpack::<f32>(&message).chunks_exact((2 * own.len()).max(1)) {
            let (numerator, denominator) = group.split_at(own.len());
            sums.0.iter_mut().zip(numerator).for_each(|(sum, x)| *sum += x);
            sums.1.iter_mut().zip(denominator).for_each(|(sum, x)| *sum += x);
        }
    }
    sums.0.append(&mut sums.1);
    let mut whole = (Vec::with_capacity(size), Vec::with_capacity(size));
    for message in ranks.all_gather(&pack(&sums.0)) {
        let sums: Vec<f32> = unpack(&message);
        let (numerator, denominator) = sums.split_at(sums.len() / 2);
        whole.0.extend_from_slice(numerator);
        whole.1.extend_from_slice(denominator);
    }
    whole
}

impl Group {
    /// Updates the activations of all tiles, and sums up the slopes of the spectra.
    fn sweep(&mut self, mixture: &Mixture<f32>, table: &MarginalTable, prior: Prior) {
        let (columns, split) = (mixture.rank(), mixture.speech_rank());
        self.numerator.fill(0.0);
        self.denominator.fill(0.0);
        let mut workspace = Workspace::default();
        let (mut numerator, mut denominator) = (Vec::new(), Vec::new());
        for (power, activations) in &mut self.tiles {
            numerator.resize(activations.len(), 0.0);
            denominator.resize(activations.len(), 0.0);
            let mut dispersed = workspace.disperse(mixture, activations);
            let slopes = dispersed.evaluate(ImpulseVariables::Integrated(table), power).slopes();
            slopes.add_speech(&mut self.numerator, &mut self.denominator);
            slopes.activations(&mut numerator, &mut denominator);
            let slopes = numerator.chunks_exact(columns).zip(denominator.chunks_exact_mut(columns));
            for (column, (numerator, denominator)) in activations.chunks_exact_mut(columns).zip(slopes) {
                prior.add_gradient(&column[..split], &mut denominator[..split]);
                multiply(&mut column[..split], numerator, denominator, 0.5);
            }
        }
    }
}

/// Cuts powers (bins x frames), whole groups of a corpus of `frames`, into groups of tiles, with level activations.
fn groups(bins: usize, power: &[f32], frames: usize, rank: usize, alpha: f64) -> Vec<Group> {
    let half_alpha = (alpha / 2.0) as f32;
    power
        .chunks(bins * group_frames(frames))
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
            numerator: vec![0.0; bins * rank],
            denominator: vec![0.0; bins * rank],
        })
        .collect()
}

/// Spectra to start from: the mean of a few random frames each, with jitter. Of the `frames` this rank has the powers
/// of those `held`.
fn first_spectra(
    bins: usize,
    power: &[f32],
    held: &Range<usize>,
    frames: usize,
    settings: &TrainingSettings,
    stream: &mut SeededRng,
    ranks: &mut dyn Communicator,
) -> Vec<f32> {
    let draw = |_| -> ([usize; 3], Vec<f32>) {
        let picks = std::array::from_fn(|_| stream.random_range(0..frames));
        (picks, (0..bins).map(|_| stream.random_range(0.5..1.5)).collect())
    };
    let draws: Vec<_> = (0..settings.rank).map(draw).collect();
    let mut picks: Vec<usize> = draws.iter().flat_map(|(picks, _)| *picks).collect();
    picks.sort_unstable();
    picks.dedup();
    let own = picks.iter().filter(|pick| held.contains(pick));
    let own: Vec<u8> = own.flat_map(|pick| pack(&power[(pick - held.start) * bins..][..bins])).collect();
    // Ranks hold frames in order, so their messages put together are in that of the picks.
    let picked: Vec<f32> = ranks.all_gather(&own).iter().flat_map(|message| unpack::<f32>(message)).collect();
    let half_alpha = (settings.alpha / 2.0) as f32;
    let mut spectra = Vec::with_capacity(bins * settings.rank);
    for (frames, jitters) in &draws {
        let columns = frames.map(|frame| picks.partition_point(|&pick| pick < frame) * bins);
        for (bin, jitter) in jitters.iter().enumerate() {
            let level = |&column: &usize| vector::powf(picked[column + bin].max(1e-9), half_alpha);
            spectra.push(columns.iter().map(level).sum::<f32>() * jitter);
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
        let mut stream = SeedTree::new(3).rng(0);
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
