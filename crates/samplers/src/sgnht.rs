//! The stochastic gradient Nose-Hoover thermostat: friction that adapts to the noise of the gradient.
//!
//! ```text
//! d theta = r dt,   d r = -(grad U~ + xi r) dt + N(0, (2 A - dt V) dt),   d xi = (r'r / d - 1) dt
//! ```
//!
//! At a temperature other than 1, `A` and the 1 of `d xi` are multiplied by it.
//! **Source.** Ding and others (2014); `complete-recipe` eq. 15. Each block has its own thermostat. The step is split
//! symmetrically with exact friction, as in [`sghmc`](super::sghmc).
//! **Cost.** One gradient per step, no acceptance test.
//! **Bias.** Second order in `dt`. `xi` absorbs white minibatch noise; noise whose strength varies over the state or between
//! directions remains. An estimate of its covariance `V` is subtracted from the injected noise
//! ([`Sgnht::with_gradient_noise`]; `complete-recipe` eq. 9).
//! **Use where** SGHMC would be used and the variance of the stochastic gradient is unknown.
//! **Do not use where** tails are heavy or curvature is unbounded, as SGHMC; in few dimensions or with a small `A`,
//! where the thermostat oscillates slowly; from a distant start, where `xi` grows and then needs as long to fall.

use super::checks::check_positive;
use super::gradient::Engine;
use super::matrix::Matrix;
use super::momentum::{Momenta, Mover, advance, kick, kicked, settle};
use super::vector::{dot, for_blocks};
use super::{GradientSettings, Real, Sampler, SamplerError, Start, Step, StepRule, Target};
use crate::random::SeedTree;

/// Settings of [`Sgnht`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SgnhtSettings {
    /// Step `dt`, minibatch and positivity. A drift limit bounds the change of momentum by one kick.
    pub gradient: GradientSettings,
    /// The diffusion `A` of the momentum, above 0; also the initial value of the thermostat. Default 1.
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
    /// The momenta, with the thermostat of each block.
    momenta: Momenta<T, f64>,
}

impl<T: Real> Sgnht<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: SgnhtSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        let diffusion = settings.diffusion;
        check_positive("SGNHT diffusion", diffusion)?;
        let engine = Engine::new(dimension, blocks, settings.gradient, streams)?;
        let momenta = Momenta::new(&engine, diffusion, streams);
        Ok(Self { engine, settings, momenta })
    }

    /// Sets the covariance `V` of the stochastic gradient, which is subtracted from the injected noise.
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

    /// Sets the momentum and the thermostat of one block.
    ///
    /// # Panics
    /// If there is no block of this number, or the momentum has another length than the dimension.
    pub fn set_auxiliary(&mut self, block: usize, momentum: &[T], thermostat: f64) {
        self.momenta.set(block, momentum);
        self.momenta.movers[block].rest = thermostat;
    }

    /// The momentum and the thermostat `xi` of one block.
    ///
    /// # Panics
    /// If there is no block of this number.
    #[must_use]
    pub fn auxiliary(&self, block: usize) -> (&[T], f64) {
        let Mover { momentum, rest: thermostat, .. } = &self.momenta.movers[block];
        (momentum, *thermostat)
    }
}

impl<T: Real> Sampler<T> for Sgnht<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let engine = &mut self.engine;
        let step_size = engine.begin(target);
        let (step, mirror) = (T::narrow(step_size), engine.settings.mirror);
        self.momenta.begin(engine.iteration);
        self.momenta.half_move(theta, step, mirror);
        engine.evaluate_and_check_divergence(target, theta, 0.125 * step_size * step_size);
        let (dimension, gradient, limit) = (engine.dimension, &engine.gradient, engine.limit());
        let start = self.settings.diffusion;
        let temperature = engine.settings.temperature;
        let diffusion = start * temperature;
        let half = T::narrow(0.5) * step;
        let heat = |momentum: &[T]| {
            0.5 * step_size * (dot(momentum, momentum).widen() / dimension as f64 - temperature)
        };
        let Momenta { movers, gradient_noise, deviation, .. } = &mut self.momenta;
        for_blocks(movers, theta, |index, mover, theta| {
            let Mover { block, momentum, scratch: [z, scratch], rest: thermostat } = mover;
            *thermostat += heat(momentum);
            let rate = step_size * *thermostat;
            // (1 - exp(-2 rate)) / rate; near 0, where it cancels, its limit 2.
            let spread = if rate.abs() < 1e-6 { 2.0 } else { -libm::expm1(-2.0 * rate) / rate };
            let noise = T::narrow((diffusion * step_size * spread).sqrt());
            let decay = T::narrow(libm::exp(-rate));
            z.iter_mut().for_each(|z| *z = T::normal(&mut block.stream));
            match gradient_noise.as_ref() {
                None => z.iter_mut().for_each(|z| *z *= noise),
                Some(covariance) => {
                    let (variance, share) =
                        (diffusion * step_size * spread, kicked(step_size, decay.widen()));
                    covariance.apply_mapped(|value| (variance - share * value).max(0.0).sqrt(), z, scratch);
                }
            }
            kick(momentum, &gradient[index * dimension..], z, (half, decay), limit);
            *thermostat += heat(momentum);
            advance(theta, momentum, step, mirror);
            settle(block, theta, momentum, *deviation);
            if block.diverged || !thermostat.is_finite() {
                *thermostat = start;
            }
        });
        engine.step(step_size, self.momenta.taken_back())
    }

    fn step_rule(&self) -> StepRule {
        StepRule::Leapfrog { friction: None }
    }

    /// Shortens the step below four dimensions, as the thermostat's bias is larger in fewer dimensions.
    fn restart_step(&mut self, _: usize, step: f64) {
        self.engine.set_step(step * (0.25 * self.engine.dimension as f64).sqrt().min(1.0));
    }

    fn change_coordinates(&mut self, _: &mut dyn FnMut(usize, &mut [T])) {
        self.engine.forget();
        self.momenta.restart();
        let start = self.settings.diffusion;
        self.momenta.movers.iter_mut().for_each(|mover| mover.rest = start);
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
