//! The largest curvature of a Gaussian.

use alphamf_samplers::targets::Gaussian;

/// The largest eigenvalue of the precision, by power iteration.
pub fn largest_curvature(gaussian: &Gaussian) -> f64 {
    let n = gaussian.mean().len();
    let (mut v, mut norm) = (vec![1.0; n], 1.0);
    for _ in 0..200 {
        let w: Vec<f64> = (0..n).map(|i| (0..n).map(|j| gaussian.precision(i, j) * v[j]).sum()).collect();
        norm = w.iter().map(|w| w * w).sum::<f64>().sqrt();
        v = w.iter().map(|w| w / norm).collect();
    }
    norm
}
