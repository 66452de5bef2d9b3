//! Targets on the positive orthant, seen by samplers that know only the whole space.

use std::ops::Range;

use super::{Metric, Minibatch, Real, Target};

/// Mirroring: the even extension of a density on the positive orthant to all signs.
///
/// The sampler's state is signed and its absolute value is a draw from the target ([`Mirrored::fold`]). As
/// the extension is an ordinary target, mirroring in this form leaves every sampler as exact as it was; the
/// gradient jumps where a coordinate changes sign.
#[derive(Debug, Clone)]
pub struct Mirrored<Inner, T> {
    inner: Inner,
    folded: Vec<T>,
    diagonal: bool,
}

impl<Inner, T: Real> Mirrored<Inner, T> {
    /// Extends `inner`, which is only ever asked about non-negative states.
    pub fn new(inner: Inner) -> Self {
        Self { inner, folded: Vec::new(), diagonal: false }
    }

    /// The target on the positive orthant.
    pub fn inner(&mut self) -> &mut Inner {
        &mut self.inner
    }

    /// Replaces a signed state by the draw that it stands for.
    pub fn fold(theta: &mut [T]) {
        theta.iter_mut().for_each(|theta| *theta = theta.abs());
    }

    fn load(&mut self, theta: &[T]) {
        self.folded.clear();
        self.folded.extend(theta.iter().map(|theta| theta.abs()));
    }
}

impl<T: Real, Inner: Target<T>> Target<T> for Mirrored<Inner, T> {
    fn dimension(&self) -> usize {
        self.inner.dimension()
    }

    fn blocks(&self) -> usize {
        self.inner.blocks()
    }

    fn terms(&self) -> usize {
        self.inner.terms()
    }

    fn gradient(&mut self, theta: &[T], batch: Minibatch<'_>, gradient: &mut [T]) {
        self.load(theta);
        self.inner.gradient(&self.folded, batch, gradient);
        for (gradient, theta) in gradient.iter_mut().zip(theta) {
            if theta.is_sign_negative() {
                *gradient = -*gradient;
            }
        }
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        self.load(theta);
        self.inner.potential(&self.folded, potential);
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        self.diagonal = self.inner.metric()?.is_diagonal();
        Some(self)
    }
}

/// The metric changes with the signs of its coordinates only.
impl<T: Real, Inner: Target<T>> Metric<T> for Mirrored<Inner, T> {
    fn is_diagonal(&self) -> bool {
        self.diagonal
    }

    fn metric(&mut self, theta: &[T], metric: &mut [T]) {
        self.load(theta);
        if let Some(inner) = self.inner.metric() {
            inner.metric(&self.folded, metric);
        }
        congruence(metric, theta, self.inner.dimension(), self.diagonal, T::signum);
    }

    fn divergence(&mut self, theta: &[T], inverse: bool, divergence: &mut [T]) -> bool {
        self.load(theta);
        let closed = self.diagonal
            && self.inner.metric().is_some_and(|inner| inner.divergence(&self.folded, inverse, divergence));
        if closed {
            divergence.iter_mut().zip(theta).for_each(|(divergence, x)| *divergence *= x.signum());
        }
        closed
    }
}

/// `G <- J G J` with `J = diag(factor(theta))`, for the diagonals of `G` (`dimension x blocks`) or all of it
/// (`dimension^2 x blocks`).
fn congruence<T: Real>(
    metric: &mut [T],
    theta: &[T],
    dimension: usize,
    diagonal: bool,
    factor: impl Fn(T) -> T,
) {
    if diagonal {
        metric.iter_mut().zip(theta).for_each(|(g, &a)| *g *= factor(a) * factor(a));
        return;
    }
    for (metric, theta) in metric.chunks_exact_mut(dimension * dimension).zip(theta.chunks_exact(dimension)) {
        for (column, &b) in metric.chunks_exact_mut(dimension).zip(theta) {
            column.iter_mut().zip(theta).for_each(|(g, &a)| *g *= factor(a) * factor(b));
        }
    }
}

/// A target whose unknowns are measured in units of their own: the sampler's state is `theta / units`.
///
/// Fixed units leave every sampler exact; those of the size of the unknowns make one step fit all of them.
#[derive(Debug, Clone)]
pub struct Scaled<'a, Inner, T> {
    inner: Inner,
    units: &'a [T],
    theta: Vec<T>,
    diagonal: bool,
}

impl<'a, Inner, T: Real> Scaled<'a, Inner, T> {
    /// Measures the unknowns of `inner` in `units` (`dimension x blocks`, above 0).
    pub fn new(inner: Inner, units: &'a [T]) -> Self {
        Self { inner, units, theta: Vec::new(), diagonal: false }
    }

    fn load(&mut self, x: &[T]) {
        self.theta.clear();
        self.theta.extend(x.iter().zip(self.units).map(|(&x, &unit)| x * unit));
    }
}

impl<T: Real, Inner: Target<T>> Target<T> for Scaled<'_, Inner, T> {
    fn dimension(&self) -> usize {
        self.inner.dimension()
    }

    fn blocks(&self) -> usize {
        self.inner.blocks()
    }

    fn terms(&self) -> usize {
        self.inner.terms()
    }

    fn gradient(&mut self, x: &[T], batch: Minibatch<'_>, gradient: &mut [T]) {
        self.load(x);
        self.inner.gradient(&self.theta, batch, gradient);
        gradient.iter_mut().zip(self.units).for_each(|(gradient, &unit)| *gradient *= unit);
    }

    fn potential(&mut self, x: &[T], potential: &mut [f64]) {
        self.load(x);
        self.inner.potential(&self.theta, potential);
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        self.diagonal = self.inner.metric()?.is_diagonal();
        Some(self)
    }
}

impl<T: Real, Inner: Target<T>> Metric<T> for Scaled<'_, Inner, T> {
    fn is_diagonal(&self) -> bool {
        self.diagonal
    }

    fn metric(&mut self, x: &[T], metric: &mut [T]) {
        self.load(x);
        if let Some(inner) = self.inner.metric() {
            inner.metric(&self.theta, metric);
        }
        congruence(metric, self.units, self.inner.dimension(), self.diagonal, |unit| unit);
    }

    fn divergence(&mut self, x: &[T], inverse: bool, divergence: &mut [T]) -> bool {
        self.load(x);
        let closed = self.diagonal
            && self.inner.metric().is_some_and(|inner| inner.divergence(&self.theta, inverse, divergence));
        // The inverse has the unit squared in its denominator, its root the unit; the derivative brings one back.
        if closed && inverse {
            divergence.iter_mut().zip(self.units).for_each(|(divergence, &unit)| *divergence /= unit);
        }
        closed
    }
}

/// The log map: a density of positive unknowns as a density of their logarithms, Jacobian included.
///
/// The sampler's state is `x = log theta` in the mapped rows, `x = theta` in the others, and
/// `U(x) = U_inner(theta) - sum of the mapped x`.
#[derive(Debug, Clone)]
pub struct LogMapped<Inner, T> {
    inner: Inner,
    rows: Range<usize>,
    theta: Vec<T>,
    /// The Jacobian `d theta / d x`, and the diagonal of the inner metric.
    jacobian: Vec<T>,
    inner_metric: Vec<T>,
    diagonal: bool,
}

impl<Inner, T: Real> LogMapped<Inner, T> {
    /// Maps every unknown of `inner`, which is only ever asked about positive states.
    pub fn new(inner: Inner) -> Self {
        Self::rows(inner, 0..usize::MAX)
    }

    /// Maps the unknowns `rows` of each block of `inner` and leaves the others as they are.
    pub fn rows(inner: Inner, rows: Range<usize>) -> Self {
        let empty = Vec::new;
        Self { inner, rows, theta: empty(), jacobian: empty(), inner_metric: empty(), diagonal: false }
    }

    /// The target on the positive orthant.
    pub fn inner(&mut self) -> &mut Inner {
        &mut self.inner
    }

    /// Replaces the state `x` of blocks of `dimension` unknowns by the `theta` that it stands for.
    pub fn unmap(&self, x: &mut [T], dimension: usize) {
        for (i, x) in x.iter_mut().enumerate() {
            if self.rows.contains(&(i % dimension)) {
                *x = T::narrow(libm::exp(x.widen()));
            }
        }
    }
}

impl<T: Real, Inner: Target<T>> LogMapped<Inner, T> {
    fn load(&mut self, x: &[T]) {
        let mut theta = std::mem::take(&mut self.theta);
        theta.clear();
        theta.extend_from_slice(x);
        self.unmap(&mut theta, self.inner.dimension());
        self.theta = theta;
    }
}

impl<T: Real, Inner: Target<T>> Target<T> for LogMapped<Inner, T> {
    fn dimension(&self) -> usize {
        self.inner.dimension()
    }

    fn blocks(&self) -> usize {
        self.inner.blocks()
    }

    fn terms(&self) -> usize {
        self.inner.terms()
    }

    fn gradient(&mut self, x: &[T], batch: Minibatch<'_>, gradient: &mut [T]) {
        self.load(x);
        self.inner.gradient(&self.theta, batch, gradient);
        let dimension = self.inner.dimension();
        for (i, (gradient, &theta)) in gradient.iter_mut().zip(&self.theta).enumerate() {
            if self.rows.contains(&(i % dimension)) {
                *gradient = *gradient * theta - T::one();
            }
        }
    }

    fn potential(&mut self, x: &[T], potential: &mut [f64]) {
        self.load(x);
        self.inner.potential(&self.theta, potential);
        for (potential, x) in potential.iter_mut().zip(x.chunks_exact(self.inner.dimension())) {
            let mapped = x.iter().enumerate().filter(|(i, _)| self.rows.contains(i));
            *potential -= mapped.map(|(_, x)| x.widen()).sum::<f64>();
        }
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        self.diagonal = self.inner.metric()?.is_diagonal();
        Some(self)
    }
}

impl<T: Real, Inner: Target<T>> LogMapped<Inner, T> {
    fn load_jacobian(&mut self, x: &[T]) {
        self.load(x);
        let (dimension, rows) = (self.inner.dimension(), &self.rows);
        self.jacobian.clear();
        let derivative = |(i, &theta)| if rows.contains(&(i % dimension)) { theta } else { T::one() };
        self.jacobian.extend(self.theta.iter().enumerate().map(derivative));
    }
}

impl<T: Real, Inner: Target<T>> Metric<T> for LogMapped<Inner, T> {
    fn is_diagonal(&self) -> bool {
        self.diagonal
    }

    fn metric(&mut self, x: &[T], metric: &mut [T]) {
        self.load_jacobian(x);
        if let Some(inner) = self.inner.metric() {
            inner.metric(&self.theta, metric);
        }
        congruence(metric, &self.jacobian, self.inner.dimension(), self.diagonal, |j| j);
    }

    fn divergence(&mut self, x: &[T], inverse: bool, divergence: &mut [T]) -> bool {
        self.load_jacobian(x);
        let Self { inner, rows, theta, jacobian, inner_metric, diagonal } = self;
        let dimension = inner.dimension();
        let Some(inner) = inner.metric().filter(|_| *diagonal) else { return false };
        if !inner.divergence(theta, inverse, divergence) {
            return false;
        }
        inner_metric.resize(x.len(), T::zero());
        inner.metric(theta, inner_metric);
        // d/dx of D / theta^2 or of R / theta, with d/dx = theta d/dtheta.
        for (i, divergence) in
            divergence.iter_mut().enumerate().filter(|(i, _)| rows.contains(&(i % dimension)))
        {
            let (theta, g) = (jacobian[i], inner_metric[i]);
            *divergence = if inverse {
                *divergence / theta - T::narrow(2.0) / (g * theta * theta)
            } else {
                *divergence - T::one() / (g.sqrt() * theta)
            };
        }
        true
    }
}
