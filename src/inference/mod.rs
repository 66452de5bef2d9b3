//! Where model meets sampler.
mod separation;
mod training;
pub use separation::{Free, Separation, Start};
pub use training::{TrainingSettings, learn};
