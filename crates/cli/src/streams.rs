//! Standard streams, devices and small files.

use super::failure::Failure;
use super::interrupts::interruptible;
use alphamf_files::output::{OutputFile, follow_links};
use anyhow::Context;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Whether a path stands for standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Name of an input or output in messages; `standard` names `-`.
pub fn name<'a>(path: &'a Path, standard: &'a str) -> &'a Path {
    if is_standard(path) { Path::new(standard) } else { path }
}

/// Refuses an output whose folder does not exist or cannot be written to, before any work.
pub fn check_output(path: &Path) -> anyhow::Result<()> {
    // A device or a pipe is written in place.
    if is_standard(path) || is_device(path) {
        return Ok(());
    }
    // The target of a link is written, whether or not it exists.
    let target = match follow_links(path) {
        Ok(target) => target,
        Err(error) => return Err(refused(path, error.to_string())),
    };
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let reason = if let Some(reason) = obstacle(path) {
        reason
    } else if !folder.is_dir() {
        format!("no such folder: {}", folder.display())
    } else if path.is_dir() {
        "is a folder".to_owned()
    } else if let Some(error) = write_error_of(folder) {
        error.to_string()
    } else {
        return Ok(());
    };
    Err(refused(path, reason))
}

/// Refuses an output that cannot exist even if its folder is created; see [`check_output`] for a folder that exists.
pub fn check_possible(path: &Path) -> anyhow::Result<()> {
    obstacle(path).map_or(Ok(()), |reason| Err(refused(path, reason)))
}

/// Refuses a folder of outputs that cannot be created or written to, before any work.
pub fn check_folder(path: &Path) -> anyhow::Result<()> {
    let file = path.join("x");
    let above = file.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let reason = obstacle(&file).or_else(|| write_error_of(above).map(|error| error.to_string()));
    reason.map_or(Ok(()), |reason| Err(refused(path, reason)))
}

fn refused(path: &Path, reason: String) -> anyhow::Error {
    anyhow::anyhow!(reason).context(Failure::Output(path.to_owned()))
}

/// Reason that no file can have this path, such as a file in place of a parent folder, or a name that is too long.
fn obstacle(path: &Path) -> Option<String> {
    let exists = |folder: &&Path| folder.as_os_str().is_empty() || fs::symlink_metadata(folder).is_ok();
    let above = path.ancestors().skip(1).find(exists)?;
    if !above.as_os_str().is_empty() && !above.is_dir() {
        return Some(format!("{} is {}", above.display(), not_a_folder(above)));
    }
    // For a path in a missing folder, the system reports only that. Each name is checked in the folder that exists.
    let names = path.strip_prefix(above).ok()?.iter().map(|name| above.join(name));
    let mut errors = names.chain([path.to_owned()]).filter_map(|named| fs::symlink_metadata(named).err());
    errors.find(|error| error.kind() != io::ErrorKind::NotFound).map(|error| error.to_string())
}

/// Describes the obstacle at a path where a folder is expected: a file, or a link without a target, where no folder can
/// be created.
pub fn not_a_folder(path: &Path) -> String {
    if path.exists() || !path.is_symlink() {
        return "not a folder".to_owned();
    }
    match follow_links(path) {
        Ok(target) => format!("a link to {}, which does not exist: make that folder", target.display()),
        Err(_) => "a circle of links".to_owned(),
    }
}

/// Error of writing files to a folder, if the system reports it in advance.
#[cfg(unix)]
fn write_error_of(folder: &Path) -> Option<io::Error> {
    use rustix::fs::{Access, access};
    access(folder, Access::WRITE_OK).err().map(io::Error::from)
}

/// Error of writing files to a folder, if the system reports it in advance.
#[cfg(not(unix))]
fn write_error_of(_folder: &Path) -> Option<io::Error> {
    None
}

/// Standard output at its current position, if it is a seekable file.
#[cfg(unix)]
pub fn seekable_output() -> Option<File> {
    use rustix::fs::{OFlags, fcntl_getfl};
    use std::os::fd::AsFd;
    let output = io::stdout();
    // Writes to a file opened for appending ignore the position.
    let appends = fcntl_getfl(&output).is_ok_and(|flags| flags.contains(OFlags::APPEND));
    let file = File::from(output.as_fd().try_clone_to_owned().ok()?);
    (!appends && file.metadata().is_ok_and(|found| found.is_file())).then_some(file)
}

#[cfg(not(unix))]
pub fn seekable_output() -> Option<File> {
    None
}

/// An output that is written in pieces: a file, which appears when it is complete; a device or a pipe; standard output.
/// Errors contain its name.
pub struct TextOutput {
    path: PathBuf,
    target: Target,
}

enum Target {
    Standard,
    Device(File),
    File(OutputFile),
}

/// Opens a file. Unless `replace`, it replaces no other file, not even one that appears meanwhile.
pub fn begin(path: &Path, replace: bool) -> io::Result<OutputFile> {
    if replace { OutputFile::create(path) } else { OutputFile::create_new(path) }
}

impl TextOutput {
    /// Opens an output at `path`, or standard output for `-`; Ctrl-C interrupts the wait for a pipe's reader. See
    /// [`begin`] for `replace`.
    pub fn create(path: &Path, replace: bool) -> anyhow::Result<Self> {
        let failed = || Failure::Output(path.to_owned());
        let target = if is_standard(path) {
            Target::Standard
        } else if is_device(path) {
            Target::Device(open_device(path)?.with_context(failed)?)
        } else {
            Target::File(begin(path, replace).with_context(failed)?)
        };
        Ok(Self { path: name(path, "standard output").to_owned(), target })
    }

    /// Passes a buffered writer to `write`; may be called repeatedly.
    pub fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
        let mut standard = io::stdout();
        let target: &mut dyn Write = match &mut self.target {
            Target::Standard => &mut standard,
            Target::Device(device) => device,
            Target::File(file) => file,
        };
        let mut buffer = BufWriter::new(target);
        let written = write(&mut buffer).and_then(|()| buffer.flush());
        written.with_context(|| Failure::Output(self.path.clone()))
    }

    /// Completes the output, and gives a file its name.
    pub fn finish(self) -> anyhow::Result<()> {
        let finished = match self.target {
            Target::Standard | Target::Device(_) => Ok(()),
            Target::File(file) => file.persist(),
        };
        finished.with_context(|| Failure::Output(self.path))
    }
}

/// Writes the file at `path` as a whole; writes to a device or pipe, and to standard output for `-`. See [`begin`] for
/// `replace`.
pub fn write_whole(path: &Path, bytes: &[u8], replace: bool) -> anyhow::Result<()> {
    let mut sheet = TextOutput::create(path, replace)?;
    sheet.write(|target| target.write_all(bytes))?;
    sheet.finish()
}

/// Opens a device or a pipe for writing; Ctrl-C interrupts the wait for a reader.
pub fn open_device(path: &Path) -> anyhow::Result<io::Result<File>> {
    let path = path.to_owned();
    interruptible(move || File::options().write(true).open(path))
}

/// Whether a path is a device or pipe, which cannot be replaced.
pub fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|existing| !existing.is_file() && !existing.is_dir())
}

/// Reads a file of at most `max_bytes`; Ctrl-C interrupts the wait for a pipe.
pub fn read_bounded(path: &Path, max_bytes: u64) -> anyhow::Result<io::Result<Vec<u8>>> {
    let path = path.to_owned();
    interruptible(move || at_most(max_bytes, File::open(path)?))
}

/// Reads standard input, of at most `max_bytes`; Ctrl-C interrupts the wait for it.
pub fn read_standard_input(max_bytes: u64) -> anyhow::Result<io::Result<Vec<u8>>> {
    interruptible(move || at_most(max_bytes, io::stdin()))
}

/// Reads a source to its end; fails if it exceeds `max_bytes`.
fn at_most(max_bytes: u64, source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(io::Error::other(format!("more than {} MB", max_bytes >> 20)));
    }
    Ok(bytes)
}
