//! Samplers other than HAMCMC, steps that fall, and gradients by a part of the data terms.

use super::super::gibbs::DRIFT_LIMIT;
use super::super::settings::SamplingSettings;
use crate::random::SeedTree;
use crate::samplers::{Sampler, SamplerError, SamplerKind, SamplerOptions, StepSize};

/// The user's step size or `default`, falling with the number of steps if the settings ask for that.
pub(in crate::inference) fn step_size(settings: &SamplingSettings, default: f64) -> StepSize {
    let first = settings.step_size.unwrap_or(default);
    match settings.step_decay {
        0.0 => StepSize::Constant(first),
        power => StepSize::Decreasing { scale: libm::pow(first, 1.0 / power), power },
    }
}

/// The largest drift of an unknown in one step.
pub(in crate::inference) fn drift_limit(settings: &SamplingSettings) -> f64 {
    if settings.literal.unlimited_drift { f64::INFINITY } else { DRIFT_LIMIT }
}

/// How many of a factor's data terms a gradient looks at, if not at all of them.
pub(in crate::inference) fn minibatch(settings: &SamplingSettings, terms: usize) -> Option<usize> {
    (settings.minibatch < 1.0).then(|| (settings.minibatch * terms as f64).ceil() as usize)
}

/// A sampler other than HAMCMC, with the user's step size or what measured best in the denoiser.
pub(in crate::inference) fn other_sampler(
    settings: &SamplingSettings,
    dimension: usize,
    blocks: usize,
    terms: usize,
    streams: SeedTree,
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
        drift_limit: Some(drift_limit(settings)),
        ..SamplerOptions::default()
    };
    settings.sampler.build(dimension, blocks, &options, streams)
}
