//! Gaussian laws.

use crate::checks::check;
use crate::dense::{cholesky, solve};
use crate::{Curvature, Matrix, Metric, Minibatch, Real, SamplerError, Site, Sites, Support, Target};

/// A Gaussian with known mean and covariance, the same in each of any number of independent blocks.
#[derive(Debug, Clone)]
pub struct Gaussian {
    pub(super) mean: Vec<f64>,
    pub(super) precision: Precision,
    pub(super) blocks: usize,
}

#[derive(Debug, Clone)]
pub(super) enum Precision {
    /// Column-major `dimension x dimension`.
    Dense(Vec<f64>),
    /// `diagonal I + shared 11'`: products in linear time.
    Equicorrelated { diagonal: f64, shared: f64 },
}

impl Gaussian {
    /// `N(mean, precision^-1)`; `precision` is symmetric, `dimension^2` numbers.
    ///
    /// # Errors
    /// If the precision has another size, or is not symmetric and positive definite.
    pub fn new(mean: Vec<f64>, precision: Vec<f64>) -> Result<Self, SamplerError> {
        check("dimension", mean.len() as f64, "at least 1", !mean.is_empty())?;
        Matrix::Dense(precision.clone()).decompose::<f64>("the precision", mean.len(), true)?;
        Ok(Self { mean, precision: Precision::Dense(precision), blocks: 1 })
    }

    /// `N(0, variance I + covariance 11')`: `quasi-newton-mcmc` and `quasi-newton-hmc` use 4 and 1.
    ///
    /// # Panics
    /// If the dimension is 0 or the matrix is not finite and positive definite: `variance` and
    /// `variance + dimension covariance` must be above 0.
    #[must_use]
    pub fn equicorrelated(dimension: usize, variance: f64, covariance: f64) -> Self {
        let eigenvalues = [variance, variance + dimension as f64 * covariance];
        let definite = eigenvalues.iter().all(|value| value.is_finite() && *value > 0.0);
        assert!(dimension > 0 && definite, "eigenvalues {eigenvalues:?} in {dimension} dimensions");
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

    fn is_fixed(&self) -> bool {
        true
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

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
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

impl<T: Real> Sites<T> for Gaussian {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        Site { rows: 0..self.mean.len(), support: Support::Real }
    }

    fn expand(
        &mut self,
        theta: &[T],
        _: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let n = self.mean.len();
        Target::<T>::potential(self, theta, potential);
        for (theta, gradient) in theta.chunks_exact(n).zip(gradient.chunks_exact_mut(n)) {
            gradient.iter_mut().zip(self.force(theta)).for_each(|(gradient, force)| *gradient = force);
        }
        for hessian in hessian.chunks_exact_mut(n * n) {
            hessian.iter_mut().enumerate().for_each(|(k, h)| *h = self.precision(k % n, k / n));
        }
    }
}
