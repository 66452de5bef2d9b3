//! Momenta of the second-order samplers.

use super::checks::check;
use super::gradient::{Block, Engine};
use super::matrix::{Matrix, Spectrum};
use super::vector::for_blocks;
use super::{Real, SamplerError};
use crate::random::SeedTree;

/// The momenta of every block, drawn at the first step, and the further state (`Rest`) of each.
#[derive(Debug, Clone)]
pub(super) struct Momenta<T, Rest> {
    pub movers: Vec<Mover<T, Rest>>,
    /// The estimate of the covariance of the stochastic gradient, where one is given.
    pub gradient_noise: Option<Spectrum<T>>,
    started: bool,
    /// Standard deviation of a momentum: the root of the temperature.
    pub deviation: T,
    /// Number of steps after which momenta are redrawn.
    resampling: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct Mover<T, Rest> {
    pub block: Block<T>,
    pub momentum: Vec<T>,
    /// Buffers for noise.
    pub scratch: [Vec<T>; 2],
    pub rest: Rest,
}

impl<T: Real, Rest: Clone + Send> Momenta<T, Rest> {
    pub fn new(engine: &Engine<T>, rest: Rest, streams: SeedTree) -> Self {
        let zeros = vec![T::zero(); engine.dimension];
        let mover = |block| Mover {
            block,
            momentum: zeros.clone(),
            scratch: [zeros.clone(), zeros.clone()],
            rest: rest.clone(),
        };
        let movers = engine.new_blocks(streams).map(mover).collect();
        // Under `exp(-(U + r'r / 2) / temperature)` momenta follow `N(0, temperature)`.
        let deviation = T::narrow(engine.settings.temperature.sqrt());
        Self { movers, gradient_noise: None, started: false, deviation, resampling: None }
    }

    /// Sets the estimate of the covariance of the stochastic gradient.
    pub fn set_gradient_noise(&mut self, covariance: &Matrix, dimension: usize) -> Result<(), SamplerError> {
        self.gradient_noise = Some(covariance.decompose("the gradient noise", dimension, false)?);
        Ok(())
    }

    pub fn set_resampling(&mut self, every: u64) -> Result<(), SamplerError> {
        check("steps between resampled momenta", every as f64, "at least 1", every > 0)?;
        self.resampling = Some(every);
        Ok(())
    }

    /// Draws the momenta at the start of step `iteration`, counted from one, unless they carry over from the previous
    /// step.
    pub fn begin(&mut self, iteration: u64) {
        let is_due = |every: u64| iteration > 1 && (iteration - 1).is_multiple_of(every);
        if !self.started || self.resampling.is_some_and(is_due) {
            self.started = true;
            for Mover { block, momentum, .. } in &mut self.movers {
                momentum.iter_mut().for_each(|r| *r = self.deviation * T::normal(&mut block.stream));
            }
        }
    }

    /// Redraws all momenta at the next step.
    pub fn restart(&mut self) {
        self.started = false;
    }

    /// Sets the momentum of `block`; before the first step, it replaces the initial draw.
    pub fn set(&mut self, block: usize, momentum: &[T]) {
        self.begin(0);
        self.movers[block].momentum.copy_from_slice(momentum);
    }

    /// Moves the state by half a step, folded if `mirror`; stores its start.
    pub fn half_move(&mut self, theta: &mut [T], step: T, mirror: bool) {
        for_blocks(&mut self.movers, theta, |_, Mover { block, momentum, .. }, theta| {
            block.old.copy_from_slice(theta);
            advance(theta, momentum, step, mirror);
        });
    }

    /// Iterates over the blocks: whether the move was reverted.
    pub fn taken_back(&self) -> impl Iterator<Item = bool> {
        self.movers.iter().map(|mover| mover.block.diverged)
    }
}

/// The fraction of the gradient's variance that a step adds to the momentum: two half kicks, one of them damped by
/// friction.
pub(super) fn kicked(step: f64, decay: f64) -> f64 {
    (0.5 * step * (1.0 + decay)).powi(2)
}

/// Applies half a kick by the gradient, friction with its noise, and half a kick.
pub(super) fn kick<T: Real>(
    momentum: &mut [T],
    gradient: &[T],
    noise: &[T],
    (half, decay): (T, T),
    limit: impl Fn(T) -> T,
) {
    for ((r, &gradient), &noise) in momentum.iter_mut().zip(gradient).zip(noise) {
        let kick = limit(half * gradient);
        *r = decay * (*r - kick) + noise - kick;
    }
}

/// Moves along the momentum for `step / 2`; folded coordinates reverse their momentum.
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

/// Undoes a diverged move and redraws its momentum, of standard deviation `deviation`.
pub(super) fn settle<T: Real>(block: &mut Block<T>, theta: &mut [T], momentum: &mut [T], deviation: T) {
    block.settle(theta);
    if block.diverged || !momentum.iter().all(|r| r.is_finite()) {
        momentum.iter_mut().for_each(|r| *r = deviation * T::normal(&mut block.stream));
    }
}
