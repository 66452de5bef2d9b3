//! Teaching a refiner: simulated recordings are separated, and their gains compared with the best.

use super::checkpoints::Checkpoints;
use super::sharing::section;
use super::simulation::{SimulationError, Simulator};
use crate::model::Dictionary;
use crate::parallel::*;
use crate::random::SeedTree;
use crate::refiner::{CHANNELS, Change, Example, Learning, Refiner, RefinerHeader};
use crate::samplers::SamplerError;
use crate::samplers::distributed::{Communicator, Local, pack, unpack};
use crate::separation::block::{Request, SeparationError, Separator};
use crate::separation::settings::{EmSettings, GainSettings, Settings, SettingsError, within};
use crate::transform::{InvalidWindow, Stft};
use crate::watch::{self, Cancelled, ErrorKind, Watch};
use serde::{Deserialize, Serialize};
use std::io;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Sweeps of the warm start in what is learned from. What is learned holds for fewer as well.
const WARM_START: usize = 24;

/// The usual length of a simulated recording that a refiner is learned from, s: about a block of the denoiser.
pub const EXAMPLE_SECONDS: f64 = 7.5;

/// Settings of [`learn_refiner`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RefinerSettings {
    /// Channels of the network, 1 to 256.
    pub channels: usize,
    /// How many times new examples are simulated, 1 to 10,000.
    pub rounds: usize,
    /// Examples that are simulated each time and kept in memory, 8 to 100,000.
    pub examples: usize,
    /// How many times each example is learned from, 1 to 1,000.
    pub passes: usize,
    /// Seed of the simulation and the start.
    pub seed: u64,
}

impl Default for RefinerSettings {
    fn default() -> Self {
        Self { channels: 24, rounds: 10, examples: 400, passes: 4, seed: 0 }
    }
}

impl RefinerSettings {
    /// Checks every range.
    ///
    /// # Errors
    /// Names the first setting out of its range.
    pub fn validate(&self) -> Result<(), SettingsError> {
        within("channels", self.channels, CHANNELS)?;
        within("rounds", self.rounds, 1..=10_000)?;
        within("examples", self.examples, 8..=100_000)?;
        within("passes", self.passes, 1..=1_000)
    }
}

/// Why no refiner could be learned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefiningError {
    /// A setting is out of its range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The speech is of no use.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The window of the dictionary is of no use for the speech.
    #[error(transparent)]
    Window(#[from] InvalidWindow),
    /// The sampler refused its settings.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The watch ended it.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// A checkpoint cannot be kept or read.
    #[error("the checkpoint after {passes} passes: {reason}")]
    Checkpoint {
        /// Passes over the simulated recordings when it was made, those of all rounds.
        passes: usize,
        /// What went wrong.
        reason: io::Error,
    },
}

impl RefiningError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Settings(_) | Self::Window(_) | Self::Sampler(_) => ErrorKind::Setting,
            Self::Simulation(_) => ErrorKind::Input,
            Self::Cancelled(_) => ErrorKind::Cancelled,
            Self::Checkpoint { .. } => ErrorKind::Other,
        }
    }
}

impl From<SeparationError> for RefiningError {
    fn from(error: SeparationError) -> Self {
        match error {
            SeparationError::Sampler(error) => Self::Sampler(error),
            SeparationError::Cancelled(error) => Self::Cancelled(error),
        }
    }
}

/// Learns a refiner for a dictionary from simulated recordings. `watch` is told the share that is done, 0 to 1;
/// `report` the mean change of the errors by every pass.
///
/// # Errors
/// See [`RefiningError`].
pub fn learn_refiner(
    simulator: &Simulator,
    dictionary: &Dictionary,
    settings: &RefinerSettings,
    watch: &mut dyn Watch,
    report: &mut dyn FnMut(Change),
) -> Result<Refiner, RefiningError> {
    learn_refiner_together(simulator, dictionary, settings, &mut Local::alone(), &mut (), watch, report)
}

/// The same by several ranks, which share the simulated recordings; all must have the same speech, as from
/// [`Simulator::gather`]. Every rank returns the refiner that one rank would learn, bit for bit on processors alike, and
/// a run that goes on from a checkpoint the one that it would have returned without. A sweep of the checkpoints is a
/// pass; those of all rounds count.
///
/// # Errors
/// As [`learn_refiner`], and if a checkpoint cannot be kept or read. One rank's error is not known to the others.
pub fn learn_refiner_together(
    simulator: &Simulator,
    dictionary: &Dictionary,
    settings: &RefinerSettings,
    ranks: &mut dyn Communicator,
    checkpoints: &mut dyn Checkpoints,
    watch: &mut dyn Watch,
    report: &mut dyn FnMut(Change),
) -> Result<Refiner, RefiningError> {
    let RefinerSettings { channels, rounds, examples, passes, seed } = *settings;
    settings.validate()?;
    let header = RefinerHeader {
        window_seconds: dictionary.header().window_seconds,
        channels,
        seconds: simulator.seconds() * (rounds * examples) as f64,
        passes,
        files: simulator.len(),
        seed,
    };
    let plain = Settings {
        em: EmSettings { iterations: WARM_START, ..EmSettings::default() },
        gain: GainSettings::unlearned(),
        ..Settings::default()
    };
    let separator = Separator::new(dictionary.clone(), plain);
    let streams = SeedTree::new(seed);
    let mut learning = Learning::new(header, rounds * passes * examples, streams.child(0));
    let failed = |passes| move |reason| RefiningError::Checkpoint { passes, reason };
    let start = checkpoints.newest().unwrap_or(0);
    if start > 0 {
        let mut load = |part| checkpoints.load(start, part);
        let mut parts = || -> io::Result<_> { Ok([load(0)?, load(1)?, load(2)?]) };
        parts().and_then(|parts| learning.restore(&parts)).map_err(failed(start))?;
    }
    let own = section(ranks.rank(), examples, ranks.ranks());
    for round in start / passes..rounds {
        // The simulation of a round takes about as long as a pass over it.
        let parts = (rounds * (passes + 1)) as f64;
        let done = |part: f64| ((round * (passes + 1)) as f64 + part) / parts;
        let streams = streams.child(1 + round as u64);
        let shared = Shared { watch: Mutex::new(&mut *watch), finished: AtomicUsize::new(0) };
        let simulated = own
            .clone()
            .into_par_iter()
            .with_max_len(1)
            .map(|index| {
                let finished = || shared.finished.load(Ordering::Relaxed) as f64 / own.len() as f64;
                let example = example(&separator, simulator, streams.child(index as u64), &mut |_: f64| {
                    shared.advance(done(finished()))
                });
                shared.finished.fetch_add(1, Ordering::Relaxed);
                example
            })
            .collect::<Result<Vec<Example>, RefiningError>>()?;
        let frames: Vec<u64> = simulated.iter().map(|example| example.frames() as u64).collect();
        let frames = ranks.all_gather(&pack(&frames));
        let frames = frames.iter().flat_map(|message| unpack::<u64>(message));
        let frames: Vec<usize> = frames.map(|frames| frames as usize).collect();
        for pass in start.saturating_sub(round * passes)..passes {
            let mut watched = |share: f64| watch.advance(done((1 + pass) as f64 + share));
            report(learning.pass(&simulated, &frames, ranks, &mut watched)?);
            let passed = round * passes + pass + 1;
            // All ranks have learned the same: one keeps it for all.
            if checkpoints.due(passed) && ranks.rank() == 0 {
                let mut keep = || -> io::Result<()> {
                    for (part, bytes) in learning.parts()?.iter().enumerate() {
                        checkpoints.save(passed, part, bytes)?;
                    }
                    checkpoints.complete(passed)
                };
                keep().map_err(failed(passed))?;
            }
        }
        watch::advance(watch, done((1 + passes) as f64))?;
    }
    Ok(learning.into_refiner())
}

/// A watch that several threads tell of what they do together.
struct Shared<'a> {
    watch: Mutex<&'a mut dyn Watch>,
    /// Examples that are done.
    finished: AtomicUsize,
}

impl Shared<'_> {
    fn advance(&self, done: f64) -> ControlFlow<()> {
        match self.watch.lock() {
            Ok(mut watch) => watch.advance(done),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// Simulates a recording and separates it.
fn example(
    separator: &Separator,
    simulator: &Simulator,
    streams: SeedTree,
    watch: &mut dyn Watch,
) -> Result<Example, RefiningError> {
    watch::advance(watch, 0.0)?;
    let recording = simulator.draw(streams.child(0))?;
    let header = separator.dictionary.header();
    let stft = Stft::new(recording.sample_rate, header.window_seconds)?;
    let (noisy, clean) = (stft.analyse(&recording.noisy), stft.analyse(&recording.clean));
    let bins = stft.bins();
    let mut power: Vec<f32> = noisy.as_slice().iter().map(|x| x.norm_sqr()).collect();
    let scale = power.len() as f32 / power.iter().sum::<f32>().max(f32::MIN_POSITIVE);
    power.iter_mut().for_each(|x| *x *= scale);
    let request = Request { dispersion: true, ..Request::default() };
    let separated = separator.separate(stft.grid(), &power, request, streams.child(1), watch, None)?;
    let frames = noisy.frames();
    let split = separated.dispersion[0].len() / frames;
    let below = |values: &[f32]| -> Vec<f32> {
        values.chunks_exact(bins).flat_map(|frame| &frame[..split]).copied().collect()
    };
    let clean_power: Vec<f32> = clean.as_slice().iter().map(|s| scale * s.norm_sqr()).collect();
    let pairs = noisy.as_slice().iter().zip(clean.as_slice());
    let correlation: Vec<f32> = pairs.map(|(x, s)| scale * (x.conj() * s).re).collect();
    let posterior = separator.seen(
        split,
        stft.bin_spacing(),
        below(&separated.gain),
        below(&power),
        separated.dispersion,
    );
    Ok(Example { posterior, clean: below(&clean_power), correlation: below(&correlation) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signal::{SampleFormat, Signal};
    use std::f32::consts::TAU;

    /// A second of syllables of a gliding voice.
    fn simulator() -> Simulator {
        let mut simulator = Simulator::new(1.0);
        let mut phase = 0.0;
        let voice = (0..16_000).map(|n| {
            let t = n as f32 / 16_000.0;
            phase += TAU * (120.0 + 40.0 * t) / 16_000.0;
            let harmonics: f32 = (1..20).map(|k| (k as f32 * phase).sin() / k as f32).sum();
            0.1 * (TAU * 2.0 * t).sin().max(0.0) * harmonics
        });
        let signal = Signal::new(16_000, SampleFormat::Float32, vec![voice.collect()]).unwrap();
        simulator.add(&signal).unwrap();
        simulator
    }

    fn learn(
        simulator: &Simulator,
        settings: &RefinerSettings,
        flow: ControlFlow<()>,
    ) -> Result<(Refiner, Vec<Change>), RefiningError> {
        let mut changes = Vec::new();
        let dictionary = Dictionary::shipped().unwrap();
        let report = &mut |change| changes.push(change);
        let refiner = learn_refiner(simulator, &dictionary, settings, &mut |_: f64| flow, report)?;
        Ok((refiner, changes))
    }

    const FEW: RefinerSettings = RefinerSettings { channels: 4, rounds: 2, examples: 8, passes: 3, seed: 1 };

    #[test]
    #[ignore = "learns for minutes: cargo test --lib -- --ignored"]
    fn errors_fall_on_new_examples() {
        let settings = RefinerSettings { channels: 8, rounds: 3, examples: 32, passes: 15, ..FEW };
        let (refiner, changes) = learn(&simulator(), &settings, ControlFlow::Continue(())).unwrap();
        assert_eq!(changes.len(), 45);
        // The first pass of a round has not seen its examples.
        let unseen: Vec<f64> = changes.chunks(15).map(|round| round[0].compressed_db).collect();
        assert!(unseen[0].abs() < 0.1 && unseen[2] < -1.0, "{unseen:?}");
        let header = refiner.header();
        assert_eq!((header.seconds, header.files, header.window_seconds), (96.0, 1, 0.064));
    }

    #[test]
    fn the_watch_is_asked_within_every_separation() {
        let (mut asked, mut furthest) = (0, 0.0_f64);
        let mut watch = |done: f64| {
            (asked, furthest) = (asked + 1, furthest.max(done));
            if asked < 40 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let dictionary = Dictionary::shipped().unwrap();
        let ended = learn_refiner(&simulator(), &dictionary, &FEW, &mut watch, &mut |_| ());
        assert!(matches!(ended, Err(RefiningError::Cancelled(Cancelled))));
        // 44 sweeps for each of eight examples, all of them before the first pass; every thread asks once more.
        assert!((40..100).contains(&asked) && furthest < 0.125, "{asked} times, {furthest}");
    }

    #[test]
    fn what_cannot_be_learned_is_refused() {
        let go = ControlFlow::Continue(());
        let error = |settings, flow| learn(&simulator(), &settings, flow).unwrap_err();
        for (settings, name) in [
            (RefinerSettings { channels: 257, ..FEW }, "channels"),
            (RefinerSettings { rounds: 0, ..FEW }, "rounds"),
            (RefinerSettings { examples: 7, ..FEW }, "examples"),
            (RefinerSettings { passes: 0, ..FEW }, "passes"),
        ] {
            assert!(matches!(error(settings, go), RefiningError::Settings(found) if found.name == name));
        }
        let interrupted = error(FEW, ControlFlow::Break(()));
        assert!(matches!(interrupted, RefiningError::Cancelled(Cancelled)));
        let silent = learn(&Simulator::new(1.0), &FEW, go).unwrap_err();
        assert!(matches!(silent, RefiningError::Simulation(SimulationError::NoSpeech)));
    }
}
