//! Stochastic gradient Riemannian Langevin dynamics.
//!
//! ```text
//! theta <- theta - eps (G^-1 grad U~ - Gamma) + N(0, 2 eps G^-1),  Gamma_i = sum_j d/dtheta_j (G^-1)_ij
//! ```
//!
//! **Source.** Patterson and Teh (2013); Gamma as in `complete-recipe` eqs. 3 and 14 (with the sign of its
//! eq. 3). `G` is the target's [`Metric`](super::Metric), usually the expected Fisher information plus the
//! negative Hessian of the log prior.
//! **Cost.** One gradient, one metric and, unless it is diagonal, its factorisation (`dimension^3 / 3`) per block
//! and step. A metric without a closed divergence costs `2 dimension` more of both, by central differences.
//! **When.** The Fisher information is known and the dimension small, or the metric diagonal. The step is then
//! scale-free, below 2.

use super::gradient::{Block, Engine};
use super::metric::{FactoredMetric, Power};
use super::vector::for_blocks;
use super::{GradientSettings, Real, Sampler, SamplerError, Step, Target};
use crate::random::Streams;

/// Riemannian SGLD; see the [module](self).
#[derive(Debug, Clone)]
pub struct Sgrld<T> {
    engine: Engine<T>,
    metric: FactoredMetric<T>,
    blocks: Vec<(Block<T>, Vec<T>)>,
}

impl<T: Real> Sgrld<T> {
    /// For `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: GradientSettings,
        streams: Streams,
    ) -> Result<Self, SamplerError> {
        let engine = Engine::new(dimension, blocks, settings, streams)?;
        let noise = vec![T::zero(); dimension];
        let states = engine.new_blocks(streams).map(|block| (block, noise.clone())).collect();
        Ok(Self { engine, metric: FactoredMetric::new(dimension, blocks), blocks: states })
    }
}

impl<T: Real> Sampler<T> for Sgrld<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let engine = &mut self.engine;
        let step_size = engine.begin(target);
        engine.evaluate_and_watch(target, theta);
        let metric = super::offered(target.metric(), "SGRLD", "a metric");
        self.metric.evaluate(metric, theta, Power::Inverse);
        let (dimension, gradient, limit) = (engine.dimension, &engine.gradient, engine.limit());
        let (step, mirror) = (T::narrow(step_size), engine.settings.mirror);
        let scale = T::narrow((2.0 * step_size * engine.settings.temperature).sqrt());
        let metric = &self.metric;
        for_blocks(&mut self.blocks, theta, |index, (block, noise), theta| {
            let column = index * dimension..(index + 1) * dimension;
            block.old.copy_from_slice(theta);
            theta.copy_from_slice(&gradient[column.clone()]);
            metric.inverse(index, theta);
            noise.iter_mut().for_each(|z| *z = scale * T::normal(&mut block.stream));
            metric.root(index, noise);
            let correction = &metric.divergence[column];
            for (i, theta) in theta.iter_mut().enumerate() {
                *theta = block.old[i] - limit(step * (*theta - correction[i])) + noise[i];
                if mirror {
                    *theta = theta.abs();
                }
            }
            block.settle(theta);
        });
        engine.step(step_size, self.blocks.iter().filter(|(block, _)| block.diverged).count())
    }

    fn shape(&self) -> (usize, usize) {
        (self.engine.dimension, self.engine.blocks)
    }

    fn check(&self, target: &mut dyn Target<T>) -> Result<(), SamplerError> {
        super::check_target(self.shape(), target)?;
        super::need(target.metric().is_some(), "SGRLD", "a metric")
    }
}
