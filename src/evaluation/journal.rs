//! The record of finished files from which an interrupted run continues.

use std::collections::HashMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{EvaluationError, FileResult, Provenance};

/// Finished files, one JSON object a line, below a first line that says what made them.
///
/// A line is appended in one write when its file is finished, so a run that is killed at any
/// moment leaves whole lines and at most one torn one, which the next run discards. Files that
/// failed are not recorded: the next run tries them again. A run locks its journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    finished: HashMap<String, FileResult>,
}

#[derive(Serialize, Deserialize)]
struct Header<P> {
    journal: u32,
    provenance: P,
}

const VERSION: u32 = 1;

impl Journal {
    /// Opens the journal at `path`, or starts one, for a run with this provenance.
    ///
    /// # Errors
    /// [`EvaluationError::Io`]; [`EvaluationError::Journal`] if the file is something else, has a
    /// damaged line before the last, is in use by another run, or comes from a run with another
    /// provenance (the message names what differs).
    pub fn open(path: &Path, provenance: &Provenance) -> Result<Self, EvaluationError> {
        let io = || EvaluationError::io(path);
        let wrong =
            |line: usize, reason: String| EvaluationError::Journal { path: path.to_owned(), line, reason };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io())?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(wrong(1, "in use by another run".into())),
            Err(TryLockError::Error(error)) => return Err(io()(error)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io())?;

        let (mut finished, mut kept, mut number) = (HashMap::new(), 0, 0);
        let mut lines = bytes.split_inclusive(|&byte| byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            number += 1;
            let last = lines.peek().is_none();
            let torn = |error: &dyn std::fmt::Display| {
                // Whatever stands in a last line that does not read is what the interruption left.
                // A first line is too precious: it may be that of some other file.
                let ours = number > 1 || br#"{"journal":"#.starts_with(&line[..line.len().min(11)]);
                if last && ours {
                    Ok(())
                } else {
                    Err(wrong(number, format!("not a line of a journal: {error}")))
                }
            };
            if line.last() != Some(&b'\n') {
                torn(&"it has no end")?;
                break;
            }
            if number == 1 {
                match serde_json::from_slice::<Header<serde_json::Value>>(line) {
                    Ok(header) if header.journal == VERSION => {
                        if let Some(difference) = provenance.difference(&header.provenance) {
                            return Err(wrong(1, format!("made by another run: {difference}")));
                        }
                    }
                    Ok(header) => {
                        return Err(wrong(1, format!("format {}: expected {VERSION}", header.journal)));
                    }
                    Err(error) => {
                        torn(&error)?;
                        break;
                    }
                }
            } else {
                match serde_json::from_slice::<FileResult>(line) {
                    Ok(result) => finished.insert(result.name.clone(), result),
                    Err(error) => {
                        torn(&error)?;
                        break;
                    }
                };
            }
            kept += line.len();
        }
        file.set_len(kept as u64).map_err(io())?;
        file.seek(SeekFrom::End(0)).map_err(io())?;
        let journal = Self { path: path.to_owned(), file: Mutex::new(file), finished };
        if kept == 0 {
            journal.append(&Header { journal: VERSION, provenance })?;
        }
        Ok(journal)
    }

    /// The result of a file that an earlier run finished.
    #[must_use]
    pub fn finished(&self, name: &str) -> Option<&FileResult> {
        self.finished.get(name)
    }

    /// Records a finished file.
    pub(super) fn record(&self, result: &FileResult) -> Result<(), EvaluationError> {
        self.append(result)
    }

    fn append(&self, line: &impl Serialize) -> Result<(), EvaluationError> {
        let mut bytes = serde_json::to_vec(line)
            .map_err(|error| EvaluationError::io(&self.path)(std::io::Error::other(error)))?;
        bytes.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&bytes).map_err(EvaluationError::io(&self.path))
    }
}
