//! Products of Gamma laws.

use super::{check_positive, check_size};
use crate::{Curvature, Metric, Minibatch, Real, SamplerError, Site, Sites, Support, Target};

/// Independent Gamma variables on the half line, the same law in each block: the simplest positive target.
/// Its metric is the Fisher information of the logarithm's scale, `shape / theta^2`.
#[derive(Debug, Clone)]
pub struct Gammas {
    shapes: Vec<f64>,
    rates: Vec<f64>,
    blocks: usize,
}

impl Gammas {
    /// Creates one variable per shape and rate.
    ///
    /// # Errors
    /// If there are none, or not as many rates as shapes; if one is not a finite number above 0.
    pub fn new(shapes: Vec<f64>, rates: Vec<f64>) -> Result<Self, SamplerError> {
        check_size("shapes of Gamma laws", shapes.len(), shapes.len().max(1))?;
        check_size("rates of Gamma laws", rates.len(), shapes.len())?;
        check_positive("shape of a Gamma law", &shapes)?;
        check_positive("rate of a Gamma law", &rates)?;
        Ok(Self { shapes, rates, blocks: 1 })
    }

    /// The same law in `blocks` independent blocks.
    #[must_use]
    pub fn with_blocks(self, blocks: usize) -> Self {
        Self { blocks, ..self }
    }

    /// Mean and variance of each variable.
    #[must_use]
    pub fn moments(&self) -> Vec<(f64, f64)> {
        self.shapes
            .iter()
            .zip(&self.rates)
            .map(|(shape, rate)| (shape / rate, shape / (rate * rate)))
            .collect()
    }

    fn laws(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.shapes.iter().copied().zip(self.rates.iter().copied()).cycle()
    }
}

impl<T: Real> Target<T> for Gammas {
    fn dimension(&self) -> usize {
        self.shapes.len()
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn gradient(&mut self, theta: &[T], _: Minibatch<'_>, gradient: &mut [T]) {
        for ((gradient, x), (shape, rate)) in gradient.iter_mut().zip(theta).zip(self.laws()) {
            *gradient = T::narrow(rate - (shape - 1.0) / x.widen());
        }
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        for (potential, theta) in potential.iter_mut().zip(theta.chunks_exact(self.shapes.len())) {
            let term = |(x, (shape, rate)): (&T, (f64, f64))| {
                let x = x.widen();
                if x > 0.0 { rate * x - (shape - 1.0) * libm::log(x) } else { f64::INFINITY }
            };
            *potential = theta.iter().zip(self.laws()).map(term).sum();
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

impl<T: Real> Metric<T> for Gammas {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn metric(&mut self, theta: &[T], metric: &mut [T]) {
        for ((metric, x), (shape, _)) in metric.iter_mut().zip(theta).zip(self.laws()) {
            *metric = T::narrow(shape / x.widen().powi(2));
        }
    }

    fn divergence(&mut self, theta: &[T], inverse: bool, divergence: &mut [T]) -> bool {
        for ((divergence, x), (shape, _)) in divergence.iter_mut().zip(theta).zip(self.laws()) {
            *divergence = T::narrow(if inverse { 2.0 * x.widen() / shape } else { 1.0 / shape.sqrt() });
        }
        true
    }
}

impl<T: Real> Curvature<T> for Gammas {
    fn hessian_diagonal(&mut self, theta: &[T], _: Minibatch<'_>, diagonal: &mut [T]) {
        for ((diagonal, x), (shape, _)) in diagonal.iter_mut().zip(theta).zip(self.laws()) {
            *diagonal = T::narrow((shape - 1.0) / x.widen().powi(2));
        }
    }
}

impl<T: Real> Sites<T> for Gammas {
    fn count(&self) -> usize {
        self.shapes.len()
    }

    fn site(&self, index: usize) -> Site {
        Site { rows: index..index + 1, support: Support::HalfLine }
    }

    fn expand(
        &mut self,
        theta: &[T],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let (shape, rate) = (self.shapes[index], self.rates[index]);
        for (block, theta) in theta.chunks_exact(self.shapes.len()).enumerate() {
            let x = theta[index].widen();
            potential[block] = rate * x - (shape - 1.0) * libm::log(x);
            gradient[block] = rate - (shape - 1.0) / x;
            hessian[block] = (shape - 1.0) / (x * x);
        }
    }
}
