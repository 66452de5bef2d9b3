//! Neal's funnel.

use crate::{Minibatch, Real, Site, Sites, Support, Target};

/// Neal's funnel: `z ~ N(0, scale^2)`, `x | z ~ N(0, exp(z))`, the state being `(z, x)` (`newtonian` section 4.1
/// with scale 3). Two sites of one row each.
#[derive(Debug, Clone, Copy)]
pub struct Funnel {
    /// Standard deviation of `z`.
    pub scale: f64,
}

impl<T: Real> Target<T> for Funnel {
    fn dimension(&self) -> usize {
        2
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn gradient(&mut self, theta: &[T], _: Minibatch<'_>, gradient: &mut [T]) {
        let (z, x) = (theta[0].widen(), theta[1].widen());
        let precision = libm::exp(-z);
        gradient[0] = T::narrow(z / self.scale.powi(2) + 0.5 - 0.5 * x * x * precision);
        gradient[1] = T::narrow(x * precision);
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        let (z, x) = (theta[0].widen(), theta[1].widen());
        potential[0] = 0.5 * (z / self.scale).powi(2) + 0.5 * z + 0.5 * x * x * libm::exp(-z);
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(self)
    }
}

impl<T: Real> Sites<T> for Funnel {
    fn count(&self) -> usize {
        2
    }

    fn site(&self, index: usize) -> Site {
        Site { rows: index..index + 1, support: Support::Real }
    }

    fn expand(
        &mut self,
        theta: &[T],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let (z, x) = (theta[0].widen(), theta[1].widen());
        let precision = libm::exp(-z);
        Target::<T>::potential(self, theta, potential);
        if index == 0 {
            let square = 0.5 * x * x * precision;
            gradient[0] = z / self.scale.powi(2) + 0.5 - square;
            hessian[0] = 1.0 / self.scale.powi(2) + square;
        } else {
            gradient[0] = x * precision;
            hessian[0] = precision;
        }
    }
}
