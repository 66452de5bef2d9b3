//! A target in preconditioned coordinates.

use super::linear::LinearMap;
use crate::{Curvature, Metric, Minibatch, Real, Sites, Target};

/// A state and the gradient there, in the target's coordinates.
#[derive(Debug, Clone, Default)]
pub(super) struct Record<T> {
    pub theta: Vec<T>,
    pub gradient: Vec<T>,
    pub is_set: bool,
    /// Whether the gradient is that of a subsample.
    pub is_subsampled: bool,
}

/// A target in the coordinates `phi`, `theta = c + L phi` with one map for each block. The first gradient is recorded.
pub(super) struct View<'a, T> {
    pub target: &'a mut dyn Target<T>,
    pub maps: &'a [LinearMap<T>],
    pub theta: &'a mut Vec<T>,
    pub record: &'a mut Record<T>,
    /// Whether all maps are the identity, so that the target's metric, curvature and sites are those of the view.
    pub is_plain: bool,
}

impl<T: Real> View<'_, T> {
    fn load(&mut self, phi: &[T]) {
        self.theta.clear();
        self.theta.extend_from_slice(phi);
        map_blocks(self.maps, self.theta, LinearMap::apply);
    }

    fn finish(&mut self, gradient: &mut [T], is_subsampled: bool) {
        if !self.record.is_set {
            self.record.is_set = true;
            self.record.is_subsampled = is_subsampled;
            self.record.theta.clone_from(self.theta);
            self.record.gradient.clear();
            self.record.gradient.extend_from_slice(gradient);
        }
        map_blocks(self.maps, gradient, LinearMap::apply_transposed);
    }
}

/// Applies the map of every block to its part of `state`.
pub(super) fn map_blocks<T: Real>(
    maps: &[LinearMap<T>],
    state: &mut [T],
    apply: impl Fn(&LinearMap<T>, &mut [T]),
) {
    let dimension = state.len() / maps.len();
    for (map, part) in maps.iter().zip(state.chunks_exact_mut(dimension)) {
        apply(map, part);
    }
}

impl<T: Real> Target<T> for View<'_, T> {
    fn dimension(&self) -> usize {
        self.target.dimension()
    }

    fn blocks(&self) -> usize {
        self.target.blocks()
    }

    fn terms(&self) -> usize {
        self.target.terms()
    }

    fn is_folded(&self) -> bool {
        self.target.is_folded()
    }

    fn is_fixed(&self) -> bool {
        self.target.is_fixed()
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        if self.is_plain { self.target.metric() } else { None }
    }

    fn curvature(&mut self) -> Option<&mut dyn Curvature<T>> {
        if self.is_plain { self.target.curvature() } else { None }
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        if self.is_plain { self.target.sites() } else { None }
    }

    fn gradient(&mut self, phi: &[T], batch: Minibatch<'_>, gradient: &mut [T]) {
        self.load(phi);
        self.target.gradient(self.theta, batch, gradient);
        self.finish(gradient, batch.indices().is_some());
    }

    fn potential(&mut self, phi: &[T], potential: &mut [f64]) {
        self.load(phi);
        self.target.potential(self.theta, potential);
    }

    fn evaluate(&mut self, phi: &[T], potential: &mut [f64], gradient: &mut [T]) {
        self.load(phi);
        self.target.evaluate(self.theta, potential, gradient);
        self.finish(gradient, false);
    }
}
