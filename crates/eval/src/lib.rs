//! Scores of a speech denoiser, for one recording or a corpus.
//!
//! [`metrics`] holds the scores of an estimate against a clean reference:
//!
//! ```
//! let clean: Vec<f64> = (0..8_000).map(|n| (0.1 * f64::from(n)).sin()).collect();
//! let estimate: Vec<f64> = clean.iter().zip(0..).map(|(x, n)| x + 0.1 * (0.37 * f64::from(n)).cos()).collect();
//! let score = alphamf_eval::metrics::si_sdr(&clean, &estimate)?;
//! assert!((score - 20.0).abs() < 0.1);
//! # Ok::<(), alphamf_eval::metrics::MetricError>(())
//! ```
//!
//! The rest of the crate scores a corpus.
//!
//! The steps, in order: [`pair_folders`] or [`read_manifest`] pairs recordings with clean files. [`evaluate`] denoises
//! and scores every [`Pair`] in parallel, and may write each result to a [`Journal`], from which a later run resumes.
//! [`summarise`] computes means and standard errors per condition, and [`paired_test`] compares two denoisers. An
//! [`Evaluation`] is the complete record, a [`Study`] that of several systems on common files, and [`report`] renders
//! it as one HTML file. A [`Protocol`] describes a whole experiment in a file.
//!
//! The denoiser is a closure from [`Signal`](alphamf::signal::Signal) to `Signal`: nothing in this crate depends on its
//! method.
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod error;
mod files;
mod journal;
pub mod metrics;
mod pairing;
pub mod plot;
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
pub use record::{
    Abscissa, Definition, Evaluation, Provenance, Study, SystemComparison, checksum, checksum_of_file,
    first_difference,
};
pub use run::{Failure, FileResult, Observer, Options, TracePoint, evaluate};
pub use scores::{MAX_EXCESS_SECONDS, Metric, ScoreError, Scores, high_pass, score};
pub use statistics::{Comparison, ConditionSummary, Estimate, MetricSummary, paired_test, summarise};

#[cfg(test)]
mod tests;
