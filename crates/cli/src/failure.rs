//! Failures, their exit codes, and their text.

use super::recording::Incomplete;
use alphamf::denoiser::SettingsError;
use alphamf::learning::TrainingError;
use alphamf::model::DictionaryError;
use alphamf::{Cancelled, DenoiseError, ErrorKind};
use alphamf_eval::EvaluationError;
use anyhow::anyhow;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Mutex;

const FAILED: u8 = 1;
const USAGE: u8 = 2;
/// Exit code for invalid input.
pub const INPUT: u8 = 3;
const OUTPUT: u8 = 4;
const DICTIONARY: u8 = 5;
const INTERRUPTED: u8 = 130;

/// A failure whose kind decides the exit code.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An input is invalid.
    #[error("{}: cannot be read", .0.display())]
    Input(PathBuf),
    /// An input can be read, but not used.
    #[error("{}", .0.display())]
    Unusable(PathBuf),
    /// An output cannot be written.
    #[error("{}: cannot be written", .0.display())]
    Output(PathBuf),
    /// An output exists.
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    /// A result exists that somebody has changed.
    #[error("{} was changed since it was written", .0.display())]
    Changed(PathBuf),
    /// A result of another recording, the second path, exists.
    #[error("{} is the result of {}", .0.display(), .1.display())]
    OfAnother(PathBuf, PathBuf),
    /// A dictionary is invalid.
    #[error("{}: cannot be read as a dictionary", .0.display())]
    Dictionary(PathBuf),
    /// The arguments are invalid or incompatible.
    #[error("{0}")]
    Usage(String),
}

/// A failure for invalid or incompatible arguments.
pub fn usage(what: impl Into<String>) -> anyhow::Error {
    Failure::Usage(what.into()).into()
}

/// The chain of an error in one line. Names may contain line breaks, which [`say`](super::terminal::say) escapes.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        // Some errors include their source.
        if parts.last().is_none_or(|last| !last.contains(&cause)) {
            parts.push(cause);
        }
    }
    parts.join(": ")
}

/// Exit code of an error; see `denoise --help`.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let of = |cause: &(dyn std::error::Error + 'static)| {
        fn ask<E: std::error::Error + 'static>(
            cause: &(dyn std::error::Error + 'static),
            kind: fn(&E) -> ErrorKind,
        ) -> Option<ErrorKind> {
            cause.downcast_ref().map(kind)
        }
        if let Some(error) = cause.downcast_ref::<alphamf_files::Error>() {
            return Some(if matches!(error, alphamf_files::Error::Write { .. }) { OUTPUT } else { INPUT });
        }
        if cause.is::<Incomplete>() {
            return Some(INPUT);
        }
        let kind = ask(cause, DenoiseError::kind)
            .or_else(|| ask(cause, TrainingError::kind))
            .or_else(|| ask(cause, EvaluationError::kind))
            .or_else(|| ask(cause, |_: &SettingsError| ErrorKind::Setting))
            .or_else(|| ask(cause, DictionaryError::kind))
            .or_else(|| ask(cause, |_: &Cancelled| ErrorKind::Cancelled))?;
        match kind {
            ErrorKind::Setting => Some(USAGE),
            ErrorKind::Input => Some(INPUT),
            ErrorKind::Model => Some(DICTIONARY),
            ErrorKind::Cancelled => Some(INTERRUPTED),
            _ => None,
        }
    };
    // A context can be downcast from the error, but not from its chain.
    let failure = || {
        Some(match error.downcast_ref::<Failure>()? {
            Failure::Input(_) | Failure::Unusable(_) => INPUT,
            Failure::Output(_) | Failure::Exists(_) | Failure::Changed(_) | Failure::OfAnother(..) => OUTPUT,
            Failure::Dictionary(_) => DICTIONARY,
            Failure::Usage(_) => USAGE,
        })
    };
    error.chain().find_map(of).or_else(failure).unwrap_or(FAILED)
}

/// Message of the last panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

/// Keeps panic messages for [`caught`] instead of printing them: the library turns the panics of decoders into errors.
pub fn keep_panics() {
    panic::set_hook(Box::new(|panic| {
        tracing::debug!("{panic}");
        if let Ok(mut message) = PANIC.lock() {
            *message = panic.to_string().replace('\n', " ");
        }
    }));
}

/// Runs `work`, and converts a panic to an error.
pub fn caught<T>(work: impl FnOnce() -> T) -> anyhow::Result<T> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| {
        let message = PANIC.lock().map(|message| message.clone()).unwrap_or_default();
        anyhow!("internal error: {message}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        let error = caught::<()>(|| panic!("a mistake")).unwrap_err();
        assert!(one_line(&error).starts_with("internal error: ") && exit_code(&error) == FAILED);
        assert_eq!(caught(|| 1).unwrap(), 1);
    }
}
