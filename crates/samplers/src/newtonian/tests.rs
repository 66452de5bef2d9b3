//! Fits of the proposal laws.

use super::*;
use crate::dense::solve;
use crate::vector::dot;

/// The mean of `1 / q` times a density over draws from `q` is one, if `q` is the density of its draws.
fn assert_normalised(law: &mut Law, n: usize, log_density: impl Fn(&[f64]) -> f64) {
    const DRAWS: usize = 100_000;
    let mut stream = SeedTree::new(6).rng(n as u64);
    let (mut x, mut sum, mut squares) = (vec![0.0; n], 0.0, 0.0);
    for _ in 0..DRAWS {
        law.draw(&mut stream, &mut x);
        let ratio = libm::exp(log_density(&x) - law.log_density(&x));
        sum += ratio / DRAWS as f64;
        squares += ratio * ratio / DRAWS as f64;
    }
    let error = ((squares - sum * sum) / DRAWS as f64).sqrt();
    assert!((sum - 1.0).abs() < 4.0 * error && error < 0.02, "{:?}: {sum} +- {error}", law.family);
}

fn standard_normal(x: &[f64]) -> f64 {
    -0.5 * dot(x, x) - 0.5 * x.len() as f64 * libm::log(2.0 * std::f64::consts::PI)
}

fn assert_parameters(law: &Law, expected: &[f64]) {
    let close = law.parameters.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9);
    assert!(close && law.parameters.len() == expected.len(), "{law:?}, expected {expected:?}");
}

/// Fits `law` to a site at `x` with this gradient and Hessian, and compares its parameters.
fn asserts_fitted(law: &mut Law) -> impl FnMut(Support, &[f64], &[f64], &[f64], &[f64]) {
    |support, x, gradient, hessian, expected| {
        law.fit(false, support, x, gradient, hessian);
        assert_parameters(law, expected);
    }
}

/// For a target of the fitted family, the proposal equals the target, from any state.
#[test]
fn laws_of_the_family_are_fitted_as_they_are() {
    let mut law = Law::default();
    let mut assert_fitted = asserts_fitted(&mut law);
    for x in [0.2, 0.7] {
        // Gamma(3, 2).
        assert_fitted(Support::HalfLine, &[x], &[2.0 - 2.0 / x], &[2.0 / (x * x)], &[3.0, 2.0]);
        // Beta(3, 4.5) on (-1, 2): slopes are with respect to the unscaled variable.
        let (u, v): (f64, f64) = ((x + 1.0) / 3.0, (2.0 - x) / 3.0);
        let slope = (3.5 / v - 2.0 / u) / 3.0;
        let curvature = (3.5 / (v * v) + 2.0 / (u * u)) / 9.0;
        let interval = Support::Interval { low: -1.0, high: 2.0 };
        assert_fitted(interval, &[x], &[slope], &[curvature], &[3.0, 4.5, -1.0, 3.0]);
        // Dirichlet(2, 5).
        let hessian = [1.0 / (x * x), 0.0, 0.0, 4.0 / (1.0 - x).powi(2)];
        let slopes = [-1.0 / x, -4.0 / (1.0 - x)];
        assert_fitted(Support::Simplex, &[x, 1.0 - x], &slopes, &hessian, &[2.0, 5.0]);
        // N(0.5, 1/4).
        assert_fitted(Support::Real, &[x], &[4.0 * (x - 0.5)], &[4.0], &[0.5]);
    }
}

/// Where no law of the family has these derivatives, the fallback is proposed; on both sides of every bound.
#[test]
fn what_is_not_of_the_family_gets_a_law_about_the_state() {
    let mut law = Law::default();
    let mut assert_fitted = asserts_fitted(&mut law);
    // Shape -1 and 0, rate -2.5 and 0, both infinite, the rate alone infinite.
    for (x, g, h) in [
        (0.5, 10.0, -8.0),
        (0.5, 10.0, -4.0),
        (0.5, -3.0, 1.0),
        (0.5, -1.0, 2.0),
        (1e10, 0.0, 1e300),
        (1.0, 1.7e308, 1e308),
    ] {
        assert_fitted(Support::HalfLine, &[x], &[g], &[h], &[2.0, 2.0 / x]);
    }
    // A concentration of -1.5, of 0, and an infinite one; the other is 2.
    for (own, other, expected) in [
        (-10.0, 0.0, [1.0, 2.0]),
        (-4.0, 0.0, [1.0, 2.0]),
        (1.7e308, -1.7e308, [1.0, 1.0 + 0.25 * (4.0 + 1.7e308)]),
    ] {
        let hessian = [own, other, other, 4.0];
        assert_fitted(Support::Simplex, &[0.5; 2], &[0.0; 2], &hessian, &expected);
    }
    // At 0.6 of the interval: concentrations of -2.6 and of -0.6.
    let interval = Support::Interval { low: -1.0, high: 2.0 };
    for (g, h) in [(10.0 / 3.0, 0.0), (-10.0 / 3.0, 0.0)] {
        assert_fitted(interval, &[0.8], &[g], &[h], &[2.2, 1.8, -1.0, 3.0]);
    }
}

/// A fitted law has the derivatives it was fitted to. A constant added to the whole Hessian of a simplex has no effect.
#[test]
fn laws_have_the_derivatives_that_they_are_fitted_to() {
    let mut law = Law::default();
    let falling = [-0.2, 0.1, 0.0, 0.1, 0.6, -0.1, 0.0, -0.1, 0.7];
    let rising = [0.5, 0.1, 0.0, 0.1, 0.6, -0.1, 0.0, -0.1, 0.7];
    for (family, hessian) in [(Family::Cauchy, falling), (Family::Normal, rising)] {
        let (x, gradient) = ([0.5, 0.0, 0.1], [1.0, 0.1, 0.0]);
        law.fit(false, Support::Real, &x, &gradient, &hessian);
        assert_eq!(law.family, family);
        let at = |i: usize, a: f64, j: usize, b: f64| {
            let mut x = x;
            x[i] += a;
            x[j] += b;
            -law.log_density(&x)
        };
        let e = 1e-4;
        for i in 0..3 {
            let slope = (at(i, e, i, 0.0) - at(i, -e, i, 0.0)) / (2.0 * e);
            assert!((slope - gradient[i]).abs() < 1e-6, "{family:?} {i}: {slope}");
            for j in 0..3 {
                let second = at(i, e, j, e) - at(i, e, j, -e) - at(i, -e, j, e) + at(i, -e, j, -e);
                let curvature = second / (4.0 * e * e);
                assert!((curvature - hessian[3 * i + j]).abs() < 1e-5, "{family:?} {i} {j}: {curvature}");
            }
        }
    }
    // Dirichlet(2, 5).
    let x: f64 = 0.3;
    let hessian = [1.0 / (x * x) + 0.7, 0.7, 0.7, 4.0 / (1.0 - x).powi(2) + 0.7];
    law.fit(false, Support::Simplex, &[x, 1.0 - x], &[-1.0 / x, -4.0 / (1.0 - x)], &hessian);
    assert_parameters(&law, &[2.0, 5.0]);
}

/// Asserts that the factor of `law` is that of `precision`.
fn assert_precision<const N: usize>(law: &Law, precision: [[f64; N]; N]) {
    for column in 0..N {
        let mut e = precision[column].to_vec();
        solve(&law.factor, &mut e);
        for (row, e) in e.iter().enumerate() {
            assert!((e - f64::from(row == column)).abs() < 1e-9, "{law:?}, expected {precision:?}");
        }
    }
}

/// Widths of local proposals, which affect how far a chain moves, not its stationary distribution.
#[test]
fn local_laws_reach_as_far_as_the_density_stays_alike() {
    let mut law = Law::default();
    let mut fitted = |support, x: &[f64], gradient: &[f64], hessian: &[f64]| {
        law.fit(true, support, x, gradient, hessian);
        law.clone()
    };
    assert_parameters(&fitted(Support::HalfLine, &[1.5], &[0.4], &[-0.6]), &[3.71, 3.71 / 1.5]);
    let hessian = [2.0, 0.3, 0.1, 0.3, -5.0, 0.2, 0.1, 0.2, 12.0];
    let simplex = fitted(Support::Simplex, &[0.3, 0.4, 0.3], &[1.0, -0.5, 0.2], &hessian);
    // The mean slope is 0.16, the spread 0.3864, the largest curvature term `x_i |K_ii|` 3.6.
    assert_parameters(&simplex, &[0.3, 0.4, 0.3].map(|x| x * (3.0 + 0.3864 + 3.6)));
    let interval = fitted(Support::Interval { low: -1.0, high: 2.0 }, &[0.8], &[0.1], &[-1.5]);
    let total = 2.0 + 0.24 * (13.5 + 0.09);
    assert_parameters(&interval, &[1.0 + 0.6 * total, 1.0 + 0.4 * total, -1.0, 3.0]);
    // Eigenvalues 3 and -1: the absolute value of the matrix is 2 on its diagonal and 1 beside it.
    let real = fitted(Support::Real, &[0.3, 0.4], &[0.5, -0.25], &[1.0, 2.0, 2.0, 1.0]);
    assert_parameters(&real, &[0.3, 0.4]);
    assert_precision(&real, [[2.25, 0.875], [0.875, 2.0625]]);
    // Eigenvalues are at least a thousandth of the largest, and 1 if all are 0.
    assert_precision(
        &fitted(Support::Real, &[0.0; 2], &[0.0; 2], &[1000.0, 0.0, 0.0, 0.01]),
        [[1000.0, 0.0], [0.0, 1.0]],
    );
    let hessian = [0.1, 0.0, 0.0, 0.0, 0.2, 0.0, 0.0, 0.0, 1e-6];
    let real = fitted(Support::Real, &[0.0; 3], &[0.0; 3], &hessian);
    assert_precision(&real, [[0.1, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 2e-4]]);
    assert_precision(&fitted(Support::Real, &[0.0; 2], &[0.0; 2], &[0.0; 4]), [[1.0, 0.0], [0.0, 1.0]]);
}

/// The mean is the Newton step; the direction of negative curvature has the given variance.
#[test]
fn the_printed_remedy_is_that_of_the_paper() {
    let mut law = Law { indefinite: Indefinite::SmallVariance(0.1), ..Law::default() };
    let hessian = [1.0, 2.0, 2.0, 1.0];
    // The inverse of the Hessian is [-1, 2; 2, -1] / 3.
    law.fit(false, Support::Real, &[0.3, 0.4], &[0.6, -0.3], &hessian);
    assert_eq!(law.family, Family::Normal);
    assert_parameters(&law, &[0.3 + 0.4, 0.4 - 0.5]);
    assert_precision(&law, [[6.5, -3.5], [-3.5, 6.5]]);
    law.fit(false, Support::Real, &[0.0; 3], &[0.0; 3], &[1.0, 0.0, 0.0, 0.0, -2.0, 0.0, 0.0, 0.0, 4.0]);
    assert_precision(&law, [[1.0, 0.0, 0.0], [0.0, 10.0, 0.0], [0.0, 0.0, 4.0]]);
    // Without a curvature there is no Newton step.
    law.fit(false, Support::Real, &[0.3, 0.4], &[0.6, -0.3], &[1.0, 0.0, 0.0, 0.0]);
    assert_eq!(law.family, Family::None);
}

#[test]
fn densities_are_those_of_the_draws() {
    let mut law = Law::default();
    let precision = [0.5, 0.1, 0.0, 0.1, 0.6, -0.1, 0.0, -0.1, 0.7];
    law.fit(false, Support::Real, &[0.1, 0.2, -0.1], &[0.1, 0.1, 0.0], &precision);
    assert_eq!(law.family, Family::Normal);
    assert_normalised(&mut law, 3, standard_normal);
    // One direction of negative curvature, along the gradient: a Cauchy law in one and in three dimensions.
    law.fit(false, Support::Real, &[0.5], &[1.0], &[-0.2]);
    assert_eq!(law.family, Family::Cauchy);
    assert_normalised(&mut law, 1, standard_normal);
    let falling = [-0.2, 0.1, 0.0, 0.1, 0.6, -0.1, 0.0, -0.1, 0.7];
    law.fit(false, Support::Real, &[0.5, 0.0, 0.1], &[1.0, 0.1, 0.0], &falling);
    assert_eq!(law.family, Family::Cauchy);
    assert_normalised(&mut law, 3, standard_normal);
    for local in [false, true] {
        law.fit(local, Support::HalfLine, &[1.5], &[0.4], &[0.6]);
        assert_eq!(law.family, Family::Gamma);
        // 3^3 / 2 x^2 exp(-3 x).
        assert_normalised(&mut law, 1, |x| libm::log(13.5 * x[0] * x[0]) - 3.0 * x[0]);
        let hessian = [12.0, 0.0, 0.0, 0.0, 5.0, 1.0, 0.0, 1.0, 6.0];
        law.fit(local, Support::Interval { low: -1.0, high: 2.0 }, &[0.8], &[0.1], &[1.5]);
        assert_eq!(law.family, Family::Beta);
        // Beta(3, 3) has the normaliser 30.
        let share = |x: &[f64]| (x[0] + 1.0) * (2.0 - x[0]) / 9.0;
        assert_normalised(&mut law, 1, |x| libm::log(10.0) + 2.0 * libm::log(share(x)));
        law.fit(local, Support::Simplex, &[0.3, 0.4, 0.3], &[1.0, -0.5, 0.0], &hessian);
        assert_eq!(law.family, Family::Dirichlet);
        // Dirichlet(2, 2, 2) has the normaliser 5!.
        assert_normalised(&mut law, 3, |x| libm::log(120.0 * x[0] * x[1] * x[2]));
    }
}
