//! HMC-BFGS: Hamiltonian Monte Carlo whose mass matrix is an L-BFGS Hessian built from an ensemble of chains.
//!
//! Step `t` moves chain `t mod K` by one HMC proposal with mass matrix `B = H^-1`. `H` comes from the other `K - 1` chains:
//! sorted by potential, pairs between neighbours, pairs with `s'y <= 0` dropped. `H` does not depend on the chain that moves, so
//! each chain keeps the target invariant.
//!
//! **Source.** `quasi-newton-mcmc` sections 3 and 4.2, algorithm 1, with the square root of
//! [`lbfgs`](super::lbfgs) instead of eqs. 8-11. Momenta are whitened: `p = S^-T z` is never formed.
//! **Cost.** As HMC, plus `2 K dimension` multiplications per leapfrog step; memory `3 K dimension`. Draws are those of
//! `K` chains in turn: assess mixing within each chain and add the effective sizes.
//! **Bias.** None.
//! **Use where** correlations are strong and gradients affordable. `K` about 5 in high dimension, or slightly more than half the
//! dimension in low.
//! **Do not use where** the Hessian varies much or is indefinite: pairs average over the variation. `K` chains share
//! the steps, so burn-in needs `K` times as many.

use super::checks::check;
use super::ensemble::Ensemble;
use super::trajectory::{Map, Trajectory};
use super::{HmcSettings, InitialScale, Real, Sampler, SamplerError, Step, Target};
use crate::random::SeedTree;

/// Settings of [`HmcBfgs`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HmcBfgsSettings {
    /// Step, number of leaps and adaptation.
    pub hmc: HmcSettings,
    /// The number `K` of chains, at least 2; `K - 2` pairs. Default 5.
    pub ensemble: usize,
    /// The matrix that the recursion starts from. Default `Fixed(1.0)`.
    pub initial_scale: InitialScale,
}

impl Default for HmcBfgsSettings {
    fn default() -> Self {
        Self { hmc: HmcSettings::default(), ensemble: 5, initial_scale: InitialScale::Fixed(1.0) }
    }
}

/// HMC-BFGS; see the [module](self).
#[derive(Debug, Clone)]
pub struct HmcBfgs<T> {
    trajectory: Trajectory<T>,
    settings: HmcBfgsSettings,
    ensemble: Ensemble<T>,
}

impl<T: Real> HmcBfgs<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns, each with its own ensemble.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: HmcBfgsSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        let chains = settings.ensemble;
        check("HMC-BFGS ensemble", chains as f64, "at least 2", chains >= 2)?;
        settings.initial_scale.check("HMC-BFGS initial scale")?;
        let trajectory = Trajectory::new(dimension, blocks, settings.hmc, Map::Root, chains - 2, streams)?;
        Ok(Self { trajectory, settings, ensemble: Ensemble::new(dimension, blocks, chains) })
    }
}

impl<T: Real> Sampler<T> for HmcBfgs<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let Self { trajectory, settings, ensemble } = self;
        ensemble.begin(target, theta);
        for (index, block) in trajectory.blocks.iter_mut().enumerate() {
            ensemble.assemble(index, settings.initial_scale, &mut block.inverse);
        }
        let step = trajectory.run(target, theta);
        let blocks = &trajectory.blocks;
        ensemble.finish(theta, &trajectory.gradient, &trajectory.potential, |block| blocks[block].accepted);
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
