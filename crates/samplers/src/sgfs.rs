//! Stochastic gradient Fisher scoring: gradient noise replaces injected noise.
//!
//! ```text
//! I     <- (1 - k) I + k V,  k = 1 / t          (V: the covariance of the n scores of the subsample)
//! theta <- theta - 2 (g N I + 4 B / eps)^-1 (grad U~ - z),  z ~ N(0, 4 B / eps),  g = (n + N) / n
//! ```
//!
//! **Source.** Ahn, Korattikara and Welling (2012), algorithm 1. `N I` estimates the Fisher information of all data by
//! the scatter of the terms' gradients in the subsample of `n`; the prior is excluded. Terms are evaluated one by one,
//! so a subsample is required.
//! **Cost.** `n` gradients of one data term each, `n dimension^2` for their covariance and `dimension^3 / 3` per block.
//! **Bias.** With long steps draws follow the Gaussian limit of the posterior (Bernstein and von Mises); with short ones the
//! posterior itself, as `I` settles and the step falls.
//! **Use where** data terms are many, parameters few, and the posterior nearly Gaussian.
//! **Do not use where** the posterior is not nearly Gaussian, the prior matters, or data terms are few.

use super::checks::check;
use super::dense::{cholesky, solve};
use super::gradient::{Block, Engine};
use super::matrix::{Matrix, Spectrum};
use super::vector::for_blocks;
use super::{GradientSettings, Minibatch, Real, Sampler, SamplerError, Start, Step, Target};
use crate::random::SeedTree;

/// Stochastic gradient Fisher scoring; see the [module](self).
#[derive(Debug, Clone)]
pub struct Sgfs<T> {
    engine: Engine<T>,
    blocks: Vec<Scorer<T>>,
    conditioner: Spectrum<f64>,
    dense: Vec<f64>,
    /// The terms' gradients, one after the other, each `dimension x blocks`.
    scores: Vec<Vec<T>>,
    /// Steps since the estimate of the information began.
    steps: u64,
}

#[derive(Debug, Clone)]
struct Scorer<T> {
    block: Block<T>,
    /// `N I`.
    information: Vec<f64>,
    factor: Vec<f64>,
    step: Vec<f64>,
    scratch: Vec<f64>,
}

impl<T: Real> Sgfs<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns. The settings need a minibatch of at
    /// least 2 terms. Their temperature must be 1: the step does not scale the gradient noise, which is that of the
    /// posterior. Their drift limit must be infinite, as drift and noise are not separate.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: GradientSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        let size = settings.minibatch.unwrap_or(0);
        check("SGFS minibatch size", size as f64, "at least 2", size >= 2)?;
        let temperature = settings.temperature;
        check("SGFS temperature", temperature, "1", temperature == 1.0)?;
        let limit = settings.drift_limit;
        check("SGFS drift limit", limit, "infinite", limit == f64::INFINITY)?;
        let engine = Engine::new(dimension, blocks, settings, streams)?;
        let scorer = |block| Scorer {
            block,
            information: vec![0.0; dimension * dimension],
            factor: vec![0.0; dimension * dimension],
            step: vec![0.0; dimension],
            scratch: vec![0.0; dimension],
        };
        let states = engine.new_blocks(streams).map(scorer).collect();
        let scores = vec![engine.gradient.clone(); size];
        Self { engine, blocks: states, conditioner: unit(dimension)?, dense: Vec::new(), scores, steps: 0 }
            .with_conditioner(&Matrix::Scalar(1.0))
    }

    /// Sets the matrix `B` of every block (default: identity), best proportional to the information `N I`.
    ///
    /// # Errors
    /// If the matrix has another size or is not symmetric and positive definite.
    pub fn with_conditioner(mut self, conditioner: &Matrix) -> Result<Self, SamplerError> {
        let n = self.engine.dimension;
        self.conditioner = conditioner.decompose("the conditioner", n, true)?;
        self.dense = vec![0.0; n * n];
        let mut scratch = vec![0.0; n];
        for (j, column) in self.dense.chunks_exact_mut(n).enumerate() {
            column[j] = 1.0;
            self.conditioner.apply(column, &mut scratch);
        }
        Ok(self)
    }

    /// The estimate of the information `N I` of all data in one block (`dimension^2`).
    ///
    /// # Panics
    /// If there is no block of this number.
    #[must_use]
    pub fn information(&self, block: usize) -> &[f64] {
        &self.blocks[block].information
    }
}

fn unit(dimension: usize) -> Result<Spectrum<f64>, SamplerError> {
    Matrix::Scalar(1.0).decompose("the conditioner", dimension, true)
}

impl<T: Real> Sampler<T> for Sgfs<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let Self { engine, blocks, conditioner, dense, scores, steps } = self;
        *steps += 1;
        let step_size = engine.begin(target);
        let terms = target.terms();
        let n = engine.dimension;
        let chosen = engine.batch(target);
        for (score, term) in scores.iter_mut().zip(chosen.iter()) {
            target.gradient(theta, Minibatch::subsample(&[term], terms), score);
        }
        let (size, all) = (scores.len() as f64, terms as f64);
        // The gradient on a single term estimates the whole gradient: N times its score, plus that of the prior.
        engine.gradient.fill(T::zero());
        for score in scores.iter() {
            for (sum, &score) in engine.gradient.iter_mut().zip(score) {
                *sum += score / T::narrow(size);
            }
        }
        engine.keep(theta);
        let gradient = &engine.gradient;
        let mirror = engine.settings.mirror;
        let share = 1.0 / *steps as f64;
        let (weight, strength) = ((size + all) / size, 4.0 / step_size);
        for_blocks(blocks, theta, |index, scorer, theta| {
            let Scorer { block, information, factor, step, scratch } = scorer;
            let column = index * n..(index + 1) * n;
            block.old.copy_from_slice(theta);
            let mean = &gradient[column.clone()];
            information.iter_mut().for_each(|entry| *entry *= 1.0 - share);
            for score in scores.iter() {
                let away =
                    score[column.clone()].iter().zip(mean).map(|(&score, &mean)| (score - mean).widen());
                scratch.iter_mut().zip(away).for_each(|(to, away)| *to = away);
                for (j, entries) in information.chunks_exact_mut(n).enumerate() {
                    let factor = share * scratch[j] / ((size - 1.0) * all);
                    entries.iter_mut().zip(scratch.iter()).for_each(|(entry, away)| *entry += factor * away);
                }
            }
            for ((factor, &information), &dense) in
                factor.iter_mut().zip(information.iter()).zip(dense.iter())
            {
                *factor = weight * information + strength * dense;
            }
            step.iter_mut().for_each(|z| *z = f64::normal(&mut block.stream));
            conditioner.apply_mapped(|value| (strength * value).sqrt(), step, scratch);
            step.iter_mut().zip(mean).for_each(|(step, mean)| *step = mean.widen() - *step);
            if cholesky(factor, n) {
                solve(factor, step);
            } else {
                step.fill(f64::NAN);
            }
            for (theta, step) in theta.iter_mut().zip(step.iter()) {
                *theta -= T::narrow(2.0 * step);
                if mirror {
                    *theta = theta.abs();
                }
            }
            block.settle(theta);
        });
        engine.step(step_size, blocks.iter().map(|scorer| scorer.block.diverged))
    }

    /// Restarts the estimate of the information; the conditioner then applies in the new coordinates.
    fn change_coordinates(&mut self, _: &mut dyn FnMut(usize, &mut [T])) {
        self.forget();
    }

    fn forget(&mut self) {
        self.engine.forget();
        self.steps = 0;
    }

    fn start(&self) -> Option<Start<'_, T>> {
        self.engine.start()
    }

    fn check(&self, target: &mut dyn Target<T>) -> Result<(), SamplerError> {
        super::check_target(self.shape(), target)?;
        super::need(target.terms() > 0, "SGFS", "data terms")
    }

    fn mirrors(&self) -> bool {
        self.engine.settings.mirror
    }

    fn shape(&self) -> (usize, usize) {
        (self.engine.dimension, self.engine.blocks)
    }
}
