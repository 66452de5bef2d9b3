//! Contents of a folder.

use super::has_extension;
use super::output::is_partial;
use std::collections::{HashSet, VecDeque};
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

/// Files in and below a folder, sorted by path.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct FolderContents {
    /// Files with the extension of an audio format.
    pub audio: Vec<PathBuf>,
    /// Other files. Those that a [`Writer`](crate::Writer) has not completed are in no list.
    pub others: Vec<PathBuf>,
    /// Devices, pipes and sockets: opening one may block.
    pub special: Vec<PathBuf>,
    /// Files and folders of a system or a program, such as the `._a.wav` of a Mac: their names begin with a dot. They
    /// are in no other list, and such folders are not listed.
    pub hidden: Vec<PathBuf>,
    /// Unreadable folders, with the reason.
    pub unreadable: Vec<(PathBuf, UnreadableFolder)>,
}

/// Why a folder cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the folder cannot be read: {0}")]
pub struct UnreadableFolder(#[from] io::Error);

/// A folder to list: its path, and the target of its link.
type Pending = (PathBuf, PathBuf);

impl FolderContents {
    /// Lists a folder, except the contents of the folders `except`. Links are followed; a folder with several paths is listed once, by the
    /// shortest.
    ///
    /// # Errors
    /// If the folder itself cannot be read.
    pub fn scan(folder: &Path, except: &[&Path]) -> io::Result<Self> {
        let except: Vec<_> = except.iter().filter_map(|except| fs::canonicalize(except).ok()).collect();
        let mut contents = Self::default();
        let mut pending = VecDeque::from([(folder.to_owned(), fs::canonicalize(folder)?)]);
        // Links can form a cycle of folders.
        let mut seen = HashSet::new();
        while let Some((path, place)) = pending.pop_front() {
            if except.contains(&place) || !seen.insert(place.clone()) {
                continue;
            }
            match contents.add(&path, &place, &mut pending) {
                Ok(()) => {}
                Err(error) if path == folder => return Err(error),
                Err(error) => contents.unreadable.push((path, error.into())),
            }
        }
        contents.audio.sort();
        contents.others.sort();
        contents.special.sort();
        contents.hidden.sort();
        contents.unreadable.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(contents)
    }

    /// Adds the files of a folder, and queues its subfolders.
    fn add(&mut self, folder: &Path, place: &Path, pending: &mut VecDeque<Pending>) -> io::Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        // Which of several links is followed must not depend on the order on the disk.
        entries.sort_by_key(DirEntry::file_name);
        for entry in entries {
            let (path, name, kind) = (entry.path(), entry.file_name(), entry.file_type()?);
            if is_partial(&name) {
                continue;
            }
            if name.as_encoded_bytes().starts_with(b".") {
                self.hidden.push(path);
                continue;
            }
            let target = match kind {
                kind if kind.is_dir() => Some(place.join(&name)),
                kind if kind.is_symlink() => fs::canonicalize(&path).ok().filter(|target| target.is_dir()),
                _ => None,
            };
            let is_special = match kind {
                kind if kind.is_symlink() => {
                    target.is_none() && fs::metadata(&path).is_ok_and(|found| !found.is_file())
                }
                kind => !kind.is_file() && !kind.is_dir(),
            };
            if let Some(target) = target {
                pending.push_back((path, target));
            } else if is_special {
                self.special.push(path);
            } else if has_extension(&path) {
                self.audio.push(path);
            } else {
                self.others.push(path);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    #[test]
    fn every_folder_is_looked_into_once() {
        let root = TempDir::new().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::create_dir_all(path("z/deep")).unwrap();
        fs::create_dir(path("out")).unwrap();
        for name in ["z/deep/a.WAV", "z/b.M4B", "z/notes", "out/c.wav", "z/.alphamf-AbCdEf.part"] {
            fs::write(path(name), "").unwrap();
        }
        // A cycle, a second path, links without a target.
        symlink("..", path("z/deep/up")).unwrap();
        symlink("z/deep", path("other")).unwrap();
        symlink("round", path("round")).unwrap();
        symlink("gone", path("d.wav")).unwrap();
        for name in ["pipe.wav", "z/pipe"] {
            assert!(std::process::Command::new("mkfifo").arg(path(name)).status().unwrap().success());
        }
        symlink("/dev/zero", path("zero.wav")).unwrap();
        let found = FolderContents::scan(root.path(), &[&path("out")]).unwrap();
        assert_eq!(found.audio, [path("d.wav"), path("other/a.WAV"), path("z/b.M4B")]);
        assert_eq!(found.others, [path("round"), path("z/notes")]);
        assert_eq!(found.special, [path("pipe.wav"), path("z/pipe"), path("zero.wav")]);
        assert!(found.unreadable.is_empty());
        assert!(FolderContents::scan(&path("gone"), &[]).is_err());
    }

    #[test]
    fn hidden_files_and_folders_are_apart() {
        // In a folder that is hidden itself.
        let root = tempfile::Builder::new().prefix(".a").tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::create_dir_all(path("z/.cache/deep")).unwrap();
        for name in ["z/a.wav", "z/._a.wav", "z/.notes", "z/.cache/b.wav", "z/.cache/deep/c.wav"] {
            fs::write(path(name), "").unwrap();
        }
        symlink("z", path(".z")).unwrap();
        let found = FolderContents::scan(root.path(), &[]).unwrap();
        assert_eq!((found.audio, found.others), (vec![path("z/a.wav")], vec![]));
        assert_eq!(found.hidden, [".z", "z/._a.wav", "z/.cache", "z/.notes"].map(path));
    }
}
