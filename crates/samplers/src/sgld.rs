//! Stochastic gradient Langevin dynamics.
//!
//! ```text
//! theta <- theta - eps grad U~(theta) + N(0, 2 eps I)
//! ```
//!
//! **Source.** Welling and Teh (2011); `hamcmc-2016` eq. 3; `complete-recipe` eq. 13 with `D = I`.
//! **Cost.** One gradient and one normal draw per coordinate. **Bias.** For a Gaussian of precision `A` and full
//! gradients the stationary covariance is `A^-1 (I - eps A / 2)^-1`; minibatches add variance of order `eps`.
//! **When.** As the baseline, or when all coordinates have about the same scale and little correlation; the
//! step must stay below `2 / lambda_max(Hessian)`, so badly scaled targets mix slowly.

use super::gradient::{Block, Engine};
use super::vector::for_blocks;
use super::{GradientSettings, Real, Sampler, SamplerError, Step, Target};
use crate::random::Streams;

/// Stochastic gradient Langevin dynamics; see the [module](self).
#[derive(Debug, Clone)]
pub struct Sgld<T> {
    engine: Engine<T>,
    blocks: Vec<Block<T>>,
}

impl<T: Real> Sgld<T> {
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
        let blocks = engine.new_blocks(streams).collect();
        Ok(Self { engine, blocks })
    }
}

impl<T: Real> Sampler<T> for Sgld<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let engine = &mut self.engine;
        let step_size = engine.begin(target);
        engine.evaluate_and_watch(target, theta);
        let (dimension, gradient, limit) = (engine.dimension, &engine.gradient, engine.limit());
        let (step, mirror) = (T::narrow(step_size), engine.settings.mirror);
        let noise = T::narrow((2.0 * step_size * engine.settings.temperature).sqrt());
        for_blocks(&mut self.blocks, theta, |index, block, theta| {
            block.old.copy_from_slice(theta);
            for (theta, &gradient) in theta.iter_mut().zip(&gradient[index * dimension..]) {
                *theta += noise * T::normal(&mut block.stream) - limit(step * gradient);
                if mirror {
                    *theta = theta.abs();
                }
            }
            block.settle(theta);
        });
        engine.step(step_size, self.blocks.iter().filter(|block| block.diverged).count())
    }

    fn shape(&self) -> (usize, usize) {
        (self.engine.dimension, self.engine.blocks)
    }
}
