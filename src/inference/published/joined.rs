//! All blocks of a target as one, for a sampler with one memory for all unknowns (`hamcmc-2016`, algorithm 1).

use crate::samplers::{Minibatch, Target};

/// A target whose unknowns are one block. It offers what samplers by gradients ask for.
pub(in crate::inference) struct Joined<Inner> {
    inner: Inner,
    /// The potentials of the blocks.
    potentials: Vec<f64>,
}

impl<Inner: Target<f32>> Joined<Inner> {
    pub(in crate::inference) fn new(inner: Inner) -> Self {
        Self { potentials: vec![0.0; inner.blocks()], inner }
    }
}

impl<Inner: Target<f32>> Target<f32> for Joined<Inner> {
    fn dimension(&self) -> usize {
        self.inner.dimension() * self.inner.blocks()
    }

    fn terms(&self) -> usize {
        self.inner.terms()
    }

    fn gradient(&mut self, theta: &[f32], batch: Minibatch<'_>, gradient: &mut [f32]) {
        self.inner.gradient(theta, batch, gradient);
    }

    fn potential(&mut self, theta: &[f32], potential: &mut [f64]) {
        self.inner.potential(theta, &mut self.potentials);
        potential[0] = self.potentials.iter().sum();
    }
}
