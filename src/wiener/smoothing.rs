//! Smoothing of the gain over frames, against musical noise.

use crate::decibels::power;
use std::ops::Range;

/// Signal-to-noise ratio at which gains are smoothed by half, dB.
const HALF_SMOOTH_DB: f64 = 10.0;

/// Smooths the gain (bins x frames) over frames in the bins `rough`, with weights 1/4, 1/2 and 1/4 at low signal-to-noise
/// ratio (`snr_db`, per bin) and less at high.
pub(crate) fn smooth_over_frames(gain: &mut [f32], snr_db: &[f64], rough: Range<usize>) {
    if rough.is_empty() {
        return;
    }
    let bins = snr_db.len();
    let before = gain.to_vec();
    let frames = gain.len() / bins;
    let weight = |&snr: &f64| 1.0 / (1.0 + power(snr - HALF_SMOOTH_DB)) as f32;
    let weights: Vec<f32> = snr_db[rough.clone()].iter().map(weight).collect();
    for (t, frame) in gain.chunks_exact_mut(bins).enumerate() {
        let (previous, next) = (t.saturating_sub(1) * bins, (t + 1).min(frames - 1) * bins);
        for ((bin, gain), weight) in rough.clone().zip(&mut frame[rough.clone()]).zip(&weights) {
            let neighbours = 0.5 * (before[previous + bin] + before[next + bin]);
            *gain += 0.5 * weight * (neighbours - *gain);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_smoothed_where_there_is_noise() {
        let mut gain = vec![0.0, 0.0, 1.0, 1.0, 0.0, 0.0_f32];
        smooth_over_frames(&mut gain, &[-40.0, 60.0], 0..2);
        let expected = [0.25, 0.0, 0.5, 1.0, 0.25, 0.0];
        assert!(gain.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3), "{gain:?}");
    }
}
