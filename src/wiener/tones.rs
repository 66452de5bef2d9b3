//! Steady tones within the bands of the presence networks.
//!
//! A band is noise or speech as a whole. A tone between harmonics of a voice would be kept with them.

use crate::kernels::vector;

/// Bins to either side among which a tone stands out, 250 Hz.
const NEAR_BINS: usize = 16;
/// How far the model's mean log odds of a tone are below the median of the bins near it, at least, above 8 kHz; those of other bins
/// of 45 mixtures are not.
pub(crate) const HIGH_BAND_MARGIN: f32 = 1.0;
/// The same below 8 kHz. Of 90 mixtures, some bins of 4 are further below, and of 13 with a margin of 1.
pub(crate) const LOW_BAND_MARGIN: f32 = 2.0;
/// Fall of the network's log odds beyond the margin, per log odds of the model.
const SLOPE: f32 = 2.0;

/// Lowers the network's log odds of speech in the bins of steady tones, from bin `first` on: there the model finds noise all
/// through the block, and not beside it. `log_odds` and the model's gain (`model`) are of `bins` bins x frames.
pub(crate) fn lower_tones(log_odds: &mut [f32], model: &[f32], bins: usize, first: usize, margin: f32) {
    let mut mean = vec![0.0; bins];
    let share = bins as f32 / model.len() as f32;
    vector::dispatch(
        #[inline(always)]
        || {
            for frame in model.chunks_exact(bins) {
                mean.iter_mut().zip(frame).for_each(|(mean, &gain)| *mean += share * vector::log_odds(gain));
            }
        },
    );
    let fall = |bin: usize| {
        if bin < first {
            return 0.0;
        }
        let mut near = mean[bin.saturating_sub(NEAR_BINS)..(bin + NEAR_BINS + 1).min(bins)].to_vec();
        let middle = near.len() / 2;
        let (_, median, _) = near.select_nth_unstable_by(middle, f32::total_cmp);
        SLOPE * (*median - margin - mean[bin]).max(0.0)
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

    #[test]
    fn only_the_bins_of_tones_are_lowered() {
        let (bins, frames) = (200, 120);
        let mut stream = SeedTree::new(1).rng(0);
        // Consonants in every other second, that is where the model finds speech; bin 77 is that of a tone.
        let model: Vec<f32> = (0..bins * frames)
            .map(|i| match (i % bins, i / bins / 60) {
                (77, _) => 0.02,
                (_, 0) => stream.random_range(0.01..0.1),
                _ => stream.random_range(0.2..0.9),
            })
            .collect();
        let mut log_odds = vec![1.0; bins * frames];
        lower_tones(&mut log_odds, &model, bins, 0, HIGH_BAND_MARGIN);
        for (bin, &found) in log_odds[..bins].iter().enumerate() {
            let range = if bin == 77 { -3.0..-0.5 } else { 1.0..1.1 };
            assert!(range.contains(&found), "bin {bin}: {found}");
        }
        assert!(log_odds.chunks_exact(bins).all(|frame| frame == &log_odds[..bins]));
        // Bands of single bins need no help.
        let mut resolved = vec![1.0; bins * frames];
        lower_tones(&mut resolved, &model, bins, 78, HIGH_BAND_MARGIN);
        assert!(resolved.iter().all(|&odds| odds == 1.0));
    }
}
