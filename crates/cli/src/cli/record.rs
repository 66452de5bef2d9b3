//! What a folder of results was made of, so that a repeated run knows what it need not make again.

use super::terminal::Failure;
use alphamf_eval::checksum_of_file;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::UNIX_EPOCH;

/// Name of the record in a folder of results.
pub const NAME: &str = ".alphamf-results.jsonl";
/// The longest record that is read: that of some hundred thousand files.
const MAX_BYTES: u64 = 256 << 20;

/// The results in a folder that runs of this program have made: a line of JSON for each, in the order in which they
/// were made; of several for one result, the last holds.
#[derive(Debug)]
pub struct Record {
    path: PathBuf,
    made: HashMap<String, Made>,
    /// Opened for the first result.
    file: Mutex<Option<File>>,
}

/// A result.
#[derive(Debug, Serialize, Deserialize)]
struct Made {
    /// Below the folder.
    output: String,
    /// Checksum of the program's version, the models and all settings.
    settings: String,
    input: Stamp,
    result: Stamp,
}

/// By what the content of a file is known.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    /// ns since 1970.
    modified: u64,
    sha256: String,
}

/// What is known of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It was made of this input with these settings.
    Current,
    /// It was made of something else, or is empty, and may be replaced.
    Outdated,
    /// It was not made here, or has changed since.
    Foreign,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let (bytes, modified) = size_and_time(path)?;
        Ok(Self { bytes, modified, sha256: checksum_of_file(path)? })
    }

    /// Whether the file still has that content: its time tells it at once.
    fn holds(&self, path: &Path) -> bool {
        size_and_time(path).is_ok_and(|(bytes, modified)| {
            bytes == self.bytes
                && (modified == self.modified || checksum_of_file(path).is_ok_and(|sum| sum == self.sha256))
        })
    }
}

fn size_and_time(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::metadata(path)?;
    let modified = found.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok((found.len(), modified.as_nanos() as u64))
}

impl Record {
    /// The record of a folder, which need not be there. Lines that do not read are results that are not known.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(NAME);
        let mut text = Vec::new();
        match File::open(&path) {
            Ok(file) if file.metadata().is_ok_and(|found| found.is_file()) => {
                file.take(MAX_BYTES).read_to_end(&mut text).with_context(|| Failure::Input(path.clone()))?;
            }
            _ => {}
        }
        let lines = text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let made = lines.map(|made: Made| (made.output.clone(), made)).collect();
        Ok(Self { path, made, file: Mutex::new(None) })
    }

    /// What is known of a result that is there.
    pub fn state(&self, name: &Path, output: &Path, input: &Path, settings: &str) -> State {
        if fs::metadata(output).is_ok_and(|found| found.len() == 0) {
            return State::Outdated;
        }
        match self.made.get(&key(name)) {
            Some(made) if made.result.holds(output) => {
                let current = made.settings == settings && made.input.holds(input);
                if current { State::Current } else { State::Outdated }
            }
            _ => State::Foreign,
        }
    }

    /// Notes a result that was made now; a pipe, that can be read but once, gives none that is known.
    pub fn add(&self, name: &Path, output: &Path, input: &Path, settings: &str) -> anyhow::Result<()> {
        if !input.is_file() {
            return Ok(());
        }
        let add = || -> anyhow::Result<()> {
            let (input, result) = (Stamp::of(input)?, Stamp::of(output)?);
            let made = Made { output: key(name), settings: settings.to_owned(), input, result };
            let mut line = serde_json::to_vec(&made)?;
            line.push(b'\n');
            let mut file = self.file.lock().map_err(|_| io::Error::other("a thread failed"))?;
            if file.is_none() {
                *file = Some(File::options().create(true).append(true).open(&self.path)?);
            }
            // In one write, so that runs at the same time do not mix their lines.
            if let Some(file) = file.as_mut() {
                file.write_all(&line)?;
            }
            Ok(())
        };
        add().with_context(|| Failure::Output(self.path.clone()))
    }
}

/// The name of a result in the record: names that are not UTF-8 are told apart, too.
fn key(name: &Path) -> String {
    name.to_str().map_or_else(|| format!("{:?}", name.as_os_str()), str::to_owned)
}
