//! Detection of changed files.

use crate::failure::Failure;
use alphamf_eval::checksum_of_file;
use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use std::cell::OnceCell;
use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Identifies the content of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    bytes: u64,
    /// ns since 1970.
    modified: u64,
    sha256: String,
}

impl Stamp {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let (bytes, modified) = size_and_time(path)?;
        Ok(Self { bytes, modified, sha256: checksum_of_file(path)? })
    }
}

/// A file to compare with stamps.
pub(super) struct Content<'a> {
    path: &'a Path,
    /// None if it cannot be read.
    size_and_time: Option<(u64, u64)>,
    sha256: OnceCell<Option<String>>,
}

impl<'a> Content<'a> {
    pub(super) fn of(path: &'a Path) -> Self {
        Self { path, size_and_time: size_and_time(path).ok(), sha256: OnceCell::new() }
    }

    /// The stamp of the file, if it has the content of `stamp`. The file is read at most once, and only if its
    /// modification time differs.
    pub(super) fn stamp_if(&self, stamp: &Stamp) -> Option<Stamp> {
        let (_, modified) = self.size_and_time.filter(|&(bytes, _)| bytes == stamp.bytes)?;
        let sha256 = || self.sha256.get_or_init(|| checksum_of_file(self.path).ok()).as_ref();
        (modified == stamp.modified || sha256() == Some(&stamp.sha256))
            .then(|| Stamp { modified, ..stamp.clone() })
    }
}

fn size_and_time(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::metadata(path)?;
    let modified = found.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok((found.len(), modified.as_nanos() as u64))
}

/// State of an input before it was read.
#[derive(Debug)]
pub struct Snapshot<'a> {
    pub(super) path: &'a Path,
    /// None for pipes.
    found: Option<Metadata>,
}

impl<'a> Snapshot<'a> {
    /// Reads the size, the modification time and the inode of an input.
    pub fn of(path: &'a Path) -> Self {
        Self { path, found: fs::metadata(path).ok().filter(Metadata::is_file) }
    }

    /// Whether it can be read only once.
    pub(super) fn is_pipe(&self) -> bool {
        self.found.is_none()
    }

    /// Fails if the input has been changed or replaced meanwhile.
    pub fn check(&self) -> anyhow::Result<()> {
        let Some(before) = &self.found else { return Ok(()) };
        let is_same = |now: Metadata| {
            let times = before.modified().ok() == now.modified().ok();
            #[cfg(unix)]
            let times = {
                use std::os::unix::fs::MetadataExt;
                times && (before.dev(), before.ino()) == (now.dev(), now.ino())
            };
            times && before.len() == now.len()
        };
        if fs::metadata(self.path).is_ok_and(is_same) {
            return Ok(());
        }
        Err(anyhow!("it changed while it was read").context(Failure::Unusable(self.path.to_owned())))
    }
}
