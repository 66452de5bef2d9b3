//! Settings of inference: expectation maximisation and Gibbs sampling.

use crate::range::{SettingsError, positive, within};
use crate::samplers::SamplerKind;
use serde::{Deserialize, Serialize};

/// The minimum number of sweeps of expectation maximisation where a recording has frequencies above those of the
/// dictionary: with 2, pauses keep up to 1 dB more there. These frequencies share the activations of the band below,
/// which therefore has the same minimum.
const HIGH_BAND_SWEEPS: usize = 12;
/// Maximum drift of a factor in one step, in units of itself.
pub(super) const DRIFT_LIMIT: f64 = 1.0;

/// Settings of expectation maximisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmSettings {
    /// Sweeps per block, 0 to 10,000; at least one without sampling. `None`: 8 with the speech-presence network, 18
    /// without it, or fewer with [`fast`](Self::fast). Where a recording has frequencies above those of the dictionary,
    /// the minimum is 12, and smaller numbers are raised to it.
    pub iterations: Option<usize>,
    /// Whether to use fewer sweeps: 2 with the speech-presence network, 12 without it. No effect if `iterations` is
    /// given.
    pub fast: bool,
    /// Exponent of the multiplicative updates, 0.01 to 1.
    pub update_exponent: f64,
}

impl Default for EmSettings {
    fn default() -> Self {
        Self { iterations: None, fast: false, update_exponent: 1.0 }
    }
}

impl EmSettings {
    /// Checks every range; `sampled`: whether Gibbs sweeps follow.
    pub(crate) fn validate(&self, sampled: bool) -> Result<(), SettingsError> {
        within("em.update_exponent", self.update_exponent, 0.01..=1.0)?;
        let Some(iterations) = self.iterations else { return Ok(()) };
        within("em.iterations", iterations, usize::from(!sampled)..=10_000)
    }

    /// Number of sweeps of a block. `has_net`: whether its denoiser has the speech-presence network; `has_high_band`:
    /// whether the recording has frequencies above those of the dictionary.
    pub(crate) fn sweeps(&self, has_net: bool, has_high_band: bool) -> usize {
        let sweeps = self.iterations.unwrap_or(match (self.fast, has_net) {
            // More sweeps gain nothing with the network.
            (false, true) => 8,
            (true, true) => 2,
            (false, false) => 18,
            // With 2 the model alone loses 0.4 dB of SI-SDR and follows changing noise less well.
            (true, false) => 12,
        });
        if has_high_band { sweeps.max(HIGH_BAND_SWEEPS) } else { sweeps }
    }
}

/// Settings of Gibbs sampling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingSettings {
    /// Gibbs sweeps per block, 1 to 1,000,000.
    pub iterations: usize,
    /// Sweeps left out of the average; fewer than `iterations`.
    pub burn_in: usize,
    /// Sampler of activations and noise spectra.
    pub sampler: SamplerKind,
    /// Step size; `None` for the sampler's default in the denoiser. [`SamplerKind::Newtonian`] has none.
    pub step_size: Option<f64>,
    /// Exponent of the decrease of the step size with the number of sweeps, 0 (constant) to 1. Samplers that accept or reject
    /// require 0.
    pub step_decay: f64,
    /// Fraction of the bins of each gradient, in (0, 1]. Samplers that accept or reject require 1.
    pub minibatch: f64,
    /// How factors are kept positive. [`SamplerKind::Newtonian`] samples on the half line, and requires [`Positivity::Log`].
    pub positivity: Positivity,
    /// Treatment of the impulse variables.
    pub impulses: ImpulseMode,
    /// Memory of [`SamplerKind::Hamcmc`]; without effect for other samplers.
    pub hamcmc: HamcmcMemory,
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
        }
    }
}

impl SamplingSettings {
    pub(crate) fn validate(&self) -> Result<(), SettingsError> {
        within("sampling.iterations", self.iterations, 1..=1_000_000)?;
        within("sampling.burn_in", self.burn_in, 0..=self.iterations - 1)?;
        if let Some(step) = self.step_size {
            positive("sampling.step_size", step, 1e6)?;
        }
        within("sampling.hamcmc.size", self.hamcmc.size, 2..=100)?;
        within("sampling.hamcmc.refresh_interval", self.hamcmc.refresh_interval, 1..=1_000_000)?;
        within("sampling.step_decay", self.step_decay, 0.0..=1.0)?;
        positive("sampling.minibatch", self.minibatch, 1.0)?;
        let sampler = self.sampler;
        let rejects = sampler.has_test();
        let refuse = |name, value: String, expected: &str| {
            Err(SettingsError { name, value, expected: format!("{expected} with the sampler {sampler}") })
        };
        if rejects && self.minibatch != 1.0 {
            return refuse("sampling.minibatch", self.minibatch.to_string(), "1");
        }
        if rejects && self.step_decay != 0.0 {
            return refuse("sampling.step_decay", self.step_decay.to_string(), "0");
        }
        if sampler == SamplerKind::Newtonian {
            if let Some(step) = self.step_size {
                return refuse("sampling.step_size", step.to_string(), "none");
            }
            if self.positivity != Positivity::Log {
                return refuse("sampling.positivity", "mirrored".to_owned(), "log");
            }
        }
        Ok(())
    }
}

/// How activations and noise spectra are kept positive while they are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Positivity {
    /// The sampler moves logarithms.
    #[default]
    Log,
    /// Draws are mirrored at zero, as in the paper (`hamcmc-2016`, section 4.2).
    Mirrored,
}

/// Treatment of the impulse variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImpulseMode {
    /// Integrated out by a table: exact, and faster than sampling.
    #[default]
    Integrated,
    /// Sampled by Metropolis steps with their prior as proposal, as in the paper.
    Sampled,
}

/// Memory of HAMCMC: number of chains, and refresh of their curvature pairs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HamcmcMemory {
    /// Memory size `M`, 2 to 100: the number of interleaved chains, each moved by the curvature pairs of the others.
    pub size: usize,
    /// Steps of a chain between refreshes of its curvature pair, at least 1; each refresh costs a second gradient.
    pub refresh_interval: u64,
}

impl Default for HamcmcMemory {
    fn default() -> Self {
        Self { size: 3, refresh_interval: 8 }
    }
}
