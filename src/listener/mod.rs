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
mod file;
mod live;
mod network;
#[cfg(test)]
mod tests;
mod upper;

pub use bands::BANDS;
pub use file::{ListenerError, ListenerHeader};
pub use upper::{UpperListener, UpperListenerHeader};

use crate::kernels::vector;
use bands::{Bands, Interpolation, edges, features};
pub(crate) use live::LiveListener;
use network::Network;

/// How much the listener counts in a pool, 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weight {
    /// Where the posterior has more of a voice than the listener, ...
    more: f32,
    /// ... and where it has less.
    less: f32,
}

/// On 30 mixtures of voices and noises that it has not learned from, half of them at 8 kHz, 0.8, 0.9 and 1 give 13.10, 13.19
/// and 13.22 dB of SI-SDR; steady noise wants less of it, and the model is what knows how sure all of it is.
pub(crate) const WEIGHT: Weight = Weight { more: 0.9, less: 0.9 };
/// The same where the noise of the model starts from what the listener hears, and so moves as it does. It starts low: what the
/// model takes for a voice may still be noise, and by the model's word alone it would be heard in pauses; what it takes for
/// noise is between a voice's harmonics, which the listener's bands do not tell apart.
pub(crate) const MOVING_WEIGHT: Weight = Weight { more: 0.95, less: 0.75 };

/// Gains of the pool are raised to this power. On 30 mixtures, with 1.15 DNSMOS predicts a rating of 2.71 in place of 2.66, SDR
/// gains 0.07 dB, and SI-SDR and PESQ lose 0.025 dB and 0.01; with 1.3, 0.09 dB and 0.04.
const STRESS: f32 = 1.1;

/// A voice that is anywhere near is heard in some bins: how far, frames, ...
const NEAR_FRAMES: usize = 16;
/// ... in how many bins, as peaks of noise are in fewer, ...
const HEARD_BINS: usize = 8;
/// ... and with at least such log odds, below which the model's word for a voice counts for less and less, by this slope.
/// In four minutes of white noise there are none above -2.9, and in all but a hundredth of the frames of voices above 0.7.
const FAINTEST: f32 = -1.0;
const SLOPE: f32 = 4.0;

/// Tells the odds of speech in every bin of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Listener {
    header: ListenerHeader,
    network: Network,
}

impl Listener {
    /// The listener that comes with this crate: `models/listener-16k.safetensors`.
    ///
    /// # Errors
    /// Never, unless the crate was built with a damaged file.
    pub fn shipped() -> Result<Self, ListenerError> {
        Self::from_bytes(include_bytes!("../../models/listener-16k.safetensors"))
    }

    /// The listener for sound as it comes that comes with this crate: `models/listener-live-16k.safetensors`.
    ///
    /// # Errors
    /// Never, unless the crate was built with a damaged file.
    pub fn shipped_live() -> Result<Self, ListenerError> {
        Self::from_bytes(include_bytes!("../../models/listener-live-16k.safetensors"))
    }

    /// What it was made for and from.
    #[must_use]
    pub fn header(&self) -> &ListenerHeader {
        &self.header
    }

    /// The natural logarithm of the odds of speech (bins x frames), given `|X|^2` (bins x frames, in any unit) of
    /// frames that are 16 ms apart and bins that are 15.625 Hz apart. Bins above 8 kHz are given the odds of the
    /// highest band.
    #[must_use]
    pub fn log_odds(&self, power: &[f32], bins: usize) -> Vec<f32> {
        self.hear(power, bins).on_bins(bins)
    }

    /// The same on bands.
    pub(crate) fn hear(&self, power: &[f32], bins: usize) -> BandOdds {
        let bands = Bands::new(power, bins, &edges(), None);
        let frames = power.len() / bins;
        let mut odds = if frames == 0 { Vec::new() } else { self.network.forward(&features(&bands, frames)) };
        odds.truncate(BANDS * frames);
        BandOdds { bands, odds }
    }
}

/// What was heard of a recording, on bands.
pub(crate) struct BandOdds {
    /// The powers that it was heard by.
    bands: Bands,
    /// The log odds of speech, [`BANDS`] x frames.
    odds: Vec<f32>,
}

impl BandOdds {
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

/// The logarithmic opinion pool (Genest and Zidek 1986, section 3) of the posterior and the listener: gains whose log
/// odds (bins x frames) are the mean of those of `gain` and of `log_odds`, which counts with `weight`, a little stressed, times
/// the probability that there is a voice near the frame (`presence`). Peaks of steady noise that the model takes for a voice
/// stay out by that.
pub(crate) fn pool(gain: &mut [f32], log_odds: &[f32], presence: &[f32], weight: Weight) {
    let bins = gain.len() / presence.len().max(1);
    vector::dispatch(
        #[inline(always)]
        || {
            let frames = gain.chunks_exact_mut(bins).zip(log_odds.chunks_exact(bins));
            for ((gain, heard), presence) in frames.zip(presence) {
                for (gain, heard) in gain.iter_mut().zip(heard) {
                    *gain = presence * vector::powf(pooled(*gain, *heard, weight), STRESS);
                }
            }
        },
    );
}

/// The gain whose log odds are the mean of those of `gain` and of `log_odds`, which counts with `weight`.
#[inline(always)]
pub(crate) fn pooled(gain: f32, log_odds: f32, weight: Weight) -> f32 {
    let own = vector::log_odds(gain);
    let weight = if own > log_odds { weight.more } else { weight.less };
    vector::logistic(own + weight * (log_odds - own))
}

/// The probability of a voice near every frame, by the bins in which it is heard best.
pub(crate) fn presence(log_odds: &[f32], bins: usize) -> Vec<f32> {
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
            vector::logistic(SLOPE * (near.iter().copied().fold(f32::NEG_INFINITY, f32::max) - FAINTEST))
        })
        .collect()
}
