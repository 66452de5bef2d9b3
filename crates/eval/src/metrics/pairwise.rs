//! Measures that compare sample by sample: SNR, SI-SDR and segmental SNR.

use super::{MetricError, Sample, check, decibels, energy};
use alphamf::signal::counted;

/// Duration of a segment of the segmental SNR in seconds.
const SEGMENT_SECONDS: f64 = 0.03;
/// Range in dB to which the SNR of a segment is limited (Hansen and Pellom 1998).
const SEGMENT_RANGE_DB: (f64, f64) = (-10.0, 35.0);
/// Fraction of the strongest segment's energy below which segments are pauses and omitted.
const PAUSE: f64 = 1e-6;
/// Minimum energy of the difference, and minimum ratio, in a segment.
const TINY: f64 = 1e-20;

/// Signal-to-noise ratio in dB: the energy of the reference over that of the difference.
///
/// Equal signals give `+inf`, a silent estimate gives 0 dB.
///
/// # Errors
/// [`MetricError`] for unequal lengths, non-finite samples or a silent reference.
pub fn snr<R: Sample, E: Sample>(reference: &[R], estimate: &[E]) -> Result<f64, MetricError> {
    let (reference, estimate) = (&*R::widen(reference), &*E::widen(estimate));
    check(reference, estimate)?;
    let difference = energy(reference.iter().zip(estimate).map(|(r, e)| r - e));
    Ok(decibels(energy(reference.iter().copied()), difference))
}

/// Scale-invariant signal-to-distortion ratio in dB (Le Roux, Wisdom, Erdogan and Hershey, "SDR -
/// half-baked or well done?", ICASSP 2019), the mean not removed.
///
/// The reference is scaled to lie closest to the estimate; the rest is distortion. An estimate
/// equal to the reference gives `+inf`, one that is silent or orthogonal to the reference `-inf`.
///
/// # Errors
/// [`MetricError`] for unequal lengths, non-finite samples or a silent reference.
pub fn si_sdr<R: Sample, E: Sample>(reference: &[R], estimate: &[E]) -> Result<f64, MetricError> {
    let (reference, estimate) = (&*R::widen(reference), &*E::widen(estimate));
    check(reference, estimate)?;
    let product: f64 = reference.iter().zip(estimate).map(|(r, e)| r * e).sum();
    let scale = product / energy(reference.iter().copied());
    let target = energy(reference.iter().map(|r| scale * r));
    let distortion = energy(reference.iter().zip(estimate).map(|(r, e)| scale * r - e));
    Ok(decibels(target, distortion))
}

/// Segmental signal-to-noise ratio in dB.
///
/// The mean, over segments of 30 ms without overlap, of the SNR in the segment limited to -10..35 dB. Segments whose
/// reference energy is at or below a millionth (-60 dB) of the strongest segment's are omitted, as are the samples
/// after the last whole segment.
///
/// # Errors
/// [`MetricError`] for unequal lengths, non-finite samples, less than one segment, or a reference that is silent within
/// the whole segments.
pub fn segmental_snr<R: Sample, E: Sample>(
    reference: &[R],
    estimate: &[E],
    sample_rate: u32,
) -> Result<f64, MetricError> {
    let (reference, estimate) = (&*R::widen(reference), &*E::widen(estimate));
    check(reference, estimate)?;
    let length = (SEGMENT_SECONDS * f64::from(sample_rate)) as usize;
    if length == 0 || reference.len() < length {
        return Err(MetricError::TooShort {
            metric: "segmental SNR",
            required: format!("one segment of 30 ms ({} samples)", length.max(1)),
            found: counted(reference.len() as u64, "sample"),
        });
    }
    let segments: Vec<(f64, f64)> = reference
        .chunks_exact(length)
        .zip(estimate.chunks_exact(length))
        .map(|(r, e)| {
            let signal = energy(r.iter().copied());
            (signal, energy(r.iter().zip(e).map(|(r, e)| r - e)))
        })
        .collect();
    let strongest = segments.iter().map(|s| s.0).fold(0.0, f64::max);
    let (mut sum, mut count) = (0.0, 0.0);
    for &(signal, difference) in segments.iter().filter(|s| s.0 > PAUSE * strongest) {
        let ratio = 10.0 * (signal / difference.max(TINY) + TINY).log10();
        sum += ratio.clamp(SEGMENT_RANGE_DB.0, SEGMENT_RANGE_DB.1);
        count += 1.0;
    }
    if count == 0.0 { Err(MetricError::SilentReference) } else { Ok(sum / count) }
}
