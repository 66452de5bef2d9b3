//! The band above the dictionary's, where the spectra of speech are learned from the recording.
//!
//! The band below tells how much of each dictionary entry there is in every frame. Given these activations, each
//! entry continues above the dictionary's band as a smooth spectrum, which is learned together with the noise. What
//! is found above does not act back on the activations: below, the result is that of a recording without the
//! upper band.

use super::state::{CarriedBand, ENTRIES, Free, Separation, Start};
use crate::model::{Continuation, MarginalTable};
use crate::random::Streams;
use std::sync::Arc;

/// Distance of the knots between which spectra are straight, Hz.
const KNOT_HERTZ: f64 = 500.0;
/// Bins that the expectation of a flat continuation counts as, per knot and dictionary entry.
const PRIOR_COUNT: f32 = 64.0;

/// The upper band of a stretch of a recording.
pub(super) struct UpperBand {
    separation: Separation,
    continuation: Continuation,
    /// Dispersion of every entry at the top of the band below.
    edge: Vec<f32>,
    /// The same at the knots, knots x rank.
    knots: Vec<f32>,
}

/// What the upper band of one stretch of a recording hands on to the next.
#[derive(Debug, Clone)]
pub(super) struct CarriedUpper {
    knots: Vec<f32>,
    noise: CarriedBand,
}

impl UpperBand {
    /// The start for powers `|X|^2` (bins above x frames), above a band whose factors are known.
    pub(super) fn new(
        start: &Start,
        power: &[f32],
        below: &Separation,
        carried: Option<&CarriedUpper>,
        table: &Arc<MarginalTable>,
        streams: Streams,
    ) -> Self {
        let spacing = (KNOT_HERTZ / start.bin_hertz).round() as usize;
        let continuation = Continuation::new(start.bins, spacing);
        let known = below.mixture.bins;
        let top = known - spacing.min(known) / 2;
        let edge: Vec<f32> = below
            .mixture
            .speech
            .spectra
            .chunks_exact(known)
            .map(|spectrum| spectrum[top..].iter().sum::<f32>() / (known - top) as f32)
            .collect();
        let knots = carried.map_or_else(
            || edge.iter().flat_map(|&edge| std::iter::repeat_n(edge, continuation.knots())).collect(),
            |carried| carried.knots.clone(),
        );
        let start = Start {
            speech_spectra: &continuation.spectra(&knots),
            carried: carried.map(|carried| &carried.noise),
            ..start.clone()
        };
        let mut separation = Separation::new(&start, power, table, streams);
        separation.hold_activations(below, continuation);
        Self { separation, continuation, edge, knots }
    }

    /// One sweep of expectation maximisation.
    pub(super) fn maximise(&mut self, update_exponent: f32, noise: bool) {
        self.separation.maximise(update_exponent, Free { noise, response: false });
        let (raise, lower) = self.separation.continuation_slopes();
        let count = self.continuation.knots();
        let columns = self.knots.chunks_exact_mut(count).zip(&self.edge);
        for ((column, &edge), (raise, lower)) in
            columns.zip(raise.chunks_exact(count).zip(lower.chunks_exact(count)))
        {
            // A gamma prior whose mode is the knot below.
            let mut mode = edge;
            for ((value, raise), lower) in column.iter_mut().zip(raise).zip(lower) {
                let ratio = (raise + PRIOR_COUNT / *value) / (lower + PRIOR_COUNT / mode);
                *value = (*value * libm::powf(ratio, update_exponent)).clamp(ENTRIES.0, ENTRIES.1);
                mode = *value;
            }
        }
        self.separation.mixture.speech.spectra = self.continuation.spectra(&self.knots);
    }

    /// Adds the present gain to the mean.
    pub(super) fn accumulate(&mut self) {
        self.separation.accumulate();
    }

    /// The mean of the gains that were accumulated (bins above x frames).
    pub(super) fn mean_gain(&self) -> Vec<f32> {
        self.separation.mean_gain()
    }

    /// What the next stretch may start from.
    pub(super) fn carry(self) -> CarriedUpper {
        CarriedUpper { knots: self.knots, noise: self.separation.carry() }
    }
}

impl CarriedUpper {
    /// Changes the unit of power; the knots are relative to the activations.
    pub(super) fn scale_power(&mut self, factor: f32, alpha_noise: f64) {
        self.noise.scale_power(factor, alpha_noise);
    }
}
