//! Stochastic gradient Hamiltonian Monte Carlo: momentum with friction.
//!
//! ```text
//! d theta = r dt,   d r = -(grad U~ + C r) dt + N(0, (2 C - dt V) dt)
//! ```
//!
//! **Source.** Chen, Fox and Guestrin (2014); `complete-recipe` eq. 12 with unit mass. The step is split
//! symmetrically (half a move, half a kick, exact friction, half a kick, half a move), so that with full
//! gradients the error in the distribution is of second order in `dt`, not first.
//! **Cost.** One gradient per step, no acceptance test. **Bias.** Minibatch noise heats the chain by about
//! `dt V / (2 C)` for gradient noise variance `V`; the estimate of it, a number (`gradient_noise`) or a matrix
//! ([`Sghmc::with_gradient_noise`]), is taken off the injected noise (the papers' `B` is `dt V / 2`).
//! **When.** Long narrow valleys where Langevin dynamics would walk at random, and large data sets. The step `dt`
//! must stay below `2 / sqrt(lambda_max(Hessian))`; it corresponds to a Langevin step of `dt^2 / 2`.

use super::gradient::{Block, Engine, check};
use super::matrix::{Matrix, Spectrum};
use super::vector::for_blocks;
use super::{GradientSettings, Real, Sampler, SamplerError, Step, Target};
use crate::random::Streams;

/// Settings of [`Sghmc`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SghmcSettings {
    /// Step `dt`, minibatch and positivity. A drift limit bounds the change of momentum by one kick.
    pub gradient: GradientSettings,
    /// The friction `C`, above 0. Default 1.
    pub friction: f64,
    /// The estimate of the variance `V` of each coordinate of the stochastic gradient, from 0. Default 0.
    pub gradient_noise: f64,
}

impl Default for SghmcSettings {
    fn default() -> Self {
        Self { gradient: GradientSettings::default(), friction: 1.0, gradient_noise: 0.0 }
    }
}

/// Stochastic gradient HMC; see the [module](self).
#[derive(Debug, Clone)]
pub struct Sghmc<T> {
    engine: Engine<T>,
    settings: SghmcSettings,
    momentum: Momentum<T>,
    gradient_noise: Option<Spectrum<T>>,
    resampling: Option<u64>,
}

/// A block, its momentum and room for noise.
type Mover<T> = (Block<T>, Vec<T>, [Vec<T>; 2]);

/// The momenta of every block, drawn at the first step.
#[derive(Debug, Clone)]
pub(super) struct Momentum<T> {
    pub blocks: Vec<Mover<T>>,
    started: bool,
}

impl<T: Real> Momentum<T> {
    pub fn new(engine: &Engine<T>, streams: Streams) -> Self {
        let zeros = vec![T::zero(); engine.dimension];
        let scratch = [zeros.clone(), zeros.clone()];
        Self {
            blocks: engine.new_blocks(streams).map(|block| (block, zeros.clone(), scratch.clone())).collect(),
            started: false,
        }
    }

    /// Draws the momenta if there are none, or `anew`.
    pub fn start(&mut self, anew: bool) {
        if !self.started || anew {
            self.started = true;
            for (block, momentum, _) in &mut self.blocks {
                momentum.iter_mut().for_each(|r| *r = T::normal(&mut block.stream));
            }
        }
    }

    /// Sets the momentum of `block`, instead of a draw if the chain has not started.
    pub fn set(&mut self, block: usize, momentum: &[T]) {
        self.start(false);
        self.blocks[block].1.copy_from_slice(momentum);
    }

    /// Half a move, remembering where it started and folding if asked.
    pub fn half_move(&mut self, theta: &mut [T], step: T, mirror: bool) {
        for_blocks(&mut self.blocks, theta, |_, (block, momentum, _), theta| {
            block.old.copy_from_slice(theta);
            advance(theta, momentum, step, mirror);
        });
    }

    pub fn divergences(&self) -> usize {
        self.blocks.iter().filter(|(block, ..)| block.diverged).count()
    }
}

/// How much of the gradient's variance a step gives to the momentum: two half kicks, of which friction weakens one.
pub(super) fn kicked(step: f64, decay: f64) -> f64 {
    (0.5 * step * (1.0 + decay)).powi(2)
}

pub(super) fn check_resampling(every: u64) -> Result<u64, SamplerError> {
    check("steps between resampled momenta", every as f64, "at least 1", every > 0).map(|()| every)
}

/// Whether momenta are drawn anew before the step that has begun as number `iteration`, counted from one.
pub(super) fn resamples(resampling: Option<u64>, iteration: u64) -> bool {
    resampling.is_some_and(|every| iteration > 1 && (iteration - 1).is_multiple_of(every))
}

/// Moves along the momentum for `step / 2`; folded coordinates turn their momentum round.
pub(super) fn advance<T: Real>(theta: &mut [T], momentum: &mut [T], step: T, mirror: bool) {
    let half = T::narrow(0.5) * step;
    for (theta, momentum) in theta.iter_mut().zip(momentum) {
        *theta += half * *momentum;
        if mirror && *theta < T::zero() {
            *theta = -*theta;
            *momentum = -*momentum;
        }
    }
}

/// Takes a diverged move back and stops its block.
pub(super) fn settle<T: Real>(block: &mut Block<T>, theta: &mut [T], momentum: &mut [T]) {
    block.settle(theta);
    if block.diverged || !momentum.iter().all(|r| r.is_finite()) {
        momentum.iter_mut().for_each(|r| *r = T::normal(&mut block.stream));
    }
}

impl<T: Real> Sghmc<T> {
    /// For `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: SghmcSettings,
        streams: Streams,
    ) -> Result<Self, SamplerError> {
        let SghmcSettings { friction, gradient_noise, .. } = settings;
        check("SGHMC friction", friction, "a finite number above 0", friction.is_finite() && friction > 0.0)?;
        let range = gradient_noise.is_finite() && gradient_noise >= 0.0;
        check("SGHMC gradient noise", gradient_noise, "a finite number from 0", range)?;
        let engine = Engine::new(dimension, blocks, settings.gradient, streams)?;
        let momentum = Momentum::new(&engine, streams);
        Ok(Self { engine, settings, momentum, gradient_noise: None, resampling: None })
    }

    /// The same sampler, told the covariance `V` of its stochastic gradient instead of a number: it adds so much less
    /// noise itself. What `V` has in excess of `2 C / dt` cannot be made up for.
    ///
    /// # Errors
    /// If the matrix has another size or is not symmetric and positive semidefinite.
    pub fn with_gradient_noise(mut self, covariance: &Matrix) -> Result<Self, SamplerError> {
        self.gradient_noise =
            Some(covariance.decompose("the gradient noise", self.engine.dimension, false)?);
        Ok(self)
    }

    /// The same sampler with momenta drawn anew after every so many steps (`complete-recipe` algorithm 1).
    ///
    /// # Errors
    /// If `every` is 0.
    pub fn with_resampling(mut self, every: u64) -> Result<Self, SamplerError> {
        self.resampling = Some(check_resampling(every)?);
        Ok(self)
    }

    /// Sets the momentum of one block; without it the first step draws one.
    pub fn set_momentum(&mut self, block: usize, momentum: &[T]) {
        self.momentum.set(block, momentum);
    }

    /// The momentum of one block.
    #[must_use]
    pub fn momentum(&self, block: usize) -> &[T] {
        &self.momentum.blocks[block].1
    }
}

impl<T: Real> Sampler<T> for Sghmc<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let engine = &mut self.engine;
        let step_size = engine.begin(target);
        let (step, mirror) = (T::narrow(step_size), engine.settings.mirror);
        self.momentum.start(resamples(self.resampling, engine.iteration));
        self.momentum.half_move(theta, step, mirror);
        engine.evaluate_and_watch(target, theta);
        let (dimension, gradient, limit) = (engine.dimension, &engine.gradient, engine.limit());
        let decay = libm::exp(-step_size * self.settings.friction);
        let variance = (1.0 - decay * decay) * engine.settings.temperature;
        let share = kicked(step_size, decay);
        let deviation = |gradient_noise: f64| (variance - share * gradient_noise).max(0.0).sqrt();
        let noise = T::narrow(deviation(self.settings.gradient_noise));
        let gradient_noise = &self.gradient_noise;
        let (decay, half) = (T::narrow(decay), T::narrow(0.5) * step);
        for_blocks(&mut self.momentum.blocks, theta, |index, (block, momentum, [z, scratch]), theta| {
            if let Some(gradient_noise) = gradient_noise {
                z.iter_mut().for_each(|z| *z = T::normal(&mut block.stream));
                gradient_noise.apply_mapped(deviation, z, scratch);
                let gradients = &gradient[index * dimension..];
                for ((r, &gradient), &z) in momentum.iter_mut().zip(gradients).zip(z.iter()) {
                    let kick = limit(half * gradient);
                    *r = decay * (*r - kick) + z - kick;
                }
                advance(theta, momentum, step, mirror);
                settle(block, theta, momentum);
                return;
            }
            for (r, &gradient) in momentum.iter_mut().zip(&gradient[index * dimension..]) {
                let kick = limit(half * gradient);
                *r = decay * (*r - kick) + noise * T::normal(&mut block.stream) - kick;
            }
            advance(theta, momentum, step, mirror);
            settle(block, theta, momentum);
        });
        engine.step(step_size, self.momentum.divergences())
    }

    fn shape(&self) -> (usize, usize) {
        (self.engine.dimension, self.engine.blocks)
    }
}
