//! The [`Sampler`] trait, its errors, and chains.

use super::{Real, RunRecord, Site, StepRule, Support, Target};

/// Reason why a sampler cannot be built or does not fit a target.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplerError {
    /// A setting is out of range.
    #[error("sampler setting {name} is {value}; expected {expected}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The range that it must lie in.
        expected: &'static str,
    },
    /// Two settings that are in range, or a setting and a sampler, exclude each other.
    #[error("sampler setting {setting} cannot be combined with {with}")]
    Incompatible {
        /// The rejected setting.
        setting: &'static str,
        /// The sampler or the other setting.
        with: &'static str,
    },
    /// A matrix is not symmetric or not definite.
    #[error("{what} is not {expected}: found {value}")]
    Matrix {
        /// The matrix.
        what: &'static str,
        /// The eigenvalue, or the difference between two entries, that is out of range.
        value: f64,
        /// The property that it lacks.
        expected: &'static str,
    },
    /// Sampler, target and start do not have the same shape.
    #[error("{what} has {found} numbers; expected {expected}")]
    Shape {
        /// The quantity of wrong size.
        what: &'static str,
        /// Its size.
        found: usize,
        /// The size that was expected.
        expected: usize,
    },
    /// The start is not finite or outside the support.
    #[error("start[{index}] is {value}; expected a finite number within the support")]
    Start {
        /// Index in the state.
        index: usize,
        /// The offending value.
        value: f64,
    },
    /// The start of a site on the simplex does not sum to one.
    #[error("start[{index}] and the numbers of its simplex sum to {sum}; expected 1")]
    StartSum {
        /// Index of the first number of the site in the state.
        index: usize,
        /// The sum.
        sum: f64,
    },
    /// The potential is not finite at the start.
    #[error("the potential of block {block} is {value} at the start; expected a finite number")]
    StartPotential {
        /// The block.
        block: usize,
        /// Its potential.
        value: f64,
    },
    /// The target lacks a capability that the sampler needs.
    #[error("{sampler} needs a target with {capability}")]
    Capability {
        /// The sampler.
        sampler: &'static str,
        /// The capability.
        capability: &'static str,
    },
    /// Unknown name of a metric's shape.
    #[error("unknown metric {name:?}; expected none, diagonal, dense or low-rank-N")]
    UnknownMetric {
        /// The name as given.
        name: String,
    },
    /// Unknown name of a sampler.
    #[error("unknown sampler {name:?}; expected one of {expected}")]
    UnknownName {
        /// The name as given.
        name: String,
        /// All names.
        expected: String,
    },
}

/// Report of one step of a sampler.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Mean acceptance probability over the blocks; for samplers without a test, the fraction of blocks that moved.
    pub acceptance: f64,
    /// The total potential after the step, if the sampler computes it.
    pub potential: Option<f64>,
    /// Number of blocks whose step diverged, as in Stan: the energy error is above 1000 nats or NaN, or the state is
    /// not finite or out of bounds. Without a trajectory, the energy error of a proposal is minus its log acceptance
    /// ratio. For `nmc`, which has no step that could be too long, only NaN counts. A test rejects diverged moves.
    ///
    /// Without a test, diverged moves are kept unless the state is not finite or out of bounds. Their energy error is
    /// estimated from the gradients at both ends, for the previous move; HAMCMC uses the current move when it refreshes
    /// a pair. A rise of the potential by more than 1000 nats per parameter also counts.
    pub divergences: usize,
    /// The step size used; 0 for [`Newtonian`](super::Newtonian), which has none.
    pub step_size: f64,
    /// The total energy, potential and kinetic, of the draw; `None` for samplers without momenta or without an acceptance test.
    pub energy: Option<f64>,
    /// Leapfrog steps of the trajectory, the longest over the blocks; 0 for samplers without trajectories.
    pub leapfrog_steps: usize,
    /// Number of blocks whose NUTS trajectory ended at the maximum depth.
    pub depth_limited: usize,
    /// Whether moves are accepted or rejected by a test that makes the sampler exact.
    pub tested: bool,
    /// The temperature of the draws, which follow `exp(-U / temperature)`; see
    /// [`GradientSettings::temperature`](super::GradientSettings::temperature).
    pub temperature: f64,
    /// Number of pairs in the metric of the step, over all blocks; `None` for samplers without a memory of pairs.
    pub pairs: Option<usize>,
    /// Number of parameters whose drift was cut to its limit, over all blocks; `None` for samplers that do not count
    /// them.
    pub clipped: Option<usize>,
}

/// The start of a step, as far as the sampler stored it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Start<'a, T> {
    /// The gradient, `dimension x blocks`.
    pub gradient: &'a [T],
    /// The state; `None` if it is the draw before the step.
    pub state: Option<&'a [T]>,
}

impl Default for Step {
    /// Zeros and `None`, without a test, at temperature 1.
    fn default() -> Self {
        Self {
            acceptance: 0.0,
            potential: None,
            divergences: 0,
            step_size: 0.0,
            energy: None,
            leapfrog_steps: 0,
            depth_limited: 0,
            tested: false,
            temperature: 1.0,
            pairs: None,
            clipped: None,
        }
    }
}

/// A Markov chain transition on a [`Target`].
///
/// A sampler owns its random generators, step size and memory, but not the state: `step` replaces the last draw by the
/// next. Steps do not depend on the number of threads. Most samplers allocate only in the first steps and the warm-up.
/// [`RecipeSampler`](super::recipe::RecipeSampler), and `sgrld` and `sgrhmc` with gradient noise, allocate at every
/// step.
pub trait Sampler<T: Real>: Send {
    /// Replaces `theta` (`dimension x blocks`) by the next draw.
    ///
    /// # Panics
    /// If `theta` or `target` does not have the shape of the sampler, or `target` lacks a capability that the sampler
    /// needs; see [`check`](Self::check).
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step;

    /// `(dimension, blocks)` that the sampler was built for.
    fn shape(&self) -> (usize, usize);

    /// Verifies, before the first step, that `target` has the right shape and the capabilities that the sampler needs.
    ///
    /// # Errors
    /// [`SamplerError::Shape`] or [`SamplerError::Capability`].
    fn check(&self, target: &mut dyn Target<T>) -> Result<(), SamplerError> {
        check_target(self.shape(), target)
    }

    /// Turns adaptation of the step size on (for burn-in) or off. Initially off; samplers without adaptation ignore the
    /// call.
    fn adapt(&mut self, on: bool) {
        let _ = on;
    }

    /// Starts a warm-up of `steps` steps. The caller ends it by `adapt(false)`; [`Chain`] does this itself. The default
    /// adapts the step size alone; [`Preconditioned`](super::Preconditioned) also estimates a metric.
    fn warm_up(&mut self, steps: usize) {
        let _ = steps;
        self.adapt(true);
    }

    /// How [`Preconditioned`](super::Preconditioned) adapts the step.
    fn step_rule(&self) -> StepRule {
        StepRule::Own
    }

    /// Restarts the step adaptation of one block from the leapfrog step `step`, in the sampler's coordinates. Samplers
    /// with a [`StepRule`] other than `Own` use it as the constant step of every block.
    fn restart_step(&mut self, block: usize, step: f64) {
        let _ = (block, step);
    }

    /// Maps stored states to new linear coordinates: `change` maps the state of a block. Stored gradients and pairs are
    /// dropped.
    fn change_coordinates(&mut self, change: &mut dyn FnMut(usize, &mut [T])) {
        let _ = change;
    }

    /// Drops stored potentials and gradients, and the states and pairs of interleaved chains, which belong to the last
    /// target. Step size, metric, momenta and random streams remain. [`Chain::new`] calls it.
    fn forget(&mut self) {}

    /// Returns the number of steps at the end of a warm-up of `steps` steps during which the metric is fixed.
    fn closing_steps(&self, steps: usize) -> usize {
        (steps / 5).max(50).min(steps / 3)
    }

    /// The gradient at the start of the last step, if the sampler stored it.
    fn start(&self) -> Option<Start<'_, T>> {
        None
    }

    /// Whether each draw is folded into the positive orthant ([`GradientSettings::mirror`](super::GradientSettings::mirror)).
    fn mirrors(&self) -> bool {
        false
    }

    /// Number of interleaved chains: the memory of HAMCMC, the ensemble of HMC-BFGS and MH-BFGS, else 1.
    fn chains(&self) -> usize {
        1
    }

    /// Index of the [chain](Self::chains) that the next step moves.
    fn next_chain(&self) -> usize {
        0
    }

    /// The state that the next step starts from, given the last draw: for a single chain the draw itself, for
    /// interleaved chains an older one. A Gibbs sweep draws its auxiliary variables given this state, and keeps
    /// one set of them per chain.
    fn next_start<'a>(&'a self, last: &'a [T]) -> &'a [T] {
        last
    }
}

/// Implements [`Sampler`] for a pointer to a sampler.
macro_rules! pointer_to_sampler {
    ($pointer:ty) => {
        impl<T: Real, S: Sampler<T> + ?Sized> Sampler<T> for $pointer {
            fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
                (**self).step(target, theta)
            }
            fn shape(&self) -> (usize, usize) {
                (**self).shape()
            }
            fn check(&self, target: &mut dyn Target<T>) -> Result<(), SamplerError> {
                (**self).check(target)
            }
            fn adapt(&mut self, on: bool) {
                (**self).adapt(on);
            }
            fn warm_up(&mut self, steps: usize) {
                (**self).warm_up(steps);
            }
            fn step_rule(&self) -> StepRule {
                (**self).step_rule()
            }
            fn restart_step(&mut self, block: usize, step: f64) {
                (**self).restart_step(block, step);
            }
            fn change_coordinates(&mut self, change: &mut dyn FnMut(usize, &mut [T])) {
                (**self).change_coordinates(change);
            }
            fn forget(&mut self) {
                (**self).forget();
            }
            fn closing_steps(&self, steps: usize) -> usize {
                (**self).closing_steps(steps)
            }
            fn start(&self) -> Option<Start<'_, T>> {
                (**self).start()
            }
            fn mirrors(&self) -> bool {
                (**self).mirrors()
            }
            fn chains(&self) -> usize {
                (**self).chains()
            }
            fn next_chain(&self) -> usize {
                (**self).next_chain()
            }
            fn next_start<'a>(&'a self, last: &'a [T]) -> &'a [T] {
                (**self).next_start(last)
            }
        }
    };
}

pointer_to_sampler!(&mut S);
pointer_to_sampler!(Box<S>);

/// Verifies that `target` has the shape `(dimension, blocks)`.
pub(super) fn check_target<T: Real>(
    (dimension, blocks): (usize, usize),
    target: &dyn Target<T>,
) -> Result<(), SamplerError> {
    let equal = |what, found, expected| {
        if found == expected { Ok(()) } else { Err(SamplerError::Shape { what, found, expected }) }
    };
    equal("the target's dimension", target.dimension(), dimension)?;
    equal("the target's number of blocks", target.blocks(), blocks)
}

/// Returns the capability; panics with the error of [`Sampler::check`] if it is missing.
#[expect(clippy::panic, reason = "`Sampler::check`, which `Chain` calls, gives the error instead")]
pub(super) fn offered<O>(offered: Option<O>, sampler: &'static str, capability: &'static str) -> O {
    match offered {
        Some(offered) => offered,
        None => panic!("{}", SamplerError::Capability { sampler, capability }),
    }
}

/// Turns a missing capability into an error.
pub(super) fn need(
    offered: bool,
    sampler: &'static str,
    capability: &'static str,
) -> Result<(), SamplerError> {
    if offered { Ok(()) } else { Err(SamplerError::Capability { sampler, capability }) }
}

/// Totals over the steps of a chain.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ChainStatistics {
    /// Steps taken.
    pub steps: usize,
    /// Sum of the steps' acceptance; see [`ChainStatistics::acceptance`].
    accepted: f64,
    /// Total number of divergences.
    pub divergences: usize,
    /// Leapfrog steps of all trajectories.
    pub leapfrog_steps: usize,
    /// Trajectories that ended at the maximum depth.
    pub depth_limited: usize,
}

impl ChainStatistics {
    /// Counts one step.
    pub fn add(&mut self, step: &Step) {
        self.steps += 1;
        self.accepted += step.acceptance;
        self.divergences += step.divergences;
        self.leapfrog_steps += step.leapfrog_steps;
        self.depth_limited += step.depth_limited;
    }

    /// Mean acceptance over all steps so far, in `[0, 1]`.
    #[must_use]
    pub fn acceptance(&self) -> f64 {
        self.accepted / self.steps.max(1) as f64
    }
}

/// One draw, as passed to the callback of [`Chain::run`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Draw<'a, T> {
    /// Number of the step, counted from zero since the start or the last [burn-in](Chain::burn_in).
    pub index: usize,
    /// The state, `dimension x blocks`.
    pub theta: &'a [T],
    /// Report of the step.
    pub step: Step,
}

/// Target, sampler and state, checked to match. A chain owns all three; pass `&mut` to keep target and sampler.
///
/// ```
/// use alphamf_samplers::random::SeedTree;
/// use alphamf_samplers::{Chain, Hmc, HmcSettings, targets::Gaussian};
/// # fn main() -> Result<(), alphamf_samplers::SamplerError> {
/// let target = Gaussian::equicorrelated(10, 4.0, 1.0);
/// let sampler = Hmc::new(10, 1, HmcSettings::default(), SeedTree::new(1))?;
/// let mut chain = Chain::new(target, sampler, vec![0.0; 10])?;
/// chain.burn_in(500);
/// let mut mean = 0.0_f64;
/// chain.run(2000, |draw| mean += draw.theta[0] / 2000.0);
/// assert!(mean.abs() < 0.5 && chain.statistics().divergences == 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Chain<T, G, S> {
    target: G,
    sampler: S,
    theta: Vec<T>,
    statistics: ChainStatistics,
    /// Remaining steps of a warm-up.
    warming: usize,
}

impl<T: Real, G: Target<T>, S: Sampler<T>> Chain<T, G, S> {
    /// Creates a chain at `start` (`dimension x blocks`). A sampler that has run before drops its states
    /// ([`Sampler::forget`]), and keeps its step size and metric.
    ///
    /// # Errors
    /// If shapes differ, the start is not finite or outside the support of the target's [sites](Target::sites), its
    /// potential is not finite, or the target lacks a capability that the sampler needs.
    pub fn new(mut target: G, mut sampler: S, start: Vec<T>) -> Result<Self, SamplerError> {
        sampler.check(&mut target)?;
        let (dimension, blocks) = sampler.shape();
        if start.len() != dimension * blocks {
            let (found, expected) = (start.len(), dimension * blocks);
            return Err(SamplerError::Shape { what: "the start", found, expected });
        }
        if let Some(index) = start.iter().position(|value| !value.is_finite()) {
            return Err(SamplerError::Start { index, value: start[index].widen() });
        }
        let mut potential = vec![0.0; blocks];
        target.potential(&start, &mut potential);
        if let Some(block) = potential.iter().position(|value| !value.is_finite()) {
            return Err(SamplerError::StartPotential { block, value: potential[block] });
        }
        if let Some(sites) = target.sites() {
            for Site { rows, support } in (0..sites.count()).map(|index| sites.site(index)) {
                let mut places =
                    (0..blocks).flat_map(|block| rows.clone().map(move |row| block * dimension + row));
                let outside = |place: &usize| start.get(*place).is_some_and(|x| !support.holds(x.widen()));
                if let Some(index) = places.find(outside) {
                    return Err(SamplerError::Start { index, value: start[index].widen() });
                }
                if support == Support::Simplex {
                    let rounding = 4.0 * rows.len() as f64 * T::epsilon().widen();
                    for index in (0..blocks).map(|block| block * dimension + rows.start) {
                        let sum: f64 = start.iter().skip(index).take(rows.len()).map(|x| x.widen()).sum();
                        if (sum - 1.0).abs() > rounding {
                            return Err(SamplerError::StartSum { index, sum });
                        }
                    }
                }
            }
        }
        sampler.forget();
        Ok(Self { target, sampler, theta: start, statistics: ChainStatistics::default(), warming: 0 })
    }

    /// Takes `steps` steps of [warm-up](Sampler::warm_up) without keeping draws, and resets the statistics.
    pub fn burn_in(&mut self, steps: usize) {
        self.warm_up(steps);
        self.run(steps, |_| ());
        self.statistics = ChainStatistics::default();
    }

    /// Starts a [warm-up](Sampler::warm_up) for the next `steps` steps of [`run`](Self::run) and
    /// [`record`](Self::record). Adaptation ends after the last of them, or earlier by `adapt(false)`.
    pub fn warm_up(&mut self, steps: usize) {
        self.sampler.warm_up(steps);
        self.warming = steps;
        if steps == 0 {
            self.sampler.adapt(false);
        }
    }

    /// Takes one step and counts it; ends a warm-up after its last step.
    fn step(&mut self) -> Step {
        let step = self.sampler.step(&mut self.target, &mut self.theta);
        self.statistics.add(&step);
        if self.warming > 0 {
            self.warming -= 1;
            if self.warming == 0 {
                self.sampler.adapt(false);
            }
        }
        step
    }

    /// The sampler.
    #[must_use]
    pub fn sampler(&self) -> &S {
        &self.sampler
    }

    /// Turns adaptation of the step size alone on or off; off also ends a warm-up.
    pub fn adapt(&mut self, on: bool) {
        if !on {
            self.warming = 0;
        }
        self.sampler.adapt(on);
    }

    /// Takes `steps` steps and passes each draw to `observe`.
    pub fn run(&mut self, steps: usize, mut observe: impl FnMut(Draw<'_, T>)) {
        for _ in 0..steps {
            let index = self.statistics.steps;
            let step = self.step();
            observe(Draw { index, theta: &self.theta, step });
        }
    }

    /// Takes `steps` steps and records each.
    pub fn record(&mut self, steps: usize, record: &mut RunRecord<T>) {
        for _ in 0..steps {
            let step = self.step();
            record.add(&self.theta, &step, self.start());
        }
    }

    /// The state and gradient at the start of the last step, if the sampler stored both. `None` if it
    /// [mirrors](Sampler::mirrors): they serve to check identities of the target, which do not hold for folded draws.
    #[must_use]
    pub fn start(&self) -> Option<(&[T], &[T])> {
        if self.sampler.mirrors() {
            return None;
        }
        let Start { gradient, state } = self.sampler.start()?;
        Some((state?, gradient))
    }

    /// The last draw.
    #[must_use]
    pub fn state(&self) -> &[T] {
        &self.theta
    }

    /// The target.
    pub fn target(&mut self) -> &mut G {
        &mut self.target
    }

    /// Totals since the start or the last burn-in.
    #[must_use]
    pub fn statistics(&self) -> ChainStatistics {
        self.statistics
    }
}
