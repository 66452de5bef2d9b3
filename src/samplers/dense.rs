//! Small dense symmetric matrices, column-major.

use super::Real;
use super::vector::dot;

/// Replaces the lower triangle of `a` (`n x n`) by its Cholesky factor `L`, `L L' = a`, and clears the rest.
/// Returns false, leaving rubbish, if `a` is not positive definite.
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

/// `v <- L^-T v`. Of a standard normal `v` it makes a draw from `N(0, (L L')^-1)`.
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
}
