//! Posteriors with known answers, for tests and examples.

use super::dense::{cholesky, solve};
use super::{Curvature, Metric, Minibatch, Real, Target};
use crate::random::Streams;

/// A Gaussian with known mean and covariance, the same in each of any number of independent blocks.
#[derive(Debug, Clone)]
pub struct Gaussian {
    mean: Vec<f64>,
    precision: Precision,
    blocks: usize,
}

#[derive(Debug, Clone)]
enum Precision {
    /// Column-major `dimension x dimension`.
    Dense(Vec<f64>),
    /// `diagonal I + shared 11'`: products in linear time.
    Equicorrelated { diagonal: f64, shared: f64 },
}

impl Gaussian {
    /// `N(mean, precision^-1)`; `precision` is symmetric, `dimension^2` numbers. `None` if it is not positive
    /// definite or sizes differ.
    #[must_use]
    pub fn new(mean: Vec<f64>, precision: Vec<f64>) -> Option<Self> {
        let fits = precision.len() == mean.len() * mean.len();
        let valid = fits && cholesky(&mut precision.clone(), mean.len());
        valid.then_some(Self { mean, precision: Precision::Dense(precision), blocks: 1 })
    }

    /// `N(0, variance I + covariance 11')`: `quasi-newton-mcmc` and `quasi-newton-hmc` use 4 and 1.
    #[must_use]
    pub fn equicorrelated(dimension: usize, variance: f64, covariance: f64) -> Self {
        let diagonal = 1.0 / variance;
        let shared = -diagonal * covariance / (variance + covariance * dimension as f64);
        Self {
            mean: vec![0.0; dimension],
            precision: Precision::Equicorrelated { diagonal, shared },
            blocks: 1,
        }
    }

    /// The same law in `blocks` independent blocks.
    #[must_use]
    pub fn with_blocks(self, blocks: usize) -> Self {
        Self { blocks, ..self }
    }

    /// The mean of one block.
    #[must_use]
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Entry `(i, j)` of the precision matrix.
    #[must_use]
    pub fn precision(&self, i: usize, j: usize) -> f64 {
        match &self.precision {
            Precision::Dense(matrix) => matrix[j * self.mean.len() + i],
            Precision::Equicorrelated { diagonal, shared } => shared + if i == j { *diagonal } else { 0.0 },
        }
    }

    /// Column-major covariance of one block.
    #[must_use]
    pub fn covariance(&self) -> Vec<f64> {
        let n = self.mean.len();
        let mut factor: Vec<f64> = (0..n * n).map(|k| self.precision(k % n, k / n)).collect();
        cholesky(&mut factor, n);
        let mut covariance = vec![0.0; n * n];
        for (j, column) in covariance.chunks_exact_mut(n).enumerate() {
            column[j] = 1.0;
            solve(&factor, column);
        }
        covariance
    }

    /// Entry `i` of `precision * (theta - mean)` for each `i` in turn.
    fn force<'a, T: Real>(&'a self, theta: &'a [T]) -> impl Iterator<Item = f64> + 'a {
        let n = self.mean.len();
        let centred = move |i: usize| theta[i].widen() - self.mean[i];
        let sum = match self.precision {
            Precision::Equicorrelated { .. } => (0..n).map(centred).sum(),
            Precision::Dense(_) => 0.0,
        };
        (0..n).map(move |i| match &self.precision {
            Precision::Dense(matrix) => {
                matrix[i * n..][..n].iter().enumerate().map(|(j, value)| value * centred(j)).sum()
            }
            Precision::Equicorrelated { diagonal, shared } => diagonal * centred(i) + shared * sum,
        })
    }
}

impl<T: Real> Target<T> for Gaussian {
    fn dimension(&self) -> usize {
        self.mean.len()
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn gradient(&mut self, theta: &[T], _: Minibatch<'_>, gradient: &mut [T]) {
        let n = self.mean.len();
        for (theta, gradient) in theta.chunks_exact(n).zip(gradient.chunks_exact_mut(n)) {
            for (gradient, force) in gradient.iter_mut().zip(self.force(theta)) {
                *gradient = T::narrow(force);
            }
        }
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        for (theta, potential) in theta.chunks_exact(self.mean.len()).zip(potential) {
            let centred = theta.iter().zip(&self.mean).map(|(theta, mean)| theta.widen() - mean);
            *potential = 0.5 * self.force(theta).zip(centred).map(|(force, x)| force * x).sum::<f64>();
        }
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        Some(self)
    }

    fn curvature(&mut self) -> Option<&mut dyn Curvature<T>> {
        Some(self)
    }
}

impl<T: Real> Metric<T> for Gaussian {
    fn is_diagonal(&self) -> bool {
        false
    }

    fn metric(&mut self, _: &[T], metric: &mut [T]) {
        let n = self.mean.len();
        for metric in metric.chunks_exact_mut(n * n) {
            metric.iter_mut().enumerate().for_each(|(k, m)| *m = T::narrow(self.precision(k % n, k / n)));
        }
    }

    fn is_constant(&self) -> bool {
        true
    }
}

impl<T: Real> Curvature<T> for Gaussian {
    fn hessian_diagonal(&mut self, _: &[T], _: Minibatch<'_>, diagonal: &mut [T]) {
        let n = self.mean.len();
        diagonal.iter_mut().enumerate().for_each(|(i, d)| *d = T::narrow(self.precision(i % n, i % n)));
    }
}

/// Bayesian linear regression with known noise: `theta ~ N(0, I)`, `x_n ~ N(a_n' theta, variance)`
/// (`hamcmc-2016` section 4.1, eq. 13). The posterior is Gaussian and known.
#[derive(Debug, Clone)]
pub struct LinearGaussian {
    dimension: usize,
    /// `dimension x terms`, one regressor a column.
    regressors: Vec<f64>,
    observations: Vec<f64>,
    variance: f64,
    posterior: Gaussian,
}

impl LinearGaussian {
    /// Draws `terms` regressors, a true `theta` and observations. Each regressor is a standard normal vector
    /// plus `coupling` times a normal number common to all its coordinates: the larger, the more correlated
    /// the posterior.
    #[must_use]
    pub fn synthetic(dimension: usize, terms: usize, variance: f64, coupling: f64, streams: Streams) -> Self {
        let mut stream = streams.stream(0);
        let mut normal = || f64::normal(&mut stream);
        let truth: Vec<f64> = (0..dimension).map(|_| normal()).collect();
        let mut regressors = Vec::with_capacity(dimension * terms);
        let mut observations = Vec::with_capacity(terms);
        for _ in 0..terms {
            let common = coupling * normal();
            let start = regressors.len();
            regressors.extend((0..dimension).map(|_| common + normal()));
            let mean: f64 = regressors[start..].iter().zip(&truth).map(|(a, t)| a * t).sum();
            observations.push(mean + variance.sqrt() * normal());
        }
        let mut precision: Vec<f64> =
            (0..dimension * dimension).map(|k| f64::from(k % (dimension + 1) == 0)).collect();
        let mut mean = vec![0.0; dimension];
        for (a, x) in regressors.chunks_exact(dimension).zip(&observations) {
            for (j, &a_j) in a.iter().enumerate() {
                mean[j] += a_j * x / variance;
                for (i, &a_i) in a.iter().enumerate() {
                    precision[j * dimension + i] += a_i * a_j / variance;
                }
            }
        }
        let mut factor = precision.clone();
        cholesky(&mut factor, dimension);
        solve(&factor, &mut mean);
        let posterior = Gaussian { mean, precision: Precision::Dense(precision), blocks: 1 };
        Self { dimension, regressors, observations, variance, posterior }
    }

    /// The exact posterior.
    #[must_use]
    pub fn posterior(&self) -> &Gaussian {
        &self.posterior
    }
}

impl<T: Real> Target<T> for LinearGaussian {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn terms(&self) -> usize {
        self.observations.len()
    }

    fn gradient(&mut self, theta: &[T], batch: Minibatch<'_>, gradient: &mut [T]) {
        gradient.copy_from_slice(theta);
        let scale = batch.scale() / self.variance;
        for n in batch.iter() {
            let a = &self.regressors[n * self.dimension..][..self.dimension];
            let mean: f64 = a.iter().zip(theta).map(|(a, theta)| a * theta.widen()).sum();
            let residual = scale * (mean - self.observations[n]);
            for (gradient, a) in gradient.iter_mut().zip(a) {
                *gradient += T::narrow(residual * a);
            }
        }
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        Target::<T>::potential(&mut self.posterior, theta, potential);
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        Some(&mut self.posterior)
    }

    fn curvature(&mut self) -> Option<&mut dyn Curvature<T>> {
        Some(&mut self.posterior)
    }
}
