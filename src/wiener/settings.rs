//! Settings of the gain that is applied.

use crate::range::{SettingsError, within};
use serde::{Deserialize, Serialize};

/// From the posterior mean of the gain to the gain that is applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GainSettings {
    /// Whether the gain is pooled_gain with what the [`PresenceNet`](crate::presence::PresenceNet) says, where the windows are
    /// those that it has learned with and the noise is not made of constant spectra.
    pub speech_presence: bool,
    /// Whether the gain of a frame is averaged with its neighbours', against musical noise in noisy bands.
    pub smooth: bool,
    /// The least gain of any bin, dB, -100 to 0: what is left of the noise.
    pub floor_db: f64,
    /// Whether, where nothing listens, the least gain of a band is about -26 dB and follows its noise in place of
    /// `floor_db`: what is left is to be 20 to 32 dB below the speech there, and the least gain -40 to -17 dB.
    pub band_floors: bool,
    /// The share of what rings on of the voice in a room that counts as noise, 0 to 1.
    pub dereverb: f64,
}

impl Default for GainSettings {
    fn default() -> Self {
        Self {
            speech_presence: true,
            smooth: true,
            floor_db: NORMAL_FLOOR_DB,
            band_floors: true,
            dereverb: 0.0,
        }
    }
}

impl GainSettings {
    /// The gain of the model alone: what it says is neither refined, nor pooled_gain, nor smoothed.
    #[must_use]
    pub fn model_only() -> Self {
        Self { speech_presence: false, smooth: false, ..Self::default() }
    }

    /// Checks every range.
    pub(crate) fn validate(&self) -> Result<(), SettingsError> {
        within("dereverb", self.dereverb, 0.0..=1.0)?;
        within("gain floor in dB", self.floor_db, -100.0..=0.0)
    }

    /// The same, with as much of the noise taken out as `strength` says.
    #[must_use]
    pub fn with_strength(self, strength: Strength) -> Self {
        let (floor_db, band_floors) = match strength {
            Strength::Gentle => (-12.0, false),
            Strength::Normal => (NORMAL_FLOOR_DB, true),
            Strength::Strong => (-70.0, false),
        };
        Self { floor_db, band_floors, ..self }
    }
}

/// How much of the noise is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// 12 dB at most.
    Gentle,
    /// 45 dB at most; where nothing listens, about 26 dB, more where it is louder than speech and less where it is
    /// hardly heard.
    #[default]
    Normal,
    /// 70 dB at most.
    Strong,
}

/// The least gain by default, dB. On mixtures for development, the ratings of listeners that DNSMOS predicts rise from
/// 2.65 at -26 dB by band over 2.74 at -40 to 2.77 at -60; PESQ at 8 kHz is best at -40.
pub(crate) const NORMAL_FLOOR_DB: f64 = -45.0;
