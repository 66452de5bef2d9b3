//! The conditional posteriors of the factors, as samplers see them.

use super::state::{Frames, Pool};
use crate::model::{ImpulseStep, Impulses, Mixture, Prior, Workspace};
use crate::parallel::*;
use crate::random::Stream;
use crate::samplers::{Metric, Minibatch, Sites, Target};

/// The activations of some frames given everything else: one block per frame, one data term per bin.
pub(super) struct ActivationTarget<'a> {
    pub mixture: &'a Mixture<f32>,
    pub impulses: &'a mut Impulses<f32>,
    /// Moves the impulse variables of the bins that a step looks at, before it does so for the first time.
    pub redraw: Option<(&'a mut ImpulseStep, &'a mut Stream)>,
    /// `|X|^2`, bins x frames.
    pub power: &'a [f32],
    /// What multiplies the dispersions of noise, bins x frames; empty for nothing.
    pub drift: &'a [f32],
    /// Prior of the activations of speech.
    pub prior: Prior,
    pub workspace: &'a mut Workspace<f32>,
}

impl ActivationTarget<'_> {
    /// Disperses all bins, and moves their impulse variables if that is due.
    pub(super) fn disperse(&mut self, theta: &[f32]) {
        let Self { mixture, impulses, redraw, power, drift, workspace, .. } = self;
        workspace.disperse(mixture, theta);
        workspace.modulate_noise(drift);
        if let Some((step, stream)) = redraw.take() {
            step.step(impulses, mixture, workspace.dispersions(), power, stream);
        }
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
            self.disperse(theta);
            let Self { mixture, impulses, power, drift, workspace, .. } = self;
            workspace.evaluate(mixture, impulses, power);
            workspace.modulate_slopes(drift);
            workspace.differentiate(mixture);
            workspace.activation_gradient(mixture, gradient);
        }
        let (rank, split) = (self.mixture.rank(), self.mixture.speech_rank());
        for (column, gradient) in theta.chunks_exact(rank).zip(gradient.chunks_exact_mut(rank)) {
            self.prior.add_gradient(&column[..split], &mut gradient[..split]);
        }
    }

    fn potential(&mut self, theta: &[f32], potential: &mut [f64]) {
        self.disperse(theta);
        self.workspace.potential(self.mixture, self.impulses, self.power, potential);
        let (rank, split) = (self.mixture.rank(), self.mixture.speech_rank());
        for (potential, column) in potential.iter_mut().zip(theta.chunks_exact(rank)) {
            *potential += column[..split].iter().map(|&x| self.prior.potential(f64::from(x))).sum::<f64>();
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
    pub tiles: &'a mut [Frames],
    /// Which set of impulse variables to condition on.
    pub chain: usize,
    pub pool: &'a Pool,
}

impl NoiseTarget<'_> {
    /// Takes the spectra from a state of rank x bins.
    pub(super) fn load(&mut self, theta: &[f32]) {
        transpose(theta, self.mixture.noise_rank(), &mut self.mixture.noise.spectra);
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
        self.tiles.iter().map(|tile| tile.power.len() / self.mixture.bins).sum()
    }

    fn gradient(&mut self, theta: &[f32], batch: Minibatch<'_>, gradient: &mut [f32]) {
        self.load(theta);
        let mut sum = vec![0.0; theta.len()];
        if batch.indices().is_some() {
            self.differentiate_batch(batch, &mut sum);
            transpose(&sum, self.mixture.bins, gradient);
            return;
        }
        let Self { mixture, tiles, chain, pool, .. } = self;
        let mixture = &**mixture;
        tiles.par_iter_mut().with_max_len(1).for_each_init(
            || pool.take(mixture.bins),
            |workspace, tile| {
                workspace.disperse(mixture, &tile.activations);
                workspace.modulate_noise(&tile.drift);
                workspace.evaluate(mixture, &tile.impulses[*chain], &tile.power);
                workspace.modulate_slopes(&tile.drift);
                workspace.differentiate(mixture);
                tile.noise_raise.fill(0.0);
                workspace.add_noise_gradient(mixture, &tile.activations, &mut tile.noise_raise);
            },
        );
        for tile in tiles.iter() {
            sum.iter_mut().zip(&tile.noise_raise).for_each(|(sum, &x)| *sum += x);
        }
        transpose(&sum, mixture.bins, gradient);
    }

    fn potential(&mut self, theta: &[f32], potential: &mut [f64]) {
        self.load(theta);
        let Self { mixture, tiles, chain, pool, .. } = self;
        let mixture = &**mixture;
        let per_tile: Vec<_> = tiles
            .par_iter()
            .map_init(
                || pool.take(mixture.bins),
                |workspace, tile| {
                    let mut per_bin = vec![0.0; mixture.bins];
                    workspace.disperse(mixture, &tile.activations);
                    workspace.modulate_noise(&tile.drift);
                    workspace.bin_potential(mixture, &tile.impulses[*chain], &tile.power, &mut per_bin);
                    per_bin
                },
            )
            .collect();
        potential.fill(0.0);
        for per_bin in per_tile {
            potential.iter_mut().zip(per_bin).for_each(|(sum, x)| *sum += x);
        }
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<f32>> {
        Some(self)
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f32>> {
        Some(self)
    }
}
