//! Options of the model and its inference.

use super::terminal::{Failure, read_bounded, usage};
use alphamf::denoiser::{
    self, Denoiser, ImpulseMode, Options, Positivity, SamplingSettings, Settings, Strength,
};
use alphamf::model::Dictionary;
use alphamf::samplers::SamplerKind;
use anyhow::Context;
use clap::ValueEnum;
use clap::builder::StyledStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The longest file of a model: a thousand spectra of 96,001 bins.
const MAX_BYTES: u64 = 400 << 20;

/// All that a published method fixes; it leaves the dictionary and the seed.
const FIXED_BY_METHOD: [&str; 16] = [
    "no_neural",
    "quality",
    "strength",
    "floor_db",
    "dereverb",
    "sampler",
    "iterations",
    "burn_in",
    "em_iterations",
    "step_size",
    "minibatch",
    "positivity",
    "impulses",
    "alpha_speech",
    "alpha_noise",
    "noise_rank",
];

/// Options of the model and its inference, shared by all commands that denoise.
#[derive(Debug, Clone, clap::Args)]
pub struct Model {
    /// A dictionary made by `denoise train`, in place of the built-in one.
    #[arg(id = "model", long = "model", value_name = "FILE")]
    dictionary: Option<PathBuf>,

    /// Do not ask the network that has learned from real noise where the voice is: the posterior-mean gain alone, of noise
    /// that moves slowly.
    #[arg(long)]
    no_neural: bool,

    /// A method as it was published, in place of the options that it fixes: all but dictionary and seed. It takes alpha
    /// of speech for 1.2, but the built-in dictionary was learned with 0.8: best with a --model that was learned by
    /// `denoise train --alpha 1.2`.
    #[arg(long, value_name = "NAME", conflicts_with_all = FIXED_BY_METHOD)]
    method: Option<Method>,

    /// How much time to spend: fast takes half of it.
    #[arg(long, value_name = "HOW", default_value = "normal")]
    quality: Quality,

    /// How much of the noise to take out: at most 12 dB (gentle), 45 dB (normal; with --no-neural about 26 dB, more
    /// where it is louder than speech and less where it is hardly heard) or 70 dB (strong).
    #[arg(long, value_name = "HOW", conflicts_with = "floor_db")]
    strength: Option<StrengthName>,

    /// The least gain of any part of the spectrum, dB, -100 to 0: how much of the noise stays.
    #[arg(long, value_name = "DB", allow_negative_numbers = true)]
    floor_db: Option<f64>,

    /// Takes out what rings on of the voice in a room, too: 0 (none of it) to 1 (all that is told from the voice); 0.5 is
    /// a good start.
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    dereverb: Option<f64>,

    /// Sampler of activations and noise spectra.
    #[arg(long, help_heading = "Model", value_name = "NAME", help = sampler_help())]
    sampler: Option<SamplerKind>,

    /// Gibbs sweeps after the warm start.
    #[arg(long, help_heading = "Model", value_name = "N", allow_negative_numbers = true)]
    #[arg(help = of_quality("Gibbs sweeps after the warm start, 0 (nothing is drawn) to 1,000,000", |settings| settings.sampling.as_ref().map_or(0, |sampling| sampling.iterations)))]
    iterations: Option<usize>,

    /// Gibbs sweeps that are left out of the average.
    #[arg(long, help_heading = "Model", value_name = "N", allow_negative_numbers = true)]
    #[arg(help = of_quality(
        "Gibbs sweeps that are left out of the average, fewer than --iterations; half of those if only they are given",
        |settings| settings.sampling.as_ref().map_or(0, |sampling| sampling.burn_in),
    ))]
    burn_in: Option<usize>,

    /// Sweeps of expectation maximisation to start from.
    #[arg(long, help_heading = "Model", value_name = "N", allow_negative_numbers = true)]
    #[arg(help = of_quality(
        "Sweeps of expectation maximisation to start from, 0 to 10,000",
        |settings| settings.em.iterations,
    ))]
    em_iterations: Option<usize>,

    /// Step size of the sampler, above 0 [default: its own]; nmc has none. Needs sweeps.
    #[arg(long, help_heading = "Model", value_name = "STEP", allow_negative_numbers = true)]
    step_size: Option<f64>,

    /// Share of the bins that each gradient of the sampler looks at, up to 1 [default: 1]; only 1 for samplers that
    /// accept or reject: hmc, mh-bfgs, hmc-bfgs, qnhmc, nmc. Needs sweeps.
    #[arg(long, help_heading = "Model", value_name = "SHARE", allow_negative_numbers = true)]
    minibatch: Option<f64>,

    /// How the sampler keeps factors positive: it moves logarithms, or mirrors at zero as in the paper
    /// [default: log]; nmc knows the half line and takes log alone. Needs sweeps.
    #[arg(long, help_heading = "Model", value_name = "HOW")]
    positivity: Option<PositivityName>,

    /// Whether impulse variables are integrated out, or sampled as in the paper [default: integrated]. Needs sweeps.
    #[arg(long, help_heading = "Model", value_name = "HOW")]
    impulses: Option<ImpulsesName>,

    /// Characteristic exponent of speech, 0.2 to 2; the dictionary's if not given, as its spectra are learned with it.
    #[arg(long, help_heading = "Model", value_name = "ALPHA", allow_negative_numbers = true)]
    alpha_speech: Option<f64>,

    /// Characteristic exponent of noise, 0.2 to 2.
    #[arg(long, help_heading = "Model", value_name = "ALPHA", allow_negative_numbers = true)]
    #[arg(help = with_default("Characteristic exponent of noise, 0.2 to 2", Settings::default().model.alpha_noise))]
    alpha_noise: Option<f64>,

    /// Makes the noise of so many constant spectra, 1 to 64, in place of one that drifts; the network is then not
    /// used.
    #[arg(long, help_heading = "Model", value_name = "N", allow_negative_numbers = true)]
    noise_rank: Option<usize>,

    /// Seed of all random numbers: the same seed gives the same file. Nothing is drawn with --quality fast, where all
    /// seeds give one file.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = parse_seed)]
    seed: Option<u64>,
}

/// A seed; what is none is told the range.
pub fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

fn with_default(what: &str, default: impl Display) -> StyledStr {
    format!("{what} [default: {default}]").into()
}

/// The help of a setting that goes with the quality.
fn of_quality(what: &str, value: fn(&Settings) -> usize) -> StyledStr {
    let [normal, fast] = [Settings::default(), Settings::fast()].map(|all| value(&all));
    with_default(what, format!("{normal}; fast: {fast}"))
}

fn sampler_help() -> StyledStr {
    let names = SamplerKind::ALL.map(SamplerKind::name).join(", ");
    with_default(
        &format!(
            "Sampler of activations and noise spectra: {names}. Needs sweeps: not with --iterations 0, and with \
             --quality fast only with --iterations N"
        ),
        SamplingSettings::default().sampler,
    )
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum PositivityName {
    Log,
    Mirrored,
}

impl From<PositivityName> for Positivity {
    fn from(name: PositivityName) -> Self {
        match name {
            PositivityName::Log => Self::Log,
            PositivityName::Mirrored => Self::Mirrored,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Method {
    /// Metropolis within Gibbs sweeps and HAMCMC: Simsekli et al. (2016), section 4.2; 2500 sweeps, slow.
    Published,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Quality {
    Fast,
    Normal,
}

impl From<Quality> for denoiser::Quality {
    fn from(quality: Quality) -> Self {
        match quality {
            Quality::Fast => Self::Fast,
            Quality::Normal => Self::Normal,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StrengthName {
    Gentle,
    Normal,
    Strong,
}

impl From<StrengthName> for Strength {
    fn from(name: StrengthName) -> Self {
        match name {
            StrengthName::Gentle => Self::Gentle,
            StrengthName::Normal => Self::Normal,
            StrengthName::Strong => Self::Strong,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ImpulsesName {
    Integrated,
    Sampled,
}

impl From<ImpulsesName> for ImpulseMode {
    fn from(name: ImpulsesName) -> Self {
        match name {
            ImpulsesName::Integrated => Self::Integrated,
            ImpulsesName::Sampled => Self::Sampled,
        }
    }
}

impl Model {
    /// The files that take the place of what is built in.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.dictionary_file().into_iter()
    }

    /// The dictionary that takes the place of the one that is built in.
    pub fn dictionary_file(&self) -> Option<&Path> {
        self.dictionary.as_deref()
    }

    /// The library's settings: its defaults, changed where an option was given; what would have no effect is
    /// refused.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let published = self.method.is_some();
        let options = Options {
            method: self.method.map(|Method::Published| denoiser::Method::Published),
            // Its default has been filled in, which a method refuses.
            quality: (!published).then_some(self.quality.into()),
            strength: self.strength.map(Strength::from),
            floor_db: self.floor_db,
            dereverb: self.dereverb,
            sampler: self.sampler,
            iterations: self.iterations,
            burn_in: self.burn_in,
            em_iterations: self.em_iterations,
            step_size: self.step_size,
            minibatch: self.minibatch,
            positivity: self.positivity.map(Positivity::from),
            impulses: self.impulses.map(ImpulseMode::from),
            alpha_speech: self.alpha_speech,
            alpha_noise: self.alpha_noise,
            noise_rank: self.noise_rank,
            no_neural: self.no_neural,
            seed: self.seed,
            ..Options::default()
        };
        options.settings().map_err(|error| match FIXED_BY_METHOD.contains(&error.name) {
            // An option, by the name that it was given by.
            true => usage(format!("--{}", error.to_string().replacen('_', "-", 1))),
            false => error.into(),
        })
    }

    /// The denoiser that the options describe.
    pub fn denoiser(&self) -> anyhow::Result<Denoiser> {
        let denoiser = Denoiser::new(dictionary(self.dictionary.as_deref())?, self.settings()?)?;
        let learned = denoiser.dictionary().header().alpha;
        if let (Some(Method::Published), Some(alpha)) = (self.method, denoiser.settings().model.alpha_speech)
            && alpha != learned
        {
            tracing::warn!(
                "the dictionary was learned with alpha {learned}, and the method takes alpha of speech for {alpha}: \
                 `denoise train --alpha {alpha}` makes one that fits"
            );
        }
        Ok(denoiser)
    }
}

/// The dictionary of a file, or the one that is built in.
pub fn dictionary(path: Option<&Path>) -> anyhow::Result<Dictionary> {
    path.map_or_else(
        || Ok(Dictionary::built_in()?),
        |path| read(path, Dictionary::from_bytes, Failure::Dictionary),
    )
}

/// Reads a file whole; what is wrong with it is a failure of its kind.
fn read<T, E: std::error::Error + Send + Sync + 'static>(
    path: &Path,
    parse: fn(&[u8]) -> Result<T, E>,
    failure: fn(PathBuf) -> Failure,
) -> anyhow::Result<T> {
    let read = || -> anyhow::Result<T> { Ok(parse(&read_bounded(path, MAX_BYTES)?)?) };
    read().with_context(|| failure(path.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args;

    /// Options that are added later are not forgotten.
    #[test]
    fn a_method_excludes_all_that_it_fixes() {
        let mut command = Model::augment_args(clap::Command::new("denoise"));
        command.build();
        let ids = |arguments: Vec<&clap::Arg>| -> Vec<String> {
            let mut ids: Vec<_> = arguments.iter().map(|argument| argument.get_id().to_string()).collect();
            ids.sort();
            ids
        };
        let method = command.get_arguments().find(|argument| argument.get_id() == "method").unwrap();
        let free = ["method", "model", "seed", "help"];
        let others = command.get_arguments().filter(|argument| !free.contains(&argument.get_id().as_str()));
        assert_eq!(ids(command.get_arg_conflicts_with(method)), ids(others.collect()));
    }
}
