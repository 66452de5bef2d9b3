//! A target that counts the passes over its data.

use std::cell::Cell;
use std::rc::Rc;

use alphamf_samplers::{Minibatch, Sites, Target};

/// A target that counts evaluations of potential and gradient, but not of sites.
pub struct Counted<Law> {
    pub inner: Law,
    pub count: Rc<Cell<usize>>,
}

impl<Law> Counted<Law> {
    fn tick(&self) {
        self.count.set(self.count.get() + 1);
    }
}

impl<Law: Target<f64>> Target<f64> for Counted<Law> {
    fn dimension(&self) -> usize {
        self.inner.dimension()
    }

    fn terms(&self) -> usize {
        self.inner.terms()
    }

    fn gradient(&mut self, theta: &[f64], batch: Minibatch<'_>, gradient: &mut [f64]) {
        self.tick();
        self.inner.gradient(theta, batch, gradient);
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        self.tick();
        self.inner.potential(theta, potential);
    }

    fn evaluate(&mut self, theta: &[f64], potential: &mut [f64], gradient: &mut [f64]) {
        self.tick();
        self.inner.evaluate(theta, potential, gradient);
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f64>> {
        self.inner.sites()
    }
}
