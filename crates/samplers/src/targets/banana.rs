//! A curved law in two dimensions.

use crate::{Metric, Minibatch, Real, Site, Sites, Support, Target};

/// The banana of `complete-recipe` Figure 2: `U = x^4 / 10 + (4 (y + 1.2) - x^2)^2 / 2`, with the metric of its
/// supplement, `G^-1 = 1.5 sqrt(U + 1/2) I`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Banana;

impl Banana {
    /// `E x = 0`, `E y`, `Var x` and `Var y`.
    #[must_use]
    pub fn moments() -> [f64; 4] {
        // x has density exp(-x^4 / 10), and 4 (y + 1.2) - x^2 is standard normal.
        let square = 10.0_f64.sqrt() * libm::tgamma(0.75) / libm::tgamma(0.25);
        [0.0, square / 4.0 - 1.2, square, (2.5 - square * square + 1.0) / 16.0]
    }

    fn parts(theta: &[impl Real]) -> (f64, f64) {
        let (x, y) = (theta[0].widen(), theta[1].widen());
        (x, 4.0 * (y + 1.2) - x * x)
    }

    fn value(theta: &[impl Real]) -> f64 {
        let (x, fold) = Self::parts(theta);
        x.powi(4) / 10.0 + 0.5 * fold * fold
    }

    fn slope(theta: &[impl Real]) -> [f64; 2] {
        let (x, fold) = Self::parts(theta);
        [0.4 * x.powi(3) - 2.0 * x * fold, 4.0 * fold]
    }
}

impl<T: Real> Target<T> for Banana {
    fn dimension(&self) -> usize {
        2
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn gradient(&mut self, theta: &[T], _: Minibatch<'_>, gradient: &mut [T]) {
        gradient.iter_mut().zip(Self::slope(theta)).for_each(|(g, slope)| *g = T::narrow(slope));
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        potential[0] = Self::value(theta);
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        Some(self)
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(self)
    }
}

impl<T: Real> Metric<T> for Banana {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn metric(&mut self, theta: &[T], metric: &mut [T]) {
        metric.fill(T::narrow(1.0 / (1.5 * (Self::value(theta) + 0.5).sqrt())));
    }

    fn divergence(&mut self, theta: &[T], inverse: bool, divergence: &mut [T]) -> bool {
        let root = (Self::value(theta) + 0.5).sqrt();
        for (divergence, slope) in divergence.iter_mut().zip(Self::slope(theta)) {
            let slope = 0.75 * slope / root;
            *divergence = T::narrow(if inverse { slope } else { 0.5 * slope / (1.5 * root).sqrt() });
        }
        true
    }
}

impl<T: Real> Sites<T> for Banana {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        Site { rows: 0..2, support: Support::Real }
    }

    fn expand(
        &mut self,
        theta: &[T],
        _: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let (x, fold) = Self::parts(theta);
        potential[0] = Self::value(theta);
        gradient.copy_from_slice(&Self::slope(theta));
        hessian.copy_from_slice(&[1.2 * x * x - 2.0 * fold + 4.0 * x * x, -8.0 * x, -8.0 * x, 16.0]);
    }
}
