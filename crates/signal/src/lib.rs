#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod error_kind;
mod format;
pub mod progress;
mod signal;
mod words;

pub use error_kind::ErrorKind;
pub use format::SampleFormat;
pub use signal::{
    InvalidSignal, MAX_CHANNELS, MAX_SAMPLES_PER_SECOND, SAMPLE_RATE_RANGE, Signal, check_channels,
    check_recording, check_sample_rate,
};
pub use words::counted;
