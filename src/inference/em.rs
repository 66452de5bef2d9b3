//! Expectation maximisation by multiplicative updates.

use super::noise_drift::Smoothing;
use super::state::{ENTRIES, Separation, TILE_FRAMES, UpdateMask, sum};
use crate::kernels::vector;
use crate::model::ImpulseVariables;
use crate::parallel::*;

/// Minimum denominator, which keeps ratios of update terms finite.
pub(super) const MIN_TERM: f32 = 1e-20;

impl Separation {
    /// Runs one sweep of expectation maximisation on the posterior with the impulse variables integrated out. Every
    /// free factor is multiplied by `(numerator / denominator)^update_exponent`, all from the same expectations.
    /// Activations of speech are free unless fixed. The terms lack the factor `2 / alpha` of the potential's slopes, so
    /// priors count `2 / alpha` times as much as in Gibbs sweeps.
    pub(crate) fn em_step(&mut self, update_exponent: f32, free: UpdateMask) {
        self.update_tiles(update_exponent, free);
        if free.noise {
            match self.drift {
                Some(smoothing) => self.update_field(&smoothing, update_exponent),
                None => self.update_noise_spectra(update_exponent),
            }
        }
        if free.response {
            self.update_response(update_exponent);
        }
    }

    /// Computes the update terms of all free factors in every tile, and updates the activations.
    fn update_tiles(&mut self, update_exponent: f32, free: UpdateMask) {
        let Self { mixture, tiles, pool, speech_prior, noise_prior, drift, table, continuation, .. } = self;
        let (mixture, drift, continuation) = (&*mixture, &*drift, &*continuation);
        let impulses = ImpulseVariables::Integrated(table);
        let (rank, split) = (mixture.rank(), mixture.speech_rank());
        let first = if continuation.is_some() { split } else { 0 };
        let updated = first..if free.noise { rank } else { split };
        tiles.par_iter_mut().with_max_len(1).for_each_init(
            || pool.take(),
            |workspace, tile| {
                let mut dispersed = workspace.disperse(mixture, &tile.activations).modulated(&tile.field);
                let shares = dispersed.evaluate(impulses, &tile.power);
                if free.noise
                    && let Some(smoothing) = drift
                {
                    let (numerator, denominator) = (&mut tile.field_numerator, &mut tile.field_denominator);
                    shares.of_noise(numerator, denominator);
                    smoothing.over_bins([numerator, denominator]);
                }
                let terms = shares.update_terms();
                terms.activations(&mut tile.numerator, &mut tile.denominator);
                if free.noise && drift.is_none() {
                    let sums = zeroed([&mut tile.noise_numerator, &mut tile.noise_denominator]);
                    terms.add_noise(sums.0, sums.1);
                }
                if free.response {
                    let sums = zeroed([&mut tile.response_numerator, &mut tile.response_denominator]);
                    terms.add_gain(sums.0, sums.1);
                }
                if let Some(continuation) = continuation {
                    let sums = zeroed([&mut tile.continuation_numerator, &mut tile.continuation_denominator]);
                    terms.add_continuation(continuation, sums.0, sums.1);
                }
                let columns = tile.numerator.chunks_exact(rank).zip(tile.denominator.chunks_exact_mut(rank));
                for (column, (numerator, denominator)) in tile.activations.chunks_exact_mut(rank).zip(columns)
                {
                    speech_prior.add_gradient(&column[..split], &mut denominator[..split]);
                    noise_prior.add_gradient(&column[split..], &mut denominator[split..]);
                    let (numerator, denominator) =
                        (&numerator[updated.clone()], &denominator[updated.clone()]);
                    multiply(&mut column[updated.clone()], numerator, denominator, update_exponent);
                }
            },
        );
    }

    fn update_field(&mut self, smoothing: &Smoothing, update_exponent: f32) {
        let parts = self.tiles.iter().map(|tile| (&tile.field_numerator, &tile.field_denominator));
        let (numerator, denominator) = smoothing.over_frames(parts);
        let length = TILE_FRAMES * self.mixture.bins;
        let parts = numerator.par_chunks(length).zip(denominator.par_chunks(length));
        self.tiles.par_iter_mut().zip(parts).for_each(|(tile, (numerator, denominator))| {
            multiply(&mut tile.field, numerator, denominator, update_exponent);
        });
    }

    fn update_noise_spectra(&mut self, update_exponent: f32) {
        let (numerator, mut denominator) =
            sum(&self.tiles, |tile| (&tile.noise_numerator, &tile.noise_denominator));
        let spectra = &mut self.mixture.noise.spectra;
        self.noise_prior.add_gradient(spectra, &mut denominator);
        multiply(spectra, &numerator, &denominator, update_exponent);
    }

    fn update_response(&mut self, update_exponent: f32) {
        let (numerator, denominator) =
            sum(&self.tiles, |tile| (&tile.response_numerator, &tile.response_denominator));
        self.response.update(&numerator, &denominator, update_exponent);
        self.response.shape(&self.dictionary, &mut self.mixture.speech.spectra);
    }
}

/// Sets a numerator and a denominator to zero, and returns them.
fn zeroed([numerator, denominator]: [&mut Vec<f32>; 2]) -> (&mut [f32], &mut [f32]) {
    numerator.fill(0.0);
    denominator.fill(0.0);
    (numerator, denominator)
}

/// Multiplies `factor` by `(numerator / denominator)^update_exponent`.
pub(crate) fn multiply(factor: &mut [f32], numerator: &[f32], denominator: &[f32], update_exponent: f32) {
    vector::dispatch(
        #[inline(always)]
        || {
            for ((value, numerator), denominator) in factor.iter_mut().zip(numerator).zip(denominator) {
                let step = vector::powf(numerator / denominator.max(MIN_TERM), update_exponent);
                *value = (*value * step).clamp(ENTRIES.0, ENTRIES.1);
            }
        },
    );
}
