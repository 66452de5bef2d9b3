//! Bayesian logistic regression.

use super::{check_positive, check_size, logistic, softplus, widened};
use crate::dense::{cholesky, solve};
use crate::vector::dot;
use crate::{Metric, Minibatch, Real, SamplerError, Site, Sites, Support, Target};

/// Bayesian logistic regression: `y_n ~ Bernoulli(logistic(x_n' theta))`, `theta_i ~ N(0, variance_i)`.
/// Its metric is the expected Fisher information plus the prior precision; one site, all coefficients.
#[derive(Debug, Clone)]
pub struct LogisticRegression {
    /// `dimension x terms`.
    regressors: Vec<f64>,
    labels: Vec<f64>,
    precisions: Vec<f64>,
}

impl LogisticRegression {
    /// `regressors` is `dimension x terms`, one column per label; `variances` has one entry per coefficient.
    ///
    /// # Errors
    /// If there are no coefficients or no labels, sizes do not fit, or a variance is not a finite number above 0.
    pub fn new(regressors: Vec<f64>, labels: Vec<bool>, variances: &[f64]) -> Result<Self, SamplerError> {
        check_size("variances", variances.len(), variances.len().max(1))?;
        check_size("labels", labels.len(), labels.len().max(1))?;
        check_size("regressors", regressors.len(), labels.len() * variances.len())?;
        check_positive("variance of a coefficient", variances)?;
        let labels = labels.into_iter().map(f64::from).collect();
        Ok(Self { regressors, labels, precisions: variances.iter().map(|v| 1.0 / v).collect() })
    }

    /// Minus the mean log probability of `labels` given `regressors` (of the same form) at `theta`.
    ///
    /// # Panics
    /// If sizes do not fit.
    #[must_use]
    pub fn loss(regressors: &[f64], labels: &[bool], theta: &[f64]) -> f64 {
        let fits = !theta.is_empty() && regressors.len() == labels.len() * theta.len();
        assert!(
            fits,
            "{} regressors, {} labels, {} coefficients",
            regressors.len(),
            labels.len(),
            theta.len()
        );
        let columns = regressors.chunks_exact(theta.len()).zip(labels);
        let terms = columns.map(|(x, &label)| {
            let activation: f64 = x.iter().zip(theta).map(|(x, t)| x * t).sum();
            softplus(if label { -activation } else { activation })
        });
        terms.sum::<f64>() / labels.len() as f64
    }

    fn column(&self, n: usize) -> &[f64] {
        &self.regressors[n * self.precisions.len()..][..self.precisions.len()]
    }

    fn activation(&self, n: usize, theta: &[f64]) -> f64 {
        dot(self.column(n), theta)
    }

    /// Minus the log prior and its gradient.
    fn prior<T: Real>(&self, theta: &[T], gradient: &mut [T]) -> f64 {
        let mut sum = 0.0;
        for ((gradient, theta), precision) in gradient.iter_mut().zip(theta).zip(&self.precisions) {
            *gradient = T::narrow(precision * theta.widen());
            sum += 0.5 * precision * theta.widen().powi(2);
        }
        sum
    }

    /// The Hessian of the potential, which is also the metric.
    fn hessian(&self, theta: &[f64], hessian: &mut [f64]) {
        let d = self.precisions.len();
        hessian.fill(0.0);
        for n in 0..self.labels.len() {
            let p = logistic(self.activation(n, theta));
            let x = self.column(n);
            for j in 0..d {
                let weight = p * (1.0 - p) * x[j];
                hessian[j * d + j..(j + 1) * d].iter_mut().zip(&x[j..]).for_each(|(h, x)| *h += weight * x);
            }
        }
        for j in 0..d {
            hessian[j * d + j] += self.precisions[j];
            for i in 0..j {
                hessian[j * d + i] = hessian[i * d + j];
            }
        }
    }
}

impl<T: Real> Target<T> for LogisticRegression {
    fn dimension(&self) -> usize {
        self.precisions.len()
    }

    fn terms(&self) -> usize {
        self.labels.len()
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn gradient(&mut self, theta: &[T], batch: Minibatch<'_>, gradient: &mut [T]) {
        self.prior(theta, gradient);
        let theta = widened(theta);
        for n in batch.iter() {
            let residual = batch.scale() * (logistic(self.activation(n, &theta)) - self.labels[n]);
            gradient.iter_mut().zip(self.column(n)).for_each(|(g, x)| *g += T::narrow(residual * x));
        }
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        let prior = theta.iter().zip(&self.precisions).map(|(theta, p)| 0.5 * p * theta.widen().powi(2));
        let wide = widened(theta);
        let terms = (0..self.labels.len()).map(|n| {
            let activation = self.activation(n, &wide);
            softplus(activation) - self.labels[n] * activation
        });
        potential[0] = prior.sum::<f64>() + terms.sum::<f64>();
    }

    fn evaluate(&mut self, theta: &[T], potential: &mut [f64], gradient: &mut [T]) {
        let prior = self.prior(theta, gradient);
        let theta = widened(theta);
        let mut terms = 0.0;
        for n in 0..self.labels.len() {
            let activation = self.activation(n, &theta);
            terms += softplus(activation) - self.labels[n] * activation;
            let residual = logistic(activation) - self.labels[n];
            gradient.iter_mut().zip(self.column(n)).for_each(|(g, x)| *g += T::narrow(residual * x));
        }
        potential[0] = prior + terms;
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        Some(self)
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(self)
    }
}

impl<T: Real> Metric<T> for LogisticRegression {
    fn is_diagonal(&self) -> bool {
        false
    }

    fn metric(&mut self, theta: &[T], metric: &mut [T]) {
        let mut hessian = vec![0.0; metric.len()];
        self.hessian(&widened(theta), &mut hessian);
        metric.iter_mut().zip(hessian).for_each(|(metric, h)| *metric = T::narrow(h));
    }

    fn divergence(&mut self, theta: &[T], inverse: bool, divergence: &mut [T]) -> bool {
        if !inverse {
            return false;
        }
        // Gamma = -sum_n w'_n (G^-1 x_n) (x_n' G^-1 x_n), w' the derivative of p (1 - p).
        let d = self.precisions.len();
        let mut factor = vec![0.0; d * d];
        let theta = widened(theta);
        self.hessian(&theta, &mut factor);
        if !cholesky(&mut factor, d) {
            return false;
        }
        let mut column = vec![0.0; d];
        divergence.fill(T::zero());
        for n in 0..self.labels.len() {
            let p = logistic(self.activation(n, &theta));
            column.copy_from_slice(self.column(n));
            solve(&factor, &mut column);
            let leverage: f64 = self.column(n).iter().zip(&column).map(|(x, c)| x * c).sum();
            let weight = -p * (1.0 - p) * (1.0 - 2.0 * p) * leverage;
            divergence
                .iter_mut()
                .zip(&column)
                .for_each(|(divergence, c)| *divergence += T::narrow(weight * c));
        }
        true
    }
}

impl<T: Real> Sites<T> for LogisticRegression {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        Site { rows: 0..self.precisions.len(), support: Support::Real }
    }

    fn expand(
        &mut self,
        theta: &[T],
        _: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let wide = widened(theta);
        Target::<f64>::evaluate(self, &wide, potential, gradient);
        self.hessian(&wide, hessian);
    }
}
