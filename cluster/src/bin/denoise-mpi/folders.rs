//! Temporary folders beside an output file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Appends an ending: `run.jsonl` and `.parts` give `run.jsonl.parts`.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Removes a folder with its contents, if it exists.
pub fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
