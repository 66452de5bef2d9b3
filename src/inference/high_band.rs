//! High-band extension: speech above the dictionary's band.
//!
//! Activations are those of the dictionary's band. Each dictionary entry continues above that band as a smooth
//! spectrum, whose prior is the dictionary's continuation, or flat without one. This spectrum is estimated together
//! with the noise. The high band does not affect the activations, so the result below it equals that of a recording
//! without a high band.

use super::state::{BandState, ENTRIES, Separation, Start, UpdateMask};
use crate::model::{Continuation, MarginalTable, Mixture, knot_spacing};
use crate::random::SeedTree;
use std::sync::Arc;

/// Pseudo-count of the prior of a knot, per dictionary entry.
const PRIOR_COUNT: f32 = 64.0;

/// The high band of a block.
pub(crate) struct HighBand {
    separation: Separation,
    spectra: HighBandSpectra,
}

/// The spectra of speech above the dictionary's band, as dispersions at knots.
#[derive(Debug, Clone)]
pub(crate) struct HighBandSpectra {
    pub continuation: Continuation,
    /// Dispersion of each entry at the top of the dictionary's band.
    edge: Vec<f32>,
    /// Prior ratio of each knot to the knot below it, of the lowest to the edge; knots x rank.
    steps: Vec<f32>,
    /// Dispersions at the knots, knots x rank.
    pub knots: Vec<f32>,
}

/// High-band state carried over to the next block.
#[derive(Debug, Clone)]
pub(crate) struct HighBandState {
    knots: Vec<f32>,
    noise: BandState,
}

impl HighBandSpectra {
    /// The prior spectra of `bins` bins, `bin_hertz` apart, above the `known` bins of `below` (known x rank). They
    /// follow the dictionary's `continuation`, and are level beyond its end.
    pub(crate) fn new(
        bins: usize,
        bin_hertz: f64,
        below: &[f32],
        known: usize,
        continuation: Option<&[f32]>,
    ) -> Self {
        let spacing = knot_spacing(bin_hertz);
        let grid = Continuation::new(bins, spacing);
        let top = known - (spacing.min(known) / 2).max(1);
        let edge: Vec<f32> = below
            .chunks_exact(known)
            .map(|spectrum| spectrum[top..].iter().sum::<f32>() / (known - top) as f32)
            .collect();
        let mut steps = vec![1.0; grid.knots() * edge.len()];
        if let Some(learned) = continuation {
            let of_entries = learned.chunks_exact(learned.len() / edge.len());
            for (steps, learned) in steps.chunks_exact_mut(grid.knots()).zip(of_entries) {
                steps.iter_mut().zip(learned).for_each(|(step, learned)| *step = *learned);
            }
        }
        let mut knots = Vec::with_capacity(steps.len());
        for (steps, &edge) in steps.chunks_exact(grid.knots()).zip(&edge) {
            knots.extend(steps.iter().scan(edge, |below, step| {
                *below = (*below * step).clamp(ENTRIES.0, ENTRIES.1);
                Some(*below)
            }));
        }
        Self { continuation: grid, edge, steps, knots }
    }

    /// Updates the knots multiplicatively by their update terms (knots x rank).
    pub(crate) fn update(&mut self, numerator: &[f32], denominator: &[f32], exponent: f32) {
        let count = self.continuation.knots();
        let columns = self.knots.chunks_exact_mut(count).zip(&self.edge).zip(self.steps.chunks_exact(count));
        for (((column, &edge), steps), (numerator, denominator)) in
            columns.zip(numerator.chunks_exact(count).zip(denominator.chunks_exact(count)))
        {
            // A gamma prior whose mode follows from the knot below.
            let mut below = edge;
            for (((value, step), numerator), denominator) in
                column.iter_mut().zip(steps).zip(numerator).zip(denominator)
            {
                let mode = (below * step).clamp(ENTRIES.0, ENTRIES.1);
                let ratio = (numerator + PRIOR_COUNT / *value) / (denominator + PRIOR_COUNT / mode);
                *value = (*value * libm::powf(ratio, exponent)).clamp(ENTRIES.0, ENTRIES.1);
                below = *value;
            }
        }
    }

    /// Copies the lowest knots of `other`, which has at least as many.
    fn copy_knots(&mut self, other: &Self) {
        let (count, others) = (self.continuation.knots(), other.continuation.knots());
        for (column, other) in self.knots.chunks_exact_mut(count).zip(other.knots.chunks_exact(others)) {
            column.copy_from_slice(&other[..count]);
        }
    }

    /// Adds the update terms of the lowest knots, or of all knots (knots x rank), to `sums`.
    pub(crate) fn add(&self, terms: &[f32], sums: &mut [f32]) {
        let (count, lowest) = (self.continuation.knots(), terms.len() / self.edge.len());
        for (sums, terms) in sums.chunks_exact_mut(count).zip(terms.chunks_exact(lowest)) {
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
    }

    /// The ratio of each knot to the knot below it, of the lowest to the edge; knots x rank.
    pub(crate) fn ratios(&self) -> Vec<f32> {
        let columns = self.knots.chunks_exact(self.continuation.knots()).zip(&self.edge);
        columns
            .flat_map(|(column, edge)| {
                let below = std::iter::once(edge).chain(column);
                column.iter().zip(below).map(|(value, below)| value / below)
            })
            .collect()
    }
}

impl HighBand {
    /// The initial state for powers `|X|^2` (bins above x frames), above the separated band `below`, with the dictionary's
    /// continuation.
    pub(crate) fn new(
        start: &Start,
        power: &[f32],
        below: &Separation,
        continuation: Option<&[f32]>,
        previous: Option<&HighBandState>,
        table: &Arc<MarginalTable>,
        seeds: SeedTree,
    ) -> Self {
        let Mixture { bins: known, speech, .. } = &below.mixture;
        let mut spectra =
            HighBandSpectra::new(start.bins, start.bin_hertz, &speech.spectra, *known, continuation);
        if let Some(previous) = previous {
            spectra.knots.clone_from(&previous.knots);
        }
        let start = Start {
            speech_spectra: &spectra.continuation.spectra(&spectra.knots),
            previous: previous.map(|previous| &previous.noise),
            ..start.clone()
        };
        let mut separation = Separation::new(&start, power, table, seeds);
        separation.fix_activations(below, spectra.continuation);
        Self { separation, spectra }
    }

    /// Runs one sweep of expectation maximisation.
    pub(crate) fn em_step(&mut self, update_exponent: f32, noise: bool) {
        let (numerator, denominator) = self.update_terms(update_exponent, noise);
        self.spectra.update(&numerator, &denominator, update_exponent);
        self.interpolate();
    }

    /// Runs a sweep with fixed spectra of speech, and returns the update terms of their knots (knots x rank).
    pub(crate) fn update_terms(&mut self, update_exponent: f32, noise: bool) -> (Vec<f32>, Vec<f32>) {
        self.separation.em_step(update_exponent, UpdateMask { noise, response: false });
        self.separation.continuation_terms()
    }

    /// Replaces the spectra by those of `other`, which extend at least as high.
    pub(crate) fn set_spectra(&mut self, other: &HighBandSpectra) {
        self.spectra.copy_knots(other);
        self.interpolate();
    }

    /// Recomputes the spectra of speech from their knots.
    fn interpolate(&mut self) {
        let HighBandSpectra { continuation, knots, .. } = &self.spectra;
        self.separation.mixture.speech.spectra = continuation.spectra(knots);
    }

    /// Adds the present gain to the mean.
    pub(crate) fn accumulate(&mut self) {
        self.separation.accumulate();
    }

    /// The mean of the accumulated gains, bins above x frames.
    pub(crate) fn mean_gain(&self) -> Vec<f32> {
        self.separation.mean_gain()
    }

    /// The state to carry over to the next block.
    pub(crate) fn into_state(self) -> HighBandState {
        HighBandState { knots: self.spectra.knots, noise: self.separation.into_state() }
    }
}

impl HighBandState {
    /// Scales the state as if all powers were multiplied by `factor`; the knots are relative to the activations.
    pub(crate) fn scale_power(&mut self, factor: f32, alpha_noise: f64) {
        self.noise.scale_power(factor, alpha_noise);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two spectra of 513 bins 15.625 Hz apart, one level and one 2 at its end, continued by 96 bins, 4 knots.
    fn high_band(continuation: Option<&[f32]>) -> HighBandSpectra {
        let below: Vec<f32> = (0..2 * 513)
            .map(|i| if i < 513 { 1.0 } else { 2.0 * ((i - 513) as f32 / 500.0).min(1.0) })
            .collect();
        HighBandSpectra::new(96, 15.625, &below, 513, continuation)
    }

    #[test]
    fn spectra_start_as_the_dictionary_continues_them_and_stay_level_beyond() {
        let level = high_band(None);
        assert!(level.knots[..4].iter().all(|&knot| knot == 1.0));
        assert!(level.knots[4..].iter().all(|&knot| (knot - 2.0).abs() < 0.02));
        // Continuations with more knots than needed, and with fewer.
        let ratios = [0.5, 0.5, 2.0, 1.0, 9.0, 3.0, 1.0, 1.0, 0.5, 9.0];
        let longer = high_band(Some(&ratios));
        assert_eq!(longer.knots[..4], [0.5, 0.25, 0.5, 0.5]);
        assert!(
            longer
                .ratios()
                .iter()
                .zip([&ratios[..4], &ratios[5..9]].concat())
                .all(|(a, b)| (a - b).abs() < 1e-5)
        );
        assert_eq!(high_band(Some(&[0.5, 0.5, 3.0, 1.0])).knots[..4], [0.5, 0.25, 0.25, 0.25]);
    }

    /// With a window of 1 ms, bins are further apart than knots would be.
    #[test]
    fn wide_bins_continue_the_last_one() {
        let wide = HighBandSpectra::new(3, 1_000.0, &[1.0, 2.0, 3.0, 6.0, 5.0, 4.0], 3, Some(&[0.5, 1.0]));
        assert_eq!(wide.knots, [1.5, 1.5, 1.5, 4.0, 4.0, 4.0]);
    }

    #[test]
    fn knots_keep_their_prior_without_data_and_follow_the_data() {
        let mut spectra = high_band(Some(&[0.5, 0.5, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0]));
        let expected = spectra.knots.clone();
        let mut numerator = vec![0.0; 8];
        for _ in 0..20 {
            spectra.update(&numerator, &numerator.clone(), 0.5);
        }
        let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a / b - 1.0).abs() < 1e-3);
        assert!(near(&spectra.knots, &expected), "{:?}", spectra.knots);
        // Ten thousand bins put the first knot eight times as high: those above keep their ratios to it.
        for _ in 0..200 {
            numerator[0] = 1e4 / spectra.knots[0];
            let mut denominator = vec![0.0; 8];
            denominator[0] = 1e4 / 4.0;
            spectra.update(&numerator, &denominator, 0.5);
        }
        assert!(near(&spectra.knots[..4], &[4.0, 2.0, 4.0, 4.0].map(|x: f32| x * spectra.knots[0] / 4.0)));
        assert!(spectra.knots[0] > 3.5, "{:?}", spectra.knots);
        assert!(near(&spectra.knots[4..], &expected[4..]));
    }
}
