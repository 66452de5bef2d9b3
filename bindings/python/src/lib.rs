//! Native part of the Python package `alphamf`; shapes, sample types and documentation are in `alphamf/`.
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod denoiser;
mod metrics;
mod samplers;
mod shared;
mod training;
mod work;

use alphamf::{DenoiseError, ErrorKind};
use alphamf_files::ReadError;
use pyo3::exceptions::{PyFileNotFoundError, PyInterruptedError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use std::io;
use std::path::Path;

/// Exception for a kind of error.
fn exception(kind: ErrorKind, error: &dyn std::error::Error) -> PyErr {
    let message = error.to_string();
    match kind {
        ErrorKind::Setting | ErrorKind::Input | ErrorKind::Model => PyValueError::new_err(message),
        ErrorKind::Cancelled => PyInterruptedError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    }
}

fn denoise_exception(error: DenoiseError) -> PyErr {
    exception(error.kind(), &error)
}

fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Exception for a file or folder that cannot be read, as `open` raises it: `FileNotFoundError` if there is none.
fn os_exception(path: &Path, error: &io::Error) -> PyErr {
    io::Error::new(error.kind(), format!("{}: {error}", path.display())).into()
}

/// Exception for an audio file that cannot be read: `ValueError` if it was read and is invalid.
fn read_exception(error: &alphamf_files::Error) -> PyErr {
    match error {
        alphamf_files::Error::Read { reason: ReadError::Missing, .. } => {
            PyFileNotFoundError::new_err(error.to_string())
        }
        alphamf_files::Error::Read { reason: ReadError::Io(source), path } => os_exception(path, source),
        _ => value_error(error),
    }
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::denoiser::{Denoiser, Live, NoiseProfile, Session, control_ranges};
    #[pymodule_export]
    use super::metrics::{estoi, evaluate, sdr, segmental_snr, si_sdr, snr, stoi};
    #[pymodule_export]
    use super::samplers::{names, sample};
    #[pymodule_export]
    use super::training::{audio_files, sample_rates, train};
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
    #[pymodule_export]
    const MIN_SAMPLE_RATE: u32 = *alphamf_signal::SAMPLE_RATE_RANGE.start();
    #[pymodule_export]
    const MAX_SAMPLE_RATE: u32 = *alphamf_signal::SAMPLE_RATE_RANGE.end();
    #[pymodule_export]
    const MAX_CHANNELS: usize = alphamf_signal::MAX_CHANNELS;
    #[pymodule_export]
    const DEFAULT_LATENCY_MS: f64 = alphamf::denoiser::DEFAULT_LATENCY_MS;
}
