//! The limited-memory BFGS inverse Hessian in product form, which provides its square root and thereby draws from it.
//!
//! With pairs `s = theta' - theta`, `y = grad U(theta') - grad U(theta)` and `B = H^-1`, each pair updates a
//! square root `S S^T = H` and its inverse transpose `C C^T = B` (Brodlie, Gourlay and Greenstadt 1973):
//!
//! ```text
//! S+ = (I - p q^T) S,  p = s / s'y,   q = y + sqrt(s'y / s'Bs) B s
//! C+ = (I - u t^T) C,  t = s / s'Bs,  u = sqrt(s'Bs / s'y) y + B s
//! ```
//!
//! These replace eq. 11 of `hamcmc-2016` and eqs. 8-11 of `quasi-newton-mcmc-2011`, whose printed `q` does
//! not satisfy `S S^T = H`.

use super::checks::check_positive;
use super::vector::{add_scaled, dot};
use super::{Real, SamplerError};

/// The matrix `gamma I` that the recursion starts from.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum InitialScale {
    /// Always this `gamma`, as in the papers. Safe up to the inverse of the largest curvature.
    Fixed(f64),
    /// The smallest `s'y / y'y` of the pairs in use, or the given `gamma` without pairs. It needs no tuning, and
    /// depends on the pairs alone.
    Pairs(f64),
}

impl InitialScale {
    pub(super) fn check(self, name: &'static str) -> Result<(), SamplerError> {
        check_positive(name, self.without_pairs())
    }

    /// `gamma` without any pair.
    pub(super) fn without_pairs<T: Real>(self) -> T {
        let (Self::Fixed(gamma) | Self::Pairs(gamma)) = self;
        T::narrow(gamma)
    }

    /// Returns `gamma` for the usable pairs `(s, y)` among `pairs`.
    pub(super) fn scale<'a, T: Real>(self, pairs: impl Iterator<Item = (&'a [T], &'a [T])>) -> T {
        match self {
            Self::Fixed(_) => self.without_pairs(),
            Self::Pairs(_) => pairs
                .filter(|(s, y)| InverseHessian::is_usable(s, y))
                .map(|(s, y)| dot(s, y) / dot(y, y))
                .reduce(T::min)
                .unwrap_or(self.without_pairs()),
        }
    }
}

/// An inverse Hessian `H` built from pairs `(s, y)`, with products by `H`, `B = H^-1` and their roots.
///
/// Products cost `O(pairs * dimension)`, as does adding a pair; nothing allocates after construction.
#[derive(Debug, Clone)]
pub struct InverseHessian<T> {
    dimension: usize,
    capacity: usize,
    pairs: usize,
    scale: T,
    s: Vec<T>,
    y: Vec<T>,
    // `B s` of each pair, with `B` before its update, and the vector `q`.
    bs: Vec<T>,
    q: Vec<T>,
    sy: Vec<T>,
    sbs: Vec<T>,
}

impl<T: Real> InverseHessian<T> {
    /// Creates the identity in `dimension` unknowns, with room for `capacity` pairs.
    #[must_use]
    pub fn new(dimension: usize, capacity: usize) -> Self {
        let zeros = || vec![T::zero(); dimension * capacity];
        Self {
            dimension,
            capacity,
            pairs: 0,
            scale: T::one(),
            s: zeros(),
            y: zeros(),
            bs: zeros(),
            q: zeros(),
            sy: vec![T::zero(); capacity],
            sbs: vec![T::zero(); capacity],
        }
    }

    /// Removes all pairs and resets `H` to `scale * I`, `scale > 0`.
    pub fn reset(&mut self, scale: T) {
        self.pairs = 0;
        self.scale = scale;
    }

    /// Number of pairs in use.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.pairs
    }

    /// Whether the curvature `s'y` of a pair is positive beyond rounding, so that it may enter an update.
    #[must_use]
    pub fn is_usable(s: &[T], y: &[T]) -> bool {
        let (sy, ss, yy) = (dot(s, y), dot(s, s), dot(y, y));
        sy.is_finite() && yy.is_finite() && sy > T::epsilon().sqrt() * (ss * yy).sqrt()
    }

    /// Updates by one pair; returns false and does nothing if its curvature is not positive or memory is full.
    ///
    /// # Panics
    /// If `s` or `y` has another length than the dimension.
    pub fn push(&mut self, s: &[T], y: &[T]) -> bool {
        assert!([s.len(), y.len()] == [self.dimension; 2], "lengths of a pair");
        if self.pairs == self.capacity || !Self::is_usable(s, y) {
            return false;
        }
        let (d, k) = (self.dimension, self.pairs);
        let (past, fresh) = self.bs.split_at_mut(k * d);
        let bs = &mut fresh[..d];
        let inverse_scale = T::one() / self.scale;
        for (bs, &s) in bs.iter_mut().zip(s) {
            *bs = s * inverse_scale;
        }
        for i in 0..k {
            let (y_i, bs_i) = (&self.y[i * d..][..d], &past[i * d..][..d]);
            add_scaled(bs, dot(y_i, s) / self.sy[i], y_i);
            add_scaled(bs, -(dot(bs_i, s) / self.sbs[i]), bs_i);
        }
        let (sy, sbs) = (dot(s, y), dot(s, bs));
        if !(sbs.is_finite() && sbs > T::zero()) {
            return false;
        }
        let root = (sy / sbs).sqrt();
        for ((q, &y), &bs) in self.q[k * d..][..d].iter_mut().zip(y).zip(bs.iter()) {
            *q = y + root * bs;
        }
        self.s[k * d..][..d].copy_from_slice(s);
        self.y[k * d..][..d].copy_from_slice(y);
        self.sy[k] = sy;
        self.sbs[k] = sbs;
        self.pairs += 1;
        true
    }

    fn row<'a>(&self, of: &'a [T], pair: usize) -> &'a [T] {
        &of[pair * self.dimension..][..self.dimension]
    }

    /// `v <- S v` with `S S^T = H`: a standard normal `v` becomes a draw from `N(0, H)`. In all products, `v` has
    /// `dimension` numbers.
    pub fn multiply_root(&self, v: &mut [T]) {
        let root = self.scale.sqrt();
        v.iter_mut().for_each(|v| *v *= root);
        for k in 0..self.pairs {
            let c = dot(self.row(&self.q, k), v) / self.sy[k];
            add_scaled(v, -c, self.row(&self.s, k));
        }
    }

    /// `v <- S^T v`.
    pub fn multiply_root_transposed(&self, v: &mut [T]) {
        for k in (0..self.pairs).rev() {
            let c = dot(self.row(&self.s, k), v) / self.sy[k];
            add_scaled(v, -c, self.row(&self.q, k));
        }
        let root = self.scale.sqrt();
        v.iter_mut().for_each(|v| *v *= root);
    }

    /// `v <- H v`.
    pub fn multiply(&self, v: &mut [T]) {
        self.multiply_root_transposed(v);
        self.multiply_root(v);
    }

    /// `v <- C v` with `C C^T = B = H^-1`: a standard normal `v` becomes a draw from `N(0, B)`.
    pub fn multiply_inverse_root(&self, v: &mut [T]) {
        let root = T::one() / self.scale.sqrt();
        v.iter_mut().for_each(|v| *v *= root);
        for k in 0..self.pairs {
            let ratio = (self.sbs[k] / self.sy[k]).sqrt();
            let c = ratio * dot(self.row(&self.s, k), v) / self.sbs[k];
            add_scaled(v, -c, self.row(&self.q, k));
        }
    }

    /// `log det H`.
    #[must_use]
    pub fn log_determinant(&self) -> f64 {
        let pairs = self.sbs[..self.pairs].iter().zip(&self.sy);
        self.dimension as f64 * libm::log(self.scale.widen())
            + pairs.map(|(sbs, sy)| libm::log(sbs.widen() / sy.widen())).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dense::{cholesky, log_determinant};
    use crate::random::SeedTree;
    use ndarray::{Array1, Array2};

    struct Example {
        memory: InverseHessian<f64>,
        dense: Array2<f64>,
        pairs: Vec<(Array1<f64>, Array1<f64>)>,
    }

    /// Random pairs of positive curvature, the product-form memory and the dense matrix of eq. 6 of `hamcmc-2016`.
    fn example(dimension: usize, pairs: usize) -> Example {
        let mut stream = SeedTree::new(7).rng(dimension as u64);
        let mut memory = InverseHessian::new(dimension, pairs);
        memory.reset(0.3);
        let mut dense = Array2::eye(dimension) * 0.3;
        let mut kept = Vec::new();
        while memory.pairs() < pairs {
            let s = Array1::from_shape_fn(dimension, |_| f64::normal(&mut stream));
            let y = &s * 0.7 + Array1::from_shape_fn(dimension, |_| f64::normal(&mut stream));
            if !memory.push(s.as_slice().unwrap(), y.as_slice().unwrap()) {
                continue;
            }
            let sy = s.dot(&y);
            let outer = |a: &Array1<f64>, b: &Array1<f64>| {
                Array2::from_shape_fn((dimension, dimension), |(i, j)| a[i] * b[j] / sy)
            };
            let left = Array2::eye(dimension) - outer(&s, &y);
            dense = left.dot(&dense).dot(&left.t()) + outer(&s, &s);
            kept.push((s, y));
        }
        Example { memory, dense, pairs: kept }
    }

    fn columns(dimension: usize, apply: impl Fn(&mut [f64])) -> Array2<f64> {
        let mut matrix = Array2::zeros((dimension, dimension));
        for j in 0..dimension {
            let mut unit = vec![0.0; dimension];
            unit[j] = 1.0;
            apply(&mut unit);
            matrix.column_mut(j).assign(&Array1::from(unit));
        }
        matrix
    }

    fn distance(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
        (a - b).mapv(f64::abs).sum() / b.mapv(f64::abs).sum()
    }

    #[test]
    fn curvature_that_is_rounding_is_no_curvature() {
        // At any lengths of `s` and `y`.
        for (a, b) in [(1.0, 1.0), (1e4, 1e-4), (1e-4, 1e4), (1e4, 1e4)] {
            let usable = |curvature: f64| InverseHessian::is_usable(&[a, 0.0], &[curvature * b, b]);
            assert!(usable(1e-6) && !usable(1e-9) && !usable(-1e-6));
        }
    }

    /// The pairs are usable, but their products with `B` overflow or underflow.
    #[test]
    fn what_leaves_the_range_of_numbers_is_not_pushed() {
        for (scale, s, y) in [(1e-308, 10.0, 1.0), (1e308, 1e-10, 1e10)] {
            let mut inverse = InverseHessian::<f64>::new(1, 1);
            inverse.reset(scale);
            assert!(InverseHessian::is_usable(&[s], &[y]) && !inverse.push(&[s], &[y]));
            assert_eq!(inverse.pairs(), 0);
        }
    }

    #[test]
    fn roots_multiply_to_the_dense_bfgs_matrix_and_its_inverse() {
        for (dimension, pairs) in [(1, 1), (2, 1), (5, 4), (12, 6)] {
            let Example { memory, dense, .. } = example(dimension, pairs);
            let s = columns(dimension, |v| memory.multiply_root(v));
            let s_transposed = columns(dimension, |v| memory.multiply_root_transposed(v));
            let c = columns(dimension, |v| memory.multiply_inverse_root(v));
            let h = columns(dimension, |v| memory.multiply(v));
            assert!(distance(&s.dot(&s.t()), &dense) < 1e-9);
            assert!(distance(&s_transposed, &s.t().to_owned()) < 1e-9);
            assert!(distance(&h, &dense) < 1e-9);
            assert!(distance(&c.dot(&c.t()).dot(&dense), &Array2::eye(dimension)) < 1e-7);
            let mut factor = dense.into_raw_vec_and_offset().0;
            assert!(cholesky(&mut factor, dimension));
            assert!((memory.log_determinant() - log_determinant(&factor, dimension)).abs() < 1e-8);
        }
    }

    /// The root that `hamcmc-2016` prints in eq. 11 does not square to `H`.
    #[test]
    fn printed_root_is_not_a_root() {
        let Example { dense, pairs, .. } = example(2, 1);
        let (s, y) = &pairs[0];
        let (sy, bs) = (s.dot(y), s / 0.3);
        let q = &bs * (sy / s.dot(&(y / 0.3))).sqrt() - y;
        let root =
            Array2::from_shape_fn((2, 2), |(i, j)| f64::from(i == j) - s[i] / sy * q[j]) * 0.3_f64.sqrt();
        assert!(distance(&root.dot(&root.t()), &dense) > 0.1);
    }

    #[test]
    fn pairs_without_positive_curvature_are_refused() {
        let mut memory = InverseHessian::<f32>::new(2, 3);
        assert!(!memory.push(&[1.0, 0.0], &[-1.0, 5.0]));
        assert!(!memory.push(&[1.0, 0.0], &[0.0, 5.0]));
        assert!(!memory.push(&[0.0, 0.0], &[0.0, 0.0]));
        assert!(!memory.push(&[1.0, 0.0], &[f32::NAN, 5.0]));
        assert!(!memory.push(&[1.0, 0.0], &[f32::INFINITY, 5.0]));
        assert_eq!(memory.pairs(), 0);
        assert!(memory.push(&[1.0, 0.0], &[1.0, 5.0]));
    }
}
