//! A small network that corrects what the model gets wrong in the same way on every recording.
//!
//! The model takes the bins of a frame for independent given their dispersions, and frames for independent given the
//! activations; voices and noises are neither. So the gain of a bin can be bettered by looking at the posterior around
//! it. How, is learned as in the regression adjustment of approximate Bayesian computation (Beaumont, Zhang and
//! Balding 2002): from recordings that are simulated with clean speech, for which the best gain is known, a
//! convolutional network learns to move the logarithm of the odds of speech, from the gain, the power and the
//! dispersions up to half a second and 800 Hz away.

mod features;
mod file;
mod learning;
mod network;
#[cfg(test)]
mod tests;

pub use features::Posterior;
pub(crate) use file::CHANNELS;
pub use file::{RefinerError, RefinerHeader, TensorFileError};
pub use learning::Change;
pub(crate) use learning::{Example, Learning};

use crate::kernels::vector::{log_odds, logistic};
use features::{INPUTS, OUTPUTS, correction};
use network::Network;

/// How much of a correction is applied: what was learned from simulated noise holds for real noise only in part. The
/// best of 0.5, 0.7 and 1 on real noise.
const TRUST: f32 = 0.7;

/// Corrects posterior-mean gains.
#[derive(Debug, Clone, PartialEq)]
pub struct Refiner {
    header: RefinerHeader,
    network: Network,
}

impl Refiner {
    /// The refiner that comes with this crate: `models/refiner-16k.safetensors`.
    ///
    /// # Errors
    /// Never, unless the crate was built with a damaged file.
    pub fn shipped() -> Result<Self, RefinerError> {
        Self::from_bytes(include_bytes!("../../models/refiner-16k.safetensors"))
    }

    /// What it was made for and from.
    #[must_use]
    pub fn header(&self) -> &RefinerHeader {
        &self.header
    }

    /// The corrected gain, bins x frames.
    ///
    /// # Panics
    /// If the matrices of the posterior differ in size.
    #[must_use]
    pub fn refine<M: AsRef<[f32]>>(&self, posterior: &Posterior<M>) -> Vec<f32> {
        let before = posterior.gain.as_ref();
        let output = self.network.forward(&posterior.grid());
        let mut refined = Vec::with_capacity(before.len());
        for (t, frame) in before.chunks_exact(posterior.bins).enumerate() {
            refined.extend(frame.iter().enumerate().map(|(bin, &before)| {
                let odds = log_odds(before);
                let [offset, multiple] = correction(&output, t, bin);
                let corrected = odds + TRUST * (offset + multiple * odds);
                // A network of large weights may overflow.
                logistic(if corrected.is_finite() { corrected } else { odds })
            }));
        }
        refined
    }

    fn empty(header: RefinerHeader) -> Self {
        let network = Network::new(INPUTS, header.channels, OUTPUTS);
        Self { header, network }
    }
}
