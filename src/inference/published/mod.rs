//! What the method as it was printed asks of the separation, and the denoiser by default does without: sampled impulse
//! variables, mirrored factors, minibatches, and other samplers with what they ask of the factors.

mod coordinates;
mod impulses;
mod joined;
mod metrics;
mod minibatches;
mod samplers;
mod sites;

pub(super) use coordinates::Coordinates;
pub(super) use impulses::{Redraw, SampledImpulses};
pub(super) use joined::Joined;
pub(super) use minibatches::weights;
pub(super) use samplers::{drift_limit, minibatch, other_sampler, step_size};
