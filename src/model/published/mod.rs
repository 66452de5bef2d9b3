//! Parts of the mixture that only the published method and other samplers use: sampled impulse variables, minibatches, and
//! second derivatives.

mod expansions;
mod information;
mod metropolis;
mod minibatches;
mod sampled;

pub use metropolis::ImpulseStep;
pub(crate) use sampled::SampledVariables;
