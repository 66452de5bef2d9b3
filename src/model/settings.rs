//! Settings of the model.

use super::Prior;
use crate::range::{SettingsError, positive, within};
use crate::stable::ALPHA_RANGE;
use serde::{Deserialize, Serialize};

/// Factorisation of the noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseModel {
    /// One spectrum times a level per frame and a smooth field over time and frequency.
    Drifting(NoiseDrift),
    /// Fixed spectra with activations, as in the paper.
    FixedSpectra {
        /// Number of spectra, 1 to 64.
        rank: usize,
    },
}

/// Smoothness of drifting noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseDrift {
    /// Half the length of the smoothing window over time, s.
    pub seconds: f64,
    /// Half the length of the smoothing window over frequency, Hz.
    pub hertz: f64,
}

/// Settings of the model of speech and noise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// Characteristic exponent of speech, in [`ALPHA_RANGE`]; `None` uses the dictionary's exponent.
    pub alpha_speech: Option<f64>,
    /// Characteristic exponent of noise, in [`ALPHA_RANGE`].
    pub alpha_noise: f64,
    /// Factorisation of the noise.
    pub noise: NoiseModel,
    /// Whether the field of drifting noise starts from the log odds of a speech-presence network, if present. The noise
    /// estimate then follows non-stationary noise up to 8 kHz.
    pub nonstationary_noise: bool,
    /// Prior of the activations of speech.
    pub speech_prior: Prior,
    /// Prior of the activations and the fixed spectra of noise.
    pub noise_prior: Prior,
    /// Whether to estimate the channel response, a gain per bin.
    pub channel_response: bool,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            alpha_speech: None,
            alpha_noise: 1.9,
            noise: NoiseModel::Drifting(NoiseDrift { seconds: 0.8, hertz: 31.25 }),
            nonstationary_noise: true,
            speech_prior: Prior::Gamma { shape: 0.95, rate: 0.0 },
            noise_prior: Prior::Flat,
            channel_response: true,
        }
    }
}

/// Maximum of a prior's parameters; activations have a mean of about one.
const MAX_PRIOR_PARAMETER: f64 = 1e6;

impl ModelSettings {
    /// Checks every range.
    pub(crate) fn validate(&self) -> Result<(), SettingsError> {
        if let Some(alpha) = self.alpha_speech {
            within("model.alpha_speech", alpha, ALPHA_RANGE)?;
        }
        within("model.alpha_noise", self.alpha_noise, ALPHA_RANGE)?;
        match self.noise {
            NoiseModel::FixedSpectra { rank } => within("model.noise.rank", rank, 1..=64)?,
            NoiseModel::Drifting(drift) => {
                within("model.noise.seconds", drift.seconds, 0.0..=1e6)?;
                within("model.noise.hertz", drift.hertz, 0.0..=1e5)?;
            }
        }
        [self.speech_prior, self.noise_prior].iter().try_for_each(validate_prior)
    }
}

/// Checks the ranges of a prior's parameters.
pub(crate) fn validate_prior(prior: &Prior) -> Result<(), SettingsError> {
    match *prior {
        Prior::Flat => Ok(()),
        Prior::Gamma { shape, rate } => {
            positive("shape of the prior", shape, MAX_PRIOR_PARAMETER)?;
            within("rate of the prior", rate, 0.0..=MAX_PRIOR_PARAMETER)
        }
        Prior::GeneralisedGamma { shape, scale, power } => {
            positive("shape of the prior", shape, MAX_PRIOR_PARAMETER)?;
            positive("scale of the prior", scale, MAX_PRIOR_PARAMETER)?;
            // The published power, -2 / alpha, is at most 10 in magnitude.
            positive("size of the prior's power", power.abs(), 100.0)
        }
    }
}
