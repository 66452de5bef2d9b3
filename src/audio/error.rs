use super::signal::{SAMPLE_RATES, SampleFormat};
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why an audio file could not be read or written.
#[derive(Debug, Error)]
pub enum Error {
    /// A file cannot serve as input.
    #[error("{}: {reason}", path.display())]
    Read {
        /// The input file.
        path: PathBuf,
        /// What is wrong with it.
        reason: ReadError,
    },
    /// A file cannot serve as output. Nothing was written.
    #[error("{}: {reason}", path.display())]
    Write {
        /// The output file.
        path: PathBuf,
        /// What is wrong with it.
        reason: WriteError,
    },
}

/// What is wrong with an input file.
#[derive(Debug, Error)]
pub enum ReadError {
    /// There is no such file.
    #[error("no such file")]
    Missing,
    /// The file cannot be opened or read.
    #[error("cannot be read: {0}")]
    Io(io::Error),
    /// The file has no bytes.
    #[error("the file is empty: expected audio")]
    Empty,
    /// The file holds something other than audio, or its header makes no sense.
    #[error("not an audio file: {0}")]
    NotAudio(String),
    /// The file is shorter than its header says.
    #[error("the file is truncated: expected {expected} samples, found {found}")]
    Truncated {
        /// Samples announced by the header, all channels together.
        expected: u64,
        /// Samples found, all channels together.
        found: u64,
    },
    /// The file is audio in an encoding that is not supported.
    #[error("unsupported encoding: {0}")]
    Unsupported(String),
    /// The samples do not make a [`Signal`](super::Signal).
    #[error(transparent)]
    Signal(#[from] InvalidSignal),
}

/// What is wrong with an output file.
#[derive(Debug, Error)]
pub enum WriteError {
    /// The output is the input file, or a link to it.
    #[error("the output is the same file as the input {}", .0.display())]
    SameAsInput(PathBuf),
    /// The output exists and is a directory, a device or a pipe.
    #[error("exists and is not a regular file")]
    NotAFile,
    /// The file cannot be created or written, for lack of permission or space for example.
    #[error("cannot be written: {0}")]
    Io(io::Error),
    /// More samples than the file format can hold.
    #[error("{samples} samples of {format} do not fit into a WAV file: expected less than 4 GiB")]
    TooLong {
        /// Samples, all channels together.
        samples: u64,
        /// The format they were to be written in.
        format: SampleFormat,
    },
    /// More channels than the file format can hold.
    #[error("{0} channels: expected at most 65535")]
    TooManyChannels(usize),
}

/// Why samples do not make a [`Signal`](super::Signal).
#[derive(Debug, Clone, PartialEq, Error)]
pub enum InvalidSignal {
    /// The sample rate is not supported.
    #[error(
        "sample rate of {found} Hz: expected {} to {} Hz", SAMPLE_RATES.start(), SAMPLE_RATES.end()
    )]
    SampleRate {
        /// Sample rate in Hz.
        found: u32,
    },
    /// There is no channel.
    #[error("no channels: expected at least one")]
    NoChannels,
    /// There is no sample.
    #[error("no samples: expected at least one")]
    NoSamples,
    /// A channel is longer or shorter than the first.
    #[error("channel {channel} has {found} samples: expected {expected}, as in channel 0")]
    UnequalChannels {
        /// Index of the channel, from 0.
        channel: usize,
        /// Its number of samples.
        found: usize,
        /// The number of samples of channel 0.
        expected: usize,
    },
    /// A sample is infinite or not a number.
    #[error("sample {sample} of channel {channel} is {value}: expected a finite value")]
    NotFinite {
        /// Index of the channel, from 0.
        channel: usize,
        /// Index of the sample, from 0.
        sample: usize,
        /// The offending value.
        value: f32,
    },
}
