//! Where the noise spectra start.

use crate::model::SMALLEST_POWER;
use crate::random::Stream;
use rand::RngExt;

/// The noise spectra (bins x rank) at the start, for powers `|X|^2` (bins x frames): the first from the mean
/// power of the noise per bin if that is known, otherwise from a quantile of the power over time, as if it held
/// stationary Gaussian noise alone; the others random around it.
pub(super) fn noise_spectra(
    bins: usize,
    power: &[f32],
    profile: Option<&[f32]>,
    alpha: f64,
    rank: usize,
    stream: &mut Stream,
) -> Vec<f32> {
    /// Of the powers over time; chosen by measurement.
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
        spectra.push(libm::pow(mean.max(SMALLEST_POWER), alpha / 2.0) as f32);
    }
    for _ in 1..rank {
        for bin in 0..bins {
            spectra.push(spectra[bin] * stream.random_range(0.5..1.5));
        }
    }
    spectra
}

/// Frames below which the quantile of a stretch says less of its noise than the stretch before.
const FEW_FRAMES: f64 = 128.0;

/// Moves the noise spectra at the start of a stretch of `frames` towards those that were carried from the stretch
/// before: much if it is short and may hold no pause of the speech, little if it is long.
pub(super) fn lean_on(carried: &[f32], spectra: &mut [f32], frames: usize) {
    let ratio = FEW_FRAMES / frames as f64;
    let weight = 1.0 - 1.0 / (1.0 + ratio * ratio);
    for (value, &carried) in spectra.iter_mut().zip(carried) {
        let step = libm::log(f64::from(carried) / f64::from(*value));
        *value = (f64::from(*value) * libm::exp(weight * step)) as f32;
    }
}
