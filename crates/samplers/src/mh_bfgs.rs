//! MH-BFGS: Metropolis-Hastings with a Gaussian proposal shaped by an ensemble's L-BFGS inverse Hessian.
//!
//! ```text
//! theta* ~ N(theta - (sigma^2 / 2) H grad U(theta), sigma^2 H)
//! ```
//!
//! `H` is built from the other chains of the ensemble; the Metropolis-Hastings rule accepts or rejects. At
//! `sigma^2 = 2` the mean is a Newton step.
//!
//! **Source.** `quasi-newton-mcmc` section 4.1, with the mean by a (damped) Newton step. In the paper, `H` depends on
//! the chain that moves; here, as in its section 4.2, it does not. The reverse proposal therefore costs no more than
//! the forward one.
//! **Cost.** Two gradients, two potentials (of a [fixed](super::Target::is_fixed) target one each) and `O(K^2 dimension)` per step.
//! **Bias.** None.
//! **Use where** dimensions are few, as a comparator.
//! **Do not use where** dimensions are many: it is a random walk. With starts close together, an ensemble of `K` chains
//! needs a burn-in `K` times as long.

use rand::RngExt;

use super::checks::{check, check_acceptance, check_positive, check_shape};
use super::ensemble::Ensemble;
use super::gradient::is_divergence;
use super::lbfgs::InverseHessian;
use super::vector::{dot, for_blocks, is_sound_for_test};
use super::{InitialScale, Real, Sampler, SamplerError, Step, Target, TestedStep};
use crate::random::{SeedTree, SeededRng};

/// Settings of [`MhBfgs`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MhBfgsSettings {
    /// The scale `sigma` of the proposal, above 0; adaptation starts from it. Default 1.
    pub scale: f64,
    /// The number `K` of chains, at least 2. Default 5.
    pub ensemble: usize,
    /// The matrix that the recursion starts from. Default `Fixed(1.0)`.
    pub initial_scale: InitialScale,
    /// The mean acceptance probability that adaptation aims for, in (0, 1). Default 0.574.
    pub target_acceptance: f64,
}

impl Default for MhBfgsSettings {
    fn default() -> Self {
        Self { scale: 1.0, ensemble: 5, initial_scale: InitialScale::Fixed(1.0), target_acceptance: 0.574 }
    }
}

/// MH-BFGS; see the [module](self).
#[derive(Debug, Clone)]
pub struct MhBfgs<T> {
    dimension: usize,
    settings: MhBfgsSettings,
    ensemble: Ensemble<T>,
    blocks: Vec<Walker<T>>,
    start: Vec<T>,
    start_gradient: Vec<T>,
    gradient: Vec<T>,
    start_potential: Vec<f64>,
    potential: Vec<f64>,
    adapting: bool,
}

#[derive(Debug, Clone)]
struct Walker<T> {
    stream: SeededRng,
    inverse: InverseHessian<T>,
    step: TestedStep,
    scale: f64,
    z: Vec<T>,
    whitened: Vec<T>,
    probability: f64,
    accepted: bool,
    diverged: bool,
}

impl<T: Real> MhBfgs<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns, each with its own ensemble.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: MhBfgsSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        let MhBfgsSettings { scale, ensemble, initial_scale, target_acceptance } = settings;
        check_shape(dimension, blocks)?;
        check_positive("MH-BFGS scale", scale)?;
        check("MH-BFGS ensemble", ensemble as f64, "at least 2", ensemble >= 2)?;
        check_acceptance("target acceptance", target_acceptance)?;
        initial_scale.check("MH-BFGS initial scale")?;
        let zeros = vec![T::zero(); dimension];
        let noise = streams.child(0);
        let walker = |block: usize| Walker {
            stream: noise.rng(block as u64),
            inverse: InverseHessian::new(dimension, ensemble - 2),
            step: TestedStep::new(scale, target_acceptance),
            scale,
            z: zeros.clone(),
            whitened: zeros.clone(),
            probability: 0.0,
            accepted: false,
            diverged: false,
        };
        let states = vec![T::zero(); dimension * blocks];
        Ok(Self {
            dimension,
            settings,
            ensemble: Ensemble::new(dimension, blocks, ensemble),
            blocks: (0..blocks).map(walker).collect(),
            start: states.clone(),
            start_gradient: states.clone(),
            gradient: states,
            start_potential: vec![0.0; blocks],
            potential: vec![0.0; blocks],
            adapting: false,
        })
    }
}

impl<T: Real> Sampler<T> for MhBfgs<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let (n, adapting) = (self.dimension, self.adapting);
        self.ensemble.begin(target, theta);
        self.start.copy_from_slice(theta);
        for (index, block) in self.blocks.iter_mut().enumerate() {
            self.ensemble.assemble(index, self.settings.initial_scale, &mut block.inverse);
        }
        self.ensemble.evaluate(target, &mut self.start_potential, &mut self.start_gradient);
        let (start, before) = (&self.start, &self.start_gradient);
        for_blocks(&mut self.blocks, theta, |index, walker, theta| {
            let Walker { stream, inverse, step, z, whitened, .. } = walker;
            walker.scale = step.next(adapting);
            let (scale, half) = (T::narrow(walker.scale), T::narrow(0.5 * walker.scale));
            // S^-1 (theta* - theta) / sigma = z - (sigma / 2) S' g.
            whitened.copy_from_slice(&before[index * n..][..n]);
            inverse.multiply_root_transposed(whitened);
            for ((z, w), theta) in z.iter_mut().zip(whitened).zip(theta.iter_mut()) {
                *z = T::normal(stream);
                *theta = scale * (*z - half * *w);
            }
            inverse.multiply_root(theta);
            theta.iter_mut().zip(&start[index * n..]).for_each(|(theta, &start)| *theta += start);
            walker.diverged = !is_sound_for_test(theta);
            if walker.diverged {
                theta.copy_from_slice(&start[index * n..][..n]);
            }
        });
        target.evaluate(theta, &mut self.potential, &mut self.gradient);
        let (after, potential, start_potential) = (&self.gradient, &self.potential, &self.start_potential);
        for_blocks(&mut self.blocks, theta, |index, walker, theta| {
            let Walker { stream, inverse, step, z, whitened, .. } = walker;
            let half = T::narrow(0.5 * walker.scale);
            let forward = 0.5 * dot(z, z).widen();
            // The reverse proposal's z, from S^-1 (theta - theta*) / sigma = -z + (sigma / 2) S' (g + g*).
            let gradients = before[index * n..][..n].iter().zip(&after[index * n..][..n]);
            whitened.iter_mut().zip(gradients).for_each(|(w, (&a, &b))| *w = a + b);
            inverse.multiply_root_transposed(whitened);
            let reverse =
                0.5 * z.iter().zip(whitened).map(|(&z, w)| (half * *w - z).widen().powi(2)).sum::<f64>();
            let log_ratio = start_potential[index] - potential[index] + forward - reverse;
            walker.diverged |= is_divergence(-log_ratio);
            walker.probability = if walker.diverged { 0.0 } else { libm::exp(log_ratio.min(0.0)) };
            walker.accepted = stream.random::<f64>() < walker.probability;
            if !walker.accepted {
                theta.copy_from_slice(&start[index * n..][..n]);
            }
            if adapting {
                step.update(walker.probability);
            }
        });
        let blocks = &self.blocks;
        self.ensemble.finish(theta, &self.gradient, &self.potential, |block| blocks[block].accepted);
        let potentials = self.potential.iter().zip(&self.start_potential).zip(blocks);
        let count = blocks.len() as f64;
        Step {
            acceptance: blocks.iter().map(|walker| walker.probability).sum::<f64>() / count,
            potential: Some(
                potentials.map(|((&after, &before), w)| if w.accepted { after } else { before }).sum(),
            ),
            divergences: blocks.iter().filter(|walker| walker.diverged).count(),
            step_size: blocks.iter().map(|walker| walker.scale).sum::<f64>() / count,
            tested: true,
            ..Step::default()
        }
    }

    fn shape(&self) -> (usize, usize) {
        (self.dimension, self.blocks.len())
    }

    fn adapt(&mut self, on: bool) {
        if self.adapting && !on {
            self.blocks.iter_mut().for_each(|walker| walker.step.finish());
        }
        self.adapting = on;
    }

    fn restart_step(&mut self, block: usize, step: f64) {
        self.blocks[block].step.restart_at(step);
    }

    fn change_coordinates(&mut self, change: &mut dyn FnMut(usize, &mut [T])) {
        self.ensemble.change_coordinates(change);
    }

    fn forget(&mut self) {
        self.ensemble.forget();
    }

    fn chains(&self) -> usize {
        self.ensemble.chains()
    }

    fn next_chain(&self) -> usize {
        self.ensemble.slot()
    }

    fn next_start<'a>(&'a self, last: &'a [T]) -> &'a [T] {
        self.ensemble.next_start(last)
    }
}
