//! Output files that appear under their names only when they are complete.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Start and end of the temporary names of partial files.
const PREFIX: &str = ".alphamf-";
const SUFFIX: &str = ".part";
/// Limit on a chain of links, as on Linux; more links count as a cycle.
const MAX_LINKS: usize = 40;

/// Set of paths, shared by all threads.
type Paths = Mutex<BTreeSet<PathBuf>>;
/// The temporary names of partial files.
static UNFINISHED: Paths = Mutex::new(BTreeSet::new());
/// The folders that have been searched for partial files of other runs.
static SWEPT: Paths = Mutex::new(BTreeSet::new());

fn lock(paths: &'static Paths) -> MutexGuard<'static, BTreeSet<PathBuf>> {
    paths.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    lock(&UNFINISHED)
}

/// Resolves a path to its folder and name, whether or not the file exists.
#[must_use]
pub fn place(path: &Path) -> PathBuf {
    // A cycle of links cannot be resolved; writing to it fails.
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

/// Removes the incomplete files of all threads, before a process ends without dropping them. While the returned guard
/// lives, no thread can begin or complete a file.
#[must_use]
pub fn remove_partial_files() -> impl Drop {
    let files = unfinished();
    for file in files.iter() {
        // A file that does not exist any more has been completed or dropped.
        let _ = fs::remove_file(file);
    }
    files
}

/// A file that appears under its name only when it is persisted.
///
/// It is written beside its target under a temporary name. If it is dropped before it is complete, it leaves nothing,
/// and an existing file remains. The next run that writes into the folder removes the leftovers of a killed run. The
/// new file has the permissions and, as far as the system allows, the owner of the file that it replaces.
/// [`create_new`](Self::create_new) does not replace any file. Errors do not mention the temporary name.
#[derive(Debug)]
pub struct OutputFile {
    file: tempfile::NamedTempFile<File>,
    path: PathBuf,
    /// Permissions of the file that is replaced.
    replaced: Option<Box<Metadata>>,
    /// Whether another file that has appeared under its name is kept.
    keeps_others: bool,
    /// Dropped after the file.
    _listed: Listed,
}

/// Entry in the list of incomplete files.
#[derive(Debug)]
struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        unfinished().remove(&self.0);
    }
}

impl OutputFile {
    /// Begins a file that replaces any file of its name. A link is followed: its target is replaced or created.
    ///
    /// # Errors
    /// If `path` exists and is not a regular file, its name is too long, its links form a cycle, or its folder cannot
    /// be written to.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::begin(path.as_ref(), false)
    }

    /// Begins a file that replaces none: if another file exists on completion, [`persist`](Self::persist) fails with
    /// [`io::ErrorKind::AlreadyExists`].
    ///
    /// # Errors
    /// As for [`create`](Self::create).
    pub fn create_new(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::begin(path.as_ref(), true)
    }

    fn begin(path: &Path, keeps_others: bool) -> io::Result<Self> {
        let path = follow_links(path)?;
        let replaced = match fs::metadata(&path) {
            Ok(found) => Some(Box::new(found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // For example a name that is too long: the temporary name is shorter.
            Err(error) => return Err(error),
        };
        if replaced.as_ref().is_some_and(|found| !found.is_file()) {
            return Err(io::Error::other("exists and is not a regular file"));
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        remove_leftovers(folder);
        let private = replaced.is_some();
        let mut unfinished = unfinished();
        let file = loop {
            let file = tempfile::Builder::new()
                .prefix(PREFIX)
                .suffix(SUFFIX)
                .make_in(folder, |path| new_file(path, private))?;
            // The lock keeps other runs from removing the file; on a file system without locks they remove none.
            let _ = file.as_file().lock();
            // Another run may have removed it before it was locked.
            if file.path().exists() {
                break file;
            }
        };
        unfinished.insert(file.path().to_owned());
        let listed = Listed(file.path().to_owned());
        Ok(Self { file, path, replaced, keeps_others, _listed: listed })
    }

    /// Path of the file until it is complete.
    #[must_use]
    pub fn temporary_path(&self) -> &Path {
        self.file.path()
    }

    /// Gives the file its name, once its content is on the disk.
    ///
    /// # Errors
    /// If it cannot be stored or renamed, or if a file from [`create_new`](Self::create_new) would replace another.
    pub fn persist(self) -> io::Result<()> {
        let file = self.file.as_file();
        if let Some(replaced) = &self.replaced {
            keep_owner(file, replaced);
            file.set_permissions(replaced.permissions())?;
        }
        file.sync_all()?;
        let _unfinished = unfinished();
        if !self.keeps_others {
            return self.file.persist(&self.path).map(drop).map_err(|error| error.error);
        }
        persist_beside(self.file, &self.path)
    }
}

/// Gives a file its name unless another has it.
fn persist_beside(file: tempfile::NamedTempFile<File>, path: &Path) -> io::Result<()> {
    // Uses a rename that does not replace, or a hard link if the system lacks this rename.
    let error = match file.persist_noclobber(path) {
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    let has_neither = [
        io::ErrorKind::Unsupported,
        io::ErrorKind::InvalidInput,
        // On FAT, for example, which has no links.
        io::ErrorKind::PermissionDenied,
    ];
    if error.error.kind() == io::ErrorKind::AlreadyExists || fs::symlink_metadata(path).is_ok() {
        Err(appeared())
    } else if has_neither.contains(&error.error.kind()) {
        error.file.persist(path).map(drop).map_err(|error| error.error)
    } else {
        Err(error.error)
    }
}

/// Error of a name under which another file has appeared.
fn appeared() -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, "another file has appeared under this name, and stays")
}

/// The path with the links of its last component resolved, whether or not the target exists.
///
/// # Errors
/// If its links form a cycle.
pub fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

/// Creates a file; a `private` one can be read only by its owner until it has the permissions of the file that it
/// replaces.
fn new_file(path: &Path, private: bool) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    options.open(path)
}

/// Gives a file the owner and the group of another, as far as the system allows.
#[cfg(unix)]
fn keep_owner(file: &File, other: &Metadata) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let (user, group) = (other.uid(), other.gid());
    let is_other = |found: Metadata| (found.uid(), found.gid()) != (user, group);
    if file.metadata().is_ok_and(is_other) && fchown(file, Some(user), Some(group)).is_err() {
        // A user who may not change the owner may still set the group.
        let _ = fchown(file, None, Some(group));
    }
}

#[cfg(not(unix))]
fn keep_owner(_file: &File, _other: &Metadata) {}

/// Removes partial files of killed runs from a folder, the first time that this run writes into it.
fn remove_leftovers(folder: &Path) {
    let Ok(place) = fs::canonicalize(folder) else { return };
    if !lock(&SWEPT).insert(place) {
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if !is_partial(&entry.file_name()) || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        // A living run holds its lock.
        if let Ok(file) = File::options().write(true).open(&path)
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Whether a name is that of a partial file.
#[must_use]
pub fn is_partial(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
}

// Writes to the inner file: the methods of the temporary file add its path to errors.
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

/// Replaces the file at `path` with `bytes` as a whole, or leaves it unchanged.
///
/// # Errors
/// As for [`OutputFile::create`], or if it cannot be written.
pub fn write_atomic(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(bytes)?;
    file.persist()
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
