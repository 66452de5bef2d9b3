//! Audio files in folders, and the files that are left out.

use super::failure::{Failure, INPUT, one_line};
use super::record::{self, Record};
use super::streams::is_standard;
use super::terminal::{files, say};
use alphamf::signal::counted;
use alphamf_files::FolderContents;
use anyhow::{Context, anyhow};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// A file or folder that is left out.
#[derive(Debug, Serialize)]
pub struct LeftOut {
    #[serde(serialize_with = "by_key")]
    pub path: PathBuf,
    pub reason: String,
    /// Whether this is a failure: a folder that cannot be read.
    pub failed: bool,
}

impl LeftOut {
    /// An input that failed.
    pub fn failed(path: &Path, error: &anyhow::Error) -> Self {
        let reason = one_line(error);
        let named = format!("{}: ", path.display());
        Self {
            path: path.to_owned(),
            reason: reason.strip_prefix(&named).unwrap_or(&reason).to_owned(),
            failed: true,
        }
    }

    /// Results of an earlier run.
    pub fn results(path: PathBuf) -> Self {
        Self { path, reason: "results of an earlier run".to_owned(), failed: false }
    }
}

/// Removes `.` components from a path. `-` stays standard input, and `./-` a file.
pub fn plain(path: &Path) -> PathBuf {
    let plain: PathBuf = path.components().filter(|part| !matches!(part, Component::CurDir)).collect();
    if plain.as_os_str().is_empty() || is_standard(&plain) { path.to_owned() } else { plain }
}

/// Lists audio files in and below a folder, except below the folders in `except`, sorted by name; and the files left
/// out. Fails if there is no audio file or the folder itself cannot be read.
pub fn audio_files_below(folder: &Path, except: &[&Path]) -> anyhow::Result<(Vec<PathBuf>, Vec<LeftOut>)> {
    // The folder of reports may be that of the recordings.
    let is_itself = |other: &Path| fs::canonicalize(other).ok() == fs::canonicalize(folder).ok();
    let except: Vec<&Path> = except.iter().copied().filter(|except| !is_itself(except)).collect();
    let (contents, results) =
        contents_below(folder, &except).with_context(|| Failure::Input(folder.to_owned()))?;
    let FolderContents { audio, mut others, special, mut hidden, unreadable, .. } = contents;
    hidden.retain(|path| !path.ends_with(record::NAME));
    if audio.is_empty() {
        let reason = match results.is_empty() {
            true => anyhow!("no audio file in or below it{}", named_others(folder, &mut others)),
            false => anyhow!(
                "no audio file in or below it but results of an earlier run: name their folder to denoise them"
            ),
        };
        return Err(reason.context(Failure::Unusable(folder.to_owned())));
    }
    let left = |reason: &'static str| move |path| LeftOut { path, reason: reason.to_owned(), failed: false };
    let hidden = hidden.into_iter().map(left("hidden"));
    let results = results.into_iter().map(LeftOut::results);
    let others = others.into_iter().map(left("unsupported file extension"));
    let special = special.into_iter().map(left("not a regular file"));
    let unreadable =
        unreadable.into_iter().map(|(path, error)| LeftOut { path, reason: error.to_string(), failed: true });
    let mut left_out: Vec<LeftOut> =
        others.chain(results).chain(special).chain(hidden).chain(unreadable).collect();
    left_out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((audio, left_out))
}

/// Lists the contents of a folder as [`FolderContents::scan`], without results of earlier runs below it. Also returns
/// these results: folders, or single files beside recordings.
pub fn contents_below(folder: &Path, except: &[&Path]) -> io::Result<(FolderContents, BTreeSet<PathBuf>)> {
    let mut contents = FolderContents::scan(folder, except)?;
    let earlier = EarlierResults::below(folder, &contents.hidden);
    let mut results = BTreeSet::new();
    let mut is_new = |path: &PathBuf| {
        let found = earlier.holding(path);
        results.extend(found.map(Path::to_owned));
        found.is_none()
    };
    let FolderContents { audio, others, special, hidden, unreadable, .. } = &mut contents;
    [audio, others, special, hidden].into_iter().for_each(|paths| paths.retain(&mut is_new));
    unreadable.retain(|(path, _)| is_new(path));
    Ok((contents, results))
}

/// Results of earlier runs below a folder.
struct EarlierResults(HashSet<PathBuf>);

impl EarlierResults {
    /// Finds the results in the folders that hold a record, which is one of the `hidden` files. Such a folder counts as
    /// a whole, or only its recorded results if it also holds their recordings. A record in `folder` itself is ignored,
    /// as the user named this folder.
    fn below(folder: &Path, hidden: &[PathBuf]) -> Self {
        let records =
            hidden.iter().filter(|path| path.ends_with(record::NAME)).filter_map(|path| path.parent());
        let mut found = HashSet::new();
        for results in records.filter(|&results| results != folder) {
            let sources = Record::open(results).map(|record| record.sources()).unwrap_or_default();
            let place = fs::canonicalize(results).unwrap_or_else(|_| results.to_owned());
            if sources.values().any(|source| Path::new(source).starts_with(&place)) {
                found.extend(sources.keys().map(|name| results.join(name)));
            } else {
                found.insert(results.to_owned());
            }
        }
        Self(found)
    }

    /// The folder of results that holds a path, or the path itself if it is one of them.
    fn holding(&self, path: &Path) -> Option<&Path> {
        if self.0.is_empty() {
            return None;
        }
        path.ancestors().find_map(|above| self.0.get(above)).map(PathBuf::as_path)
    }
}

/// Names the first files of a folder without audio files, for the error message. ffmpeg may read them if they are named
/// explicitly.
fn named_others(folder: &Path, others: &mut [PathBuf]) -> String {
    const NAMED: usize = 3;
    if others.is_empty() {
        return String::new();
    }
    others.sort();
    let name = |path: &PathBuf| path.strip_prefix(folder).unwrap_or(path).display().to_string();
    let named: Vec<String> = others.iter().take(NAMED).map(name).collect();
    let more = if others.len() > NAMED { ", ..." } else { "" };
    format!(
        "; {} of other kinds left out: {}{more} (name them to have them read, by ffmpeg if need be)",
        files(others.len()),
        named.join(", ")
    )
}

/// Reports the files left out, with the first names for each reason; only failures if `quiet`.
pub fn say_left_out(left_out: &[LeftOut], quiet: bool) {
    const NAMED: usize = 10;
    let (failed, other): (Vec<_>, Vec<_>) = left_out.iter().partition(|left| left.failed);
    for LeftOut { path, reason, .. } in failed {
        say(&format!("denoise: {}: {reason}", path.display()));
    }
    if quiet {
        return;
    }
    let mut reasons: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for LeftOut { path, reason, .. } in other {
        reasons.entry(reason).or_default().push(path);
    }
    for (reason, paths) in reasons {
        let more = if paths.len() > NAMED { ", ..." } else { "" };
        let named: Vec<String> = paths.iter().take(NAMED).map(|path| path.display().to_string()).collect();
        say(&format!("{} left out ({reason}): {}{more}", files_and_folders(&paths), named.join(", ")));
    }
}

/// Counts files and folders, in words.
fn files_and_folders(paths: &[&Path]) -> String {
    let folders = paths.iter().filter(|path| path.is_dir()).count();
    let counts = [(paths.len() - folders, "file"), (folders, "folder")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, thing)| counted(count as u64, thing)).collect();
    counts.join(" and ")
}

/// Exit code for the files left out.
pub fn left_out_code(left_out: &[LeftOut]) -> u8 {
    if left_out.iter().any(|left| left.failed) { INPUT } else { 0 }
}

/// Serialises a path; paths that are not UTF-8 stay distinct.
pub fn by_key<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&record::key(path))
}
