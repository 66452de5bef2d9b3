//! The Dirichlet law on the simplex.

use crate::{Minibatch, Real, Site, Sites, Support, Target};

/// Multinomial counts with a Dirichlet prior over their probabilities: the posterior is
/// `Dirichlet(concentrations)`. One site, the simplex.
#[derive(Debug, Clone)]
pub struct Dirichlet {
    concentrations: Vec<f64>,
}

impl Dirichlet {
    /// Creates the posterior with these `concentrations`: prior concentrations plus counts.
    ///
    /// # Panics
    /// If there are none, or one is not a finite number above 0.
    #[must_use]
    pub fn new(concentrations: Vec<f64>) -> Self {
        let positive = concentrations.iter().all(|value| value.is_finite() && *value > 0.0);
        assert!(positive && !concentrations.is_empty(), "concentrations {concentrations:?}");
        Self { concentrations }
    }

    /// Mean and variance of each probability.
    #[must_use]
    pub fn moments(&self) -> Vec<(f64, f64)> {
        let sum: f64 = self.concentrations.iter().sum();
        let variance = |mean: f64| mean * (1.0 - mean) / (sum + 1.0);
        self.concentrations.iter().map(|c| (c / sum, variance(c / sum))).collect()
    }
}

impl<T: Real> Target<T> for Dirichlet {
    fn dimension(&self) -> usize {
        self.concentrations.len()
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn gradient(&mut self, theta: &[T], _: Minibatch<'_>, gradient: &mut [T]) {
        for ((gradient, x), c) in gradient.iter_mut().zip(theta).zip(&self.concentrations) {
            *gradient = T::narrow((1.0 - c) / x.widen());
        }
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        let terms = theta.iter().zip(&self.concentrations);
        potential[0] = terms.map(|(x, c)| (1.0 - c) * libm::log(x.widen())).sum();
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(self)
    }
}

impl<T: Real> Sites<T> for Dirichlet {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        Site { rows: 0..self.concentrations.len(), support: Support::Simplex }
    }

    fn expand(
        &mut self,
        theta: &[T],
        _: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        Target::<T>::potential(self, theta, potential);
        hessian.fill(0.0);
        let n = theta.len();
        for (i, (x, c)) in theta.iter().zip(&self.concentrations).enumerate() {
            gradient[i] = (1.0 - c) / x.widen();
            hessian[i * n + i] = (c - 1.0) / x.widen().powi(2);
        }
    }
}
