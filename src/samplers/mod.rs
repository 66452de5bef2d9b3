//! Markov chain Monte Carlo samplers that use gradients and curvature, and nothing about audio.
//!
//! A posterior is a [`Target`]: its shape, its gradient on a minibatch of data, its potential. A [`Sampler`]
//! moves a state of `dimension x blocks` numbers; blocks are independent and keep their own memory and random
//! stream. [`Chain`] checks that the two fit and runs the loop; [`SamplerKind`] builds a sampler by name.

mod dense;
mod gradient;
mod kind;
mod positivity;
mod sampler;
mod step_size;
mod target;
mod vector;

pub mod hamcmc;
pub mod lbfgs;
pub mod psgld;
pub mod sgld;
pub mod targets;

pub use gradient::GradientSettings;
pub use hamcmc::{Hamcmc, HamcmcSettings, InitialScale};
pub use kind::{Options, SamplerKind};
pub use positivity::{LogMapped, Mirrored};
pub use psgld::{Psgld, PsgldSettings};
use sampler::check_target;
pub use sampler::{Chain, Draw, Sampler, SamplerError, Statistics, Step};
pub use sgld::Sgld;
pub use step_size::{DualAveraging, StepSize};
pub use target::{Curvature, Metric, Minibatch, Real, Site, Sites, Support, Target};
