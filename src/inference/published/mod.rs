//! Parts of the published method that the default does not use: sampled impulse variables, mirrored factors, minibatches,
//! and other samplers with the metrics and sites they need (`hamcmc-2016`, section 4.2).

mod coordinates;
mod impulses;
mod metrics;
mod minibatches;
mod samplers;
mod sites;

pub(super) use coordinates::Coordinates;
pub(super) use impulses::{Redraw, SampledImpulses};
pub(super) use samplers::{minibatch, other_sampler, step_size};
