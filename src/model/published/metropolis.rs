//! Metropolis sampling of the impulse variables, one per source, bin and frame.

use super::super::mixture::{Mixture, Scalar};
use super::super::workspace::CHUNK;
use super::SampledVariables;
use crate::kernels::vector;
use crate::random::SeededRng;
use crate::stable::{ParameterError, PositiveStable};

/// The Metropolis step for the impulse variables, with their prior as proposal: a proposal is accepted
/// with the ratio of the likelihoods (`hamcmc-2016`, section 4.2).
#[derive(Debug, Clone)]
pub struct ImpulseStep {
    speech: PositiveStable,
    noise: PositiveStable,
    proposals: [Vec<f32>; 2],
    /// Accepted and total proposals.
    counts: [u64; 2],
}

impl ImpulseStep {
    /// Creates the step for sources with the given characteristic exponents.
    ///
    /// # Errors
    /// If an exponent is outside (0, 2].
    pub fn new(alpha_speech: f64, alpha_noise: f64) -> Result<Self, ParameterError> {
        Ok(Self {
            speech: PositiveStable::new(alpha_speech / 2.0)?,
            noise: PositiveStable::new(alpha_noise / 2.0)?,
            proposals: Default::default(),
            counts: [0; 2],
        })
    }

    /// Draws both impulse variables of `count` bins from their priors.
    #[must_use]
    pub fn draw<T: Scalar>(&mut self, count: usize, rng: &mut SeededRng) -> SampledVariables<T> {
        self.propose(count, rng);
        let [speech, noise] =
            self.proposals.each_ref().map(|draws| draws.iter().copied().map(T::convert).collect());
        SampledVariables { speech, noise }
    }

    /// Performs one step for every bin, speech first, and returns the number of accepted proposals, out of two per bin.
    ///
    /// `lambda` are the dispersions of speech and noise and `power` the observed `|X|^2`, bins x frames each.
    pub fn step<T: Scalar>(
        &mut self,
        impulses: &mut SampledVariables<T>,
        mixture: &Mixture<T>,
        lambda: (&[T], &[T]),
        power: &[T],
        rng: &mut SeededRng,
    ) -> usize {
        let SampledVariables { speech, noise } = impulses;
        self.propose(power.len(), rng);
        let uniforms = vector::Philox::from_rng(rng);
        let [speech_proposals, noise_proposals] = &self.proposals;
        let (speech_exponent, noise_exponent) = mixture.variance_exponents();
        let accepted = vector::dispatch(
            #[inline(always)]
            || {
                let mut accepted = 0;
                for first in (0..power.len()).step_by(CHUNK) {
                    let range = first..(first + CHUNK).min(power.len());
                    // Four numbers from every block: two for each of two bins.
                    let mut log_uniforms = [[0.0_f32; CHUNK]; 2];
                    for pair in 0..CHUNK / 2 {
                        let bits = uniforms.block((first / 2 + pair) as u32);
                        for (k, bits) in bits.into_iter().enumerate() {
                            log_uniforms[k % 2][2 * pair + k / 2] = vector::uniform(bits);
                        }
                    }
                    log_uniforms.as_flattened_mut().iter_mut().for_each(|u| *u = u.fast_ln());
                    let scales = |lambda: &[T], exponent: T| {
                        let mut scales = [T::zero(); CHUNK];
                        for (scale, lambda) in scales.iter_mut().zip(&lambda[range.clone()]) {
                            *scale = (exponent * lambda.fast_ln()).fast_exp();
                        }
                        scales
                    };
                    let scale_speech = scales(lambda.0, speech_exponent);
                    let scale_noise = scales(lambda.1, noise_exponent);
                    let power = &power[range.clone()];
                    let (speech, noise) = (&mut speech[range.clone()], &mut noise[range.clone()]);
                    let proposals = (&speech_proposals[range.clone()], &noise_proposals[range]);
                    accepted += update(
                        (speech, &scale_speech, proposals.0),
                        (noise, &scale_noise),
                        power,
                        &log_uniforms[0],
                    );
                    accepted += update(
                        (noise, &scale_noise, proposals.1),
                        (speech, &scale_speech),
                        power,
                        &log_uniforms[1],
                    );
                }
                accepted
            },
        );
        self.counts[0] += accepted as u64;
        self.counts[1] += 2 * power.len() as u64;
        accepted
    }

    /// Accepted and total proposals since the last call.
    pub fn take_counts(&mut self) -> [u64; 2] {
        std::mem::take(&mut self.counts)
    }

    fn propose(&mut self, count: usize, rng: &mut SeededRng) {
        for (law, draws) in [self.speech, self.noise].iter().zip(&mut self.proposals) {
            draws.resize(count, 0.0);
            law.fill(rng, draws);
        }
    }
}

/// Performs Metropolis steps for the impulse variables of one source, given those of the other, and returns the number
/// of accepted proposals.
#[inline(always)]
fn update<T: Scalar>(
    (phi, scale, proposals): (&mut [T], &[T; CHUNK], &[f32]),
    (other_phi, other_scale): (&[T], &[T; CHUNK]),
    power: &[T],
    log_uniforms: &[f32; CHUNK],
) -> usize {
    let count = power.len().min(CHUNK);
    let (phi, proposals, other_phi) = (&mut phi[..count], &proposals[..count], &other_phi[..count]);
    let mut accepted = 0_u32;
    for i in 0..count {
        let likelihood = |variance: T| -(variance.fast_ln() + power[i] / variance);
        let (proposal, other) = (T::convert(proposals[i]), other_scale[i] * other_phi[i]);
        let gain = likelihood(scale[i] * proposal + other) - likelihood(scale[i] * phi[i] + other);
        let accept = T::convert(log_uniforms[i]) < gain;
        phi[i] = if accept { proposal } else { phi[i] };
        accepted += u32::from(accept);
    }
    accepted as usize
}
