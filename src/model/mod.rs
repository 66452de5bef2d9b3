//! The two-source alpha-stable matrix factorisation: dictionary, mixture, priors and marginal likelihood.

mod continuation;
mod dictionary;
pub(crate) mod marginal;
pub(crate) mod mixture;
mod priors;
pub(crate) mod published;
mod settings;
#[cfg(test)]
mod tests;
pub(crate) mod workspace;
pub(crate) use continuation::{Continuation, knot_spacing};
pub use dictionary::{ContinuationHeader, Dictionary, DictionaryError, DictionaryHeader, FORMAT_VERSION};
pub(crate) use marginal::MarginalTable;
pub(crate) use mixture::{Factor, ImpulseVariables, MIN_POWER, Mixture};
pub use priors::Prior;
pub(crate) use published::{ImpulseStep, SampledVariables};
pub(crate) use settings::validate_prior;
pub use settings::{ModelSettings, NoiseDrift, NoiseModel};
pub(crate) use workspace::{Dispersions, Workspace};
