//! Options of the model and its inference.

use super::terminal::Failure;
use alphamf::inference::{Denoiser, ImpulseMode, NoiseModel, Positivity, Settings};
use alphamf::model::Dictionary;
use alphamf::refiner::Refiner;
use alphamf::samplers::SamplerKind;
use anyhow::Context;
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// Stands for no refiner.
const NONE: &str = "none";

/// Options of the model and its inference, shared by all commands that denoise.
#[derive(Debug, Clone, clap::Args)]
pub struct Model {
    /// A dictionary made by `denoise train`, in place of the built-in one.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,

    /// A refiner made by `denoise train-refiner`, in place of the built-in one, or `none`: what corrects the gain of
    /// every bin by what is around it.
    #[arg(long, value_name = "FILE|none")]
    refiner: Option<PathBuf>,

    /// How much time to spend: fast takes half of it, best three times as much.
    #[arg(long, value_name = "HOW", default_value = "normal")]
    quality: Quality,

    /// How much of the noise to take out: at most 12 dB (gentle), 40 dB (strong), or about 26 dB, more where it is
    /// louder than speech and less where it is hardly heard (normal).
    #[arg(long, value_name = "HOW", conflicts_with = "floor_db")]
    strength: Option<Strength>,

    /// The least gain of any part of the spectrum, dB, -100 to 0: how much of the noise stays.
    #[arg(long, value_name = "DB", allow_negative_numbers = true)]
    floor_db: Option<f64>,

    /// Sampler of activations and noise spectra.
    #[arg(long, help_heading = "Model", value_name = "NAME")]
    sampler: Option<SamplerKind>,

    /// Gibbs sweeps after the warm start.
    #[arg(long, help_heading = "Model", value_name = "N")]
    iterations: Option<usize>,

    /// Gibbs sweeps that are left out of the average; half of --iterations if not given.
    #[arg(long, help_heading = "Model", value_name = "N")]
    burn_in: Option<usize>,

    /// Sweeps of expectation maximisation to start from.
    #[arg(long, help_heading = "Model", value_name = "N")]
    warm_start: Option<usize>,

    /// Step size of the sampler.
    #[arg(long, help_heading = "Model", value_name = "STEP")]
    step_size: Option<f64>,

    /// Share of the bins that each gradient of the sampler looks at, up to 1.
    #[arg(long, help_heading = "Model", value_name = "SHARE")]
    minibatch: Option<f64>,

    /// How the sampler keeps factors positive: it moves logarithms, or mirrors at zero as in the paper.
    #[arg(long, help_heading = "Model", value_name = "HOW")]
    positivity: Option<PositivityName>,

    /// Whether impulse variables are integrated out, or sampled as in the paper.
    #[arg(long, help_heading = "Model", value_name = "HOW")]
    impulses: Option<ImpulsesName>,

    /// Characteristic exponent of speech, 0.2 to 2; the dictionary's if not given.
    #[arg(long, help_heading = "Model", value_name = "ALPHA")]
    alpha_speech: Option<f64>,

    /// Characteristic exponent of noise, 0.2 to 2.
    #[arg(long, help_heading = "Model", value_name = "ALPHA")]
    alpha_noise: Option<f64>,

    /// Makes the noise of so many constant spectra, 1 to 64, in place of one that drifts.
    #[arg(long, help_heading = "Model", value_name = "N")]
    noise_rank: Option<usize>,

    /// Seed of all random numbers: the same seed gives the same file.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PositivityName {
    Log,
    Mirrored,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Quality {
    Fast,
    Normal,
    Best,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Strength {
    Gentle,
    Normal,
    Strong,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ImpulsesName {
    Integrated,
    Sampled,
}

impl Model {
    /// The files that take the place of what is built in.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.model.as_deref().into_iter().chain(self.refiner_file())
    }

    fn refiner_file(&self) -> Option<&Path> {
        self.refiner.as_deref().filter(|path| *path != Path::new(NONE))
    }

    /// The library's settings: its defaults, changed where an option was given.
    pub fn settings(&self) -> Settings {
        let mut settings = match self.quality {
            Quality::Fast => Settings::fast(),
            Quality::Normal => Settings::default(),
            Quality::Best => Settings::best(),
        };
        fn set<T: Clone>(setting: &mut T, option: &Option<T>) {
            if let Some(value) = option {
                *setting = value.clone();
            }
        }
        match self.strength {
            Some(Strength::Gentle) => (settings.floor_db, settings.floor_by_band) = (-12.0, false),
            Some(Strength::Strong) => (settings.floor_db, settings.floor_by_band) = (-40.0, false),
            Some(Strength::Normal) | None => {}
        }
        if let Some(floor) = self.floor_db {
            (settings.floor_db, settings.floor_by_band) = (floor, false);
        }
        set(&mut settings.sampler, &self.sampler);
        set(&mut settings.iterations, &self.iterations);
        set(&mut settings.warm_start, &self.warm_start);
        set(&mut settings.minibatch, &self.minibatch);
        set(&mut settings.alpha_noise, &self.alpha_noise);
        if let Some(rank) = self.noise_rank {
            settings.noise = NoiseModel::Spectra { rank };
        }
        set(&mut settings.seed, &self.seed);
        if let Some(iterations) = self.iterations {
            settings.burn_in = iterations / 2;
        }
        set(&mut settings.burn_in, &self.burn_in);
        settings.refine = self.refiner.is_none() || self.refiner_file().is_some();
        settings.step_size = self.step_size;
        settings.alpha_speech = self.alpha_speech;
        match self.positivity {
            Some(PositivityName::Log) => settings.positivity = Positivity::Log,
            Some(PositivityName::Mirrored) => settings.positivity = Positivity::Mirrored,
            None => {}
        }
        match self.impulses {
            Some(ImpulsesName::Integrated) => settings.impulses = ImpulseMode::Integrated,
            Some(ImpulsesName::Sampled) => settings.impulses = ImpulseMode::Sampled,
            None => {}
        }
        settings
    }

    /// The denoiser that the options describe.
    pub fn denoiser(&self) -> anyhow::Result<Denoiser> {
        let settings = self.settings();
        settings.validate()?;
        let denoiser = Denoiser::new(dictionary(self.model.as_deref())?, settings)?;
        let Some(path) = self.refiner_file() else { return Ok(denoiser) };
        Ok(denoiser.with_refiner(read(path, Refiner::from_bytes, Failure::Refiner)?))
    }
}

/// The dictionary of a file, or the one that is built in.
pub fn dictionary(path: Option<&Path>) -> anyhow::Result<Dictionary> {
    path.map_or_else(
        || Ok(Dictionary::shipped()?),
        |path| read(path, Dictionary::from_bytes, Failure::Dictionary),
    )
}

/// Reads a file whole; what is wrong with it is a failure of its kind.
fn read<T, E: std::error::Error + Send + Sync + 'static>(
    path: &Path,
    parse: fn(&[u8]) -> Result<T, E>,
    failure: fn(PathBuf) -> Failure,
) -> anyhow::Result<T> {
    let read = || -> anyhow::Result<T> { Ok(parse(&std::fs::read(path)?)?) };
    read().with_context(|| failure(path.to_owned()))
}
