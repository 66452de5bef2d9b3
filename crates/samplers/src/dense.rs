//! Small dense symmetric matrices, column-major.

use super::Real;
use super::vector::dot;

/// Replaces the lower triangle of `a` (`n x n`) by its Cholesky factor `L`, `L L' = a`, and sets the upper triangle to
/// 0. Returns false, with undefined contents, if `a` is not positive definite.
pub(super) fn cholesky<T: Real>(a: &mut [T], n: usize) -> bool {
    for j in 0..n {
        for k in 0..j {
            let factor = a[k * n + j];
            for i in j..n {
                let update = a[k * n + i] * factor;
                a[j * n + i] -= update;
            }
        }
        let pivot = a[j * n + j];
        if !(pivot > T::zero() && pivot.is_finite()) {
            return false;
        }
        let inverse = T::one() / pivot.sqrt();
        for i in 0..n {
            a[j * n + i] = if i < j { T::zero() } else { a[j * n + i] * inverse };
        }
    }
    true
}

/// `v <- L^-1 v`.
pub(super) fn solve_lower<T: Real>(l: &[T], v: &mut [T]) {
    let n = v.len();
    for j in 0..n {
        let value = v[j] / l[j * n + j];
        v[j] = value;
        for i in j + 1..n {
            v[i] -= value * l[j * n + i];
        }
    }
}

/// `v <- L^-T v`. Maps a standard normal `v` to a draw from `N(0, (L L')^-1)`.
pub(super) fn solve_lower_transposed<T: Real>(l: &[T], v: &mut [T]) {
    let n = v.len();
    for j in (0..n).rev() {
        let column = &l[j * n..][..n];
        v[j] = (v[j] - dot(&column[j + 1..], &v[j + 1..])) / column[j];
    }
}

/// `v <- (L L')^-1 v`.
pub(super) fn solve<T: Real>(l: &[T], v: &mut [T]) {
    solve_lower(l, v);
    solve_lower_transposed(l, v);
}

/// `log det L L'`.
pub(super) fn log_determinant<T: Real>(l: &[T], n: usize) -> f64 {
    2.0 * (0..n).map(|i| libm::log(l[i * n + i].widen())).sum::<f64>()
}

/// Writes the eigenvectors (`n x n`, one per column) and then the eigenvalues of the symmetric `a` to `into`, by cyclic
/// Jacobi rotations. Overwrites `a`.
pub(super) fn eigen(a: &mut [f64], n: usize, into: &mut Vec<f64>) {
    into.clear();
    into.extend((0..n * n).map(|k| f64::from(k % (n + 1) == 0)));
    for _ in 0..50 {
        let off: f64 = (0..n * n).filter(|k| k % (n + 1) != 0).map(|k| a[k] * a[k]).sum();
        let on: f64 = (0..n).map(|i| a[i * n + i] * a[i * n + i]).sum();
        if off <= 1e-28 * on {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                let apq = a[q * n + p];
                if apq == 0.0 {
                    continue;
                }
                let tau = (a[q * n + q] - a[p * n + p]) / (2.0 * apq);
                let tangent = tau.signum() / (tau.abs() + (1.0 + tau * tau).sqrt());
                let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
                let sine = tangent * cosine;
                for k in 0..n {
                    let (x, y) = (a[p * n + k], a[q * n + k]);
                    a[p * n + k] = cosine * x - sine * y;
                    a[q * n + k] = sine * x + cosine * y;
                }
                for k in 0..n {
                    let (x, y) = (a[k * n + p], a[k * n + q]);
                    a[k * n + p] = cosine * x - sine * y;
                    a[k * n + q] = sine * x + cosine * y;
                    let (x, y) = (into[p * n + k], into[q * n + k]);
                    into[p * n + k] = cosine * x - sine * y;
                    into[q * n + k] = sine * x + cosine * y;
                }
            }
        }
    }
    into.extend((0..n).map(|i| a[i * n + i]));
}

/// Replaces the symmetric `a` (`n x n`) by a root `L`, `L L' = a`. Directions without variance get columns of zeros;
/// negative eigenvalues count as zero.
pub(super) fn semidefinite_root(a: &mut [f64], n: usize) {
    let given = a.to_vec();
    let largest = (0..n).map(|i| a[i * n + i]).fold(0.0, f64::max);
    for j in 0..n {
        for k in 0..j {
            let factor = a[k * n + j];
            for i in j..n {
                a[j * n + i] -= a[k * n + i] * factor;
            }
        }
        let pivot = a[j * n + j];
        let varies = pivot > 1e-12 * largest;
        // A semidefinite matrix has `|a_ij| <= sqrt(a_ii a_jj)`: beside a pivot at rounding level, entries are small
        // too.
        let beside = a[j * n + j + 1..(j + 1) * n].iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        if pivot < -1e-12 * largest || !varies && beside > 2e-6 * largest {
            clipped_root(given, n, a);
            return;
        }
        let inverse = if varies { 1.0 / pivot.sqrt() } else { 0.0 };
        for i in 0..n {
            a[j * n + i] = if i < j { 0.0 } else { a[j * n + i] * inverse };
        }
    }
}

/// Writes `v sqrt(max(lambda, 0))` to the columns of `root`, for every eigenvector `v` of `matrix` with eigenvalue
/// `lambda`.
fn clipped_root(mut matrix: Vec<f64>, n: usize, root: &mut [f64]) {
    let mut both = Vec::new();
    eigen(&mut matrix, n, &mut both);
    let (vectors, values) = both.split_at(n * n);
    for ((column, vector), &value) in root.chunks_exact_mut(n).zip(vectors.chunks_exact(n)).zip(values) {
        let scale = value.max(0.0).sqrt();
        column.iter_mut().zip(vector).for_each(|(to, x)| *to = scale * x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cholesky_factors_solves_and_refuses() {
        let a = [4.0, 2.0, 0.4, 2.0, 5.0, -1.0, 0.4, -1.0, 3.0];
        let mut l = a;
        assert!(cholesky(&mut l, 3));
        let mut v = [1.0, -2.0, 0.5];
        solve(&l, &mut v);
        for i in 0..3 {
            let product: f64 = (0..3).map(|j| a[j * 3 + i] * v[j]).sum();
            assert!((product - [1.0, -2.0, 0.5][i]).abs() < 1e-12);
        }
        let determinant = 4.0 * (15.0 - 1.0) - 2.0 * (6.0 + 0.4) + 0.4 * (-2.0 - 2.0);
        assert!((log_determinant(&l, 3) - f64::ln(determinant)).abs() < 1e-12);
        assert!(!cholesky(&mut [1.0, 2.0, 2.0, 1.0], 2));
        assert!(!cholesky(&mut [f64::NAN], 1));
    }

    #[test]
    fn eigenvectors_rebuild_the_matrix_and_semidefinite_roots_square_to_it() {
        let a = [1.0, 2.0, -0.5, 2.0, -3.0, 0.7, -0.5, 0.7, 0.2];
        let mut decomposition = Vec::new();
        eigen(&mut a.clone(), 3, &mut decomposition);
        let (vectors, values) = decomposition.split_at(9);
        for k in 0..9 {
            let entry: f64 =
                (0..3).map(|m| values[m] * vectors[m * 3 + k % 3] * vectors[m * 3 + k / 3]).sum();
            assert!((entry - a[k]).abs() < 1e-12);
        }
        let singular = [0.0, 0.0, 0.0, 0.0, 4.0, 2.0, 0.0, 2.0, 1.0];
        let mut root = singular;
        semidefinite_root(&mut root, 3);
        for k in 0..9 {
            let entry: f64 = (0..3).map(|m| root[m * 3 + k % 3] * root[m * 3 + k / 3]).sum();
            assert!((entry - singular[k]).abs() < 1e-12);
        }
    }

    /// Each case is a matrix and its copy with negative eigenvalues set to 0.
    #[test]
    fn roots_of_indefinite_matrices_clip_their_eigenvalues() {
        let cases = [
            ([0.1, 1.9, 1.9, 0.1], [1.0, 1.0, 1.0, 1.0]),
            ([0.0, 1.0, 1.0, 0.0], [0.5, 0.5, 0.5, 0.5]),
            ([-1.0, 0.0, 0.0, 2.0], [0.0, 0.0, 0.0, 2.0]),
            ([-1.0, 0.0, 0.0, -2.0], [0.0; 4]),
        ];
        for (matrix, expected) in cases {
            let mut root = matrix;
            semidefinite_root(&mut root, 2);
            for k in 0..4 {
                let entry: f64 = (0..2).map(|m| root[m * 2 + k % 2] * root[m * 2 + k / 2]).sum();
                assert!((entry - expected[k]).abs() < 1e-12, "{matrix:?}: {root:?}");
            }
        }
    }

    #[test]
    fn factors_know_what_is_nothing_at_any_scale() {
        assert!(!cholesky(&mut [0.0], 1) && cholesky(&mut [1e-300], 1));
        // Rank one: the variance of the second direction is at rounding level.
        for scale in [1e-20, 1.0, 1e20] {
            let mut root = [4.0, 2.0, 2.0, 1.0 + 1e-15].map(|value| scale * value);
            semidefinite_root(&mut root, 2);
            let expected = [2.0, 1.0, 0.0, 0.0].map(|value| f64::sqrt(scale) * value);
            for (found, expected) in root.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-9 * f64::sqrt(scale), "{root:?}");
            }
        }
    }
}
