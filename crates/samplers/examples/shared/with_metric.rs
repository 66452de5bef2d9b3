//! A target with a replaced metric.

use alphamf_samplers::{Metric, Minibatch, Target};

/// A target of one block whose metric is replaced by `metric`.
#[derive(Clone)]
pub struct WithMetric<Law, Other> {
    pub law: Law,
    pub metric: Other,
}

impl<Law: Target<f64>, Other: Metric<f64>> Target<f64> for WithMetric<Law, Other> {
    fn dimension(&self) -> usize {
        self.law.dimension()
    }

    fn terms(&self) -> usize {
        self.law.terms()
    }

    fn gradient(&mut self, theta: &[f64], batch: Minibatch<'_>, gradient: &mut [f64]) {
        self.law.gradient(theta, batch, gradient);
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        self.law.potential(theta, potential);
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<f64>> {
        Some(&mut self.metric)
    }
}
