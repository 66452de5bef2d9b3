//! The Wiener filter of a block: from accumulated gains to the gain, its floor and the state to carry over.

use super::{Bands, Block};
use crate::inference::bands::place_rows;
use crate::inference::high_band::HighBandState;
use crate::inference::state::Separation;
use crate::presence::{PoolChange, trace_pool};
use crate::wiener::floor::{BinLevels, Floors};
use crate::wiener::fusion::{HIGH_BAND_WEIGHT, NONSTATIONARY_WEIGHT, WEIGHT, pool_changed, pool_log_odds};
use crate::wiener::high_band::attenuate_high_band;
use crate::wiener::reverberation::{self, Decays};
use crate::wiener::smoothing::smooth_over_frames;
use crate::wiener::steady::{HIGH_BAND_RULE, LOW_BAND_RULE, lower_steady};

/// The filter of a block.
pub(super) struct Filter {
    /// Gain after fusion, smoothing and dereverberation, bins x frames.
    pub gain: Vec<f32>,
    /// Posterior-mean gain before fusion; empty if not requested.
    pub model_gain: Vec<f32>,
    /// Minimum gain per bin.
    pub floors: Floors,
    /// State of the high band.
    pub high_band: Option<HighBandState>,
    /// Levels of speech and noise of this block and those before it.
    pub levels: BinLevels,
    /// Decays of the room, of this block and those before it.
    pub decays: Decays,
    /// Whether the network is certain of speech in this block.
    pub speech_found: bool,
}

/// The gain of one band, bins x frames: the posterior mean, and after fusion with speech presence.
struct BandGain {
    model: Vec<f32>,
    pooled: Vec<f32>,
}

impl Block<'_> {
    /// Computes the filter from the accumulated gains.
    pub(super) fn filter(&self, separation: &Separation) -> Filter {
        let Self { separator, grid, power, start, .. } = self;
        let settings = &separator.settings.gain;
        let (low, split) = (self.low_band(separation), start.bins);
        let (high, high_band) = self.high_band(separation, &low).unzip();
        let mut gain = self.join_bands(&low.pooled, high.as_ref().map(|high: &BandGain| &high.pooled));
        let model_gain = if self.model_gain {
            self.join_bands(&low.model, high.as_ref().map(|high| &high.model))
        } else {
            Vec::new()
        };
        let (previous_levels, previous_floors) = self.previous_levels.unzip();
        let levels = BinLevels::new(&gain, power, grid.bins, previous_levels);
        let snr_db = levels.snr_db(grid.bin_hertz);
        let with_net = self.presence.is_some();
        if settings.smooth {
            // Gains after fusion are smooth already.
            let rough = if with_net { split..grid.bins } else { 0..grid.bins };
            smooth_over_frames(&mut gain, &snr_db, rough);
        }
        let mut floors = Floors::new(settings, with_net, &levels, &snr_db, grid.bin_hertz, previous_floors);
        // The speech estimate of the high band is uncertain, so its floor does not exceed the floor just below.
        floors.level_off(split);
        let decays = self.suppress_reverberation(&mut gain);
        let speech_found = self.presence.as_ref().is_some_and(|presence| presence.bands.is_certain());
        Filter { gain, model_gain, floors, high_band, levels, decays, speech_found }
    }

    /// The gain in the dictionary's band.
    fn low_band(&self, separation: &Separation) -> BandGain {
        let model = separation.mean_gain();
        let mut pooled = model.clone();
        if let Some(presence) = &self.presence {
            let nonstationary = self.separator.settings.model.nonstationary_noise;
            let weight = if nonstationary { NONSTATIONARY_WEIGHT } else { WEIGHT };
            trace_pool(&presence.bands, &model, self.start.bins);
            let mut log_odds = presence.low.clone();
            lower_steady(&mut log_odds, &model, self.start.bins, LOW_BAND_RULE);
            // The pool's network was trained on blocks with non-stationary noise.
            let net = self.separator.networks.as_ref().and_then(|networks| networks.pool.as_ref());
            let net = net.filter(|_| nonstationary);
            match net.and_then(|net| net.change(&presence.bands, &model, self.start.bins)) {
                Some(PoolChange { weight: more, shift, fraction }) => {
                    let frames: Vec<f32> =
                        presence.frames.iter().map(|frame| frame + fraction * (1.0 - frame)).collect();
                    pool_changed(&mut pooled, &log_odds, &frames, weight, &more, &shift);
                }
                None => pool_log_odds(&mut pooled, &log_odds, &presence.frames, weight),
            }
        }
        BandGain { model, pooled }
    }

    /// The gain above the dictionary's band, and the state to carry over; `None` without occupied bins there.
    fn high_band(&self, separation: &Separation, low: &BandGain) -> Option<(BandGain, HighBandState)> {
        if self.power_high.is_empty() {
            return None;
        }
        let (model, state) = self.separate_high_band(separation);
        let mut pooled = model.clone();
        if let Some(presence) = &self.presence {
            match &presence.high {
                Some(high) => {
                    let mut log_odds = high.clone();
                    let bins = self.bands.occupied - self.bands.low;
                    lower_steady(&mut log_odds, &model, bins, HIGH_BAND_RULE);
                    pool_log_odds(&mut pooled, &log_odds, &presence.frames, HIGH_BAND_WEIGHT);
                }
                None => {
                    attenuate_high_band(
                        &mut pooled,
                        &low.model,
                        &low.pooled,
                        &self.power_low,
                        self.start.bins,
                    );
                }
            }
        }
        Some((BandGain { model, pooled }, state))
    }

    /// The values of both bands in one matrix of all bins x frames; empty bins have 0.
    pub(super) fn join_bands(&self, low: &[f32], high: Option<&Vec<f32>>) -> Vec<f32> {
        let (bins, Bands { low: split, occupied }) = (self.grid.bins, self.bands);
        let mut whole = vec![0.0; self.power.len()];
        place_rows(low, &mut whole, bins, 0..split);
        if let Some(high) = high {
            place_rows(high, &mut whole, bins, split..occupied);
        }
        whole
    }

    /// Attenuates late reverberation by the amount in the settings, and returns the decays of the room so far.
    fn suppress_reverberation(&self, gain: &mut [f32]) -> Decays {
        let Self { separator, grid, power, previous_decays, .. } = self;
        let speech: Vec<f32> = gain.iter().zip(*power).map(|(gain, power)| gain * gain * power).collect();
        let mut decays = previous_decays.cloned().unwrap_or_default();
        decays.count(&speech, *grid);
        let amount = separator.settings.gain.dereverb as f32;
        if amount > 0.0 {
            reverberation::suppress(gain, &speech, *grid, &decays, amount);
        }
        decays
    }
}
