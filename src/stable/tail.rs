//! The tail of the positive stable law, accurate far beyond the range of draws.

use std::f64::consts::PI;

/// Quadrature points over the angle of Kanter's representation.
const POINTS: usize = 400;

/// A discrete approximation of the law of an impulse variable of a source with exponent `alpha` in
/// (0, 2]: nodes and their probabilities.
///
/// The `count` nodes are equidistant in the logit of the distribution function: dense in the body of the law, and
/// extending far into its heavy tail.
pub(crate) fn impulse_quadrature(alpha: f64, count: usize) -> Vec<(f64, f64)> {
    if alpha >= 2.0 {
        return vec![(1.0, 1.0)];
    }
    const LEVELS: (f64, f64) = (-8.0, 20.0);
    let survival = |i: f64| 1.0 / (1.0 + libm::exp(LEVELS.0 + (LEVELS.1 - LEVELS.0) * i / count as f64));
    let law = LogSurvival::new(alpha / 2.0);
    let mut nodes: Vec<_> = (0..count)
        .map(|i| {
            let i = i as f64;
            let probability = survival(i) - survival(i + 1.0);
            (libm::exp(law.quantile(survival(i + 0.5))), probability)
        })
        .collect();
    let total: f64 = nodes.iter().map(|node| node.1).sum();
    nodes.iter_mut().for_each(|node| node.1 /= total);
    nodes
}

/// Dense nodes of the log impulse variable and their probabilities, for tests.
#[cfg(test)]
pub(crate) fn log_impulse_quadrature(alpha: f64) -> Vec<(f64, f64)> {
    const COUNT: usize = 200;
    const LEVELS: (f64, f64) = (-14.0, 38.0);
    if alpha >= 2.0 {
        return vec![(0.0, 1.0)];
    }
    let (law, width) = (LogSurvival::new(alpha / 2.0), (LEVELS.1 - LEVELS.0) / COUNT as f64);
    // Survival probabilities are computed directly from the logit, for relative accuracy.
    (0..COUNT)
        .map(|i| {
            let logit = LEVELS.0 + (i as f64 + 0.5) * width;
            let (above, below) = (1.0 / (1.0 + libm::exp(logit)), 1.0 / (1.0 + libm::exp(-logit)));
            (law.quantile(above), above * below * width)
        })
        .collect()
}

/// The distribution of `log A` for a positive stable variable `A` with the Laplace transform `exp(-s^a)`.
///
/// Kanter's representation `A = (k(U) / E)^((1 - a) / a)`, with `U` uniform on (0, pi) and `E` exponential, gives
/// `P(A > x) = E[1 - exp(-k(U) x^(-a / (1 - a)))]` (Kanter 1975, eq. 2.1). The angle is substituted by its logit, so
/// that the contributions near 0 and pi, which determine the tails, are resolved.
pub(crate) struct LogSurvival {
    a: f64,
    /// Logarithm of k at each angle, and the angle's weight.
    points: Vec<(f64, f64)>,
}

impl LogSurvival {
    /// Creates the distribution for a stability index `a` in (0, 1).
    pub(crate) fn new(a: f64) -> Self {
        const LOGITS: (f64, f64) = (-18.0, 36.0);
        let step = (LOGITS.1 - LOGITS.0) / POINTS as f64;
        let points = (0..POINTS)
            .map(|i| {
                let logit = LOGITS.0 + (i as f64 + 0.5) * step;
                let (below, above) = (1.0 / (1.0 + libm::exp(-logit)), 1.0 / (1.0 + libm::exp(logit)));
                // sin(U) from the nearer end of the interval, for relative accuracy.
                let sine = libm::sin(PI * below.min(above));
                let log_k = (a * libm::log(libm::sin(a * PI * below)) - libm::log(sine)) / (1.0 - a)
                    + libm::log(libm::sin((1.0 - a) * PI * below));
                (log_k, below * above * step)
            })
            .collect();
        Self { a, points }
    }

    /// `P(log A > log_x)`.
    pub(crate) fn at(&self, log_x: f64) -> f64 {
        let shift = self.a / (1.0 - self.a) * log_x;
        let of_point = |&(log_k, weight): &(f64, f64)| -libm::expm1(-libm::exp(log_k - shift)) * weight;
        self.points.iter().map(of_point).sum::<f64>().min(1.0)
    }

    /// Finds, by bisection, the value that `log A` exceeds with `probability`, in (0, 1).
    fn quantile(&self, probability: f64) -> f64 {
        // Bounds of the quantile: the probability below -60 is negligible, and the tail x^(-a) / gamma(1 - a) is an
        // upper bound.
        let (mut low, mut high) = (-60.0, 60.0 - libm::log(probability) / self.a);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.at(middle) > probability { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_closed_form_at_one_half() {
        // A = 1 / (2 Z^2) with Z standard normal, so P(A > x) = erf(1 / (2 sqrt x)).
        for log_x in [-2.0, 0.0, 3.0, 10.0, 30.0] {
            let exact = libm::erf(0.5 * f64::exp(-0.5 * log_x));
            assert!((LogSurvival::new(0.5).at(log_x) / exact - 1.0).abs() < 1e-6, "at {log_x}");
        }
    }

    #[test]
    fn quadrature_has_the_laplace_transform() {
        for alpha in [0.4, 1.0, 1.2, 1.8] {
            let nodes = impulse_quadrature(alpha, 100);
            assert!((nodes.iter().map(|node| node.1).sum::<f64>() - 1.0).abs() < 1e-12);
            for s in [0.1, 1.0, 3.0] {
                let found: f64 = nodes.iter().map(|(x, probability)| probability * f64::exp(-s * x)).sum();
                let exact = f64::exp(-f64::powf(s, 0.5 * alpha));
                assert!((found - exact).abs() < 3e-3, "alpha {alpha}, s {s}: {found}, {exact}");
            }
        }
        assert_eq!(impulse_quadrature(2.0, 10), [(1.0, 1.0)]);
    }

    #[test]
    fn nothing_is_more_than_certain() {
        for a in [0.15, 0.45, 0.6, 0.9, 0.975] {
            let law = LogSurvival::new(a);
            assert!((-80..0).all(|log_x| law.at(f64::from(log_x)) <= 1.0), "a = {a}");
            assert!(law.at(-80.0) > 1.0 - 1e-6);
        }
    }

    #[test]
    fn follows_the_power_law_of_its_tail() {
        for a in [0.15, 0.45, 0.9, 0.975] {
            let probability = 1e-9;
            let quantile = LogSurvival::new(a).quantile(probability);
            let power_law = (-a * quantile).exp() / libm::tgamma(1.0 - a);
            assert!((power_law / probability - 1.0).abs() < 0.02, "a = {a}: {power_law}");
        }
    }
}
