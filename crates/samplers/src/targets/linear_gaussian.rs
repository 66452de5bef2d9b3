//! The mean of a Gaussian from linear observations.

use super::gaussian::{Gaussian, Precision};
use crate::dense::{cholesky, solve};
use crate::random::SeedTree;
use crate::{Curvature, Metric, Minibatch, Real, Sites, Target};

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
    ///
    /// # Panics
    /// If the dimension is 0, the variance not a finite number above 0, or the coupling not finite.
    #[must_use]
    pub fn synthetic(
        dimension: usize,
        terms: usize,
        variance: f64,
        coupling: f64,
        streams: SeedTree,
    ) -> Self {
        assert!(
            dimension > 0 && variance > 0.0 && variance.is_finite() && coupling.is_finite(),
            "dimension {dimension}, variance {variance}, coupling {coupling}"
        );
        let mut stream = streams.rng(0);
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

    fn is_fixed(&self) -> bool {
        true
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

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(&mut self.posterior)
    }
}
