//! Where model meets sampler.
pub mod impulses;
mod separation;
mod training;
pub use separation::{Free, Separation, Start};
pub use training::{TrainingSettings, learn};
