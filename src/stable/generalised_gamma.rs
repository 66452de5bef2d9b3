//! The generalised gamma law.

use super::{ParameterError, checked};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Gamma};

/// The generalised gamma law GG(a, b, c) of Stacy (1962):
///
/// `p(x) = |c| / (Gamma(a) b) (x/b)^(a c - 1) exp(-(x/b)^c)`, x > 0,
///
/// the law of `b G^(1/c)` with G a Gamma(a, 1) variable. Any `c` except 0 is allowed. The prior of the alpha-stable
/// factorisation is GG(a, b, -2/alpha): the factor `x^(2/alpha)` of the variance is then inverse gamma with shape a and
/// scale `b^(2/alpha)`, which is conjugate to a normal variance. GG(a, b, 1) is Gamma(a, b).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeneralisedGamma {
    a: f64,
    b: f64,
    c: f64,
    /// The law of shape `a`, or `a + 1` where `a` is below [`SMALL_SHAPE`].
    gamma: Gamma<f64>,
}

/// Shape below which Gamma variables may underflow, so that their logarithms are drawn instead.
const SMALL_SHAPE: f64 = 0.1;

impl GeneralisedGamma {
    /// The law with shape `a > 0`, scale `b > 0` (in the units of the variable) and power `c != 0`.
    ///
    /// # Errors
    /// If a parameter is outside its range.
    pub fn new(a: f64, b: f64, c: f64) -> Result<Self, ParameterError> {
        checked("a", a, a > 0.0 && a.is_finite(), "a positive number")?;
        checked("b", b, b > 0.0 && b.is_finite(), "a positive number")?;
        checked("c", c, c != 0.0 && c.is_finite(), "a number other than 0")?;
        let gamma = Gamma::new(if a < SMALL_SHAPE { a + 1.0 } else { a }, 1.0)
            .map_err(|_| ParameterError { parameter: "a", value: a, expected: "a positive number" })?;
        Ok(Self { a, b, c, gamma })
    }

    /// The logarithm of the density at `x`; minus infinity where `x` is not positive.
    #[must_use]
    pub fn ln_density(&self, x: f64) -> f64 {
        if x <= 0.0 {
            return f64::NEG_INFINITY;
        }
        let ln_ratio = libm::log(x / self.b);
        let power = libm::exp(self.c * ln_ratio);
        libm::log(self.c.abs() / self.b) - libm::lgamma(self.a) + (self.a * self.c - 1.0) * ln_ratio - power
    }

    /// The density at `x`.
    #[must_use]
    pub fn density(&self, x: f64) -> f64 {
        libm::exp(self.ln_density(x))
    }
}

impl Distribution<f64> for GeneralisedGamma {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> f64 {
        let power = self.gamma.sample(rng).max(f64::MIN_POSITIVE);
        let ln_power = if self.a < SMALL_SHAPE {
            // Gamma(a) is Gamma(a + 1) times U^(1/a).
            libm::log(power) + libm::log(1.0 - rng.random::<f64>()) / self.a
        } else {
            let ratio = libm::pow(power, 1.0 / self.c);
            if ratio.is_normal() {
                return (self.b * ratio).clamp(f64::MIN_POSITIVE, f64::MAX);
            }
            libm::log(power)
        };
        libm::exp(libm::log(self.b) + ln_power / self.c).clamp(f64::MIN_POSITIVE, f64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ks;
    use super::*;
    use crate::random::SeedTree;

    /// a, b, c, x and `scipy.stats.gengamma.logpdf(x, a, c, scale=b)` of SciPy 1.17.1.
    const SCIPY: [(f64, f64, f64, f64, f64); 15] = [
        (1.0, 2.0, 1.0, 0.3, -0.8431471805599453),
        (1.0, 2.0, 1.0, 1.0, -1.1931471805599454),
        (1.0, 2.0, 1.0, 5.0, -3.1931471805599454),
        (2.5, 1.3, -1.8, 0.3, -5.89929896528893),
        (2.5, 1.3, -1.8, 1.0, -0.11986435075961643),
        (2.5, 1.3, -1.8, 5.0, -7.456667318088238),
        (0.7, 0.4, 1.5, 0.3, 0.3969854369897351),
        (0.7, 0.4, 1.5, 1.0, -2.8461439451661135),
        (0.7, 0.4, 1.5, 5.0, -43.00699879849316),
        (3.0, 2.0, -2.0 / 1.2, 0.3, -13.107383698763309),
        (3.0, 2.0, -2.0 / 1.2, 1.0, 0.10861224206937226),
        (3.0, 2.0, -2.0 / 1.2, 5.0, -6.590366537926424),
        (0.3, 10.0, -1.0, 0.3, -32.17319115462948),
        (0.3, 10.0, -1.0, 1.0, -10.405022466919863),
        (0.3, 10.0, -1.0, 5.0, -4.497291753084193),
    ];

    #[test]
    fn density_agrees_with_scipy() {
        for (a, b, c, x, expected) in SCIPY {
            let ours = GeneralisedGamma::new(a, b, c).unwrap().ln_density(x);
            assert!((ours - expected).abs() < 1e-9 * expected.abs().max(1.0), "{ours} {expected}");
        }
        assert_eq!(GeneralisedGamma::new(1.0, 1.0, -1.0).unwrap().density(0.0), 0.0);
        assert_eq!(GeneralisedGamma::new(1.0, 1.0, 1.0).unwrap().density(-1.0), 0.0);
    }

    #[test]
    fn draws_follow_the_closed_forms() {
        // (a, b, c) and the distribution function: exponential, Weibull, inverse exponential
        // raised to alpha/2 (the prior of the factorisation with a = 1), half normal, and Lévy.
        type Law = (f64, f64, f64, fn(f64) -> f64);
        let laws: [Law; 5] = [
            (1.0, 2.0, 1.0, |x| 1.0 - libm::exp(-x / 2.0)),
            (1.0, 0.5, 3.0, |x| 1.0 - libm::exp(-libm::pow(x / 0.5, 3.0))),
            (1.0, 1.5, -2.0 / 1.2, |x| libm::exp(-libm::pow(x / 1.5, -2.0 / 1.2))),
            (0.5, 3.0, 2.0, |x| libm::erf(x / 3.0)),
            (0.5, 0.25, -1.0, |x| libm::erfc(0.5 / x.sqrt())),
        ];
        for (a, b, c, cdf) in laws {
            let mut stream = SeedTree::new(31).rng(c.to_bits());
            let law = GeneralisedGamma::new(a, b, c).unwrap();
            let draws: Vec<f64> = (0..100_000).map(|_| law.sample(&mut stream)).collect();
            let d = ks::statistic(draws.clone(), cdf);
            assert!(d < ks::CRITICAL, "GG({a}, {b}, {c}): {d}");
            let wrong = draws.into_iter().map(|x| 1.05 * x).collect();
            let d = ks::statistic(wrong, cdf);
            assert!(d > 1.5 * ks::CRITICAL, "GG({a}, {b}, {c}): {d}");
        }
    }

    #[test]
    fn draws_follow_the_density() {
        // P(x0 < x < x1) by Simpson's rule against the fraction of the draws.
        let n = 200_000;
        for (a, b, c) in [(2.5, 1.3, -1.8), (0.7, 0.4, 1.5), (3.0, 2.0, -1.0)] {
            let law = GeneralisedGamma::new(a, b, c).unwrap();
            let mut stream = SeedTree::new(32).rng(0);
            let draws: Vec<f64> = (0..n).map(|_| law.sample(&mut stream)).collect();
            for (x0, x1) in [(0.1, 0.5), (0.5, 1.0), (1.0, 2.0), (2.0, 8.0)] {
                let (mut mass, steps) = (0.0, 2000);
                let h = (x1 - x0) / f64::from(steps);
                for i in 0..=steps {
                    let weight = if i == 0 || i == steps { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
                    mass += weight * h / 3.0 * law.density(x0 + h * f64::from(i));
                }
                let fraction = draws.iter().filter(|&&x| x0 < x && x <= x1).count() as f64 / f64::from(n);
                let z = (fraction - mass) / (mass * (1.0 - mass) / f64::from(n)).sqrt();
                assert!(z.abs() < 4.0, "GG({a}, {b}, {c}) on ({x0}, {x1}): {z}");
            }
        }
    }

    #[test]
    fn tiny_shapes_give_finite_positive_draws() {
        for c in [-2.0, 2.0] {
            let law = GeneralisedGamma::new(1e-3, 1.0, c).unwrap();
            let mut stream = SeedTree::new(33).rng(0);
            assert!((0..1000).map(|_| law.sample(&mut stream)).all(|x| x > 0.0 && x.is_finite()));
        }
    }

    /// The logarithm of Gamma(a) at `t`, below about 3, by the series of the incomplete gamma function.
    fn log_gamma_cdf(a: f64, t: f64) -> f64 {
        let g = libm::exp(t);
        let mut term = 1.0;
        let mut sum = 1.0;
        for n in 1..200 {
            term *= g / (a + f64::from(n));
            sum += term;
        }
        libm::exp(a * t - g + libm::log(sum) - libm::lgamma(a + 1.0))
    }

    /// Draws whose Gamma variable underflows, although its scaled power does not.
    #[test]
    fn logarithms_of_draws_with_small_shapes_have_no_atom() {
        for (a, b, c) in
            [(1e-3, 1.0, 20.0), (1e-3, 3.0, -20.0), (0.01, 1.0, 2.0), (0.01, 1.0, -2.0), (0.05, 1.0, 1.0)]
        {
            let law = GeneralisedGamma::new(a, b, c).unwrap();
            let mut stream = SeedTree::new(34).rng(c.to_bits());
            let logs: Vec<f64> =
                (0..50_000).map(|_| c * (libm::log(law.sample(&mut stream)) - libm::log(b))).collect();
            let mut sorted = logs.clone();
            sorted.sort_by(f64::total_cmp);
            let equal = sorted.windows(2).filter(|pair| pair[0] == pair[1]).count();
            assert!(equal < 10, "GG({a}, {b}, {c}): {equal} draws are equal to another");
            let d = ks::statistic(logs.clone(), |t| log_gamma_cdf(a, t));
            assert!(d < ks::CRITICAL, "GG({a}, {b}, {c}): {d}");
            let wrong = logs.into_iter().map(|t| 1.05 * t).collect();
            let d = ks::statistic(wrong, |t| log_gamma_cdf(a, t));
            assert!(d > 1.5 * ks::CRITICAL, "GG({a}, {b}, {c}): {d}");
        }
        // Powers of 1e400 and more, scaled by 1e-250.
        let law = GeneralisedGamma::new(1.0, 1e-250, 1e-3).unwrap();
        let mut stream = SeedTree::new(35).rng(0);
        let draws: Vec<f64> = (0..10_000).map(|_| law.sample(&mut stream)).collect();
        let logs = draws.into_iter().filter(|x| (1e60..1e300).contains(x)).count();
        // P(e^0.714 < G < e^1.266), of exponential G.
        assert!((900..1080).contains(&logs), "{logs}");
    }

    #[test]
    fn parameters_outside_the_range_are_refused() {
        for (a, b, c) in [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, 0.0), (f64::NAN, 1.0, 1.0)] {
            assert!(GeneralisedGamma::new(a, b, c).is_err());
        }
    }
}
