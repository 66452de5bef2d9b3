//! Impulse variables drawn by Metropolis steps, one set per interleaved chain (`hamcmc-2016`, section 4.2).

use crate::model::{Dispersions, ImpulseStep, ImpulseVariables, Mixture, SampledVariables};
use crate::random::SeededRng;
use crate::samplers::SamplerError;

/// The impulse variables of a tile.
pub(in crate::inference) struct SampledImpulses {
    /// One set per chain.
    chains: Vec<SampledVariables<f32>>,
    step: ImpulseStep,
    rng: SeededRng,
}

/// The impulse variables of the present chain.
pub(in crate::inference) struct Redraw<'a> {
    pub values: &'a mut SampledVariables<f32>,
    /// The pending Metropolis step of the bins of a minibatch, if any.
    pub due: Option<(&'a mut ImpulseStep, &'a mut SeededRng)>,
}

impl SampledImpulses {
    /// Draws the impulse variables of `count` bins, over all frames, from their priors, for each of `chains` chains.
    pub(in crate::inference) fn draw(
        mixture: &Mixture<f32>,
        count: usize,
        chains: usize,
        mut rng: SeededRng,
    ) -> Result<Self, SamplerError> {
        let mut step = ImpulseStep::new(mixture.speech.alpha, mixture.noise.alpha).map_err(|error| {
            SamplerError::Setting { name: "alpha", value: error.value, expected: "0 to 2" }
        })?;
        let chains = (0..chains).map(|_| step.draw(count, &mut rng)).collect();
        Ok(Self { chains, step, rng })
    }

    /// The impulse variables of a chain.
    pub(in crate::inference) fn of(&self, chain: usize) -> ImpulseVariables<'_, f32> {
        ImpulseVariables::Sampled(self.values(chain))
    }

    /// The values of a chain.
    pub(in crate::inference) fn values(&self, chain: usize) -> &SampledVariables<f32> {
        &self.chains[chain]
    }

    /// The impulse variables of a chain, moved when first evaluated.
    pub(in crate::inference) fn turn(&mut self, chain: usize) -> Redraw<'_> {
        let Self { chains, step, rng } = self;
        Redraw { values: &mut chains[chain], due: Some((step, rng)) }
    }

    /// Accepted and total proposals since the last call.
    pub(in crate::inference) fn take_counts(&mut self) -> [u64; 2] {
        self.step.take_counts()
    }
}

impl Redraw<'_> {
    /// The impulse variables of all bins given their dispersions, for powers `|X|^2` (bins x frames).
    pub(in crate::inference) fn given(
        &mut self,
        dispersed: &Dispersions<f32>,
        power: &[f32],
    ) -> ImpulseVariables<'_, f32> {
        if let Some((step, rng)) = self.due.take() {
            step.step(self.values, dispersed.mixture(), dispersed.dispersions(), power, rng);
        }
        ImpulseVariables::Sampled(self.values)
    }
}
