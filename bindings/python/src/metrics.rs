//! Metrics, and evaluation of folders.

use super::denoiser::Denoiser;
use super::work::run;
use super::{exception, os_exception, value_error};
use alphamf_eval::{EvaluationError, Failure, FileResult, metrics, pair_folders, summarise};
use alphamf_files::FolderContents;
use alphamf_signal::Signal;
use numpy::{PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use std::error::Error;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Defines functions of metrics of two signals.
macro_rules! scores {
    ($($name:ident($($rate:ident)?)),*) => {$(
        #[pyfunction]
        pub fn $name(
            py: Python<'_>,
            reference: PyReadonlyArray1<'_, f64>,
            estimate: PyReadonlyArray1<'_, f64>,
            $($rate: u32)?
        ) -> PyResult<f64> {
            let (reference, estimate) = (reference.as_slice()?, estimate.as_slice()?);
            py.detach(|| metrics::$name(reference, estimate $(, $rate)?)).map_err(value_error)
        }
    )*};
}

scores!(sdr(), si_sdr(), snr(), segmental_snr(sample_rate), stoi(sample_rate), estoi(sample_rate));

/// Denoises one recording, with the library's denoiser or a Python function.
fn denoise(
    with: &With,
    noisy: &Signal,
    cancelled: impl Fn() -> ControlFlow<()> + Send + Sync,
) -> Result<Signal, Box<dyn Error + Send + Sync>> {
    match with {
        With::Denoiser(denoiser) => {
            Ok(denoiser.denoise_with_progress(noisy, &mut |_: f64| cancelled())?.signal)
        }
        With::Function(function) => Python::attach(|py| {
            let samples = PyArray2::from_vec2(py, noisy.channels())?;
            let result = function.bind(py).call1((samples, noisy.sample_rate()))?;
            let result: PyReadonlyArray1<'_, f32> = result.extract()?;
            Ok::<_, PyErr>(vec![result.as_array().to_vec()])
        })
        .map_err(Into::into)
        .and_then(|channels| Ok(noisy.with_channels(channels)?)),
        With::Nothing => Err("no enhanced file for this recording".into()),
    }
}

enum With {
    Denoiser(alphamf::Denoiser),
    Function(Py<PyAny>),
    Nothing,
}

/// Evaluates folders; returns results, failures and summary as JSON.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the parameters of the Python function")]
pub fn evaluate(
    py: Python<'_>,
    clean: PathBuf,
    noisy: Option<PathBuf>,
    enhanced: Option<PathBuf>,
    denoiser: Option<&Bound<'_, PyAny>>,
    high_pass_hz: f64,
    save: Option<PathBuf>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let with = match denoiser {
        None => With::Nothing,
        Some(denoiser) => match denoiser.cast::<Denoiser>() {
            Ok(denoiser) => With::Denoiser(denoiser.get().inner().clone()),
            Err(_) => With::Function(denoiser.clone().unbind()),
        },
    };
    let options = alphamf_eval::Options { high_pass_hz, save, ..alphamf_eval::Options::default() };
    let outcome = run(py, threads, progress, |progress| {
        let pairing = pair_folders(&clean, noisy.as_deref(), enhanced.as_deref(), |folder| {
            FolderContents::scan(folder, &[])
        })?;
        let (done, all) = (AtomicUsize::new(0), pairing.pairs.len() as f64);
        let progress = Mutex::new(progress);
        let report = |done: usize| {
            progress.lock().map_or(ControlFlow::Break(()), |mut progress| progress.report(done as f64 / all))
        };
        let finished = |_: Result<&FileResult, &Failure>| report(1 + done.fetch_add(1, Ordering::Relaxed));
        let denoise = |noisy: &Signal, _: &mut alphamf_eval::Observer| {
            denoise(&with, noisy, || report(done.load(Ordering::Relaxed)))
        };
        let (files, mut failures) =
            alphamf_eval::evaluate(&pairing.pairs, &options, None, denoise, finished)?;
        failures.extend(pairing.unpaired);
        Ok((files, failures))
    });
    let (files, failures) = outcome?.map_err(|error| match &error {
        EvaluationError::Io { path, source } => os_exception(path, source),
        _ => exception(error.kind(), &error),
    })?;
    let summary = summarise(&files);
    let record = serde_json::json!({ "files": files, "failures": failures, "summary": summary });
    Ok(record.to_string())
}
