//! Robust regression with Student noise.

use super::{check_size, widened};
use crate::vector::dot;
use crate::{Minibatch, Real, SamplerError, Site, Sites, Support, Target};

/// Robust regression (`newtonian` section 4.1): `y_n ~ Student-t(nu, alpha + beta' x_n, sigma)` with
/// `nu ~ Gamma(2, 0.1)`, `sigma ~ Exponential(1)`, `alpha ~ N(0, 10^2)`, `beta_i ~ N(0, 2.5^2)`.
///
/// The state is `(nu, sigma, alpha, beta)`; the first two are positive and sites of their own, `alpha` and
/// `beta` are a site each.
#[derive(Debug, Clone)]
pub struct RobustRegression {
    /// `(slopes + 1) x terms`, the first row all ones.
    regressors: Vec<f64>,
    observations: Vec<f64>,
    slopes: usize,
}

/// The first two derivatives of `log Gamma` at `x > 0`: recurrence up to 6, then the asymptotic series.
fn digamma_and_trigamma(mut x: f64) -> (f64, f64) {
    let (mut first, mut second) = (0.0, 0.0);
    while x < 6.0 {
        first -= 1.0 / x;
        second += 1.0 / (x * x);
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r * (1.0 / 240.0 - r / 132.0))));
    first += libm::log(x) - 0.5 / x - series;
    let series = r * (1.0 / 6.0 - r * (1.0 / 30.0 - r * (1.0 / 42.0 - r * (1.0 / 30.0 - r * 5.0 / 66.0))));
    second += 1.0 / x + 0.5 * r + series / x;
    (first, second)
}

impl RobustRegression {
    /// Rate of the prior of `nu`, and variances of the priors of `alpha` and `beta`.
    const NU_RATE: f64 = 0.1;
    const VARIANCES: [f64; 2] = [100.0, 6.25];

    /// `regressors` is `slopes x terms`.
    ///
    /// # Errors
    /// If sizes do not fit, or there is no slope.
    pub fn new(regressors: &[f64], observations: Vec<f64>, slopes: usize) -> Result<Self, SamplerError> {
        check_size("slopes", slopes, slopes.max(1))?;
        check_size("regressors", regressors.len(), slopes * observations.len())?;
        let with_ones =
            regressors.chunks_exact(slopes).flat_map(|x| std::iter::once(1.0).chain(x.iter().copied()));
        Ok(Self { regressors: with_ones.collect(), observations, slopes })
    }

    /// Mean log probability of `observations` given `regressors` (`slopes x terms`) at `theta`.
    ///
    /// # Panics
    /// If sizes do not fit, or there is no slope.
    #[must_use]
    pub fn log_likelihood(regressors: &[f64], observations: &[f64], theta: &[f64]) -> f64 {
        let (slopes, terms) = (theta.len().saturating_sub(3), observations.len());
        let fits = slopes > 0 && regressors.len() == slopes * terms;
        assert!(fits, "{} regressors, {terms} observations, {slopes} slopes", regressors.len());
        let (nu, sigma) = (theta[0], theta[1]);
        let columns = regressors.chunks_exact(slopes).zip(observations);
        let terms = columns.map(|(x, y)| {
            let mean = theta[2] + x.iter().zip(&theta[3..]).map(|(x, b)| x * b).sum::<f64>();
            -0.5 * (nu + 1.0) * libm::log1p(((y - mean) / sigma).powi(2) / nu)
        });
        libm::lgamma(0.5 * (nu + 1.0))
            - libm::lgamma(0.5 * nu)
            - 0.5 * libm::log(nu * std::f64::consts::PI)
            - libm::log(sigma)
            + terms.sum::<f64>() / observations.len() as f64
    }

    fn column(&self, n: usize) -> &[f64] {
        &self.regressors[n * (self.slopes + 1)..][..self.slopes + 1]
    }

    fn residual(&self, n: usize, theta: &[f64]) -> f64 {
        self.observations[n] - dot(self.column(n), &theta[2..])
    }

    fn variance(row: usize) -> f64 {
        Self::VARIANCES[usize::from(row > 2)]
    }
}

impl<T: Real> Target<T> for RobustRegression {
    fn dimension(&self) -> usize {
        self.slopes + 3
    }

    fn terms(&self) -> usize {
        self.observations.len()
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn gradient(&mut self, theta: &[T], batch: Minibatch<'_>, gradient: &mut [T]) {
        let (nu, sigma) = (theta[0].widen(), theta[1].widen());
        let mut sums = (0.0, 0.0);
        for (row, gradient) in gradient.iter_mut().enumerate().skip(2) {
            *gradient = T::narrow(theta[row].widen() / Self::variance(row));
        }
        let theta = widened(theta);
        for n in batch.iter() {
            let r = self.residual(n, &theta);
            let square = r * r;
            let q = square / (nu * sigma * sigma);
            sums.0 += 0.5 * libm::log1p(q) - 0.5 * (nu + 1.0) * q / (nu * (1.0 + q));
            sums.1 += 1.0 / sigma - (nu + 1.0) * q / (sigma * (1.0 + q));
            let pull = -batch.scale() * (nu + 1.0) * r / (nu * sigma * sigma + square);
            gradient[2..].iter_mut().zip(self.column(n)).for_each(|(g, x)| *g += T::narrow(pull * x));
        }
        let terms = self.observations.len() as f64;
        let law = 0.5 * digamma_and_trigamma(0.5 * nu).0 - 0.5 * digamma_and_trigamma(0.5 * (nu + 1.0)).0
            + 0.5 / nu;
        gradient[0] = T::narrow(Self::NU_RATE - 1.0 / nu + terms * law + batch.scale() * sums.0);
        gradient[1] = T::narrow(1.0 + batch.scale() * sums.1);
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        let (nu, sigma) = (theta[0].widen(), theta[1].widen());
        if !(nu > 0.0 && sigma > 0.0) {
            potential[0] = f64::INFINITY;
            return;
        }
        let (terms, theta) = (self.observations.len(), widened(theta));
        let law =
            libm::lgamma(0.5 * nu) - libm::lgamma(0.5 * (nu + 1.0)) + 0.5 * libm::log(nu) + libm::log(sigma);
        let data: f64 = (0..terms)
            .map(|n| 0.5 * (nu + 1.0) * libm::log1p((self.residual(n, &theta) / sigma).powi(2) / nu))
            .sum();
        let coefficients = theta.iter().enumerate().skip(2);
        let prior: f64 = coefficients.map(|(row, c)| 0.5 * c.powi(2) / Self::variance(row)).sum();
        potential[0] = Self::NU_RATE * nu - libm::log(nu) + sigma + prior + terms as f64 * law + data;
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(self)
    }
}

impl<T: Real> Sites<T> for RobustRegression {
    fn count(&self) -> usize {
        4
    }

    fn site(&self, index: usize) -> Site {
        let support = if index < 2 { Support::HalfLine } else { Support::Real };
        let rows = if index < 3 { index..index + 1 } else { 3..self.slopes + 3 };
        Site { rows, support }
    }

    fn expand(
        &mut self,
        theta: &[T],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        Target::<T>::potential(self, theta, potential);
        let terms = self.observations.len();
        let wide = widened(theta);
        let mut whole = vec![0.0; wide.len()];
        Target::<f64>::gradient(self, &wide, Minibatch::full(terms), &mut whole);
        let rows = Sites::<T>::site(self, index).rows;
        gradient.copy_from_slice(&whole[rows.clone()]);
        let (nu, sigma) = (wide[0], wide[1]);
        let squares = |n: usize| self.residual(n, &wide).powi(2) / (nu * sigma * sigma);
        match index {
            0 => {
                let law = 0.25 * digamma_and_trigamma(0.5 * nu).1
                    - 0.25 * digamma_and_trigamma(0.5 * (nu + 1.0)).1
                    - 0.5 / (nu * nu);
                // The derivative of log(1 + q) / 2 - (nu + 1) q / (2 nu (1 + q)), where q' = -q / nu.
                let data: f64 = (0..terms)
                    .map(|n| {
                        let q = squares(n);
                        let share = q / (1.0 + q);
                        share * ((nu + 1.0) * (1.0 + 1.0 / (1.0 + q)) / (2.0 * nu * nu) - 1.0 / nu)
                    })
                    .sum();
                hessian[0] = 1.0 / (nu * nu) + terms as f64 * law + data;
            }
            1 => {
                let data: f64 = (0..terms)
                    .map(|n| {
                        let share = squares(n) / (1.0 + squares(n));
                        ((nu + 1.0) * share * (1.0 + 2.0 * (1.0 - share)) - 1.0) / (sigma * sigma)
                    })
                    .sum();
                hessian[0] = data;
            }
            _ => {
                let size = rows.len();
                hessian.fill(0.0);
                for n in 0..terms {
                    let (r, scale) = (self.residual(n, &wide), nu * sigma * sigma);
                    let weight = (nu + 1.0) * (scale - r * r) / (scale + r * r).powi(2);
                    let x = &self.column(n)[rows.start - 2..rows.end - 2];
                    for (j, column) in hessian.chunks_exact_mut(size).enumerate() {
                        column.iter_mut().zip(x).for_each(|(h, x_i)| *h += weight * x[j] * x_i);
                    }
                }
                for (k, row) in rows.enumerate() {
                    hessian[k * size + k] += 1.0 / Self::variance(row);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{LN_2, PI};

    use super::*;

    /// `digamma(1) = -0.577...`, `digamma(1/2) = digamma(1) - 2 log 2`, `trigamma(1) = pi^2 / 6`,
    /// `trigamma(1/2) = pi^2 / 2` and the recurrence; at 6 and just above, only the series is used, and its error is
    /// largest: 1e-11.
    #[test]
    fn derivatives_of_log_gamma_are_the_known_ones() {
        const EULER: f64 = 0.577_215_664_901_532_9;
        let starts = [(1.0, -EULER, PI * PI / 6.0), (0.5, -EULER - 2.0 * LN_2, PI * PI / 2.0)];
        for (mut x, mut first, mut second) in starts {
            for _ in 0..30 {
                let found = digamma_and_trigamma(x);
                assert!((found.0 - first).abs() < 3e-11 * (1.0 + first.abs()), "{x}: {} {first}", found.0);
                assert!((found.1 - second).abs() < 3e-11 * second.max(1.0), "{x}: {} {second}", found.1);
                first += 1.0 / x;
                second -= 1.0 / (x * x);
                x += 1.0;
            }
        }
    }
}
