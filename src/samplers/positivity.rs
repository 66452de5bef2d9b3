//! Targets on the positive orthant, seen by samplers that know only the whole space.

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

/// The log map: a density on the positive orthant as a density of `log theta`, Jacobian included.
///
/// The sampler's state is `x = log theta` and `U(x) = U_inner(exp x) - sum x`.
#[derive(Debug, Clone)]
pub struct LogMapped<Inner, T> {
    inner: Inner,
    positive: Vec<T>,
}

impl<Inner, T: Real> LogMapped<Inner, T> {
    /// Maps `inner`, which is only ever asked about positive states.
    pub fn new(inner: Inner) -> Self {
        Self { inner, positive: Vec::new() }
    }

    /// The target on the positive orthant.
    pub fn inner(&mut self) -> &mut Inner {
        &mut self.inner
    }

    fn load(&mut self, x: &[T]) {
        self.positive.clear();
        self.positive.extend(x.iter().map(|&x| T::narrow(libm::exp(x.widen()))));
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
        self.inner.gradient(&self.positive, batch, gradient);
        for (gradient, &theta) in gradient.iter_mut().zip(&self.positive) {
            *gradient = *gradient * theta - T::one();
        }
    }

    fn potential(&mut self, x: &[T], potential: &mut [f64]) {
        self.load(x);
        self.inner.potential(&self.positive, potential);
        for (potential, x) in potential.iter_mut().zip(x.chunks_exact(self.inner.dimension())) {
            *potential -= x.iter().map(|x| x.widen()).sum::<f64>();
        }
    }
}
