//! Expected Fisher information as a metric, for Riemannian samplers.

use super::super::factor_target::{ActivationTarget, NoiseTarget, transpose};
use super::super::state::sum;
use crate::parallel::*;
use crate::samplers::Metric;

impl ActivationTarget<'_> {
    /// The diagonal of the expected Fisher information given the impulse variables, on all bins.
    fn information(&mut self, theta: &[f32]) -> Diagonal {
        let mut diagonal = Diagonal::zeros(theta.len());
        let (mut dispersed, impulses) = self.disperse(theta);
        dispersed.inform(impulses).activations(&mut diagonal.values, &mut diagonal.slopes);
        diagonal
    }
}

impl NoiseTarget<'_> {
    /// The diagonal of the expected Fisher information of the noise spectra.
    fn information(&mut self, theta: &[f32]) -> Diagonal {
        self.load(theta);
        let Self { mixture, tiles, impulses, pool, .. } = self;
        let mixture = &**mixture;
        tiles.par_iter_mut().zip(&*impulses).with_max_len(1).for_each_init(
            || pool.take(),
            |workspace, (tile, &impulses)| {
                let mut dispersed = workspace.disperse(mixture, &tile.activations).modulated(&tile.field);
                tile.noise_numerator.fill(0.0);
                tile.noise_denominator.fill(0.0);
                dispersed.inform(impulses).add_noise(&mut tile.noise_numerator, &mut tile.noise_denominator);
            },
        );
        let mut diagonal = Diagonal::zeros(theta.len());
        let (values, slopes) = sum(tiles, |tile| (&tile.noise_numerator, &tile.noise_denominator));
        transpose(&values, mixture.bins, &mut diagonal.values);
        transpose(&slopes, mixture.bins, &mut diagonal.slopes);
        diagonal
    }
}

/// Implements the metric of a target as the diagonal of its Fisher information.
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
/// The metric adds one in the coordinate's own units, `1 / theta^2`: the information of a single observation, which
/// bounds moves where the data carry none.
struct Diagonal {
    values: Vec<f32>,
    slopes: Vec<f32>,
}

impl Diagonal {
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
