//! Fitting an alpha-stable law by its logarithmic moments.

use num_complex::Complex;
use std::f64::consts::{FRAC_PI_2, LN_2, PI};

/// Euler's constant.
const EULER: f64 = 0.577_215_664_901_532_9;

/// Exponent and scale of a symmetric alpha-stable law, fitted to a sample by the mean and the
/// variance of the logarithm of its modulus (Nikias and Shao, "Signal Processing with
/// Alpha-Stable Distributions", 1995, section 5.7).
///
/// Logarithmic moments exist for every exponent. For a complex isotropic variable
/// `Var ln|X| = pi^2 / (6 alpha^2)`, for a real one `pi^2 / (6 alpha^2) + pi^2 / 12`. The standard
/// error of alpha from n independent values is about `alpha / sqrt(n)`.
///
/// ```
/// use alphamf::stable::StableFit;
/// // At least two distinct moduli are needed.
/// assert!(StableFit::of_real([1.0, -1.0, 0.0]).is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StableFit {
    /// The characteristic exponent, in (0, 2].
    pub alpha: f64,
    /// The scale sigma, in the units of the sample.
    pub sigma: f64,
}

impl StableFit {
    /// Fits complex isotropic values; `None` without two distinct moduli that are finite and not 0.
    #[must_use]
    pub fn of_complex(sample: impl IntoIterator<Item = Complex<f64>>) -> Option<Self> {
        let (mean, variance) = log_moments(sample.into_iter().map(|x| x.norm()))?;
        let alpha = (PI / (6.0 * variance).sqrt()).min(2.0);
        // E ln|X| = ln sigma + ln 2 + gamma (1/alpha - 1)
        Some(Self { alpha, sigma: libm::exp(mean - LN_2 - EULER * (1.0 / alpha - 1.0)) })
    }

    /// Fits real values; `None` without two distinct moduli that are finite and not 0.
    #[must_use]
    pub fn of_real(sample: impl IntoIterator<Item = f64>) -> Option<Self> {
        let (mean, variance) = log_moments(sample.into_iter().map(f64::abs))?;
        // The variance is at least that of the normal law, pi^2 / 8.
        let excess = 6.0 * variance - FRAC_PI_2 * PI;
        let alpha = if excess > PI * PI / 4.0 { PI / excess.sqrt() } else { 2.0 };
        // E ln|X| = ln sigma + gamma (1/alpha - 1)
        Some(Self { alpha, sigma: libm::exp(mean - EULER * (1.0 / alpha - 1.0)) })
    }
}

/// Mean and variance of the logarithms of the positive finite moduli.
fn log_moments(moduli: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for x in moduli.filter(|x| x.is_finite() && *x > 0.0).map(libm::log) {
        n += 1.0;
        let deviation = x - mean;
        mean += deviation / n;
        squares += deviation * (x - mean);
    }
    (squares > 0.0).then(|| (mean, squares / (n - 1.0)))
}

#[cfg(test)]
mod tests {
    use super::super::ComplexStable;
    use super::*;
    use crate::random::SeedTree;
    use rand_distr::Distribution;

    #[test]
    fn recovers_exponent_and_scale() {
        let n = 100_000;
        for alpha in [0.5_f64, 0.9, 1.2, 1.5, 1.8, 1.95] {
            for sigma in [1e-4, 1.0, 30.0] {
                let mut stream = SeedTree::new(41).rng(alpha.to_bits());
                let law = ComplexStable::new(alpha, sigma).unwrap();
                let draws: Vec<Complex<f64>> = (0..n).map(|_| law.sample(&mut stream)).collect();
                let complex = StableFit::of_complex(draws.iter().copied()).unwrap();
                let real = StableFit::of_real(draws.iter().map(|x| x.re)).unwrap();
                for (fit, name) in [(complex, "complex"), (real, "real")] {
                    // About four standard errors.
                    let bound = 6.0 * alpha / f64::from(n).sqrt();
                    assert!((fit.alpha - alpha).abs() < bound, "{name} {alpha}: {fit:?}");
                    assert!((fit.sigma / sigma - 1.0).abs() < 0.04, "{name} {alpha} {sigma}: {fit:?}");
                }
            }
        }
    }

    #[test]
    fn light_tails_count_as_normal() {
        let uniform = (1..1000).map(|i| f64::from(i) / 1000.0 + 3.0);
        assert_eq!(StableFit::of_real(uniform.clone()).unwrap().alpha, 2.0);
        assert_eq!(StableFit::of_complex(uniform.map(Complex::from)).unwrap().alpha, 2.0);
    }

    #[test]
    fn few_values_are_fitted_by_the_printed_moments() {
        // Logarithms 0 and 1: their unbiased variance is 1/2.
        let two = StableFit::of_complex([1.0, f64::exp(1.0)].map(Complex::from)).unwrap();
        assert!((two.alpha - PI / 3.0_f64.sqrt()).abs() < 1e-12, "{two:?}");
        // A log variance between pi^2 / 12 and the normal law's pi^2 / 8 gives alpha = 2.
        let narrow = StableFit::of_real([1.0, -1.0, f64::exp(1.88), -f64::exp(1.88)]).unwrap();
        assert_eq!(narrow.alpha, 2.0);
    }

    #[test]
    fn degenerate_samples_have_no_fit() {
        assert_eq!(StableFit::of_real([]), None);
        assert_eq!(StableFit::of_real([0.0, 0.0, 3.0]), None);
        assert_eq!(StableFit::of_real([3.0, -3.0, f64::NAN, f64::INFINITY]), None);
    }

    #[test]
    fn zeros_are_left_out() {
        let fit = StableFit::of_real([1.0, 3.0, 2.0]);
        assert!(fit.is_some());
        assert_eq!(StableFit::of_real([0.0, 1.0, 3.0, 0.0, 2.0]), fit);
    }
}
