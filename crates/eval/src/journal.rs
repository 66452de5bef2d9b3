//! Journal of finished files, from which an interrupted run resumes.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::{EvaluationError, FileResult, Pair, Provenance, checksum, checksum_of_file};

/// Results of finished files, one JSON object per line, after a first line with their [`Provenance`].
///
/// A line is appended in one write when its file is finished. A killed run leaves at most one torn line, which the next
/// run discards; any other damage is an error. Every line holds a checksum of the scored audio, so that results of
/// other files of equal name are rejected. Failed files are not recorded: the next run retries them. A run locks its
/// journal. If a file has two lines, the last applies: the first precedes the saving of its audio.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    /// Results by file name, each with the number of its line.
    finished: HashMap<String, (usize, Line)>,
}

/// A finished file.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// Checksum of the audio that was scored.
    content: String,
    result: FileResult,
    /// Checksum of the file of the denoised audio, if it was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    saved: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct JournalHeader<P> {
    journal: u32,
    provenance: P,
}

const VERSION: u32 = 2;

/// Checksum of the files of a pair.
pub(super) fn content(pair: &Pair) -> Result<String, EvaluationError> {
    let mut sums = String::new();
    for (role, path) in
        [("clean", Some(&pair.clean)), ("noisy", pair.noisy.as_ref()), ("enhanced", pair.enhanced.as_ref())]
    {
        if let Some(path) = path {
            let sum = checksum_of_file(path).map_err(EvaluationError::io(path))?;
            sums += &format!("{role} {sum}\n");
        }
    }
    Ok(checksum(sums.as_bytes()))
}

fn invalid(path: &Path, line: usize, reason: String) -> EvaluationError {
    EvaluationError::Journal { path: path.to_owned(), line, reason }
}

/// Opens or creates a file, locks it, and reads it.
fn read_locked(path: &Path) -> Result<(File, Vec<u8>), EvaluationError> {
    let io = || EvaluationError::unwritten(path);
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io())?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(invalid(path, 1, "in use by another run".into())),
        Err(TryLockError::Error(error)) => return Err(io()(error)),
    }
    // A device may be endless.
    if !file.metadata().map_err(io())?.is_file() {
        return Err(invalid(path, 1, "not a regular file".into()));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(io())?;
    Ok((file, bytes))
}

/// Whether an unterminated line is the beginning of a result, as left by an interruption.
fn is_torn(line: &[u8]) -> bool {
    // A number truncated after its sign or point is a syntax error at the end of the line.
    let ends = |error: serde_json::Error| error.is_eof() || error.column() >= line.len();
    serde_json::from_slice::<IgnoredAny>(line).map_or_else(ends, |_| true)
}

impl Journal {
    /// Opens or creates the journal at `path`, for a run with this provenance.
    ///
    /// # Errors
    /// [`EvaluationError::Output`]; [`EvaluationError::Journal`] if the file is not a journal, has a damaged line
    /// before the last, or is in use by another run; [`EvaluationError::AnotherRun`] if it comes from a run with
    /// another provenance.
    pub fn open(path: &Path, provenance: &Provenance) -> Result<Self, EvaluationError> {
        let io = || EvaluationError::unwritten(path);
        let wrong = |line: usize, reason: String| invalid(path, line, reason);
        let (mut file, bytes) = read_locked(path)?;
        let header = JournalHeader { journal: VERSION, provenance };
        let first = serde_json::to_vec(&header).map_err(|error| io()(error.into()))?;

        let (mut finished, mut kept, mut number) = (HashMap::new(), 0, 0);
        let mut lines = bytes.split_inclusive(|&byte| byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            number += 1;
            let last = lines.peek().is_none();
            let damaged =
                |error: &dyn std::fmt::Display| wrong(number, format!("not a line of a journal: {error}"));
            if last && line.last() != Some(&b'\n') {
                // A first line without its end may belong to another kind of file.
                let torn = if number == 1 { first.starts_with(line) } else { is_torn(line) };
                if torn {
                    break;
                }
                return Err(damaged(&"it has no end"));
            }
            if number == 1 {
                match serde_json::from_slice::<JournalHeader<serde_json::Value>>(line) {
                    Ok(header) if header.journal == VERSION => {
                        if let Some(difference) = provenance.difference(&header.provenance) {
                            return Err(EvaluationError::AnotherRun { path: path.to_owned(), difference });
                        }
                    }
                    Ok(header) => {
                        return Err(wrong(1, format!("format {}: expected {VERSION}", header.journal)));
                    }
                    Err(error) => return Err(damaged(&error)),
                }
            } else {
                let line: Line = serde_json::from_slice(line).map_err(|error| damaged(&error))?;
                finished.insert(line.result.name.clone(), (number, line));
            }
            kept += line.len();
        }
        file.set_len(kept as u64).map_err(io())?;
        file.seek(SeekFrom::End(0)).map_err(io())?;
        let journal = Self { path: path.to_owned(), file: Mutex::new(file), finished };
        if kept == 0 {
            journal.append(&header)?;
        }
        Ok(journal)
    }

    /// The result of a pair that an earlier run finished.
    ///
    /// # Errors
    /// [`EvaluationError::Journal`] if the earlier run scored other audio; [`EvaluationError::Io`] if the audio cannot
    /// be read.
    pub fn finished(&self, pair: &Pair) -> Result<Option<&FileResult>, EvaluationError> {
        let Some((number, line)) = self.finished.get(&pair.name) else { return Ok(None) };
        if content(pair)? == line.content {
            return Ok(Some(&line.result));
        }
        let reason =
            format!("'{}' was scored with other audio: continue with that, or start another", pair.name);
        Err(EvaluationError::Journal { path: self.path.clone(), line: *number, reason })
    }

    /// Whether the file at `path` is the saved audio of this pair.
    pub(super) fn has_saved(&self, pair: &Pair, path: &Path) -> bool {
        let saved = self.finished.get(&pair.name).and_then(|(_, line)| line.saved.as_ref());
        saved.is_some_and(|saved| checksum_of_file(path).is_ok_and(|found| found == *saved))
    }

    /// Records a finished file with its [`content`] from before scoring. If files are replaced during scoring, the next
    /// run therefore rejects the result. `saved` is the checksum of the saved audio.
    pub(super) fn record(
        &self,
        content: String,
        result: &FileResult,
        saved: Option<String>,
    ) -> Result<(), EvaluationError> {
        self.append(&Line { content, result: result.clone(), saved })
    }

    fn append(&self, line: &impl Serialize) -> Result<(), EvaluationError> {
        let mut bytes = serde_json::to_vec(line)
            .map_err(|error| EvaluationError::unwritten(&self.path)(std::io::Error::other(error)))?;
        bytes.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&bytes).map_err(EvaluationError::unwritten(&self.path))
    }
}
