//! Samplers by name.

use std::fmt;
use std::str::FromStr;

use super::checks::check_combination;
use super::warm_up::in_dimensions;
use super::*;
use crate::random::SeedTree;

/// The samplers of this library, each constructible by name with default settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum SamplerKind {
    /// [`Sgld`]: stochastic gradient Langevin dynamics.
    Sgld,
    /// [`Psgld`]: Langevin dynamics with an adaptive diagonal preconditioner.
    Psgld,
    /// [`Sgrld`]: Langevin dynamics in the target's metric.
    Sgrld,
    /// [`Hamcmc`]: Langevin dynamics preconditioned by L-BFGS.
    Hamcmc,
    /// [`Sghmc`]: momentum with friction.
    Sghmc,
    /// [`Sgnht`]: momentum with a thermostat.
    Sgnht,
    /// [`Sgrhmc`]: momentum in the target's metric.
    Sgrhmc,
    /// [`Hmc`]: Hamiltonian Monte Carlo.
    Hmc,
    /// [`MhBfgs`]: Metropolis-Hastings with a proposal covariance from an ensemble.
    #[cfg_attr(feature = "serde", serde(rename = "mh-bfgs"))]
    MhBfgs,
    /// [`HmcBfgs`]: Hamiltonian Monte Carlo with a mass matrix from an ensemble.
    #[cfg_attr(feature = "serde", serde(rename = "hmc-bfgs"))]
    HmcBfgs,
    /// [`Qnhmc`]: quasi-Newton Hamiltonian Monte Carlo.
    Qnhmc,
    /// [`Nuts`]: Hamiltonian Monte Carlo with trajectories of adaptive length.
    Nuts,
    /// [`Newtonian`]: single-site proposals fitted to the curvature.
    #[cfg_attr(feature = "serde", serde(rename = "nmc"))]
    Newtonian,
}

/// Settings common to most samplers; `None` keeps the sampler's own default. `step_size`, `minibatch` and `drift_limit`
/// have no effect on samplers without these settings. Any other setting that a sampler lacks is an error.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SamplerOptions {
    /// The step size. Samplers without an acceptance test keep it. Samplers with a test keep its first value until a
    /// [warm-up](Sampler::warm_up), which searches for a new step; adaptation [without a warm-up](Sampler::adapt)
    /// starts from it.
    pub step_size: Option<StepSize>,
    /// Number of data terms in each gradient; accept-reject samplers always use all.
    pub minibatch: Option<usize>,
    /// Fold every draw into the positive orthant of the target's own coordinates; excludes a `metric`. A warm-up still
    /// adapts the step, but `hamcmc`, `sghmc` and `sgnht` need a `step_size`. Not available for `sgrhmc` and samplers
    /// with an acceptance test: pass them a [`Mirrored`] target.
    pub mirror: bool,
    /// The largest drift per coordinate and step of a gradient sampler. With a metric, it applies in the coordinates of
    /// the warm-up, where every standard deviation is about 1, else in the target's own.
    pub drift_limit: Option<f64>,
    /// Shape of the metric that a [warm-up](Sampler::warm_up) estimates. `None` means [`MetricShape::Diagonal`], with
    /// two exceptions. It means [`MetricShape::None`] for samplers without an acceptance test that are given a step
    /// size or mirror. `sgrld`, `sgrhmc` and `nmc`, which use the target's metric or none, allow only
    /// [`MetricShape::None`].
    pub metric: Option<MetricShape>,
    /// The pairs of HAMCMC: [`Pairs::States`] unless given. [`Pairs::Moves`], as published, keep a bias at any step;
    /// `metropolis` does not allow them.
    pub pairs: Option<Pairs>,
    /// Test the moves of HAMCMC ([`Hamcmc::with_metropolis`]).
    pub metropolis: bool,
    /// The mean acceptance probability to which samplers with a test adapt their step, in (0, 1). `None` keeps the
    /// default of the sampler: 0.8 for Hamiltonian samplers, 0.574 for `mh-bfgs` and for HAMCMC with a test and without
    /// a given step.
    pub target_acceptance: Option<f64>,
}

impl SamplerOptions {
    fn gradient(&self, default: GradientSettings) -> GradientSettings {
        GradientSettings {
            step_size: self.step_size.unwrap_or(default.step_size),
            minibatch: self.minibatch.or(default.minibatch),
            mirror: self.mirror,
            drift_limit: self.drift_limit.unwrap_or(default.drift_limit),
            temperature: default.temperature,
        }
    }
}

impl SamplerKind {
    /// Every sampler.
    pub const ALL: [Self; 13] = [
        Self::Sgld,
        Self::Psgld,
        Self::Sgrld,
        Self::Hamcmc,
        Self::Sghmc,
        Self::Sgnht,
        Self::Sgrhmc,
        Self::Hmc,
        Self::MhBfgs,
        Self::HmcBfgs,
        Self::Qnhmc,
        Self::Nuts,
        Self::Newtonian,
    ];

    /// The name that [`FromStr`] accepts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sgld => "sgld",
            Self::Psgld => "psgld",
            Self::Sgrld => "sgrld",
            Self::Hamcmc => "hamcmc",
            Self::Sghmc => "sghmc",
            Self::Sgnht => "sgnht",
            Self::Sgrhmc => "sgrhmc",
            Self::Hmc => "hmc",
            Self::MhBfgs => "mh-bfgs",
            Self::HmcBfgs => "hmc-bfgs",
            Self::Qnhmc => "qnhmc",
            Self::Nuts => "nuts",
            Self::Newtonian => "nmc",
        }
    }

    /// Builds the sampler for `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If an option is out of range, or the sampler does not have it.
    pub fn build<T: Real>(
        self,
        dimension: usize,
        blocks: usize,
        options: &SamplerOptions,
        streams: SeedTree,
    ) -> Result<Box<dyn Sampler<T>>, SamplerError> {
        self.check(options)?;
        let gradient = options.gradient(GradientSettings::default());
        let step_size = options.step_size.map(|step_size| step_size.at(1));
        let hmc = HmcSettings::default();
        let target_acceptance = options.target_acceptance.unwrap_or(hmc.target_acceptance);
        let hmc = HmcSettings { step_size: step_size.unwrap_or(hmc.step_size), target_acceptance, ..hmc };
        let settings = self.warm_up_settings(options);
        let prepared = |sampler: Box<dyn Sampler<T>>| -> Result<Box<dyn Sampler<T>>, SamplerError> {
            Ok(match settings {
                Some(settings) => Box::new(Preconditioned::new(sampler, settings, streams)?),
                None => sampler,
            })
        };
        prepared(match self {
            Self::Sgld => Box::new(Sgld::new(dimension, blocks, gradient, streams)?),
            Self::Psgld => {
                let settings = PsgldSettings { gradient, ..PsgldSettings::default() };
                Box::new(Psgld::new(dimension, blocks, settings, streams)?)
            }
            Self::Sgrld => Box::new(Sgrld::new(dimension, blocks, gradient, streams)?),
            Self::Hamcmc => {
                let is_raw = settings.is_none_or(|settings| settings.metric == MetricShape::None);
                Box::new(hamcmc(dimension, blocks, (gradient, options, is_raw), streams)?)
            }
            Self::Sghmc => {
                let settings = SghmcSettings { gradient, ..SghmcSettings::default() };
                Box::new(Sghmc::new(dimension, blocks, settings, streams)?)
            }
            Self::Sgnht => {
                let settings = SgnhtSettings { gradient, ..SgnhtSettings::default() };
                Box::new(Sgnht::new(dimension, blocks, settings, streams)?)
            }
            Self::Sgrhmc => Box::new(Sgrhmc::new(dimension, blocks, gradient, streams)?),
            Self::Hmc => Box::new(Hmc::new(dimension, blocks, hmc, streams)?),
            Self::MhBfgs => {
                let default = MhBfgsSettings::default();
                let target_acceptance = options.target_acceptance.unwrap_or(default.target_acceptance);
                let scale = step_size.unwrap_or(default.scale);
                let settings = MhBfgsSettings { scale, target_acceptance, ..default };
                Box::new(MhBfgs::new(dimension, blocks, settings, streams)?)
            }
            Self::HmcBfgs => {
                let settings = HmcBfgsSettings { hmc, ..HmcBfgsSettings::default() };
                Box::new(HmcBfgs::new(dimension, blocks, settings, streams)?)
            }
            Self::Qnhmc => {
                let settings = QnhmcSettings { hmc, ..QnhmcSettings::default() };
                Box::new(Qnhmc::new(dimension, blocks, settings, streams)?)
            }
            Self::Nuts => {
                let default = NutsSettings::default();
                let step_size = step_size.unwrap_or(default.step_size);
                let settings = NutsSettings { step_size, target_acceptance, ..default };
                Box::new(Nuts::new(dimension, blocks, settings, streams)?)
            }
            Self::Newtonian => Box::new(Newtonian::new(dimension, blocks, streams)?),
        })
    }

    /// Returns an error for options that the sampler does not have.
    fn check(self, options: &SamplerOptions) -> Result<(), SamplerError> {
        let off = |setting, on: bool, has: bool| check_combination(setting, self.name(), has || !on);
        let is_hamcmc = self == Self::Hamcmc;
        // Mirroring excludes the shadow test of HAMCMC, and the metric that suits the target to the friction of the
        // others.
        let needs_step = matches!(self, Self::Hamcmc | Self::Sghmc | Self::Sgnht);
        // A given step of HAMCMC is not adapted.
        let adapts = is_hamcmc && options.metropolis && options.step_size.is_none();
        let aims = self.has_test() && self != Self::Newtonian || adapts;
        let steady = match (is_hamcmc, options.metropolis) {
            (true, true) => "a given step_size of hamcmc",
            (true, false) => "hamcmc without metropolis",
            _ => self.name(),
        };
        let metric = options.metric.is_some_and(|metric| metric != MetricShape::None);
        off("mirror", options.mirror, !self.has_test() && self != Self::Sgrhmc)?;
        off("mirror without step_size", options.mirror && options.step_size.is_none(), !needs_step)?;
        off("metric", metric, self.has_warm_up())?;
        off("pairs", options.pairs.is_some(), is_hamcmc)?;
        off("metropolis", options.metropolis, is_hamcmc)?;
        check_combination("target_acceptance", steady, aims || options.target_acceptance.is_none())
    }

    /// Whether a warm-up may adapt a metric and the step.
    fn has_warm_up(self) -> bool {
        !matches!(self, Self::Sgrld | Self::Sgrhmc | Self::Newtonian)
    }

    /// Whether the sampler always has an acceptance test. A test needs full gradients and adapts the step, if any, to
    /// its acceptance. False for HAMCMC, whose test is [optional](SamplerOptions::metropolis).
    #[must_use]
    pub fn has_test(self) -> bool {
        matches!(self, Self::Hmc | Self::MhBfgs | Self::HmcBfgs | Self::Qnhmc | Self::Nuts | Self::Newtonian)
    }

    /// The settings of the sampler's warm-up, if it has one.
    fn warm_up_settings(self, options: &SamplerOptions) -> Option<WarmUpSettings> {
        if !self.has_warm_up() {
            return None;
        }
        // Draws are folded at zero in the target's coordinates; a metric would move this point.
        let is_given = !self.has_test() && options.step_size.is_some();
        let is_plain = is_given || options.mirror;
        let metric =
            options.metric.unwrap_or(if is_plain { MetricShape::None } else { MetricShape::Diagonal });
        Some(WarmUpSettings { metric, adapt_step: !is_given, ..WarmUpSettings::default() })
    }
}

/// The smallest curvature of a pair, in preconditioned coordinates.
const MIN_CURVATURE: f64 = 1e-2;
/// Target acceptance of HAMCMC's step, of a shadow test and of a Metropolis test.
const ACCEPTANCE: [f64; 2] = [0.98, 0.574];

/// Builds HAMCMC; `is_raw` if it moves in the target's coordinates, where curvature may have any scale.
fn hamcmc<T: Real>(
    dimension: usize,
    blocks: usize,
    (gradient, options, is_raw): (GradientSettings, &SamplerOptions, bool),
    streams: SeedTree,
) -> Result<Hamcmc<T>, SamplerError> {
    let initial_scale = if is_raw { InitialScale::Pairs(1.0) } else { InitialScale::Fixed(1.0) };
    let settings = HamcmcSettings { gradient, initial_scale, ..HamcmcSettings::default() };
    let pairs = options.pairs.unwrap_or(Pairs::States);
    // For equal memory, states form one pair fewer than moves.
    let memory = settings.memory + usize::from(pairs == Pairs::States);
    let sampler = Hamcmc::new(dimension, blocks, HamcmcSettings { memory, ..settings }, streams)?
        .with_pairs(pairs)?
        .with_curvature_bounds(if is_raw { 0.0 } else { MIN_CURVATURE }, f64::INFINITY)?;
    let sampler = if options.metropolis { sampler.with_metropolis()? } else { sampler };
    if options.step_size.is_some() {
        return Ok(sampler);
    }
    let [shadow, tested] = ACCEPTANCE;
    let default = if options.metropolis { tested } else { in_dimensions(shadow, dimension) };
    let acceptance = options.target_acceptance.unwrap_or(default);
    sampler.with_step_adaptation(acceptance)
}

impl fmt::Display for SamplerKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for SamplerKind {
    type Err = SamplerError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let expected = Self::ALL.map(Self::name).join(", ");
            SamplerError::UnknownName { name: name.to_owned(), expected }
        })
    }
}
