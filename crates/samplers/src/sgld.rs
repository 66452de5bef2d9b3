//! Stochastic gradient Langevin dynamics.
//!
//! ```text
//! theta <- theta - eps D grad U~(theta) + N(0, 2 eps D - eps^2 D V D)
//! ```
//!
//! `D` is the identity unless given; `V`, an estimate of the covariance of the stochastic gradient, is 0 unless given.
//!
//! **Source.** Welling and Teh (2011); `hamcmc-2016` eq. 3; `complete-recipe` eqs. 9 and 13 (`B` is `D V D`).
//! **Cost.** One gradient and one normal draw per coordinate.
//! **Bias.** First order in `eps`: on a Gaussian of precision `A` the covariance is `A^-1 (I - eps A / 2)^-1`. Minibatches add
//! variance of order `eps`, unless `V` is given.
//! **Use where** scales are alike, or a warm-up has made them alike; it is the baseline.
//! **Do not use where** the potential rises faster than quadratically or curvature is unbounded (quartics, funnels,
//! mirrored densities with a spike at zero): no step is stable, and nothing is rejected. The step must stay below
//! `2 / lambda_max(Hessian)`.

use super::gradient::{Block, Engine};
use super::matrix::{Matrix, Spectrum};
use super::vector::for_blocks;
use super::{GradientSettings, Real, Sampler, SamplerError, Start, Step, StepRule, Target};
use crate::random::SeedTree;

/// Stochastic gradient Langevin dynamics; see the [module](self).
#[derive(Debug, Clone)]
pub struct Sgld<T> {
    engine: Engine<T>,
    blocks: Vec<(Block<T>, [Vec<T>; 2])>,
    /// `D` and `V`, where they are given.
    diffusion: Option<Spectrum<T>>,
    gradient_noise: Option<Spectrum<T>>,
    general: Option<General<T>>,
}

/// Matrices of a step with `D` or `V`.
#[derive(Debug, Clone)]
struct General<T> {
    diffusion: Spectrum<T>,
    root: Spectrum<T>,
    /// `D^1/2 V D^1/2`.
    noise: Spectrum<T>,
}

impl<T: Real> Sgld<T> {
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
        let scratch = [vec![T::zero(); dimension], vec![T::zero(); dimension]];
        let blocks = engine.new_blocks(streams).map(|block| (block, scratch.clone())).collect();
        Ok(Self { engine, blocks, diffusion: None, gradient_noise: None, general: None })
    }

    /// Sets the diffusion `D` of every block, best near the posterior covariance.
    ///
    /// # Errors
    /// If the matrix has another size or is not symmetric and positive definite.
    pub fn with_diffusion(mut self, diffusion: &Matrix) -> Result<Self, SamplerError> {
        self.diffusion = Some(diffusion.decompose("the diffusion", self.engine.dimension, true)?);
        self.generalise()?;
        Ok(self)
    }

    /// Sets the covariance `V` of the stochastic gradient, which is subtracted from the injected noise. The excess of
    /// `V` over `2 / eps D^-1` remains as a bias.
    ///
    /// # Errors
    /// If the matrix has another size or is not symmetric and positive semidefinite.
    pub fn with_gradient_noise(mut self, covariance: &Matrix) -> Result<Self, SamplerError> {
        self.gradient_noise =
            Some(covariance.decompose("the gradient noise", self.engine.dimension, false)?);
        self.generalise()?;
        Ok(self)
    }

    fn generalise(&mut self) -> Result<(), SamplerError> {
        let dimension = self.engine.dimension;
        let or = |given: &Option<Spectrum<T>>, scalar| match given {
            Some(given) => Ok(given.clone()),
            None => Matrix::Scalar(scalar).decompose("a multiple of one", dimension, false),
        };
        let (diffusion, noise) = (or(&self.diffusion, 1.0)?, or(&self.gradient_noise, 0.0)?);
        let root = diffusion.map(f64::sqrt);
        self.general = Some(General { noise: noise.between(&root), diffusion, root });
        Ok(())
    }
}

impl<T: Real> Sampler<T> for Sgld<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let engine = &mut self.engine;
        let step_size = engine.begin(target);
        // Energy error of one leapfrog step of size sqrt(2 eps): (2 eps / 8) (|g'|^2 - |g|^2).
        let weight = if self.general.is_some() { 0.0 } else { 0.25 * step_size };
        engine.evaluate_and_check_divergence(target, theta, weight);
        let (dimension, gradient, limit) = (engine.dimension, &engine.gradient, engine.limit());
        let (step, mirror) = (T::narrow(step_size), engine.settings.mirror);
        let noise = T::narrow((2.0 * step_size * engine.settings.temperature).sqrt());
        let (general, variance) = (&self.general, 2.0 * step_size * engine.settings.temperature);
        for_blocks(&mut self.blocks, theta, |index, (block, [drift, scratch]), theta| {
            block.old.copy_from_slice(theta);
            if let Some(General { diffusion, root, noise }) = general {
                drift.copy_from_slice(&gradient[index * dimension..][..dimension]);
                diffusion.apply(drift, scratch);
                theta.iter_mut().for_each(|z| *z = T::normal(&mut block.stream));
                noise.apply_mapped(
                    |value| (variance - step_size * step_size * value).max(0.0).sqrt(),
                    theta,
                    scratch,
                );
                root.apply(theta, scratch);
                for ((theta, &old), &drift) in theta.iter_mut().zip(&block.old).zip(drift.iter()) {
                    *theta += old - limit(step * drift);
                    if mirror {
                        *theta = theta.abs();
                    }
                }
                block.settle(theta);
                return;
            }
            for (theta, &gradient) in theta.iter_mut().zip(&gradient[index * dimension..]) {
                *theta += noise * T::normal(&mut block.stream) - limit(step * gradient);
                if mirror {
                    *theta = theta.abs();
                }
            }
            block.settle(theta);
        });
        engine.step(step_size, self.blocks.iter().map(|(block, _)| block.diverged))
    }

    fn step_rule(&self) -> StepRule {
        StepRule::Langevin
    }

    fn restart_step(&mut self, _: usize, step: f64) {
        self.engine.set_step(0.5 * step * step);
    }

    fn change_coordinates(&mut self, _: &mut dyn FnMut(usize, &mut [T])) {
        self.engine.forget();
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
}
