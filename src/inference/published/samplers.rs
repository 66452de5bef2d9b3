//! Samplers other than HAMCMC, decreasing steps, and minibatches.

use super::super::settings::DRIFT_LIMIT;
use super::super::settings::SamplingSettings;
use crate::random::SeedTree;
use crate::samplers::{Sampler, SamplerError, SamplerKind, SamplerOptions, StepSize};

/// The step size of the settings or `default`, decreasing with the number of steps unless the decay of the settings is
/// 0.
pub(in crate::inference) fn step_size(settings: &SamplingSettings, default: f64) -> StepSize {
    let first = settings.step_size.unwrap_or(default);
    match settings.step_decay {
        0.0 => StepSize::Constant(first),
        power => StepSize::Decreasing { scale: libm::pow(first, 1.0 / power), power },
    }
}

/// Number of data terms of a minibatch; `None` for all.
pub(in crate::inference) fn minibatch(settings: &SamplingSettings, terms: usize) -> Option<usize> {
    (settings.minibatch < 1.0).then(|| (settings.minibatch * terms as f64).ceil() as usize)
}

/// A sampler other than HAMCMC, with the step size of the settings or the one tuned in the denoiser.
pub(in crate::inference) fn other_sampler(
    settings: &SamplingSettings,
    dimension: usize,
    blocks: usize,
    terms: usize,
    seeds: SeedTree,
) -> Result<Box<dyn Sampler<f32>>, SamplerError> {
    let default = match settings.sampler {
        // Its preconditioner divides by gradients that are large at the mode.
        SamplerKind::Psgld => 5e-4,
        SamplerKind::Sgrld | SamplerKind::Sgrhmc => 0.1,
        SamplerKind::Sghmc | SamplerKind::Sgnht => 0.03,
        SamplerKind::Hmc | SamplerKind::HmcBfgs | SamplerKind::Qnhmc | SamplerKind::Nuts => 0.02,
        SamplerKind::MhBfgs => 0.05,
        _ => 0.005,
    };
    let options = SamplerOptions {
        step_size: Some(step_size(settings, default)),
        minibatch: minibatch(settings, terms),
        drift_limit: Some(DRIFT_LIMIT),
        ..SamplerOptions::default()
    };
    settings.sampler.build(dimension, blocks, &options, seeds)
}
