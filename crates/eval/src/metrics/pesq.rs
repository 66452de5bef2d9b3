//! PESQ, narrow and wide band, by the `pesq` crate.

use super::{MetricError, Sample, check};

/// Wide-band PESQ (ITU-T P.862.2): predicted mean opinion score, 1.02 (bad) to 4.64 (excellent),
/// of 16 kHz signals in which the full range is -1 to 1.
///
/// # Errors
/// [`MetricError`] for unlike lengths, non-finite samples, a silent reference, a rate other than
/// 16 kHz, or less than a quarter of a second of speech.
pub fn wide_band_pesq<R: Sample, E: Sample>(
    reference: &[R],
    estimate: &[E],
    sample_rate: u32,
) -> Result<f64, MetricError> {
    let (reference, estimate) = (&*R::widen(reference), &*E::widen(estimate));
    check(reference, estimate)?;
    if sample_rate != 16_000 {
        return Err(MetricError::SampleRate {
            metric: "wide-band PESQ",
            rate: sample_rate,
            expected: "16000 Hz",
        });
    }
    let (reference, estimate) = audible("wide-band PESQ", reference, estimate)?;
    pesq::pesq_wb(&reference, &estimate).map(f64::from).map_err(too_short("wide-band PESQ"))
}

/// Narrow-band PESQ (ITU-T P.862 with the mapping of P.862.1): predicted mean opinion score, 1.02 (bad) to 4.55
/// (excellent), of 8 or 16 kHz signals in which the full range is -1 to 1.
///
/// # Errors
/// [`MetricError`] for unlike lengths, non-finite samples, a silent reference, another rate, or less than a quarter of a
/// second of speech.
pub fn narrow_band_pesq<R: Sample, E: Sample>(
    reference: &[R],
    estimate: &[E],
    sample_rate: u32,
) -> Result<f64, MetricError> {
    const METRIC: &str = "narrow-band PESQ";
    let (reference, estimate) = (&*R::widen(reference), &*E::widen(estimate));
    check(reference, estimate)?;
    let score = match sample_rate {
        8_000 => pesq::pesq_8k,
        16_000 => pesq::pesq,
        rate => {
            return Err(MetricError::SampleRate { metric: METRIC, rate, expected: "8000 or 16000 Hz" });
        }
    };
    let (reference, estimate) = audible(METRIC, reference, estimate)?;
    let raw = score(&reference, &estimate).map_err(too_short(METRIC))?;
    Ok(f64::from(pesq::score::mos_lqo(f64::from(raw))))
}

/// Both signals in 16 bits; PESQ does not define a score for silence.
fn audible(
    metric: &'static str,
    reference: &[f64],
    estimate: &[f64],
) -> Result<(Vec<i16>, Vec<i16>), MetricError> {
    let signals = (integers(reference), integers(estimate));
    if [&signals.0, &signals.1].into_iter().all(|samples| samples.iter().any(|x| *x != 0)) {
        return Ok(signals);
    }
    Err(MetricError::TooShort {
        metric,
        required: "speech of at least 0.25 s".into(),
        found: "silence".into(),
    })
}

fn integers(samples: &[f64]) -> Vec<i16> {
    samples.iter().map(|x| (x * 32_768.0).round().clamp(-32_768.0, 32_767.0) as i16).collect()
}

fn too_short(metric: &'static str) -> impl FnOnce(pesq::PesqError) -> MetricError {
    move |error| MetricError::TooShort {
        metric,
        required: "speech of at least 0.25 s".into(),
        found: error.to_string(),
    }
}
