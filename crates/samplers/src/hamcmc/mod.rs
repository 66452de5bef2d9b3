//! Hessian-approximated MCMC: Langevin dynamics preconditioned by L-BFGS, without a correction term.
//!
//! With memory `M`, the sampler runs `M` interleaved chains. Step `t` moves the oldest of them with an inverse Hessian that
//! does not depend on its state, so that the Gamma term of a state-dependent metric vanishes:
//!
//! ```text
//! g       = grad U~(theta[t-M]),  z ~ N(0, I)
//! H = S S'  from the pairs (s, y)[t-M+1 .. t-1]
//! theta[t] = theta[t-M] - eps H g + sqrt(2 eps) S z
//! s[t]     = theta[t] - theta[t-M]
//! y[t]     = grad U~(theta[t]) - g + lambda s[t]         (same minibatch)
//! ```
//!
//! **Source.** `hamcmc-2016` algorithm 1, with the square root of [`lbfgs`](super::lbfgs) instead of its
//! eq. 11. Pairs without positive curvature are left out of `H`; until there are pairs, `H = gamma I`.
//! **Bias.** As published ([`Pairs::Moves`]), a bias remains at any step, in two or more dimensions where the Hessian
//! varies. `H` does not depend on `theta[t-M]` itself, but its pairs are moves made with matrices that did. As the
//! length of `s` cancels in `H`, this dependence does not vanish with the step. On a product of two log-Gamma(5) laws,
//! sheared by 2, a mean is off by 0.04 standard deviations at `M = 2` and by 0.03 at `M = 3`, at steps 0.04 and 0.01
//! alike. There is no bias on a Gaussian, where all pairs describe one Hessian, and none in one dimension. With
//! [`Pairs::States`] the pairs are differences between the current states of the other chains. Their bias vanishes with
//! the step, to first order: 0.017 and 0.007 in the worse mean of that law at these steps. These differences are as
//! large as the spread of the target, so they average the curvature over it. They need one more chain for the same
//! number of pairs.
//! **Cost.** Two gradients and `O(M^2 dimension)` per step; memory `O(M dimension)` per block. With `refresh_interval`
//! above 1, a chain refreshes its pair, and evaluates the second gradient, only at every `refresh_interval`-th of its
//! steps. The other chains have moved with the older pair and depend on it, which increases the bias at a given step.
//! With a Metropolis test, every step refreshes the pair; otherwise the test would not be exact.
//! **Minibatches.** A step evaluates all gradients of its pairs on one minibatch, as published, so that their noise cancels. For
//! pairs of states these are `M - 1` more gradients, at every step whatever the `refresh_interval`.
//! **Mirroring.** With `mirror` each draw is folded into the positive orthant and the pairs are taken between folded
//! states (the paper's form). A dense `H` makes this reflection oblique, which distorts the density within one step
//! length of the boundary at any step. To avoid this, wrap the target in [`Mirrored`](super::Mirrored): the chain then
//! runs on the even extension of the density to all signs.
//! **Metropolis.** [`Hamcmc::with_metropolis`] accepts or rejects each move, and is exact at any step; it requires
//! pairs of states, and costs two potentials of all data and a second gradient at every step.
//! [`Hamcmc::with_step_adaptation`] computes the same acceptance probability as a shadow test, which rejects nothing,
//! to adapt the step during a warm-up. [`Hamcmc::with_curvature_bounds`] bounds `H`.
//! **Use where** targets are correlated or badly scaled and gradients come from minibatches. The step is nearly scale-free: 0.05
//! to 0.5 of a Newton step.
//! **Do not use where**, without a Metropolis test, tails are heavy (Student-t), curvature is unbounded or its scale varies
//! (funnels, Rosenbrock): a pair from a flat region makes the next move elsewhere too long, and nothing is rejected.

mod memory;
mod settings;

use rand::RngExt;

use super::checks::{check, check_acceptance, check_combination, check_from_zero};
use super::gradient::Engine;
use super::lbfgs::InverseHessian;
use super::vector::{add_scaled, dot, for_blocks};
use super::{
    DualAveraging, GradientSettings, InitialScale, Real, Sampler, SamplerError, Start, Step, StepRule, Target,
};
use crate::random::SeedTree;
use crate::warm_up::{Noise, looks};
use memory::Memory;
pub use settings::{HamcmcSettings, Pairs};

/// Hessian-approximated MCMC; see the [module](self).
#[derive(Debug, Clone)]
pub struct Hamcmc<T> {
    engine: Engine<T>,
    settings: HamcmcSettings,
    pairs: Pairs,
    /// Whether `H` admits pairs whose curvature is positive only because of the trust region.
    shifted: bool,
    /// The last `M` states (`dimension x blocks` each); slot `t mod M` holds `theta[t-M]`.
    states: Vec<Vec<T>>,
    slot: usize,
    started: bool,
    /// The state that the last step started from; empty before the first.
    start: Vec<T>,
    /// Whether a Metropolis test follows each move.
    metropolis: bool,
    /// The least and the largest curvature of a pair.
    bounds: [f64; 2],
    /// The target acceptance of step adaptation, if enabled.
    target_acceptance: Option<f64>,
    averaging: Option<DualAveraging>,
    /// Number of warm-up steps in the current coordinates.
    steps_here: usize,
    /// The minibatch noise of the gradients, in the metric `H`.
    noise: Noise,
    /// The smallest initial step over the blocks so far.
    first_step: f64,
    /// The potentials of every block at the start and at the end of a move.
    potentials: [Vec<f64>; 2],
    next_gradient: Vec<T>,
    blocks: Vec<Memory<T>>,
}

impl<T: Real> Hamcmc<T> {
    /// Creates a sampler for `blocks` independent blocks of `dimension` unknowns, each with its own memory; the pairs
    /// are [`Pairs::Moves`].
    ///
    /// # Errors
    /// If a setting is out of range; the memory must be at least 2.
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: HamcmcSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        let HamcmcSettings { memory, initial_scale, refresh_interval, trust_region, .. } = settings;
        check_memory(memory, initial_scale, trust_region)?;
        check("HAMCMC refresh_interval", refresh_interval as f64, "at least 1", refresh_interval > 0)?;
        let engine = Engine::new(dimension, blocks, settings.gradient, streams)?;
        let blocks = engine.new_blocks(streams).map(|block| Memory {
            block,
            s: vec![T::zero(); dimension * memory],
            y: vec![T::zero(); dimension * memory],
            usable: vec![false; memory],
            differences: [Vec::new(), Vec::new()],
            inverse: InverseHessian::new(dimension, memory - 1),
            noise: vec![T::zero(); dimension],
            whitened: [vec![T::zero(); dimension], vec![T::zero(); dimension]],
            steepness: 0.0,
            probability: 1.0,
            rejected: false,
            ran_away: false,
            limited: 0,
        });
        let blocks: Vec<_> = blocks.collect();
        let potentials = [vec![0.0; blocks.len()], vec![0.0; blocks.len()]];
        let zeros = engine.gradient.clone();
        Ok(Self {
            settings,
            pairs: Pairs::Moves,
            shifted: false,
            states: vec![zeros.clone(); memory],
            slot: 0,
            started: false,
            start: Vec::new(),
            metropolis: false,
            bounds: [0.0, f64::INFINITY],
            target_acceptance: None,
            averaging: None,
            steps_here: 0,
            noise: Noise::default(),
            first_step: f64::INFINITY,
            potentials,
            next_gradient: zeros,
            blocks,
            engine,
        })
    }

    /// Sets the kind of pairs, before the first step.
    ///
    /// # Errors
    /// If the memory is below 3 for [`Pairs::States`], as a difference needs two other chains. If moves are
    /// [tested](Self::with_metropolis) and the pairs are [`Pairs::Moves`].
    pub fn with_pairs(mut self, pairs: Pairs) -> Result<Self, SamplerError> {
        let memory = self.settings.memory;
        let enough = pairs == Pairs::Moves || memory >= 3;
        check("HAMCMC memory with pairs of states", memory as f64, "at least 3", enough)?;
        check_metropolis(pairs, self.metropolis)?;
        self.pairs = pairs;
        Ok(self)
    }

    /// Adds a Metropolis test of the proposal `N(theta - eps H g, 2 eps H)` to every move. With [`Pairs::States`] the
    /// draws then follow the target at any step, with minibatches too, if potentials use all data. Costs two potentials
    /// and two gradients per step; every step refreshes its pair, whatever the `refresh_interval`.
    ///
    /// # Errors
    /// If the gradient settings mirror, limit the drift or have a temperature other than 1, which changes the density
    /// of the proposal. If the pairs are [`Pairs::Moves`]: set [`Pairs::States`] first.
    pub fn with_metropolis(mut self) -> Result<Self, SamplerError> {
        let GradientSettings { mirror, drift_limit, temperature, .. } = self.settings.gradient;
        check_combination("mirror", METROPOLIS, !mirror)?;
        check_combination("drift_limit", METROPOLIS, drift_limit == f64::INFINITY)?;
        check_combination("temperature", METROPOLIS, temperature == 1.0)?;
        check_metropolis(self.pairs, true)?;
        self.metropolis = true;
        Ok(self)
    }

    /// Excludes a pair from `H` if its curvature `s'y / s's` is below `least` or `y'y / s'y` above `largest`. A pair of
    /// small curvature makes `H` large along it. Where curvature varies, chains then run away.
    ///
    /// # Errors
    /// If `least` is negative or not below `largest`.
    pub fn with_curvature_bounds(mut self, least: f64, largest: f64) -> Result<Self, SamplerError> {
        check(
            "HAMCMC least curvature",
            least,
            "at least 0, below the largest",
            least >= 0.0 && least < largest,
        )?;
        self.bounds = [least, largest];
        Ok(self)
    }

    /// Adapts the step during a [warm-up](Sampler::warm_up) to the acceptance of a shadow Metropolis test, which
    /// rejects nothing. If [`with_metropolis`](Self::with_metropolis) is on, its test is used instead. During the
    /// warm-up, the cost is that of `with_metropolis`. With minibatches, shadow tests use the gradients of all data, at
    /// the first 20 steps in new coordinates and at every 20th step afterwards. The step is limited so that minibatch
    /// noise adds at most 5 % to the variance of the draws.
    ///
    /// # Errors
    /// If the acceptance is not in (0, 1). If the gradient settings mirror or have a temperature other than 1, which
    /// changes the density of the proposal.
    pub fn with_step_adaptation(mut self, target_acceptance: f64) -> Result<Self, SamplerError> {
        let GradientSettings { mirror, temperature, .. } = self.settings.gradient;
        check_combination("mirror", "step adaptation of HAMCMC", !mirror)?;
        check_combination("temperature", "step adaptation of HAMCMC", temperature == 1.0)?;
        check_acceptance("target acceptance", target_acceptance)?;
        self.target_acceptance = Some(target_acceptance);
        Ok(self)
    }

    /// Admits every pair whose curvature is positive after adding the trust region `lambda`, as in the paper. Where the
    /// curvature is about `-lambda`, `H` is large: the inverse of their sum.
    #[must_use]
    pub fn with_shifted_pairs(mut self) -> Self {
        self.shifted = true;
        self
    }
}

/// Returns an error if a setting of the memory is out of range.
pub(super) fn check_memory(
    memory: usize,
    initial_scale: InitialScale,
    trust_region: f64,
) -> Result<(), SamplerError> {
    check("HAMCMC memory", memory as f64, "at least 2", memory >= 2)?;
    initial_scale.check("HAMCMC initial scale")?;
    check_from_zero("HAMCMC trust region", trust_region)
}

/// The name of the Metropolis test in errors.
const METROPOLIS: &str = "the Metropolis test of HAMCMC";

/// Returns an error for a Metropolis test with [`Pairs::Moves`], which depend on the chain that moves.
fn check_metropolis(pairs: Pairs, metropolis: bool) -> Result<(), SamplerError> {
    check_combination("pairs of moves", METROPOLIS, pairs == Pairs::States || !metropolis)
}

impl<T: Real> Hamcmc<T> {
    /// Whether the acceptance of a move is computed, to test it or to adapt the step.
    fn tests(&self) -> bool {
        self.metropolis || self.averaging.is_some() && (self.engine.uses_all || !self.engine.subsamples())
    }

    /// Whether this step refreshes the pair of its chain. A tested chain always refreshes: an older pair depends on the
    /// states of the other chains.
    fn is_due(&self) -> bool {
        let steps_of_chain = (self.engine.iteration - 1) / self.states.len() as u64;
        self.metropolis || steps_of_chain.is_multiple_of(self.settings.refresh_interval)
    }

    /// Returns the trust region and the curvature bounds of a pair.
    fn trust_region(&self) -> (T, [T; 2]) {
        let trust_region = T::narrow(self.settings.trust_region);
        let least = T::narrow(self.bounds[0]).max(if self.shifted { T::zero() } else { trust_region });
        (trust_region, [least, T::narrow(self.bounds[1])])
    }

    /// Stores the other chains' states with their gradients on the minibatch of this step: the difference of gradients
    /// on two minibatches would contain the noise of both.
    fn evaluate_others(&mut self, target: &mut dyn Target<T>) {
        let Self { engine, states, next_gradient, blocks, .. } = self;
        let dimension = engine.dimension;
        for (k, state) in states.iter().enumerate() {
            if k == self.slot || !blocks.iter().any(|memory| memory.usable[k]) {
                continue;
            }
            target.gradient(state, engine.batch(target), next_gradient);
            let columns = state.chunks_exact(dimension).zip(next_gradient.chunks_exact(dimension));
            for (memory, (state, gradient)) in blocks.iter_mut().zip(columns) {
                memory.store(k, state, gradient);
            }
        }
    }

    /// Assembles `H` and moves the chain of this step.
    fn propose(&mut self, target: &mut dyn Target<T>, theta: &mut [T], step_size: f64) {
        let (slot, tests, curvature) = (self.slot, self.tests(), self.trust_region());
        let (initial, pairs) = (self.settings.initial_scale, self.pairs);
        self.engine.evaluate(target, &self.states[slot]);
        if pairs == Pairs::States && self.engine.subsamples() {
            self.evaluate_others(target);
        }
        let Self { engine, next_gradient: noisy, .. } = self;
        let (start, measures) = (&self.states[slot], engine.uses_all && engine.subsamples());
        if measures {
            target.gradient(start, engine.subsample(target), noisy);
        }
        let (dimension, gradient) = (engine.dimension, &engine.gradient);
        let GradientSettings { temperature, mirror, drift_limit, .. } = engine.settings;
        let (step, limit) = (T::narrow(step_size), engine.limit());
        let noise = T::narrow((2.0 * step_size * temperature).sqrt());
        for_blocks(&mut self.blocks, theta, |index, memory, theta| {
            let column = index * dimension..(index + 1) * dimension;
            match pairs {
                Pairs::Moves => memory.assemble(slot, initial),
                Pairs::States => memory.assemble_from_states(slot, initial, curvature),
            }
            if measures {
                memory.measure(&noisy[column.clone()], &gradient[column.clone()]);
            }
            memory.ran_away = false;
            memory.limited = 0;
            memory.block.old.copy_from_slice(&start[column.clone()]);
            theta.copy_from_slice(&gradient[column]);
            // A state without a finite gradient would stop this chain for ever: noise alone moves it until the gradient
            // is finite.
            if !theta.iter().all(|gradient| gradient.is_finite()) {
                theta.fill(T::zero());
            }
            memory.inverse.multiply_root_transposed(theta);
            memory.steepness = dot(theta, theta).widen();
            let Memory { block, inverse, noise: z, limited, whitened: [whitened, _], .. } = memory;
            z.iter_mut().for_each(|z| *z = noise * T::normal(&mut block.stream));
            if tests {
                whitened.iter_mut().zip(z.iter()).for_each(|(w, &z)| *w = z / noise);
            }
            if drift_limit.is_finite() {
                inverse.multiply_root(theta);
                inverse.multiply_root(z);
                for (theta, &z) in theta.iter_mut().zip(z.iter()) {
                    let drift = step * *theta;
                    let cut = limit(drift);
                    *limited += usize::from(cut != drift);
                    *theta = z - cut;
                }
            } else {
                theta.iter_mut().zip(z.iter()).for_each(|(theta, &z)| *theta = z - step * *theta);
                inverse.multiply_root(theta);
            }
            add_scaled(theta, T::one(), &block.old);
            if mirror {
                theta.iter_mut().for_each(|theta| *theta = theta.abs());
            }
            block.settle(theta);
        });
        if measures {
            let blocks = self.blocks.iter();
            self.noise.add(blocks.flat_map(|memory| memory.whitened[1].iter().map(|value| value.widen())));
        }
    }

    /// Evaluates the target at the end of the move, tests the move and refreshes the pair of the chain.
    fn conclude(&mut self, target: &mut dyn Target<T>, theta: &mut [T], step_size: f64) {
        let (slot, is_due, tests, curvature) = (self.slot, self.is_due(), self.tests(), self.trust_region());
        let (pairs, metropolis) = (self.pairs, self.metropolis);
        let Self { engine, next_gradient, potentials: [start_potential, end_potential], .. } = self;
        if tests {
            target.potential(&self.states[slot], start_potential);
        }
        let batch = engine.batch(target);
        if tests && batch.indices().is_none() {
            target.evaluate(theta, end_potential, next_gradient);
        } else {
            target.gradient(theta, batch, next_gradient);
            if tests {
                target.potential(theta, end_potential);
            }
        }
        let folded = engine.settings.mirror || target.is_folded();
        let weight = if folded { 0.0 } else { 0.25 * step_size };
        let (dimension, gradient, next_gradient) = (engine.dimension, &engine.gradient, &*next_gradient);
        for_blocks(&mut self.blocks, theta, |index, memory, theta| {
            let column = index * dimension..(index + 1) * dimension;
            let (before, mut after) = (&gradient[column.clone()], &next_gradient[column]);
            memory.check_runaway(theta, [before, after], weight);
            if tests {
                let potential = start_potential[index] - end_potential[index];
                memory.test(potential, 0.5 * step_size, [before, after]);
                if metropolis && memory.block.stream.random::<f64>() >= memory.probability {
                    memory.rejected = true;
                    theta.copy_from_slice(&memory.block.old);
                    after = before;
                }
            }
            if is_due {
                memory.refresh(slot, theta, [before, after], (pairs, curvature, metropolis));
            }
        });
    }

    /// Sets the step size from a leapfrog step, limited by the minibatch noise.
    fn set_step(&mut self, step: f64) {
        let step = step.min(StepRule::Langevin.longest_step(self.noise.variance()));
        self.engine.set_step(0.5 * step * step);
    }

    /// Returns the report of this step and adapts the step size.
    fn report(&mut self, step_size: f64) -> Step {
        let taken_back = self.blocks.iter().map(|memory| memory.block.diverged);
        let mut step = self.engine.step(step_size, taken_back);
        // Blocks with a reverted move are already counted.
        let ran_away = |memory: &&Memory<T>| memory.ran_away && !memory.block.diverged;
        step.divergences += self.blocks.iter().filter(ran_away).count();
        step.tested = self.metropolis;
        step.pairs = Some(self.blocks.iter().map(|memory| memory.inverse.pairs()).sum());
        step.clipped = Some(self.blocks.iter().map(|memory| memory.limited).sum());
        if self.tests() {
            let count = self.blocks.len() as f64;
            let acceptance = self.blocks.iter().map(|memory| memory.probability).sum::<f64>() / count;
            if let Some(averaging) = &mut self.averaging {
                averaging.update(acceptance);
                let step = averaging.current();
                self.set_step(step);
            }
            if self.metropolis {
                step.acceptance = acceptance;
                let ends = self.potentials[0].iter().zip(&self.potentials[1]).zip(&self.blocks);
                step.potential = Some(ends.map(|((a, b), memory)| if memory.rejected { a } else { b }).sum());
            }
        }
        step
    }
}

impl<T: Real> Sampler<T> for Hamcmc<T> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        if !self.started {
            self.states.iter_mut().for_each(|state| state.copy_from_slice(theta));
            self.started = true;
        }
        let step_size = self.engine.begin(target);
        if self.averaging.is_some() {
            self.engine.uses_all = !self.metropolis && looks(self.steps_here);
            self.steps_here += 1;
        }
        self.propose(target, theta, step_size);
        if self.is_due() || self.tests() {
            self.conclude(target, theta, step_size);
        }
        let state = &mut self.states[self.slot];
        self.start.clear();
        self.start.extend_from_slice(state);
        state.copy_from_slice(theta);
        self.slot = (self.slot + 1) % self.states.len();
        self.report(step_size)
    }

    /// Starts step adaptation if [`with_step_adaptation`](Hamcmc::with_step_adaptation) enabled it.
    fn warm_up(&mut self, _: usize) {
        if let Some(target) = self.target_acceptance {
            let step = (2.0 * self.engine.settings.step_size.at(1)).sqrt();
            // A step from an earlier adaptation is nearly right, so adaptation stays near it.
            self.averaging = Some(match self.metropolis || self.first_step.is_infinite() {
                true => DualAveraging::start(step, target),
                false => DualAveraging::cautious(4.0 * step, target),
            });
            self.steps_here = 0;
            self.noise.reset();
        }
    }

    fn adapt(&mut self, on: bool) {
        if let (Some(averaging), false) = (&self.averaging, on) {
            let step = averaging.adapted();
            self.set_step(step);
            self.averaging = None;
            self.engine.uses_all = false;
        }
    }

    /// All blocks share one step: the smallest over the blocks.
    fn restart_step(&mut self, block: usize, step: f64) {
        let step = if block == 0 { step } else { step.min(self.first_step) };
        self.first_step = step;
        if let (Some(averaging), Some(target)) = (&mut self.averaging, self.target_acceptance) {
            *averaging = match self.metropolis {
                true => DualAveraging::start(step, target),
                false => DualAveraging::cautious(step, target),
            };
            let step = averaging.current();
            self.steps_here = 0;
            self.noise.reset();
            self.set_step(step);
        }
    }

    fn change_coordinates(&mut self, change: &mut dyn FnMut(usize, &mut [T])) {
        let dimension = self.engine.dimension;
        for state in &mut self.states {
            state.chunks_exact_mut(dimension).enumerate().for_each(|(block, state)| change(block, state));
        }
        self.start.clear();
        self.blocks.iter_mut().for_each(|memory| memory.usable.fill(false));
    }

    /// Resets all chains: the next step puts them at its state, without pairs.
    fn forget(&mut self) {
        self.engine.forget();
        self.started = false;
        self.start.clear();
        self.slot = 0;
        self.blocks.iter_mut().for_each(|memory| memory.usable.fill(false));
    }

    fn shape(&self) -> (usize, usize) {
        (self.engine.dimension, self.engine.blocks)
    }

    fn start(&self) -> Option<Start<'_, T>> {
        let Self { start, engine, .. } = self;
        (!start.is_empty()).then_some(Start { gradient: &engine.gradient, state: Some(start) })
    }

    fn mirrors(&self) -> bool {
        self.engine.settings.mirror
    }

    fn chains(&self) -> usize {
        self.states.len()
    }

    fn next_chain(&self) -> usize {
        self.slot
    }

    fn next_start<'a>(&'a self, last: &'a [T]) -> &'a [T] {
        if self.started { &self.states[self.slot] } else { last }
    }
}
