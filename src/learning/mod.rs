//! Learning from clean speech: dictionaries, refiners, and the simulated recordings that these learn from.

mod dictionaries;
mod refiners;
mod simulation;

pub use dictionaries::{Checkpoints, Corpus, TrainingError, TrainingSettings};
pub use refiners::{RefinerSettings, RefiningError, learn_refiner};
pub use simulation::{Example, SECONDS, SIGNAL_TO_NOISE_DB, SIGNAL_TO_RUMBLE_DB, SimulationError, Simulator};
