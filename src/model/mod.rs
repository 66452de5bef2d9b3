//! The two-source alpha-stable matrix factorisation.
mod continuation;
mod dictionary;
pub(crate) mod marginal;
pub(crate) mod mixture;
mod priors;
pub(crate) mod published;
#[cfg(test)]
mod tests;
pub(crate) mod workspace;
pub(crate) use continuation::{Continuation, knot_spacing};
pub use dictionary::{ContinuationHeader, Dictionary, DictionaryError, DictionaryHeader, FORMAT_VERSION};
pub(crate) use marginal::MarginalTable;
pub(crate) use mixture::{Factor, ImpulseVariables, Mixture, SMALLEST_POWER};
pub use priors::Prior;
pub(crate) use published::{ImpulseStep, SampledVariables};
pub(crate) use workspace::{Dispersed, Workspace};
