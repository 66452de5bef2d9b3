//! Denoising of several recordings: which to process, in parallel, and the table of the results.

use super::claims::{Claims, check_absent};
use super::inputs::{LeftOut, audio_files_below};
use super::listing::{Listed, Manifest};
use super::picture;
use super::processing::Processing;
use super::progress::{FileProgress, FolderProgress};
use super::record::{Record, State};
use super::recording::{Found, Recording, SpeechFormat};
use super::shard::Shard;
use super::stats::{Entry, Outcome, Run};
use super::terminal::{
    Failure, columns, interrupted, is_interactive, is_standard, printable, say, usage, write_error,
    write_whole,
};
use super::{Common, exit_code, one_line};
use alphamf::Cancelled;
use alphamf_eval::plot::FrequencyScale;
use anyhow::{Context, anyhow};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{fs, slice, thread};

/// A recording to denoise, and its outputs.
#[derive(Debug)]
pub struct Task {
    input: PathBuf,
    output: PathBuf,
    /// Path of the output, relative to the results folder.
    name: PathBuf,
    residual: Option<PathBuf>,
    plot: Option<PathBuf>,
    plot_scale: FrequencyScale,
    levels: Option<PathBuf>,
    speech: Option<(PathBuf, SpeechFormat)>,
    stats: Option<PathBuf>,
}

/// Output folders; every recording has the same relative path in each.
#[derive(Debug, Clone, Copy)]
pub struct Folders<'a> {
    pub results: &'a Path,
    pub residuals: Option<&'a Path>,
    pub plots: Option<&'a Path>,
    pub plot_scale: FrequencyScale,
    pub levels: Option<&'a Path>,
    pub speech: Option<(&'a Path, SpeechFormat)>,
    pub stats: Option<&'a Path>,
}

/// Recordings to process, and files that are left out.
#[derive(Debug)]
pub struct Plan {
    pub tasks: Vec<Task>,
    pub left_out: Vec<LeftOut>,
}

/// Plans the outputs of files and folders. No output replaces an input or another output.
pub fn plan(
    inputs: &[PathBuf],
    listed: &[Listed],
    folders: Folders,
    processing: &Processing,
    claims: &mut Claims,
) -> anyhow::Result<Plan> {
    let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut left_out = Vec::new();
    let speech = folders.speech.map(|(folder, _)| folder);
    let others = [folders.residuals, folders.plots, folders.levels, speech, folders.stats];
    for folder in others.into_iter().flatten().chain([folders.results]) {
        if folder.exists() && !folder.is_dir() {
            return Err(anyhow!("it is not a folder").context(Failure::Output(folder.to_owned())));
        }
    }
    for input in inputs {
        if is_standard(input) {
            return Err(usage("standard input has no name to keep: name an output instead of -o DIR"));
        }
        if input.is_dir() {
            if fs::canonicalize(input).ok() == fs::canonicalize(folders.results).ok() {
                return Err(usage(format!("{}: the results would replace the recordings", input.display())));
            }
            let (files, others) = audio_files_below(input, Some(folders.results))?;
            left_out.extend(others);
            for file in files {
                let name = file.strip_prefix(input).unwrap_or(&file).to_owned();
                found.push((file, name));
            }
        } else {
            found.push((input.clone(), PathBuf::from(input.file_name().unwrap_or(input.as_os_str()))));
        }
    }
    for Listed { input, name: file } in listed {
        // Those below the present folder stay in theirs.
        let is_below = file.components().all(|part| matches!(part, Component::Normal(_)));
        let name = if is_below { file.as_os_str() } else { file.file_name().unwrap_or(file.as_os_str()) };
        found.push((input.clone(), PathBuf::from(name)));
    }
    let mut named_before = HashSet::new();
    found.retain(|(input, _)| named_before.insert(input.clone()));
    let names = names(found.iter().map(|(_, name)| name.as_path()), processing);
    let mut stems: HashMap<PathBuf, usize> = HashMap::new();
    names.iter().for_each(|name| *stems.entry(name.with_extension("")).or_default() += 1);
    let tasks: Vec<Task> = found
        .into_iter()
        .zip(names)
        .map(|((input, _), name)| {
            // Beside `talk.flac`, what belongs to `talk.wav` has the whole name.
            let is_alone = stems.get(&name.with_extension("")).is_none_or(|&count| count == 1);
            let below = |folder: Option<&Path>, ending: &str| {
                let mut named = folder?.join(&name);
                if is_alone {
                    return Some(with_ending(&named, ending));
                }
                named.as_mut_os_string().push(format!(".{ending}"));
                Some(named)
            };
            Task {
                output: folders.results.join(&name),
                residual: folders.residuals.map(|folder| folder.join(&name)),
                plot: below(folders.plots, "svg"),
                plot_scale: folders.plot_scale,
                levels: below(folders.levels, "csv"),
                speech: folders
                    .speech
                    .and_then(|(folder, format)| Some((below(Some(folder), format.ending())?, format))),
                stats: below(folders.stats, "json"),
                input,
                name,
            }
        })
        .collect();
    tasks.iter().for_each(|task| claims.read(&task.input));
    for task in &tasks {
        processing.check_name(&task.output)?;
        for output in task.outputs() {
            claims.write(output)?;
        }
    }
    Ok(Plan { tasks, left_out })
}

impl Task {
    /// Path of the output, relative to the results folder.
    pub fn name(&self) -> &Path {
        &self.name
    }

    fn outputs(&self) -> impl Iterator<Item = &Path> {
        let speech = self.speech.as_ref().map(|(path, _)| path);
        let others = [&self.residual, &self.plot, &self.levels, &self.stats].into_iter().flatten();
        [self.output.as_path()].into_iter().chain(others.chain(speech).map(PathBuf::as_path))
    }

    /// Whether the outputs are up to date. Fails if an existing output is not a recorded result of this program.
    fn is_done(&self, record: &Record, settings: &str, force: bool) -> anyhow::Result<bool> {
        if force {
            return Ok(false);
        }
        let state = match self.output.exists() {
            true => record.state(&self.name, &self.output, &self.input, settings),
            false => State::Foreign,
        };
        let missing = self.outputs().any(|output| !output.exists());
        match state {
            State::Current if !missing => return Ok(true),
            State::Current | State::Outdated => return Ok(false),
            State::Foreign => {}
        }
        let advice = " (it is not a recorded result)";
        self.outputs().try_for_each(|output| check_absent(output, false, advice))?;
        Ok(false)
    }
}

/// Distinct output names: `talk.mp3` becomes `talk.wav`, or `talk.mp3.wav` beside `talk.wav`; recordings with the same name in
/// two folders are numbered.
fn names<'a>(names: impl Iterator<Item = &'a Path> + Clone, processing: &Processing) -> Vec<PathBuf> {
    let ending = |name: &Path| processing.ending(name);
    let renamed = |name: &Path| with_ending(name, ending(name));
    let mut count: HashMap<PathBuf, usize> = HashMap::new();
    names.clone().for_each(|name| *count.entry(renamed(name)).or_default() += 1);
    let mut taken = HashSet::new();
    let result = names.map(|name| {
        let mut result = renamed(name);
        if count.get(&result).is_some_and(|&count| count > 1) && result != name {
            result = name.to_owned();
            result.as_mut_os_string().push(format!(".{}", ending(name)));
        }
        let mut unique = result.clone();
        for number in 2.. {
            if taken.insert(unique.clone()) {
                break;
            }
            let mut stem = result.file_stem().unwrap_or_default().to_owned();
            stem.push(format!("-{number}.{}", ending(name)));
            unique = result.with_file_name(stem);
        }
        unique
    });
    result.collect()
}

/// Replaces the extension of a name, unless it is already `ending` in upper or lower case.
fn with_ending(name: &Path, ending: &str) -> PathBuf {
    let has = name.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending));
    if has { name.to_owned() } else { name.with_extension(ending) }
}

/// Processes the tasks in parallel. Returns the outcome of each, and the exit code of the first failure, or 0.
pub fn run(
    tasks: &[Task],
    run: &Run,
    results: &Path,
    force: bool,
    common: &Common,
) -> anyhow::Result<(Vec<Entry>, u8)> {
    let record = Record::open(results)?;
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
            let (entry, code) = one(task, run, &record, force, &mut file);
            file.finish(entry.found.as_ref().map(|found| found.statistics.duration_seconds));
            if let Ok(mut finished) = finished.lock() {
                finished.push((index, entry, code));
            }
        }
    };
    // Threads beside those of the pool, which all files use: one starts a file when it has finished another.
    thread::scope(|scope| {
        for _ in 0..rayon::current_num_threads().min(tasks.len()) {
            scope.spawn(work);
        }
    });
    drop(progress);
    // Folders come after those that hold them. One that holds a result is not empty and stays.
    missing.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    if interrupted().is_break() {
        return Err(Cancelled.into());
    }
    let mut finished = finished.into_inner().unwrap_or_default();
    finished.sort_by_key(|(index, ..)| *index);
    let code = finished.iter().map(|(.., code)| *code).find(|&code| code != 0).unwrap_or(0);
    let mut entries: Vec<Entry> = finished.into_iter().map(|(_, entry, _)| entry).collect();
    // As `denoise merge` has them.
    entries.sort_by(|a, b| a.input.to_string_lossy().cmp(&b.input.to_string_lossy()));
    if common.quiet {
        for entry in &entries {
            if let Some(error) = &entry.error {
                say(&format!("denoise: {error}"));
            }
        }
    } else {
        let columns = is_interactive().then(columns);
        write_error(&table(&entries, began.elapsed().as_secs_f64(), columns));
    }
    Ok((entries, code))
}

/// Folders of results that do not exist yet: those that a run leaves empty, as its files failed, are removed again.
fn missing_folders(tasks: &[Task]) -> BTreeSet<PathBuf> {
    let folders = tasks.iter().flat_map(Task::outputs).flat_map(|output| output.ancestors().skip(1));
    folders.filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()).map(Path::to_owned).collect()
}

/// Where the manifest of the results goes, below their folder; `None` for a list of names. Refuses to replace a file that
/// this program did not write.
pub fn result_manifest(
    manifest: &Manifest,
    shard: Option<Shard>,
    run: &Run,
    results: &Path,
    force: bool,
) -> anyhow::Result<Option<PathBuf>> {
    let Some(name) = manifest.result_name() else { return Ok(None) };
    let mut whole = shard.map_or_else(OsString::new, |shard| format!("{shard}.").replace('/', "-of-").into());
    whole.push(name);
    let (name, output) = (PathBuf::from(&whole), results.join(&whole));
    if !force && output.exists() {
        let record = Record::open(results)?;
        if record.state(&name, &output, manifest.path(), run.settings_checksum()) == State::Foreign {
            check_absent(&output, false, " (it is not a recorded result)")?;
        }
    }
    Ok(Some(name))
}

/// Writes the manifest of the results.
pub fn write_manifest(
    manifest: &Manifest,
    name: &Path,
    entries: &[Entry],
    run: &Run,
    results: &Path,
) -> anyhow::Result<()> {
    let mut outputs: HashMap<&Path, PathBuf> = HashMap::new();
    for Entry { input, output, .. } in entries.iter().filter(|entry| entry.outcome != Outcome::Failed) {
        outputs.insert(input, std::path::absolute(output)?);
    }
    let output = results.join(name);
    fs::create_dir_all(results).with_context(|| Failure::Output(results.to_owned()))?;
    write_whole(&output, &manifest.of_results(&outputs)?)?;
    Record::open(results)?.add(name, &output, manifest.path(), run.settings_checksum())
}

/// Denoises one file. Returns the outcome and its exit code.
fn one(task: &Task, run: &Run, record: &Record, force: bool, progress: &mut FileProgress) -> (Entry, u8) {
    let Task { input, output, name, residual, plot, plot_scale, levels, speech, stats } = task;
    let entry =
        |outcome, error| Entry { input: input.clone(), output: output.clone(), outcome, error, found: None };
    let recording = Recording {
        denoiser: run.denoiser(),
        session: run.session(),
        processing: run.processing(),
        input,
        output,
        residual: residual.as_deref(),
        draw: plot.is_some().then_some(*plot_scale),
        levels: levels.is_some(),
        speech: speech.is_some(),
    };
    let settings = run.settings_checksum();
    let mut denoise = || -> anyhow::Result<Option<Entry>> {
        if task.is_done(record, settings, force)? {
            return Ok(None);
        }
        for folder in task.outputs().filter_map(Path::parent) {
            fs::create_dir_all(folder).with_context(|| Failure::Output(folder.to_owned()))?;
        }
        let found = recording.denoise(&mut |seconds, duration| progress.update(seconds, duration))?;
        if let (Some(path), Some(figure)) = (plot, &found.figure) {
            picture::write(figure, path)?;
        }
        if let (Some(path), Some(table)) = (levels, &found.levels) {
            write_whole(path, table.as_bytes())?;
        }
        if let Some((path, format)) = speech {
            found.write_speech(path, *format, input)?;
        }
        let entry = Entry::denoised(input, output, found);
        if let Some(stats) = stats {
            run.write(stats, slice::from_ref(&entry), &[])?;
        }
        record.add(name, output, input, settings)?;
        Ok(Some(entry))
    };
    match denoise() {
        Ok(Some(entry)) => (entry, 0),
        Ok(None) => (entry(Outcome::Skipped, None), 0),
        Err(error) => (entry(Outcome::Failed, Some(one_line(&error))), exit_code(&error)),
    }
}

/// Minimum columns for the name of a file.
const MIN_NAME_COLUMNS: usize = 16;

/// Replaces the beginning of a name of more than `room` characters with an ellipsis.
fn shorten(name: &mut String, room: usize) {
    let length = name.chars().count();
    if length > room {
        *name = std::iter::once('…').chain(name.chars().skip(length + 1 - room)).collect();
    }
}

/// A line for each file, and a summary line. Long names are shortened to fit `columns`, the width of the terminal.
fn table(entries: &[Entry], seconds: f64, columns: Option<usize>) -> String {
    let level = |level: Option<f64>| level.map(|level| format!("{level:.1} dB")).unwrap_or_default();
    let row = |entry: &Entry| -> [String; 6] {
        let name = entry.input.display().to_string();
        let shown = printable(&name);
        let (note, found) = match (&entry.found, &entry.error) {
            (Some(found), _) => (found.notes().join("; "), Some(found)),
            // The name stands in the first column.
            (None, Some(error)) => {
                let error = error.strip_prefix(&format!("{name}: ")).unwrap_or(error);
                (printable(&format!("failed: {error}")), None)
            }
            (None, None) => ("skipped: up to date".to_owned(), None),
        };
        let duration =
            found.map(|found| format!("{:.2} s", found.statistics.duration_seconds)).unwrap_or_default();
        let of = |value: fn(&Found) -> Option<f64>| level(found.and_then(value));
        let snr = of(|found| found.statistics.snr_before_db);
        [
            shown,
            duration,
            snr,
            of(|found| found.statistics.noise_before_dbfs),
            of(|found| found.statistics.noise_after_dbfs),
            note,
        ]
    };
    let mut rows = vec![["file", "length", "SNR before", "noise before", "after", ""].map(str::to_owned)];
    rows.extend(entries.iter().map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut widths: [usize; 5] = std::array::from_fn(width);
    if let Some(columns) = columns {
        let figures = widths[1..].iter().map(|width| width + 2).sum();
        let room = columns.saturating_sub(figures).max(MIN_NAME_COLUMNS);
        rows.iter_mut().for_each(|[name, ..]| shorten(name, room));
        widths[0] = widths[0].min(room);
    }
    let mut text = String::new();
    for [name, length, snr, before, after, note] in &rows {
        let [first, second, third, fourth, fifth] = widths;
        let line = format!(
            "{name:<first$}  {length:>second$}  {snr:>third$}  {before:>fourth$}  {after:>fifth$}  {note}"
        );
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

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn long_names_lose_their_beginning() {
        for (room, expected) in [(12, "a/folder/b.ä"), (11, "…folder/b.ä"), (4, "…b.ä")] {
            let mut name = "a/folder/b.ä".to_owned();
            shorten(&mut name, room);
            assert_eq!(name, expected);
        }
    }
}
