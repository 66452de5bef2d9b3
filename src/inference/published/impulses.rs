//! Impulse variables that are drawn by Metropolis steps, a set for every interleaved chain (`hamcmc-2016`, section 4.2).

use crate::model::{Dispersions, ImpulseStep, ImpulseVariables, Mixture, SampledVariables};
use crate::random::SeededRng;
use crate::samplers::SamplerError;

/// The impulse variables of some frames.
pub(in crate::inference) struct SampledImpulses {
    /// Those of every chain.
    chains: Vec<SampledVariables<f32>>,
    step: ImpulseStep,
    stream: SeededRng,
}

/// The impulse variables of the chain whose turn it is.
pub(in crate::inference) struct Redraw<'a> {
    pub values: &'a mut SampledVariables<f32>,
    /// SamplerCounters those of the bins that a step looks at, before it does so for the first time.
    pub due: Option<(&'a mut ImpulseStep, &'a mut SeededRng)>,
}

impl SampledImpulses {
    /// Draws those of so many bins of all frames together from their priors, for so many chains.
    pub(in crate::inference) fn draw(
        mixture: &Mixture<f32>,
        count: usize,
        chains: usize,
        mut stream: SeededRng,
    ) -> Result<Self, SamplerError> {
        let mut step = ImpulseStep::new(mixture.speech.alpha, mixture.noise.alpha).map_err(|error| {
            SamplerError::Setting { name: "alpha", value: error.value, expected: "0 to 2" }
        })?;
        let chains = (0..chains).map(|_| step.draw(count, &mut stream)).collect();
        Ok(Self { chains, step, stream })
    }

    /// Those of a chain, as they are.
    pub(in crate::inference) fn of(&self, chain: usize) -> ImpulseVariables<'_, f32> {
        ImpulseVariables::Sampled(self.values(chain))
    }

    /// The values of a chain.
    pub(in crate::inference) fn values(&self, chain: usize) -> &SampledVariables<f32> {
        &self.chains[chain]
    }

    /// Those of a chain, to be moved when they are first looked at.
    pub(in crate::inference) fn turn(&mut self, chain: usize) -> Redraw<'_> {
        let Self { chains, step, stream } = self;
        Redraw { values: &mut chains[chain], due: Some((step, stream)) }
    }

    /// How many proposals were accepted, of how many, since this was last asked.
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
        if let Some((step, stream)) = self.due.take() {
            step.step(self.values, dispersed.mixture(), dispersed.dispersions(), power, stream);
        }
        ImpulseVariables::Sampled(self.values)
    }
}
