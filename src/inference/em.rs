//! Expectation maximisation by multiplicative updates.

use super::state::{ENTRIES, Separation, TILE_FRAMES, UpdateMask, sum};
use crate::kernels::vector;
use crate::model::ImpulseVariables;
use crate::parallel::*;

/// Keeps ratios of update terms finite.
pub(super) const MIN_TERM: f32 = 1e-20;

impl Separation {
    /// One sweep of expectation maximisation on the posterior with the impulse variables integrated out: every free factor
    /// is multiplied by `(numerator / denominator)^update_exponent`, all from the same expectations. Activations of speech
    /// are free unless fixed.
    pub(crate) fn em_step(&mut self, update_exponent: f32, free: UpdateMask) {
        let continuation = self.continuation;
        let Self {
            mixture, tiles, pool, speech_prior, noise_prior, drift, table, response, dictionary, ..
        } = self;
        let impulses = ImpulseVariables::Integrated(table);
        let (rank, split) = (mixture.rank(), mixture.speech_rank());
        let first = if continuation.is_some() { split } else { 0 };
        let updated = first..if free.noise { rank } else { split };
        let (shared, bins) = (&*mixture, mixture.bins);
        let free_drift = drift.filter(|_| free.noise);
        let spectra_free = free.noise && drift.is_none();
        tiles.par_iter_mut().with_max_len(1).for_each_init(
            || pool.take(),
            |workspace, tile| {
                let mut dispersed = workspace.disperse(shared, &tile.activations).modulated(&tile.field);
                let shares = dispersed.evaluate(impulses, &tile.power);
                if let Some(smoothing) = &free_drift {
                    let (numerator, denominator) = (&mut tile.field_numerator, &mut tile.field_denominator);
                    shares.of_noise(numerator, denominator);
                    smoothing.over_bins([numerator, denominator]);
                }
                let terms = shares.update_terms();
                terms.activations(&mut tile.numerator, &mut tile.denominator);
                if spectra_free {
                    let (numerator, denominator) = (&mut tile.noise_numerator, &mut tile.noise_denominator);
                    numerator.fill(0.0);
                    denominator.fill(0.0);
                    terms.add_noise(numerator, denominator);
                }
                if free.response {
                    let (numerator, denominator) =
                        (&mut tile.response_numerator, &mut tile.response_denominator);
                    numerator.fill(0.0);
                    denominator.fill(0.0);
                    terms.add_gain(numerator, denominator);
                }
                if let Some(continuation) = &continuation {
                    let (numerator, denominator) =
                        (&mut tile.continuation_numerator, &mut tile.continuation_denominator);
                    numerator.fill(0.0);
                    denominator.fill(0.0);
                    terms.add_continuation(continuation, numerator, denominator);
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
        if let Some(smoothing) = free_drift {
            let parts = tiles.iter().map(|tile| (&tile.field_numerator, &tile.field_denominator));
            let (numerator, denominator) = smoothing.over_frames(parts);
            let parts =
                numerator.par_chunks(TILE_FRAMES * bins).zip(denominator.par_chunks(TILE_FRAMES * bins));
            tiles.par_iter_mut().zip(parts).for_each(|(tile, (numerator, denominator))| {
                multiply(&mut tile.field, numerator, denominator, update_exponent);
            });
        }
        if spectra_free {
            let (numerator, mut denominator) =
                sum(tiles, |tile| (&tile.noise_numerator, &tile.noise_denominator));
            noise_prior.add_gradient(&mixture.noise.spectra, &mut denominator);
            multiply(&mut mixture.noise.spectra, &numerator, &denominator, update_exponent);
        }
        if free.response {
            let (numerator, denominator) =
                sum(tiles, |tile| (&tile.response_numerator, &tile.response_denominator));
            response.update(&numerator, &denominator, update_exponent);
            response.shape(dictionary, &mut mixture.speech.spectra);
        }
    }
}

/// A multiplicative update of `factor` by `(numerator / denominator)^update_exponent`.
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
