//! Displacements by inner products.

use super::*;
use crate::lbfgs::InverseHessian;
use crate::random::SeedTree;
use crate::vector::dot;
use rand_distr::{Distribution, StandardNormal};

/// The step from inner products equals the step from the vectors, for pairs of positive, negative and zero curvature.
#[test]
fn a_displacement_by_inner_products_is_that_of_the_vectors() {
    const DIMENSION: usize = 9;
    let mut stream = SeedTree::new(4).rng(0);
    for (pairs, initial) in [(1, InitialScale::Fixed(0.3)), (4, InitialScale::Pairs(1.0))] {
        let mut draw =
            || -> Vec<f64> { (0..DIMENSION).map(|_| StandardNormal.sample(&mut stream)).collect() };
        let mut s: Vec<Vec<f64>> = (0..pairs).map(|_| draw()).collect();
        let bend = |s: &Vec<f64>| s.iter().enumerate().map(|(i, s)| s * (i + 1) as f64).collect::<Vec<f64>>();
        let mut y: Vec<Vec<f64>> = s.iter().map(bend).collect();
        if pairs > 1 {
            y[1].iter_mut().for_each(|y| *y = -*y);
            // Nearly orthogonal: the check of curvature does not depend on the lengths of the vectors.
            (s[2], y[2]) = (vec![0.0; DIMENSION], vec![0.0; DIMENSION]);
            (s[2][0], y[2][0], y[2][1]) = (1e6, 1e-3, 1e6);
        }
        let (g, z) = (draw(), draw());
        let basis: Vec<&Vec<f64>> = s.iter().chain(&y).chain([&g, &z]).collect();
        let size = basis.len();
        let lower = (0..size).flat_map(|i| (0..=i).map(move |j| (i, j)));
        let products = Products { size, lower: lower.map(|(i, j)| dot(basis[i], basis[j])).collect() };
        let coefficients = displacement(&products, 0..pairs, pairs, (0.1, 0.7), initial, 0.0);
        let mut found = vec![0.0; DIMENSION];
        basis.iter().zip(&coefficients).for_each(|(vector, &c)| add_scaled(&mut found, c, vector));

        let mut inverse = InverseHessian::new(DIMENSION, pairs);
        inverse.reset(initial.scale(s.iter().zip(&y).map(|(s, y)| (&s[..], &y[..]))));
        let used = s.iter().zip(&y).filter(|(s, y)| inverse.push(s, y)).count();
        assert_eq!(used, if pairs > 1 { pairs - 2 } else { 1 });
        let mut expected = g.clone();
        inverse.multiply_root_transposed(&mut expected);
        expected.iter_mut().zip(&z).for_each(|(v, z)| *v = 0.7 * z - 0.1 * *v);
        inverse.multiply_root(&mut expected);
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-10, "{found} {expected}");
        }
    }
}
