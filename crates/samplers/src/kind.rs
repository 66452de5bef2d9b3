//! Samplers by name.

use std::fmt;
use std::str::FromStr;

use super::*;
use crate::random::SeedTree;

/// The samplers of this library, each constructible by name with default settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
pub enum SamplerKind {
    /// [`Sgld`]: stochastic gradient Langevin dynamics.
    Sgld,
    /// [`Psgld`]: the same with an adaptive diagonal preconditioner.
    Psgld,
    /// [`Sgrld`]: the same in the target's metric.
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
    /// [`MhBfgs`]: Metropolis-Hastings shaped by an ensemble.
    #[cfg_attr(feature = "serde", serde(rename = "mh-bfgs"))]
    MhBfgs,
    /// [`HmcBfgs`]: Hamiltonian Monte Carlo shaped by an ensemble.
    #[cfg_attr(feature = "serde", serde(rename = "hmc-bfgs"))]
    HmcBfgs,
    /// [`Qnhmc`]: quasi-Newton Hamiltonian Monte Carlo.
    Qnhmc,
    /// [`Newtonian`]: single-site proposals fitted to the curvature.
    #[cfg_attr(feature = "serde", serde(rename = "nmc"))]
    Newtonian,
}

/// Settings that most samplers understand; what is `None` stays at the sampler's own default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SamplerOptions {
    /// The step size; accept-reject samplers start their adaptation from its first value.
    pub step_size: Option<StepSize>,
    /// How many data terms each gradient looks at; accept-reject samplers always use all.
    pub minibatch: Option<usize>,
    /// Fold every draw into the positive orthant. Accept-reject samplers ignore this: give them a
    /// [`Mirrored`] target.
    pub mirror: bool,
    /// The largest drift per coordinate and step of a gradient sampler.
    pub drift_limit: Option<f64>,
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
    pub const ALL: [Self; 12] = [
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
        Self::Newtonian,
    ];

    /// The name that [`FromStr`] understands.
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
            Self::Newtonian => "nmc",
        }
    }

    /// Builds the sampler for `blocks` independent blocks of `dimension` unknowns.
    ///
    /// # Errors
    /// If an option is out of range.
    pub fn build<T: Real>(
        self,
        dimension: usize,
        blocks: usize,
        options: &SamplerOptions,
        streams: SeedTree,
    ) -> Result<Box<dyn Sampler<T>>, SamplerError> {
        let gradient = options.gradient(GradientSettings::default());
        let step_size = options.step_size.map(|step_size| step_size.at(1));
        let hmc = HmcSettings::default();
        let hmc = HmcSettings { step_size: step_size.unwrap_or(hmc.step_size), ..hmc };
        Ok(match self {
            Self::Sgld => Box::new(Sgld::new(dimension, blocks, gradient, streams)?),
            Self::Psgld => {
                let settings = PsgldSettings { gradient, ..PsgldSettings::default() };
                Box::new(Psgld::new(dimension, blocks, settings, streams)?)
            }
            Self::Sgrld => Box::new(Sgrld::new(dimension, blocks, gradient, streams)?),
            Self::Hamcmc => {
                let settings = HamcmcSettings { gradient, ..HamcmcSettings::default() };
                Box::new(Hamcmc::new(dimension, blocks, settings, streams)?)
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
                let settings = MhBfgsSettings { scale: step_size.unwrap_or(default.scale), ..default };
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
            Self::Newtonian => Box::new(Newtonian::new(dimension, blocks, streams)?),
        })
    }
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
