//! Record of the results in a folder and of their inputs, by which a repeated run skips those that are up to date.

use super::failure::Failure;
use alphamf_eval::checksum_of_file;
use alphamf_files::output::place;
use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

/// Name of the record in a folder of results.
pub const NAME: &str = ".alphamf-results.jsonl";
/// Maximum size of the end of a record that is read: about 500,000 results, the newest.
const MAX_BYTES: u64 = 256 << 20;

/// The results in a folder, one line of JSON each, in chronological order.
///
/// A line is written before its result gets its name. The last one of a result is valid, unless that run was killed in
/// between: then an earlier one is.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    known: Mutex<Known>,
    /// Opened for the first result.
    file: Mutex<Option<File>>,
}

/// The lines that have been read.
#[derive(Debug, Default)]
struct Known {
    made: HashMap<String, Vec<Arc<Made>>>,
    /// Length of the record when it was read.
    length: u64,
}

/// A result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Made {
    /// Below the folder.
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

/// Identifies the content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    /// ns since 1970.
    modified: u64,
    sha256: String,
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

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let (bytes, modified) = size_and_time(path)?;
        Ok(Self { bytes, modified, sha256: checksum_of_file(path)? })
    }
}

/// A file to compare with stamps.
struct Content<'a> {
    path: &'a Path,
    /// None if it cannot be read.
    size_and_time: Option<(u64, u64)>,
    sha256: OnceCell<Option<String>>,
}

impl<'a> Content<'a> {
    fn of(path: &'a Path) -> Self {
        Self { path, size_and_time: size_and_time(path).ok(), sha256: OnceCell::new() }
    }

    /// Its stamp if it has the content of `stamp`. It is read only if its modification time differs, and once.
    fn stamp_if(&self, stamp: &Stamp) -> Option<Stamp> {
        let (_, modified) = self.size_and_time.filter(|&(bytes, _)| bytes == stamp.bytes)?;
        let sha256 = || self.sha256.get_or_init(|| checksum_of_file(self.path).ok()).as_ref();
        (modified == stamp.modified || sha256() == Some(&stamp.sha256))
            .then(|| Stamp { modified, ..stamp.clone() })
    }
}

fn size_and_time(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::metadata(path)?;
    let modified = found.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok((found.len(), modified.as_nanos() as u64))
}

impl Made {
    /// The other input that this result belongs to, if that still exists.
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

    fn known(&self) -> MutexGuard<'_, Known> {
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
                self.renew(&Made { input, result, ..Made::clone(made) });
            }
            return State::Current;
        }
        made.other_source(input).map_or(State::Outdated, State::OfAnother)
    }

    /// Adds what is up to date with other modification times, so that it need not be read again.
    fn renew(&self, made: &Made) {
        // Nothing depends on it.
        let _unwritten = self.append(made).and_then(|()| self.refresh());
    }

    /// The lines of a result, the newest last.
    fn lines(&self, name: &Path) -> Vec<Arc<Made>> {
        self.known().made.get(&key(name)).cloned().unwrap_or_default()
    }

    /// The state of a report of a result with this name.
    pub fn report_state(&self, name: &Path, report: &WantedReport, input: &Path, settings: &str) -> State {
        if !report.path.exists() {
            return State::Outdated;
        }
        let lines = self.lines(name);
        let path = place_key(report.path);
        let of_line = |made: &'_ Made| made.reports.iter().flatten().position(|made| made.path == path);
        let found: Vec<(&Made, usize, &MadeReport)> = lines
            .iter()
            .rev()
            .filter_map(|made| {
                let index = of_line(made)?;
                Some((&**made, index, &made.reports.as_ref()?[index]))
            })
            .collect();
        let (content, input) = (Content::of(report.path), Content::of(input));
        let written: Vec<(&Made, usize, &MadeReport, Stamp)> = found
            .iter()
            .filter_map(|&(line, index, made)| {
                Some((line, index, made, content.stamp_if(made.stamp.as_ref()?)?))
            })
            .collect();
        let is_current = |line: &Made, made: &MadeReport| {
            line.settings == settings
                && made.options == report.options
                && input.stamp_if(&line.input).is_some()
        };
        if let Some((line, index, made, stamp)) =
            written.iter().find(|(line, _, made, _)| is_current(line, made))
        {
            let is_newest = lines.last().is_some_and(|newest| std::ptr::eq(&**newest, *line));
            if is_newest && made.stamp.as_ref() != Some(stamp) {
                let mut renewed = Made::clone(line);
                if let Some(report) = renewed.reports.iter_mut().flatten().nth(*index) {
                    report.stamp = Some(stamp.clone());
                }
                self.renew(&renewed);
            }
            return State::Current;
        }
        if !written.is_empty() {
            return State::Outdated;
        }
        match found.first() {
            // A run that was killed may have written it.
            Some((.., made)) if made.stamp.is_none() => State::Outdated,
            Some(_) => State::Changed,
            None if lines.iter().any(|made| made.reports.is_none()) => State::Outdated,
            None => State::Foreign,
        }
    }

    /// The results in the folder, by name, with the absolute paths of their inputs.
    pub fn sources(&self) -> HashMap<String, String> {
        let known = self.known();
        let source = |(output, lines): (&String, &Vec<Arc<Made>>)| {
            Some((output.clone(), lines.last()?.source.clone()?))
        };
        known.made.iter().filter_map(source).collect()
    }

    /// Adds a new result, whose `content` has another name until it is complete, and the names of its reports, which follow.
    /// Fails if the input has changed. Results from pipes are not recorded, as these can be read only once.
    pub fn add(
        &self,
        name: &Path,
        content: &Path,
        original: &Snapshot,
        settings: &str,
        reports: &[WantedReport],
    ) -> anyhow::Result<Option<Made>> {
        let Snapshot { path: input, found: Some(_) } = original else { return Ok(None) };
        let planned = |report: &WantedReport| MadeReport {
            path: place_key(report.path),
            options: report.options.clone(),
            stamp: None,
        };
        let made = || -> io::Result<Made> {
            let source = Some(source(input));
            let (input, result) = (Stamp::of(input)?, Stamp::of(content)?);
            let reports = Some(reports.iter().map(planned).collect());
            Ok(Made { output: key(name), settings: settings.to_owned(), input, result, source, reports })
        };
        let made = made().with_context(|| Failure::Output(self.path.clone()))?;
        original.check()?;
        self.append(&made)?;
        Ok(Some(made))
    }

    /// Adds the reports of a result, which are written.
    pub fn add_reports(&self, mut made: Made, reports: &[WantedReport]) -> anyhow::Result<()> {
        if reports.is_empty() {
            return Ok(());
        }
        for (made, report) in made.reports.iter_mut().flatten().zip(reports) {
            // Another run may just have removed it, to write it again.
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
                // Where it is made, outputs are begun before.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| Failure::Output(self.path.clone())),
            }
        }
        Ok(())
    }

    fn append(&self, made: &Made) -> anyhow::Result<()> {
        let append = || -> io::Result<()> {
            let line = serde_json::to_vec(made)?;
            let mut file = self.file.lock().map_err(|_| io::Error::other("a thread failed"))?;
            let file = match &mut *file {
                Some(file) => file,
                none => none
                    .insert(open_regular(File::options().create(true).read(true).append(true), &self.path)?),
            };
            // Other runs wait; where the system has no locks, they still write each line at once.
            let _unsupported = file.lock();
            let appended = append_line(file, line);
            let _unsupported = file.unlock();
            appended
        };
        append().with_context(|| Failure::Output(self.path.clone()))
    }
}

/// Adds a line as a whole or not at all, after the end of the line before, which a run that was killed may have left out.
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

impl Known {
    /// Reads the lines after those that are known.
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
        lines.for_each(|line: Made| self.made.entry(line.output.clone()).or_default().push(Arc::new(line)));
        // Another run may be writing the last line.
        let unfinished = text.iter().rev().take_while(|&&byte| byte != b'\n').count();
        self.length = length - unfinished as u64;
        Ok(())
    }
}

/// An input as it was before it was read.
#[derive(Debug)]
pub struct Snapshot<'a> {
    path: &'a Path,
    /// None for pipes.
    found: Option<Metadata>,
}

impl<'a> Snapshot<'a> {
    /// Takes the size, the modification time and the inode of an input.
    pub fn of(path: &'a Path) -> Self {
        Self { path, found: fs::metadata(path).ok().filter(Metadata::is_file) }
    }

    /// Fails if the input has been changed or replaced meanwhile.
    pub fn check(&self) -> anyhow::Result<()> {
        let Some(before) = &self.found else { return Ok(()) };
        let is_same = |now: Metadata| {
            let times = before.modified().ok() == now.modified().ok();
            #[cfg(unix)]
            let times = {
                use std::os::unix::fs::MetadataExt;
                times && (before.dev(), before.ino()) == (now.dev(), now.ino())
            };
            times && before.len() == now.len()
        };
        if fs::metadata(self.path).is_ok_and(is_same) {
            return Ok(());
        }
        Err(anyhow!("it changed while it was read").context(Failure::Unusable(self.path.to_owned())))
    }
}

/// Marks a folder as one of results, like the record of such a folder.
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
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let mut text = Vec::new();
        read_range(File::open(&path).unwrap(), 5..14, &mut text).unwrap();
        assert_eq!(text, b"wo\nthree\n");
    }

    /// A run that is killed between the line of a result and its name leaves the result before it.
    #[test]
    fn results_before_an_interrupted_one_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let [input, output, next] = ["in", "out", "next"].map(|name| folder.path().join(name));
        fs::write(&input, "input").unwrap();
        fs::write(&output, "result").unwrap();
        fs::write(&next, "another result").unwrap();
        let (name, record) = (Path::new("out"), || Record::open(folder.path()).unwrap());
        assert_eq!(record().state(name, &output, &input, "1"), State::Foreign);
        record().add(name, &output, &Snapshot::of(&input), "1", &[]).unwrap();
        assert_eq!(record().state(name, &output, &input, "1"), State::Current);
        record().add(name, &next, &Snapshot::of(&input), "2", &[]).unwrap();
        assert_eq!(record().state(name, &output, &input, "2"), State::Outdated);
        fs::rename(&next, &output).unwrap();
        assert_eq!(record().state(name, &output, &input, "2"), State::Current);
        fs::write(&output, "edited").unwrap();
        assert_eq!(record().state(name, &output, &input, "2"), State::Changed);
    }

    /// The second time, nothing is read but the times.
    #[test]
    fn what_was_only_touched_is_recorded_with_its_new_time() {
        let folder = tempfile::tempdir().unwrap();
        let [input, output, levels, plot] =
            ["in", "out", "levels", "plot"].map(|name| folder.path().join(name));
        [&input, &output, &levels, &plot].iter().for_each(|path| fs::write(path, "content").unwrap());
        let reports = [&levels, &plot].map(|path| WantedReport { path, options: String::new() });
        let name = Path::new("out");
        let record = Record::open(folder.path()).unwrap();
        let made = record.add(name, &output, &Snapshot::of(&input), "1", &reports).unwrap().unwrap();
        record.add_reports(made, &reports).unwrap();
        let count = || {
            let record = Record::open(folder.path()).unwrap();
            let states = [record.state(name, &output, &input, "1")]
                .into_iter()
                .chain(reports.iter().map(|report| record.report_state(name, report, &input, "1")));
            assert!(states.into_iter().all(|state| state == State::Current));
            fs::read_to_string(folder.path().join(NAME)).unwrap().lines().count()
        };
        assert_eq!([count(), count()], [2, 2]);
        for (number, touched) in (3..).zip([&input, &output, &levels, &plot]) {
            let file = File::options().write(true).open(touched).unwrap();
            file.set_modified(UNIX_EPOCH + std::time::Duration::from_secs(number)).unwrap();
            assert_eq!([count(), count()], [number, number].map(|number| number as usize), "{touched:?}");
        }
    }
}
