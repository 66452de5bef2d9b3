//! Sampled impulse variables, as in the paper.

use super::super::mixture::Scalar;
use super::super::workspace::Chunk;

/// The impulse variables of a tile.
#[derive(Debug, Clone)]
pub struct SampledVariables<T> {
    /// Impulse variables of speech, bins x frames.
    pub speech: Vec<T>,
    /// Impulse variables of noise, bins x frames.
    pub noise: Vec<T>,
}

impl<T: Scalar> SampledVariables<T> {
    /// The variances of speech and noise in entry `i`, from their logarithms for impulse variables of one.
    #[inline(always)]
    pub(in crate::model) fn variances(&self, i: usize, log_speech: T, log_noise: T) -> [T; 2] {
        [self.speech[i] * log_speech.fast_exp(), self.noise[i] * log_noise.fast_exp()]
    }

    /// Writes the gain and the two powers of a chunk of bins that begins with entry `first`.
    #[inline(always)]
    pub(in crate::model) fn share(&self, first: usize, power: &[T], chunk: &mut Chunk<T>) {
        for i in 0..chunk.len {
            let [speech, noise] = self.variances(first + i, chunk.log_speech[i], chunk.log_noise[i]);
            let variance = speech + noise;
            let gain = speech / variance;
            let excess = power[first + i] / variance;
            let [gains, speech_power, noise_power] = &mut chunk.found;
            gains[i] = gain;
            speech_power[i] = gain * excess;
            noise_power[i] = (T::one() - gain) * excess;
        }
    }

    /// Writes the potential of a chunk of bins, and its first two derivatives with respect to the log variance of one
    /// source.
    #[inline(always)]
    pub(super) fn expand(&self, first: usize, power: &[T], of_speech: bool, chunk: &mut Chunk<T>) {
        let two = T::one() + T::one();
        for i in 0..chunk.len {
            let [speech, noise] = self.variances(first + i, chunk.log_speech[i], chunk.log_noise[i]);
            let variance = speech + noise;
            let share = if of_speech { speech } else { noise } / variance;
            let excess = power[first + i] / variance;
            let slope = share * (T::one() - excess);
            let [potentials, slopes, curvatures] = &mut chunk.found;
            potentials[i] = variance.fast_ln() + excess;
            slopes[i] = slope;
            curvatures[i] = slope + share * share * (two * excess - T::one());
        }
    }
}
