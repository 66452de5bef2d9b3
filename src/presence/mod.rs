//! Speech-presence network: log odds of speech in each time-frequency bin.
//!
//! The factorisation distinguishes speech from noise by spectra and stationarity, which fails for transient or harmonic
//! noise. The network is trained on mixtures of speech with many kinds of real noise. Its input is the log power of a
//! whole block on [`BANDS`] bands, relative to the mean of the recording and to the quiet level of each band.
//!
//! The network separates speech from other sounds; the posterior models the fine structure of the spectrum, the channel
//! and steady noise. The noise estimate of the model starts from the network's log odds, and a logarithmic opinion pool
//! fuses the log odds of network and model.

mod bands;
mod causal;
mod file;
mod header;
mod high_band;
mod lost_passages;
mod near;
mod network;
mod pool;
mod recurrence;
mod sizes;
mod soft_passages;
#[cfg(test)]
mod tests;

pub(crate) use bands::FIRST_WIDE_BIN;
use bands::{Bands, Interpolation, edges, features};
pub(crate) use causal::{CausalNetwork, CausalPresenceNet};
pub use header::PresenceNetError;
use header::PresenceNetHeader;
pub(crate) use high_band::HighBandPresenceNet;
pub(crate) use near::{RecentPresence, frame_presence};
use network::{Kind, Network};
pub(crate) use pool::{PoolChange, PoolNet, trace_pool};
use sizes::BANDS;
use soft_passages::SoftPassages;

/// Reciprocal of the fraction of log odds above the certainty of a recording: 0.5 %.
const LIKELIEST: usize = 200;

/// Estimates the log odds of speech in each time-frequency bin of a recording.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PresenceNet {
    header: PresenceNetHeader,
    network: Network,
}

impl PresenceNet {
    /// The network embedded in this crate: `models/presence-16k.safetensors`.
    ///
    /// # Errors
    /// Only if the crate was built with a damaged file.
    pub(crate) fn built_in() -> Result<Self, PresenceNetError> {
        Self::from_bytes(include_bytes!("../../models/presence-16k.safetensors"))
    }

    /// The small network embedded in this crate, which takes about half the time:
    /// `models/presence-16k-small.safetensors`.
    ///
    /// # Errors
    /// Only if the crate was built with a damaged file.
    pub(crate) fn built_in_small() -> Result<Self, PresenceNetError> {
        Self::from_bytes(include_bytes!("../../models/presence-16k-small.safetensors"))
    }

    /// Reads a network from the bytes of its file.
    ///
    /// # Errors
    /// [`PresenceNetError`] if they are not a valid network.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, PresenceNetError> {
        let (header, network) = Network::read(bytes, &Kind::WHOLE)?;
        Ok(Self { header, network })
    }

    /// Parameters and training data.
    pub(crate) fn header(&self) -> &PresenceNetHeader {
        &self.header
    }

    /// Estimates the natural log odds of speech on bands, from `|X|^2` (bins x frames, in any unit) of frames 16 ms
    /// apart and bins 15.625 Hz apart. Soft and lost passages whose power varies by at least the factor `variation` are
    /// estimated twice; the higher log odds apply. A `variation` of 1 includes all of these passages.
    pub(crate) fn band_log_odds(&self, power: &[f32], bins: usize, variation: f64) -> BandLogOdds {
        let bands = Bands::new(power, bins, &edges(), None);
        let frames = power.len() / bins;
        let mut odds = Vec::new();
        if frames > 0 {
            odds = self.network.forward(&features(&bands, frames));
        }
        let passages = SoftPassages::new(power, bins, &bands.divide(&odds, soft_passages::BINS));
        let levelled = || Bands::new(&passages.levelled(power, bins), bins, &edges(), None);
        let input = || features(&levelled(), frames);
        passages.raise(variation, &mut odds, input, |input| self.network.forward(input));
        odds.truncate(BANDS * frames);
        BandLogOdds::new(bands, odds)
    }
}

/// Log odds of speech on bands.
pub(crate) struct BandLogOdds {
    /// Powers from which the log odds were estimated.
    bands: Bands,
    /// The log odds of speech, [`BANDS`] x frames.
    odds: Vec<f32>,
    /// Level exceeded by one in [`LIKELIEST`] of the log odds; `None` without bands.
    certainty: Option<f32>,
}

impl BandLogOdds {
    fn new(bands: Bands, odds: Vec<f32>) -> Self {
        let mut this = Self { bands, odds, certainty: None };
        let mut present = this.present_odds();
        if let Some(place) = (present.len() - present.len() / LIKELIEST).checked_sub(1) {
            this.certainty = Some(*present.select_nth_unstable_by(place, f32::total_cmp).1);
        }
        this
    }

    /// Returns the log odds of the bands of the recording, bands x frames.
    fn present_odds(&self) -> Vec<f32> {
        let present = self.bands.present;
        self.odds.chunks_exact(BANDS).flat_map(|frame| &frame[..present]).copied().collect()
    }

    /// Whether the network is certain of speech anywhere. Without bands it is, as there is nothing to correct.
    pub(crate) fn is_certain(&self) -> bool {
        self.certainty.is_none_or(|certainty| certainty >= pool::CERTAIN.1)
    }

    /// The log odds interpolated to `bins` bins: bins x frames.
    pub(crate) fn on_bins(&self, bins: usize) -> Vec<f32> {
        spread(&self.odds, &edges(), bins)
    }
}

/// Interpolates values on bands with these edges (bands x frames) to `bins` bins (bins x frames).
fn spread(values: &[f32], edges: &[usize], bins: usize) -> Vec<f32> {
    let bands = edges.len() - 1;
    let mut spread = Vec::with_capacity(values.len() / bands * bins);
    let interpolation = Interpolation::new(edges, bins);
    for values in values.chunks_exact(bands) {
        interpolation.extend(values, &mut spread);
    }
    spread
}
