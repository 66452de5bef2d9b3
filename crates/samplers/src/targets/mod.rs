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

use crate::Real;

pub use banana::Banana;
pub use dirichlet::Dirichlet;
pub use funnel::Funnel;
pub use gammas::Gammas;
pub use gaussian::Gaussian;
pub use linear_gaussian::LinearGaussian;
pub use logistic::LogisticRegression;
pub use quartic::Quartic;
pub use robust::RobustRegression;

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
