//! Steady sounds within the bands of the presence networks: tones, and above 8 kHz narrow noise.
//!
//! The networks classify a band as a whole, so that a tone between harmonics of a voice would be kept with them.

use crate::kernels::vector;
use crate::presence::FIRST_WIDE_BIN;

/// Bins on each side with which a bin is compared, 250 Hz.
const NEAR_BINS: usize = 16;
/// Decrease of the network's log odds per log odds of the model below a limit.
const SLOPE: f32 = 2.0;

/// Criterion for a steady sound in a bin, by the model's mean log odds over a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SteadyRule {
    /// The first bin.
    first: usize,
    /// Minimum distance of the mean below the median of the neighbouring bins.
    margin: f32,
    /// Mean below which a bin is steady regardless of its neighbours.
    mean: f32,
}

/// Rule above 8 kHz. No bin of 45 mixtures without a tone reaches the margin. The limit of the mean, for broadband
/// noise, lowers the log-spectral distance of mixtures; above -3, fricatives become weaker.
pub(crate) const HIGH_BAND_RULE: SteadyRule = SteadyRule { first: 0, margin: 1.0, mean: -3.0 };
/// Rule below 8 kHz, where bands have several bins. Of 90 mixtures, 4 have bins that reach the margin; with a margin of
/// 1, 13 do.
pub(crate) const LOW_BAND_RULE: SteadyRule =
    SteadyRule { first: FIRST_WIDE_BIN, margin: 2.0, mean: f32::NEG_INFINITY };

/// Lowers the network's log odds of speech in the bins of steady sounds, in which the model estimates noise throughout
/// the block. `log_odds` and the model's gain (`model`) are `bins` x frames.
pub(crate) fn lower_steady(log_odds: &mut [f32], model: &[f32], bins: usize, rule: SteadyRule) {
    let mut mean = vec![0.0; bins];
    let scale = bins as f32 / model.len() as f32;
    vector::dispatch(
        #[inline(always)]
        || {
            for frame in model.chunks_exact(bins) {
                mean.iter_mut().zip(frame).for_each(|(mean, &gain)| *mean += scale * vector::log_odds(gain));
            }
        },
    );
    let fall = |bin: usize| {
        if bin < rule.first {
            return 0.0;
        }
        let mut near = mean[bin.saturating_sub(NEAR_BINS)..(bin + NEAR_BINS + 1).min(bins)].to_vec();
        let middle = near.len() / 2;
        let (_, median, _) = near.select_nth_unstable_by(middle, f32::total_cmp);
        SLOPE * ((*median - rule.margin).max(rule.mean) - mean[bin]).max(0.0)
    };
    let falls: Vec<f32> = (0..bins).map(fall).collect();
    for frame in log_odds.chunks_exact_mut(bins) {
        frame.iter_mut().zip(&falls).for_each(|(log_odds, fall)| *log_odds -= fall);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeedTree;
    use rand::RngExt;

    const TONES: SteadyRule = SteadyRule { mean: f32::NEG_INFINITY, ..HIGH_BAND_RULE };

    #[test]
    fn only_the_bins_of_tones_are_lowered() {
        let (bins, frames) = (200, 120);
        let mut stream = SeedTree::new(1).rng(0);
        // The model finds speech in the second half of the block; bin 77 contains a tone.
        let model: Vec<f32> = (0..bins * frames)
            .map(|i| match (i % bins, i / bins / 60) {
                (77, _) => 0.02,
                (_, 0) => stream.random_range(0.01..0.1),
                _ => stream.random_range(0.2..0.9),
            })
            .collect();
        let mut log_odds = vec![1.0; bins * frames];
        lower_steady(&mut log_odds, &model, bins, TONES);
        for (bin, &found) in log_odds[..bins].iter().enumerate() {
            let range = if bin == 77 { -3.0..-0.5 } else { 1.0..1.1 };
            assert!(range.contains(&found), "bin {bin}: {found}");
        }
        assert!(log_odds.chunks_exact(bins).all(|frame| frame == &log_odds[..bins]));
        // Bins below `first` are unchanged.
        let mut resolved = vec![1.0; bins * frames];
        lower_steady(&mut resolved, &model, bins, SteadyRule { first: 78, ..TONES });
        assert!(resolved.iter().all(|&odds| odds == 1.0));
    }

    #[test]
    fn wide_noise_is_lowered_above_8_khz() {
        // Noise in half of the bins, in which the model has log odds of -4.
        let model: Vec<f32> = (0..400).map(|i| if i % 200 < 100 { 0.018 } else { 0.3 }).collect();
        for (rule, expected) in [(HIGH_BAND_RULE, -1.0), (TONES, 1.0)] {
            let mut log_odds = vec![1.0; 400];
            lower_steady(&mut log_odds, &model, 200, rule);
            assert!((log_odds[50] - expected).abs() < 0.01 && log_odds[150] == 1.0, "{}", log_odds[50]);
        }
    }
}
