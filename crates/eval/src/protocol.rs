//! Experiments described in a file.

use std::io;
use std::path::{Path, PathBuf};

use alphamf::signal::counted;
use alphamf_files::FolderContents;
use glob::{MatchOptions, Pattern};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::files::read_text;
use super::pairing::{add_unreadable, pair_lists, relative_name};
use super::{EvaluationError, Failure, Pairing};

/// An experiment: test files, training, and settings of the denoiser.
///
/// A TOML file. Patterns are shell patterns (`*`, `?`, `[...]`, `**`) below the folder that holds the corpus. Unknown
/// keys are rejected.
///
/// ```toml
/// name = "NOIZEUS, 5 dB"
/// description = "..."
///
/// [corpus]
/// clean = ["clean/*.wav"]
/// noisy = ["noisy/*_5dB/sp2[1-9]_*.wav", "noisy/*_5dB/sp30_*.wav"]
/// files = 80
///
/// [training]              # without it, the dictionary is given otherwise
/// clean = ["clean/sp0?.wav", "clean/sp1?.wav", "clean/sp20.wav"]
/// sample_rate = 8000
/// settings = { }
///
/// [settings]              # of the denoiser: changes of its defaults
/// method = "published"    # start from alphamf::Settings::published() instead
///
/// [[variant]]             # any number; each adds to, or replaces, the settings above, group by group
/// name = "HAMCMC"
/// settings = { }
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
    /// Name in the results.
    pub name: String,
    /// Description and source of the experiment.
    #[serde(default)]
    pub description: String,
    /// The test files.
    pub corpus: Corpus,
    /// Training of the protocol's own dictionary, if it has one.
    pub training: Option<Training>,
    /// Settings of the denoiser that all variants share.
    #[serde(default)]
    settings: Table,
    /// Gibbs sweeps from one recorded estimate to the next, 0 to record only the last.
    #[serde(default)]
    pub trace_every: usize,
    /// Systems to compare; if there are none, only the settings.
    #[serde(default, rename = "variant")]
    variants: Vec<RawVariant>,
    /// Path of the protocol.
    #[serde(skip)]
    path: PathBuf,
}

/// The test files of a [`Protocol`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Corpus {
    /// Patterns of the clean files.
    pub clean: Vec<String>,
    /// Patterns of the recordings; they are paired by the rule of [`super::pair_folders`].
    pub noisy: Vec<String>,
    /// Expected number of recordings, so that an incomplete corpus is an error.
    pub files: Option<usize>,
    /// High-pass cutoff in Hz, applied before scoring.
    #[serde(default)]
    pub high_pass_hz: f64,
}

/// The training split of a [`Protocol`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Patterns of the clean files to train on, none of which may be a test file.
    pub clean: Vec<String>,
    /// Sample rate of the dictionary in Hz.
    pub sample_rate: u32,
    /// Settings of the training.
    #[serde(default)]
    settings: Table,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVariant {
    name: String,
    #[serde(default)]
    settings: Table,
}

/// A system that a [`Protocol`] compares.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant<S> {
    /// Name; empty for the only system of a protocol without variants.
    pub name: String,
    /// Its settings.
    pub settings: S,
}

impl Protocol {
    /// Reads a protocol.
    ///
    /// # Errors
    /// [`EvaluationError::Protocol`] naming the line and the key that is wrong, unknown or missing.
    pub fn read(path: &Path) -> Result<Self, EvaluationError> {
        let text = String::from_utf8(read_text(path)?).map_err(|_| wrong(path, "not UTF-8 text".into()))?;
        let mut protocol: Self = toml::from_str(&text).map_err(|error| {
            let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
            let at = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            wrong(path, format!("{at}{}", one_line(error.message())))
        })?;
        protocol.path = path.to_owned();
        if !(protocol.corpus.high_pass_hz >= 0.0 && protocol.corpus.high_pass_hz.is_finite()) {
            let found = protocol.corpus.high_pass_hz;
            return Err(wrong(path, format!("corpus.high_pass_hz = {found}: expected 0 or more")));
        }
        if let Some(bad) = protocol.variants.iter().find(|variant| !is_file_name(&variant.name)) {
            let expected = "expected one that can be the name of a folder";
            return Err(wrong(path, format!("a variant is called {:?}: {expected}", bad.name)));
        }
        // Many file systems do not distinguish upper and lower case.
        let mut names: Vec<(String, &str)> =
            protocol.variants.iter().map(|variant| (variant.name.to_lowercase(), &*variant.name)).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|names| names[0].0 == names[1].0) {
            let (first, second) = (twice[0].1, twice[1].1);
            let as_well = if first == second { String::new() } else { format!(" and '{second}'") };
            return Err(wrong(path, format!("two variants are called '{first}'{as_well}")));
        }
        Ok(protocol)
    }

    /// The test pairs below `data`.
    ///
    /// # Errors
    /// [`EvaluationError::NoMatch`] for a pattern without files; [`EvaluationError::Io`] if the folder of a pattern
    /// cannot be read; [`EvaluationError::Protocol`] if the number of recordings differs from the expected one or a
    /// test file is among the training files.
    pub fn pairs(&self, data: &Path) -> Result<Pairing, EvaluationError> {
        let mut unread = Vec::new();
        let clean = self.files(data, "corpus.clean", &self.corpus.clean, &mut unread)?;
        let noisy = self.files(data, "corpus.noisy", &self.corpus.noisy, &mut unread)?;
        if let Some(files) = self.corpus.files.filter(|&files| files != noisy.len()) {
            let found = counted(noisy.len() as u64, "recording");
            let data = data.display();
            return Err(wrong(&self.path, format!("corpus.files = {files}, but {data} has {found}")));
        }
        let mut pairing = pair_lists(data, &clean, &noisy)?;
        pairing.unpaired.append(&mut unread);
        let training = self.training_files(data)?;
        if let Some(pair) = pairing.pairs.iter().find(|pair| training.contains(&pair.clean)) {
            let (name, clean) = (&pair.name, pair.clean.display());
            return Err(wrong(
                &self.path,
                format!("training.clean has {clean}, which {name} is tested against"),
            ));
        }
        Ok(pairing)
    }

    /// The clean files below `data` to train the dictionary on; none if it is not trained.
    ///
    /// # Errors
    /// [`EvaluationError::NoMatch`] for a pattern without files; [`EvaluationError::Io`] if the folder of a pattern, or
    /// a folder below it, cannot be read, as a dictionary trained on part of the files would differ.
    pub fn training_files(&self, data: &Path) -> Result<Vec<PathBuf>, EvaluationError> {
        let Some(training) = &self.training else { return Ok(Vec::new()) };
        let mut unread = Vec::new();
        let files = self.files(data, "training.clean", &training.clean, &mut unread)?;
        match unread.pop() {
            Some(Failure { name, reason }) => Err(EvaluationError::io(name)(io::Error::other(reason))),
            None => Ok(files),
        }
    }

    /// The folders below `data` that the patterns search.
    pub fn folders(&self, data: &Path) -> impl Iterator<Item = PathBuf> {
        let training = self.training.iter().flat_map(|training| &training.clean);
        let patterns = self.corpus.clean.iter().chain(&self.corpus.noisy).chain(training);
        patterns.map(|pattern| data.join(folder_and_names(pattern).0))
    }

    /// The settings of the training.
    ///
    /// # Errors
    /// [`EvaluationError::Protocol`] naming the key that is wrong, unknown or missing.
    pub fn training_settings<S: DeserializeOwned>(&self) -> Result<S, EvaluationError> {
        let settings = self.training.as_ref().map(|training| training.settings.clone()).unwrap_or_default();
        self.settings_of("training.settings", settings)
    }

    /// The variants with their settings, at least one.
    ///
    /// # Errors
    /// [`EvaluationError::Protocol`] naming the key that is wrong, unknown or missing.
    pub fn variants<S: DeserializeOwned>(&self) -> Result<Vec<Variant<S>>, EvaluationError> {
        if self.variants.is_empty() {
            let settings =
                self.settings_of("settings", self.of_method("settings", self.settings.clone())?)?;
            return Ok(vec![Variant { name: String::new(), settings }]);
        }
        let variant = |variant: &RawVariant| {
            let mut settings = self.settings.clone();
            merge(&mut settings, &variant.settings);
            let place = format!("settings of variant '{}'", variant.name);
            let settings = self.settings_of(&place, self.of_method(&place, settings)?)?;
            Ok(Variant { name: variant.name.clone(), settings })
        };
        self.variants.iter().map(variant).collect()
    }

    /// Returns the settings of the method named in `changes`, or the defaults, with the changes.
    fn of_method(&self, place: &str, mut changes: Table) -> Result<Table, EvaluationError> {
        let Some(method) = changes.remove("method") else { return Ok(changes) };
        if method.as_str() != Some("published") {
            let found = method.as_str().unwrap_or(method.type_str());
            return Err(wrong(&self.path, format!("{place}: method is {found}: expected published")));
        }
        let mut settings = Table::try_from(alphamf::Settings::published())
            .map_err(|error| wrong(&self.path, format!("{place}: {}", one_line(&error.to_string()))))?;
        merge(&mut settings, &changes);
        Ok(settings)
    }

    fn settings_of<S: DeserializeOwned>(&self, place: &str, settings: Table) -> Result<S, EvaluationError> {
        settings
            .try_into()
            .map_err(|error| wrong(&self.path, format!("{place}: {}", one_line(&error.to_string()))))
    }

    fn files(
        &self,
        data: &Path,
        key: &'static str,
        patterns: &[String],
        unread: &mut Vec<Failure>,
    ) -> Result<Vec<PathBuf>, EvaluationError> {
        const WHOLE_NAMES: MatchOptions = MatchOptions {
            case_sensitive: true,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        let mut files = Vec::new();
        for pattern in patterns {
            let (folder, names) = folder_and_names(pattern);
            let names = Pattern::new(names)
                .map_err(|error| wrong(&self.path, format!("{key} = \"{pattern}\": {}", error.msg)))?;
            let folder = data.join(folder);
            let found = match FolderContents::scan(&folder, &[]) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => FolderContents::default(),
                found => found.map_err(EvaluationError::io(&folder))?,
            };
            let before = files.len();
            let all = found.audio.into_iter().chain(found.others);
            let matches = |path: &PathBuf| {
                names.matches_with(&relative_name(&folder, path), WHOLE_NAMES) && path.is_file()
            };
            files.extend(all.filter(matches));
            add_unreadable(found.unreadable, unread);
            if files.len() == before {
                let (path, data, pattern) = (self.path.clone(), data.to_owned(), pattern.clone());
                return Err(EvaluationError::NoMatch { path, key, pattern, data });
            }
        }
        files.sort();
        files.dedup();
        Ok(files)
    }
}

/// Splits a pattern into its literal folder and the pattern of the names in and below it.
fn folder_and_names(pattern: &str) -> (&str, &str) {
    let below = pattern.trim_start_matches('/');
    let special = below.find(['*', '?', '[']).unwrap_or(below.len());
    below.split_at(below[..special].rfind('/').map_or(0, |slash| slash + 1))
}

/// Merges changes into settings: values are replaced, and groups of equal name are merged.
fn merge(settings: &mut Table, changes: &Table) {
    for (name, change) in changes {
        match (settings.get_mut(name), change) {
            (Some(Value::Table(group)), Value::Table(changes)) => group.extend(changes.clone()),
            _ => drop(settings.insert(name.clone(), change.clone())),
        }
    }
}

/// Whether a name is safe as a folder of results on any platform.
fn is_file_name(name: &str) -> bool {
    const MAX_NAME_BYTES: usize = 100;
    let plain = |character: char| !character.is_control() && !r#"/\:*?"<>|"#.contains(character);
    // Windows drops dots and spaces at the end, and reserves these names for devices, with any extension.
    let is_kept = !name.is_empty() && !name.ends_with(['.', ' ']);
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let port = stem.strip_prefix("com").or(stem.strip_prefix("lpt"));
    let is_device = ["con", "prn", "aux", "nul"].contains(&&*stem)
        || port.is_some_and(|number| matches!(number.as_bytes(), [b'0'..=b'9']));
    is_kept && !is_device && name.len() <= MAX_NAME_BYTES && name.chars().all(plain)
}

fn wrong(path: &Path, reason: String) -> EvaluationError {
    EvaluationError::Protocol { path: path.to_owned(), reason }
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
