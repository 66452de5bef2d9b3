//! The alpha-stable laws of the model: draws, densities in closed form, and estimation of the characteristic exponent.
//!
//! **Scale.** Two laws are used throughout.
//!
//! * [`PositiveStable`]: a positive variable `A` with `E exp(-s A) = exp(-s^a)`, `a = alpha / 2`.
//! * [`ComplexStable`]: a complex isotropic variable `X = sigma sqrt(A) Z`, where `Z` is complex
//!   normal with `E|Z|^2 = 4` (variance 2 in each part), so that
//!   `E exp(i Re(X conj(t))) = exp(-sigma^alpha |t|^alpha)`.
//!
//! At `alpha = 2` the impulse `A` is 1 and `X` is complex normal with `E|X|^2 = 4 sigma^2`.

use std::ops::RangeInclusive;
use thiserror::Error;

mod complex;
mod generalised_gamma;
mod log_moments;
mod positive;
mod tail;

pub use complex::ComplexStable;
pub use generalised_gamma::GeneralisedGamma;
pub use log_moments::StableFit;
pub use positive::PositiveStable;
#[cfg(test)]
pub(crate) use tail::log_impulse_quadrature;
pub(crate) use tail::{LogSurvival, impulse_quadrature};

/// Range of the characteristic exponents of the model: below 0.2, draws exceed the range of `f32`.
pub const ALPHA_RANGE: RangeInclusive<f64> = 0.2..=2.0;

/// A parameter outside the range in which a law is defined.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("{parameter} is {value}; expected {expected}")]
pub struct ParameterError {
    /// The parameter's name.
    pub parameter: &'static str,
    /// The value.
    pub value: f64,
    /// The expected range.
    pub expected: &'static str,
}

/// Returns `value` if `admissible`, else an error with its name.
fn checked(
    parameter: &'static str,
    value: f64,
    admissible: bool,
    expected: &'static str,
) -> Result<f64, ParameterError> {
    if admissible { Ok(value) } else { Err(ParameterError { parameter, value, expected }) }
}

#[cfg(test)]
mod ks {
    //! Kolmogorov-Smirnov distances.

    /// The 99.9% point of `sqrt(n) D`.
    pub(crate) const CRITICAL: f64 = 1.95;

    /// `sqrt(n) D` of a sample against a distribution function.
    pub(crate) fn statistic(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
        sample.sort_by(f64::total_cmp);
        let n = sample.len() as f64;
        let distance = sample.iter().enumerate().fold(0.0_f64, |d, (i, &x)| {
            let f = cdf(x);
            d.max(f - i as f64 / n).max((i + 1) as f64 / n - f)
        });
        distance * n.sqrt()
    }

    /// `sqrt(n)` times the largest distance at the points where the distribution function is known: a lower bound of
    /// `statistic`, so its critical value applies.
    pub(crate) fn statistic_at(sample: &[f64], table: &[(f64, f64)]) -> f64 {
        let n = sample.len() as f64;
        let distance = table.iter().fold(0.0_f64, |d, &(x, f)| {
            d.max((sample.iter().filter(|&&s| s <= x).count() as f64 / n - f).abs())
        });
        distance * n.sqrt()
    }
}
