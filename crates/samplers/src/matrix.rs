//! User-supplied symmetric matrices: masses, diffusions, covariances of gradient noise.

use super::dense::eigen;
use super::vector::{add_scaled, dot};
use super::{Real, SamplerError};

/// Constant symmetric matrix shared by all blocks: a mass, a diffusion `D` or the covariance of a stochastic gradient.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Matrix {
    /// A multiple of the identity.
    Scalar(f64),
    /// A diagonal matrix, by its diagonal (`dimension` numbers).
    Diagonal(Vec<f64>),
    /// Any symmetric matrix (`dimension^2` numbers, column-major).
    Dense(Vec<f64>),
}

impl Matrix {
    /// Decomposes the matrix into `E diag(values) E'`. Returns an error unless it is symmetric and positive definite,
    /// or positive semidefinite if `definite` is false.
    pub(super) fn decompose<T: Real>(
        &self,
        what: &'static str,
        dimension: usize,
        definite: bool,
    ) -> Result<Spectrum<T>, SamplerError> {
        let shape = |found: usize, expected: usize| {
            if found == expected { Ok(()) } else { Err(SamplerError::Shape { what, found, expected }) }
        };
        let (vectors, values) = match self {
            Self::Scalar(value) => (Vec::new(), vec![*value; dimension]),
            Self::Diagonal(values) => {
                shape(values.len(), dimension)?;
                (Vec::new(), values.clone())
            }
            Self::Dense(values) => {
                shape(values.len(), dimension * dimension)?;
                if let Some(&value) = values.iter().find(|value| !value.is_finite()) {
                    return Err(SamplerError::Matrix { what, value, expected: "finite" });
                }
                let largest = values.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
                for i in 0..dimension {
                    for j in 0..i {
                        let value = values[j * dimension + i] - values[i * dimension + j];
                        if value.abs() > 1e-9 * largest {
                            return Err(SamplerError::Matrix { what, value, expected: "symmetric" });
                        }
                    }
                }
                let mut both = Vec::new();
                eigen(&mut values.clone(), dimension, &mut both);
                let values = both.split_off(dimension * dimension);
                (both, values)
            }
        };
        // Rounding may make an eigenvalue of zero slightly negative.
        let rounding = 1e-12 * values.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        for &value in &values {
            let holds = if definite { value > 0.0 } else { value >= -rounding };
            if !(holds && value.is_finite()) {
                let expected = if definite { "positive definite" } else { "positive semidefinite" };
                return Err(SamplerError::Matrix { what, value, expected });
            }
        }
        Ok(Spectrum {
            vectors: vectors.into_iter().map(T::narrow).collect(),
            values: values.into_iter().map(|value| value.max(0.0)).collect(),
        })
    }
}

/// A positive semidefinite matrix by its eigenvectors (none for a diagonal one) and eigenvalues.
#[derive(Debug, Clone)]
pub(super) struct Spectrum<T> {
    vectors: Vec<T>,
    values: Vec<f64>,
}

impl<T: Real> Spectrum<T> {
    /// Returns the matrix with `f` applied to its eigenvalues, such as a root or an inverse.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        let values = self.values.iter().map(|&value| f(value)).collect();
        Self { vectors: self.vectors.clone(), values }
    }

    /// The diagonal, if the matrix has no eigenvectors stored.
    pub fn diagonal(&self) -> Option<&[f64]> {
        self.vectors.is_empty().then_some(&self.values)
    }

    /// `v <- f(M) v`, where `f` is applied to the eigenvalues; `scratch` is as long as `v`.
    pub fn apply_mapped(&self, f: impl Fn(f64) -> f64, v: &mut [T], scratch: &mut [T]) {
        if self.vectors.is_empty() {
            v.iter_mut().zip(&self.values).for_each(|(v, &value)| *v *= T::narrow(f(value)));
            return;
        }
        let columns = self.vectors.chunks_exact(v.len());
        for ((coefficient, column), &value) in scratch.iter_mut().zip(columns.clone()).zip(&self.values) {
            *coefficient = T::narrow(f(value)) * dot(column, v);
        }
        v.fill(T::zero());
        for (&coefficient, column) in scratch.iter().zip(columns) {
            add_scaled(v, coefficient, column);
        }
    }

    /// `v <- M v`.
    pub fn apply(&self, v: &mut [T], scratch: &mut [T]) {
        self.apply_mapped(|value| value, v, scratch);
    }

    /// `A M A` for a matrix `A` of the same size.
    pub fn between(&self, a: &Self) -> Self {
        let n = self.values.len();
        let mut scratch = vec![T::zero(); n];
        if let (Some(m), Some(a)) = (self.diagonal(), a.diagonal()) {
            let values = m.iter().zip(a).map(|(m, a)| a * m * a).collect();
            return Self { vectors: Vec::new(), values };
        }
        let mut all = vec![0.0; n * n];
        let mut column = vec![T::zero(); n];
        for j in 0..n {
            column.fill(T::zero());
            column[j] = T::one();
            a.apply(&mut column, &mut scratch);
            self.apply(&mut column, &mut scratch);
            a.apply(&mut column, &mut scratch);
            all[j * n..][..n].iter_mut().zip(&column).for_each(|(to, x)| *to = x.widen());
        }
        let mut both = Vec::new();
        eigen(&mut all, n, &mut both);
        let values = both.split_off(n * n).into_iter().map(|value| value.max(0.0)).collect();
        Self { vectors: both.into_iter().map(T::narrow).collect(), values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_square_to_the_matrix_and_what_is_no_covariance_is_refused() {
        let values = vec![4.0, 1.0, 0.5, 1.0, 3.0, -0.2, 0.5, -0.2, 1.0];
        let matrix = Matrix::Dense(values.clone());
        let spectrum = matrix.decompose::<f64>("mass", 3, true).unwrap();
        let (root, mut scratch) = (spectrum.map(f64::sqrt), [0.0; 3]);
        for j in 0..3 {
            let mut column = [0.0; 3];
            column[j] = 1.0;
            root.apply(&mut column, &mut scratch);
            root.apply(&mut column, &mut scratch);
            for i in 0..3 {
                assert!((column[i] - values[j * 3 + i]).abs() < 1e-12);
            }
        }
        // `M^-1/2 M M^-1/2` is the identity.
        let one = spectrum.between(&spectrum.map(|value| 1.0 / value.sqrt()));
        assert!(one.values.iter().all(|value| (value - 1.0).abs() < 1e-12));
        let refused = |matrix: Matrix, definite| matrix.decompose::<f64>("mass", 2, definite).unwrap_err();
        let is_matrix = |error| matches!(error, SamplerError::Matrix { what: "mass", .. });
        assert!(is_matrix(refused(Matrix::Dense(vec![1.0, 2.0, 2.0, 1.0]), false)));
        assert!(is_matrix(refused(Matrix::Dense(vec![1.0, 0.5, 0.2, 1.0]), false)));
        assert!(is_matrix(refused(Matrix::Dense(vec![1.0, f64::NAN, f64::NAN, 1.0]), false)));
        assert!(is_matrix(refused(Matrix::Diagonal(vec![1.0, 0.0]), true)));
        assert!(is_matrix(refused(Matrix::Scalar(f64::INFINITY), false)));
        assert!(Matrix::Diagonal(vec![1.0, 0.0]).decompose::<f64>("mass", 2, false).is_ok());
        let short = refused(Matrix::Diagonal(vec![1.0]), true);
        assert!(matches!(short, SamplerError::Shape { found: 1, expected: 2, .. }));
    }
}
