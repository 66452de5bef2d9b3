//! Minibatch gradients (`hamcmc-2016`, section 4.2).

use super::super::factor_target::{ActivationTarget, NoiseTarget};
use super::super::state::entries_per_tile;
use super::Redraw;
use crate::model::{Factor, ImpulseVariables, Mixture, SampledVariables};
use crate::samplers::Minibatch;

impl ActivationTarget<'_> {
    /// The derivatives (rank x frames) of the data terms of `batch` alone: other bins are not evaluated.
    pub(in crate::inference) fn differentiate_batch(
        &mut self,
        theta: &[f32],
        batch: Minibatch<'_>,
        gradient: &mut [f32],
    ) {
        let Self { mixture, table, sampled, power, field, workspace, .. } = self;
        let (bins, weights) = distinct(batch);
        let gather = |matrix: &[f32]| -> Vec<f32> {
            matrix.chunks_exact(mixture.bins).flat_map(|column| bins.iter().map(|&bin| column[bin])).collect()
        };
        let factor = |factor: &Factor<f32>| Factor { spectra: gather(&factor.spectra), ..*factor };
        let part =
            Mixture { bins: bins.len(), speech: factor(&mixture.speech), noise: factor(&mixture.noise) };
        let (power, field) = (gather(power), gather(field));
        let mut dispersed = workspace.disperse(&part, theta).modulated(&field);
        let chosen;
        let impulses = match sampled {
            None => ImpulseVariables::Integrated(table),
            Some(Redraw { values, due }) => {
                let mut gathered =
                    SampledVariables { speech: gather(&values.speech), noise: gather(&values.noise) };
                if let Some((step, rng)) = due.take() {
                    step.step(&mut gathered, &part, dispersed.dispersions(), &power, rng);
                    for (all, new) in
                        [(&mut values.speech, &gathered.speech), (&mut values.noise, &gathered.noise)]
                    {
                        let columns = all.chunks_exact_mut(mixture.bins).zip(new.chunks_exact(bins.len()));
                        for (all, new) in columns {
                            bins.iter().zip(new).for_each(|(&bin, &new)| all[bin] = new);
                        }
                    }
                }
                chosen = gathered;
                ImpulseVariables::Sampled(&chosen)
            }
        };
        let derivatives = dispersed.evaluate(impulses, &power).update_terms().differentiate();
        derivatives.weighted(&weights).activations(gradient);
    }
}

impl NoiseTarget<'_> {
    /// The gradient (bins x rank) of the data terms of `batch` alone.
    pub(in crate::inference) fn differentiate_batch(&self, batch: Minibatch<'_>, gradient: &mut [f32]) {
        let Self { mixture, tiles, impulses, pool, .. } = self;
        let (frames, weights) = distinct(batch);
        let bins = mixture.bins;
        let per_tile = entries_per_tile(tiles) / bins;
        let activations = gather(&frames, per_tile, mixture.rank(), |tile| &tiles[tile].activations);
        let power = gather(&frames, per_tile, bins, |tile| &tiles[tile].power);
        let field = gather(&frames, per_tile, bins, |tile| &tiles[tile].field);
        let chosen;
        let impulses = match impulses.first() {
            Some(ImpulseVariables::Integrated(table)) => ImpulseVariables::Integrated(table),
            _ => {
                let [speech, noise] = [0, 1].map(|source| {
                    gather(&frames, per_tile, bins, |tile| match impulses[tile] {
                        ImpulseVariables::Sampled(values) => [&values.speech[..], &values.noise][source],
                        ImpulseVariables::Integrated(_) => &[],
                    })
                });
                chosen = SampledVariables { speech, noise };
                ImpulseVariables::Sampled(&chosen)
            }
        };
        let mut workspace = pool.take();
        let mut dispersed = workspace.disperse(mixture, &activations).modulated(&field);
        let derivatives = dispersed.evaluate(impulses, &power).update_terms().differentiate();
        derivatives.add_weighted_noise(&weights, gradient);
    }
}

/// The columns `frames` of a matrix of `rows` rows that is divided into tiles of `per_tile` frames; empty for an empty
/// matrix.
fn gather<'a>(frames: &[usize], per_tile: usize, rows: usize, of: impl Fn(usize) -> &'a [f32]) -> Vec<f32> {
    let column = |&frame: &usize| {
        let first = frame % per_tile * rows;
        of(frame / per_tile).get(first..first + rows).unwrap_or_default()
    };
    frames.iter().flat_map(column).copied().collect()
}

/// The distinct terms of a minibatch in ascending order, and the weight of each.
fn distinct(batch: Minibatch<'_>) -> (Vec<usize>, Vec<f32>) {
    let mut indices: Vec<usize> = batch.iter().collect();
    indices.sort_unstable();
    let weight = |run: &[usize]| batch.scale() as f32 * run.len() as f32;
    let weights = indices.chunk_by(|a, b| a == b).map(weight).collect();
    indices.dedup();
    (indices, weights)
}
