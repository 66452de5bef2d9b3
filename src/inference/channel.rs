//! The smooth gain between the dictionary's recordings and the one at hand.

use std::f64::consts::PI;

/// Cosine coefficients of the logarithmic gain: features of about 1 kHz at 16 kHz.
const COEFFICIENTS: usize = 8;
/// Bins that a bin without speech counts as, which keep its gain where it is.
const PRIOR_COUNT: f64 = 2.0;

/// A gain per bin whose logarithm is a short cosine series without a constant.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    /// `log gain` per bin.
    log_gain: Vec<f64>,
}

impl Channel {
    pub(super) fn new(bins: usize) -> Self {
        Self { log_gain: vec![0.0; bins] }
    }

    /// Multiplies the gain of every bin by a smooth version of `(raise / lower)^exponent`.
    pub(super) fn update(&mut self, raise: &[f32], lower: &[f32], exponent: f32) {
        let count = |sum: f32| f64::from(sum) + PRIOR_COUNT;
        let steps: Vec<f64> =
            raise.iter().zip(lower).map(|(&raise, &lower)| libm::log(count(raise) / count(lower))).collect();
        let bins = steps.len();
        let cosine =
            |order: usize, bin: usize| libm::cos(PI * order as f64 * (bin as f64 + 0.5) / bins as f64);
        // The projection on the cosines (DCT-II) of low order. The constant belongs to the activations.
        for order in 1..COEFFICIENTS.min(bins) {
            let sum: f64 = steps.iter().enumerate().map(|(bin, step)| step * cosine(order, bin)).sum();
            let coefficient = f64::from(exponent) * sum * 2.0 / bins as f64;
            for (bin, gain) in self.log_gain.iter_mut().enumerate() {
                *gain += coefficient * cosine(order, bin);
            }
        }
    }

    /// Writes `diag(gain) spectra` (bins x rank) into `shaped`.
    pub(super) fn shape(&self, spectra: &[f32], shaped: &mut [f32]) {
        let bins = self.log_gain.len();
        let gain: Vec<f32> = self.log_gain.iter().map(|&gain| libm::exp(gain) as f32).collect();
        for (column, shaped) in spectra.chunks_exact(bins).zip(shaped.chunks_exact_mut(bins)) {
            for ((shaped, &value), gain) in shaped.iter_mut().zip(column).zip(&gain) {
                *shaped = value * gain;
            }
        }
    }
}
