//! What the method as it was printed asks of the mixture, and the denoiser by default does without: sampled impulse
//! variables, parts of the data terms, and second derivatives for other samplers.

mod expansions;
mod information;
mod metropolis;
mod minibatches;
mod sampled;

pub use metropolis::ImpulseStep;
pub use sampled::SampledVariables;
