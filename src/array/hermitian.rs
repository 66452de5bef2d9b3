//! Small square complex matrices, with a row for each microphone, or for each microphone and frame.

use num_complex::Complex;

pub(super) type Value = Complex<f64>;

/// Sweeps of Jacobi rotations; three to six suffice.
const SWEEPS: usize = 20;
/// Off-diagonal entries below this fraction of the diagonal count as zero.
const SMALL: f64 = 1e-14;

/// A square matrix in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    pub size: usize,
    pub values: Vec<Value>,
}

impl Matrix {
    pub(super) fn zero(size: usize) -> Self {
        Self { size, values: vec![Value::ZERO; size * size] }
    }

    pub(super) fn identity(size: usize) -> Self {
        let mut identity = Self::zero(size);
        (0..size).for_each(|i| identity.values[i * (size + 1)] = Value::ONE);
        identity
    }

    pub(super) fn at(&self, row: usize, column: usize) -> Value {
        self.values[row * self.size + column]
    }

    pub(super) fn at_mut(&mut self, row: usize, column: usize) -> &mut Value {
        &mut self.values[row * self.size + column]
    }

    /// Returns the submatrix of the rows and columns at these indices.
    pub(super) fn part(&self, places: &[usize]) -> Self {
        let row = |&i: &usize| places.iter().map(move |&j| self.at(i, j));
        Self { size: places.len(), values: places.iter().flat_map(row).collect() }
    }

    /// The product with `other`.
    pub(super) fn times(&self, other: &Self) -> Self {
        let size = self.size;
        let entry = |i: usize| {
            let (row, column) = (i / size, i % size);
            (0..size).map(|k| self.at(row, k) * other.at(k, column)).sum()
        };
        Self { size, values: (0..size * size).map(entry).collect() }
    }

    /// The conjugate transpose.
    pub(super) fn adjoint(&self) -> Self {
        let size = self.size;
        Self { size, values: (0..size * size).map(|i| self.at(i % size, i / size).conj()).collect() }
    }

    /// `self * inner * self^H`, of a Hermitian `inner`.
    pub(super) fn congruent(&self, inner: &Self) -> Self {
        let mut result = self.times(inner).times(&self.adjoint());
        for i in 0..self.size {
            result.at_mut(i, i).im = 0.0;
            for j in 0..i {
                let mean = (result.at(i, j) + result.at(j, i).conj()) / 2.0;
                *result.at_mut(i, j) = mean;
                *result.at_mut(j, i) = mean.conj();
            }
        }
        result
    }

    /// The sum of the diagonal, which is real in a Hermitian matrix.
    pub(super) fn trace(&self) -> f64 {
        (0..self.size).map(|i| self.at(i, i).re).sum()
    }

    /// Returns the lower triangular `L` with `L L^H` equal to this positive definite matrix.
    pub(super) fn cholesky(&self) -> Self {
        let size = self.size;
        let mut lower = Self::zero(size);
        for j in 0..size {
            let norm: f64 = (0..j).map(|k| lower.at(j, k).norm_sqr()).sum();
            // Rounding may make it negative.
            let diagonal = (self.at(j, j).re - norm).max(f64::MIN_POSITIVE).sqrt();
            *lower.at_mut(j, j) = diagonal.into();
            for i in j + 1..size {
                let sum: Value = (0..j).map(|k| lower.at(i, k) * lower.at(j, k).conj()).sum();
                *lower.at_mut(i, j) = (self.at(i, j) - sum) / diagonal;
            }
        }
        lower
    }

    /// Returns the inverse of a lower triangular matrix.
    pub(super) fn inverse_of_lower(&self) -> Self {
        let size = self.size;
        let mut inverse = Self::zero(size);
        for j in 0..size {
            *inverse.at_mut(j, j) = self.at(j, j).inv();
            for i in j + 1..size {
                let sum: Value = (j..i).map(|k| self.at(i, k) * inverse.at(k, j)).sum();
                *inverse.at_mut(i, j) = -sum / self.at(i, i);
            }
        }
        inverse
    }

    /// The eigenvalues of a Hermitian matrix and, as columns, its eigenvectors: cyclic Jacobi rotations (Golub and Van Loan,
    /// "Matrix Computations", 8.5).
    pub(super) fn eigen(mut self) -> (Vec<f64>, Self) {
        let size = self.size;
        let mut vectors = Self::identity(size);
        for _ in 0..SWEEPS {
            let mut rotated = false;
            for p in 0..size {
                for q in p + 1..size {
                    rotated |= self.rotate(p, q, &mut vectors);
                }
            }
            if !rotated {
                break;
            }
        }
        ((0..size).map(|i| self.at(i, i).re).collect(), vectors)
    }

    /// Sets the entry at row `p` and column `q`, and its mirror, to zero by a unitary rotation. Returns false if the
    /// entry is negligible already.
    fn rotate(&mut self, p: usize, q: usize, vectors: &mut Self) -> bool {
        let (entry, a, b) = (self.at(p, q), self.at(p, p).re, self.at(q, q).re);
        let size = entry.norm();
        if size <= SMALL * (a.abs() + b.abs()) || size < f64::MIN_POSITIVE {
            return false;
        }
        let ratio = (b - a) / (2.0 * size);
        let tangent = ratio.signum() / (ratio.abs() + (1.0 + ratio * ratio).sqrt());
        let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
        let sine = entry / size * (tangent * cosine);
        // Columns: p' = c p - conj(s) q, q' = s p + c q; rows: the same, conjugated.
        for matrix in [&mut *self, vectors] {
            for k in 0..matrix.size {
                let (x, y) = (matrix.at(k, p), matrix.at(k, q));
                *matrix.at_mut(k, p) = x * cosine - sine.conj() * y;
                *matrix.at_mut(k, q) = sine * x + y * cosine;
            }
        }
        for k in 0..self.size {
            let (x, y) = (self.at(p, k), self.at(q, k));
            *self.at_mut(p, k) = x * cosine - sine * y;
            *self.at_mut(q, k) = sine.conj() * x + y * cosine;
        }
        true
    }
}
