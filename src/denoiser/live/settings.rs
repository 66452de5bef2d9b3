//! Settings and controls of live denoisers.

use crate::fields;
use crate::range::{SettingsError, within};
use crate::wiener::NORMAL_FLOOR_DB;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Range of the latency of a [`LiveDenoiser`](super::LiveDenoiser), s.
pub const LATENCY_RANGE_SECONDS: RangeInclusive<f64> = 0.004..=0.064;
/// Latency of a [`LiveDenoiser`](super::LiveDenoiser) unless another is set, ms.
pub const DEFAULT_LATENCY_MS: f64 = 16.0;

/// Settings of a [`LiveDenoiser`](super::LiveDenoiser).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LiveSettings {
    /// Latency from input to output, s, in [`LATENCY_RANGE_SECONDS`] and at most a window of the dictionary. A shorter one
    /// costs more computation and quality.
    pub latency_seconds: f64,
    /// Initial controls.
    pub controls: LiveControls,
}

impl Default for LiveSettings {
    fn default() -> Self {
        Self { latency_seconds: DEFAULT_LATENCY_MS / 1000.0, controls: LiveControls::default() }
    }
}

impl LiveSettings {
    /// Settings with a latency in ms, the unit of user interfaces.
    ///
    /// # Errors
    /// If the latency is not in [`LATENCY_RANGE_SECONDS`].
    pub fn with_latency_ms(latency: f64, controls: LiveControls) -> Result<Self, SettingsError> {
        let (least, most) = LATENCY_RANGE_SECONDS.into_inner();
        within("latency", latency, 1000.0 * least..=1000.0 * most)?;
        Ok(Self { latency_seconds: latency / 1000.0, controls })
    }
}

/// Controls that may change while a [`LiveDenoiser`](super::LiveDenoiser) runs. Their effect on the output is smoothed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LiveControls {
    /// Exponent applied to the gain, 0 to 2; 0 passes the input unchanged, 2 doubles the attenuation in dB.
    pub gain_exponent: f32,
    /// Minimum gain, dB, -100 to 0.
    pub floor_db: f32,
    /// Fraction of the denoised signal in the output, 0 to 1; the rest is the input with the same latency.
    pub mix: f32,
    /// Whether to pass the input unchanged, with the same latency.
    pub bypass: bool,
    /// Minimum probability of detected speech, 0 to 1; see [`VoiceActivity`](crate::denoiser::VoiceActivity). The audio
    /// output does not depend on it.
    pub voice_threshold: f32,
    /// Hang-over: time for which the probability is below the threshold before speech ends, s, 0 to 10.
    pub voice_hang_over_seconds: f32,
}

impl Default for LiveControls {
    fn default() -> Self {
        Self {
            gain_exponent: 1.0,
            floor_db: NORMAL_FLOOR_DB as f32,
            mix: 1.0,
            bypass: false,
            voice_threshold: 0.5,
            voice_hang_over_seconds: 0.3,
        }
    }
}

impl LiveControls {
    /// The lowest controls.
    pub const LOWEST: Self = Self {
        gain_exponent: 0.0,
        floor_db: -100.0,
        mix: 0.0,
        bypass: false,
        voice_threshold: 0.0,
        voice_hang_over_seconds: 0.0,
    };

    /// The highest controls.
    pub const HIGHEST: Self = Self {
        gain_exponent: 2.0,
        floor_db: 0.0,
        mix: 1.0,
        bypass: true,
        voice_threshold: 1.0,
        voice_hang_over_seconds: 10.0,
    };

    /// The nearest controls in range; NaN becomes the default.
    #[must_use]
    pub fn clamped(self) -> Self {
        let near = |of: fn(&Self) -> f32| {
            let value = of(&self);
            if value.is_nan() {
                of(&Self::default())
            } else {
                value.clamp(of(&Self::LOWEST), of(&Self::HIGHEST))
            }
        };
        Self {
            gain_exponent: near(|all| all.gain_exponent),
            floor_db: near(|all| all.floor_db),
            mix: near(|all| all.mix),
            bypass: self.bypass,
            voice_threshold: near(|all| all.voice_threshold),
            voice_hang_over_seconds: near(|all| all.voice_hang_over_seconds),
        }
    }

    /// Returns these controls with those of a JSON object replaced, as in `{"mix": 0.5}`. It checks names and types;
    /// ranges are checked, or values clamped, where the controls are used.
    ///
    /// # Errors
    /// If a control has an unknown name or a wrong type.
    pub fn with_json(&self, json: &str) -> Result<Self, SettingsError> {
        fields::with_json(self, "control", &[], json)
    }

    pub(super) fn validate(&self) -> Result<(), SettingsError> {
        let check =
            |name, of: fn(&Self) -> f32| within(name, of(self), of(&Self::LOWEST)..=of(&Self::HIGHEST));
        check("gain_exponent", |all| all.gain_exponent)?;
        check("floor_db", |all| all.floor_db)?;
        check("mix", |all| all.mix)?;
        check("voice_threshold", |all| all.voice_threshold)?;
        check("voice_hang_over_seconds", |all| all.voice_hang_over_seconds)
    }
}
