//! PESQ, narrow and wide band, by the `pesq` crate.

use super::{MetricError, Sample, check, resample};

/// Wide-band PESQ (ITU-T P.862.2): predicted mean opinion score, 1.02 (bad) to 4.64 (excellent),
/// of signals at 16 kHz. Like narrow-band PESQ it does not depend on their level.
///
/// # Errors
/// [`MetricError`] for unequal lengths, non-finite samples, a silent reference, a rate other than 16 kHz, or less than
/// a quarter of a second of speech.
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
    let (reference, estimate) = to_16_bit("wide-band PESQ", reference, estimate)?;
    pesq::pesq_wb(&reference, &estimate).map(f64::from).map_err(too_short("wide-band PESQ"))
}

/// Narrow-band PESQ (ITU-T P.862 with the mapping of P.862.1): predicted mean opinion score, 1.02 (bad) to 4.55
/// (excellent), of signals at 8 or 16 kHz; those at 16 kHz are scored at 8 kHz.
///
/// # Errors
/// [`MetricError`] for unequal lengths, non-finite samples, a silent reference, another rate, or less than a quarter of
/// a second of speech.
pub fn narrow_band_pesq<R: Sample, E: Sample>(
    reference: &[R],
    estimate: &[E],
    sample_rate: u32,
) -> Result<f64, MetricError> {
    const METRIC: &str = "narrow-band PESQ";
    let (reference, estimate) = (&*R::widen(reference), &*E::widen(estimate));
    check(reference, estimate)?;
    if ![8_000, 16_000].contains(&sample_rate) {
        return Err(MetricError::SampleRate {
            metric: METRIC,
            rate: sample_rate,
            expected: "8000 or 16000 Hz",
        });
    }
    // At 16 kHz the crate's narrow-band scores differ from those of the reference by up to 1.3.
    let [reference, estimate] = [reference, estimate].map(|samples| resample(samples, sample_rate, 8_000));
    let (reference, estimate) = to_16_bit(METRIC, &reference, &estimate)?;
    let raw = pesq::pesq_8k(&reference, &estimate).map_err(too_short(METRIC))?;
    Ok(f64::from(pesq::score::mos_lqo(f64::from(raw))))
}

/// Converts both signals to 16 bits, with the loudest sample at full scale, like the package `pesq` for Python. Silence
/// is an error, as PESQ does not define its score.
fn to_16_bit(
    metric: &'static str,
    reference: &[f64],
    estimate: &[f64],
) -> Result<(Vec<i16>, Vec<i16>), MetricError> {
    let loudest = reference.iter().chain(estimate).fold(0.0_f64, |loudest, x| loudest.max(x.abs()));
    let integers = |samples: &[f64]| -> Vec<i16> {
        samples.iter().map(|x| (x / loudest * 32_767.0).round() as i16).collect()
    };
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

fn too_short(metric: &'static str) -> impl FnOnce(pesq::PesqError) -> MetricError {
    move |error| MetricError::TooShort {
        metric,
        required: "speech of at least 0.25 s".into(),
        found: error.to_string(),
    }
}
