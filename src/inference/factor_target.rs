//! The conditional posteriors of the factors, as samplers see them.

use super::separation::{Frames, Pool, TILE_FRAMES, sum};
use crate::model::{Factor, ImpulseStep, Impulses, Mixture, Prior, Workspace};
use crate::random::Stream;
use crate::samplers::{Metric, Minibatch, Site, Sites, Support, Target};
use rayon::prelude::*;
use std::sync::Arc;

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
    fn disperse(&mut self, theta: &[f32]) {
        let Self { mixture, impulses, redraw, power, drift, workspace, .. } = self;
        workspace.disperse(mixture, theta);
        workspace.modulate_noise(drift);
        if let Some((step, stream)) = redraw.take() {
            step.step(impulses, mixture, workspace.dispersions(), power, stream);
        }
    }

    /// The derivatives of the data terms of `batch` alone: all other bins are left out of the mixture.
    fn differentiate_batch(&mut self, theta: &[f32], batch: Minibatch<'_>, gradient: &mut [f32]) {
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

/// The diagonal of the expected Fisher information given the impulse variables, on all bins; see [`Information`].
impl Informed for ActivationTarget<'_> {
    fn information(&mut self, theta: &[f32]) -> Information {
        self.disperse(theta);
        let Self { mixture, impulses, drift, workspace, .. } = self;
        workspace.inform(mixture, impulses, drift);
        let mut information = Information::zeros(theta.len());
        let Information { values, slopes } = &mut information;
        workspace.activation_information(mixture, values, slopes);
        information
    }
}

/// Every activation by itself.
impl Sites<f32> for ActivationTarget<'_> {
    fn count(&self) -> usize {
        self.mixture.rank()
    }

    fn site(&self, index: usize) -> Site {
        Site { rows: index..index + 1, support: Support::HalfLine }
    }

    fn expand(
        &mut self,
        theta: &[f32],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        self.disperse(theta);
        let Self { mixture, impulses, power, drift, prior, workspace, .. } = self;
        let expansion = [&mut *potential, &mut *gradient, &mut *hessian];
        workspace.expand_activation(mixture, impulses, (power, drift), index, expansion);
        if index < mixture.speech_rank() {
            let values = theta.iter().skip(index).step_by(mixture.rank());
            for (block, &x) in values.enumerate() {
                let x = f64::from(x);
                potential[block] += prior.potential(x);
                gradient[block] += prior.slope(x);
                hessian[block] += prior.curvature(x);
            }
        }
    }
}

/// A target whose metric is the diagonal of a Fisher information.
trait Informed {
    fn information(&mut self, theta: &[f32]) -> Information;
}

impl<I: Informed> Metric<f32> for I {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn metric(&mut self, theta: &[f32], metric: &mut [f32]) {
        self.information(theta).metric(theta, metric);
    }

    fn divergence(&mut self, theta: &[f32], inverse: bool, divergence: &mut [f32]) -> bool {
        self.information(theta).divergence(theta, inverse, divergence);
        true
    }
}

/// The diagonal of a Fisher information and its derivative along the same coordinate.
///
/// The metric adds one in the coordinate's own units, `1 / theta^2`: what a single observation of it would tell,
/// and what keeps moves bounded where the data say nothing.
struct Information {
    values: Vec<f32>,
    slopes: Vec<f32>,
}

impl Information {
    fn zeros(count: usize) -> Self {
        Self { values: vec![0.0; count], slopes: vec![0.0; count] }
    }

    fn metric(&self, theta: &[f32], metric: &mut [f32]) {
        for ((metric, &x), &value) in metric.iter_mut().zip(theta).zip(&self.values) {
            *metric = value + 1.0 / (x * x).max(f32::MIN_POSITIVE);
        }
    }

    /// The derivative of the inverse of the metric, or of its root. Written for `x^2 G`, which is of order one.
    fn divergence(&self, theta: &[f32], inverse: bool, divergence: &mut [f32]) {
        let information = self.values.iter().zip(&self.slopes);
        for ((divergence, &x), (&value, &slope)) in divergence.iter_mut().zip(theta).zip(information) {
            let g = 1.0 + x * x * value;
            let fall = 2.0 - x * x * x * slope;
            *divergence = if inverse { x * fall / (g * g) } else { 0.5 * fall / (g * g.sqrt()) };
        }
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
    fn load(&mut self, theta: &[f32]) {
        transpose(theta, self.mixture.noise_rank(), &mut self.mixture.noise.spectra);
    }

    /// The gradient (bins x rank) of the data terms of `batch` alone.
    fn differentiate_batch(&self, batch: Minibatch<'_>, gradient: &mut [f32]) {
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

/// As for the activations.
impl Informed for NoiseTarget<'_> {
    fn information(&mut self, theta: &[f32]) -> Information {
        self.load(theta);
        let Self { mixture, tiles, chain, pool } = self;
        let mixture = &**mixture;
        tiles.par_iter_mut().with_max_len(1).for_each_init(
            || pool.take(mixture.bins),
            |workspace, tile| {
                workspace.disperse(mixture, &tile.activations);
                workspace.modulate_noise(&tile.drift);
                workspace.inform(mixture, &tile.impulses[*chain], &tile.drift);
                tile.noise_raise.fill(0.0);
                tile.noise_lower.fill(0.0);
                let (values, slopes) = (&mut tile.noise_raise, &mut tile.noise_lower);
                workspace.add_noise_information(mixture, &tile.activations, values, slopes);
            },
        );
        let mut information = Information::zeros(theta.len());
        let (values, slopes) = sum(tiles, |tile| (&tile.noise_raise, &tile.noise_lower));
        transpose(&values, mixture.bins, &mut information.values);
        transpose(&slopes, mixture.bins, &mut information.slopes);
        information
    }
}

/// Every entry of a noise spectrum by itself.
impl Sites<f32> for NoiseTarget<'_> {
    fn count(&self) -> usize {
        self.mixture.noise_rank()
    }

    fn site(&self, index: usize) -> Site {
        Site { rows: index..index + 1, support: Support::HalfLine }
    }

    fn expand(
        &mut self,
        theta: &[f32],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        self.load(theta);
        let Self { mixture, tiles, chain, pool } = self;
        let mixture = &**mixture;
        let per_tile: Vec<_> = tiles
            .par_iter()
            .map_init(
                || pool.take(mixture.bins),
                |workspace, tile| {
                    let mut expansion = [(); 3].map(|()| vec![0.0; mixture.bins]);
                    workspace.disperse(mixture, &tile.activations);
                    workspace.modulate_noise(&tile.drift);
                    workspace.add_noise_expansion(
                        mixture,
                        &tile.impulses[*chain],
                        (&tile.power, &tile.drift),
                        &tile.activations,
                        index,
                        expansion.each_mut().map(Vec::as_mut_slice),
                    );
                    expansion
                },
            )
            .collect();
        let sums = [potential, gradient, hessian];
        for (which, sum) in sums.into_iter().enumerate() {
            sum.fill(0.0);
            for expansion in &per_tile {
                sum.iter_mut().zip(&expansion[which]).for_each(|(sum, x)| *sum += x);
            }
        }
    }
}
