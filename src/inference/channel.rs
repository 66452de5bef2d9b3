//! The smooth gain between the dictionary's recordings and the one at hand.

use std::f64::consts::PI;

/// Cosine coefficients of the logarithmic gain: features of some 400 Hz at 16 kHz.
const COEFFICIENTS: usize = 20;

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

    /// Multiplies the gain of every bin by `(raise / lower)^exponent` and smooths the result.
    pub(super) fn update(&mut self, raise: &[f32], lower: &[f32], exponent: f32) {
        for ((gain, &raise), &lower) in self.log_gain.iter_mut().zip(raise).zip(lower) {
            let ratio = f64::from(raise.max(1e-20)) / f64::from(lower.max(1e-20));
            *gain += f64::from(exponent) * libm::log(ratio).clamp(-5.0, 5.0);
        }
        self.smooth();
    }

    /// The projection on the cosines (DCT-II) of low order. The constant belongs to the activations.
    fn smooth(&mut self) {
        let bins = self.log_gain.len();
        let cosine =
            |order: usize, bin: usize| libm::cos(PI * order as f64 * (bin as f64 + 0.5) / bins as f64);
        let mut smooth = vec![0.0; bins];
        for order in 1..COEFFICIENTS.min(bins) {
            let coefficient: f64 =
                self.log_gain.iter().enumerate().map(|(bin, gain)| gain * cosine(order, bin)).sum::<f64>()
                    * 2.0
                    / bins as f64;
            smooth.iter_mut().enumerate().for_each(|(bin, sum)| *sum += coefficient * cosine(order, bin));
        }
        self.log_gain = smooth;
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
