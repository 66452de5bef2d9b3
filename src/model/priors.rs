//! Prior laws of activations and spectra.

use super::mixture::Scalar;
use serde::{Deserialize, Serialize};

/// The prior of every entry of a factor, as a negative log density without its constant.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Prior {
    /// Improper and flat.
    #[default]
    Flat,
    /// Generalised gamma, density proportional to `x^(c a - 1) exp(-(x / b)^c)` with `a, b > 0`. The paper uses
    /// `c = -2 / alpha` (`hamcmc-2016`, eq. 14), which is conjugate to the conditional variances.
    GeneralisedGamma {
        /// Shape `a`.
        shape: f64,
        /// Scale `b`.
        scale: f64,
        /// Power `c`, not zero.
        power: f64,
    },
    /// Gamma, density proportional to `x^(a - 1) exp(-b x)`; a shape `a < 1` favours sparse activations.
    Gamma {
        /// Shape `a`.
        shape: f64,
        /// Rate `b`.
        rate: f64,
    },
}

impl Prior {
    /// The negative log density at `x > 0`, up to a constant.
    pub(crate) fn potential(&self, x: f64) -> f64 {
        match *self {
            Self::Flat => 0.0,
            Self::GeneralisedGamma { shape, scale, power } => {
                (1.0 - power * shape) * libm::log(x) + libm::pow(x / scale, power)
            }
            Self::Gamma { shape, rate } => (1.0 - shape) * libm::log(x) + rate * x,
        }
    }

    /// The derivative of [`Prior::potential`] at `x > 0`.
    pub(crate) fn slope(&self, x: f64) -> f64 {
        match *self {
            Self::Flat => 0.0,
            Self::GeneralisedGamma { shape, scale, power } => {
                (1.0 - power * shape + power * libm::pow(x / scale, power)) / x
            }
            Self::Gamma { shape, rate } => (1.0 - shape) / x + rate,
        }
    }

    /// The second derivative of [`Prior::potential`] at `x > 0`.
    pub(crate) fn curvature(&self, x: f64) -> f64 {
        match *self {
            Self::Flat => 0.0,
            Self::GeneralisedGamma { shape, scale, power } => {
                let t = power * libm::pow(x / scale, power);
                (power * t - (1.0 - power * shape + t)) / (x * x)
            }
            Self::Gamma { shape, .. } => (shape - 1.0) / (x * x),
        }
    }

    /// Adds the slopes at every entry of `values` to `gradient`.
    pub(crate) fn add_gradient<T: Scalar>(&self, values: &[T], gradient: &mut [T]) {
        let constant = |value: f64| T::from(value).unwrap_or_else(T::nan);
        let mut add = |slope: &dyn Fn(T) -> T| {
            gradient.iter_mut().zip(values).for_each(|(gradient, &x)| *gradient += slope(x));
        };
        match *self {
            Self::Flat => (),
            Self::GeneralisedGamma { shape, scale, power } => {
                let (first, log_scale) = (constant(1.0 - power * shape), constant(libm::log(scale)));
                let power = constant(power);
                add(&|x| (first + power * (power * (x.fast_ln() - log_scale)).fast_exp()) / x);
            }
            Self::Gamma { shape, rate } => {
                let (first, rate) = (constant(1.0 - shape), constant(rate));
                add(&|x| first / x + rate);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_the_derivatives_of_the_potentials() {
        for prior in [
            Prior::Flat,
            Prior::GeneralisedGamma { shape: 1.3, scale: 0.7, power: -2.0 / 1.2 },
            Prior::Gamma { shape: 0.5, rate: 2.0 },
        ] {
            for x in [0.1, 0.8, 3.0] {
                let step = 1e-5 * x;
                let difference = (prior.potential(x + step) - prior.potential(x - step)) / (2.0 * step);
                assert!(
                    (difference - prior.slope(x)).abs() < 1e-6 * (1.0 + difference.abs()),
                    "{prior:?} at {x}"
                );
                let difference = (prior.slope(x + step) - prior.slope(x - step)) / (2.0 * step);
                assert!(
                    (difference - prior.curvature(x)).abs() < 1e-6 * (1.0 + difference.abs()),
                    "{prior:?} at {x}"
                );
            }
        }
    }

    #[test]
    fn slopes_of_many_are_added_to_what_is_there() {
        let values = [0.1_f32, 0.8, 3.0];
        for prior in [
            Prior::Flat,
            Prior::GeneralisedGamma { shape: 1.3, scale: 0.7, power: -2.0 / 1.2 },
            Prior::Gamma { shape: 0.5, rate: 2.0 },
        ] {
            let mut gradient = [1.0_f32, -2.0, 0.5];
            prior.add_gradient(&values, &mut gradient);
            for ((&x, found), before) in values.iter().zip(gradient).zip([1.0, -2.0, 0.5]) {
                let expected = before + prior.slope(x.into());
                let error = (f64::from(found) - expected).abs();
                assert!(error < 1e-4 * (1.0 + expected.abs()), "{prior:?} at {x}: {found} of {expected}");
            }
        }
    }

    #[test]
    fn the_generalised_gamma_is_that_of_the_stable_module() {
        let law = crate::stable::GeneralisedGamma::new(1.3, 0.7, -1.6).unwrap();
        let prior = Prior::GeneralisedGamma { shape: 1.3, scale: 0.7, power: -1.6 };
        let constant = law.ln_density(1.0) + prior.potential(1.0);
        assert!((law.ln_density(2.2) + prior.potential(2.2) - constant).abs() < 1e-12);
    }
}
