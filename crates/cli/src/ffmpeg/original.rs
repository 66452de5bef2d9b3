//! Inputs of ffmpeg.

use super::kinds::DEMUXERS;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Only files and pipes are opened, of the formats in [`DEMUXERS`]: a playlist under the name of a recording would make
/// ffmpeg read any other file.
const INPUT_OPTIONS: [&str; 4] = ["-protocol_whitelist", "file,pipe", "-format_whitelist", DEMUXERS];

/// A file that ffmpeg reads by a descriptor that this program has opened, so that it is this file whatever becomes of its
/// name.
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

    /// Its name for ffmpeg if it is this descriptor there; the path where the system has no names for descriptors.
    fn name(&self, descriptor: i32) -> OsString {
        let name = PathBuf::from(format!("/dev/fd/{descriptor}"));
        if cfg!(unix) && Path::new("/dev/fd").exists() { named(&name) } else { named(&self.path) }
    }

    /// Makes it the first input, and standard input.
    pub(super) fn as_stdin(&self, command: &mut Command) -> io::Result<()> {
        // Where a descriptor keeps its place when it is opened by name, a run before this one has moved it.
        (&self.file).rewind()?;
        command.args(INPUT_OPTIONS).arg("-i").arg(self.name(0)).stdin(self.file.try_clone()?);
        Ok(())
    }

    /// Makes it the second input, by the descriptor that it has here: [`Running::start`](super::process::Running::start)
    /// hands it on.
    pub(super) fn as_second(&self, command: &mut Command) -> io::Result<()> {
        (&self.file).rewind()?;
        #[cfg(unix)]
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&self.file);
        #[cfg(not(unix))]
        let descriptor = 0;
        command.args(INPUT_OPTIONS).arg("-i").arg(self.name(descriptor));
        Ok(())
    }

    /// Whether programs that are started now get the descriptor.
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

/// A name that is no option, address or protocol.
pub(super) fn named(path: &Path) -> OsString {
    let mut name = OsString::from("file:");
    name.push(path);
    name
}
