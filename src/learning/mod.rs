//! Training of dictionaries from clean speech.

mod checkpoints;
mod continuations;
mod dictionaries;
mod groups;

pub use checkpoints::CheckpointStore;
pub use continuations::FullBandCorpus;
pub use dictionaries::{Corpus, TrainingError, TrainingSettings};
