//! Denoising of several recordings in parallel: planning, processing and the table of results.

mod names;
mod table;
mod turn;

use super::claims::{Claims, check_replaceable};
use super::common::Common;
use super::failure::{Failure, caught, exit_code, one_line, usage};
use super::inputs::{LeftOut, audio_files_below, plain};
use super::interrupts::{check_interrupt, interrupted};
use super::manifest::Listed;
use super::processing::Processing;
use super::progress::{FileProgress, FolderProgress};
use super::record::{self, Record, Snapshot, State, WantedReport};
use super::recording::Recording;
use super::reports::Reports;
use super::stats::{Entry, Outcome, Run};
use super::streams::{check_output, check_possible, is_standard, not_a_folder};
use super::terminal::{columns, is_interactive, say, write_error};
use alphamf_files::output::{follow_links, is_partial};
use alphamf_files::{Error, WriteError};
use anyhow::{Context, anyhow};
use names::{Names, names, with_ending};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{fs, slice, thread};
use table::table;
use turn::NamingLock;

/// A recording to denoise, and its outputs.
#[derive(Debug)]
pub struct Task {
    input: PathBuf,
    output: PathBuf,
    /// Path of the output, relative to the results folder.
    name: PathBuf,
    reports: Reports<PathBuf>,
    /// The folder of the residuals, unless it holds recordings.
    residuals: Option<PathBuf>,
}

/// Output folders; every recording has the same relative path in each.
#[derive(Debug, Clone, Copy)]
pub struct Folders<'a> {
    pub results: &'a Path,
    pub reports: Reports<&'a Path>,
}

/// Recordings to process, and files that are left out.
#[derive(Debug)]
pub struct Batch {
    pub tasks: Vec<Task>,
    pub left_out: Vec<LeftOut>,
    /// Results of earlier runs in the folder.
    pub record: Record,
}

/// Plans the outputs of files and folders. No output replaces an input or another output.
pub fn plan(
    inputs: &[PathBuf],
    listed: &[Listed],
    folders: Folders,
    processing: &Processing,
    claims: &mut Claims,
) -> anyhow::Result<Batch> {
    folders.check(inputs)?;
    if let Some(folder) = inputs.iter().find(|input| processing.raw.is_some() && input.is_dir()) {
        let name = folder.display();
        return Err(usage(format!("{name} is a folder: with --raw, name its files")));
    }
    let (mut found, left_out) = find(inputs, listed, folders)?;
    let (mut places, mut files) = (HashSet::new(), HashSet::new());
    found.retain(|Listed { input, name }| {
        // Removes duplicates, also through `..` or a linked folder. Two links to one file stay if their results have
        // different names.
        places.insert(in_folder(input)) && files.insert((record::source(input), name.clone()))
    });
    let record = Record::open(folders.results)?;
    let tasks = tasks(found, folders, processing, &record.sources());
    tasks.iter().for_each(|task| claims.read(&task.input));
    for task in &tasks {
        processing.check_name(&task.output)?;
        for output in task.outputs() {
            claims.write(output)?;
        }
    }
    Ok(Batch { tasks, left_out, record })
}

/// Absolute path of a file, the same for all spellings of its folder.
fn in_folder(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (fs::canonicalize(parent), file.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => file.to_owned(),
    }
}

/// Finds recordings, with their names below the output folders, and the files left out. Among several inputs, a folder
/// that cannot be used is left out as a failure.
fn find(
    inputs: &[PathBuf],
    listed: &[Listed],
    folders: Folders,
) -> anyhow::Result<(Vec<Listed>, Vec<LeftOut>)> {
    let mut found = Vec::new();
    let mut left_out = Vec::new();
    let outputs: Vec<&Path> = folders.all().collect();
    for input in inputs {
        let input = &plain(input);
        if !input.is_dir() {
            let name = PathBuf::from(input.file_name().unwrap_or(input.as_os_str()));
            found.push(Listed { input: input.clone(), name });
            continue;
        }
        let (files, others) = match audio_files_below(input, &outputs) {
            Ok(contents) => contents,
            Err(error) if inputs.len() + listed.len() == 1 => return Err(error),
            Err(error) => (Vec::new(), vec![LeftOut::failed(input, &error)]),
        };
        left_out.extend(others);
        for file in files {
            let file = plain(&file);
            let name = file.strip_prefix(input).unwrap_or(&file).to_owned();
            found.push(Listed { input: file, name });
        }
    }
    for Listed { input, name: file } in listed {
        // Files below the current folder keep their relative path.
        let is_below = file.components().all(|part| matches!(part, Component::Normal(_)));
        let name = if is_below { file.as_os_str() } else { file.file_name().unwrap_or(file.as_os_str()) };
        found.push(Listed { input: input.clone(), name: PathBuf::from(name) });
    }
    Ok((found, left_out))
}

/// Creates the tasks of recordings with their names below the output folders. `sources` maps earlier results to their
/// inputs.
fn tasks(
    found: Vec<Listed>,
    folders: Folders,
    processing: &Processing,
    sources: &HashMap<String, String>,
) -> Vec<Task> {
    let one = Names::of(&found, folders.results);
    let names = names(&found, processing, sources, one);
    let stem = |name: &Path| one.key(&name.with_extension(""));
    let mut stems: HashMap<PathBuf, usize> = HashMap::new();
    names.iter().for_each(|name| *stems.entry(stem(name)).or_default() += 1);
    let holds_recording = |folder: &&Path| {
        let place = fs::canonicalize(folder).ok();
        place.is_some_and(|place| {
            found.iter().any(|listed| Path::new(&record::source(&listed.input)).starts_with(&place))
        })
    };
    let marked = folders.reports.residual.filter(|folder| !holds_recording(folder)).map(Path::to_owned);
    let task = |(Listed { input, .. }, name): (Listed, PathBuf)| {
        // Beside `talk.flac`, the reports on `talk.wav` keep its whole name.
        let is_alone = stems.get(&stem(&name)).is_none_or(|&count| count == 1);
        let below = |folder: &Path, ending: &str| {
            let mut named = folder.join(&name);
            if is_alone {
                return with_ending(&named, ending);
            }
            named.as_mut_os_string().push(format!(".{ending}"));
            named
        };
        Task {
            output: folders.results.join(&name),
            reports: folders.reports.map(|folder, ending| match ending {
                Some(ending) => below(folder, ending),
                None => folder.join(&name),
            }),
            residuals: marked.clone(),
            input,
            name,
        }
    };
    found.into_iter().zip(names).map(task).collect()
}

impl Folders<'_> {
    /// All output folders, that of the results first.
    fn all(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.results).chain(self.reports.paths())
    }

    /// Refuses output folders that are files, and inputs among which results or statistics would lie.
    fn check(&self, inputs: &[PathBuf]) -> anyhow::Result<()> {
        for folder in self.all() {
            if is_standard(folder) {
                return Err(usage(
                    "with -o, outputs and reports are folders, not standard output: name a folder",
                ));
            }
            // Without the final slash: with it, a file is not found.
            let bare: PathBuf = folder.components().collect();
            if fs::symlink_metadata(&bare).is_ok() && !bare.is_dir() {
                let reason = anyhow!("it is {}", not_a_folder(&bare));
                return Err(reason.context(Failure::Output(folder.to_owned())));
            }
            check_possible(&bare)?;
        }
        let apart = [
            (Some(self.results), "the results would replace the recordings"),
            (self.reports.stats, "the statistics would lie among the recordings"),
        ];
        for input in inputs {
            if is_standard(input) {
                return Err(usage("standard input has no name to keep: name an output instead of -o DIR"));
            }
            for (folder, reason) in apart {
                let same = |folder: &Path| fs::canonicalize(input).ok() == fs::canonicalize(folder).ok();
                if input.is_dir() && folder.is_some_and(same) {
                    return Err(usage(format!("{}: {reason}: choose another folder", input.display())));
                }
            }
        }
        Ok(())
    }
}

impl Task {
    /// Path of the output, relative to the results folder.
    pub fn name(&self) -> &Path {
        &self.name
    }

    fn outputs(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.output.as_path()).chain(self.reports.paths())
    }

    /// Removes the reports of an earlier run, so that a killed run leaves no reports on another result. Also removes
    /// its result, unless this run replaces it.
    fn remove_earlier(&self, replace: bool) -> anyhow::Result<()> {
        let earlier = self.outputs().skip(usize::from(replace));
        for path in earlier.filter(|path| path.is_file()) {
            let target = follow_links(path).and_then(fs::remove_file);
            target.with_context(|| Failure::Output(path.to_owned()))?;
        }
        Ok(())
    }

    /// Determines the remaining work. Fails if an existing output is not a recorded result of this program.
    fn work(&self, record: &Record, settings: &str, force: bool) -> anyhow::Result<Work> {
        if force {
            return Ok(Work::All);
        }
        // Every run records a result before naming it, so a result that exists now is in the refreshed record.
        let is_there = self.output.exists();
        record.refresh()?;
        let state = if is_there {
            let state = record.state(&self.name, &self.output, &self.input, settings);
            check_replaceable(&state, &self.output)?;
            state
        } else {
            State::Foreign
        };
        let mut work = if state == State::Current { Work::Nothing } else { Work::All };
        for report in self.reports.wanted() {
            let report_state = record.report_state(&self.name, &report, &self.input, settings);
            if report_state == State::Current {
                continue;
            }
            check_replaceable(&report_state, report.path)?;
            if work == Work::Nothing {
                work = Work::Reports;
            }
        }
        Ok(work)
    }
}

/// Remaining work on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Nothing,
    /// The result is up to date, but not all reports are.
    Reports,
    All,
}

/// Whether an error reports that another file has taken the name of an output.
fn is_taken(error: &anyhow::Error, output: &Path) -> bool {
    let Some(Error::Write { path, reason: WriteError::Io(reason) }) = error.downcast_ref() else {
        return false;
    };
    path == output && reason.kind() == io::ErrorKind::AlreadyExists
}

/// Processes the tasks in parallel. Returns the outcome of each, and the exit code of the first failure, or 0. The
/// summary also counts failures in `left_out`.
pub fn run(
    tasks: &[Task],
    left_out: &[LeftOut],
    run: &Run,
    record: &Record,
    force: bool,
    common: &Common,
) -> anyhow::Result<(Vec<Entry>, u8)> {
    let missing = missing_folders(tasks);
    let began = Instant::now();
    let sizes: Vec<u64> =
        tasks.iter().map(|task| fs::metadata(&task.input).map_or(0, |file| file.len())).collect();
    let progress = FolderProgress::new(sizes.iter().copied(), common.quiet);
    let next = AtomicUsize::new(0);
    let finished: Mutex<Vec<(usize, Entry, u8)>> = Mutex::new(Vec::new());
    let work = || {
        while interrupted().is_continue() {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((task, &size)) = tasks.get(index).zip(sizes.get(index)) else { break };
            let mut file = progress.file(&task.name, size);
            let (entry, code) = one(task, run, record, force, &mut file);
            file.finish(entry.found.as_ref().map(|found| found.statistics.duration_seconds));
            if let Ok(mut finished) = finished.lock() {
                finished.push((index, entry, code));
            }
        }
    };
    // Threads in addition to the pool, which all files share: each starts a file when it has finished another.
    on_threads(rayon::current_num_threads().min(tasks.len()), work);
    drop(progress);
    // Parents precede their subfolders in the set. A folder with a result is not empty and stays.
    missing.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    check_interrupt()?;
    let mut finished = finished.into_inner().unwrap_or_default();
    finished.sort_by_key(|(index, ..)| *index);
    let code = finished.iter().map(|(.., code)| *code).find(|&code| code != 0).unwrap_or(0);
    let mut entries: Vec<Entry> = finished.into_iter().map(|(_, entry, _)| entry).collect();
    // In the order of `denoise merge`.
    entries.sort_by_cached_key(|entry| record::key(&entry.input));
    if common.quiet {
        for entry in &entries {
            if let Some(error) = &entry.error {
                say(&format!("denoise: {error}"));
            }
        }
    } else {
        let columns = is_interactive().then(columns);
        write_error(&table(&entries, left_out, began.elapsed().as_secs_f64(), columns));
    }
    Ok((entries, code))
}

/// Runs `work` on `count` threads, or on as many as the system allows.
fn on_threads(count: usize, work: impl Fn() + Sync) {
    thread::scope(|scope| {
        let start = |_: &usize| thread::Builder::new().spawn_scoped(scope, &work).is_ok();
        if (0..count).take_while(start).count() == 0 {
            work();
        }
    });
}

/// Output folders that do not exist yet, or hold only partial files of a killed run. A run removes them again if they
/// stay empty because all files failed.
fn missing_folders(tasks: &[Task]) -> BTreeSet<PathBuf> {
    let folders = tasks.iter().flat_map(Task::outputs).flat_map(|output| output.ancestors().skip(1));
    let folders: BTreeSet<&Path> = folders.filter(|folder| !folder.as_os_str().is_empty()).collect();
    let is_missing = |folder: &&Path| !folder.exists() || holds_partial_files_alone(folder);
    folders.into_iter().filter(is_missing).map(Path::to_owned).collect()
}

/// Whether a folder holds files, and all of them are partial.
fn holds_partial_files_alone(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let mut is_partial =
        entries.map(|entry| entry.is_ok_and(|entry| is_partial(&entry.file_name()))).peekable();
    is_partial.peek().is_some() && is_partial.all(|is_partial| is_partial)
}

/// Processes one task. Returns the outcome and its exit code.
fn one(task: &Task, run: &Run, record: &Record, force: bool, progress: &mut FileProgress) -> (Entry, u8) {
    let entry = |outcome, error| {
        let (input, output) = (task.input.clone(), task.output.clone());
        Entry { input, output, outcome, error, found: None }
    };
    // A panic fails this file alone.
    let denoised = caught(|| denoise(task, run, record, force, progress));
    match denoised.with_context(|| task.input.display().to_string()).flatten() {
        Ok(Some(entry)) => (entry, 0),
        Ok(None) => (entry(Outcome::Skipped, None), 0),
        Err(error) => (entry(Outcome::Failed, Some(one_line(&error))), exit_code(&error)),
    }
}

/// Denoises one file, unless its result is up to date or another run completes it first.
fn denoise(
    task: &Task,
    run: &Run,
    record: &Record,
    force: bool,
    progress: &mut FileProgress,
) -> anyhow::Result<Option<Entry>> {
    let Task { input, output, name, reports, residuals } = task;
    let settings = run.settings_checksum();
    let wanted: Vec<WantedReport> = reports.wanted().collect();
    let original = Snapshot::of(input);
    // An existing output is a recorded result, or else `work` fails.
    let replace = force || output.exists();
    let work = task.work(record, settings, force)?;
    if work == Work::Nothing {
        return Ok(None);
    }
    record.check_writable()?;
    for folder in task.outputs().filter_map(Path::parent) {
        fs::create_dir_all(folder).with_context(|| Failure::Output(folder.to_owned()))?;
    }
    // Some reports are opened only after denoising.
    task.outputs().try_for_each(check_output)?;
    let recording = Recording {
        denoiser: run.denoiser(),
        session: run.session(),
        processing: run.processing(),
        input,
        output,
        reports: reports.map(|path, _| path.as_path()),
        replace,
    };
    let denoised = recording.denoise(&mut |seconds, duration| progress.update(seconds, duration))?;
    // Held until the reports are recorded.
    let _lock = denoised.content().map(|_| NamingLock::wait(output)).transpose()?;
    let mut made = None;
    if let Some(content) = denoised.content() {
        // Another run may have completed all outputs meanwhile. `work` also refuses to replace files that appeared or
        // were edited since this run began.
        if task.work(record, settings, force)? == Work::Nothing {
            return Ok(None);
        }
        original.check()?;
        task.remove_earlier(replace)?;
        made = record.add(name, content, &original, settings, &wanted)?;
    }
    let found = match denoised.persist() {
        // Another run took the name, on a file system without locks.
        Err(error) if is_taken(&error, output) && task.work(record, settings, force)? == Work::Nothing => {
            return Ok(None);
        }
        found => found?,
    };
    residuals.as_deref().map_or(Ok(()), record::mark)?;
    let entry = Entry::denoised(input, output, found);
    if let Some(stats) = &reports.stats {
        run.write(stats, slice::from_ref(&entry), &[], None, replace)?;
    }
    made.map_or(Ok(()), |made| record.add_reports(made, &wanted))?;
    Ok(Some(entry))
}
