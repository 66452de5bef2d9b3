//! Posteriors with known answers, for tests and examples.

mod banana;
mod dirichlet;
mod funnel;
mod gammas;
mod gaussian;
mod linear_gaussian;
mod logistic;
mod quartic;
mod robust;

use crate::{Real, SamplerError, checks};

pub use banana::Banana;
pub use dirichlet::Dirichlet;
pub use funnel::Funnel;
pub use gammas::Gammas;
pub use gaussian::Gaussian;
pub use linear_gaussian::LinearGaussian;
pub use logistic::LogisticRegression;
pub use quartic::Quartic;
pub use robust::RobustRegression;

/// Returns an error unless `found` equals `expected`.
fn check_size(what: &'static str, found: usize, expected: usize) -> Result<(), SamplerError> {
    if found == expected { Ok(()) } else { Err(SamplerError::Shape { what, found, expected }) }
}

/// Returns an error unless all values are finite and above 0.
fn check_positive(name: &'static str, values: &[f64]) -> Result<(), SamplerError> {
    values.iter().try_for_each(|&value| checks::check_positive(name, value))
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

fn widened<T: Real>(theta: &[T]) -> Vec<f64> {
    theta.iter().map(|theta| theta.widen()).collect()
}

/// `log(1 + exp(x))` without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}
