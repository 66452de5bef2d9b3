//! A network that hears where the voice is, from the recording's own spectrum.
//!
//! The model tells a voice from noise by what their spectra are made of and by how steady they are; a dog, a siren or
//! a keyboard is neither. The listener has learned from mixtures of voices with real noises of many kinds. It sees
//! logarithms of power on [`BANDS`] bands, relative to the recording's mean and to the quiet of each band, up to 3 s
//! to either side, and returns the logarithm of the odds that what is in a bin is the voice's.
//!
//! It and the posterior know different things: the posterior has the fine structure of the spectrum, the channel and
//! what is steady, the listener what a voice does and other sounds do not. The noise of the model starts where the listener
//! hears it, and a logarithmic opinion pool joins the two.

mod bands;
mod causal;
mod file;
mod high_band;
mod network;
#[cfg(test)]
mod tests;

pub use bands::BANDS;
pub use file::{PresenceNetError, PresenceNetHeader};
pub use high_band::{HighBandPresenceNet, HighBandPresenceNetHeader};

use crate::kernels::vector;
use bands::{Bands, Interpolation, edges, features};
pub(crate) use causal::CausalPresenceNet;
use network::Network;

/// A voice that is anywhere near is heard in some bins: how far, frames, ...
const NEAR_FRAMES: usize = 16;
/// ... in how many bins, as peaks of noise are in fewer, ...
const HEARD_BINS: usize = 8;
/// ... and with at least such log odds, below which the model's word for a voice counts for less and less, by this slope.
/// In four minutes of white noise there are none above -2.9, and in all but a hundredth of the frames of voices above 0.7.
const MIN_LOG_ODDS: f32 = -1.0;
const SLOPE: f32 = 4.0;

/// Tells the odds of speech in every bin of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct PresenceNet {
    header: PresenceNetHeader,
    network: Network,
}

impl PresenceNet {
    /// The listener that comes with this crate: `models/listener-16k.safetensors`.
    ///
    /// # Errors
    /// Never, unless the crate was built with a damaged file.
    pub fn built_in() -> Result<Self, PresenceNetError> {
        Self::from_bytes(include_bytes!("../../models/listener-16k.safetensors"))
    }

    /// The listener for sound as it comes that comes with this crate: `models/listener-live-16k.safetensors`.
    ///
    /// # Errors
    /// Never, unless the crate was built with a damaged file.
    pub fn built_in_causal() -> Result<Self, PresenceNetError> {
        Self::from_bytes(include_bytes!("../../models/listener-live-16k.safetensors"))
    }

    /// What it was made for and from.
    #[must_use]
    pub fn header(&self) -> &PresenceNetHeader {
        &self.header
    }

    /// The natural logarithm of the odds of speech (bins x frames), given `|X|^2` (bins x frames, in any unit) of
    /// frames that are 16 ms apart and bins that are 15.625 Hz apart. Bins above 8 kHz are given the odds of the
    /// highest band.
    #[must_use]
    pub fn log_odds(&self, power: &[f32], bins: usize) -> Vec<f32> {
        self.band_log_odds(power, bins).on_bins(bins)
    }

    /// The same on bands.
    pub(crate) fn band_log_odds(&self, power: &[f32], bins: usize) -> BandLogOdds {
        let bands = Bands::new(power, bins, &edges(), None);
        let frames = power.len() / bins;
        let mut odds = if frames == 0 { Vec::new() } else { self.network.forward(&features(&bands, frames)) };
        odds.truncate(BANDS * frames);
        BandLogOdds { bands, odds }
    }
}

/// What was heard of a recording, on bands.
pub(crate) struct BandLogOdds {
    /// The powers that it was heard by.
    bands: Bands,
    /// The log odds of speech, [`BANDS`] x frames.
    odds: Vec<f32>,
}

impl BandLogOdds {
    /// The log odds in so many bins: bins x frames.
    pub(crate) fn on_bins(&self, bins: usize) -> Vec<f32> {
        spread(&self.odds, &edges(), bins)
    }
}

/// Values on bands, which begin and end at `edges`, for some bins: bands x frames to bins x frames.
fn spread(values: &[f32], edges: &[usize], bins: usize) -> Vec<f32> {
    let bands = edges.len() - 1;
    let mut spread = Vec::with_capacity(values.len() / bands * bins);
    let interpolation = Interpolation::new(edges, bins);
    for values in values.chunks_exact(bands) {
        interpolation.extend(values, &mut spread);
    }
    spread
}

/// The probability of a voice near every frame, by the bins in which it is heard best.
pub(crate) fn frame_presence(log_odds: &[f32], bins: usize) -> Vec<f32> {
    let mut sorted = vec![0.0; bins];
    let heard = |frame: &[f32]| {
        sorted.copy_from_slice(frame);
        let place = HEARD_BINS.min(bins) - 1;
        *sorted.select_nth_unstable_by(place, |a, b| b.total_cmp(a)).1
    };
    let heard: Vec<f32> = log_odds.chunks_exact(bins).map(heard).collect();
    (0..heard.len())
        .map(|t| {
            let near = &heard[t.saturating_sub(NEAR_FRAMES)..(t + NEAR_FRAMES + 1).min(heard.len())];
            vector::logistic(SLOPE * (near.iter().copied().fold(f32::NEG_INFINITY, f32::max) - MIN_LOG_ODDS))
        })
        .collect()
}
