//! Estimates of the metric from the draws and gradients of a window.

use super::MetricShape;
use super::linear::LinearMap;
use crate::Real;
use crate::dense::eigen;

/// Running moments of the draws and gradients of one block, and the values themselves if correlations are estimated.
#[derive(Debug, Clone)]
pub(super) struct Estimate {
    shape: MetricShape,
    count: f64,
    /// Mean and sum of squared deviations of every coordinate, for draws and for gradients.
    moments: [Vec<[f64; 2]>; 2],
    rows: [Vec<f64>; 2],
}

/// The weight of the identity in covariances, in draws.
const PRIOR_DRAWS: f64 = 5.0;
/// Fewest draws that a scale is estimated from.
const MIN_DRAWS: f64 = 5.0;

impl Estimate {
    pub fn new(dimension: usize, shape: MetricShape) -> Self {
        let moments = vec![[0.0; 2]; dimension];
        Self { shape, count: 0.0, moments: [moments.clone(), moments], rows: [Vec::new(), Vec::new()] }
    }

    pub fn reset(&mut self) {
        self.count = 0.0;
        self.moments.iter_mut().flatten().for_each(|moment| *moment = [0.0; 2]);
        self.rows.iter_mut().for_each(Vec::clear);
    }

    /// Adds a draw and the gradient there; ignores both if any number is not finite.
    pub fn add<T: Real>(&mut self, theta: &[T], gradient: &[T]) {
        if !theta.iter().chain(gradient).all(|value| value.is_finite()) {
            return;
        }
        self.count += 1.0;
        let keeps_rows = matches!(self.shape, MetricShape::Dense | MetricShape::LowRank(_));
        for ((moments, rows), values) in self.moments.iter_mut().zip(&mut self.rows).zip([theta, gradient]) {
            for ([mean, squares], &value) in moments.iter_mut().zip(values) {
                let away = value.widen() - *mean;
                *mean += away / self.count;
                *squares += away * (value.widen() - *mean);
            }
            if keeps_rows {
                rows.extend(values.iter().map(|value| value.widen()));
            }
        }
    }

    /// Returns the map in whose coordinates draws and gradients are equally large; `None` if the window has too few
    /// draws.
    ///
    /// For every coordinate, `scale^4 = var(theta) / var(grad U)`: the diagonal metric of least Fisher divergence. It
    /// follows the units of the coordinate, and is exact on a Gaussian of independent coordinates. A coordinate that
    /// did not move keeps its scale.
    pub fn map<T: Real>(&self, last: &LinearMap<T>, centre: &[T]) -> Option<LinearMap<T>> {
        if self.count < MIN_DRAWS {
            return None;
        }
        let [draws, gradients] = &self.moments;
        let scale: Vec<f64> = draws
            .iter()
            .zip(gradients)
            .zip(&last.scale)
            .map(|(([_, draws], [_, gradients]), last)| {
                let scale = (draws / gradients).sqrt().sqrt();
                if scale.is_finite() && scale > 0.0 { bounded::<T>(scale) } else { last.widen() }
            })
            .collect();
        let scales = scale.iter().map(|&scale| T::narrow(scale)).collect();
        let mut map = LinearMap::diagonal(centre.to_vec(), scales);
        let rank = match self.shape {
            MetricShape::Dense => scale.len(),
            MetricShape::LowRank(rank) => rank.min(scale.len()),
            MetricShape::None | MetricShape::Diagonal => 0,
        };
        if rank > 0 {
            (map.vectors, map.root) = self.directions(&scale, rank);
        }
        Some(map)
    }

    /// Returns the `rank` directions, in scaled coordinates, whose variance is furthest from one, and the roots of
    /// these variances.
    ///
    /// The metric `A` makes the covariances `C` of draws and `K` of gradients agree, `A K A = C`:
    /// `A = K^-1/2 (K^1/2 C K^1/2)^1/2 K^-1/2`.
    fn directions<T: Real>(&self, scale: &[f64], rank: usize) -> (Vec<T>, Vec<T>) {
        let n = scale.len();
        let covariance = |which: usize, weight: &dyn Fn(f64) -> f64| {
            let mut all: Vec<f64> = (0..n * n).map(|k| f64::from(k % (n + 1) == 0) * PRIOR_DRAWS).collect();
            let mut away = vec![0.0; n];
            for row in self.rows[which].chunks_exact(n) {
                for (i, away) in away.iter_mut().enumerate() {
                    *away = (row[i] - self.moments[which][i][0]) * weight(scale[i]);
                }
                for (column, &factor) in all.chunks_exact_mut(n).zip(&away) {
                    column.iter_mut().zip(&away).for_each(|(sum, away)| *sum += factor * away);
                }
            }
            let total = self.count - 1.0 + PRIOR_DRAWS;
            all.iter_mut().for_each(|value| *value /= total);
            all
        };
        let draws = covariance(0, &|scale| 1.0 / scale);
        let gradients = covariance(1, &|scale| scale);
        let root = power(gradients.clone(), n, 0.5);
        let inverse_root = power(gradients, n, -0.5);
        let middle = power(product(&root, &product(&draws, &root, n), n), n, 0.5);
        let mut metric = product(&inverse_root, &product(&middle, &inverse_root, n), n);
        let mut both = Vec::new();
        eigen(&mut metric, n, &mut both);
        let values = both.split_off(n * n);
        let mut order: Vec<usize> = (0..n).collect();
        let extent = |k: usize| libm::log(values[k]).abs();
        order.sort_by(|&a, &b| extent(b).total_cmp(&extent(a)));
        let mut vectors = Vec::with_capacity(n * rank);
        let mut roots = Vec::with_capacity(rank);
        for &k in order.iter().take(rank).filter(|&&k| values[k] > 0.0 && values[k].is_finite()) {
            vectors.extend(both[k * n..][..n].iter().map(|&x| T::narrow(x)));
            roots.push(T::narrow(bounded::<T>(values[k].sqrt())));
        }
        (vectors, roots)
    }
}

/// Returns the scale from a single gradient, `1 / sqrt(|gradient|)`: a change of about one nat.
pub(super) fn scale_of_gradient<T: Real>(gradient: T) -> T {
    let scale = 1.0 / gradient.widen().abs().sqrt();
    if scale.is_finite() { T::narrow(bounded::<T>(scale)) } else { T::one() }
}

/// Limits a scale so that its square is representable in `T`.
fn bounded<T: Real>(scale: f64) -> f64 {
    let largest = 0.5 * T::max_value().widen().sqrt();
    scale.clamp(1.0 / largest, largest)
}

fn product(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    let mut all = vec![0.0; n * n];
    for (column, b) in all.chunks_exact_mut(n).zip(b.chunks_exact(n)) {
        for (a, &factor) in a.chunks_exact(n).zip(b) {
            column.iter_mut().zip(a).for_each(|(sum, a)| *sum += factor * a);
        }
    }
    all
}

/// A power of a positive definite matrix.
fn power(mut matrix: Vec<f64>, n: usize, exponent: f64) -> Vec<f64> {
    let mut both = Vec::new();
    eigen(&mut matrix, n, &mut both);
    let (vectors, values) = both.split_at(n * n);
    let mut all = vec![0.0; n * n];
    for (vector, &value) in vectors.chunks_exact(n).zip(values) {
        let value = libm::pow(value.max(f64::MIN_POSITIVE), exponent);
        for (column, &factor) in all.chunks_exact_mut(n).zip(vector) {
            column.iter_mut().zip(vector).for_each(|(sum, x)| *sum += value * factor * x);
        }
    }
    all
}
