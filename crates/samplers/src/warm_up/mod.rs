//! Warm-up: a preconditioner and a step size for any sampler, estimated from the first draws.
//!
//! [`Preconditioned`] runs a sampler in coordinates `phi`, `theta = c + L phi`, in which the target is about equally
//! wide in every direction. `L L'` acts as the inverse mass matrix of Hamiltonian samplers, the diffusion of Langevin
//! samplers and `H0 = gamma I` of quasi-Newton samplers, so that one estimate serves all of them. During
//! [`warm_up`](Sampler::warm_up), `L` is estimated in windows that double in size, from the gradients that the sampler
//! evaluates anyway. Afterwards it is fixed, and a fixed linear map keeps an exact sampler exact.
//!
//! Before the first window, the gradient at the start determines `L`. On every change of `L`, the step size restarts
//! from one that a single leapfrog step accepts with a probability of about 0.8. Samplers with an acceptance test then
//! adapt their step by dual averaging. For [Langevin and momentum samplers](StepRule) without one, each step of the
//! warm-up also tries a shadow step: one leapfrog step with a Metropolis test that moves nothing. Dual averaging then
//! aims at an acceptance of 0.98, or more in fewer than nine dimensions. A shadow step costs two full evaluations of
//! the target, during the warm-up only.
//!
//! A shadow step has no gradient noise. If the sampler uses minibatches, the warm-up also compares its gradients with
//! the full gradient, and limits the step so that their noise adds at most 5 % to the variance of the draws. The metric
//! is then estimated from the full gradients. As these cost far more than a step, shadow step and comparison take place
//! only at the first 20 steps in new coordinates and at every 20th step afterwards.
//!
//! A later warm-up that is too short for a window keeps the metric.
//!
//! **Source.** Windows and initial step as in Stan (Carpenter and others 2017) and Hoffman and Gelman (2014); the
//! diagonal from draws and gradients as in nutpie (Seyboldt and others 2026, "Preconditioning HMC by minimising Fisher
//! divergence"). **Do not use where** a target changes between steps (Gibbs sweeps): call [`Sampler::adapt`] instead,
//! which adapts the step alone.

mod estimate;
mod leapfrog;
mod linear;
mod noise;
mod schedule;
mod view;

use std::str::FromStr;

use super::checks::{check, check_acceptance, check_combination};
use super::{DualAveraging, Minibatch, Real, Sampler, SamplerError, Start, Step, Target};
use crate::random::{SeedTree, SeededRng};
use estimate::{Estimate, scale_of_gradient};
use leapfrog::Leapfrog;
use linear::LinearMap;
pub(crate) use noise::Noise;
use schedule::Windows;
pub(crate) use schedule::looks;
use view::{Record, View, map_blocks};

/// Shape of the metric that a warm-up estimates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MetricShape {
    /// None: the sampler keeps the target's coordinates; the step is still adapted.
    None,
    /// One scale for every coordinate. The default.
    #[default]
    Diagonal,
    /// A diagonal and this many directions, at least 1, whose variance differs most from it.
    LowRank(usize),
    /// All correlations; `dimension^3` operations for every window, and the draws of a window are kept.
    Dense,
}

impl FromStr for MetricShape {
    type Err = SamplerError;

    /// `none`, `diagonal`, `dense`, or `low-rank-N` with a rank `N`.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let rank = name.strip_prefix("low-rank-").and_then(|rank| rank.parse().ok());
        match (name, rank) {
            ("none", _) => Ok(Self::None),
            ("diagonal", _) => Ok(Self::Diagonal),
            ("dense", _) => Ok(Self::Dense),
            (_, Some(rank)) => Ok(Self::LowRank(rank)),
            _ => Err(SamplerError::UnknownMetric { name: name.to_owned() }),
        }
    }
}

/// The rule by which a sampler's step is adapted; see [`Sampler::step_rule`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum StepRule {
    /// By the sampler itself, or not at all.
    #[default]
    Own,
    /// A step `eps` with noise of variance `2 eps`: one leapfrog step of size `sqrt(2 eps)`.
    Langevin,
    /// A leapfrog step of a sampler with momentum; its friction limits the step under gradient noise.
    Leapfrog {
        /// The friction that dissipates the gradient noise; `None` if a thermostat adapts it to the noise.
        friction: Option<f64>,
    },
}

/// Limit of the relative variance that gradient noise adds to the draws, or, with a thermostat, to a momentum in one
/// step.
const HEAT: f64 = 0.05;
/// The step that measures the noise, relative to the step for full gradients.
const MEASURING: f64 = 1e-3;

impl StepRule {
    /// The longest leapfrog step for gradient noise of variance `noise` in a coordinate.
    pub(crate) fn longest_step(self, noise: f64) -> f64 {
        match self {
            Self::Own => f64::INFINITY,
            // Gradient noise adds `eps^2 noise` to the injected variance `2 eps`.
            Self::Langevin => (4.0 * HEAT / noise).sqrt(),
            // Gradient noise adds `step^2 noise` to the injected variance `2 friction step`.
            Self::Leapfrog { friction: Some(friction) } => 2.0 * HEAT * friction / noise,
            Self::Leapfrog { friction: None } => (HEAT / noise).sqrt(),
        }
    }
}

/// Returns the target acceptance of a shadow step in `dimension` dimensions. It leaves no more bias than `acceptance`
/// does in nine: at equal acceptance, steps are longer in fewer dimensions.
pub(crate) fn in_dimensions(acceptance: f64, dimension: usize) -> f64 {
    1.0 - (1.0 - acceptance) * (dimension as f64 / 9.0).sqrt().min(1.0)
}

/// Settings of [`Preconditioned`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUpSettings {
    /// Shape of the metric. Default [`MetricShape::Diagonal`].
    pub metric: MetricShape,
    /// Target acceptance of the shadow step for samplers without a test, in nine or more dimensions; in (0, 1). Default
    /// 0.98.
    pub shadow_acceptance: f64,
    /// Search for a step and adapt it. Default true. If false, samplers without a test keep their step, and those with
    /// a test adapt from their current step. The warm-up then makes no pass over all data for a step.
    pub adapt_step: bool,
}

impl Default for WarmUpSettings {
    fn default() -> Self {
        Self { metric: MetricShape::Diagonal, shadow_acceptance: 0.98, adapt_step: true }
    }
}

/// A sampler in coordinates that its warm-up estimates.
///
/// Before [`warm_up`](Sampler::warm_up) it delegates every call, and its draws are bit-identical to those of the inner
/// sampler.
///
/// ```
/// use alphamf_samplers::random::SeedTree;
/// use alphamf_samplers::{Chain, Nuts, NutsSettings, Preconditioned, WarmUpSettings, from_fn};
/// # fn main() -> Result<(), alphamf_samplers::SamplerError> {
/// // Standard deviations of 1e-4 and 1e4.
/// let target = from_fn(2, |theta: &[f64], gradient: &mut [f64]| {
///     gradient.copy_from_slice(&[1e8 * theta[0], 1e-8 * theta[1]]);
///     0.5 * (1e8 * theta[0].powi(2) + 1e-8 * theta[1].powi(2))
/// });
/// let nuts = Nuts::new(2, 1, NutsSettings::default(), SeedTree::new(1))?;
/// let sampler = Preconditioned::new(nuts, WarmUpSettings::default(), SeedTree::new(2))?;
/// let mut chain = Chain::new(target, sampler, vec![1.0, 1.0])?;
/// chain.burn_in(300);
/// chain.run(100, |draw| assert!(draw.step.leapfrog_steps <= 15));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Preconditioned<T, S> {
    inner: S,
    settings: WarmUpSettings,
    dimension: usize,
    blocks: usize,
    /// One map for each block; empty before the first warm-up.
    maps: Vec<LinearMap<T>>,
    /// Whether a window has ended, so that the maps are estimated from draws, not from one gradient.
    learned: bool,
    phi: Vec<T>,
    /// The draw at `phi`; if the caller passes another state, the state was changed from outside.
    last: Vec<T>,
    /// The next start, for samplers with interleaved chains.
    next: Vec<T>,
    theta: Vec<T>,
    record: Record<T>,
    rng: SeededRng,
    warming: Option<Warming<T>>,
}

/// State of a warm-up in progress.
#[derive(Debug, Clone)]
struct Warming<T> {
    windows: Windows,
    steps: usize,
    /// Number of steps in the current coordinates.
    steps_here: usize,
    /// Whether the current step evaluates all data.
    looks: bool,
    estimates: Vec<Estimate>,
    leapfrog: Leapfrog<T>,
    shadow: Option<DualAveraging>,
    acceptance: Vec<f64>,
    noise: Noise,
    /// The gradient of all data at the recorded state, and the difference between it and the recorded gradient.
    full: Vec<T>,
    difference: Vec<T>,
}

impl<T: Real> Warming<T> {
    /// Compares the recorded gradient with the gradient of all data at the recorded state.
    fn measure(&mut self, target: &mut dyn Target<T>, record: &Record<T>, maps: &[LinearMap<T>]) {
        self.full.resize(record.theta.len(), T::zero());
        let terms = target.terms();
        target.gradient(&record.theta, Minibatch::full(terms), &mut self.full);
        self.difference.clear();
        self.difference.extend(record.gradient.iter().zip(&self.full).map(|(&noisy, &full)| noisy - full));
        map_blocks(maps, &mut self.difference, LinearMap::apply_transposed);
        self.noise.add(self.difference.iter().map(|value| value.widen()));
    }
}

impl<T: Real, S: Sampler<T>> Preconditioned<T, S> {
    /// Wraps `inner`.
    ///
    /// # Errors
    /// If a setting is out of range. If a metric is to be estimated for a sampler that [mirrors](Sampler::mirrors): the
    /// metric would move zero, where it folds.
    pub fn new(inner: S, settings: WarmUpSettings, streams: SeedTree) -> Result<Self, SamplerError> {
        check_acceptance("shadow acceptance", settings.shadow_acceptance)?;
        if let MetricShape::LowRank(rank) = settings.metric {
            check("rank of the metric", rank as f64, "at least 1", rank > 0)?;
        }
        let (mirrors, plain) = (inner.mirrors(), settings.metric == MetricShape::None);
        check_combination("mirror", "the metric of a warm-up", plain || !mirrors)?;
        let (dimension, blocks) = inner.shape();
        Ok(Self {
            inner,
            settings,
            dimension,
            blocks,
            maps: Vec::new(),
            learned: false,
            phi: Vec::new(),
            last: Vec::new(),
            next: Vec::new(),
            theta: Vec::new(),
            record: Record::default(),
            rng: streams.child(2).rng(0),
            warming: None,
        })
    }

    /// The inner sampler.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Iterates over the scales that the warm-up found (`dimension x blocks`); empty before a warm-up.
    pub fn scales(&self) -> impl Iterator<Item = f64> {
        self.maps.iter().flat_map(|map| map.scale.iter().map(|scale| scale.widen()))
    }

    fn load(&mut self, theta: &[T]) {
        if self.last != theta {
            self.phi.clear();
            self.phi.extend_from_slice(theta);
            map_blocks(&self.maps, &mut self.phi, LinearMap::invert);
            self.last.clear();
            self.last.extend_from_slice(theta);
        }
    }

    /// Replaces the maps and transforms all states.
    fn replace_maps(&mut self, maps: Vec<LinearMap<T>>) {
        let old = std::mem::replace(&mut self.maps, maps);
        let new = &self.maps;
        self.inner.change_coordinates(&mut |block, state: &mut [T]| {
            old[block].apply(state);
            new[block].invert(state);
        });
        self.phi.clear();
        self.phi.extend_from_slice(&self.last);
        map_blocks(&self.maps, &mut self.phi, LinearMap::invert);
    }

    /// Restarts step adaptation from a step that suits the current coordinates.
    fn restart_steps(&mut self, target: &mut dyn Target<T>) {
        if !self.settings.adapt_step {
            return;
        }
        let (rule, folds) = (self.inner.step_rule(), self.inner.mirrors());
        let Self { maps, phi, theta, record, rng, warming: Some(warming), .. } = self else { return };
        warming.leapfrog.folds = folds;
        // Prevents recording: the record is for the first gradient of the sampler itself.
        record.is_set = true;
        let mut view = View { target, maps, theta, record, is_plain: false };
        let steps = warming.leapfrog.first_steps(&mut view, phi, self.blocks, rng);
        if rule == StepRule::Own {
            for (block, &step) in steps.iter().enumerate() {
                self.inner.restart_step(block, step);
            }
        } else {
            let least = steps.iter().copied().fold(f64::INFINITY, f64::min);
            let acceptance = in_dimensions(self.settings.shadow_acceptance, self.dimension);
            warming.shadow = Some(DualAveraging::cautious(least, acceptance));
            self.inner.restart_step(0, 0.25 * least);
        }
    }

    /// Ends a window: sets the metric from its draws. Only the next step measures the gradient noise in the new
    /// coordinates, so a warm-up that ends with a window keeps the old coordinates and their step.
    fn end_window(&mut self, target: &mut dyn Target<T>) {
        let Some(warming) = &mut self.warming else { return };
        self.learned = true;
        let blocks = self.maps.iter().zip(&mut warming.estimates).zip(self.last.chunks_exact(self.dimension));
        let maps = blocks.map(|((last, estimate), centre)| {
            let map = estimate.map(last, centre).unwrap_or_else(|| last.clone());
            estimate.reset();
            map
        });
        let maps = maps.collect();
        warming.noise.reset();
        warming.steps_here = 0;
        self.replace_maps(maps);
        self.restart_steps(target);
    }

    /// Prepares a step of the warm-up: ends a window, sets the first maps and takes a shadow step, each if due.
    fn before(&mut self, target: &mut dyn Target<T>) {
        if self.warming.as_ref().is_some_and(|warming| warming.windows.ends_at(warming.steps)) {
            self.end_window(target);
        }
        let Some(warming) = &mut self.warming else { return };
        if warming.steps == 0 {
            // A warm-up without a window keeps an estimated metric, which a single gradient cannot improve.
            let keeps = self.learned && warming.windows.is_empty();
            if self.settings.metric != MetricShape::None && !keeps {
                let mut gradient = vec![T::zero(); self.last.len()];
                let mut potential = vec![0.0; self.blocks];
                target.evaluate(&self.last, &mut potential, &mut gradient);
                let scales: Vec<T> = gradient.iter().map(|&g| scale_of_gradient(g)).collect();
                let blocks = self.last.chunks_exact(self.dimension).zip(scales.chunks_exact(self.dimension));
                let maps = blocks.map(|(centre, scale)| LinearMap::diagonal(centre.to_vec(), scale.to_vec()));
                let maps = maps.collect();
                self.replace_maps(maps);
            }
            // If the metric is kept and the sampler adapts its own step, the step is kept too.
            if !(keeps && self.inner.step_rule() == StepRule::Own) {
                self.restart_steps(target);
            }
        }
        let Self { maps, phi, theta, record, rng, warming: Some(warming), .. } = self else { return };
        warming.looks = !record.is_subsampled || looks(warming.steps_here);
        if let Some(shadow) = warming.shadow.as_mut().filter(|_| warming.looks) {
            record.is_set = true;
            let mut view = View { target, maps, theta, record, is_plain: false };
            warming.leapfrog.start(&mut view, phi, self.blocks);
            let steps = vec![shadow.current(); self.blocks];
            warming.leapfrog.acceptance(&mut view, phi, (&steps, rng), &mut warming.acceptance);
            shadow.update(warming.acceptance.iter().sum::<f64>() / self.blocks as f64);
            // In new coordinates, the first step measures the noise and is very short: one long noisy kick could make a
            // momentum far too large.
            let may_be_noisy = record.is_subsampled || warming.steps == 0 && target.terms() > 1;
            let longest = match warming.noise.is_empty() && may_be_noisy {
                true => MEASURING * shadow.current(),
                false => self.inner.step_rule().longest_step(warming.noise.variance()),
            };
            self.inner.restart_step(0, shadow.current().min(longest));
        }
    }

    /// Completes a step of the warm-up: adds the recorded state and gradient to the estimates.
    fn after(&mut self, target: &mut dyn Target<T>) {
        let Some(warming) = &mut self.warming else { return };
        warming.steps += 1;
        warming.steps_here += 1;
        let n = self.dimension;
        // A given step needs no gradient of all data.
        let needed = self.settings.metric != MetricShape::None || warming.shadow.is_some();
        if self.record.is_set && warming.looks && needed {
            let gradient = if self.record.is_subsampled {
                warming.measure(target, &self.record, &self.maps);
                &warming.full
            } else {
                &self.record.gradient
            };
            let draws = self.record.theta.chunks_exact(n).zip(gradient.chunks_exact(n));
            for (estimate, (theta, gradient)) in warming.estimates.iter_mut().zip(draws) {
                estimate.add(theta, gradient);
            }
        }
    }
}

impl<T: Real, S: Sampler<T>> Sampler<T> for Preconditioned<T, S> {
    fn step(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) -> Step {
        if self.maps.is_empty() {
            return self.inner.step(target, theta);
        }
        self.load(theta);
        self.before(target);
        self.record.is_set = false;
        let is_plain = self.settings.metric == MetricShape::None;
        let Self { inner, maps, phi, theta: room, record, .. } = self;
        let step = inner.step(&mut View { target, maps, theta: room, record, is_plain }, phi);
        if let Some(Start { gradient, state: None }) = inner.start() {
            // The sampler may reuse the gradient at its start, which is then not recorded.
            record.theta.clone_from(&self.last);
            record.gradient.clear();
            record.gradient.extend_from_slice(gradient);
            map_blocks(maps, &mut record.gradient, LinearMap::invert_transposed);
            (record.is_set, record.is_subsampled) = (true, false);
        }
        theta.copy_from_slice(phi);
        map_blocks(maps, theta, LinearMap::apply);
        self.last.copy_from_slice(theta);
        self.after(target);
        if self.inner.chains() > 1 {
            self.next.clear();
            self.next.extend_from_slice(self.inner.next_start(&self.phi));
            map_blocks(&self.maps, &mut self.next, LinearMap::apply);
        }
        step
    }

    fn shape(&self) -> (usize, usize) {
        (self.dimension, self.blocks)
    }

    fn check(&self, target: &mut dyn Target<T>) -> Result<(), SamplerError> {
        let (mut theta, mut record) = (Vec::new(), Record::default());
        let is_plain = self.settings.metric == MetricShape::None;
        self.inner.check(&mut View { target, maps: &[], theta: &mut theta, record: &mut record, is_plain })
    }

    fn adapt(&mut self, on: bool) {
        if let (Some(warming), false) = (&mut self.warming, on) {
            if let Some(shadow) = warming.shadow.take() {
                let longest = self.inner.step_rule().longest_step(warming.noise.variance());
                self.inner.restart_step(0, shadow.adapted().min(longest));
            }
            self.warming = None;
        }
        self.inner.adapt(on);
    }

    fn warm_up(&mut self, steps: usize) {
        let closing = self.inner.closing_steps(steps);
        let windows = match self.settings.metric {
            MetricShape::None => Windows::new(0, 0, 1),
            _ => Windows::new(steps, closing, self.inner.chains()),
        };
        if self.maps.is_empty() {
            self.maps = vec![LinearMap::identity(self.dimension); self.blocks];
        }
        self.warming = Some(Warming {
            windows,
            steps: 0,
            steps_here: 0,
            looks: true,
            estimates: vec![Estimate::new(self.dimension, self.settings.metric); self.blocks],
            leapfrog: Leapfrog::default(),
            shadow: None,
            acceptance: Vec::new(),
            noise: Noise::default(),
            full: Vec::new(),
            difference: Vec::new(),
        });
        self.inner.warm_up(steps);
    }

    fn forget(&mut self) {
        self.inner.forget();
        self.last.clear();
        self.next.clear();
        self.record.is_set = false;
    }

    fn start(&self) -> Option<Start<'_, T>> {
        let Record { theta, gradient, is_set, .. } = &self.record;
        is_set.then_some(Start { gradient, state: Some(theta) })
    }

    fn mirrors(&self) -> bool {
        self.inner.mirrors()
    }

    fn chains(&self) -> usize {
        self.inner.chains()
    }

    fn next_chain(&self) -> usize {
        self.inner.next_chain()
    }

    fn next_start<'a>(&'a self, last: &'a [T]) -> &'a [T] {
        if self.maps.is_empty() {
            self.inner.next_start(last)
        } else if self.next.is_empty() {
            last
        } else {
            &self.next
        }
    }
}
