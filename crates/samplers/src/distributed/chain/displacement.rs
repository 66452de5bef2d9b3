//! The HAMCMC step from inner products alone, which every rank computes from identical sums.

use crate::InitialScale;
use crate::vector::add_scaled;

/// The inner products between the pairs' `s`, their `y`, the gradient and the noise: a symmetric matrix, stored as its
/// lower triangle.
pub(super) struct Products {
    pub(super) size: usize,
    pub(super) lower: Vec<f64>,
}

impl Products {
    fn between(&self, i: usize, j: usize) -> f64 {
        let (high, low) = (i.max(j), i.min(j));
        self.lower[high * (high + 1) / 2 + low]
    }

    /// Returns the inner product of two linear combinations, given by their coefficients.
    fn dot(&self, a: &[f64], b: &[f64]) -> f64 {
        let terms = (0..self.size).flat_map(|i| (0..self.size).map(move |j| (i, j)));
        terms.map(|(i, j)| a[i] * b[j] * self.between(i, j)).sum()
    }
}

/// One L-BFGS update of `H`; its vectors are coefficients of linear combinations.
struct Update {
    s: Vec<f64>,
    y: Vec<f64>,
    bs: Vec<f64>,
    q: Vec<f64>,
    sy: f64,
    sbs: f64,
}

/// Returns the coefficients of `S (noise z - step S^T g)`, with the root `S` of [`lbfgs`](crate::lbfgs) from the pairs
/// in the order of `ages`.
pub(super) fn displacement(
    products: &Products,
    ages: impl Iterator<Item = usize> + Clone,
    pairs: usize,
    (step, noise): (f64, f64),
    initial: InitialScale,
    trust_region: f64,
) -> Vec<f64> {
    let unit =
        |index: usize| -> Vec<f64> { (0..products.size).map(|i| f64::from(u8::from(i == index))).collect() };
    let usable = ages.filter(|&pair| {
        let (ss, sy, yy) = (
            products.between(pair, pair),
            products.between(pair, pairs + pair),
            products.between(pairs + pair, pairs + pair),
        );
        let curved = sy.is_finite() && yy.is_finite() && sy > f64::EPSILON.sqrt() * (ss * yy).sqrt();
        curved && sy >= trust_region * ss
    });
    let scale = match initial {
        InitialScale::Fixed(gamma) => gamma,
        InitialScale::Pairs(gamma) => usable
            .clone()
            .map(|pair| products.between(pair, pairs + pair) / products.between(pairs + pair, pairs + pair))
            .reduce(f64::min)
            .unwrap_or(gamma),
    };
    let mut updates: Vec<Update> = Vec::new();
    for pair in usable {
        let (s, y) = (unit(pair), unit(pairs + pair));
        let mut bs: Vec<f64> = s.iter().map(|s| s / scale).collect();
        for past in &updates {
            let (up, down) = (products.dot(&past.y, &s) / past.sy, products.dot(&past.bs, &s) / past.sbs);
            add_scaled(&mut bs, up, &past.y);
            add_scaled(&mut bs, -down, &past.bs);
        }
        let (sy, sbs) = (products.dot(&s, &y), products.dot(&s, &bs));
        if sbs.is_finite() && sbs > 0.0 {
            let mut q = y.clone();
            add_scaled(&mut q, (sy / sbs).sqrt(), &bs);
            updates.push(Update { s, y, bs, q, sy, sbs });
        }
    }
    let mut v = unit(2 * pairs);
    for update in updates.iter().rev() {
        let share = products.dot(&update.s, &v) / update.sy;
        add_scaled(&mut v, -share, &update.q);
    }
    v.iter_mut().for_each(|v| *v *= -step * scale.sqrt());
    v[2 * pairs + 1] += noise;
    v.iter_mut().for_each(|v| *v *= scale.sqrt());
    for update in &updates {
        let share = products.dot(&update.q, &v) / update.sy;
        add_scaled(&mut v, -share, &update.s);
    }
    v
}

#[cfg(test)]
mod tests;
