//! A target's metric at the current state, factored, and its divergence.

use super::dense::{cholesky, semidefinite_root, solve, solve_lower, solve_lower_transposed};
use super::matrix::Spectrum;
use super::{Metric, Real};

/// The matrix whose divergence is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Power {
    /// `G^-1`.
    Inverse,
    /// `R'`, where `R R' = G^-1`.
    InverseRoot,
}

/// Buffer for the noise of a block.
#[derive(Debug, Clone, Default)]
pub(super) struct Room<T> {
    matrix: Vec<f64>,
    column: Vec<T>,
    scratch: Vec<T>,
}

/// `G(theta)` of every block: its diagonal, or its Cholesky factor `L` with `R = L^-T`.
#[derive(Debug, Clone)]
pub(super) struct FactoredMetric<T> {
    dimension: usize,
    diagonal: bool,
    values: Vec<T>,
    /// `Gamma` of every block, `dimension x blocks`.
    pub divergence: Vec<T>,
    shifted_state: Vec<T>,
    shifted_values: Vec<T>,
    column: Vec<T>,
}

impl<T: Real> FactoredMetric<T> {
    pub fn new(dimension: usize, blocks: usize) -> Self {
        Self {
            dimension,
            diagonal: true,
            values: Vec::new(),
            divergence: vec![T::zero(); dimension * blocks],
            shifted_state: vec![T::zero(); dimension * blocks],
            shifted_values: Vec::new(),
            column: vec![T::zero(); dimension],
        }
    }

    fn stride(&self) -> usize {
        if self.diagonal { self.dimension } else { self.dimension * self.dimension }
    }

    /// Evaluates the metric and factors it in `into`. A block whose metric is not positive definite becomes NaN, so
    /// that the step diverges and is reverted.
    pub fn factor(metric: &mut dyn Metric<T>, theta: &[T], dimension: usize, into: &mut [T]) {
        metric.metric(theta, into);
        if metric.is_diagonal() {
            into.iter_mut().filter(|g| **g <= T::zero()).for_each(|g| *g = T::nan());
        } else {
            for block in into.chunks_exact_mut(dimension * dimension) {
                if !cholesky(block, dimension) {
                    block.fill(T::nan());
                }
            }
        }
    }

    /// Evaluates the metric and its divergence at `theta`.
    pub fn evaluate(&mut self, metric: &mut dyn Metric<T>, theta: &[T], power: Power) {
        self.diagonal = metric.is_diagonal();
        let size = self.stride() * theta.len() / self.dimension;
        self.values.resize(size, T::zero());
        Self::factor(metric, theta, self.dimension, &mut self.values);
        self.divergence.fill(T::zero());
        if metric.is_constant() || metric.divergence(theta, power == Power::Inverse, &mut self.divergence) {
            return;
        }
        self.shifted_values.resize(size, T::zero());
        self.difference(metric, theta, power);
    }

    /// Computes the divergence by central differences.
    fn difference(&mut self, metric: &mut dyn Metric<T>, theta: &[T], power: Power) {
        let (n, stride) = (self.dimension, self.stride());
        let width = T::narrow(libm::cbrt(T::epsilon().widen()));
        for j in 0..n {
            for sign in [T::one(), -T::one()] {
                self.shifted_state.copy_from_slice(theta);
                for state in self.shifted_state.chunks_exact_mut(n) {
                    state[j] += sign * width * (T::one() + state[j].abs());
                }
                Self::factor(metric, &self.shifted_state, n, &mut self.shifted_values);
                for (block, divergence) in self.divergence.chunks_exact_mut(n).enumerate() {
                    let values = &self.shifted_values[block * stride..][..stride];
                    let weight = sign / (T::narrow(2.0) * width * (T::one() + theta[block * n + j].abs()));
                    if self.diagonal {
                        let inverse = T::one() / values[j];
                        let value = if power == Power::Inverse { inverse } else { inverse.sqrt() };
                        divergence[j] += weight * value;
                        continue;
                    }
                    self.column.fill(T::zero());
                    self.column[j] = T::one();
                    match power {
                        Power::Inverse => solve(values, &mut self.column),
                        Power::InverseRoot => solve_lower(values, &mut self.column),
                    }
                    for (divergence, &value) in divergence.iter_mut().zip(&self.column) {
                        *divergence += weight * value;
                    }
                }
            }
        }
    }

    fn of(&self, block: usize) -> &[T] {
        &self.values[block * self.stride()..][..self.stride()]
    }

    /// `v <- G^-1 v`.
    pub fn inverse(&self, block: usize, v: &mut [T]) {
        if self.diagonal {
            v.iter_mut().zip(self.of(block)).for_each(|(v, &g)| *v /= g);
        } else {
            solve(self.of(block), v);
        }
    }

    /// `v <- R v` with `R R' = G^-1`.
    pub fn root(&self, block: usize, v: &mut [T]) {
        if self.diagonal {
            v.iter_mut().zip(self.of(block)).for_each(|(v, &g)| *v /= g.sqrt());
        } else {
            solve_lower_transposed(self.of(block), v);
        }
    }

    /// `v <- R' v`.
    pub fn root_transposed(&self, block: usize, v: &mut [T]) {
        if self.diagonal {
            self.root(block, v);
        } else {
            solve_lower(self.of(block), v);
        }
    }

    /// Maps standard normal numbers `z` to a draw from `N(0, variance G^-1 - share W V W')`, where `W` is `G^-1` or
    /// `R'`; negative eigenvalues count as zero.
    pub fn reduced_noise(
        &self,
        block: usize,
        (variance, share): (f64, f64),
        power: Power,
        covariance: &Spectrum<T>,
        (z, room): (&mut [T], &mut Room<T>),
    ) {
        let n = self.dimension;
        if let (true, Some(v)) = (self.diagonal, covariance.diagonal()) {
            for ((z, &v), g) in z.iter_mut().zip(v).zip(self.of(block)) {
                let g = g.widen();
                let taken = if power == Power::Inverse { v / (g * g) } else { v / g };
                *z *= T::narrow((variance / g - share * taken).max(0.0).sqrt());
            }
            return;
        }
        // Adds G^-1 and W V W' column by column: W is symmetric or the transpose of R.
        let Room { matrix, column, scratch } = room;
        matrix.clear();
        matrix.resize(n * n, 0.0);
        column.resize(n, T::zero());
        scratch.resize(n, T::zero());
        for j in 0..n {
            let entries = |matrix: &mut [f64], factor: f64, column: &[T]| {
                matrix[j * n..][..n].iter_mut().zip(column).for_each(|(to, x)| *to += factor * x.widen());
            };
            let unit = |column: &mut [T]| {
                column.fill(T::zero());
                column[j] = T::one();
            };
            unit(column);
            self.inverse(block, column);
            entries(matrix, variance, column);
            unit(column);
            match power {
                Power::Inverse => self.inverse(block, column),
                Power::InverseRoot => self.root(block, column),
            }
            covariance.apply(column, scratch);
            match power {
                Power::Inverse => self.inverse(block, column),
                Power::InverseRoot => self.root_transposed(block, column),
            }
            entries(matrix, -share, column);
        }
        semidefinite_root(matrix, n);
        scratch.copy_from_slice(z);
        z.fill(T::zero());
        for (column, &x) in matrix.chunks_exact(n).zip(scratch.iter()) {
            z.iter_mut().zip(column).for_each(|(z, &root)| *z += T::narrow(root) * x);
        }
    }
}
