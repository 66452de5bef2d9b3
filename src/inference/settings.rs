//! What a user can set, with ranges.

use super::drift::Drift;
use crate::model::Prior;
use crate::samplers::SamplerKind;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;

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

/// What the noise is made of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseModel {
    /// One spectrum that drifts, times a level per frame.
    Drifting(Drift),
    /// Constant spectra with activations, as in the paper.
    Spectra {
        /// Number of spectra, 1 to 64.
        rank: usize,
    },
}

/// Settings of a [`Denoiser`](super::Denoiser).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Characteristic exponent of speech, in (0, 2]; `None` takes the dictionary's.
    pub alpha_speech: Option<f64>,
    /// Characteristic exponent of noise, in (0, 2].
    pub alpha_noise: f64,
    /// What the noise is made of.
    pub noise: NoiseModel,
    /// Exponent of the multiplicative updates of the warm start, in (0, 1].
    pub exponent: f64,
    /// Sweeps of expectation maximisation that every block starts with, 0 to 10,000.
    pub warm_start: usize,
    /// Gibbs sweeps after the warm start, 0 to 1,000,000. With none, the gain is that of the warm start,
    /// averaged over its last quarter.
    pub iterations: usize,
    /// How many of the Gibbs sweeps are left out of the average; fewer than `iterations`.
    pub burn_in: usize,
    /// The sampler of activations and noise spectra.
    pub sampler: SamplerKind,
    /// Its step size; `None` takes the default of the sampler in the denoiser.
    pub step_size: Option<f64>,
    /// The power by which the step size falls with the number of sweeps, 0 (not at all) to 1.
    pub step_decay: f64,
    /// The share of the bins that each of its gradients looks at, in (0, 1].
    pub minibatch: f64,
    /// How it keeps the factors positive.
    pub positivity: Positivity,
    /// Whether impulse variables are integrated out or drawn.
    pub impulses: ImpulseMode,
    /// Prior of the activations of speech.
    pub speech_prior: Prior,
    /// Whether the gain of the recording channel is learned, for every bin.
    pub channel: bool,
    /// Whether a small network corrects the gain ([`Refiner`](crate::refiner::Refiner)); not where the noise is made
    /// of constant spectra, nor with a dictionary of another window than 64 ms.
    pub refine: bool,
    /// Whether the gain of a frame is averaged with its neighbours', against musical noise in noisy bands.
    pub smooth_gain: bool,
    /// The least gain of any bin, dB, -100 to 0: what is left of the noise.
    pub floor_db: f64,
    /// Whether the least gain of a band follows its noise: there, what is left is to be 20 to 32 dB below the
    /// speech, and the least gain -60 to -17 dB.
    pub floor_by_band: bool,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            alpha_speech: None,
            alpha_noise: 1.9,
            noise: NoiseModel::Drifting(Drift { seconds: 0.8, hertz: 31.25 }),
            exponent: 1.0,
            warm_start: 18,
            iterations: 20,
            burn_in: 5,
            sampler: SamplerKind::Sgld,
            step_size: None,
            step_decay: 0.0,
            minibatch: 1.0,
            positivity: Positivity::default(),
            impulses: ImpulseMode::default(),
            speech_prior: Prior::Gamma { shape: 0.95, rate: 0.0 },
            channel: true,
            refine: true,
            smooth_gain: true,
            floor_db: -26.0,
            floor_by_band: true,
            seed: 0,
        }
    }
}

/// A setting out of its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name} is {value}; expected {expected}")]
pub struct SettingsError {
    /// Name of the setting.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The values that it may have.
    pub expected: String,
}

/// Characteristic exponents that the model accepts: below 0.2, draws exceed the range of `f32`.
pub const ALPHAS: RangeInclusive<f64> = 0.2..=2.0;

impl Settings {
    /// For those in a hurry: the expectation maximisation alone, cut short.
    #[must_use]
    pub fn fast() -> Self {
        Self { warm_start: 12, iterations: 0, burn_in: 0, ..Self::default() }
    }

    /// For those who have time: a longer average over the posterior.
    #[must_use]
    pub fn best() -> Self {
        Self { iterations: 100, burn_in: 10, ..Self::default() }
    }

    /// Checks every range.
    ///
    /// # Errors
    /// Names the first setting out of its range.
    pub fn validate(&self) -> Result<(), SettingsError> {
        if let Some(alpha) = self.alpha_speech {
            within("alpha of speech", alpha, ALPHAS)?;
        }
        within("alpha of noise", self.alpha_noise, ALPHAS)?;
        match self.noise {
            NoiseModel::Spectra { rank } => within("noise rank", rank, 1..=64)?,
            NoiseModel::Drifting(drift) => {
                within("seconds of drift", drift.seconds, 0.0..=1e6)?;
                within("hertz of drift", drift.hertz, 0.0..=1e5)?;
            }
        }
        within("exponent of updates", self.exponent, 0.01..=1.0)?;
        within("warm-start sweeps", self.warm_start, 0..=10_000)?;
        within("iterations", self.iterations, 0..=1_000_000)?;
        within("burn-in", self.burn_in, 0..=self.iterations.saturating_sub(1))?;
        within("iterations plus warm-start sweeps", self.iterations + self.warm_start, 1..=1_010_000)?;
        if let Some(step) = self.step_size {
            within("step size", step, f64::MIN_POSITIVE..=1e6)?;
        }
        within("decay of the step size", self.step_decay, 0.0..=1.0)?;
        within("minibatch share", self.minibatch, f64::MIN_POSITIVE..=1.0)?;
        within("gain floor in dB", self.floor_db, -100.0..=0.0)
    }
}

/// Checks that a value lies in its range; a NaN does not.
pub(super) fn within<T: PartialOrd + fmt::Display>(
    name: &'static str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), SettingsError> {
    if range.contains(&value) {
        return Ok(());
    }
    let expected = format!("{} to {}", range.start(), range.end());
    Err(SettingsError { name, value: value.to_string(), expected })
}
