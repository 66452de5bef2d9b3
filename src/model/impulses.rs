//! The impulse variables: one per source, bin and frame.

use super::marginal::MarginalTable;
use super::mixture::{Mixture, Scalar};
use crate::random::Stream;
use crate::stable::{ParameterError, PositiveStable, vector};
use std::sync::Arc;

/// How the impulse variables of a stretch of frames are treated.
#[derive(Debug, Clone)]
pub enum Impulses<T> {
    /// Integrated out, by a table made for the exponents of the mixture.
    Integrated(Arc<MarginalTable>),
    /// At their sampled values.
    Sampled {
        /// Impulse variables of speech, bins x frames.
        speech: Vec<T>,
        /// Impulse variables of noise, bins x frames.
        noise: Vec<T>,
    },
}

/// The Metropolis step for the impulse variables, with their prior as proposal: a proposal is accepted
/// with the ratio of the likelihoods (`hamcmc-2016`, section 4.2).
#[derive(Debug, Clone)]
pub struct ImpulseStep {
    speech: PositiveStable,
    noise: PositiveStable,
    proposals: [Vec<f32>; 2],
}

impl ImpulseStep {
    /// For sources with the given characteristic exponents.
    ///
    /// # Errors
    /// If an exponent is outside (0, 2].
    pub fn new(alpha_speech: f64, alpha_noise: f64) -> Result<Self, ParameterError> {
        Ok(Self {
            speech: PositiveStable::new(alpha_speech / 2.0)?,
            noise: PositiveStable::new(alpha_noise / 2.0)?,
            proposals: Default::default(),
        })
    }

    /// Draws both impulse variables of every bin from their priors.
    #[must_use]
    pub fn draw<T: Scalar>(&mut self, count: usize, stream: &mut Stream) -> Impulses<T> {
        self.propose(count, stream);
        let [speech, noise] =
            self.proposals.each_ref().map(|draws| draws.iter().copied().map(T::convert).collect());
        Impulses::Sampled { speech, noise }
    }

    /// One step for every bin, speech first: returns the number of accepted proposals, out of two per bin.
    ///
    /// `lambda` are the dispersions of speech and noise and `power` the observed `|X|^2`, bins x frames each.
    /// Impulse variables that are integrated out need no step.
    pub fn step<T: Scalar>(
        &mut self,
        impulses: &mut Impulses<T>,
        mixture: &Mixture<T>,
        lambda: (&[T], &[T]),
        power: &[T],
        stream: &mut Stream,
    ) -> usize {
        let Impulses::Sampled { speech, noise } = impulses else { return 0 };
        self.propose(power.len(), stream);
        let uniforms = vector::Philox::from_rng(stream);
        let [speech_proposals, noise_proposals] = &self.proposals;
        let (speech_exponent, noise_exponent) = mixture.exponents();
        vector::dispatch(
            #[inline(always)]
            || {
                let mut accepted = 0;
                for (block, first) in (0..power.len()).step_by(2).enumerate() {
                    let bits = uniforms.block(block as u32);
                    for i in first..(first + 2).min(power.len()) {
                        let scale_speech = (speech_exponent * lambda.0[i].fast_ln()).fast_exp();
                        let scale_noise = (noise_exponent * lambda.1[i].fast_ln()).fast_exp();
                        let log_uniform = |k: usize| vector::uniform(bits[2 * (i - first) + k]).fast_ln();
                        let likelihood = |variance: T| -(variance.fast_ln() + power[i] / variance);
                        let mut update = |phi: &mut T, scale: T, proposal: f32, other: T, k: usize| {
                            let proposal = T::convert(proposal);
                            let gain =
                                likelihood(scale * proposal + other) - likelihood(scale * *phi + other);
                            let accept = T::convert(log_uniform(k)) < gain;
                            *phi = if accept { proposal } else { *phi };
                            accepted += usize::from(accept);
                        };
                        update(&mut speech[i], scale_speech, speech_proposals[i], scale_noise * noise[i], 0);
                        update(&mut noise[i], scale_noise, noise_proposals[i], scale_speech * speech[i], 1);
                    }
                }
                accepted
            },
        )
    }

    fn propose(&mut self, count: usize, stream: &mut Stream) {
        for (law, draws) in [self.speech, self.noise].iter().zip(&mut self.proposals) {
            draws.resize(count, 0.0);
            law.fill(stream, draws);
        }
    }
}
