//! Scoring a denoiser over a corpus.
//!
//! The steps, in order: [`pair_folders`] or [`read_manifest`] finds what belongs together;
//! [`evaluate`] processes and scores every [`Pair`], in parallel, and may write each result to a
//! [`Journal`] from which a later run continues; [`summarise`] gives means and standard errors
//! per condition and [`paired_test`] compares two denoisers; [`Evaluation`] is all of it as a
//! record, [`Study`] that of several systems on the same files, and [`report`] shows it as one HTML
//! file. A [`Protocol`] describes a whole experiment
//! in a file.
//!
//! The denoiser is a closure from [`Signal`](crate::audio::Signal) to `Signal`: nothing here
//! depends on how it works.

mod error;
mod journal;
mod pairing;
mod protocol;
mod record;
pub mod report;
mod run;
mod scores;
mod statistics;

pub use error::EvaluationError;
pub use journal::Journal;
pub use pairing::{Pair, Pairing, pair_folders, read_manifest};
pub use protocol::{Corpus, Protocol, Training, Variant};
pub use record::{Abscissa, Definition, Evaluation, Provenance, Study, SystemComparison, checksum};
pub use run::{Failure, FileResult, Observer, Options, TracePoint, evaluate};
pub use scores::{MAXIMUM_EXCESS, Metric, ScoreError, Scores, high_pass, score};
pub use statistics::{Comparison, ConditionSummary, Estimate, MetricSummary, paired_test, summarise};

#[cfg(test)]
mod tests;
