//! A posterior as a target of both libraries, with its gradients counted.

use crate::models::Density;
use alphamf_samplers::{Minibatch, Site, Sites, Support, Target};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A posterior that counts its evaluations; clones share the count.
#[derive(Clone)]
pub struct Counted {
    density: Arc<dyn Density>,
    count: Arc<AtomicU64>,
    room: Vec<f64>,
}

impl Counted {
    pub fn new(density: Arc<dyn Density>) -> Self {
        Self { room: vec![0.0; density.dimension()], density, count: Arc::default() }
    }

    /// Evaluations since the last call.
    pub fn take(&self) -> u64 {
        self.count.swap(0, Ordering::Relaxed)
    }

    /// The log density and its gradient.
    pub fn log_density(&self, phi: &[f64], gradient: &mut [f64]) -> f64 {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.density.evaluate(phi, gradient)
    }
}

impl Target<f64> for Counted {
    fn dimension(&self) -> usize {
        self.density.dimension()
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn gradient(&mut self, phi: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        self.log_density(phi, gradient);
        gradient.iter_mut().for_each(|g| *g = -*g);
    }

    fn potential(&mut self, phi: &[f64], potential: &mut [f64]) {
        let mut room = std::mem::take(&mut self.room);
        potential[0] = finite(-self.log_density(phi, &mut room));
        self.room = room;
    }

    fn evaluate(&mut self, phi: &[f64], potential: &mut [f64], gradient: &mut [f64]) {
        potential[0] = finite(-self.log_density(phi, gradient));
        gradient.iter_mut().for_each(|g| *g = -*g);
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f64>> {
        Some(self)
    }
}

fn finite(potential: f64) -> f64 {
    if potential.is_nan() { f64::INFINITY } else { potential }
}

/// All coordinates as one site, the Hessian by central differences of the gradient.
impl Sites<f64> for Counted {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        Site { rows: 0..self.density.dimension(), support: Support::Real }
    }

    fn expand(
        &mut self,
        phi: &[f64],
        _: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let n = phi.len();
        self.evaluate(phi, potential, gradient);
        let mut state = phi.to_vec();
        let (mut up, mut down) = (vec![0.0; n], vec![0.0; n]);
        for j in 0..n {
            // Around each coordinate by the cube root of rounding, of its own curvature's scale where that is known.
            let width = 6e-6 * (1.0 + phi[j].abs());
            state[j] = phi[j] + width;
            self.log_density(&state, &mut up);
            state[j] = phi[j] - width;
            self.log_density(&state, &mut down);
            state[j] = phi[j];
            for i in 0..n {
                hessian[j * n + i] = (down[i] - up[i]) / (2.0 * width);
            }
        }
        for j in 0..n {
            for i in 0..j {
                let mean = 0.5 * (hessian[j * n + i] + hessian[i * n + j]);
                (hessian[j * n + i], hessian[i * n + j]) = (mean, mean);
            }
        }
    }
}
