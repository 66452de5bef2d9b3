//! The audio files of folders and lists, and what is left out of them.

use super::INPUT;
use super::record;
use super::terminal::{Failure, read_bounded, say};
use alphamf_files::Contents;
use anyhow::{Context, anyhow, ensure};
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};

/// A file or folder that is not worked on.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    pub reason: String,
    /// Whether it should have been: a folder that cannot be read.
    #[serde(skip)]
    failed: bool,
}

/// The audio files in and below a folder, one at least, in the order of their names, but for those below `except`,
/// and what is left out of them. Only the folder itself must be readable.
pub fn audio_files_below(
    folder: &Path,
    except: Option<&Path>,
) -> anyhow::Result<(Vec<PathBuf>, Vec<LeftOut>)> {
    let Contents { audio, others, unreadable, .. } =
        Contents::of(folder, except).with_context(|| Failure::Input(folder.to_owned()))?;
    if audio.is_empty() {
        return Err(anyhow!("no audio file in it or below").context(Failure::Input(folder.to_owned())));
    }
    let others = others.into_iter().filter(|path| !path.ends_with(record::NAME)).map(|path| LeftOut {
        path,
        reason: "its name is not that of audio that is read".to_owned(),
        failed: false,
    });
    let unreadable =
        unreadable.into_iter().map(|(path, error)| LeftOut { path, reason: error.to_string(), failed: true });
    let mut left_out: Vec<LeftOut> = others.chain(unreadable).collect();
    left_out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((audio, left_out))
}

/// Says what was left out, the first few by name; only what should not have been if `quiet`.
pub fn say_left_out(left_out: &[LeftOut], quiet: bool) {
    const NAMED: usize = 10;
    let (failed, other): (Vec<_>, Vec<_>) = left_out.iter().partition(|left| left.failed);
    for LeftOut { path, reason, .. } in failed {
        say(&format!("denoise: {}: {reason}", path.display()));
    }
    if other.is_empty() || quiet {
        return;
    }
    let names: Vec<String> = other.iter().take(NAMED).map(|left| left.path.display().to_string()).collect();
    let more = if other.len() > NAMED { ", ..." } else { "" };
    let are = if other.len() == 1 { "1 file is" } else { &format!("{} files are", other.len()) };
    say(&format!("{are} not audio that is read, by the name: {}{more}", names.join(", ")));
}

/// The exit code that stands for what was left out.
pub fn left_out_code(left_out: &[LeftOut]) -> u8 {
    if left_out.iter().any(|left| left.failed) { INPUT } else { 0 }
}

/// The recordings that a list names, one in a line.
pub fn listed(list: &Path) -> anyhow::Result<Vec<PathBuf>> {
    /// Of a million recordings.
    const MAX_BYTES: u64 = 256 << 20;
    let read = || -> anyhow::Result<Vec<PathBuf>> {
        let text = String::from_utf8(read_bounded(list, MAX_BYTES)?)?;
        let files: Vec<PathBuf> =
            text.lines().filter(|line| !line.trim().is_empty()).map(PathBuf::from).collect();
        ensure!(!files.is_empty(), "it names no recording");
        Ok(files)
    };
    read().with_context(|| Failure::Input(list.to_owned()))
}

/// Writes a path as text also if it is none: a name must not cost the record.
pub fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}
