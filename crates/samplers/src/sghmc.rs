//! Stochastic gradient Hamiltonian Monte Carlo: momentum with friction.
//!
//! ```text
//! d theta = r dt,   d r = -(grad U~ + C r) dt + N(0, (2 C - dt V) dt)
//! ```
//!
//! **Source.** Chen, Fox and Guestrin (2014); `complete-recipe` eq. 12 with unit mass. The step is split symmetrically: half a
//! move, half a kick, exact friction, half a kick, half a move.
//! **Cost.** One gradient per step, no acceptance test.
//! **Bias.** Second order in `dt` with full gradients. Minibatch noise of variance `V` heats the chain by about
//! `dt V / (2 C)`; an estimate ([`Sghmc::with_gradient_noise`]) is subtracted from the injected noise (`B` is
//! `dt V / 2` in Chen and others, `V` in `complete-recipe`).
//! **Use where** valleys are long and narrow, or data large.
//! **Do not use where** tails are heavy or curvature is unbounded: `dt` must stay below `2 / sqrt(lambda_max(Hessian))`
//! everywhere, and nothing is rejected. `dt` corresponds to a Langevin step of `dt^2 / 2`.

use super::checks::check_positive;
use super::gradient::Engine;
use super::matrix::Matrix;
use super::momentum::{Momenta, Mover, advance, kick, kicked, settle};
use super::vector::for_blocks;
use super::{GradientSettings, Real, Sampler, SamplerError, Start, Step, StepRule, Target};
use crate::random::SeedTree;

/// Settings of [`Sghmc`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SghmcSettings {
    /// Step `dt`, minibatch and positivity. A drift limit bounds the change of momentum by one kick.
    pub gradient: GradientSettings,
    /// The friction `C`, above 0. Default 1.
    pub friction: f64,
}

impl Default for SghmcSettings {
    fn default() -> Self {
        Self { gradient: GradientSettings::default(), friction: 1.0 }
    }
}

/// Stochastic gradient HMC; see the [module](self).
#[derive(Debug, Clone)]
pub struct Sghmc<T> {
    engine: Engine<T>,
    settings: SghmcSettings,
    momenta: Momenta<T, ()>,
}

impl<T: Real> Sghmc<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: SghmcSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        check_positive("SGHMC friction", settings.friction)?;
        let engine = Engine::new(dimension, blocks, settings.gradient, streams)?;
        let momenta = Momenta::new(&engine, (), streams);
        Ok(Self { engine, settings, momenta })
    }

    /// Sets the covariance `V` of the stochastic gradient, which is subtracted from the injected noise. The excess of
    /// `V` over `2 C / dt` remains as a bias.
    ///
    /// # Errors
    /// If the matrix has another size or is not symmetric and positive semidefinite.
    pub fn with_gradient_noise(mut self, covariance: &Matrix) -> Result<Self, SamplerError> {
        self.momenta.set_gradient_noise(covariance, self.engine.dimension)?;
        Ok(self)
    }

    /// Redraws the momenta every `every` steps (`complete-recipe` algorithm 1).
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

impl<T: Real> Sampler<T> for Sghmc<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let engine = &mut self.engine;
        let step_size = engine.begin(target);
        let (step, mirror) = (T::narrow(step_size), engine.settings.mirror);
        self.momenta.begin(engine.iteration);
        self.momenta.half_move(theta, step, mirror);
        engine.evaluate_and_check_divergence(target, theta, 0.125 * step_size * step_size);
        let (dimension, gradient, limit) = (engine.dimension, &engine.gradient, engine.limit());
        let decay = libm::exp(-step_size * self.settings.friction);
        let variance = (1.0 - decay * decay) * engine.settings.temperature;
        let share = kicked(step_size, decay);
        let injected = |gradient_noise: f64| (variance - share * gradient_noise).max(0.0).sqrt();
        let noise = T::narrow(injected(0.0));
        let Momenta { movers, gradient_noise, deviation, .. } = &mut self.momenta;
        let (decay, half) = (T::narrow(decay), T::narrow(0.5) * step);
        for_blocks(movers, theta, |index, Mover { block, momentum, scratch: [z, scratch], .. }, theta| {
            z.iter_mut().for_each(|z| *z = T::normal(&mut block.stream));
            match gradient_noise.as_ref() {
                None => z.iter_mut().for_each(|z| *z *= noise),
                Some(covariance) => covariance.apply_mapped(injected, z, scratch),
            }
            kick(momentum, &gradient[index * dimension..], z, (half, decay), limit);
            advance(theta, momentum, step, mirror);
            settle(block, theta, momentum, *deviation);
        });
        engine.step(step_size, self.momenta.taken_back())
    }

    fn step_rule(&self) -> StepRule {
        StepRule::Leapfrog { friction: Some(self.settings.friction) }
    }

    fn restart_step(&mut self, _: usize, step: f64) {
        self.engine.set_step(step);
    }

    fn change_coordinates(&mut self, _: &mut dyn FnMut(usize, &mut [T])) {
        self.engine.forget();
        self.momenta.restart();
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
