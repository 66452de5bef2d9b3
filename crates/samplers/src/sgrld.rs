//! Stochastic gradient Riemannian Langevin dynamics.
//!
//! ```text
//! theta <- theta - eps (G^-1 grad U~ - Gamma) + N(0, 2 eps G^-1 - eps^2 G^-1 V G^-1),  Gamma_i = sum_j d/dtheta_j (G^-1)_ij
//! ```
//!
//! **Source.** Patterson and Teh (2013); Gamma as in `complete-recipe` eqs. 3 and 14, with the sign of eq. 3. `G` is the
//! target's [`Metric`](super::Metric), usually the expected Fisher information plus the negative Hessian of the log
//! prior. `V`, 0 unless given, estimates the covariance of the stochastic gradient (`complete-recipe` eq. 9).
//! **Cost.** One gradient, one metric and, unless it is diagonal, its factorisation (`dimension^3 / 3`) per block and step;
//! without a closed divergence `2 dimension` more of both, by central differences.
//! **Bias.** First order in `eps`, which is dimensionless and must stay below 2.
//! **Use where** the Fisher information is known, and the dimension small or the metric diagonal.
//! **Do not use where** the metric does not bound the curvature, `G^-1 Hessian` above 2: heavy tails, quartics without
//! a metric that follows them. Steps then diverge; they are counted but not corrected.

use super::gradient::{Block, Engine};
use super::matrix::{Matrix, Spectrum};
use super::metric::{FactoredMetric, Power, Room};
use super::vector::for_blocks;
use super::{GradientSettings, Real, Sampler, SamplerError, Start, Step, Target};
use crate::random::SeedTree;

/// Riemannian SGLD; see the [module](self).
#[derive(Debug, Clone)]
pub struct Sgrld<T> {
    engine: Engine<T>,
    metric: FactoredMetric<T>,
    blocks: Vec<(Block<T>, Vec<T>, Room<T>)>,
    gradient_noise: Option<Spectrum<T>>,
}

impl<T: Real> Sgrld<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: GradientSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        let engine = Engine::new(dimension, blocks, settings, streams)?;
        let noise = vec![T::zero(); dimension];
        let states =
            engine.new_blocks(streams).map(|block| (block, noise.clone(), Room::default())).collect();
        let metric = FactoredMetric::new(dimension, blocks);
        Ok(Self { engine, metric, blocks: states, gradient_noise: None })
    }

    /// Sets the covariance `V` of the stochastic gradient, which is subtracted from the injected noise; costs a further
    /// factorisation unless metric and `V` are diagonal. The excess of `V` over `2 / eps G` remains as a bias.
    ///
    /// # Errors
    /// If the matrix has another size or is not symmetric and positive semidefinite.
    pub fn with_gradient_noise(mut self, covariance: &Matrix) -> Result<Self, SamplerError> {
        self.gradient_noise =
            Some(covariance.decompose("the gradient noise", self.engine.dimension, false)?);
        Ok(self)
    }
}

impl<T: Real> Sampler<T> for Sgrld<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let engine = &mut self.engine;
        let step_size = engine.begin(target);
        engine.evaluate_and_check_divergence(target, theta, 0.0);
        let metric = super::offered(target.metric(), "SGRLD", "a metric");
        self.metric.evaluate(metric, theta, Power::Inverse);
        let (dimension, gradient, limit) = (engine.dimension, &engine.gradient, engine.limit());
        let (step, mirror) = (T::narrow(step_size), engine.settings.mirror);
        let scale = T::narrow((2.0 * step_size * engine.settings.temperature).sqrt());
        let shares = (2.0 * step_size * engine.settings.temperature, step_size * step_size);
        let temperature = T::narrow(engine.settings.temperature);
        let (metric, gradient_noise) = (&self.metric, &self.gradient_noise);
        for_blocks(&mut self.blocks, theta, |index, (block, noise, room), theta| {
            let column = index * dimension..(index + 1) * dimension;
            block.old.copy_from_slice(theta);
            theta.copy_from_slice(&gradient[column.clone()]);
            metric.inverse(index, theta);
            let weight = if gradient_noise.is_none() { scale } else { T::one() };
            noise.iter_mut().for_each(|z| *z = weight * T::normal(&mut block.stream));
            match gradient_noise {
                None => metric.root(index, noise),
                Some(covariance) => {
                    metric.reduced_noise(index, shares, Power::Inverse, covariance, (noise, room))
                }
            }
            let correction = &metric.divergence[column];
            for (i, theta) in theta.iter_mut().enumerate() {
                *theta = block.old[i] - limit(step * (*theta - temperature * correction[i])) + noise[i];
                if mirror {
                    *theta = theta.abs();
                }
            }
            block.settle(theta);
        });
        engine.step(step_size, self.blocks.iter().map(|(block, ..)| block.diverged))
    }

    fn start(&self) -> Option<Start<'_, T>> {
        self.engine.start()
    }

    fn mirrors(&self) -> bool {
        self.engine.settings.mirror
    }

    fn forget(&mut self) {
        self.engine.forget();
    }

    fn shape(&self) -> (usize, usize) {
        (self.engine.dimension, self.engine.blocks)
    }

    fn check(&self, target: &mut dyn Target<T>) -> Result<(), SamplerError> {
        super::check_target(self.shape(), target)?;
        super::need(target.metric().is_some(), "SGRLD", "a metric")
    }
}
