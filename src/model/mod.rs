//! The two-source alpha-stable matrix factorisation.
mod continuation;
mod dictionary;
pub(crate) mod impulses;
pub(crate) mod marginal;
pub(crate) mod mixture;
mod priors;
#[cfg(test)]
mod tests;
pub(crate) use continuation::Continuation;
pub use dictionary::{Dictionary, DictionaryError, FORMAT_VERSION, Header};
pub(crate) use impulses::ImpulseStep;
pub(crate) use marginal::MarginalTable;
pub(crate) use mixture::{Factor, Impulses, Mixture, SMALLEST_POWER, Workspace};
pub use priors::Prior;
