//! BSS-eval's signal-to-distortion ratio for one source.

use num_complex::Complex;

use super::{MetricError, Sample, check, decibels};

/// Taps of the distortion filter that [`sdr`] allows, as in BSS-eval v3.
pub const FILTER_TAPS: usize = 512;

/// Size of the Fourier transforms of the correlations' blocks.
const TRANSFORM: usize = 1 << 14;

/// Fraction of the energy below which distortion is rounding error: correlations in double precision resolve at most
/// about 120 dB.
const RESOLUTION: f64 = 1e-12;

/// Signal-to-distortion ratio in dB, BSS-eval v3 (Vincent, Gribonval and Fevotte, "Performance
/// measurement in blind audio source separation", 2006) for a single source.
///
/// The part of the estimate that a causal filter of [`FILTER_TAPS`] taps can produce from the reference is target, the
/// rest is distortion; the measure therefore ignores a change of level, a delay of less than 512 samples and
/// equalisation. Values above 120 dB give `+inf`; a silent estimate gives `-inf`. Time is linear in the length, memory
/// constant.
///
/// # Errors
/// [`MetricError`] for unequal lengths, non-finite samples or a silent reference.
///
/// ```
/// let reference: Vec<f64> = (0..8000).map(|n| (0.1 * n as f64).sin()).collect();
/// let estimate: Vec<f64> = reference.iter().map(|x| 0.5 * x).collect();
/// assert_eq!(alphamf_eval::metrics::sdr(&reference, &estimate)?, f64::INFINITY);
/// # Ok::<(), alphamf_eval::metrics::MetricError>(())
/// ```
pub fn sdr<R: Sample, E: Sample>(reference: &[R], estimate: &[E]) -> Result<f64, MetricError> {
    let (reference, estimate) = (&*R::widen(reference), &*E::widen(estimate));
    check(reference, estimate)?;
    // Peak levels of 1 prevent overflow and underflow of the correlations.
    let peak = |samples: &[f64]| samples.iter().fold(0.0_f64, |peak, x| peak.max(x.abs()));
    let (reference_peak, estimate_peak) = (peak(reference), peak(estimate));
    if estimate_peak == 0.0 {
        return Ok(f64::NEG_INFINITY);
    }
    let energy: f64 = estimate.iter().map(|x| (x / estimate_peak).powi(2)).sum();
    let (auto, cross) = correlations(reference, 1.0 / reference_peak, estimate, 1.0 / estimate_peak);
    let coherence = (projected_energy(&auto, &cross) / energy).min(1.0);
    let distortion = 1.0 - coherence;
    Ok(decibels(coherence, if distortion < RESOLUTION { 0.0 } else { distortion }))
}

/// Autocorrelation of `a` and cross-correlation `sum over n of a[n] b[n + lag]`, each signal
/// multiplied by its gain, at lags `0..FILTER_TAPS`, both signals zero outside their length.
///
/// Summed over blocks in the frequency domain: one inverse transform in all.
fn correlations(a: &[f64], a_gain: f64, b: &[f64], b_gain: f64) -> (Vec<f64>, Vec<f64>) {
    let block = TRANSFORM - (FILTER_TAPS - 1);
    let forward = alphamf_fourier::forward::<f64>(TRANSFORM);
    let inverse = alphamf_fourier::inverse::<f64>(TRANSFORM);
    let mut scratch = forward.make_scratch_vec();
    let mut transform = |samples: &[f64], gain: f64, padded: &mut [f64], spectrum: &mut [Complex<f64>]| {
        for (p, x) in padded.iter_mut().zip(samples) {
            *p = gain * x;
        }
        padded[samples.len()..].fill(0.0);
        let done = forward.process_with_scratch(padded, spectrum, &mut scratch);
        debug_assert!(done.is_ok(), "the buffers have the planned lengths");
    };
    let mut padded = forward.make_input_vec();
    let mut head = forward.make_output_vec();
    let mut other = forward.make_output_vec();
    let mut sums = [forward.make_output_vec(), forward.make_output_vec()];
    for start in (0..a.len()).step_by(block) {
        transform(&a[start..a.len().min(start + block)], a_gain, &mut padded, &mut head);
        let reach = start..a.len().min(start + TRANSFORM);
        for (sum, (samples, gain)) in sums.iter_mut().zip([(a, a_gain), (b, b_gain)]) {
            transform(&samples[reach.clone()], gain, &mut padded, &mut other);
            for ((s, h), o) in sum.iter_mut().zip(&head).zip(&other) {
                *s += h.conj() * o;
            }
        }
    }
    let [auto, cross] = sums.map(|mut sum| {
        // A real signal's spectrum is real at both ends; clear rounding errors there.
        sum[0].im = 0.0;
        sum[TRANSFORM / 2].im = 0.0;
        let done = inverse.process(&mut sum, &mut padded);
        debug_assert!(done.is_ok(), "the buffers have the planned lengths");
        padded[..FILTER_TAPS].iter().map(|x| x / TRANSFORM as f64).collect()
    });
    (auto, cross)
}

/// `c' R^-1 c` for the symmetric Toeplitz matrix R with first column `auto`, and c = `cross`.
///
/// Levinson's recursion: each order adds the square of the innovation of the next lag over its prediction error. If
/// that error falls to rounding level, the remaining lags are combinations of the ones before (a reference of a few
/// pure tones) and add nothing.
fn projected_energy(auto: &[f64], cross: &[f64]) -> f64 {
    let floor = auto[0] * f64::EPSILON;
    let mut error = auto[0];
    // The prediction filter of the current order, its leading 1 included.
    let mut filter = vec![0.0; auto.len()];
    let mut previous = filter.clone();
    filter[0] = 1.0;
    let mut energy = 0.0;
    for order in 0..auto.len() {
        if order > 0 {
            let ahead: f64 = (0..order).map(|j| filter[j] * auto[order - j]).sum();
            let reflection = -ahead / error;
            previous[..order].copy_from_slice(&filter[..order]);
            for j in 1..=order {
                filter[j] += reflection * previous[order - j];
            }
            error *= 1.0 - reflection * reflection;
            if error.is_nan() || error <= floor {
                break;
            }
        }
        let innovation: f64 = (0..=order).map(|j| filter[j] * cross[order - j]).sum();
        energy += innovation * innovation / error;
    }
    energy
}
