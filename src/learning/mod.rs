//! Learning from clean speech: dictionaries, refiners, and the simulated recordings that these learn from.

mod checkpoints;
mod continuations;
mod dictionaries;
mod refiners;
mod sharing;
mod simulation;

pub use checkpoints::Checkpoints;
pub(crate) use checkpoints::fill;
pub use continuations::FullBandCorpus;
pub use dictionaries::{Corpus, TrainingError, TrainingSettings};
pub use refiners::{EXAMPLE_SECONDS, RefinerSettings, RefiningError, learn_refiner, learn_refiner_together};
pub(crate) use sharing::{owner, section};
pub use simulation::{Example, SECONDS, SIGNAL_TO_NOISE_DB, SIGNAL_TO_RUMBLE_DB, SimulationError, Simulator};
