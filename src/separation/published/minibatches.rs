//! Gradients by a part of the data terms (`hamcmc-2016`, section 4.2).

use super::super::factor_target::{ActivationTarget, NoiseTarget};
use super::super::state::{Frames, TILE_FRAMES};
use crate::model::{Factor, Impulses, Mixture};
use crate::samplers::Minibatch;
use std::sync::Arc;

impl ActivationTarget<'_> {
    /// The derivatives of the data terms of `batch` alone: all other bins are left out of the mixture.
    pub(in crate::separation) fn differentiate_batch(
        &mut self,
        theta: &[f32],
        batch: Minibatch<'_>,
        gradient: &mut [f32],
    ) {
        let Self { mixture, impulses, redraw, power, drift, workspace, .. } = self;
        let (bins, weights) = distinct(batch);
        let gather = |matrix: &[f32]| -> Vec<f32> {
            matrix.chunks_exact(mixture.bins).flat_map(|column| bins.iter().map(|&bin| column[bin])).collect()
        };
        let factor = |factor: &Factor<f32>| Factor { spectra: gather(&factor.spectra), ..*factor };
        let part =
            Mixture { bins: bins.len(), speech: factor(&mixture.speech), noise: factor(&mixture.noise) };
        let (power, drift) = (gather(power), gather(drift));
        let mut chosen = match &**impulses {
            Impulses::Integrated(table) => Impulses::Integrated(Arc::clone(table)),
            Impulses::Sampled { speech, noise } => {
                Impulses::Sampled { speech: gather(speech), noise: gather(noise) }
            }
        };
        workspace.disperse(&part, theta);
        workspace.modulate_noise(&drift);
        if let Some((step, stream)) = redraw.take() {
            step.step(&mut chosen, &part, workspace.dispersions(), &power, stream);
            if let (Impulses::Sampled { speech, noise }, Impulses::Sampled { speech: s, noise: n }) =
                (&mut **impulses, &chosen)
            {
                for (all, new) in [(speech, s), (noise, n)] {
                    for (all, new) in all.chunks_exact_mut(mixture.bins).zip(new.chunks_exact(bins.len())) {
                        bins.iter().zip(new).for_each(|(&bin, &new)| all[bin] = new);
                    }
                }
            }
        }
        workspace.evaluate(&part, &chosen, &power);
        workspace.modulate_slopes(&drift);
        workspace.differentiate(&part);
        workspace.weigh(&weights);
        workspace.activation_gradient(&part, gradient);
    }
}

impl NoiseTarget<'_> {
    /// The gradient (bins x rank) of the data terms of `batch` alone.
    pub(in crate::separation) fn differentiate_batch(&self, batch: Minibatch<'_>, gradient: &mut [f32]) {
        let Self { mixture, tiles, chain, pool } = self;
        let mixture = &**mixture;
        let (frames, weights) = distinct(batch);
        let gather = |rows: usize, of: &dyn Fn(&Frames) -> &[f32]| -> Vec<f32> {
            let column = |&frame: &usize| {
                let (tile, frame) = (of(&tiles[frame / TILE_FRAMES]), frame % TILE_FRAMES * rows);
                tile.get(frame..frame + rows).unwrap_or_default()
            };
            frames.iter().flat_map(column).copied().collect()
        };
        let bins = mixture.bins;
        let mut activations = gather(mixture.rank(), &|tile| &tile.activations);
        let (power, drift) = (gather(bins, &|tile| &tile.power), gather(bins, &|tile| &tile.drift));
        let impulses = match tiles.first().map(|tile| &tile.impulses[*chain]) {
            Some(Impulses::Integrated(table)) => Impulses::Integrated(Arc::clone(table)),
            _ => {
                let [speech, noise] = [0, 1].map(|source| {
                    gather(bins, &|tile| match &tile.impulses[*chain] {
                        Impulses::Sampled { speech, noise } => [speech, noise][source],
                        Impulses::Integrated(_) => &[],
                    })
                });
                Impulses::Sampled { speech, noise }
            }
        };
        let mut workspace = pool.take(bins);
        workspace.disperse(mixture, &activations);
        workspace.modulate_noise(&drift);
        workspace.evaluate(mixture, &impulses, &power);
        workspace.modulate_slopes(&drift);
        workspace.differentiate(mixture);
        for (column, weight) in activations.chunks_exact_mut(mixture.rank()).zip(weights) {
            column.iter_mut().for_each(|activation| *activation *= weight);
        }
        workspace.add_noise_gradient(mixture, &activations, gradient);
    }
}

/// The distinct terms of a minibatch in their order, and the weight of each.
fn distinct(batch: Minibatch<'_>) -> (Vec<usize>, Vec<f32>) {
    let mut indices: Vec<usize> = batch.iter().collect();
    indices.sort_unstable();
    let weight = |run: &[usize]| batch.scale() as f32 * run.len() as f32;
    let weights = indices.chunk_by(|a, b| a == b).map(weight).collect();
    indices.dedup();
    (indices, weights)
}
