//! Log odds of speech presence of a block.

use super::Networks;
use crate::presence::{BandLogOdds, frame_presence};

/// Added to the log odds of speech above the dictionary's band: a lost fricative is worse than residual noise of the same
/// level (tuned on development mixtures, eval/results/full-band.md).
const HIGH_BAND_BIAS: f32 = 0.5;

/// The log odds of speech, bins x frames.
pub(super) struct SpeechPresence {
    /// Log odds in the dictionary's band, on the network's bands.
    pub bands: BandLogOdds,
    /// Log odds in the dictionary's band.
    pub low: Vec<f32>,
    /// Log odds above the dictionary's band; `None` without bins there.
    pub high: Option<Vec<f32>>,
    /// Probability of speech near every frame.
    pub frames: Vec<f32>,
}

impl SpeechPresence {
    /// Evaluates the networks on the powers of `bins` bins in the dictionary's band and of those above (bins x frames each).
    /// Soft passages whose power varies by at least the factor `variation` are estimated twice.
    pub(super) fn new(
        networks: &Networks,
        variation: f64,
        bins: usize,
        power_low: &[f32],
        power_high: &[f32],
    ) -> Self {
        let bands = networks.presence.band_log_odds(power_low, bins, variation);
        let low = bands.on_bins(bins);
        let frames = frame_presence(&low, bins);
        let mut high = networks.high_band.log_odds(&bands, power_high);
        high.iter_mut().flatten().for_each(|odds| *odds += HIGH_BAND_BIAS);
        Self { bands, low, high, frames }
    }
}
