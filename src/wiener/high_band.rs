//! Attenuation of the high band: by what fusion removed below it, and of steady tones in it.

use crate::kernels::vector;

/// Bins to either side among which a tone stands out, 250 Hz.
const NEAR_BINS: usize = 16;
/// How far the model's mean log odds of a tone are below the median of the bins near it, at least; those of other bins of 45 mixtures
/// are not.
const MARGIN: f32 = 1.0;
/// Fall of the network's log odds beyond the margin, per log odds of the model.
const SLOPE: f32 = 2.0;

/// Attenuates the gain above the dictionary's band (`high`, bins above x frames) by the fraction of speech power that fusion
/// removed in the octave below it. Transient noise is wide, and above that band the model follows the activations of speech
/// alone. `before`, `after` (gain before and after fusion) and `power` are of the `bins` bins below, x frames.
pub(crate) fn attenuate_high_band(
    high: &mut [f32],
    before: &[f32],
    after: &[f32],
    power: &[f32],
    bins: usize,
) {
    let octave = bins / 2..bins;
    let frames = power.chunks_exact(bins).zip(before.chunks_exact(bins).zip(after.chunks_exact(bins)));
    let rows = high.len() / (before.len() / bins);
    for ((power, (before, after)), high) in frames.zip(high.chunks_exact_mut(rows)) {
        let speech = |gain: &[f32]| -> f32 { octave.clone().map(|bin| gain[bin] * power[bin]).sum() };
        let kept = (speech(after) / speech(before).max(f32::MIN_POSITIVE)).min(1.0);
        high.iter_mut().for_each(|gain| *gain *= kept);
    }
}

/// Lowers the network's log odds of speech in the bins of steady tones, which its bands of 500 Hz do not resolve: there the model
/// finds noise all through the block, and not beside it. `log_odds` and the model's gain (`model`) are of `bins` bins x frames.
pub(crate) fn lower_tones(log_odds: &mut [f32], model: &[f32], bins: usize) {
    let mut mean = vec![0.0; bins];
    let share = bins as f32 / model.len() as f32;
    for frame in model.chunks_exact(bins) {
        mean.iter_mut().zip(frame).for_each(|(mean, &gain)| *mean += share * vector::log_odds(gain));
    }
    let fall = |bin: usize| {
        let mut near = mean[bin.saturating_sub(NEAR_BINS)..(bin + NEAR_BINS + 1).min(bins)].to_vec();
        let middle = near.len() / 2;
        let (_, median, _) = near.select_nth_unstable_by(middle, f32::total_cmp);
        SLOPE * (*median - MARGIN - mean[bin]).max(0.0)
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
        lower_tones(&mut log_odds, &model, bins);
        for (bin, &found) in log_odds[..bins].iter().enumerate() {
            let range = if bin == 77 { -3.0..-0.5 } else { 1.0..1.1 };
            assert!(range.contains(&found), "bin {bin}: {found}");
        }
        assert!(log_odds.chunks_exact(bins).all(|frame| frame == &log_odds[..bins]));
    }

    #[test]
    fn the_high_band_loses_what_fusion_removed_below() {
        // Of four bins the upper two count; fusion keeps a quarter of the first frame and raises the second.
        let power = [9.0, 9.0, 1.0, 3.0, 9.0, 9.0, 1.0, 1.0];
        let before = [0.5; 8];
        let after = [0.9, 0.9, 0.5, 0.0, 0.1, 0.1, 1.0, 1.0];
        let mut high = [0.8, 0.4, 0.8, 0.4];
        attenuate_high_band(&mut high, &before, &after, &power, 4);
        assert_eq!(high, [0.2, 0.1, 0.8, 0.4]);
        let mut silent = [0.8];
        attenuate_high_band(&mut silent, &[0.0; 4], &[0.0; 4], &[1.0; 4], 4);
        assert_eq!(silent, [0.0]);
    }
}
