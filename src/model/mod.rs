//! The two-source alpha-stable matrix factorisation.
mod dictionary;
mod marginal;
mod mixture;
mod products;
pub use dictionary::{Dictionary, DictionaryError, FORMAT_VERSION, Header};
pub use marginal::{Expectations, MarginalTable};
pub use mixture::{Factor, Impulses, Mixture, SMALLEST_POWER, Scalar, Workspace};
