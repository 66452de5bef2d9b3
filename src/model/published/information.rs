//! Fisher information of the factors, for Riemannian samplers.

use super::super::mixture::{ImpulseVariables, Scalar};
use super::super::workspace::{Dispersions, Workspace};
use crate::kernels::products::{Columns, accumulate_outer, product_with_transpose};

/// The expected Fisher information `((2 / alpha) v_s / (v lambda_s))^2` of each bin about its dispersions, and its
/// derivative with respect to the dispersion. Impulse variables are given, or 1 if integrated out. The dispersion of
/// noise is the one before the field.
#[derive(Debug)]
pub struct Information<'a, T>(Dispersions<'a, T>);

impl<T: Scalar> Dispersions<'_, T> {
    /// The Fisher information of every bin.
    pub fn inform(&mut self, impulses: ImpulseVariables<T>) -> Information<'_, T> {
        let (speech_exponent, noise_exponent) = self.mixture.variance_exponents();
        let two = T::one() + T::one();
        let information = |exponent: T, lambda: T, share: T| {
            let root = exponent * share / lambda;
            (root * root, two * root * root * (exponent * (T::one() - share) - T::one()) / lambda)
        };
        let Workspace { lambda_speech, lambda_noise, speech: of_speech, noise: of_noise, .. } =
            &mut *self.workspace;
        for i in 0..lambda_speech.len() {
            let (lambda_speech, lambda_noise) = (lambda_speech[i], lambda_noise[i]);
            let (log_speech, log_noise) =
                (speech_exponent * lambda_speech.fast_ln(), noise_exponent * lambda_noise.fast_ln());
            let [speech, noise] = match impulses {
                ImpulseVariables::Integrated(_) => [log_speech.fast_exp(), log_noise.fast_exp()],
                ImpulseVariables::Sampled(values) => values.variances(i, log_speech, log_noise),
            };
            let share = speech / (speech + noise);
            (of_speech[0][i], of_speech[1][i]) = information(speech_exponent, lambda_speech, share);
            let (value, slope) = information(noise_exponent, lambda_noise, T::one() - share);
            let field = self.field.get(i).copied().unwrap_or_else(T::one);
            (of_noise[0][i], of_noise[1][i]) = (value * field * field, slope * field * field * field);
        }
        Information(self.reborrow())
    }
}

impl<T: Scalar> Information<'_, T> {
    /// Writes the diagonal for the activations (rank x frames), and the derivative of each entry with respect to its
    /// activation.
    pub fn activations(&self, information: &mut [T], slope: &mut [T]) {
        let Dispersions { mixture, workspace, .. } = &self.0;
        let (bins, rank, split) = (mixture.bins, mixture.rank(), mixture.speech_rank());
        for (factor, [values, slopes], first) in
            [(&mixture.speech, &workspace.speech, 0), (&mixture.noise, &workspace.noise, split)]
        {
            let power = |n| factor.spectra.iter().map(|w| w.powi(n)).collect::<Vec<T>>();
            let (squares, cubes) = (power(2), power(3));
            let columns = [&squares, values, &cubes, slopes].map(|data| Columns::new(data, bins));
            product_with_transpose(columns[0], columns[1], information, rank, first);
            product_with_transpose(columns[2], columns[3], slope, rank, first);
        }
    }

    /// Adds the diagonal for the noise spectra (bins x noise rank), and its derivative.
    pub fn add_noise(&self, information: &mut [T], slope: &mut [T]) {
        let Dispersions { mixture, activations, workspace, .. } = &self.0;
        for (values, n, sums) in [(&workspace.noise[0], 2, information), (&workspace.noise[1], 3, slope)] {
            let powers: Vec<T> = activations.iter().map(|h| h.powi(n)).collect();
            accumulate_outer(Columns::new(values, mixture.bins), mixture.noise_activations(&powers), sums);
        }
    }
}
