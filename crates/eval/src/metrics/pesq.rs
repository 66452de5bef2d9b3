//! Wide-band PESQ by the `pesq` crate.

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
    let integers = |samples: &[f64]| -> Vec<i16> {
        samples.iter().map(|x| (x * 32_768.0).round().clamp(-32_768.0, 32_767.0) as i16).collect()
    };
    pesq::pesq_wb(&integers(reference), &integers(estimate)).map(f64::from).map_err(|error| {
        MetricError::TooShort {
            metric: "wide-band PESQ",
            required: "speech of at least 0.25 s".into(),
            found: error.to_string(),
        }
    })
}
