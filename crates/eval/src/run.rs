//! Denoising and scoring every file of a corpus.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::journal::content;
use super::scores::extended;
use super::{EvaluationError, Journal, Metric, Pair, ScoreError, Scores, checksum, score};
use crate::metrics::MetricError;
use alphamf::Cancelled;
use alphamf::signal::Signal;
use alphamf_files as audio;
use alphamf_files::Container;
use alphamf_files::output::OutputFile;

/// The result of one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FileResult {
    /// Name of the [`Pair`].
    pub name: String,
    /// Condition of the [`Pair`].
    pub condition: Option<String>,
    /// Duration of the estimate in seconds.
    pub duration_seconds: f64,
    /// Wall-clock time of denoising in seconds, including the slowdown by files in parallel; absent for enhanced audio.
    pub processing_seconds: Option<f64>,
    /// Scores of the recording itself; absent if there is none.
    pub input: Option<Scores>,
    /// Scores of the denoised recording.
    pub output: Scores,
    /// Damaged or missing parts of the files, one line for each file with any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
    /// Intermediate estimates, if the denoiser reported them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<TracePoint>,
}

/// The score of an intermediate estimate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TracePoint {
    /// Iterations so far.
    pub iteration: usize,
    /// Time so far in seconds, without the scoring of estimates.
    pub seconds: f64,
    /// SDR in dB.
    #[serde(with = "extended")]
    pub sdr: f64,
}

/// Callback for intermediate estimates: iteration and signal.
pub type Observer<'a> = dyn FnMut(usize, &Signal) + 'a;

/// A file that could not be scored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Name of the [`Pair`], or of the recording without a clean file.
    pub name: String,
    /// The reason, in one line.
    pub reason: String,
}

/// Options of an evaluation.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// High-pass cutoff in Hz, applied before scoring; 0 for none.
    pub high_pass_hz: f64,
    /// Folder for the denoised audio: WAV files named as the recordings.
    pub save: Option<PathBuf>,
    /// Whether to replace files in the folder; otherwise an existing file ends the run.
    pub replace: bool,
    /// Whether to count files with damaged or missing parts as failures.
    pub strict: bool,
}

impl Options {
    /// The path for the denoised audio of a pair, if it is saved: always below [`Options::save`], even if the name of
    /// the pair is an absolute path or contains `..`.
    #[must_use]
    pub fn saved(&self, pair: &Pair) -> Option<PathBuf> {
        let below = |part: &Component| matches!(part, Component::Normal(_));
        let name: PathBuf = Path::new(&pair.name).components().filter(below).collect();
        Some(self.save.as_ref()?.join(name.with_extension("wav")))
    }

    /// Whether the audio of a pair that was scored before needs no saving. A file with its name may belong to another
    /// run.
    fn needs_no_saving(&self, pair: &Pair, journal: Option<&Journal>) -> bool {
        self.saved(pair).is_none_or(|path| journal.is_some_and(|journal| journal.has_saved(pair, &path)))
    }

    /// Checks that no two pairs share a path for their denoised audio.
    fn check_output_paths(&self, pairs: &[Pair]) -> Result<(), EvaluationError> {
        let mut names = HashMap::new();
        for pair in pairs {
            let Some(path) = self.saved(pair) else { return Ok(()) };
            if let Some(first) = names.insert(path.clone(), &pair.name) {
                let (first, second) = (first.clone(), pair.name.clone());
                return Err(EvaluationError::SameOutput { first, second, path });
            }
        }
        Ok(())
    }
}

/// Denoises and scores all pairs, in parallel, and returns results and failures in their order.
///
/// Files in `journal` are skipped, unless [`Options::strict`] rejects them, or their audio is to be saved and the audio
/// saved by the journal's run is missing or changed. New results are added to the journal. Enhanced audio of a pair is
/// scored; otherwise `denoise` processes the recording, and may report intermediate estimates to an [`Observer`] for
/// [`FileResult::trace`]. `finished` is called for every file, from several threads at once and in no particular order,
/// and may stop the run. Results do not depend on the number of threads if those of `denoise` do not.
///
/// # Errors
/// If the journal or the denoised audio cannot be written, or would overwrite another file, if the journal belongs to other
/// audio, two pairs would be saved as one file, or `finished` stops the run. Any other error of a file is returned as its
/// [`Failure`].
pub fn evaluate<D, P>(
    pairs: &[Pair],
    options: &Options,
    journal: Option<&Journal>,
    denoise: D,
    finished: P,
) -> Result<(Vec<FileResult>, Vec<Failure>), EvaluationError>
where
    D: Fn(&Signal, &mut Observer) -> Result<Signal, Box<dyn Error + Send + Sync>> + Sync,
    P: Fn(Result<&FileResult, &Failure>) -> ControlFlow<()> + Sync,
{
    options.check_output_paths(pairs)?;
    let outcomes = pairs
        .par_iter()
        .with_max_len(1)
        .map(|pair| {
            let failure = |reason: String| Failure { name: pair.name.clone(), reason };
            let known = || journal.map(|journal| journal.finished(pair)).transpose();
            let outcome = match check_regular(pair).and_then(|()| known()) {
                Err(unread @ EvaluationError::Io { .. }) => Err(failure(unread.to_string())),
                Err(error) => return Err(error),
                Ok(Some(Some(known)))
                    if (known.losses.is_empty() || !options.strict)
                        && options.needs_no_saving(pair, journal) =>
                {
                    // The result is that of the journal; the condition is that of this run.
                    Ok(FileResult { condition: pair.condition.clone(), ..known.clone() })
                }
                Ok(known) => {
                    // A second line of a file records audio that was not saved before.
                    let journal = journal.filter(|_| known.flatten().is_none() || options.save.is_some());
                    let recorded = journal.map(|journal| (journal, content(pair)));
                    match evaluate_pair(pair, options, &denoise) {
                        Ok((result, estimate)) => {
                            let path = options.saved(pair);
                            let saved = path.map(|path| save(&estimate, pair, &path, options.replace));
                            let saved = saved.transpose()?;
                            if let Some((journal, content)) = recorded {
                                journal.record(content?, &result, saved)?;
                            }
                            Ok(result)
                        }
                        Err(error) => Err(failure(error.to_string())),
                    }
                }
            };
            match finished(outcome.as_ref()) {
                ControlFlow::Continue(()) => Ok(outcome),
                ControlFlow::Break(()) => Err(Cancelled.into()),
            }
        })
        .collect::<Result<Vec<_>, EvaluationError>>()?;
    let (mut results, mut failures) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok(result) => results.push(result),
            Err(failure) => failures.push(failure),
        }
    }
    Ok((results, failures))
}

/// Checks that the files of a pair can be read more than once, as for their checksum. Reading a pipe could block
/// forever.
fn check_regular(pair: &Pair) -> Result<(), EvaluationError> {
    for path in [pair.noisy.as_ref(), pair.enhanced.as_ref(), Some(&pair.clean)].into_iter().flatten() {
        if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return Err(EvaluationError::io(path)(io::Error::other("not a regular file")));
        }
    }
    Ok(())
}

type FileError = Box<dyn Error + Send + Sync>;

/// Scores a pair, and returns its scores and the scored signal.
fn evaluate_pair<D>(pair: &Pair, options: &Options, denoise: &D) -> Result<(FileResult, Signal), FileError>
where
    D: Fn(&Signal, &mut Observer) -> Result<Signal, FileError>,
{
    let mut files = Files { options, losses: Vec::new() };
    let clean = (pair.clean.as_path(), files.read(&pair.clean)?);
    let noisy = match &pair.noisy {
        Some(path) => Some((path, files.read(path)?)),
        None => None,
    };
    let input = noisy.as_ref().map(|(path, noisy)| files.score(&clean, noisy, path)).transpose()?;
    let (estimate, output, denoising) = match (&pair.enhanced, &noisy) {
        (Some(path), _) => {
            let enhanced = files.read(path)?;
            let output = files.score(&clean, &enhanced, path)?;
            (enhanced, output, None)
        }
        (None, Some((path, noisy))) => {
            let (denoised, denoising) = denoise_timed(&clean.1, noisy, options, denoise)?;
            let output = score(&clean.1, &denoised, options.high_pass_hz)
                .map_err(|error| format!("{}, denoised: {error}", path.display()))?;
            (denoised, output, Some(denoising))
        }
        (None, None) => return Err("neither a noisy nor an enhanced file".into()),
    };
    let (processing_seconds, trace) =
        denoising.map_or((None, Vec::new()), |(seconds, trace)| (Some(seconds), trace));
    let result = FileResult {
        name: pair.name.clone(),
        condition: pair.condition.clone(),
        duration_seconds: estimate.duration(),
        processing_seconds,
        input,
        output,
        losses: files.losses,
        trace,
    };
    Ok((result, estimate))
}

/// Reader and scorer of the files of a pair.
struct Files<'a> {
    options: &'a Options,
    /// [`FileResult::losses`] so far.
    losses: Vec<String>,
}

impl Files<'_> {
    fn read(&mut self, path: &Path) -> Result<Signal, FileError> {
        let (signal, lost) = audio::read_with_losses(path)?;
        if lost.any() {
            let line = format!("{}: {lost}", path.display());
            if self.options.strict {
                return Err(line.into());
            }
            self.losses.push(line);
        }
        Ok(signal)
    }

    /// Scores the signal of the file at `path` against a clean file.
    fn score(&self, clean: &(&Path, Signal), signal: &Signal, path: &Path) -> Result<Scores, FileError> {
        score(&clean.1, signal, self.options.high_pass_hz).map_err(|error| {
            let is_clean = error == ScoreError::Metric(MetricError::SilentReference);
            let path = if is_clean { clean.0 } else { path };
            format!("{}: {error}", path.display()).into()
        })
    }
}

/// Denoises a recording, and returns the estimate, the time in seconds without the scoring of intermediate estimates,
/// and their scores.
fn denoise_timed<D>(
    clean: &Signal,
    noisy: &Signal,
    options: &Options,
    denoise: &D,
) -> Result<(Signal, (f64, Vec<TracePoint>)), FileError>
where
    D: Fn(&Signal, &mut Observer) -> Result<Signal, FileError>,
{
    let (mut trace, mut scoring, start) = (Vec::new(), Duration::ZERO, Instant::now());
    let denoised = denoise(noisy, &mut |iteration, estimate| {
        let shown = Instant::now();
        // Errors are reported by the score of the final estimate.
        let sdr = score(clean, estimate, options.high_pass_hz).ok().and_then(|s| s.get(Metric::Sdr));
        let seconds = (shown - start - scoring).as_secs_f64();
        trace.extend(sdr.map(|sdr| TracePoint { iteration, seconds, sdr }));
        scoring += shown.elapsed();
    })?;
    Ok((denoised, ((start.elapsed() - scoring).as_secs_f64(), trace)))
}

/// Writes the denoised audio of a pair, but never over the pair's own files. Returns the checksum of the file.
fn save(estimate: &Signal, pair: &Pair, path: &Path, replace: bool) -> Result<String, EvaluationError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(EvaluationError::unwritten(folder))?;
    }
    for input in [pair.noisy.as_ref(), pair.enhanced.as_ref(), Some(&pair.clean)].into_iter().flatten() {
        audio::check_distinct(input, path).map_err(EvaluationError::Output)?;
    }
    let bytes = audio::encode(estimate, Container::from_path(path)).map_err(EvaluationError::Output)?;
    let write = || {
        let mut file = if replace { OutputFile::create(path) } else { OutputFile::create_new(path) }?;
        file.write_all(&bytes)?;
        file.persist()
    };
    write().map_err(EvaluationError::unwritten(path))?;
    Ok(checksum(&bytes))
}
