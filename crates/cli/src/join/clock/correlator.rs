//! Generalised cross-correlation with phase transform.

use alphamf_fourier::{ComplexToReal, RealToComplex, forward, inverse};
use num_complex::Complex;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Frequencies that are correlated, Hz: without rumble and those that telephone microphones lack.
const BAND_HERTZ: RangeInclusive<f64> = 100.0..=6_000.0;

/// Correlates two takes.
pub(super) struct Correlator {
    /// Length of the transforms.
    size: usize,
    /// Spacing of their bins, Hz.
    hertz: f64,
    forward: Arc<dyn RealToComplex<f32>>,
    inverse: Arc<dyn ComplexToReal<f32>>,
}

impl Correlator {
    /// Creates a correlator for two takes with `samples` samples in total, at a sample rate in Hz.
    pub(super) fn new(samples: usize, rate: f64) -> Self {
        let size = samples.next_power_of_two();
        Self { size, hertz: rate / size as f64, forward: forward(size), inverse: inverse(size) }
    }

    /// Computes the spectrum of zero-padded samples.
    pub(super) fn spectrum(&self, samples: &[f32]) -> Option<Vec<Complex<f32>>> {
        let (mut padded, mut bins) = (self.forward.make_input_vec(), self.forward.make_output_vec());
        padded[..samples.len()].copy_from_slice(samples);
        self.forward.process(&mut padded, &mut bins).ok().map(|()| bins)
    }

    /// The largest peak of either sign among `shifts` of `take` against `reference`, samples: `take[n + shift]` is `reference[n]`.
    /// `None` if it is not above `least` times the root mean square, or if there are no shifts.
    pub(super) fn peak(
        &self,
        reference: &[f32],
        take: &[f32],
        shifts: RangeInclusive<isize>,
        least: f64,
    ) -> Option<Peak> {
        self.peak_with(reference, &self.spectrum(take)?, shifts, least)
    }

    /// As [`peak`](Self::peak), from the spectrum of the take.
    pub(super) fn peak_with(
        &self,
        reference: &[f32],
        of_take: &[Complex<f32>],
        shifts: RangeInclusive<isize>,
        least: f64,
    ) -> Option<Peak> {
        if shifts.is_empty() {
            return None;
        }
        let Self { size, hertz, inverse, .. } = self;
        let mut cross = self.spectrum(reference)?;
        for (bin, (reference, take)) in cross.iter_mut().zip(of_take).enumerate() {
            let product = take * reference.conj();
            let power = product.norm();
            // For very faint or very loud sounds, the product underflows or overflows.
            let is_exact = power > f32::MIN_POSITIVE && power.is_finite();
            let counts = BAND_HERTZ.contains(&(bin as f64 * hertz)) && is_exact;
            *reference = if counts { product / power } else { Default::default() };
        }
        let mut correlation = inverse.make_output_vec();
        inverse.process(&mut cross, &mut correlation).ok()?;
        let at = |shift: isize| f64::from(correlation[shift.rem_euclid(*size as isize) as usize]);
        let (mut best, mut squares) = (*shifts.start(), 0.0);
        for shift in shifts.clone() {
            squares += at(shift) * at(shift);
            if at(shift).abs() > at(best).abs() {
                best = shift;
            }
        }
        let deviation = (squares / shifts.count() as f64).sqrt();
        let is_inverted = at(best) < 0.0;
        let upright = |shift| if is_inverted { -at(shift) } else { at(shift) };
        if upright(best) <= least * deviation {
            return None;
        }
        let height = upright(best) / deviation;
        // The top of the parabola through the peak and its neighbours.
        let [before, peak, after] = [best - 1, best, best + 1].map(upright);
        let bend = before - 2.0 * peak + after;
        let top = if bend < 0.0 { 0.5 * (before - after) / bend } else { 0.0 };
        Some(Peak { shift: best as f64 + top.clamp(-0.5, 0.5), height, is_inverted })
    }
}

/// A peak of a correlation.
pub(super) struct Peak {
    /// Position, samples.
    pub(super) shift: f64,
    /// Height relative to the RMS of the correlation.
    pub(super) height: f64,
    /// Whether the take has the opposite sign.
    pub(super) is_inverted: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_at_the_shift_of_the_take_and_none_without_shifts() {
        let noise: Vec<f32> =
            (0..600).map(|n: u32| (n.wrapping_mul(2_654_435_761) % 1009) as f32 - 504.0).collect();
        let correlator = Correlator::new(1200, 8000.0);
        let peak = |shifts| correlator.peak(&noise[7..], &noise, shifts, 3.0).map(|peak| peak.shift.round());
        assert_eq!(peak(-20..=20), Some(7.0));
        assert_eq!(peak(RangeInclusive::new(20, -20)), None);
    }
}
