//! Pairing of recordings with their clean files.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::files::read_text;
use super::{EvaluationError, Failure};
use alphamf::signal::counted;
use alphamf_files::{EXTENSIONS, FolderContents, UnreadableFolder};

/// A clean file with its recording, its enhanced file, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Name within the corpus, unique: the path below its folder, with `/` on every platform.
    pub name: String,
    /// Recording condition, such as a noise and its level; summaries are given per condition.
    pub condition: Option<String>,
    /// The clean speech.
    pub clean: PathBuf,
    /// The recording; absent if an enhanced file is scored alone.
    pub noisy: Option<PathBuf>,
    /// The output of another program; absent if the recording is to be denoised here.
    pub enhanced: Option<PathBuf>,
}

/// Pairs, sorted by name, and the files without a partner.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairing {
    /// At least one pair.
    pub pairs: Vec<Pair>,
    /// Recordings without a clean file, and folders that cannot be read. Unused clean files are not reported.
    pub unpaired: Vec<Failure>,
}

/// Pairs the audio files in and below `noisy` (or, if absent, `enhanced`) with those of `clean`.
///
/// A recording is paired with the clean file of equal path below the folder, or else of equal name, without extensions.
/// The condition is then the part of the name before `__`, if any: `babble__07.wav`. Otherwise, the recording is paired
/// with the clean file named like the part before its first `_`, and the part after it is the condition: NOIZEUS's
/// `sp21_babble_sn5.wav` is `sp21.wav` in condition `babble_sn5`. If both `noisy` and `enhanced` are given, an enhanced
/// file must have the recording's path.
///
/// `list` lists the contents of each folder: [`FolderContents::scan`], or a part of it.
///
/// # Errors
/// [`EvaluationError`] if a folder cannot be read or contains no audio, or if there are no pairs.
pub fn pair_folders(
    clean: &Path,
    noisy: Option<&Path>,
    enhanced: Option<&Path>,
    mut list: impl FnMut(&Path) -> io::Result<FolderContents>,
) -> Result<Pairing, EvaluationError> {
    let mut pairing = Pairing::default();
    let mut read = |folder: &Path| {
        let contents = list(folder).map_err(EvaluationError::io(folder))?;
        Folder::of_contents(folder, contents, &mut pairing.unpaired)
    };
    let clean_files = read(clean)?;
    let noisy_files = noisy.map(&mut read).transpose()?;
    let enhanced_files = enhanced.map(&mut read).transpose()?;
    let Some((folder, recordings)) =
        noisy.zip(noisy_files.as_ref()).or(enhanced.zip(enhanced_files.as_ref()))
    else {
        return Ok(pairing);
    };
    for (stem, path) in &recordings.files {
        let name = relative_name(folder, path);
        let Some((clean, condition)) = clean_files.partner(stem) else {
            let reason = format!("{}, in {}", clean_files.no_partner(stem), clean.display());
            pairing.unpaired.push(Failure { name, reason });
            continue;
        };
        let enhanced_path = match (&enhanced_files, enhanced) {
            (Some(files), Some(folder)) => match files.files.get(stem) {
                Some(path) => Some(path.clone()),
                None => {
                    let reason = format!("no enhanced file of that name in {}", folder.display());
                    pairing.unpaired.push(Failure { name, reason });
                    continue;
                }
            },
            _ => None,
        };
        pairing.pairs.push(Pair {
            name,
            condition,
            clean: clean.clone(),
            noisy: noisy.map(|_| path.clone()),
            enhanced: enhanced_path,
        });
    }
    if pairing.pairs.is_empty() {
        return Err(EvaluationError::NoPairs {
            noisy: folder.to_owned(),
            noisy_count: recordings.files.len(),
            noisy_example: recordings.example(),
            clean: clean.to_owned(),
            clean_count: clean_files.files.len(),
            clean_example: clean_files.example(),
        });
    }
    pairing.pairs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(pairing)
}

/// Pairs explicit lists of files by the rule of [`pair_folders`]; names are paths below `data`.
pub(super) fn pair_lists(
    data: &Path,
    clean: &[PathBuf],
    noisy: &[PathBuf],
) -> Result<Pairing, EvaluationError> {
    let clean_files = Folder::of(data, clean.to_vec())?;
    let mut pairing = Pairing::default();
    for path in noisy {
        let name = relative_name(data, path);
        let stem = stem_below(data, path);
        match clean_files.partner(&stem) {
            Some((clean, condition)) => pairing.pairs.push(Pair {
                name,
                condition,
                clean: clean.clone(),
                noisy: Some(path.clone()),
                enhanced: None,
            }),
            None => {
                let reason = clean_files.no_partner(&stem).into();
                pairing.unpaired.push(Failure { name, reason });
            }
        }
    }
    pairing.pairs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(pairing)
}

/// Reads pairs from a CSV file with the columns `noisy`, `clean` and, optionally, `condition` and `enhanced`, in any
/// order under a header; paths are relative to the manifest's folder.
///
/// # Errors
/// [`EvaluationError::Manifest`] naming the line, for a column that is missing or unknown, an
/// empty cell, a recording listed twice, or no line at all.
pub fn read_manifest(path: &Path) -> Result<Pairing, EvaluationError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let wrong = |line: u64, reason: String| invalid_manifest(path, line, reason);
    let text = manifest_text(path)?;
    let csv_error = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        wrong(
            line,
            match error.kind() {
                csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                    format!("{len} cells: expected {expected_len}, as in the header")
                }
                _ => error.to_string(),
            },
        )
    };
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    const COLUMNS: [&str; 4] = ["noisy", "clean", "condition", "enhanced"];
    let header = reader.headers().map_err(csv_error)?.clone();
    let header: Vec<&str> = header.iter().collect();
    if let Some(unknown) = header.iter().find(|name| !COLUMNS.contains(name)) {
        return Err(wrong(1, format!("unknown column '{unknown}': expected {}", COLUMNS.join(", "))));
    }
    let repeated = |name: &&str| header.iter().filter(|column| *column == name).count() > 1;
    if let Some(twice) = header.iter().copied().find(|name| repeated(name)) {
        return Err(wrong(1, format!("two columns are called '{twice}'")));
    }
    let column = |name: &str| header.iter().position(|column| *column == name);
    let (Some(clean), recording) = (column("clean"), column("noisy").or(column("enhanced"))) else {
        return Err(wrong(1, format!("no column 'clean': found {}", header.join(", "))));
    };
    let Some(recording) = recording else {
        return Err(wrong(1, format!("no column 'noisy' or 'enhanced': found {}", header.join(", "))));
    };
    let mut pairs = BTreeMap::new();
    for row in reader.records() {
        let row = row.map_err(csv_error)?;
        let line = row.position().map_or(0, csv::Position::line);
        let cell = |index: usize| row.get(index).filter(|cell| !cell.is_empty());
        let needed = |index: usize| {
            cell(index).ok_or_else(|| wrong(line, format!("the column '{}' is empty", header[index])))
        };
        let optional =
            |name: &str| column(name).map(|index| needed(index).map(|cell| folder.join(cell))).transpose();
        let name = needed(recording)?.replace('\\', "/");
        let pair = Pair {
            name: name.clone(),
            condition: column("condition").and_then(cell).map(str::to_owned),
            clean: folder.join(needed(clean)?),
            noisy: optional("noisy")?,
            enhanced: optional("enhanced")?,
        };
        if pairs.insert(name.clone(), pair).is_some() {
            return Err(wrong(line, format!("'{name}' is listed twice")));
        }
    }
    if pairs.is_empty() {
        return Err(wrong(2, "no pairs: expected at least one line below the header".into()));
    }
    Ok(Pairing { pairs: pairs.into_values().collect(), unpaired: Vec::new() })
}

fn invalid_manifest(path: &Path, line: u64, reason: String) -> EvaluationError {
    EvaluationError::Manifest { path: path.to_owned(), line, reason }
}

/// Reads the text of a manifest, without a byte order mark and with `\n` at the end of lines.
fn manifest_text(path: &Path) -> Result<String, EvaluationError> {
    let text = String::from_utf8(read_text(path)?).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count() as u64;
        invalid_manifest(path, line, "not UTF-8 text".into())
    })?;
    // The CSV reader would count `\r\n` as two lines.
    Ok(text.trim_start_matches('\u{feff}').replace("\r\n", "\n"))
}

/// The audio files in and below a folder, by their path below it without extension.
struct Folder {
    files: BTreeMap<String, PathBuf>,
    /// Keys of `files` by the stem of the file name; `None` if it is not unique.
    by_name: BTreeMap<String, Option<String>>,
}

impl Folder {
    /// Collects the files of a folder; folders below it that cannot be read are added to `unread`.
    fn of_contents(
        folder: &Path,
        contents: FolderContents,
        unread: &mut Vec<Failure>,
    ) -> Result<Self, EvaluationError> {
        let FolderContents { audio, others, unreadable, .. } = contents;
        if audio.is_empty() {
            let found = match (others.first(), unreadable.first()) {
                (Some(path), _) => {
                    let count = counted(others.len() as u64, "other file");
                    format!("found {count}, such as {}", path.display())
                }
                (None, Some((path, error))) => format!("and {}: {error}", path.display()),
                (None, None) => "the folder is empty".into(),
            };
            let (folder, expected) = (folder.to_owned(), EXTENSIONS.join(", "));
            return Err(EvaluationError::NoAudio { folder, expected, found });
        }
        add_unreadable(unreadable, unread);
        Self::of(folder, audio)
    }

    fn of(folder: &Path, mut paths: Vec<PathBuf>) -> Result<Self, EvaluationError> {
        paths.sort();
        let mut files = BTreeMap::new();
        let mut by_name = BTreeMap::new();
        for path in paths {
            let stem = stem_below(folder, &path);
            by_name
                .entry(file_stem(&stem).to_owned())
                .and_modify(|only| *only = None)
                .or_insert_with(|| Some(stem.clone()));
            if let Some(first) = files.insert(stem, path.clone()) {
                return Err(EvaluationError::SameName { first, second: path });
            }
        }
        Ok(Self { files, by_name })
    }

    /// The clean file of the recording with this stem, and the recording's condition.
    fn partner(&self, stem: &str) -> Option<(&PathBuf, Option<String>)> {
        let by_name = |name: &str| self.files.get(self.by_name.get(name)?.as_ref()?);
        let name = file_stem(stem);
        if let Some(path) = self.files.get(stem).or_else(|| by_name(name)) {
            return Some((path, name.split_once("__").and_then(|(kind, _)| named(kind))));
        }
        let (prefix, condition) = name.split_once('_')?;
        Some((by_name(prefix)?, named(condition)))
    }

    /// Why there is no [`partner`](Self::partner), as the beginning of a phrase.
    fn no_partner(&self, stem: &str) -> &'static str {
        let name = file_stem(stem);
        let prefix = name.split_once('_').map(|(prefix, _)| prefix);
        if [Some(name), prefix].into_iter().flatten().any(|name| self.by_name.get(name) == Some(&None)) {
            "several clean files of that name, or of the part before its first '_', and none at its path"
        } else {
            "no clean file of that name, or of the part before its first '_'"
        }
    }

    fn example(&self) -> String {
        self.files.values().next().map(|path| path.display().to_string()).unwrap_or_default()
    }
}

fn named(condition: &str) -> Option<String> {
    (!condition.is_empty()).then(|| condition.to_owned())
}

/// Adds folders that cannot be read, each once, to the failures.
pub(super) fn add_unreadable(folders: Vec<(PathBuf, UnreadableFolder)>, unread: &mut Vec<Failure>) {
    for (path, error) in folders {
        let name = path.display().to_string();
        let failure = Failure { name, reason: error.to_string() };
        if !unread.contains(&failure) {
            unread.push(failure);
        }
    }
}

pub(super) fn relative_name(folder: &Path, path: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

fn stem_below(folder: &Path, path: &Path) -> String {
    relative_name(folder, &path.with_extension(""))
}

fn file_stem(stem: &str) -> &str {
    stem.rsplit('/').next().unwrap_or(stem)
}
