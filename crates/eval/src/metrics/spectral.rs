//! Measures that compare spectra in decibels.

use super::{MetricError, Sample, check};
use alphamf::signal::counted;
use std::ops::RangeInclusive;

/// Half the length of a frame, s. Frames of 43 ms (2,048 samples at 48 kHz) start a quarter of a frame apart.
const HALF_FRAME_SECONDS: f64 = 1024.0 / 48_000.0;
/// Minimum power, as a fraction of the power of the reference's loudest bin.
const FLOOR: f64 = 1e-8;
/// Lower bound of power if the reference is almost silent.
const TINY: f64 = 1e-20;

/// Log-spectral distance in dB (Gray and Markel, "Distance measures for speech processing", 1976) over the
/// frequencies `band`, Hz.
///
/// The mean over all frames (43 ms, Hann, 75 % overlap) of the RMS difference of both log powers over the bins of the
/// band. Powers are limited to at least 80 dB below the loudest bin of the reference, so that silence in both is no
/// difference. Unlike the other measures, it ignores phase, and weights losses and artefacts equally in weak and strong
/// bands.
///
/// # Errors
/// [`MetricError`] for unequal lengths, non-finite samples, a silent reference, less than one frame, or a band without
/// a bin.
pub fn log_spectral_distance<R: Sample, E: Sample>(
    reference: &[R],
    estimate: &[E],
    sample_rate: u32,
    band: RangeInclusive<f64>,
) -> Result<f64, MetricError> {
    spectral_distances(reference, estimate, sample_rate, band).map(|distances| distances.all)
}

/// Log-spectral distances in dB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpectralDistances {
    /// The mean over all frames: [`log_spectral_distance`].
    pub all: f64,
    /// The mean over the tenth of the frames in which the reference is loudest in the band; above 8 kHz, these are
    /// fricatives.
    pub loudest: f64,
}

/// [`log_spectral_distance`] over all frames, and over the loudest frames in the band.
///
/// # Errors
/// As [`log_spectral_distance`].
pub fn spectral_distances<R: Sample, E: Sample>(
    reference: &[R],
    estimate: &[E],
    sample_rate: u32,
    band: RangeInclusive<f64>,
) -> Result<SpectralDistances, MetricError> {
    const NAME: &str = "log-spectral distance";
    let (reference, estimate) = (&*R::widen(reference), &*E::widen(estimate));
    check(reference, estimate)?;
    let frame = 2 * (HALF_FRAME_SECONDS * f64::from(sample_rate)).round_ties_even() as usize;
    let hop = frame / 4;
    if hop == 0 || reference.len() < frame {
        return Err(MetricError::TooShort {
            metric: NAME,
            required: format!("{frame} samples at {sample_rate} Hz"),
            found: counted(reference.len() as u64, "sample"),
        });
    }
    let bin = |hertz: f64| hertz * frame as f64 / f64::from(sample_rate);
    let bins = bin(*band.start()).ceil() as usize..=(bin(*band.end()).floor() as usize).min(frame / 2);
    if bins.is_empty() {
        return Err(MetricError::SampleRate {
            metric: NAME,
            rate: sample_rate,
            expected: "more than twice the band",
        });
    }
    let transform = alphamf_fourier::forward::<f64>(frame);
    let mut spectrum = transform.make_output_vec();
    let window: Vec<f64> =
        (0..frame).map(|n| 0.5 - 0.5 * (std::f64::consts::TAU * n as f64 / frame as f64).cos()).collect();
    let mut powers = |samples: &[f64]| -> Vec<f64> {
        let mut windowed: Vec<f64> = window.iter().zip(samples).map(|(window, x)| window * x).collect();
        let done = transform.process(&mut windowed, &mut spectrum);
        debug_assert!(done.is_ok(), "the buffers have the planned lengths");
        spectrum.iter().map(|x| x.norm_sqr()).collect()
    };
    // Spectra of the reference are computed twice, as those of an hour would occupy gigabytes.
    let frames = |samples| <[f64]>::windows(samples, frame).step_by(hop);
    let floor = frames(reference).flat_map(&mut powers).fold(TINY, |most, power| most.max(FLOOR * power));
    let count = bins.clone().count() as f64;
    // The power of the reference in the band, and the distance.
    let mut distances: Vec<(f64, f64)> = frames(reference)
        .zip(frames(estimate))
        .map(|(reference, estimate)| {
            let (reference, estimate) = (powers(reference), powers(estimate));
            let squares = bins
                .clone()
                .map(|bin| (10.0 * (reference[bin].max(floor) / estimate[bin].max(floor)).log10()).powi(2));
            (reference[bins.clone()].iter().sum(), (squares.sum::<f64>() / count).sqrt())
        })
        .collect();
    let mean = |frames: &[(f64, f64)]| {
        frames.iter().map(|(_, distance)| distance).sum::<f64>() / frames.len() as f64
    };
    let all = mean(&distances);
    distances.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    Ok(SpectralDistances { all, loudest: mean(&distances[..distances.len().div_ceil(10)]) })
}
