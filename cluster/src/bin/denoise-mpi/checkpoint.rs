//! Checkpoints of a training run, in a folder beside the model.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alphamf::learning::CheckpointStore;
use alphamf_files::output::write_atomic;

use crate::folders;

/// File that identifies the run of a folder's checkpoints.
const ABOUT: &str = "about.txt";
/// File that marks a checkpoint with all its parts.
const COMPLETE: &str = "complete";

/// A folder of checkpoints: `sweep-N/part-K`, and `sweep-N/complete` once all parts are written.
pub struct Folder {
    path: PathBuf,
    every: usize,
    newest: Option<usize>,
}

impl Folder {
    /// Checkpoints beside `model`, every `every` sweeps, resuming from the one after `newest` sweeps.
    pub fn new(model: &Path, every: usize, newest: Option<usize>) -> Self {
        Self { path: path(model), every, newest }
    }

    fn sweep(&self, sweeps: usize) -> PathBuf {
        self.path.join(format!("sweep-{sweeps}"))
    }
}

fn path(model: &Path) -> PathBuf {
    folders::beside(model, ".checkpoint")
}

/// Prepares the folder for checkpoints of the run `about` and finds the newest. Checkpoints of other runs are removed.
pub fn prepare(model: &Path, about: &str) -> io::Result<Option<usize>> {
    let path = path(model);
    if fs::read_to_string(path.join(ABOUT)).is_ok_and(|found| found == about) {
        let mut newest = None;
        for entry in fs::read_dir(&path)? {
            let name = entry?.file_name();
            let sweeps = name.to_str().and_then(|name| name.strip_prefix("sweep-")?.parse().ok());
            let whole = sweeps.filter(|_| path.join(&name).join(COMPLETE).exists());
            newest = newest.max(whole);
        }
        return Ok(newest);
    }
    remove(model)?;
    fs::create_dir_all(&path)?;
    write_atomic(path.join(ABOUT), about.as_bytes())?;
    Ok(None)
}

/// Removes the folder with its contents.
pub fn remove(model: &Path) -> io::Result<()> {
    folders::remove(&path(model))
}

impl CheckpointStore for Folder {
    fn is_due(&self, sweeps: usize) -> bool {
        self.every > 0 && sweeps.is_multiple_of(self.every)
    }

    fn save(&mut self, sweeps: usize, part: usize, bytes: &[u8]) -> io::Result<()> {
        fs::create_dir_all(self.sweep(sweeps))?;
        write_atomic(self.sweep(sweeps).join(format!("part-{part}")), bytes)
    }

    fn commit(&mut self, sweeps: usize) -> io::Result<()> {
        write_atomic(self.sweep(sweeps).join(COMPLETE), b"")?;
        // Only the newest is needed. Incomplete ones of killed runs are removed, too.
        for older in (1..sweeps).rev().map(|sweeps| self.sweep(sweeps)).filter(|path| path.exists()) {
            fs::remove_dir_all(older)?;
        }
        Ok(())
    }

    fn latest(&self) -> Option<usize> {
        self.newest
    }

    fn load(&mut self, sweeps: usize, part: usize) -> io::Result<Vec<u8>> {
        fs::read(self.sweep(sweeps).join(format!("part-{part}")))
    }
}
