//! Continuation of spectra above a dictionary's band: piecewise linear between knots.

use super::mixture::Scalar;
use crate::kernels::products::{Columns, accumulate_outer};

/// Distance between knots, Hz.
const KNOT_HERTZ: f64 = 500.0;

/// Distance between knots in bins, which are `bin_hertz` apart.
pub(crate) fn knot_spacing(bin_hertz: f64) -> usize {
    ((KNOT_HERTZ / bin_hertz).round() as usize).max(1)
}

/// A band of bins over which spectra are linear between equidistant knots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Continuation {
    bins: usize,
    spacing: usize,
}

impl Continuation {
    /// Creates a band of `bins` bins, with knots at the first bin and every `spacing` bins above it.
    #[must_use]
    pub fn new(bins: usize, spacing: usize) -> Self {
        Self { bins, spacing: spacing.max(1) }
    }

    /// Number of knots; the last is at or above the last bin.
    #[must_use]
    pub fn knots(&self) -> usize {
        self.bins.saturating_sub(1).div_ceil(self.spacing) + 1
    }

    /// Returns the knot at or below a bin, and the weight of the next knot.
    fn place<T: Scalar>(&self, bin: usize) -> (usize, T) {
        let (knot, rest) = (bin / self.spacing, bin % self.spacing);
        (knot, T::convert(rest as f32 / self.spacing as f32))
    }

    /// Interpolates spectra (bins x columns) from their values at the knots (knots x columns).
    #[must_use]
    pub fn spectra<T: Scalar>(&self, values: &[T]) -> Vec<T> {
        let mut spectra = vec![T::zero(); values.len() / self.knots() * self.bins];
        let columns = values.chunks_exact(self.knots()).zip(spectra.chunks_exact_mut(self.bins.max(1)));
        columns.for_each(|(values, spectrum)| self.fill(values, spectrum));
        spectra
    }

    /// Writes one spectrum, interpolated from its values at the knots.
    pub fn fill<T: Scalar>(&self, values: &[T], spectrum: &mut [T]) {
        for (bin, out) in spectrum.iter_mut().enumerate() {
            let (knot, weight) = self.place::<T>(bin);
            let above = values[(knot + 1).min(values.len() - 1)];
            *out = values[knot] + weight * (above - values[knot]);
        }
    }

    /// Adds the update terms of the values at the knots, `fold(terms) H'` (knots x rank), to `sums`. `terms` are the
    /// update terms of the dispersions (bins x frames), and `H` the activations (rank x frames).
    pub(super) fn add_terms<T: Scalar>(&self, terms: &[T], activations: Columns<T>, sums: &mut [T]) {
        let mut folded = vec![T::zero(); terms.len() / self.bins * self.knots()];
        for (terms, folded) in terms.chunks_exact(self.bins).zip(folded.chunks_exact_mut(self.knots())) {
            for (bin, &term) in terms.iter().enumerate() {
                let (knot, weight) = self.place::<T>(bin);
                let above = (knot + 1).min(folded.len() - 1);
                folded[knot] += term - weight * term;
                folded[above] += weight * term;
            }
        }
        accumulate_outer(Columns::new(&folded, self.knots()), activations, sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spectra_are_straight_between_knots_and_folding_is_the_transpose() {
        for (bins, spacing, knots) in [(1, 4, 1), (5, 4, 2), (6, 4, 3), (9, 1, 9)] {
            let continuation = Continuation::new(bins, spacing);
            assert_eq!(continuation.knots(), knots);
            let values: Vec<f64> = (0..knots).map(|knot| ((knot * knot) as f64).sin()).collect();
            let spectra = continuation.spectra(&values);
            assert_eq!(spectra.len(), bins);
            for (knot, value) in values.iter().enumerate().filter(|(knot, _)| knot * spacing < bins) {
                assert_eq!(spectra[knot * spacing], *value);
            }
            // <terms, B values> = <B' terms, values>.
            let terms: Vec<f64> = (0..bins).map(|bin| (bin as f64).cos()).collect();
            let mut folded = vec![0.0; knots];
            continuation.add_terms(&terms, Columns::new(&[1.0], 1), &mut folded);
            let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            assert!((product(&terms, &spectra) - product(&folded, &values)).abs() < 1e-12);
        }
    }
}
