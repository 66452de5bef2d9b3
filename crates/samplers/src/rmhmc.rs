//! Riemann manifold Hamiltonian Monte Carlo: a mass matrix that follows the state.
//!
//! ```text
//! H(theta, p) = U(theta) + log det G(theta) / 2 + p' G(theta)^-1 p / 2
//! p1     = p - eps/2 dH/dtheta (theta, p1)                       (implicit in p1)
//! theta' = theta + eps/2 (G(theta)^-1 + G(theta')^-1) p1         (implicit in theta')
//! p'     = p1 - eps/2 dH/dtheta (theta', p1)
//! ```
//!
//! for `L` steps from `p ~ N(0, G(theta))`, accepted with probability `min(1, exp(H(start) - H(end)))`.
//!
//! **Source.** Girolami and Calderhead (2011), section 5 and eqs. 16 to 18, the comparator of `quasi-newton-mcmc` and
//! the sampler that `complete-recipe` section 3.1 derives. The implicit equations are iterated until their solution
//! changes by no more than rounding; a trajectory is rejected if they do not converge. Derivatives of the [`Metric`]
//! are central differences.
//! **Cost.** For each of the `L` steps a gradient, two metrics for every unknown, and a few more metrics for the
//! implicit equations, the latter factored unless diagonal. **Bias.** None. The step is relative to the metric, so that
//! its default suits targets of any scale: a warm-up adapts the step alone.
//! **Use where** dimensions are few and the scale varies over the target, as a comparator.
//! **Do not use where** the metric may lose positive definiteness or is costly: every leapfrog step needs dozens of
//! metrics. Where the metric varies by orders of magnitude, long steps have no solution in a part of the target, and
//! the chain does not enter it; divergences indicate this. The implicit equations may also have several solutions; the
//! reversibility of a step is not checked.

use rand::RngExt;

use super::checks::check_shape;
use super::dense::{log_determinant, solve};
use super::gradient::is_divergence;
use super::metric::FactoredMetric;
use super::vector::{add_scaled, dot, is_sound_for_test};
use super::{HmcSettings, Metric, Minibatch, Real, Sampler, SamplerError, Step, Target, TestedStep};
use crate::random::{SeedTree, SeededRng};

/// Riemann manifold HMC; see the [module](self).
#[derive(Debug, Clone)]
pub struct Rmhmc<T> {
    dimension: usize,
    settings: HmcSettings,
    blocks: Vec<Leaper<T>>,
    here: Geometry<T>,
    there: Geometry<T>,
    start: Vec<T>,
    gradient: Vec<T>,
    start_potential: Vec<f64>,
    potential: Vec<f64>,
    shifted: Vec<T>,
    /// The metric at the state shifted along a coordinate, in both directions.
    sides: [Vec<T>; 2],
    adapting: bool,
}

#[derive(Debug, Clone)]
struct Leaper<T> {
    stream: SeededRng,
    /// The step size before jitter.
    step: TestedStep,
    step_size: f64,
    momentum: Vec<T>,
    /// The momentum at the start of an implicit kick, and the velocity at the start of a move.
    old: Vec<T>,
    velocity: Vec<T>,
    scratch: Vec<T>,
    energy: f64,
    probability: f64,
    diverged: bool,
}

impl<T: Real> Leaper<T> {
    /// Writes to `old` the end of a move from `start`, given the metric at `end`.
    fn end_move(&mut self, end: &Geometry<T>, block: usize, start: &[T]) {
        let Self { momentum, velocity, scratch, step_size, old, .. } = self;
        scratch.copy_from_slice(momentum);
        end.inverse(block, scratch);
        let half = T::narrow(0.5 * *step_size);
        for (i, old) in old.iter_mut().enumerate() {
            *old = start[i] + half * (velocity[i] + scratch[i]);
        }
    }
}

/// The metric of every block and its derivatives.
#[derive(Debug, Clone, Default)]
struct Geometry<T> {
    diagonal: bool,
    /// The diagonal or the Cholesky factor, one block after the other.
    factor: Vec<T>,
    /// `dG/dtheta_k` for every `k`, each like `factor`.
    slopes: Vec<Vec<T>>,
    /// `tr(G^-1 dG/dtheta_k) / 2`, `dimension x blocks`.
    traces: Vec<T>,
}

/// Tolerance of the implicit equations, in units of rounding, and limit on their iterations.
const ROUNDINGS: f64 = 1e4;
const ITERATIONS: usize = 60;

/// Whether two iterates agree to rounding.
fn agree<T: Real>(a: &[T], b: &[T]) -> bool {
    let tolerance = T::narrow(ROUNDINGS) * T::epsilon();
    a.iter().zip(b).all(|(&a, &b)| (a - b).abs() <= tolerance * (T::one() + b.abs()))
}

impl<T: Real> Geometry<T> {
    fn stride(&self, n: usize) -> usize {
        if self.diagonal { n } else { n * n }
    }

    /// Evaluates and factors the metric; a block whose metric is not positive definite becomes NaN.
    fn evaluate(&mut self, metric: &mut dyn Metric<T>, theta: &[T], n: usize) {
        self.diagonal = metric.is_diagonal();
        self.factor.resize(theta.len() / n * self.stride(n), T::zero());
        FactoredMetric::factor(metric, theta, n, &mut self.factor);
    }

    /// Evaluates the derivatives of the metric along every coordinate.
    fn differentiate(
        &mut self,
        metric: &mut dyn Metric<T>,
        theta: &[T],
        n: usize,
        shifted: &mut [T],
        sides: &mut [Vec<T>; 2],
    ) {
        let stride = self.stride(n);
        let width = T::narrow(libm::cbrt(T::epsilon().widen()));
        self.slopes.resize(n, Vec::new());
        self.traces.resize(theta.len(), T::zero());
        for k in 0..n {
            for (side, sign) in sides.iter_mut().zip([T::one(), -T::one()]) {
                shifted.copy_from_slice(theta);
                for state in shifted.chunks_exact_mut(n) {
                    state[k] += sign * width * (T::one() + state[k].abs());
                }
                side.resize(self.factor.len(), T::zero());
                metric.metric(shifted, side);
            }
            let slope = &mut self.slopes[k];
            slope.resize(self.factor.len(), T::zero());
            for (block, slope) in slope.chunks_exact_mut(stride).enumerate() {
                let column = block * stride..(block + 1) * stride;
                let weight = T::one() / (T::narrow(2.0) * width * (T::one() + theta[block * n + k].abs()));
                let ends = sides[0][column.clone()].iter().zip(&sides[1][column.clone()]);
                slope.iter_mut().zip(ends).for_each(|(slope, (&up, &down))| *slope = weight * (up - down));
                let factor = &self.factor[column];
                let mut trace = T::zero();
                if self.diagonal {
                    trace = slope.iter().zip(factor).map(|(&slope, &g)| slope / g).sum();
                } else {
                    let state = &mut shifted[..n];
                    for (j, slope) in slope.chunks_exact(n).enumerate() {
                        state.copy_from_slice(slope);
                        solve(factor, state);
                        trace += state[j];
                    }
                }
                self.traces[block * n + k] = T::narrow(0.5) * trace;
            }
        }
    }

    fn of(&self, block: usize, n: usize) -> &[T] {
        &self.factor[block * self.stride(n)..][..self.stride(n)]
    }

    /// `v <- G^-1 v`.
    fn inverse(&self, block: usize, v: &mut [T]) {
        let factor = self.of(block, v.len());
        if self.diagonal {
            v.iter_mut().zip(factor).for_each(|(v, &g)| *v /= g);
        } else {
            solve(factor, v);
        }
    }

    /// Maps standard normal numbers `z` to a draw from `N(0, G)`.
    fn root(&self, block: usize, z: &[T], into: &mut [T]) {
        let n = z.len();
        let factor = self.of(block, n);
        if self.diagonal {
            into.iter_mut().zip(z).zip(factor).for_each(|((to, &z), &g)| *to = g.sqrt() * z);
            return;
        }
        into.fill(T::zero());
        for (column, &z) in factor.chunks_exact(n).zip(z) {
            add_scaled(into, z, column);
        }
    }

    /// `log det G / 2 + p' G^-1 p / 2`.
    fn energy(&self, block: usize, momentum: &[T], scratch: &mut [T]) -> f64 {
        let n = momentum.len();
        let factor = self.of(block, n);
        let determinant = if self.diagonal {
            factor.iter().map(|g| libm::log(g.widen())).sum()
        } else {
            log_determinant(factor, n)
        };
        scratch.copy_from_slice(momentum);
        self.inverse(block, scratch);
        0.5 * (determinant + dot(momentum, scratch).widen())
    }

    /// `into <- dH/dtheta` of a block.
    fn force(&self, block: usize, gradient: &[T], momentum: &[T], scratch: &mut [T], into: &mut [T]) {
        let n = momentum.len();
        scratch.copy_from_slice(momentum);
        self.inverse(block, scratch);
        let half = T::narrow(0.5);
        for (k, into) in into.iter_mut().enumerate() {
            let slope = &self.slopes[k][block * self.stride(n)..][..self.stride(n)];
            let bent: T = if self.diagonal {
                scratch.iter().zip(slope).map(|(&v, &slope)| v * v * slope).sum()
            } else {
                slope.chunks_exact(n).zip(scratch.iter()).map(|(column, &v)| v * dot(column, scratch)).sum()
            };
            *into = gradient[k] + self.traces[block * n + k] - half * bent;
        }
    }
}

impl<T: Real> Rmhmc<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: HmcSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        check_shape(dimension, blocks)?;
        settings.check()?;
        let zeros = vec![T::zero(); dimension];
        let states = vec![T::zero(); dimension * blocks];
        let noise = streams.child(0);
        let leaper = |block: usize| Leaper {
            stream: noise.rng(block as u64),
            step: TestedStep::new(settings.step_size, settings.target_acceptance),
            step_size: settings.step_size,
            momentum: zeros.clone(),
            old: zeros.clone(),
            velocity: zeros.clone(),
            scratch: zeros.clone(),
            energy: 0.0,
            probability: 0.0,
            diverged: false,
        };
        Ok(Self {
            dimension,
            settings,
            blocks: (0..blocks).map(leaper).collect(),
            here: Geometry::default(),
            there: Geometry::default(),
            start: states.clone(),
            gradient: states.clone(),
            shifted: states,
            start_potential: vec![0.0; blocks],
            potential: vec![0.0; blocks],
            sides: [Vec::new(), Vec::new()],
            adapting: false,
        })
    }

    /// Applies half a kick, implicit in the momentum.
    fn implicit_kick(&mut self) {
        let Self { blocks, here, gradient, dimension, .. } = self;
        for (block, leaper) in blocks.iter_mut().enumerate().filter(|(_, leaper)| !leaper.diverged) {
            let Leaper { momentum, old, velocity, scratch, step_size, .. } = leaper;
            let (half, gradient) = (T::narrow(-0.5 * *step_size), &gradient[block * *dimension..]);
            old.copy_from_slice(momentum);
            let settled = (0..ITERATIONS).any(|_| {
                // The buffer of the velocity holds the force first, then the new momentum.
                here.force(block, gradient, momentum, scratch, velocity);
                velocity.iter_mut().zip(old.iter()).for_each(|(f, &old)| *f = old + half * *f);
                std::mem::swap(momentum, velocity);
                agree(momentum, velocity)
            });
            leaper.diverged = !settled;
        }
    }

    /// Moves the position, implicitly in the metric at the end of the move.
    fn implicit_move(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) {
        let n = self.dimension;
        let Self { blocks, here, there, start, shifted, .. } = self;
        shifted.copy_from_slice(theta);
        for (block, leaper) in blocks.iter_mut().enumerate() {
            leaper.velocity.copy_from_slice(&leaper.momentum);
            here.inverse(block, &mut leaper.velocity);
        }
        // The first iterate uses the metric at the start for the end of the move.
        there.diagonal = here.diagonal;
        there.factor.clone_from(&here.factor);
        let mut settled = false;
        for _ in 0..ITERATIONS {
            settled = true;
            for (block, leaper) in blocks.iter_mut().enumerate().filter(|(_, leaper)| !leaper.diverged) {
                let column = block * n..(block + 1) * n;
                leaper.end_move(there, block, &shifted[column.clone()]);
                let Leaper { old, diverged, .. } = leaper;
                let theta = &mut theta[column.clone()];
                settled &= agree(theta, old);
                theta.copy_from_slice(old);
                if !is_sound_for_test(theta) {
                    *diverged = true;
                    theta.copy_from_slice(&start[column]);
                }
            }
            let metric = super::offered(target.metric(), "RMHMC", "a metric");
            there.evaluate(metric, theta, n);
            if settled {
                break;
            }
        }
        if !settled {
            // Some block has not converged: checks each one.
            for (block, leaper) in blocks.iter_mut().enumerate().filter(|(_, leaper)| !leaper.diverged) {
                let column = block * n..(block + 1) * n;
                leaper.end_move(there, block, &shifted[column.clone()]);
                leaper.diverged = !agree(&theta[column], &leaper.old);
            }
        }
        std::mem::swap(here, there);
    }
}

impl<T: Real> Sampler<T> for Rmhmc<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        let (n, adapting, jitter) = (self.dimension, self.adapting, self.settings.jitter);
        let batch = Minibatch::full(target.terms());
        self.start.copy_from_slice(theta);
        target.evaluate(theta, &mut self.start_potential, &mut self.gradient);
        let metric = super::offered(target.metric(), "RMHMC", "a metric");
        self.here.evaluate(metric, theta, n);
        self.here.differentiate(metric, theta, n, &mut self.shifted, &mut self.sides);
        for (block, leaper) in self.blocks.iter_mut().enumerate() {
            leaper.step_size = leaper.step.next(adapting) * (1.0 - jitter * leaper.stream.random::<f64>());
            let Leaper { stream, momentum, old, scratch, .. } = leaper;
            old.iter_mut().for_each(|z| *z = T::normal(stream));
            self.here.root(block, old, momentum);
            leaper.energy = self.start_potential[block] + self.here.energy(block, momentum, scratch);
            leaper.diverged = !leaper.energy.is_finite();
        }
        for leap in 1..=self.settings.leaps {
            self.implicit_kick();
            self.implicit_move(target, theta);
            if leap == self.settings.leaps {
                target.evaluate(theta, &mut self.potential, &mut self.gradient);
            } else {
                target.gradient(theta, batch, &mut self.gradient);
            }
            let metric = super::offered(target.metric(), "RMHMC", "a metric");
            self.here.differentiate(metric, theta, n, &mut self.shifted, &mut self.sides);
            for (block, leaper) in self.blocks.iter_mut().enumerate() {
                let Leaper { momentum, velocity, scratch, step_size, .. } = leaper;
                self.here.force(block, &self.gradient[block * n..], momentum, scratch, velocity);
                add_scaled(momentum, T::narrow(-0.5 * *step_size), velocity);
            }
        }
        let (mut potential, mut energy) = (0.0, 0.0);
        for (block, leaper) in self.blocks.iter_mut().enumerate() {
            let Leaper { momentum, scratch, .. } = leaper;
            let end = self.potential[block] + self.here.energy(block, momentum, scratch);
            let error = end - leaper.energy;
            leaper.diverged |= is_divergence(error);
            leaper.probability = if leaper.diverged { 0.0 } else { libm::exp(-error.max(0.0)) };
            if leaper.stream.random::<f64>() < leaper.probability {
                potential += self.potential[block];
                energy += end;
            } else {
                potential += self.start_potential[block];
                energy += leaper.energy;
                theta[block * n..(block + 1) * n].copy_from_slice(&self.start[block * n..(block + 1) * n]);
            }
            if adapting {
                leaper.step.update(leaper.probability);
            }
        }
        let (blocks, count) = (&self.blocks, self.blocks.len() as f64);
        Step {
            acceptance: blocks.iter().map(|leaper| leaper.probability).sum::<f64>() / count,
            potential: Some(potential),
            divergences: blocks.iter().filter(|leaper| leaper.diverged).count(),
            step_size: blocks.iter().map(|leaper| leaper.step_size).sum::<f64>() / count,
            energy: Some(energy),
            leapfrog_steps: self.settings.leaps,
            tested: true,
            ..Step::default()
        }
    }

    fn shape(&self) -> (usize, usize) {
        (self.dimension, self.blocks.len())
    }

    fn adapt(&mut self, on: bool) {
        if self.adapting && !on {
            self.blocks.iter_mut().for_each(|leaper| leaper.step.finish());
        }
        self.adapting = on;
    }

    fn check(&self, target: &mut dyn Target<T>) -> Result<(), SamplerError> {
        super::check_target(self.shape(), target)?;
        super::need(target.metric().is_some(), "RMHMC", "a metric")
    }
}

#[cfg(test)]
mod tests {
    use super::agree;

    #[test]
    fn iterates_agree_to_some_thousand_roundings_of_their_size_or_of_one() {
        for size in [0.0, 1.0, 1e6] {
            let rounding = f64::EPSILON * (1.0 + size);
            assert!(agree(&[size + 9e3 * rounding], &[size]) && !agree(&[size + 2e4 * rounding], &[size]));
        }
    }
}
