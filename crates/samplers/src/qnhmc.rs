//! Quasi-Newton Hamiltonian Monte Carlo.
//!
//! HMC with both equations of motion multiplied by an L-BFGS inverse Hessian `C` that is fixed within a
//! proposal: `theta' = C M^-1 p`, `p' = -C grad U`, `p ~ N(0, M)`, with unit mass `M` unless another is given.
//!
//! **Source.** `quasi-newton-hmc` eq. 7 and algorithm 2 (its acceptance probability has the energies exchanged).
//! Pairs are taken between start and end of accepted proposals rather than between leapfrog steps: they reach
//! further, and the memory spans more than one trajectory's plane.
//! **Bias.** None by default: the memory is filled early in burn-in and then frozen. Theorem 4 of the paper holds for a
//! `C` that does not depend on the chain; a `C` built from the states that it moves does depend on it. The paper's
//! form, `adapt_after_burn_in`, is therefore not exact. In this form, ten rejections in a row clear the memory: only
//! accepted proposals update it, and an unsuitable `C` would stop the chain for ever.
//! **Cost.** As HMC, plus `2 memory dimension` multiplications per leapfrog step.
//! **Use where** scales differ: in a direction of variance `v` the frequency is `sqrt(v)` in units of `C = H`, so wide
//! directions, slow under HMC, become the fast ones.
//! **Do not use where** narrow directions must mix fast, as these become the slow ones, or the burn-in is shorter than a few hundred
//! steps, in which `C` and then the step must settle.

use super::checks::check;
use super::lbfgs::InverseHessian;
use super::trajectory::{Map, Trajectory};
use super::{HmcSettings, InitialScale, Matrix, Real, Sampler, SamplerError, Step, Target};
use crate::random::SeedTree;

/// Settings of [`Qnhmc`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QnhmcSettings {
    /// Step, number of leaps and adaptation.
    pub hmc: HmcSettings,
    /// Number of pairs to remember, at least 1. Default 7, as in the paper.
    pub memory: usize,
    /// The matrix that the recursion starts from. Default `Fixed(1.0)`.
    pub initial_scale: InitialScale,
    /// Number of accepted proposals in burn-in that update `C`; `C` is then frozen, so that the step size can adapt to
    /// it. Default 100.
    pub updates: usize,
    /// Update `C` by every accepted proposal, after burn-in too, as in the paper, at the price of exactness.
    /// Default false.
    pub adapt_after_burn_in: bool,
}

impl Default for QnhmcSettings {
    fn default() -> Self {
        Self {
            hmc: HmcSettings::default(),
            memory: 7,
            initial_scale: InitialScale::Fixed(1.0),
            updates: 100,
            adapt_after_burn_in: false,
        }
    }
}

/// Number of consecutive rejections that is improbable while the step suits the matrix.
const PATIENCE: usize = 10;

/// Quasi-Newton HMC; see the [module](self).
#[derive(Debug, Clone)]
pub struct Qnhmc<T> {
    trajectory: Trajectory<T>,
    settings: QnhmcSettings,
    memories: Vec<PairRing<T>>,
}

/// The last pairs of one block, oldest overwritten first.
#[derive(Debug, Clone)]
struct PairRing<T> {
    s: Vec<T>,
    y: Vec<T>,
    count: usize,
    /// Number of rejections since the last accepted proposal.
    rejections: usize,
}

impl<T: Real> Qnhmc<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns, each with its own memory.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: QnhmcSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        check("QNHMC memory", settings.memory as f64, "at least 1", settings.memory > 0)?;
        settings.initial_scale.check("QNHMC initial scale")?;
        let memory = settings.memory;
        let mut trajectory = Trajectory::new(dimension, blocks, settings.hmc, Map::Full, memory, streams)?;
        let initial = settings.initial_scale.without_pairs();
        trajectory.blocks.iter_mut().for_each(|block| block.inverse.reset(initial));
        let zeros = vec![T::zero(); dimension * memory];
        let pairs = PairRing { s: zeros.clone(), y: zeros, count: 0, rejections: 0 };
        Ok(Self { trajectory, settings, memories: vec![pairs; blocks] })
    }

    /// Sets the mass matrix `M` of every block.
    ///
    /// # Errors
    /// If the matrix has another size or is not symmetric and positive definite.
    pub fn with_mass(mut self, mass: &Matrix) -> Result<Self, SamplerError> {
        self.trajectory.set_mass(mass)?;
        Ok(self)
    }
}

impl<T: Real> Sampler<T> for Qnhmc<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let step = self.trajectory.run(target, theta);
        if !(self.settings.adapt_after_burn_in || self.trajectory.is_adapting()) {
            return step;
        }
        let Trajectory { dimension, blocks, start_gradient, gradient, start, .. } = &mut self.trajectory;
        let (n, memory) = (*dimension, self.settings.memory);
        let (start, before, after) = (&*start, &*start_gradient, &*gradient);
        let initial = self.settings.initial_scale;
        for (index, (block, pairs)) in blocks.iter_mut().zip(&mut self.memories).enumerate() {
            pairs.rejections = if block.accepted { 0 } else { pairs.rejections + 1 };
            if self.settings.adapt_after_burn_in && pairs.rejections == PATIENCE {
                // Only accepted proposals update the memory, so an unsuitable matrix would stay for ever.
                pairs.rejections = 0;
                pairs.s.fill(T::zero());
                block.inverse.reset(initial.without_pairs());
            }
            if !block.accepted || !(self.settings.adapt_after_burn_in || pairs.count < self.settings.updates)
            {
                continue;
            }
            let slot = (pairs.count % memory) * n;
            let (s, y) = (&mut pairs.s[slot..][..n], &mut pairs.y[slot..][..n]);
            for i in 0..n {
                s[i] = theta[index * n + i] - start[index * n + i];
                y[i] = after[index * n + i] - before[index * n + i];
            }
            if !InverseHessian::is_usable(s, y) {
                // Clears the pair of this slot; a zero pair is never used.
                s.fill(T::zero());
            }
            pairs.count += 1;
            let oldest = pairs.count.saturating_sub(memory);
            let slots = (oldest..pairs.count).map(|k| (k % memory) * n);
            let rows = slots.map(|slot| (&pairs.s[slot..][..n], &pairs.y[slot..][..n]));
            if pairs.count == self.settings.updates {
                block.step.restart();
            }
            block.inverse.reset(initial.scale(rows.clone()));
            for (s, y) in rows {
                block.inverse.push(s, y);
            }
        }
        step
    }

    fn shape(&self) -> (usize, usize) {
        (self.trajectory.dimension, self.trajectory.blocks.len())
    }

    fn adapt(&mut self, on: bool) {
        self.trajectory.adapt(on);
    }

    fn restart_step(&mut self, block: usize, step: f64) {
        self.trajectory.restart_step(block, step);
    }

    /// Drops all pairs.
    fn change_coordinates(&mut self, _: &mut dyn FnMut(usize, &mut [T])) {
        let initial = self.settings.initial_scale.without_pairs();
        for (block, pairs) in self.trajectory.blocks.iter_mut().zip(&mut self.memories) {
            (pairs.count, pairs.rejections) = (0, 0);
            pairs.s.fill(T::zero());
            block.inverse.reset(initial);
        }
    }

    /// Returns enough steps to fill the memory and then adapt the step to it.
    fn closing_steps(&self, steps: usize) -> usize {
        (3 * self.settings.updates).min(steps / 2)
    }
}
