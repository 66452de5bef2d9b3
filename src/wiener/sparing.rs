//! Sparing of blocks with little noise, in which speech recognisers make fewer errors on the input than on denoised
//! speech.

use crate::decibels::decibels;
use crate::transform::FrameGrid;
use std::ops::RangeInclusive;

/// Signal-to-noise ratios between which the weight of the gain falls from 1 to 0, dB. Chosen by word error rate
/// (eval/results/transcription.md).
const FADE_DB: RangeInclusive<f64> = 12.0..=20.0;
/// Upper limit of rumble, which does not disturb recognisers, Hz.
const RUMBLE_HERTZ: f64 = 75.0;

/// Computes the weight of a gain, 0 to 1, from the signal-to-noise ratio that it implies for `power` (bins x frames
/// each); 1 for silence.
pub(crate) fn weight(gain: &[f32], power: &[f32], grid: FrameGrid) -> f32 {
    let snr_db = kept_above_rumble_db(gain, power, grid);
    let (all, nothing) = (*FADE_DB.start(), *FADE_DB.end());
    if snr_db.is_nan() { 1.0 } else { ((nothing - snr_db) / (nothing - all)).clamp(0.0, 1.0) as f32 }
}

/// Ratio of kept to removed power above the rumble, dB, for a gain and powers (bins x frames each); NaN for silence.
pub(crate) fn kept_above_rumble_db(gain: &[f32], power: &[f32], grid: FrameGrid) -> f64 {
    let first = (RUMBLE_HERTZ / grid.bin_hertz).ceil() as usize;
    let frames = gain.chunks_exact(grid.bins).zip(power.chunks_exact(grid.bins));
    kept_db(frames.flat_map(|(gain, power)| gain.iter().zip(power).skip(first)))
}

/// Ratio of kept to removed power, dB, from pairs of gain and power; NaN for silence.
pub(crate) fn kept_db<'a>(bins: impl Iterator<Item = (&'a f32, &'a f32)>) -> f64 {
    let (mut kept, mut rest) = (0.0, 0.0);
    for (gain, power) in bins {
        kept += f64::from(gain * power);
        rest += f64::from((1.0 - gain) * power);
    }
    decibels(kept / rest)
}

/// Mixes a gain with 1: a weight of 1 keeps the gain, a weight of 0 gives 1.
pub(crate) fn spare(gain: &mut [f32], weight: f32) {
    gain.iter_mut().for_each(|gain| *gain = 1.0 - weight + weight * *gain);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_falls_with_the_ratio_above_the_rumble() {
        let grid = FrameGrid { bins: 5, bin_hertz: 25.0, frame_seconds: 0.016 };
        // Only the fourth and fifth bin are above the rumble.
        let of_gain = |low: f32, high: f32| {
            let frame = [0.0, 0.0, 0.0, low, high];
            weight(&frame.repeat(2), &[1e6, 1e6, 1e6, 1.0, 3.0].repeat(2), grid)
        };
        assert_eq!(weight(&[1.0; 5], &[0.0; 5], grid), 1.0, "silence");
        assert_eq!(of_gain(0.0, 0.0), 1.0, "noise alone");
        assert_eq!(of_gain(1.0, 1.0), 0.0, "speech alone");
        assert_eq!(of_gain(0.9, 0.9), 1.0, "9.5 dB");
        assert_eq!(of_gain(0.999, 0.999), 0.0, "30 dB");
        // 3.92 of 4, that is 16.90 dB.
        let between = of_gain(0.92, 1.0);
        assert!((between - (20.0 - 16.9020) / 8.0).abs() < 1e-4, "{between}");
    }

    #[test]
    fn a_spared_gain_is_between_itself_and_one() {
        let mut gain = [0.0, 0.5, 1.0];
        spare(&mut gain, 0.25);
        assert_eq!(gain, [0.75, 0.875, 1.0]);
        spare(&mut gain, 1.0);
        assert_eq!(gain, [0.75, 0.875, 1.0]);
    }
}
