//! Learning from clean speech: dictionaries of speech.

mod checkpoints;
mod continuations;
mod dictionaries;
mod sharing;

pub use checkpoints::Checkpoints;
pub use continuations::FullBandCorpus;
pub use dictionaries::{Corpus, TrainingError, TrainingSettings};
