//! Targets on the positive orthant, seen by samplers that know only the whole space.

use std::ops::Range;

use super::{Minibatch, Real, Target};

/// Mirroring: the even extension of a density on the positive orthant to all signs.
///
/// The sampler's state is signed and its absolute value is a draw from the target ([`Mirrored::fold`]). As
/// the extension is an ordinary target, mirroring in this form leaves every sampler as exact as it was; the
/// gradient jumps where a coordinate changes sign.
#[derive(Debug, Clone)]
pub struct Mirrored<Inner, T> {
    inner: Inner,
    folded: Vec<T>,
}

impl<Inner, T: Real> Mirrored<Inner, T> {
    /// Extends `inner`, which is only ever asked about non-negative states.
    pub fn new(inner: Inner) -> Self {
        Self { inner, folded: Vec::new() }
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
}

/// A target whose unknowns are measured in units of their own: the sampler's state is `theta / units`.
///
/// Fixed units leave every sampler exact; those of the size of the unknowns make one step fit all of them.
#[derive(Debug, Clone)]
pub struct Scaled<'a, Inner, T> {
    inner: Inner,
    units: &'a [T],
    theta: Vec<T>,
}

impl<'a, Inner, T: Real> Scaled<'a, Inner, T> {
    /// Measures the unknowns of `inner` in `units` (`dimension x blocks`, above 0).
    pub fn new(inner: Inner, units: &'a [T]) -> Self {
        Self { inner, units, theta: Vec::new() }
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
}

impl<Inner, T: Real> LogMapped<Inner, T> {
    /// Maps every unknown of `inner`, which is only ever asked about positive states.
    pub fn new(inner: Inner) -> Self {
        Self::rows(inner, 0..usize::MAX)
    }

    /// Maps the unknowns `rows` of each block of `inner` and leaves the others as they are.
    pub fn rows(inner: Inner, rows: Range<usize>) -> Self {
        Self { inner, rows, theta: Vec::new() }
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
}
