//! Learning dictionaries.

use super::work::run;
use super::{exception, value_error};
use alphamf::ProgressCallback;
use alphamf::learning::{Corpus, TrainingError, TrainingSettings};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

fn training_exception(error: TrainingError) -> PyErr {
    exception(error.kind(), &error)
}

/// The sample rates of files, in hertz.
#[pyfunction]
pub fn sample_rates(files: Vec<PathBuf>) -> PyResult<Vec<u32>> {
    let rate = |path| Ok(alphamf_files::Reader::open(path).map_err(value_error)?.sample_rate());
    files.into_iter().map(rate).collect()
}

/// The audio files in and below a folder, in the order that the program takes them.
#[pyfunction]
pub fn audio_files(folder: PathBuf) -> PyResult<Vec<PathBuf>> {
    Ok(alphamf_files::FolderContents::scan(&folder, None)?.audio)
}

/// A dictionary, as the bytes of its file.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "as many as Python gives")]
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
    let learned = run(py, threads, progress, |watch: &mut dyn ProgressCallback| -> PyResult<_> {
        let mut corpus = Corpus::new(sample_rate, settings).map_err(training_exception)?;
        for path in &files {
            let in_file = |error: &dyn std::fmt::Display| value_error(format!("{}: {error}", path.display()));
            let speech = alphamf_files::read(path).map_err(value_error)?;
            corpus.add(&speech).map_err(|error| in_file(&error))?;
            // Reading is no share of the learning, but may be ended, too.
            if watch.report(0.0).is_break() {
                return Err(training_exception(alphamf::Cancelled.into()));
            }
        }
        corpus.train_with_progress(watch).map_err(training_exception)?.to_bytes().map_err(value_error)
    });
    Ok(PyBytes::new(py, &learned??))
}
