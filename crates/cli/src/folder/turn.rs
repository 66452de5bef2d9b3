//! Mutual exclusion of runs that share a folder of results.

use crate::interrupts::check_interrupt;
use crate::record::open_regular;
use alphamf_eval::checksum;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Exclusive right of one run to name a result and its reports; other runs wait.
///
/// It is a locked file beside the result, named like a partial file, so that the next run removes that of a killed run.
/// File systems without locks provide no exclusion.
#[derive(Debug)]
pub(super) struct NamingLock {
    /// The locked file; none if it cannot be created.
    file: Option<File>,
    path: PathBuf,
}

impl NamingLock {
    /// Waits until no other run has the turn for this output. Ctrl-C interrupts the wait.
    pub(super) fn wait(output: &Path) -> anyhow::Result<Self> {
        let path = path(output);
        loop {
            let opened = open_regular(File::options().create(true).truncate(false).write(true), &path);
            let Ok(file) = opened else { return Ok(Self { file: None, path }) };
            while let Err(TryLockError::WouldBlock) = file.try_lock() {
                check_interrupt()?;
                thread::sleep(Duration::from_millis(10));
            }
            // Otherwise the previous run has removed the file that is now locked.
            if is_at(&file, &path) {
                return Ok(Self { file: Some(file), path });
            }
        }
    }
}

impl Drop for NamingLock {
    fn drop(&mut self) {
        if self.file.is_some() {
            // The file is removed before the lock is released: afterwards it may belong to another run.
            let _left = fs::remove_file(&self.path);
        }
    }
}

/// Path of the file that is locked for an output.
fn path(output: &Path) -> PathBuf {
    let name = checksum(output.file_name().unwrap_or_default().as_encoded_bytes());
    output.with_file_name(format!(".alphamf-{}.part", &name[..16]))
}

/// Whether an open file is still the one at this path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let [open, found] = [file.metadata(), fs::symlink_metadata(path)];
    open.ok().zip(found.ok()).is_some_and(|(a, b)| (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Whether an open file is still the one at this path.
#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alphamf_files::output::is_partial;

    #[test]
    fn one_run_at_a_time_has_the_turn() {
        let folder = tempfile::tempdir().unwrap();
        let (output, count) = (folder.path().join("a.wav"), folder.path().join("count"));
        fs::write(&count, "0").unwrap();
        let work = || {
            for _ in 0..20 {
                let _lock = NamingLock::wait(&output).unwrap();
                let before: usize = fs::read_to_string(&count).unwrap().parse().unwrap();
                thread::yield_now();
                fs::write(&count, (before + 1).to_string()).unwrap();
            }
        };
        thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
        assert_eq!(fs::read_to_string(&count).unwrap(), "80");
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["count"]);
    }

    #[test]
    fn its_file_is_named_like_a_partial_one() {
        let path = path(Path::new("out/a.wav"));
        assert!(is_partial(path.file_name().unwrap()) && path.parent() == Some(Path::new("out")));
    }
}
