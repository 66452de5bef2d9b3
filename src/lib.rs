//! A Bayesian speech denoiser and the samplers that it is built on.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod audio;
mod container;
pub mod evaluation;
pub mod inference;
pub mod metrics;
pub mod model;
pub mod output;
pub mod plot;
pub mod random;
pub mod refiner;
pub mod samplers;
pub mod simulation;
pub mod stable;
