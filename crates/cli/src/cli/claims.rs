//! Which files a run reads and which it writes: no output takes the place of an input or of another output.

use super::terminal::{Failure, is_standard, name, usage};
use alphamf_files::output::follow_links;
use alphamf_files::{Error, WriteError};
use anyhow::anyhow;
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

/// The files of a run, known by what they are and not by how they are spelled.
#[derive(Debug, Default)]
pub struct Claims {
    read: HashMap<Identity, PathBuf>,
    written: HashMap<Identity, PathBuf>,
}

/// What two paths to one file have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Identity {
    /// A file or folder that is there: its device and its number on it.
    #[cfg(unix)]
    Node(u64, u64),
    /// Where a file is or will be.
    Place(PathBuf),
}

impl Identity {
    /// That of what is there.
    fn of_existing(path: &Path, found: &Metadata) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let _ = path;
            Self::Node(found.dev(), found.ino())
        }
        #[cfg(not(unix))]
        {
            let _ = found;
            Self::Place(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()))
        }
    }

    /// That of a file, whether it is there or not; none for a device, a pipe or a folder, which are not replaced.
    fn of(path: &Path) -> Option<Self> {
        match fs::metadata(path) {
            Ok(found) => found.is_file().then(|| Self::of_existing(path, &found)),
            Err(_) => Some(Self::Place(place(path))),
        }
    }
}

/// Where a file will be that is not there.
fn place(path: &Path) -> PathBuf {
    // A circle of links leads nowhere, and is refused when it is written to.
    let target = follow_links(path).unwrap_or_else(|_| path.to_owned());
    let mut above = target.as_path();
    while let Some(parent) = above.parent() {
        above = parent;
        let folder = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        if let (Ok(folder), Ok(rest)) = (fs::canonicalize(folder), target.strip_prefix(above)) {
            return folder.join(rest);
        }
    }
    target
}

impl Claims {
    /// The run reads this file, standard input if it is `-`.
    pub fn read(&mut self, path: &Path) {
        // Standard input may be a file, too.
        let real = if is_standard(path) { Path::new("/dev/stdin") } else { path };
        if let Some(identity) = Identity::of(real) {
            self.read.entry(identity).or_insert_with(|| name(path, "standard input").to_owned());
        }
    }

    /// The run writes this file, standard output if it is `-`; all that it reads is known.
    ///
    /// Fails if it is read or written already.
    pub fn write(&mut self, path: &Path) -> anyhow::Result<()> {
        let identities = if is_standard(path) {
            [Some(Identity::Place(path.to_owned())), Identity::of(Path::new("/dev/stdout"))]
        } else {
            [Identity::of(path), None]
        };
        for identity in identities.into_iter().flatten() {
            if let Some(input) = self.read.get(&identity) {
                let path = name(path, "standard output").to_owned();
                return Err(Error::Write { path, reason: WriteError::SameAsInput(input.clone()) }.into());
            }
            if let Some(other) = self.written.insert(identity, path.to_owned()) {
                let (path, other) = (name(path, "standard output"), name(&other, "standard output"));
                let also = if path == other { String::new() } else { format!(", as {}", other.display()) };
                return Err(usage(format!("{} would be written twice{also}", path.display())));
            }
        }
        Ok(())
    }
}

/// Refuses to replace a file that is there, unless `force`.
pub fn check_absent(path: &Path, force: bool, advice: &str) -> anyhow::Result<()> {
    if force || is_standard(path) || !path.is_file() {
        return Ok(());
    }
    let reason = anyhow!("it exists already; --force replaces it{advice}");
    Err(reason.context(Failure::Output(path.to_owned())))
}
