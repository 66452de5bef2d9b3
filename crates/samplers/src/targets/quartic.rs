//! A quartic potential with one or two wells.

use crate::{Curvature, Metric, Minibatch, Real, Site, Sites, Support, Target};

/// `U = quartic x^4 + quadratic x^2` on the line: the one-peak (`0, 1/2`) and two-peak (`1, -2`) targets of
/// `complete-recipe` section 4.1, the same in each block.
///
/// Its metric is that of the paper's supplement, `G^-1 = 1.5 sqrt(U - min U + 1/2)`, with the minimum of `U`
/// subtracted so that it stays positive on two peaks too.
#[derive(Debug, Clone)]
pub struct Quartic {
    quartic: f64,
    quadratic: f64,
    blocks: usize,
}

impl Quartic {
    /// `quartic > 0`, or `quartic = 0` and `quadratic > 0`.
    ///
    /// # Panics
    /// With other coefficients, for which no density exists.
    #[must_use]
    pub fn new(quartic: f64, quadratic: f64) -> Self {
        let rises = quartic > 0.0 || quartic == 0.0 && quadratic > 0.0;
        assert!(rises && quartic.is_finite() && quadratic.is_finite(), "{quartic} x^4 + {quadratic} x^2");
        Self { quartic, quadratic, blocks: 1 }
    }

    /// The same law in `blocks` independent blocks.
    #[must_use]
    pub fn with_blocks(self, blocks: usize) -> Self {
        Self { blocks, ..self }
    }

    /// `U(x)`.
    #[must_use]
    pub fn value(&self, x: f64) -> f64 {
        (self.quartic * x * x + self.quadratic) * x * x
    }

    /// `U'(x)` and `U''(x)`.
    #[must_use]
    pub fn slopes(&self, x: f64) -> (f64, f64) {
        let (a, b) = (self.quartic, self.quadratic);
        ((4.0 * a * x * x + 2.0 * b) * x, 12.0 * a * x * x + 2.0 * b)
    }

    /// The expectation of `f`, by the trapezoidal rule on [-12, 12]: exact to rounding if the integrand is smooth and
    /// vanishes at both ends.
    #[must_use]
    pub fn expectation(&self, f: impl Fn(f64) -> f64) -> f64 {
        const CELLS: usize = 24_000;
        let (mut sum, mut norm) = (0.0, 0.0);
        for k in 0..=CELLS {
            let x = -12.0 + 24.0 * k as f64 / CELLS as f64;
            let weight = libm::exp(-self.value(x));
            sum += weight * f(x);
            norm += weight;
        }
        sum / norm
    }

    /// `U - min U + 1/2`.
    fn height(&self, x: f64) -> f64 {
        let floor = if self.quadratic < 0.0 { -self.quadratic.powi(2) / (4.0 * self.quartic) } else { 0.0 };
        self.value(x) - floor + 0.5
    }
}

impl<T: Real> Target<T> for Quartic {
    fn dimension(&self) -> usize {
        1
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn gradient(&mut self, theta: &[T], _: Minibatch<'_>, gradient: &mut [T]) {
        gradient.iter_mut().zip(theta).for_each(|(g, x)| *g = T::narrow(self.slopes(x.widen()).0));
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        potential.iter_mut().zip(theta).for_each(|(u, x)| *u = self.value(x.widen()));
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

impl<T: Real> Metric<T> for Quartic {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn metric(&mut self, theta: &[T], metric: &mut [T]) {
        let inverse = |x: f64| 1.5 * self.height(x).sqrt();
        metric.iter_mut().zip(theta).for_each(|(g, x)| *g = T::narrow(1.0 / inverse(x.widen())));
    }

    fn divergence(&mut self, theta: &[T], inverse: bool, divergence: &mut [T]) -> bool {
        for (divergence, x) in divergence.iter_mut().zip(theta) {
            let (x, height) = (x.widen(), self.height(x.widen()));
            let slope = 0.75 * self.slopes(x).0 / height.sqrt();
            let root = (1.5 * height.sqrt()).sqrt();
            *divergence = T::narrow(if inverse { slope } else { 0.5 * slope / root });
        }
        true
    }
}

impl<T: Real> Curvature<T> for Quartic {
    fn hessian_diagonal(&mut self, theta: &[T], _: Minibatch<'_>, diagonal: &mut [T]) {
        diagonal.iter_mut().zip(theta).for_each(|(d, x)| *d = T::narrow(self.slopes(x.widen()).1));
    }
}

impl<T: Real> Sites<T> for Quartic {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        Site { rows: 0..1, support: Support::Real }
    }

    fn expand(
        &mut self,
        theta: &[T],
        _: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        for (block, x) in theta.iter().enumerate() {
            potential[block] = self.value(x.widen());
            (gradient[block], hessian[block]) = self.slopes(x.widen());
        }
    }
}
