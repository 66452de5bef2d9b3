//! The conditional posteriors of the factors, as targets of samplers.

use super::published::Redraw;
use super::state::Tile;
use super::workspace_pool::WorkspacePool;
use crate::model::{Dispersions, ImpulseVariables, MarginalTable, Mixture, Prior, Workspace};
use crate::parallel::*;
use crate::samplers::{Metric, Minibatch, Sites, Target};

/// The activations of some frames given everything else: one block per frame, one data term per bin.
pub(super) struct ActivationTarget<'a> {
    pub mixture: &'a Mixture<f32>,
    /// The expectations with impulse variables integrated out.
    pub table: &'a MarginalTable,
    /// Sampled impulse variables, in place of the table.
    pub sampled: Option<Redraw<'a>>,
    /// `|X|^2`, bins x frames.
    pub power: &'a [f32],
    /// Field that multiplies the dispersions of noise, bins x frames; empty for none.
    pub field: &'a [f32],
    /// Priors of the activations of speech and of noise.
    pub priors: [Prior; 2],
    pub workspace: &'a mut Workspace<f32>,
}

impl ActivationTarget<'_> {
    /// The dispersions of all bins, and the impulse variables given them.
    pub(super) fn disperse<'b>(
        &'b mut self,
        theta: &'b [f32],
    ) -> (Dispersions<'b, f32>, ImpulseVariables<'b, f32>) {
        let dispersed = self.workspace.disperse(self.mixture, theta).modulated(self.field);
        let impulses = match &mut self.sampled {
            None => ImpulseVariables::Integrated(self.table),
            Some(sampled) => sampled.given(&dispersed, self.power),
        };
        (dispersed, impulses)
    }
}

impl Target<f32> for ActivationTarget<'_> {
    fn dimension(&self) -> usize {
        self.mixture.rank()
    }

    fn blocks(&self) -> usize {
        self.power.len() / self.mixture.bins
    }

    fn terms(&self) -> usize {
        self.mixture.bins
    }

    fn gradient(&mut self, theta: &[f32], batch: Minibatch<'_>, gradient: &mut [f32]) {
        if batch.indices().is_some() {
            self.differentiate_batch(theta, batch, gradient);
        } else {
            let power = self.power;
            let (mut dispersed, impulses) = self.disperse(theta);
            dispersed.evaluate(impulses, power).update_terms().differentiate().activations(gradient);
        }
        let (rank, split) = (self.mixture.rank(), self.mixture.speech_rank());
        for (column, gradient) in theta.chunks_exact(rank).zip(gradient.chunks_exact_mut(rank)) {
            self.priors[0].add_gradient(&column[..split], &mut gradient[..split]);
            self.priors[1].add_gradient(&column[split..], &mut gradient[split..]);
        }
    }

    fn potential(&mut self, theta: &[f32], potential: &mut [f64]) {
        let power = self.power;
        let (dispersed, impulses) = self.disperse(theta);
        dispersed.potential(impulses, power, potential);
        let (rank, split) = (self.mixture.rank(), self.mixture.speech_rank());
        for (potential, column) in potential.iter_mut().zip(theta.chunks_exact(rank)) {
            for (prior, values) in self.priors.iter().zip([&column[..split], &column[split..]]) {
                *potential += values.iter().map(|&x| prior.potential(f64::from(x))).sum::<f64>();
            }
        }
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<f32>> {
        Some(self)
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f32>> {
        Some(self)
    }
}

/// The noise spectra given everything else: one block per bin (the state is noise rank x bins), one data
/// term per frame.
pub(super) struct NoiseTarget<'a> {
    pub mixture: &'a mut Mixture<f32>,
    pub tiles: &'a mut [Tile],
    /// Impulse variables of every tile.
    pub impulses: Vec<ImpulseVariables<'a, f32>>,
    /// Prior of every entry.
    pub prior: Prior,
    pub pool: &'a WorkspacePool,
}

impl NoiseTarget<'_> {
    /// Loads the spectra from a state of rank x bins.
    pub(super) fn load(&mut self, theta: &[f32]) {
        transpose(theta, self.mixture.noise_rank(), &mut self.mixture.noise.spectra);
    }

    /// Maps `find` over the dispersions, impulse variables and powers of the tiles, in order.
    pub(super) fn for_every_tile<R: Send>(
        &self,
        find: impl Fn(&mut Dispersions<'_, f32>, ImpulseVariables<'_, f32>, &[f32]) -> R + Sync,
    ) -> Vec<R> {
        let Self { mixture, tiles, impulses, pool, .. } = self;
        tiles
            .par_iter()
            .zip(impulses)
            .map_init(
                || pool.take(),
                |workspace, (tile, &impulses)| {
                    let mut dispersed = workspace.disperse(mixture, &tile.activations).modulated(&tile.field);
                    find(&mut dispersed, impulses, &tile.power)
                },
            )
            .collect()
    }
}

/// Writes the transpose of `matrix` (rows x columns, column-major).
pub(super) fn transpose(matrix: &[f32], rows: usize, transposed: &mut [f32]) {
    let columns = matrix.len() / rows;
    for (i, value) in transposed.iter_mut().enumerate() {
        *value = matrix[(i % columns) * rows + i / columns];
    }
}

impl Target<f32> for NoiseTarget<'_> {
    fn dimension(&self) -> usize {
        self.mixture.noise_rank()
    }

    fn blocks(&self) -> usize {
        self.mixture.bins
    }

    fn terms(&self) -> usize {
        self.tiles.iter().map(|tile| tile.power.len()).sum::<usize>() / self.mixture.bins
    }

    fn gradient(&mut self, theta: &[f32], batch: Minibatch<'_>, gradient: &mut [f32]) {
        self.load(theta);
        let mut sum = vec![0.0; theta.len()];
        if batch.indices().is_some() {
            self.differentiate_batch(batch, &mut sum);
            transpose(&sum, self.mixture.bins, gradient);
            self.prior.add_gradient(theta, gradient);
            return;
        }
        let Self { mixture, tiles, impulses, prior, pool, .. } = self;
        let mixture = &**mixture;
        tiles.par_iter_mut().zip(&*impulses).with_max_len(1).for_each_init(
            || pool.take(),
            |workspace, (tile, &impulses)| {
                let mut dispersed = workspace.disperse(mixture, &tile.activations).modulated(&tile.field);
                let derivatives = dispersed.evaluate(impulses, &tile.power).update_terms().differentiate();
                tile.noise_numerator.fill(0.0);
                derivatives.add_noise(&mut tile.noise_numerator);
            },
        );
        for tile in tiles.iter() {
            sum.iter_mut().zip(&tile.noise_numerator).for_each(|(sum, &x)| *sum += x);
        }
        transpose(&sum, mixture.bins, gradient);
        prior.add_gradient(theta, gradient);
    }

    fn potential(&mut self, theta: &[f32], potential: &mut [f64]) {
        self.load(theta);
        let bins = self.mixture.bins;
        let per_tile = self.for_every_tile(|dispersed, impulses, power| {
            let mut per_bin = vec![0.0; bins];
            dispersed.bin_potential(impulses, power, &mut per_bin);
            per_bin
        });
        potential.fill(0.0);
        for per_bin in per_tile {
            potential.iter_mut().zip(per_bin).for_each(|(sum, x)| *sum += x);
        }
        for (sum, spectra) in potential.iter_mut().zip(theta.chunks_exact(self.mixture.noise_rank())) {
            *sum += spectra.iter().map(|&x| self.prior.potential(f64::from(x))).sum::<f64>();
        }
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<f32>> {
        Some(self)
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f32>> {
        Some(self)
    }
}
