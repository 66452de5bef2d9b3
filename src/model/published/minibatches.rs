//! Minibatch derivatives (`hamcmc-2016`, section 4.2).

use super::super::mixture::Scalar;
use super::super::workspace::Derivatives;

impl<T: Scalar> Derivatives<'_, T> {
    /// Multiplies the derivatives of each bin by its weight (bins; equal in all frames).
    #[must_use]
    pub fn weighted(self, weights: &[T]) -> Self {
        let Self(dispersed) = self;
        let workspace = &mut *dispersed.workspace;
        for derivatives in [&mut workspace.speech[0], &mut workspace.noise[0]] {
            let weights = weights.iter().cycle();
            derivatives.iter_mut().zip(weights).for_each(|(derivative, &weight)| *derivative *= weight);
        }
        Self(dispersed)
    }

    /// Adds the gradient with respect to the noise spectra (bins x noise rank), each frame multiplied by its weight
    /// (frames).
    pub fn add_weighted_noise(&self, weights: &[T], gradient: &mut [T]) {
        let mut activations = self.0.activations.to_vec();
        for (column, &weight) in activations.chunks_exact_mut(self.0.mixture.rank()).zip(weights) {
            column.iter_mut().for_each(|activation| *activation *= weight);
        }
        self.add_noise_at(&activations, gradient);
    }
}
