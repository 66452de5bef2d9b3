//! Record of the results in a folder and of their inputs, by which a repeated run skips up-to-date results.

mod stamp;

use super::failure::Failure;
use alphamf_files::output::place;
use anyhow::Context;
use serde::{Deserialize, Serialize};
pub use stamp::Snapshot;
use stamp::{Content, Stamp};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Name of the record in a folder of results.
pub const NAME: &str = ".alphamf-results.jsonl";
/// Maximum number of bytes that are read from the end of a record: about the newest 500,000 results.
const MAX_BYTES: u64 = 256 << 20;

/// The results in a folder, one line of JSON each, in chronological order.
///
/// A line is written before its result is named. The last line of a result is valid, unless its run was killed before
/// naming the result: then an earlier line is valid.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    known: Mutex<ParsedLines>,
    /// Opened for the first result.
    file: Mutex<Option<File>>,
}

/// The lines that have been read.
#[derive(Debug, Default)]
struct ParsedLines {
    made: HashMap<String, Vec<Arc<RecordedResult>>>,
    /// Length of the record when it was read.
    length: u64,
}

/// A result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecordedResult {
    /// Path below the folder.
    output: String,
    /// Checksum of the program's version, the models and all settings.
    settings: String,
    input: Stamp,
    result: Stamp,
    /// Absolute path of the input; lines of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    /// Reports of the result; lines of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reports: Option<Vec<MadeReport>>,
}

/// A report of a result.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct MadeReport {
    /// Absolute path.
    path: String,
    /// Options that shape this report alone.
    options: String,
    /// None until it is written.
    stamp: Option<Stamp>,
}

/// A report that a run asks for.
#[derive(Debug, Clone)]
pub struct WantedReport<'a> {
    pub path: &'a Path,
    /// Options that shape this report alone.
    pub options: String,
}

/// The state of a result or report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Up to date: made from this input with these settings and options.
    Current,
    /// Made from an earlier content of this input or with other settings, empty, or a missing report: may be replaced.
    Outdated,
    /// A result that was made from another input, which still exists at this path.
    OfAnother(PathBuf),
    /// Changed since this program made it.
    Changed,
    /// Not made by this program.
    Foreign,
}

impl RecordedResult {
    /// The report at this absolute path.
    fn report(&self, path: &str) -> Option<&MadeReport> {
        self.reports.iter().flatten().find(|report| report.path == path)
    }

    /// The input of this result, if it is another one and still exists.
    fn other_source(&self, input: &Path) -> Option<PathBuf> {
        let source = self.source.as_deref().filter(|&other| other != source(input))?;
        Path::new(source).exists().then(|| source.into())
    }
}

impl Record {
    /// Opens the record of a folder, which need not exist. Lines that cannot be parsed are ignored.
    ///
    /// Fails if it is a link, a pipe or a device: writing would change another file, or block.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let record = Self { path: folder.join(NAME), known: Mutex::default(), file: Mutex::new(None) };
        record.refresh()?;
        Ok(record)
    }

    /// Reads the lines that this run and others have added.
    pub fn refresh(&self) -> anyhow::Result<()> {
        match open_regular(File::options().read(true), &self.path) {
            Ok(file) => self.known().read_on(file).with_context(|| Failure::Input(self.path.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error).with_context(|| Failure::Output(self.path.clone())),
        }
    }

    fn known(&self) -> MutexGuard<'_, ParsedLines> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of a result that exists.
    pub fn state(&self, name: &Path, output: &Path, input: &Path, settings: &str) -> State {
        if fs::metadata(output).is_ok_and(|found| found.len() == 0) {
            return State::Outdated;
        }
        let lines = self.lines(name);
        if lines.is_empty() {
            return State::Foreign;
        }
        let content = Content::of(output);
        let found = lines.iter().rev().find_map(|made| Some((made, content.stamp_if(&made.result)?)));
        let Some((made, result)) = found else { return State::Changed };
        let input_stamp = || Content::of(input).stamp_if(&made.input);
        if let Some(input) = (made.settings == settings).then(input_stamp).flatten() {
            if result != made.result || input != made.input {
                self.renew(&RecordedResult { input, result, ..RecordedResult::clone(made) });
            }
            return State::Current;
        }
        made.other_source(input).map_or(State::Outdated, State::OfAnother)
    }

    /// Records new modification times of up-to-date files, so that these need not be read again.
    fn renew(&self, made: &RecordedResult) {
        // Failure only costs another reading.
        let _unwritten = self.append(made).and_then(|()| self.refresh());
    }

    /// The lines of a result, the newest last.
    fn lines(&self, name: &Path) -> Vec<Arc<RecordedResult>> {
        self.known().made.get(&key(name)).cloned().unwrap_or_default()
    }

    /// The state of a report of a result with this name.
    pub fn report_state(&self, name: &Path, report: &WantedReport, input: &Path, settings: &str) -> State {
        if !report.path.exists() {
            return State::Outdated;
        }
        let lines = self.lines(name);
        let path = place_key(report.path);
        let found: Vec<(&RecordedResult, &MadeReport)> =
            lines.iter().rev().filter_map(|line| Some((&**line, line.report(&path)?))).collect();
        let (content, input) = (Content::of(report.path), Content::of(input));
        let written: Vec<(&RecordedResult, &MadeReport, Stamp)> = found
            .iter()
            .filter_map(|&(line, made)| Some((line, made, content.stamp_if(made.stamp.as_ref()?)?)))
            .collect();
        let is_current = |line: &RecordedResult, made: &MadeReport| {
            line.settings == settings
                && made.options == report.options
                && input.stamp_if(&line.input).is_some()
        };
        if let Some((line, made, stamp)) = written.iter().find(|(line, made, _)| is_current(line, made)) {
            let is_newest = lines.last().is_some_and(|newest| std::ptr::eq(&**newest, *line));
            if is_newest && made.stamp.as_ref() != Some(stamp) {
                let mut renewed = RecordedResult::clone(line);
                let touched = renewed.reports.iter_mut().flatten().find(|made| made.path == path);
                touched.into_iter().for_each(|made| made.stamp = Some(stamp.clone()));
                self.renew(&renewed);
            }
            return State::Current;
        }
        if !written.is_empty() {
            return State::Outdated;
        }
        match found.first() {
            // A run that was killed may have written it.
            Some((_, made)) if made.stamp.is_none() => State::Outdated,
            Some(_) => State::Changed,
            None if lines.iter().any(|made| made.reports.is_none()) => State::Outdated,
            None => State::Foreign,
        }
    }

    /// Maps the names of the results in the folder to the absolute paths of their inputs.
    pub fn sources(&self) -> HashMap<String, String> {
        let known = self.known();
        let source = |(output, lines): (&String, &Vec<Arc<RecordedResult>>)| {
            Some((output.clone(), lines.last()?.source.clone()?))
        };
        known.made.iter().filter_map(source).collect()
    }

    /// Records a new result, whose `content` still has a temporary name, and the names of its reports, which are not
    /// written yet. Fails if the input has changed. Results from pipes are not recorded, as pipes can be read only
    /// once.
    pub fn add(
        &self,
        name: &Path,
        content: &Path,
        original: &Snapshot,
        settings: &str,
        reports: &[WantedReport],
    ) -> anyhow::Result<Option<RecordedResult>> {
        if original.is_pipe() {
            return Ok(None);
        }
        let input = original.path;
        let planned = |report: &WantedReport| MadeReport {
            path: place_key(report.path),
            options: report.options.clone(),
            stamp: None,
        };
        let made = || -> io::Result<RecordedResult> {
            let source = Some(source(input));
            let (input, result) = (Stamp::of(input)?, Stamp::of(content)?);
            let reports = Some(reports.iter().map(planned).collect());
            Ok(RecordedResult {
                output: key(name),
                settings: settings.to_owned(),
                input,
                result,
                source,
                reports,
            })
        };
        let made = made().with_context(|| Failure::Output(self.path.clone()))?;
        original.check()?;
        self.append(&made)?;
        Ok(Some(made))
    }

    /// Records the reports of a result after they are written.
    pub fn add_reports(&self, mut made: RecordedResult, reports: &[WantedReport]) -> anyhow::Result<()> {
        if reports.is_empty() {
            return Ok(());
        }
        for (made, report) in made.reports.iter_mut().flatten().zip(reports) {
            // Another run may just have removed it to replace it.
            made.stamp = Stamp::of(report.path).ok();
        }
        self.append(&made)
    }

    /// Fails if a record that exists cannot be written to, before any work.
    pub fn check_writable(&self) -> anyhow::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_none() {
            match open_regular(File::options().read(true).append(true), &self.path) {
                Ok(opened) => *file = Some(opened),
                // If it does not exist, outputs are opened in its folder before it is created.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| Failure::Output(self.path.clone())),
            }
        }
        Ok(())
    }

    fn append(&self, made: &RecordedResult) -> anyhow::Result<()> {
        let append = || -> io::Result<()> {
            let line = serde_json::to_vec(made)?;
            let mut file = self.file.lock().map_err(|_| io::Error::other("a thread failed"))?;
            let file = match &mut *file {
                Some(file) => file,
                none => none
                    .insert(open_regular(File::options().create(true).read(true).append(true), &self.path)?),
            };
            // Other runs wait. Without locks, each line is still written in a single call.
            let _unsupported = file.lock();
            let appended = append_line(file, line);
            let _unsupported = file.unlock();
            appended
        };
        append().with_context(|| Failure::Output(self.path.clone()))
    }
}

/// Appends a line as a whole or not at all. Completes the line before with the line break that a killed run may have
/// omitted.
fn append_line(file: &mut File, mut line: Vec<u8>) -> io::Result<()> {
    let length = file.metadata()?.len();
    if length > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            line.insert(0, b'\n');
        }
    }
    line.push(b'\n');
    file.write_all(&line).inspect_err(|_| {
        let _left = file.set_len(length);
    })
}

impl ParsedLines {
    /// Reads the lines that were added since the last call.
    fn read_on(&mut self, file: File) -> io::Result<()> {
        let length = file.metadata()?.len();
        if length == self.length {
            return Ok(());
        }
        if length < self.length {
            *self = Self::default();
        }
        let mut text = Vec::new();
        read_range(file, self.length.max(length.saturating_sub(MAX_BYTES))..length, &mut text)?;
        let lines = text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        lines.for_each(|line: RecordedResult| {
            self.made.entry(line.output.clone()).or_default().push(Arc::new(line))
        });
        // Another run may be writing the last line.
        let unfinished = text.iter().rev().take_while(|&&byte| byte != b'\n').count();
        self.length = length - unfinished as u64;
        Ok(())
    }
}

/// Marks a folder as one of results, by creating its record.
pub fn mark(folder: &Path) -> anyhow::Result<()> {
    let path = folder.join(NAME);
    if path.exists() {
        return Ok(());
    }
    let made = open_regular(File::options().create(true).append(true), &path);
    made.map(drop).with_context(|| Failure::Output(path))
}

/// Absolute path of an input, the same for all links to it.
pub fn source(input: &Path) -> String {
    let path = fs::canonicalize(input).or_else(|_| std::path::absolute(input));
    key(&path.unwrap_or_else(|_| input.to_owned()))
}

/// Absolute path of an output, which need not exist.
fn place_key(output: &Path) -> String {
    key(&place(output))
}

/// Reads bytes of a file.
fn read_range(mut file: File, bytes: Range<u64>, text: &mut Vec<u8>) -> io::Result<()> {
    file.seek(SeekFrom::Start(bytes.start))?;
    file.take(bytes.end - bytes.start).read_to_end(text).map(drop)
}

/// Opens a file without blocking, unless it is a link, pipe or device.
pub fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }
    let irregular = || io::Error::other("it is not a regular file: remove it, or choose another folder");
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(irregular());
    }
    let file = options.open(path)?;
    // It may have been replaced meanwhile.
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

/// A path as text in the record and in statistics, distinct also for names that are not UTF-8.
pub fn key(name: &Path) -> String {
    name.to_str().map_or_else(|| format!("{:?}", name.as_os_str()), str::to_owned)
}

#[cfg(test)]
mod tests;
