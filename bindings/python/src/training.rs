//! Training of dictionaries.

use super::work::run;
use super::{exception, os_exception, read_exception, value_error};
use alphamf::ProgressCallback;
use alphamf::learning::{Corpus, TrainingError, TrainingSettings};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::{Path, PathBuf};

fn training_exception(error: TrainingError) -> PyErr {
    exception(error.kind(), &error)
}

fn in_file(path: &Path, error: impl std::fmt::Display) -> PyErr {
    value_error(format!("{}: {error}", path.display()))
}

/// Sample rates of files, Hz.
#[pyfunction]
pub fn sample_rates(files: Vec<PathBuf>) -> PyResult<Vec<u32>> {
    let rate = |path: PathBuf| {
        // The error names the file.
        Ok(alphamf_files::Reader::open(&path).map_err(|error| read_exception(&error))?.sample_rate())
    };
    files.into_iter().map(rate).collect()
}

/// A file, or the audio files in and below a folder, in the order of the program.
#[pyfunction]
pub fn audio_files(path: PathBuf) -> PyResult<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path]);
    }
    Ok(alphamf_files::FolderContents::scan(&path, &[]).map_err(|error| os_exception(&path, &error))?.audio)
}

/// Trains a dictionary; returns the bytes of its file.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub fn train<'py>(
    py: Python<'py>,
    files: Vec<PathBuf>,
    sample_rate: u32,
    rank: usize,
    alpha: f64,
    iterations: usize,
    window_seconds: f64,
    seed: u64,
    threads: Option<usize>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let settings =
        TrainingSettings { rank, alpha, iterations, window_seconds, seed, ..TrainingSettings::default() };
    let trained = run(py, threads, progress, |progress: &mut dyn ProgressCallback| -> PyResult<_> {
        let mut corpus = Corpus::new(sample_rate, settings).map_err(training_exception)?;
        for path in &files {
            let speech = alphamf_files::read(path).map_err(|error| read_exception(&error))?;
            corpus.add(&speech).map_err(|error| in_file(path, error))?;
            // Reading does not count as progress, but can be cancelled.
            if progress.report(0.0).is_break() {
                return Err(training_exception(alphamf::Cancelled.into()));
            }
        }
        corpus.train_with_progress(progress).map_err(training_exception)?.to_bytes().map_err(value_error)
    });
    Ok(PyBytes::new(py, &trained??))
}
