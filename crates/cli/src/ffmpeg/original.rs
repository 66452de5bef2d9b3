//! Inputs of ffmpeg.

use super::kinds::DEMUXERS;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options that allow only files and pipes, in the formats of [`DEMUXERS`]. A playlist under the name of a recording
/// would make ffmpeg read any other file.
const INPUT_OPTIONS: [&str; 4] = ["-protocol_whitelist", "file,pipe", "-format_whitelist", DEMUXERS];

/// A file that ffmpeg reads through a descriptor opened by this program. Replacing or renaming the file does not affect
/// the run.
#[derive(Debug)]
pub(super) struct Original {
    file: File,
    path: PathBuf,
}

impl Original {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(Self { file, path: path.to_owned() })
    }

    /// Name of the file for ffmpeg: `descriptor` in `/dev/fd`, or the path where the system lacks `/dev/fd`.
    fn name(&self, descriptor: i32) -> OsString {
        let name = PathBuf::from(format!("/dev/fd/{descriptor}"));
        if cfg!(unix) && Path::new("/dev/fd").exists() { named(&name) } else { named(&self.path) }
    }

    /// Adds the file as the first input, through standard input.
    pub(super) fn as_stdin(&self, command: &mut Command) -> io::Result<()> {
        // An earlier run has moved the position, where descriptors opened by name share it.
        (&self.file).rewind()?;
        command.args(INPUT_OPTIONS).arg("-i").arg(self.name(0)).stdin(self.file.try_clone()?);
        Ok(())
    }

    /// Adds the file as the second input, by its descriptor in this process, which ffmpeg inherits from
    /// [`Running::start`](super::process::Running::start).
    pub(super) fn as_second(&self, command: &mut Command) -> io::Result<()> {
        (&self.file).rewind()?;
        #[cfg(unix)]
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&self.file);
        #[cfg(not(unix))]
        let descriptor = 0;
        command.args(INPUT_OPTIONS).arg("-i").arg(self.name(descriptor));
        Ok(())
    }

    /// Sets whether programs that are started now inherit the descriptor.
    #[cfg(unix)]
    pub(super) fn set_inherited(&self, is_inherited: bool) -> io::Result<()> {
        use rustix::io::{FdFlags, fcntl_setfd};
        let flags = if is_inherited { FdFlags::empty() } else { FdFlags::CLOEXEC };
        Ok(fcntl_setfd(&self.file, flags)?)
    }

    #[cfg(not(unix))]
    pub(super) fn set_inherited(&self, _is_inherited: bool) -> io::Result<()> {
        Ok(())
    }
}

/// Prefixes a path with `file:`, so that ffmpeg does not parse it as an option, address or protocol.
pub(super) fn named(path: &Path) -> OsString {
    let mut name = OsString::from("file:");
    name.push(path);
    name
}
