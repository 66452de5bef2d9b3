//! Preconditioned stochastic gradient Langevin dynamics with an adaptive diagonal preconditioner.
//!
//! ```text
//! g     <- grad U~(theta) / N                          (N data terms)
//! v     <- a v + (1 - a) g o g
//! G     <- 1 / (lambda + sqrt(v))                      (diagonal)
//! theta <- theta - eps (G o grad U~(theta) - Gamma) + N(0, 2 eps G)
//! Gamma <- dG/dtheta = -(1 - a) G^2 g h / sqrt(v),  h = diag(Hessian of U~) / N
//! ```
//!
//! **Source.** Li, Chen, Carlson and Carin (2016), algorithm 1; `hamcmc-2016` section 3.1. `g` is the gradient of the
//! whole potential, prior included.
//! **Cost.** One gradient; with Gamma also the diagonal of the Hessian ([`Curvature`](super::Curvature)).
//! **Bias.** `G` depends on the state that it moves. Without Gamma (the default, as usual) draws are biased towards large
//! gradients at any step. Gamma as published corrects for the last gradient alone, with weight `1 - a`: exact at `a = 0`,
//! without effect at the usual `a = 0.99`. The rest of the bias comes from older gradients in `v`; it is small where the
//! chain mixes faster than `v` forgets.
//! **Use where** scales differ, correlations are weak and speed matters more than exactness.
//! **Do not use where** expectations matter: it does not sample the posterior. Where past gradients are near zero, a move is
//! as long as `sqrt(2 eps / lambda)`, 45 at a step of 0.01 and the default `lambda`; raise `lambda` if steps diverge.

use super::checks::{check, check_positive};
use super::gradient::{Block, Engine};
use super::vector::for_blocks;
use super::{GradientSettings, Real, Sampler, SamplerError, Start, Step, StepRule, Target};
use crate::random::SeedTree;

/// Settings of [`Psgld`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PsgldSettings {
    /// Step, minibatch and positivity.
    pub gradient: GradientSettings,
    /// The memory `a` of the squared gradients, in [0, 1). Default 0.99.
    pub forgetting: f64,
    /// The floor `lambda` of the metric, above 0: the largest preconditioner is its inverse. Default 1e-5.
    pub regularisation: f64,
    /// Whether to add the Gamma term; the target must offer its [`Curvature`](super::Curvature). It is effective only
    /// if `forgetting` is 0 or nearly 0. Default false.
    pub correction: bool,
}

impl Default for PsgldSettings {
    fn default() -> Self {
        Self {
            gradient: GradientSettings::default(),
            forgetting: 0.99,
            regularisation: 1e-5,
            correction: false,
        }
    }
}

/// Returns an error if a setting of the metric is out of range.
pub(super) fn check_metric(forgetting: f64, regularisation: f64) -> Result<(), SamplerError> {
    check("PSGLD forgetting", forgetting, "in [0, 1)", (0.0..1.0).contains(&forgetting))?;
    check_positive("PSGLD regularisation", regularisation)
}

/// Preconditioned SGLD; see the [module](self).
#[derive(Debug, Clone)]
pub struct Psgld<T> {
    engine: Engine<T>,
    settings: PsgldSettings,
    curvature: Vec<T>,
    blocks: Vec<(Block<T>, Squares<T>)>,
}

/// The running mean of squared gradients, initialised by the first step.
#[derive(Debug, Clone)]
struct Squares<T> {
    v: Vec<T>,
    started: bool,
}

impl<T: Real> Psgld<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: PsgldSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        let PsgldSettings { forgetting, regularisation, correction, .. } = settings;
        check_metric(forgetting, regularisation)?;
        let engine = Engine::new(dimension, blocks, settings.gradient, streams)?;
        let squares = Squares { v: vec![T::zero(); dimension], started: false };
        let blocks: Vec<_> = engine.new_blocks(streams).map(|block| (block, squares.clone())).collect();
        let curvature = vec![T::zero(); if correction { engine.gradient.len() } else { 0 }];
        Ok(Self { engine, settings, curvature, blocks })
    }
}

impl<T: Real> Sampler<T> for Psgld<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let engine = &mut self.engine;
        let step_size = engine.begin(target);
        engine.evaluate_and_check_divergence(target, theta, 0.0);
        if self.settings.correction {
            let batch = engine.batch(target);
            let capability = "the diagonal of its Hessian";
            let curvature = super::offered(target.curvature(), "PSGLD with its correction", capability);
            curvature.hessian_diagonal(theta, batch, &mut self.curvature);
        }
        let (dimension, gradient, limit) = (engine.dimension, &engine.gradient, engine.limit());
        let (step, mirror) = (T::narrow(step_size), engine.settings.mirror);
        let noise = T::narrow(2.0 * step_size * engine.settings.temperature);
        let temperature = T::narrow(engine.settings.temperature);
        let terms = T::narrow(target.terms().max(1) as f64);
        let memory = T::narrow(self.settings.forgetting);
        let floor = T::narrow(self.settings.regularisation);
        let curvature = &self.curvature;
        for_blocks(&mut self.blocks, theta, |index, (block, squares), theta| {
            block.old.copy_from_slice(theta);
            let memory = if squares.started { memory } else { T::zero() };
            squares.started = true;
            for (i, (theta, v)) in theta.iter_mut().zip(&mut squares.v).enumerate() {
                let gradient = gradient[index * dimension + i];
                let mean = gradient / terms;
                *v = memory * *v + (T::one() - memory) * mean * mean;
                let root = v.sqrt();
                let g = T::one() / (floor + root);
                let mut drift = g * gradient;
                if !curvature.is_empty() && root > T::zero() {
                    let slope = curvature[index * dimension + i] / terms;
                    drift += temperature * (T::one() - memory) * g * g * mean * slope / root;
                }
                *theta += (noise * g).sqrt() * T::normal(&mut block.stream) - limit(step * drift);
                if mirror {
                    *theta = theta.abs();
                }
            }
            block.settle(theta);
            // A gradient that is not finite must not stay in the running mean for ever.
            squares.started = squares.v.iter().all(|v| v.is_finite());
        });
        engine.step(step_size, self.blocks.iter().map(|(block, _)| block.diverged))
    }

    fn step_rule(&self) -> StepRule {
        StepRule::Langevin
    }

    /// `eps G` is the step of Langevin dynamics, so the largest `G` determines `eps`.
    fn restart_step(&mut self, _: usize, step: f64) {
        let floor = self.settings.regularisation;
        let weights = self.blocks.iter().flat_map(|(_, squares)| squares.v.iter());
        let smallest = weights.map(|v| v.widen().sqrt()).fold(f64::INFINITY, f64::min);
        self.engine.set_step(0.5 * step * step * (floor + smallest));
    }

    fn change_coordinates(&mut self, _: &mut dyn FnMut(usize, &mut [T])) {
        self.forget();
    }

    fn start(&self) -> Option<Start<'_, T>> {
        self.engine.start()
    }

    fn mirrors(&self) -> bool {
        self.engine.settings.mirror
    }

    fn forget(&mut self) {
        self.engine.forget();
        for (_, squares) in &mut self.blocks {
            // Squares of 0 give the shortest step until the next gradient.
            squares.v.fill(T::zero());
            squares.started = false;
        }
    }

    fn shape(&self) -> (usize, usize) {
        (self.engine.dimension, self.engine.blocks)
    }

    fn check(&self, target: &mut dyn Target<T>) -> Result<(), SamplerError> {
        super::check_target(self.shape(), target)?;
        let offered = !self.settings.correction || target.curvature().is_some();
        super::need(offered, "PSGLD with its correction", "the diagonal of its Hessian")
    }
}
