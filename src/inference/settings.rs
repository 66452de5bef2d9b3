//! Settings of the inference: expectation maximisation and Gibbs sampling.

use crate::range::{SettingsError, positive, within};
use crate::samplers::SamplerKind;
use serde::{Deserialize, Serialize};

/// The expectation maximisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmSettings {
    /// Sweeps over a block, 0 to 10,000; at least one where nothing is sampled.
    pub iterations: usize,
    /// Exponent of the multiplicative updates, 0.01 to 1.
    pub exponent: f64,
}

impl Default for EmSettings {
    fn default() -> Self {
        Self { iterations: 18, exponent: 1.0 }
    }
}

impl EmSettings {
    /// Checks every range; `sampled` if Gibbs sweeps follow.
    pub(crate) fn validate(&self, sampled: bool) -> Result<(), SettingsError> {
        within("exponent of updates", self.exponent, 0.01..=1.0)?;
        within("iterations of expectation maximisation", self.iterations, usize::from(!sampled)..=10_000)
    }
}

/// The Gibbs sampling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingSettings {
    /// Gibbs sweeps, 1 to 1,000,000.
    pub iterations: usize,
    /// How many of them are left out of the average; fewer than `iterations`.
    pub burn_in: usize,
    /// The sampler of activations and noise spectra.
    pub sampler: SamplerKind,
    /// Its step size; `None` takes its default in the denoiser. [`SamplerKind::Newtonian`] has none.
    pub step_size: Option<f64>,
    /// The power by which the step size falls with the number of sweeps, 0 (not at all) to 1. Only 0 for samplers
    /// that accept or reject.
    pub step_decay: f64,
    /// The share of the bins that each gradient looks at, in (0, 1]. Only 1 for samplers that accept or reject.
    pub minibatch: f64,
    /// How the factors are kept positive. [`SamplerKind::Newtonian`] knows the half line, and takes
    /// [`Positivity::Log`] alone.
    pub positivity: Positivity,
    /// Whether impulse variables are integrated out or drawn.
    pub impulses: ImpulseMode,
    /// What [`SamplerKind::Hamcmc`] remembers, where it is the sampler.
    pub hamcmc: HamcmcMemory,
    /// Where the sampling keeps to the letter of the paper.
    pub literal: LiteralSettings,
}

impl Default for SamplingSettings {
    fn default() -> Self {
        Self {
            iterations: 8,
            burn_in: 2,
            sampler: SamplerKind::Hamcmc,
            step_size: None,
            step_decay: 0.0,
            minibatch: 1.0,
            positivity: Positivity::default(),
            impulses: ImpulseMode::default(),
            hamcmc: HamcmcMemory::default(),
            literal: LiteralSettings::default(),
        }
    }
}

impl SamplingSettings {
    pub(crate) fn validate(&self) -> Result<(), SettingsError> {
        within("iterations of sampling", self.iterations, 1..=1_000_000)?;
        within("burn-in", self.burn_in, 0..=self.iterations - 1)?;
        if let Some(step) = self.step_size {
            positive("step size", step, 1e6)?;
        }
        within("memory", self.hamcmc.memory, 2..=100)?;
        within("renewal", self.hamcmc.renewal, 1..=1_000_000)?;
        within("decay of the step size", self.step_decay, 0.0..=1.0)?;
        positive("minibatch share", self.minibatch, 1.0)?;
        let sampler = self.sampler;
        let rejects = matches!(
            sampler,
            SamplerKind::Hmc
                | SamplerKind::MhBfgs
                | SamplerKind::HmcBfgs
                | SamplerKind::Qnhmc
                | SamplerKind::Nuts
                | SamplerKind::Newtonian
        );
        let refuse = |name, value: String, expected: &str| {
            Err(SettingsError { name, value, expected: format!("{expected} with the sampler {sampler}") })
        };
        if rejects && self.minibatch != 1.0 {
            return refuse("minibatch share", self.minibatch.to_string(), "1");
        }
        if rejects && self.step_decay != 0.0 {
            return refuse("decay of the step size", self.step_decay.to_string(), "0");
        }
        let LiteralSettings { one_unit, unlimited_drift, sampled_gain, hamcmc, .. } = &self.literal;
        if *one_unit && self.positivity != Positivity::Mirrored {
            return refuse("one unit", "on".to_owned(), "mirrored factors");
        }
        if *unlimited_drift && rejects {
            return refuse("unlimited drift", "on".to_owned(), "off");
        }
        if *sampled_gain && self.impulses != ImpulseMode::Sampled {
            return refuse("sampled gain", "on".to_owned(), "sampled impulses");
        }
        if *hamcmc != LiteralHamcmc::default() && sampler != SamplerKind::Hamcmc {
            return refuse("the letter of HAMCMC", "on".to_owned(), "off");
        }
        if let Some(gamma) = hamcmc.gamma {
            positive("gamma", gamma, 1e6)?;
        }
        if let Some(lambda) = hamcmc.lambda {
            within("lambda", lambda, 0.0..=1e9)?;
        }
        if sampler == SamplerKind::Newtonian {
            if let Some(step) = self.step_size {
                return refuse("step size", step.to_string(), "none");
            }
            if self.positivity != Positivity::Log {
                return refuse("positivity", "mirrored".to_owned(), "log");
            }
        }
        Ok(())
    }
}

/// How activations and noise spectra are kept positive while they are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Positivity {
    /// The sampler moves their logarithms.
    #[default]
    Log,
    /// Draws are mirrored at zero, as in the paper (`hamcmc-2016`, section 4.2).
    Mirrored,
}

/// How the impulse variables are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImpulseMode {
    /// Integrated out by a table: exact, and faster than drawing them.
    #[default]
    Integrated,
    /// Drawn by Metropolis steps with their prior as proposal, as in the paper.
    Sampled,
}

/// The curvature that HAMCMC goes by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HamcmcMemory {
    /// The memory `M`, 2 to 100: so many chains take turns, each moved by the curvature that the others have met.
    pub memory: usize,
    /// Every chain measures it anew at every so many of its steps, at least 1, each time at the price of a second
    /// gradient.
    pub renewal: u64,
}

impl Default for HamcmcMemory {
    fn default() -> Self {
        Self { memory: 3, renewal: 8 }
    }
}

/// The letter of `hamcmc-2016`, section 4.2, where [`Settings::published`] departs from it because it does better: each
/// for itself, to be measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LiteralSettings {
    /// Whether all factors start from draws of their priors, which must be [`Prior::GeneralisedGamma`], in place of the
    /// levels of the recording.
    pub prior_start: bool,
    /// Whether mirrored unknowns are measured as they are, in place of the level of their frame or bin at the start.
    pub one_unit: bool,
    /// Whether the drift may move an unknown by any length, in place of one unit at most.
    pub unlimited_drift: bool,
    /// Whether the gain is that at the impulse variables as they were drawn, in place of its mean over them.
    pub sampled_gain: bool,
    /// Whether a minibatch is of single entries of the spectrogram, in place of bins in all frames that are worked on
    /// together, and of whole frames for the noise spectra. It saves no time: all entries are computed, and all impulse
    /// variables move.
    pub single_entries: bool,
    /// HAMCMC itself, where it is the sampler.
    pub hamcmc: LiteralHamcmc,
}

/// The letter of algorithm 1 of `hamcmc-2016`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LiteralHamcmc {
    /// Whether the activations of all frames have one memory, and all noise spectra another, in place of one for every
    /// frame and every bin.
    pub one_memory: bool,
    /// The scale `gamma` that the recursion starts from, above 0; `None` takes it from the pairs.
    pub gamma: Option<f64>,
    /// The trust region `lambda`, from 0; `None` takes 1.
    pub lambda: Option<f64>,
    /// Whether every pair counts that `lambda` makes positive, in place of those that are positive without.
    pub shifted_pairs: bool,
}
