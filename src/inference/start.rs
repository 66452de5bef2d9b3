//! Initial noise spectra.

#[cfg(test)]
mod tests;

use super::noise_drift::{sum_over_bins, sum_over_frames};
use crate::kernels::vector;
use crate::model::MIN_POWER;
use crate::random::SeededRng;
use rand::RngExt;

/// Initial noise spectra (bins x rank) for powers `|X|^2` (bins x frames). The first follows from the mean power of the
/// noise per bin (`profile`) if given, else from a quantile of the power over time, as of stationary Gaussian noise; the
/// others are random around it.
pub(crate) fn noise_spectra(
    bins: usize,
    power: &[f32],
    profile: Option<&[f32]>,
    alpha: f64,
    rank: usize,
    rng: &mut SeededRng,
) -> Vec<f32> {
    /// Probability of the quantile of the powers over time; tuned (eval/results).
    const QUANTILE: f64 = 0.4;
    // An exponential law's quantile as a multiple of its mean.
    let quantile_of_mean = -libm::log(1.0 - QUANTILE);
    let mut over_time = vec![0.0; power.len() / bins];
    let mut spectra = Vec::with_capacity(bins * rank);
    for bin in 0..bins {
        let mean = match profile {
            Some(profile) => f64::from(profile[bin]),
            None => {
                for (value, frame) in over_time.iter_mut().zip(power.chunks_exact(bins)) {
                    *value = frame[bin];
                }
                let at = ((over_time.len() - 1) as f64 * QUANTILE) as usize;
                let (_, quantile, _) = over_time.select_nth_unstable_by(at, f32::total_cmp);
                f64::from(*quantile) / quantile_of_mean
            }
        };
        spectra.push(libm::pow(mean.max(MIN_POWER), alpha / 2.0) as f32);
    }
    for _ in 1..rank {
        for bin in 0..bins {
            spectra.push(spectra[bin] * rng.random_range(0.5..1.5));
        }
    }
    spectra
}

/// Bins and frames on both sides over which the noise estimate of the network is averaged.
const NOISE_HALF_BINS: usize = 4;
const NOISE_HALF_FRAMES: usize = 1;
/// Fraction of that estimate at which the noise starts. Sweeps raise noise that starts too low, but do not return power
/// from noise to speech; tuned on 30 mixtures (eval/results).
const NOISE_FRACTION: f32 = 0.1;

/// Initial power of non-stationary noise (bins x frames) for powers `|X|^2` and log odds of speech (bins x frames each).
pub(crate) fn initial_noise_power(bins: usize, power: &[f32], log_odds: &[f32]) -> Vec<f32> {
    let count = (2 * NOISE_HALF_BINS + 1) * (2 * NOISE_HALF_FRAMES + 1);
    let scale = NOISE_FRACTION / count as f32;
    let mut noise = vec![0.0; power.len()];
    vector::dispatch(
        #[inline(always)]
        || {
            for ((noise, power), log_odds) in noise.iter_mut().zip(power).zip(log_odds) {
                *noise = scale * power * vector::logistic(-log_odds);
            }
        },
    );
    sum_over_bins(&mut noise, bins, NOISE_HALF_BINS);
    let mut averaged = vec![0.0; power.len()];
    sum_over_frames(&noise, &mut averaged, bins, NOISE_HALF_FRAMES);
    averaged
}

/// Frames below which the quantile of a block is a worse estimate of its noise than the previous block.
const FEW_FRAMES: f64 = 128.0;

/// Interpolates the initial noise spectra, in the log domain, towards those of the previous block; the shorter this block
/// of `frames`, the more.
pub(crate) fn shrink_to_previous(previous: &[f32], spectra: &mut [f32], frames: usize) {
    let ratio = FEW_FRAMES / frames as f64;
    let weight = 1.0 - 1.0 / (1.0 + ratio * ratio);
    for (value, &previous) in spectra.iter_mut().zip(previous) {
        let step = libm::log(f64::from(previous) / f64::from(*value));
        *value = (f64::from(*value) * libm::exp(weight * step)) as f32;
    }
}
