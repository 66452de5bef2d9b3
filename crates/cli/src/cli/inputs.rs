//! Audio files of folders and lists.

use super::INPUT;
use super::record;
use super::terminal::{Failure, say};
use alphamf_files::FolderContents;
use anyhow::{Context, anyhow};
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A file or folder that is left out.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    pub reason: String,
    /// Whether this is a failure: a folder that cannot be read.
    #[serde(skip)]
    failed: bool,
}

/// Audio files in and below a folder, except those below `except`, sorted by name; and what is left out. At least one;
/// only the folder itself must be readable.
pub fn audio_files_below(
    folder: &Path,
    except: Option<&Path>,
) -> anyhow::Result<(Vec<PathBuf>, Vec<LeftOut>)> {
    let FolderContents { audio, others, special, unreadable, .. } =
        FolderContents::scan(folder, except).with_context(|| Failure::Input(folder.to_owned()))?;
    if audio.is_empty() {
        return Err(anyhow!("no audio file in or below it").context(Failure::Input(folder.to_owned())));
    }
    let left = |reason: &'static str| move |path| LeftOut { path, reason: reason.to_owned(), failed: false };
    let others = others.into_iter().filter(|path| !path.ends_with(record::NAME));
    let others = others.map(left("unsupported file extension"));
    let special = special.into_iter().map(left("not a regular file"));
    let unreadable =
        unreadable.into_iter().map(|(path, error)| LeftOut { path, reason: error.to_string(), failed: true });
    let mut left_out: Vec<LeftOut> = others.chain(special).chain(unreadable).collect();
    left_out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((audio, left_out))
}

/// Reports what was left out, the first few of each reason by name; only failures if `quiet`.
pub fn say_left_out(left_out: &[LeftOut], quiet: bool) {
    const NAMED: usize = 10;
    let (failed, other): (Vec<_>, Vec<_>) = left_out.iter().partition(|left| left.failed);
    for LeftOut { path, reason, .. } in failed {
        say(&format!("denoise: {}: {reason}", path.display()));
    }
    if quiet {
        return;
    }
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for LeftOut { path, reason, .. } in other {
        reasons.entry(reason).or_default().push(path.display().to_string());
    }
    for (reason, paths) in reasons {
        let more = if paths.len() > NAMED { ", ..." } else { "" };
        let files = if paths.len() == 1 { "1 file" } else { &format!("{} files", paths.len()) };
        let named: Vec<&str> = paths.iter().take(NAMED).map(String::as_str).collect();
        say(&format!("{files} left out ({reason}): {}{more}", named.join(", ")));
    }
}

/// Exit code for what was left out.
pub fn left_out_code(left_out: &[LeftOut]) -> u8 {
    if left_out.iter().any(|left| left.failed) { INPUT } else { 0 }
}

/// Serialises a path; bytes that are not UTF-8 are replaced.
pub fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}
