//! Many recordings at once.

use super::recording::{Found, Processing, Recording, is_standard, is_written};
use super::stats::{Entry, Outcome};
use super::terminal::{Failure, Progress, check_output, interrupted, usage};
use super::{Common, exit_code, one_line};
use alphamf::audio::{self, Container, Signal};
use alphamf::inference::{DenoiseError, Denoiser};
use anyhow::{Context, anyhow};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// A file to be made.
#[derive(Debug)]
pub struct Task {
    input: PathBuf,
    output: PathBuf,
    /// Whether there is a result already, to be left as it is.
    skip: bool,
}

/// The audio files in and below a folder, one at least, in the order of their names, but for those below `except`.
pub fn audio_files_below(folder: &Path, except: Option<&Path>) -> anyhow::Result<Vec<PathBuf>> {
    let root = folder;
    let except = except.and_then(|folder| fs::canonicalize(folder).ok());
    let mut files = Vec::new();
    // Links can make a circle of folders.
    let mut seen = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let place = fs::canonicalize(&folder).with_context(|| Failure::Input(folder.clone()))?;
        if seen.contains(&place) || except.as_ref() == Some(&place) {
            continue;
        }
        seen.push(place);
        for entry in fs::read_dir(&folder).with_context(|| Failure::Input(folder.clone()))? {
            let path = entry.with_context(|| Failure::Input(folder.clone()))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if audio::has_extension(&path) {
                files.push(path);
            }
        }
    }
    if files.is_empty() {
        return Err(anyhow!("no audio file in it or below").context(Failure::Input(root.to_owned())));
    }
    files.sort();
    Ok(files)
}

/// The recordings to learn from in a folder, once it is clear that the output may be written and is none of them.
pub fn speech_files(folder: &Path, output: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let files = audio_files_below(folder, None)?;
    check_output(output)?;
    for file in &files {
        audio::check_distinct(file, output)?;
    }
    Ok(files)
}

/// Reads recordings one by one for `add`; errors name the file.
pub fn read_each<E>(files: &[PathBuf], mut add: impl FnMut(&Signal) -> Result<(), E>) -> anyhow::Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
{
    for file in files {
        if interrupted().is_break() {
            return Err(DenoiseError::Interrupted.into());
        }
        add(&audio::read(file)?).with_context(|| file.display().to_string())?;
    }
    Ok(())
}

/// What there is to do for these files and folders.
pub fn plan(
    inputs: &[PathBuf],
    folder: &Path,
    processing: &Processing,
    force: bool,
) -> anyhow::Result<Vec<Task>> {
    if folder.exists() && !folder.is_dir() {
        return Err(anyhow!("it is not a folder").context(Failure::Output(folder.to_owned())));
    }
    let mut tasks: Vec<Task> = Vec::new();
    let mut add = |input: PathBuf, name: &Path| {
        let output = folder.join(named(name, processing.container()));
        let skip = !force && output.exists();
        tasks.push(Task { input, output, skip });
    };
    for input in inputs {
        if is_standard(input) {
            return Err(usage("standard input has no name to keep: name an output instead of -o DIR"));
        }
        if input.is_dir() {
            if fs::canonicalize(input).ok() == fs::canonicalize(folder).ok() {
                return Err(usage(format!("{}: the results would replace the recordings", input.display())));
            }
            for file in audio_files_below(input, Some(folder))? {
                let name = file.strip_prefix(input).unwrap_or(&file).to_owned();
                add(file, &name);
            }
        } else {
            add(input.clone(), Path::new(input.file_name().unwrap_or(input.as_os_str())));
        }
    }
    let mut named_before = BTreeSet::new();
    tasks.retain(|task| named_before.insert(task.input.clone()));
    let mut sources: BTreeMap<&Path, &Path> = BTreeMap::new();
    for Task { input, output, .. } in &tasks {
        audio::check_distinct(input, output)?;
        if let Some(other) = sources.insert(output, input) {
            let (other, input, output) = (other.display(), input.display(), output.display());
            return Err(usage(format!("{other} and {input} would both become {output}")));
        }
    }
    Ok(tasks)
}

impl Task {
    /// The file that is read.
    pub fn input(&self) -> &Path {
        &self.input
    }

    /// The file that is written.
    pub fn output(&self) -> &Path {
        &self.output
    }
}

/// The name of the result: the input's, but for the extension if that kind of file is not written.
fn named(name: &Path, container: Option<Container>) -> PathBuf {
    let extension = match container {
        Some(container) if container == Container::from_path(name) && is_written(name) => {
            return name.to_owned();
        }
        Some(Container::Flac) => "flac",
        None if is_written(name) => return name.to_owned(),
        Some(Container::Wav) | None => "wav",
    };
    name.with_extension(extension)
}

/// Does the tasks, several at once, and returns what became of each and the exit code: that of the first
/// file that failed.
pub fn run(
    tasks: Vec<Task>,
    denoiser: &Denoiser,
    processing: &Processing,
    common: &Common,
) -> anyhow::Result<(Vec<Entry>, u8)> {
    let began = Instant::now();
    let progress = Progress::new("denoising", common.quiet);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let finished: Mutex<Vec<(usize, Entry, u8)>> = Mutex::new(Vec::new());
    let work = || {
        while interrupted().is_continue() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(index) else { break };
            let (entry, code) = one(task, denoiser, processing);
            let done = 1 + done.fetch_add(1, Ordering::Relaxed);
            let _ = progress.update(done as f64 / tasks.len() as f64);
            if let Ok(mut finished) = finished.lock() {
                finished.push((index, entry, code));
            }
        }
    };
    // Threads apart from the pool's, which all files share: a file is begun when another is done.
    thread::scope(|scope| {
        for _ in 0..rayon::current_num_threads().min(tasks.len()) {
            scope.spawn(work);
        }
    });
    drop(progress);
    if interrupted().is_break() {
        return Err(DenoiseError::Interrupted.into());
    }
    let mut finished = finished.into_inner().unwrap_or_default();
    finished.sort_by_key(|(index, ..)| *index);
    let code = finished.iter().map(|(.., code)| *code).find(|&code| code != 0).unwrap_or(0);
    let entries: Vec<Entry> = finished.into_iter().map(|(_, entry, _)| entry).collect();
    if common.quiet {
        for entry in &entries {
            if let Some(error) = &entry.error {
                eprintln!("denoise: {error}");
            }
        }
    } else {
        eprint!("{}", table(&entries, began.elapsed().as_secs_f64()));
    }
    Ok((entries, code))
}

/// Denoises one file, and says what became of it and the exit code that stands for that.
fn one(task: &Task, denoiser: &Denoiser, processing: &Processing) -> (Entry, u8) {
    let Task { input, output, skip } = task;
    let entry =
        |outcome, error| Entry { input: input.clone(), output: output.clone(), outcome, error, found: None };
    if *skip {
        return (entry(Outcome::Skipped, None), 0);
    }
    let recording = Recording { denoiser, processing, input, output, residual: None, draw: false };
    let denoise = || {
        if let Some(folder) = output.parent() {
            fs::create_dir_all(folder).with_context(|| Failure::Output(folder.to_owned()))?;
        }
        recording.denoise(&mut |_, _| interrupted())
    };
    match denoise() {
        Ok(found) => (Entry::denoised(input, output, found), 0),
        Err(error) => (entry(Outcome::Failed, Some(one_line(&error))), exit_code(&error)),
    }
}

/// The files, a line each, and how many there are.
fn table(entries: &[Entry], seconds: f64) -> String {
    let level = |level: Option<f64>| level.map(|level| format!("{level:.1} dB")).unwrap_or_default();
    let row = |entry: &Entry| -> [String; 5] {
        let name = entry.input.display().to_string();
        let (note, found) = match (&entry.found, &entry.error) {
            (Some(found), _) => (found.notes().join("; "), Some(found)),
            // The name stands in the first column.
            (None, Some(error)) => {
                (format!("failed: {}", error.strip_prefix(&format!("{name}: ")).unwrap_or(error)), None)
            }
            (None, None) => ("skipped: there is a result already".to_owned(), None),
        };
        let duration = found.map(|found| format!("{:.2} s", found.duration_seconds)).unwrap_or_default();
        let of = |value: fn(&Found) -> Option<f64>| level(found.and_then(value));
        [name, duration, of(|found| found.estimated_snr_db), of(|found| found.attenuation_db), note]
    };
    let mut rows = vec![["file", "length", "SNR before", "attenuation", ""].map(str::to_owned)];
    rows.extend(entries.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 4] = std::array::from_fn(width);
    let mut text = String::new();
    for [name, length, before, attenuation, note] in &rows {
        let [first, second, third, fourth] = widths;
        let line =
            format!("{name:<first$}  {length:>second$}  {before:>third$}  {attenuation:>fourth$}  {note}");
        text += line.trim_end();
        text.push('\n');
    }
    let count = |outcome| entries.iter().filter(|entry| entry.outcome == outcome).count();
    text + &format!(
        "{} denoised, {} skipped, {} failed in {seconds:.1} s\n",
        count(Outcome::Denoised),
        count(Outcome::Skipped),
        count(Outcome::Failed)
    )
}
