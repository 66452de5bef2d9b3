//! Files that appear when they are complete.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The temporary names of the files that are not complete.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the files that are not complete, of all threads, before a process ends without dropping them. As long
/// as what is returned lives, no thread can begin or complete one.
#[must_use]
pub fn discard_unfinished() -> impl Drop {
    let files = unfinished();
    for file in files.iter() {
        // One that is not there any more has been completed or dropped.
        let _ = fs::remove_file(file);
    }
    files
}

/// A file that appears under its name when it is persisted, and not at all before.
///
/// It is written beside its target under a temporary name; dropped before it is complete, it leaves nothing,
/// and whatever had its name before remains. Errors do not mention the temporary name.
#[derive(Debug)]
pub struct OutputFile {
    file: tempfile::NamedTempFile<File>,
    path: PathBuf,
    /// Dropped after the file.
    _listed: Listed,
}

/// A name in the list of files that are not complete.
#[derive(Debug)]
struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        unfinished().remove(&self.0);
    }
}

impl OutputFile {
    /// Begins a file. A link is followed, so that it is its target that is replaced.
    ///
    /// # Errors
    /// If `path` exists and is not a regular file, or its folder cannot be written to.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = match fs::canonicalize(&path) {
            Ok(path) if path.is_file() => path,
            Ok(_) => return Err(io::Error::other("exists and is not a regular file")),
            Err(_) => path.as_ref().to_owned(),
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let create = |path: &Path| File::options().read(true).write(true).create_new(true).open(path);
        let mut unfinished = unfinished();
        let file = tempfile::Builder::new().prefix(".alphamf-").suffix(".part").make_in(folder, create)?;
        unfinished.insert(file.path().to_owned());
        let listed = Listed(file.path().to_owned());
        Ok(Self { file, path, _listed: listed })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn persist(self) -> io::Result<()> {
        let _unfinished = unfinished();
        self.file.persist(&self.path).map(drop).map_err(|error| error.error)
    }
}

// To the file itself: the temporary file's own methods add its path to errors.
impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file_mut().flush()
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, position: io::SeekFrom) -> io::Result<u64> {
        self.file.as_file_mut().seek(position)
    }
}

/// Replaces the file at `path` by `bytes` as a whole, or leaves it as it was.
///
/// # Errors
/// As for [`OutputFile::create`], or if it cannot be written.
pub fn write_whole(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(bytes)?;
    file.persist()
}
