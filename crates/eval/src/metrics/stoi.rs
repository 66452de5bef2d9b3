//! Short-time objective intelligibility.

use std::f64::consts::PI;
use std::ops::Range;

use num_complex::Complex;

use super::resample::resample;
use super::{MetricError, Sample, check, energy};
use alphamf::signal::SAMPLE_RATE_RANGE;

/// Sample rate of the analysis in Hz.
const RATE: u32 = 10_000;
/// Length of a frame in samples.
const FRAME: usize = 256;
/// Step from frame to frame in samples.
const HOP: usize = FRAME / 2;
/// Size of the Fourier transform.
const TRANSFORM: usize = 512;
/// Number of third-octave bands.
const BANDS: usize = 15;
/// Centre of the lowest band in Hz.
const LOWEST_CENTRE_HERTZ: f64 = 150.0;
/// Number of frames of an intermediate measure (384 ms).
const SEGMENT: usize = 30;
/// Level below the strongest frame at which frames of the reference are silent, dB.
const DYNAMIC_RANGE_DB: f64 = 40.0;
/// Lower bound of the signal-to-distortion ratio per band and segment, in dB.
const MIN_SDR_DB: f64 = -15.0;

/// Amplitudes of the third-octave bands in one frame.
type Bands = [f64; BANDS];

/// Predicted intelligibility, roughly between 0 (none) and 1 (complete).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Intelligibility {
    /// STOI: Taal, Hendriks, Heusdens and Jensen, "An algorithm for intelligibility prediction of
    /// time-frequency weighted noisy speech", 2011.
    pub stoi: f64,
    /// Extended STOI: Jensen and Taal, "An algorithm for predicting the intelligibility of speech
    /// masked by modulated noise maskers", 2016.
    pub estoi: f64,
}

/// STOI alone: see [`intelligibility`].
///
/// # Errors
/// As [`intelligibility`].
pub fn stoi<R: Sample, E: Sample>(
    reference: &[R],
    estimate: &[E],
    sample_rate: u32,
) -> Result<f64, MetricError> {
    Ok(intelligibility(reference, estimate, sample_rate)?.stoi)
}

/// ESTOI alone: see [`intelligibility`].
///
/// # Errors
/// As [`intelligibility`].
pub fn estoi<R: Sample, E: Sample>(
    reference: &[R],
    estimate: &[E],
    sample_rate: u32,
) -> Result<f64, MetricError> {
    Ok(intelligibility(reference, estimate, sample_rate)?.estoi)
}

/// STOI and ESTOI, which share their analysis.
///
/// Both signals, sampled at `sample_rate` Hz, are resampled to 10 kHz as in Octave. Frames in which the reference is
/// more than 40 dB below its strongest frame are removed. A band that is constant over a segment in one of the signals
/// (digital silence) contributes nothing; the reference implementation uses tiny random numbers instead.
///
/// # Errors
/// [`MetricError`] for unequal lengths, non-finite samples, a silent reference, a sample rate outside
/// [`SAMPLE_RATE_RANGE`], or fewer than 30 frames (about 0.4 s) that are not silent.
pub fn intelligibility<R: Sample, E: Sample>(
    reference: &[R],
    estimate: &[E],
    sample_rate: u32,
) -> Result<Intelligibility, MetricError> {
    let (reference, estimate) = (&*R::widen(reference), &*E::widen(estimate));
    check(reference, estimate)?;
    if !SAMPLE_RATE_RANGE.contains(&sample_rate) {
        return Err(MetricError::SampleRate {
            metric: "STOI",
            rate: sample_rate,
            expected: "8000 to 192000 Hz",
        });
    }
    let window = hann();
    let (reference, estimate) = without_silence(
        &resample(reference, sample_rate, RATE),
        &resample(estimate, sample_rate, RATE),
        &window,
    );
    let frames = frame_starts(reference.len()).len();
    if frames < SEGMENT {
        return Err(MetricError::TooShort {
            metric: "STOI",
            required: format!("{SEGMENT} frames of {FRAME} samples at {RATE} Hz that are not silent"),
            found: format!("{frames}"),
        });
    }
    let bands = third_octave_bands();
    let reference = band_amplitudes(&reference, &window, &bands);
    let estimate = band_amplitudes(&estimate, &window, &bands);
    let segments = reference.windows(SEGMENT).zip(estimate.windows(SEGMENT));
    let count = (frames - SEGMENT + 1) as f64;
    let (stoi, estoi) = segments.fold((0.0, 0.0), |(stoi, estoi), (r, e)| {
        (stoi + segment_correlation(r, e), estoi + segment_spectral_correlation(r, e))
    });
    Ok(Intelligibility { stoi: stoi / count, estoi: estoi / count })
}

/// MATLAB's `hanning`: the Hann window without its zero end points.
fn hann() -> Vec<f64> {
    (1..=FRAME).map(|n| 0.5 - 0.5 * (2.0 * PI * n as f64 / (FRAME + 1) as f64).cos()).collect()
}

/// First samples of the frames of a signal; a frame that would end exactly with the signal is omitted.
fn frame_starts(length: usize) -> std::iter::StepBy<Range<usize>> {
    (0..length.saturating_sub(FRAME)).step_by(HOP)
}

/// Overlap-adds, for both signals, the windowed frames in which the reference is not silent.
fn without_silence(reference: &[f64], estimate: &[f64], window: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let levels: Vec<f64> = frame_starts(reference.len())
        .map(|start| {
            let frame = reference[start..].iter().zip(window).map(|(x, w)| x * w);
            20.0 * (energy(frame).sqrt() + f64::EPSILON).log10()
        })
        .collect();
    let threshold = levels.iter().copied().fold(f64::NEG_INFINITY, f64::max) - DYNAMIC_RANGE_DB;
    let kept: Vec<usize> = frame_starts(reference.len())
        .zip(&levels)
        .filter(|&(_, &level)| level > threshold)
        .map(|(start, _)| start)
        .collect();
    let gather = |samples: &[f64]| {
        let mut joined = vec![0.0; if kept.is_empty() { 0 } else { (kept.len() - 1) * HOP + FRAME }];
        for (i, &start) in kept.iter().enumerate() {
            for ((out, x), w) in joined[i * HOP..].iter_mut().zip(&samples[start..]).zip(window) {
                *out += x * w;
            }
        }
        joined
    };
    (gather(reference), gather(estimate))
}

/// The bins of the Fourier transform that make up each band.
fn third_octave_bands() -> [Range<usize>; BANDS] {
    let nearest = |frequency: f64| {
        let bin = frequency * TRANSFORM as f64 / f64::from(RATE);
        // Ties go to the lower bin.
        (bin - 0.5).ceil() as usize
    };
    std::array::from_fn(|band| {
        let edge = |sixths: f64| LOWEST_CENTRE_HERTZ * (sixths / 6.0).exp2();
        let band = band as f64;
        nearest(edge(2.0 * band - 1.0))..nearest(edge(2.0 * band + 1.0))
    })
}

/// The amplitude of each band in each frame.
fn band_amplitudes(samples: &[f64], window: &[f64], bands: &[Range<usize>; BANDS]) -> Vec<Bands> {
    let transform = alphamf_fourier::forward::<f64>(TRANSFORM);
    let mut frame = transform.make_input_vec();
    let mut spectrum = transform.make_output_vec();
    let mut scratch = transform.make_scratch_vec();
    frame_starts(samples.len())
        .map(|start| {
            for ((f, x), w) in frame.iter_mut().zip(&samples[start..]).zip(window) {
                *f = x * w;
            }
            frame[FRAME..].fill(0.0);
            let done = transform.process_with_scratch(&mut frame, &mut spectrum, &mut scratch);
            debug_assert!(done.is_ok(), "the buffers have the planned lengths");
            std::array::from_fn(|band| {
                spectrum[bands[band].clone()].iter().map(Complex::norm_sqr).sum::<f64>().sqrt()
            })
        })
        .collect()
}

/// STOI's intermediate measure (eq. 5), averaged over the bands: the correlation in time of the
/// reference with the estimate, normalised to the reference's level and clipped.
fn segment_correlation(reference: &[Bands], estimate: &[Bands]) -> f64 {
    let clip = 1.0 + 10.0_f64.powf(-MIN_SDR_DB / 20.0);
    let correlations = (0..BANDS).map(|band| {
        let mut r: [f64; SEGMENT] = std::array::from_fn(|m| reference[m][band]);
        let mut e: [f64; SEGMENT] = std::array::from_fn(|m| estimate[m][band]);
        let scale = energy(r).sqrt() / (energy(e).sqrt() + f64::EPSILON);
        for (e, r) in e.iter_mut().zip(&r) {
            *e = (*e * scale).min(r * clip);
        }
        remove_mean(&mut r);
        remove_mean(&mut e);
        let norms = (energy(r).sqrt() + f64::EPSILON) * (energy(e).sqrt() + f64::EPSILON);
        r.iter().zip(&e).map(|(r, e)| r * e).sum::<f64>() / norms
    });
    correlations.sum::<f64>() / BANDS as f64
}

/// ESTOI's intermediate measure (eq. 8), averaged over the frames: the correlation over the bands
/// of both segments after their rows, then their columns, were normalised.
fn segment_spectral_correlation(reference: &[Bands], estimate: &[Bands]) -> f64 {
    let normalised = |segment: &[Bands]| {
        let mut columns = [[0.0; BANDS]; SEGMENT];
        for band in 0..BANDS {
            let mut row: [f64; SEGMENT] = std::array::from_fn(|m| segment[m][band]);
            normalise(&mut row);
            for (column, x) in columns.iter_mut().zip(row) {
                column[band] = x;
            }
        }
        columns.iter_mut().for_each(|column| normalise(column));
        columns
    };
    let (r, e) = (normalised(reference), normalised(estimate));
    let correlation: f64 = r.iter().flatten().zip(e.iter().flatten()).map(|(r, e)| r * e).sum();
    correlation / SEGMENT as f64
}

fn remove_mean(values: &mut [f64]) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter_mut().for_each(|x| *x -= mean);
}

/// Normalises the values to mean 0 and norm 1, or to zeros if they are constant within rounding.
fn normalise(values: &mut [f64]) {
    let scale = values.iter().fold(0.0_f64, |peak, x| peak.max(x.abs()));
    remove_mean(values);
    let norm = energy(values.iter().copied()).sqrt();
    if norm > 16.0 * f64::EPSILON * scale {
        values.iter_mut().for_each(|x| *x /= norm);
    } else {
        values.fill(0.0);
    }
}
