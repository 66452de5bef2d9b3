//! Record of the results in a folder and of their inputs, by which a repeated run skips those that are up to date.

use super::terminal::Failure;
use alphamf_eval::checksum_of_file;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::UNIX_EPOCH;

/// Name of the record in a folder of results.
pub const NAME: &str = ".alphamf-results.jsonl";
/// Maximum size of a record that is read: about 100,000 files.
const MAX_BYTES: u64 = 256 << 20;

/// The results in a folder, one line of JSON each, in chronological order; the last line of a result is valid.
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

/// Identifies the content of a file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    /// ns since 1970.
    modified: u64,
    sha256: String,
}

/// The state of an existing result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Up to date: made from this input with these settings.
    Current,
    /// Made from another input or with other settings, or empty: may be replaced.
    Outdated,
    /// Not made by this program, or changed since.
    Foreign,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let (bytes, modified) = size_and_time(path)?;
        Ok(Self { bytes, modified, sha256: checksum_of_file(path)? })
    }

    /// Whether the file is unchanged. It is read only if its modification time differs.
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
    /// Opens the record of a folder, which need not exist. Lines that cannot be parsed are ignored.
    ///
    /// Fails if it is a link, a pipe or a device: writing would change another file, or block.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(NAME);
        let mut text = Vec::new();
        match open_regular(File::options().read(true), &path) {
            Ok(file) => {
                file.take(MAX_BYTES).read_to_end(&mut text).with_context(|| Failure::Input(path.clone()))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| Failure::Output(path)),
        }
        let lines = text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let made = lines.map(|made: Made| (made.output.clone(), made)).collect();
        Ok(Self { path, made, file: Mutex::new(None) })
    }

    /// The state of a result that exists.
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

    /// Adds a new result. Results from pipes are not recorded, as these can be read only once.
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
                *file = Some(open_regular(File::options().create(true).append(true), &self.path)?);
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

/// Opens a file without blocking, unless it is a link, pipe or device.
fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
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

/// The name of a result in the record, distinct also for names that are not UTF-8.
fn key(name: &Path) -> String {
    name.to_str().map_or_else(|| format!("{:?}", name.as_os_str()), str::to_owned)
}
