//! Hamiltonian Monte Carlo with unit mass or a given mass matrix.
//!
//! Draw `p ~ N(0, M)`, follow `theta' = M^-1 p, p' = -grad U` for `L` leapfrog steps of size `eps`, accept with
//! probability `min(1, exp(H(start) - H(end)))`. Every block has its own step, momentum and test. Once
//! [preconditioned](super::Preconditioned), each proposal draws its number of steps from 1 to `L`.
//!
//! **Source.** Duane and others (1987), Neal (2011); `quasi-newton-hmc` algorithm 1, whose acceptance probability has the
//! two energies exchanged. Step size: dual averaging during burn-in; jittered as in `quasi-newton-mcmc` section 6.
//! **Cost.** `L + 1` full gradients and two potentials per step. **Bias.** None.
//! **Use where** full gradients are affordable and a good trajectory length is known. The reference for all others.
//! **Do not use where** correlations are strong, unless the metric is dense: the default of at most ten steps does not
//! cross the target along them. Nor where scales vary over the target (funnels): no single step suits all of it, which
//! divergences indicate. Use [`Nuts`](super::Nuts) where the trajectory length is unknown.

use super::trajectory::{Map, Trajectory};
use super::{HmcSettings, Matrix, Real, Sampler, SamplerError, Step, Target};
use crate::random::SeedTree;

/// Hamiltonian Monte Carlo; see the [module](self).
#[derive(Debug, Clone)]
pub struct Hmc<T> {
    trajectory: Trajectory<T>,
}

impl<T: Real> Hmc<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: HmcSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        Ok(Self { trajectory: Trajectory::new(dimension, blocks, settings, Map::Identity, 0, streams)? })
    }

    /// Sets the mass matrix `M` of every block, best near the inverse of the posterior covariance.
    ///
    /// # Errors
    /// If the matrix has another size or is not symmetric and positive definite.
    pub fn with_mass(mut self, mass: &Matrix) -> Result<Self, SamplerError> {
        self.trajectory.set_mass(mass)?;
        Ok(self)
    }
}

impl<T: Real> Sampler<T> for Hmc<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        self.trajectory.run(target, theta)
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
}
