//! Errors of reading and writing audio files.

use alphamf_signal::{InvalidSignal, SampleFormat, counted};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Error of reading or writing an audio file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot serve as input.
    #[error("{}: {reason}", path.display())]
    Read {
        /// The input file.
        path: PathBuf,
        /// The reason.
        reason: ReadError,
    },
    /// A file cannot serve as output. Nothing was written.
    #[error("{}: {reason}", path.display())]
    Write {
        /// The output file.
        path: PathBuf,
        /// The reason.
        reason: WriteError,
    },
}

/// Reason why an input file cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no such file.
    #[error("no such file")]
    Missing,
    /// The file cannot be opened or read.
    #[error("cannot be read: {0}")]
    Io(#[source] io::Error),
    /// The file has no bytes.
    #[error("the file is empty: expected audio")]
    Empty,
    /// The file is not audio, or its header is invalid.
    #[error("not an audio file: {0}")]
    NotAudio(String),
    /// The file is shorter than its header declares.
    #[error("the file is truncated: expected {} per channel, found {found}", counted(*expected, "sample"))]
    Truncated {
        /// Samples per channel announced by the header.
        expected: u64,
        /// Samples per channel found.
        found: u64,
    },
    /// The file cannot be decoded any further.
    #[error("damaged at sample {}: {reason}", sample + 1)]
    Damaged {
        /// Index of the sample, from 0; the message counts from 1.
        sample: u64,
        /// The message of the decoder.
        reason: String,
    },
    /// Raw samples end within a frame, so the format is probably wrong.
    #[error("{}; a frame has {expected}: check the raw format", counted(*found as u64, "trailing byte"))]
    PartialSample {
        /// Bytes found.
        found: usize,
        /// Bytes expected.
        expected: usize,
    },
    /// The file is audio in an encoding that is not supported.
    #[error("unsupported encoding: {0}")]
    Unsupported(String),
    /// A stream that must be held in memory is too long.
    #[error("an MP4 or CAF stream of more than {} MB cannot be held in memory: give the file by its name", maximum >> 20)]
    TooLongToHold {
        /// Maximum length, bytes.
        maximum: u64,
    },
    /// The samples do not form a valid [`Signal`](alphamf_signal::Signal).
    #[error(transparent)]
    Signal(#[from] InvalidSignal),
}

/// Reason why an output file cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The output is the input file, or a link to it.
    #[error("the output is the same file as the input {}", .0.display())]
    SameAsInput(PathBuf),
    /// The file cannot be created or written, for lack of permission or space for example.
    #[error("cannot be written: {0}")]
    Io(#[source] io::Error),
    /// More samples than announced, and too many for a WAV file of less than 4 GiB.
    #[error("{samples} samples of {format} are too long for a WAV file whose length was announced shorter")]
    TooLong {
        /// Samples per channel.
        samples: u64,
        /// Sample format of the output.
        format: SampleFormat,
    },
    /// More channels than the file format can hold, or none.
    #[error("{found} channels: expected 1 to {maximum}")]
    Channels {
        /// Number of channels.
        found: usize,
        /// Maximum number of channels of the file format.
        maximum: usize,
    },
    /// A sample rate above the maximum of the file format.
    #[error("sample rate of {found} Hz: FLAC is written at up to {maximum} Hz, WAV at every rate")]
    SampleRate {
        /// Sample rate in Hz.
        found: u32,
        /// Maximum sample rate of the file format, in Hz.
        maximum: u32,
    },
    /// The sample rate or a sample is invalid in a [`Signal`](alphamf_signal::Signal).
    #[error(transparent)]
    Signal(#[from] InvalidSignal),
}
