//! The two-source alpha-stable matrix factorisation.
mod continuation;
mod dictionary;
mod impulses;
mod marginal;
mod mixture;
mod priors;
pub(crate) mod products;
#[cfg(test)]
mod tests;
pub use continuation::Continuation;
pub use dictionary::{Dictionary, DictionaryError, FORMAT_VERSION, Header};
pub use impulses::{ImpulseStep, Impulses};
pub use marginal::{Expectations, MarginalTable};
pub use mixture::{Factor, Mixture, SMALLEST_POWER, Scalar, Workspace};
pub use priors::Prior;
