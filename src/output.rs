//! Files that appear when they are complete.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

/// A file that appears under its name when it is persisted, and not at all before.
///
/// It is written beside its target under a temporary name; dropped before it is complete, it leaves nothing,
/// and whatever had its name before remains. Errors do not mention the temporary name.
#[derive(Debug)]
pub struct OutputFile {
    file: tempfile::NamedTempFile<File>,
    path: PathBuf,
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
        let file = tempfile::Builder::new().prefix(".alphamf-").suffix(".part").make_in(folder, create)?;
        Ok(Self { file, path })
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn persist(self) -> io::Result<()> {
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
