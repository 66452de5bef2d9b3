//! Settings, subsamples and gradients of the minibatch samplers.

use rand::RngExt;

use super::checks::{check, check_from_zero, check_shape};
use super::vector::{dot, is_sound};
use super::{Minibatch, Real, SamplerError, Start, Step, StepSize, Target};
use crate::random::{SeedTree, SeededRng};

/// Settings of all minibatch gradient samplers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GradientSettings {
    /// The step `eps`, in the convention `theta <- theta - eps D grad U + N(0, 2 eps D)`.
    pub step_size: StepSize,
    /// Number of data terms in each gradient, drawn with replacement; `None` for all.
    pub minibatch: Option<usize>,
    /// Replace each draw by its absolute value (Patterson and Teh 2013) and reverse its momentum.
    pub mirror: bool,
    /// Largest move of a coordinate by the drift in one step; infinite by default. Noise is not limited. A limit that rarely
    /// binds helps from a bad start; one that binds often biases the draws.
    pub drift_limit: f64,
    /// Temperature: draws follow `exp(-U / temperature)`. 1 samples, 0 descends.
    pub temperature: f64,
}

impl Default for GradientSettings {
    /// A constant step of 0.01, full gradients, no mirroring, no limit, temperature 1.
    fn default() -> Self {
        Self {
            step_size: StepSize::Constant(0.01),
            minibatch: None,
            mirror: false,
            drift_limit: f64::INFINITY,
            temperature: 1.0,
        }
    }
}

impl GradientSettings {
    pub(super) fn check(&self) -> Result<(), SamplerError> {
        self.step_size.check()?;
        if let Some(size) = self.minibatch {
            check("minibatch size", size as f64, "at least 1", size > 0)?;
        }
        check("drift limit", self.drift_limit, "a number above 0", self.drift_limit > 0.0)?;
        check_from_zero("temperature", self.temperature)
    }
}

/// Data subsample of the current step.
#[derive(Debug, Clone)]
struct Subsample {
    size: Option<usize>,
    indices: Vec<usize>,
    stream: SeededRng,
}

impl Subsample {
    fn draw(&mut self, terms: usize) {
        if let Some(size) = self.size.filter(|_| terms > 0) {
            self.indices.clear();
            self.indices.extend((0..size).map(|_| self.stream.random_range(0..terms)));
        }
    }

    /// Returns the data of this step: all terms if no size is set or the target has no data terms.
    fn get(&self, terms: usize) -> Minibatch<'_> {
        match self.size {
            Some(_) if terms > 0 => Minibatch::subsample(&self.indices, terms),
            _ => Minibatch::full(terms),
        }
    }
}

/// The part of a gradient sampler that does not depend on its dynamics.
#[derive(Debug, Clone)]
pub(super) struct Engine<T> {
    pub settings: GradientSettings,
    pub dimension: usize,
    pub blocks: usize,
    subsample: Subsample,
    /// Whether gradients currently use all data, whatever the minibatch size.
    pub uses_all: bool,
    /// Number of steps begun.
    pub iteration: u64,
    pub gradient: Vec<T>,
    last: Last<T>,
}

/// Last state whose gradient was evaluated, with the gradient.
#[derive(Debug, Clone, Default)]
struct Last<T> {
    theta: Vec<T>,
    gradient: Vec<T>,
    /// Whether the last move of each block ran away; empty if the sampler does not check it.
    ran_away: Vec<bool>,
}

/// Energy errors beyond this many nats count as divergences, as in Stan.
pub(super) const DIVERGENCE: f64 = 1000.0;

/// Whether a tested move has diverged, given its energy error (minus the logarithm of its acceptance ratio).
pub(super) fn is_divergence(error: f64) -> bool {
    error.is_nan() || error >= DIVERGENCE
}

/// Rise of the potential, in nats per parameter, above which a move has run away.
const RUNAWAY: f64 = 1000.0;

/// Whether a move between two states of one block ran away: its estimated rise of the potential is above the limit. The
/// estimate is the trapezoidal rule on the gradients at both ends. Only coordinates that move away from zero count:
/// near zero, the slope of a positive parameter may be infinite although its potential hardly rises.
pub(super) fn is_runaway<T: Real>(states: [&[T]; 2], gradients: [&[T]; 2]) -> bool {
    let slopes = gradients[0].iter().zip(gradients[1]).map(|(&a, &b)| a.widen() + b.widen());
    let moves = states[0].iter().zip(states[1]);
    let outward = moves.map(|(&a, &b)| if b.abs() > a.abs() { b.widen() - a.widen() } else { 0.0 });
    let rise: f64 = slopes.zip(outward).map(|(slope, outward)| 0.5 * slope * outward).sum();
    rise > RUNAWAY * states[0].len() as f64
}

/// State of one block of a gradient sampler.
#[derive(Debug, Clone)]
pub(super) struct Block<T> {
    pub stream: SeededRng,
    pub diverged: bool,
    pub old: Vec<T>,
}

impl<T: Real> Block<T> {
    /// Reverts the move if it has diverged.
    pub fn settle(&mut self, theta: &mut [T]) {
        self.diverged = !is_sound(theta);
        if self.diverged {
            theta.copy_from_slice(&self.old);
        }
    }
}

impl<T: Real> Engine<T> {
    pub fn new(
        dimension: usize,
        blocks: usize,
        settings: GradientSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        check_shape(dimension, blocks)?;
        settings.check()?;
        let subsample =
            Subsample { size: settings.minibatch, indices: Vec::new(), stream: streams.child(1).rng(0) };
        let gradient = vec![T::zero(); dimension * blocks];
        let last = Last::default();
        Ok(Self { settings, dimension, blocks, subsample, uses_all: false, iteration: 0, gradient, last })
    }

    /// The random streams and scratch space of each block.
    pub fn new_blocks(&self, streams: SeedTree) -> impl Iterator<Item = Block<T>> + use<T> {
        let (dimension, blocks) = (self.dimension, self.blocks as u64);
        let noise = streams.child(0);
        (0..blocks).map(move |block| Block {
            stream: noise.rng(block),
            diverged: false,
            old: vec![T::zero(); dimension],
        })
    }

    /// Begins a step: draws the subsample and returns the step size.
    pub fn begin(&mut self, target: &dyn Target<T>) -> f64 {
        self.iteration += 1;
        self.subsample.draw(target.terms());
        self.settings.step_size.at(self.iteration)
    }

    /// The data of this step's gradients.
    pub fn batch(&self, target: &dyn Target<T>) -> Minibatch<'_> {
        if self.uses_all { Minibatch::full(target.terms()) } else { self.subsample(target) }
    }

    /// Whether a minibatch size is set.
    pub fn subsamples(&self) -> bool {
        self.settings.minibatch.is_some()
    }

    /// The subsample of this step, even if the gradients use all data.
    pub fn subsample(&self, target: &dyn Target<T>) -> Minibatch<'_> {
        self.subsample.get(target.terms())
    }

    /// Evaluates the gradient at `theta` on the data of this step.
    pub fn evaluate(&mut self, target: &mut dyn Target<T>, theta: &[T]) {
        let terms = target.terms();
        let batch = if self.uses_all { Minibatch::full(terms) } else { self.subsample.get(terms) };
        target.gradient(theta, batch, &mut self.gradient);
    }

    /// Like [`evaluate`](Self::evaluate) for a single chain; also marks its previous move as diverged if it ran away or
    /// its energy error is too large. The energy error is `weight` times the change of the squared gradient; `weight`
    /// is 0 where a metric moves the state.
    pub fn evaluate_and_check_divergence(&mut self, target: &mut dyn Target<T>, theta: &[T], weight: f64) {
        self.evaluate(target, theta);
        // A fold reverses the slope, whatever its size: the energy error does not indicate divergence.
        let weight = if self.settings.mirror || target.is_folded() { 0.0 } else { weight };
        let Self { last, gradient, dimension, .. } = self;
        let ends = last.theta.chunks_exact(*dimension).zip(theta.chunks_exact(*dimension));
        let slopes = last.gradient.chunks_exact(*dimension).zip(gradient.chunks_exact(*dimension));
        let diverged = |states: [&[T]; 2], slopes: [&[T]; 2]| {
            let [before, after] = slopes.map(|slope| dot(slope, slope).widen());
            weight * (after - before) > DIVERGENCE || is_runaway(states, slopes)
        };
        last.ran_away.clear();
        last.ran_away
            .extend(ends.zip(slopes).map(|((a, b), (before, after))| diverged([a, b], [before, after])));
        self.keep(theta);
    }

    /// Stores `theta` and its gradient as the last evaluated state.
    pub fn keep(&mut self, theta: &[T]) {
        let Self { last, gradient, .. } = self;
        last.theta.clear();
        last.theta.extend_from_slice(theta);
        last.gradient.clear();
        last.gradient.extend_from_slice(gradient);
    }

    /// The last state whose gradient was evaluated, and the gradient.
    pub fn start(&self) -> Option<Start<'_, T>> {
        let Last { theta, gradient, .. } = &self.last;
        (!theta.is_empty()).then_some(Start { gradient, state: Some(theta) })
    }

    /// Sets the constant step size to `step`.
    pub fn set_step(&mut self, step: f64) {
        self.settings.step_size = StepSize::Constant(step);
    }

    /// Drops the last state, which belongs to previous coordinates or another target.
    pub fn forget(&mut self) {
        self.last = Last::default();
    }

    /// Returns a function that clamps a drift to the drift limit.
    pub fn limit(&self) -> impl Fn(T) -> T + Copy + use<T> {
        let limit = T::narrow(self.settings.drift_limit);
        move |drift| drift.max(-limit).min(limit)
    }

    /// Returns the report of a step; `taken_back` marks the blocks whose move was reverted. Blocks whose previous move
    /// ran away also count as diverged. A block counts at most once.
    pub fn step(&self, step_size: f64, taken_back: impl Iterator<Item = bool>) -> Step {
        let (mut lost, mut divergences) = (0, 0);
        let ran_away = self.last.ran_away.iter().copied().chain(std::iter::repeat(false));
        for (taken_back, ran_away) in taken_back.zip(ran_away) {
            lost += usize::from(taken_back);
            divergences += usize::from(taken_back || ran_away);
        }
        let acceptance = 1.0 - lost as f64 / self.blocks as f64;
        Step { acceptance, divergences, step_size, temperature: self.settings.temperature, ..Step::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Subsample, is_runaway};
    use crate::random::SeedTree;

    #[test]
    fn subsamples_hold_all_terms_equally_often() {
        let mut subsample =
            Subsample { size: Some(100), indices: Vec::new(), stream: SeedTree::new(3).rng(0) };
        let mut counts = [0; 5];
        for _ in 0..1_000 {
            subsample.draw(5);
            subsample.get(5).iter().for_each(|term| counts[term] += 1);
        }
        // Each count is a sum of 100,000 trials of probability 1/5, with standard deviation 126.
        assert!(counts.iter().all(|count| (19_370..20_630).contains(count)), "{counts:?}");
    }

    #[test]
    fn runaways_rise_by_a_thousand_nats_per_unknown_on_their_way_out() {
        let out = |slope: f64| is_runaway([&[0.0, 0.5], &[1.0, 0.5]], [&[slope, 0.0], &[slope, 0.0]]);
        assert!(out(2010.0) && !out(2000.0));
        let further = |slope: f64| is_runaway([&[1.0], &[2.0]], [&[slope], &[slope]]);
        assert!(further(1010.0) && !further(990.0));
        // Towards zero the slope of a positive unknown may be infinite.
        let inwards = |to: f64| is_runaway([&[1.0], &[to]], [&[-1e6], &[-1e6]]);
        assert!(!inwards(0.5) && !inwards(2.0));
        assert!(is_runaway([&[-1.0], &[-2.0]], [&[-1e6], &[-1e6]]));
        assert!(!is_runaway([&[-1.0], &[1.0]], [&[1e6], &[1e6]]));
    }
}
