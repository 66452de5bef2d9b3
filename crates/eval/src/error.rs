//! Errors of evaluations.

use alphamf::ErrorKind;
use alphamf::signal::counted;
use alphamf_files::WriteError;
use std::io;
use std::path::PathBuf;

/// An evaluation cannot start or be recorded.
///
/// An error of a single file of the corpus is a [`Failure`](super::Failure) and does not stop the run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// A file or folder cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The journal or denoised audio cannot be written.
    #[error("{0}")]
    Output(#[source] alphamf_files::Error),
    /// A folder contains no audio.
    #[error("{}: no audio files (expected {expected}), {found}", folder.display())]
    NoAudio {
        /// The folder.
        folder: PathBuf,
        /// The expected file extensions.
        expected: String,
        /// The contents of the folder.
        found: String,
    },
    /// No recording has a clean counterpart.
    #[error(
        "no pairs: of {} in {} (such as {noisy_example}), none has a clean file among the {clean_count} in {} \
         (such as {clean_example}); expected the same name, or the part before the first '_'",
        counted(*noisy_count as u64, "file"), noisy.display(), clean.display()
    )]
    NoPairs {
        /// Folder of the recordings.
        noisy: PathBuf,
        /// Number of recordings.
        noisy_count: usize,
        /// Name of a recording.
        noisy_example: String,
        /// Folder of the clean files.
        clean: PathBuf,
        /// Number of clean files.
        clean_count: usize,
        /// Name of a clean file.
        clean_example: String,
    },
    /// Two files of a folder differ in extension only.
    #[error("{} and {} have one name: expected one of them", first.display(), second.display())]
    SameName {
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// Two pairs share the path of their denoised audio.
    #[error("{first} and {second} would both be saved as {}: rename one of them", path.display())]
    SameOutput {
        /// Name of one pair.
        first: String,
        /// Name of the other.
        second: String,
        /// The path.
        path: PathBuf,
    },
    /// A manifest is invalid.
    #[error("{}, line {line}: {reason}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// Line of the file, from 1.
        line: u64,
        /// Description of the error.
        reason: String,
    },
    /// A protocol is invalid.
    #[error("{}: {reason}", path.display())]
    Protocol {
        /// The protocol.
        path: PathBuf,
        /// The error, with the key and, where known, the line.
        reason: String,
    },
    /// A pattern of a protocol matches nothing.
    #[error("{}: {key} = \"{pattern}\" matches no file below {}", path.display(), data.display())]
    NoMatch {
        /// The protocol.
        path: PathBuf,
        /// The key that holds the pattern.
        key: &'static str,
        /// The pattern.
        pattern: String,
        /// The folder of the corpus.
        data: PathBuf,
    },
    /// The caller cancelled the run.
    #[error(transparent)]
    Cancelled(#[from] alphamf::Cancelled),
    /// A journal cannot be continued.
    #[error("{}, line {line}: {reason}", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// Line of the file, from 1.
        line: usize,
        /// Description of the error.
        reason: String,
    },
    /// A journal belongs to a run with other settings.
    #[error("{}, line 1: made by another run: {difference}", path.display())]
    AnotherRun {
        /// The journal.
        path: PathBuf,
        /// Description of the difference.
        difference: String,
    },
}

impl EvaluationError {
    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Cancelled(_) => ErrorKind::Cancelled,
            Self::Output(_) => ErrorKind::Other,
            _ => ErrorKind::Input,
        }
    }

    pub(super) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// Like [`io`](Self::io), for an output.
    pub(super) fn unwritten(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Output(alphamf_files::Error::Write { path, reason: WriteError::Io(source) })
    }
}
