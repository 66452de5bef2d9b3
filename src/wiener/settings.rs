//! Settings of the Wiener filter.

use crate::range::{SettingsError, within};
use serde::{Deserialize, Serialize};

/// Settings of the Wiener filter, which computes the applied gain from the posterior-mean gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GainSettings {
    /// Whether the gain is fused with the log odds of the speech-presence network. Without effect if the dictionary's
    /// window differs from the network's, or if the noise has fixed spectra.
    pub speech_presence: bool,
    /// Whether to use the small network, which takes about half the time. It estimates a soft passage twice only if the
    /// power of the passage varies by 10 dB or more. A recording of less than 0.6 s in which it detects no speech is
    /// passed to the other network. Without effect without the network, and in live denoising.
    pub small_network: bool,
    /// Whether learned weights change the fusion, by band and pair of frames, in blocks where the network is uncertain
    /// of speech. Cries, shouts and whispers are lost less often. Without effect without the network, with a stationary
    /// noise estimate, and in live denoising.
    pub learned_pool: bool,
    /// Whether the gain is smoothed over frames in noisy bands, against musical noise.
    pub smooth: bool,
    /// Minimum gain of a bin, dB, -100 to 0. Above -45 dB, it limits the attenuation of an array as a whole; lower
    /// values limit that of its second pass, after a linear filter that also removes noise. An earlier stage attenuates
    /// hum by this amount.
    pub floor_db: f64,
    /// Whether, without the network, the minimum gain adapts to the noise of each band in place of `floor_db`: residual noise
    /// is 20 to 32 dB below the speech of its band, the minimum gain -40 to -17 dB, typically -26 dB.
    pub band_floors: bool,
    /// Late-reverberation suppression, 0 (off) to 1 (full).
    pub dereverb: f64,
    /// Whether the gain fades to 1 in blocks with an estimated signal-to-noise ratio of more than 12 dB; above 20 dB
    /// the input is unchanged. For speech recognisers. Without effect on the channels of an array, and in live
    /// denoising.
    pub spare: bool,
}

impl Default for GainSettings {
    fn default() -> Self {
        Self {
            speech_presence: true,
            small_network: false,
            learned_pool: true,
            smooth: true,
            floor_db: NORMAL_FLOOR_DB,
            band_floors: true,
            dereverb: 0.0,
            spare: false,
        }
    }
}

impl GainSettings {
    /// The posterior-mean gain alone: without network and smoothing.
    #[must_use]
    pub fn model_only() -> Self {
        Self { speech_presence: false, smooth: false, ..Self::default() }
    }

    /// Checks every range.
    pub(crate) fn validate(&self) -> Result<(), SettingsError> {
        within("gain.dereverb", self.dereverb, 0.0..=1.0)?;
        within("gain.floor_db", self.floor_db, -100.0..=0.0)
    }

    /// These settings with the floor of `strength`.
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

/// Amount of noise reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// At most 12 dB.
    Gentle,
    /// At most 45 dB; without the network about 26 dB, adapted to the noise of each band.
    #[default]
    Normal,
    /// At most 70 dB.
    Strong,
}

/// Default minimum gain, dB; tuned on development mixtures (eval/results).
pub(crate) const NORMAL_FLOOR_DB: f64 = -45.0;
