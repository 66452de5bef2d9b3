//! Invertible linear maps between a target's coordinates and those of a preconditioned sampler.

use crate::Real;
use crate::vector::{add_scaled, dot};

/// The map `theta = centre + L phi` of one block, `L = diag(scale) (I + V (diag(root) - I) V')` with orthonormal `V`.
///
/// Without columns `V` the map is diagonal. `L L'` is the inverse mass matrix that the sampler uses.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LinearMap<T> {
    pub centre: Vec<T>,
    pub scale: Vec<T>,
    /// `V`, `dimension x rank`, column-major.
    pub vectors: Vec<T>,
    pub root: Vec<T>,
}

impl<T: Real> LinearMap<T> {
    pub fn identity(dimension: usize) -> Self {
        Self::diagonal(vec![T::zero(); dimension], vec![T::one(); dimension])
    }

    pub fn diagonal(centre: Vec<T>, scale: Vec<T>) -> Self {
        Self { centre, scale, vectors: Vec::new(), root: Vec::new() }
    }

    fn stretch(&self, v: &mut [T], root: impl Fn(T) -> T) {
        // The columns are orthonormal: the order of the updates does not matter.
        for (column, &value) in self.vectors.chunks_exact(v.len()).zip(&self.root) {
            let coefficient = (root(value) - T::one()) * dot(column, v);
            add_scaled(v, coefficient, column);
        }
    }

    /// `v <- centre + L v`.
    pub fn apply(&self, v: &mut [T]) {
        self.stretch(v, |root| root);
        for ((v, &scale), &centre) in v.iter_mut().zip(&self.scale).zip(&self.centre) {
            *v = centre + scale * *v;
        }
    }

    /// `v <- L^-1 (v - centre)`.
    pub fn invert(&self, v: &mut [T]) {
        for ((v, &scale), &centre) in v.iter_mut().zip(&self.scale).zip(&self.centre) {
            *v = (*v - centre) / scale;
        }
        self.stretch(v, |root| T::one() / root);
    }

    /// `v <- L' v`.
    pub fn apply_transposed(&self, v: &mut [T]) {
        v.iter_mut().zip(&self.scale).for_each(|(v, &scale)| *v *= scale);
        self.stretch(v, |root| root);
    }

    /// `v <- L'^-1 v`.
    pub fn invert_transposed(&self, v: &mut [T]) {
        self.stretch(v, |root| T::one() / root);
        v.iter_mut().zip(&self.scale).for_each(|(v, &scale)| *v /= scale);
    }
}

#[cfg(test)]
mod tests {
    use super::LinearMap;

    #[test]
    fn a_map_and_its_inverse_and_transposed_agree() {
        let (c, s) = (0.6, 0.8);
        let centre = vec![0.2, -5.0, 1.0];
        let map = LinearMap {
            centre: centre.clone(),
            scale: vec![2.0, 0.5, 3.0],
            vectors: vec![c, s, 0.0, -s, c, 0.0],
            root: vec![4.0, 0.3],
        };
        let v = [0.3, -1.2, 0.7_f64];
        let mut there = v;
        map.apply(&mut there);
        let mut back = there;
        map.invert(&mut back);
        assert!(back.iter().zip(v).all(|(a, b)| (a - b).abs() < 1e-12));
        there.iter_mut().zip(&centre).for_each(|(there, centre)| *there -= centre);
        // <w, L v> = <L' w, v>.
        let w = [1.1, 0.4, -0.9];
        let mut transposed = w;
        map.apply_transposed(&mut transposed);
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        assert!((product(&w, &there) - product(&transposed, &v)).abs() < 1e-12);
        map.invert_transposed(&mut transposed);
        assert!(transposed.iter().zip(w).all(|(a, b)| (a - b).abs() < 1e-12));
    }
}
