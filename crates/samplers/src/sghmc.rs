//! Stochastic gradient Hamiltonian Monte Carlo: momentum with friction.
//!
//! ```text
//! d theta = r dt,   d r = -(grad U~ + C r) dt + N(0, (2 C - dt B) dt)
//! ```
//!
//! **Source.** Chen, Fox and Guestrin (2014); `complete-recipe` eq. 12 with unit mass. The step is split
//! symmetrically (half a move, half a kick, exact friction, half a kick, half a move), so that with full
//! gradients the error in the distribution is of second order in `dt`, not first.
//! **Cost.** One gradient per step, no acceptance test. **Bias.** Minibatch noise heats the chain by about
//! `dt V / (2 C)` for gradient noise variance `V`; the setting `gradient_noise` is the estimate `B` of `V`.
//! **When.** Long narrow valleys where Langevin dynamics would walk at random, and large data sets. The step `dt`
//! must stay below `2 / sqrt(lambda_max(Hessian))`; it corresponds to a Langevin step of `dt^2 / 2`.

use super::gradient::{Block, Engine, check};
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
    /// The estimate `B` of the variance of each coordinate of the stochastic gradient, from 0. Default 0.
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
}

/// The momenta of every block, drawn at the first step.
#[derive(Debug, Clone)]
pub(super) struct Momentum<T> {
    pub blocks: Vec<(Block<T>, Vec<T>)>,
    started: bool,
}

impl<T: Real> Momentum<T> {
    pub fn new(engine: &Engine<T>, streams: Streams) -> Self {
        let zeros = vec![T::zero(); engine.dimension];
        Self {
            blocks: engine.new_blocks(streams).map(|block| (block, zeros.clone())).collect(),
            started: false,
        }
    }

    pub fn start(&mut self) {
        if !self.started {
            self.started = true;
            for (block, momentum) in &mut self.blocks {
                momentum.iter_mut().for_each(|r| *r = T::normal(&mut block.stream));
            }
        }
    }

    /// Sets the momentum of `block`, instead of a draw if the chain has not started.
    pub fn set(&mut self, block: usize, momentum: &[T]) {
        self.start();
        self.blocks[block].1.copy_from_slice(momentum);
    }

    /// Half a move, remembering where it started and folding if asked.
    pub fn half_move(&mut self, theta: &mut [T], step: T, mirror: bool) {
        for_blocks(&mut self.blocks, theta, |_, (block, momentum), theta| {
            block.old.copy_from_slice(theta);
            advance(theta, momentum, step, mirror);
        });
    }

    pub fn divergences(&self) -> usize {
        self.blocks.iter().filter(|(block, _)| block.diverged).count()
    }
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
        Ok(Self { engine, settings, momentum })
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
        self.momentum.start();
        self.momentum.half_move(theta, step, mirror);
        engine.evaluate_and_watch(target, theta);
        let (dimension, gradient, limit) = (engine.dimension, &engine.gradient, engine.limit());
        let decay = libm::exp(-step_size * self.settings.friction);
        let variance = 1.0 - decay * decay - step_size * step_size * self.settings.gradient_noise;
        let noise = T::narrow((variance.max(0.0) * engine.settings.temperature).sqrt());
        let (decay, half) = (T::narrow(decay), T::narrow(0.5) * step);
        for_blocks(&mut self.momentum.blocks, theta, |index, (block, momentum), theta| {
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
