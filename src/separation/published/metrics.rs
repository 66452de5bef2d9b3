//! Expected Fisher information as a metric, for Riemannian samplers.

use super::super::factor_target::{ActivationTarget, NoiseTarget, transpose};
use super::super::state::sum;
use crate::parallel::*;
use crate::samplers::Metric;

impl ActivationTarget<'_> {
    /// The diagonal of the expected Fisher information given the impulse variables, on all bins; see [`Information`].
    fn information(&mut self, theta: &[f32]) -> Information {
        self.disperse(theta);
        let Self { mixture, impulses, drift, workspace, .. } = self;
        workspace.inform(mixture, impulses, drift);
        let mut information = Information::zeros(theta.len());
        let Information { values, slopes } = &mut information;
        workspace.activation_information(mixture, values, slopes);
        information
    }
}

impl NoiseTarget<'_> {
    /// As for the activations.
    fn information(&mut self, theta: &[f32]) -> Information {
        self.load(theta);
        let Self { mixture, tiles, chain, pool } = self;
        let mixture = &**mixture;
        tiles.par_iter_mut().with_max_len(1).for_each_init(
            || pool.take(mixture.bins),
            |workspace, tile| {
                workspace.disperse(mixture, &tile.activations);
                workspace.modulate_noise(&tile.drift);
                workspace.inform(mixture, &tile.impulses[*chain], &tile.drift);
                tile.noise_raise.fill(0.0);
                tile.noise_lower.fill(0.0);
                let (values, slopes) = (&mut tile.noise_raise, &mut tile.noise_lower);
                workspace.add_noise_information(mixture, &tile.activations, values, slopes);
            },
        );
        let mut information = Information::zeros(theta.len());
        let (values, slopes) = sum(tiles, |tile| (&tile.noise_raise, &tile.noise_lower));
        transpose(&values, mixture.bins, &mut information.values);
        transpose(&slopes, mixture.bins, &mut information.slopes);
        information
    }
}

/// The metric of a target that is the diagonal of its Fisher information.
macro_rules! diagonal_metric {
    ($target:ty) => {
        impl Metric<f32> for $target {
            fn is_diagonal(&self) -> bool {
                true
            }

            fn metric(&mut self, theta: &[f32], metric: &mut [f32]) {
                self.information(theta).metric(theta, metric);
            }

            fn divergence(&mut self, theta: &[f32], inverse: bool, divergence: &mut [f32]) -> bool {
                self.information(theta).divergence(theta, inverse, divergence);
                true
            }
        }
    };
}

diagonal_metric!(ActivationTarget<'_>);
diagonal_metric!(NoiseTarget<'_>);

/// The diagonal of a Fisher information and its derivative along the same coordinate.
///
/// The metric adds one in the coordinate's own units, `1 / theta^2`: what a single observation of it would tell,
/// and what keeps moves bounded where the data say nothing.
struct Information {
    values: Vec<f32>,
    slopes: Vec<f32>,
}

impl Information {
    fn zeros(count: usize) -> Self {
        Self { values: vec![0.0; count], slopes: vec![0.0; count] }
    }

    fn metric(&self, theta: &[f32], metric: &mut [f32]) {
        for ((metric, &x), &value) in metric.iter_mut().zip(theta).zip(&self.values) {
            *metric = value + 1.0 / (x * x).max(f32::MIN_POSITIVE);
        }
    }

    /// The derivative of the inverse of the metric, or of its root. Written for `x^2 G`, which is of order one.
    fn divergence(&self, theta: &[f32], inverse: bool, divergence: &mut [f32]) {
        let information = self.values.iter().zip(&self.slopes);
        for ((divergence, &x), (&value, &slope)) in divergence.iter_mut().zip(theta).zip(information) {
            let g = 1.0 + x * x * value;
            let fall = 2.0 - x * x * x * slope;
            *divergence = if inverse { x * fall / (g * g) } else { 0.5 * fall / (g * g.sqrt()) };
        }
    }
}
