//! Generalised stochastic gradient Riemann Hamiltonian Monte Carlo.
//!
//! ```text
//! r     <- r - eps (R' grad U~ - Gamma + G^-1 r) + N(0, 2 eps G^-1 - eps^2 R' V R),  Gamma_i = sum_j d/dtheta_j (R')_ij
//! theta <- theta + eps R r,                                          R R' = G(theta)^-1
//! ```
//!
//! **Source.** `complete-recipe` algorithm 1 (section 3.2): SGRHMC with the expected Fisher information for `G`, gSGRHMC
//! with any positive definite [`Metric`](super::Metric). `R` is the inverse square root of a diagonal metric, the inverse
//! transposed Cholesky factor of a dense one; the recipe holds for every root. `V`, 0 unless given, estimates the
//! covariance of the stochastic gradient (eq. 9). Without Gamma (eq. 16) the stationary distribution is wrong.
//! **Cost.** One gradient and one metric, factored unless diagonal; `2 dimension` more by central differences without a closed
//! divergence.
//! **Bias.** First order in `eps`.
//! **Use where** the local scale varies over the target and a metric follows it.
//! **Do not use where** the metric falls to zero or does not bound the curvature: Euler steps then diverge.

use super::checks::check_combination;
use super::gradient::Engine;
use super::matrix::Matrix;
use super::metric::{FactoredMetric, Power, Room};
use super::momentum::{Momenta, Mover, settle};
use super::vector::for_blocks;
use super::{GradientSettings, Real, Sampler, SamplerError, Start, Step, Target};
use crate::random::SeedTree;

/// Generalised SGRHMC; see the [module](self). It does not mirror: give it a [`Mirrored`](super::Mirrored) target.
#[derive(Debug, Clone)]
pub struct Sgrhmc<T> {
    engine: Engine<T>,
    metric: FactoredMetric<T>,
    momenta: Momenta<T, Room<T>>,
}

impl<T: Real> Sgrhmc<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If a setting is out of range, or the settings mirror.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: GradientSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        check_combination("mirror", "SGRHMC", !settings.mirror)?;
        let engine = Engine::new(dimension, blocks, settings, streams)?;
        let momenta = Momenta::new(&engine, Room::default(), streams);
        Ok(Self { engine, metric: FactoredMetric::new(dimension, blocks), momenta })
    }

    /// Sets the covariance `V` of the stochastic gradient, which is subtracted from the injected noise; costs a further
    /// factorisation unless metric and `V` are diagonal. The excess of `V` over `2 / eps` remains as a bias.
    ///
    /// # Errors
    /// If the matrix has another size or is not symmetric and positive semidefinite.
    pub fn with_gradient_noise(mut self, covariance: &Matrix) -> Result<Self, SamplerError> {
        self.momenta.set_gradient_noise(covariance, self.engine.dimension)?;
        Ok(self)
    }

    /// Redraws the momenta every `every` steps.
    ///
    /// # Errors
    /// If `every` is 0.
    pub fn with_resampling(mut self, every: u64) -> Result<Self, SamplerError> {
        self.momenta.set_resampling(every)?;
        Ok(self)
    }

    /// Sets the momentum of one block; without it the first step draws one.
    ///
    /// # Panics
    /// If there is no block of this number, or the momentum has another length than the dimension.
    pub fn set_momentum(&mut self, block: usize, momentum: &[T]) {
        self.momenta.set(block, momentum);
    }

    /// The momentum of one block.
    ///
    /// # Panics
    /// If there is no block of this number.
    #[must_use]
    pub fn momentum(&self, block: usize) -> &[T] {
        &self.momenta.movers[block].momentum
    }
}

impl<T: Real> Sampler<T> for Sgrhmc<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let engine = &mut self.engine;
        let step_size = engine.begin(target);
        self.momenta.begin(engine.iteration);
        engine.evaluate_and_check_divergence(target, theta, 0.0);
        let metric = super::offered(target.metric(), "SGRHMC", "a metric");
        self.metric.evaluate(metric, theta, Power::InverseRoot);
        let (dimension, gradient, limit) = (engine.dimension, &engine.gradient, engine.limit());
        let step = T::narrow(step_size);
        let noise = T::narrow((2.0 * step_size * engine.settings.temperature).sqrt());
        let shares = (2.0 * step_size * engine.settings.temperature, step_size * step_size);
        let metric = &self.metric;
        let temperature = T::narrow(engine.settings.temperature);
        let Momenta { movers, gradient_noise, deviation, .. } = &mut self.momenta;
        for_blocks(movers, theta, |index, mover, theta| {
            let Mover { block, momentum, scratch: [scratch, _], rest: room } = mover;
            let column = index * dimension..(index + 1) * dimension;
            block.old.copy_from_slice(theta);
            // theta holds R' grad U and then the move R r; scratch the friction G^-1 r and then the noise R z.
            theta.copy_from_slice(&gradient[column.clone()]);
            metric.root_transposed(index, theta);
            let correction = &metric.divergence[column];
            scratch.copy_from_slice(momentum);
            metric.inverse(index, scratch);
            for i in 0..dimension {
                momentum[i] -= limit(step * (theta[i] - temperature * correction[i])) + step * scratch[i];
                let weight = if gradient_noise.is_none() { noise } else { T::one() };
                scratch[i] = weight * T::normal(&mut block.stream);
            }
            match gradient_noise.as_ref() {
                None => metric.root(index, scratch),
                Some(covariance) => {
                    metric.reduced_noise(index, shares, Power::InverseRoot, covariance, (scratch, room));
                }
            }
            for i in 0..dimension {
                momentum[i] += scratch[i];
            }
            theta.copy_from_slice(momentum);
            metric.root(index, theta);
            for (theta, &old) in theta.iter_mut().zip(&block.old) {
                *theta = old + step * *theta;
            }
            settle(block, theta, momentum, *deviation);
        });
        engine.step(step_size, self.momenta.taken_back())
    }

    fn start(&self) -> Option<Start<'_, T>> {
        self.engine.start()
    }

    fn forget(&mut self) {
        self.engine.forget();
    }

    fn shape(&self) -> (usize, usize) {
        (self.engine.dimension, self.engine.blocks)
    }

    fn check(&self, target: &mut dyn Target<T>) -> Result<(), SamplerError> {
        super::check_target(self.shape(), target)?;
        super::need(target.metric().is_some(), "SGRHMC", "a metric")
    }
}
