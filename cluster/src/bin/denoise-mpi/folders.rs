//! Folders that are kept beside a file while it is made.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// `run.jsonl` and `.parts` make `run.jsonl.parts`.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Removes a folder and what is in it, if it is there.
pub fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
