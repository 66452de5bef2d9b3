//! The stochastic gradient Nose-Hoover thermostat: friction that learns how noisy the gradient is.
//!
//! ```text
//! d theta = r dt,   d r = -(grad U~ + xi r) dt + N(0, 2 A dt),   d xi = (r'r / d - 1) dt
//! ```
//!
//! **Source.** Ding and others (2014); `complete-recipe` eq. 15. Each block has a thermostat of its own. The
//! step is split symmetrically, with exact friction, as in [`sghmc`](super::sghmc).
//! **Cost.** One gradient per step, no acceptance test. **Bias.** White minibatch noise is absorbed by `xi`; noise
//! whose strength varies over the state is not.
//! **When.** As SGHMC, when the variance of the stochastic gradient is unknown. In few dimensions, or with a small
//! `A`, the thermostat itself oscillates slowly.

use super::gradient::{Block, Engine, check};
use super::sghmc::{advance, settle};
use super::vector::{dot, for_blocks};
use super::{GradientSettings, Real, Sampler, SamplerError, Step, Target};
use crate::random::Streams;

/// Settings of [`Sgnht`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SgnhtSettings {
    /// Step `dt`, minibatch and positivity. A drift limit bounds the change of momentum by one kick.
    pub gradient: GradientSettings,
    /// The diffusion `A` of the momentum, above 0; also the start of the thermostat. Default 1.
    pub diffusion: f64,
}

impl Default for SgnhtSettings {
    fn default() -> Self {
        Self { gradient: GradientSettings::default(), diffusion: 1.0 }
    }
}

/// The stochastic gradient thermostat; see the [module](self).
#[derive(Debug, Clone)]
pub struct Sgnht<T> {
    engine: Engine<T>,
    settings: SgnhtSettings,
    blocks: Vec<Auxiliary<T>>,
    started: bool,
}

#[derive(Debug, Clone)]
struct Auxiliary<T> {
    block: Block<T>,
    momentum: Vec<T>,
    thermostat: f64,
}

impl<T: Real> Sgnht<T> {
    /// For `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: SgnhtSettings,
        streams: Streams,
    ) -> Result<Self, SamplerError> {
        let diffusion = settings.diffusion;
        let positive = diffusion.is_finite() && diffusion > 0.0;
        check("SGNHT diffusion", diffusion, "a finite number above 0", positive)?;
        let engine = Engine::new(dimension, blocks, settings.gradient, streams)?;
        let momentum = vec![T::zero(); dimension];
        let auxiliary =
            |block| Auxiliary { block, momentum: momentum.clone(), thermostat: settings.diffusion };
        let blocks = engine.new_blocks(streams).map(auxiliary).collect();
        Ok(Self { engine, settings, blocks, started: false })
    }

    fn start(&mut self) {
        if !self.started {
            self.started = true;
            for Auxiliary { block, momentum, .. } in &mut self.blocks {
                momentum.iter_mut().for_each(|r| *r = T::normal(&mut block.stream));
            }
        }
    }

    /// Sets the momentum and the thermostat of one block.
    pub fn set_auxiliary(&mut self, block: usize, momentum: &[T], thermostat: f64) {
        self.start();
        self.blocks[block].momentum.copy_from_slice(momentum);
        self.blocks[block].thermostat = thermostat;
    }

    /// The momentum and the thermostat `xi` of one block.
    #[must_use]
    pub fn auxiliary(&self, block: usize) -> (&[T], f64) {
        (&self.blocks[block].momentum, self.blocks[block].thermostat)
    }
}

impl<T: Real> Sampler<T> for Sgnht<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        self.start();
        let engine = &mut self.engine;
        let step_size = engine.begin(target);
        let (step, mirror) = (T::narrow(step_size), engine.settings.mirror);
        for_blocks(&mut self.blocks, theta, |_, Auxiliary { block, momentum, .. }, theta| {
            block.old.copy_from_slice(theta);
            advance(theta, momentum, step, mirror);
        });
        engine.evaluate_and_watch(target, theta);
        let (dimension, gradient, limit) = (engine.dimension, &engine.gradient, engine.limit());
        let start = self.settings.diffusion;
        let diffusion = start * engine.settings.temperature;
        let half = T::narrow(0.5) * step;
        let heat =
            |momentum: &[T]| 0.5 * step_size * (dot(momentum, momentum).widen() / dimension as f64 - 1.0);
        for_blocks(&mut self.blocks, theta, |index, Auxiliary { block, momentum, thermostat }, theta| {
            *thermostat += heat(momentum);
            let rate = step_size * *thermostat;
            // (1 - exp(-2 rate)) / rate by its limit where it cancels.
            let spread = if rate.abs() < 1e-6 { 2.0 } else { -libm::expm1(-2.0 * rate) / rate };
            let noise = T::narrow((diffusion * step_size * spread).sqrt());
            let decay = T::narrow(libm::exp(-rate));
            for (r, &gradient) in momentum.iter_mut().zip(&gradient[index * dimension..]) {
                let kick = limit(half * gradient);
                *r = decay * (*r - kick) + noise * T::normal(&mut block.stream) - kick;
            }
            *thermostat += heat(momentum);
            advance(theta, momentum, step, mirror);
            settle(block, theta, momentum);
            if block.diverged || !thermostat.is_finite() {
                *thermostat = start;
            }
        });
        engine.step(step_size, self.blocks.iter().filter(|auxiliary| auxiliary.block.diverged).count())
    }

    fn shape(&self) -> (usize, usize) {
        (self.engine.dimension, self.engine.blocks)
    }
}
