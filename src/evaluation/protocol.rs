//! Experiments described in a file.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Table;

use super::pairing::pair_lists;
use super::{EvaluationError, Pairing};

/// An experiment: which files to test on, how to train and how to denoise.
///
/// A TOML file. Patterns are shell patterns (`*`, `?`, `[...]`, `**`) below the folder that holds
/// the corpus. Keys that are not known are refused.
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
/// [settings]              # of the denoiser
///
/// [[variant]]             # any number; each adds to, or replaces, the settings above
/// name = "HAMCMC"
/// settings = { }
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
    /// Name, as it stands in the results.
    pub name: String,
    /// What the experiment is, and where it comes from.
    #[serde(default)]
    pub description: String,
    /// The test files.
    pub corpus: Corpus,
    /// How the dictionary is trained, if the protocol has one of its own.
    pub training: Option<Training>,
    /// Settings of the denoiser that all variants share.
    #[serde(default)]
    settings: Table,
    /// Gibbs sweeps from one recorded estimate to the next, 0 to record only the last.
    #[serde(default)]
    pub trace_every: usize,
    /// What is compared; without any, the settings as they are.
    #[serde(default, rename = "variant")]
    variants: Vec<RawVariant>,
    /// Where the protocol was read from.
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
    /// How many recordings there must be, so that an incomplete corpus is noticed.
    pub files: Option<usize>,
    /// Frequency in Hz below which everything is removed before scoring.
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

/// One of the systems that a [`Protocol`] compares.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant<S> {
    /// Its name; empty for the only one of a protocol without variants.
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
        let text = fs::read_to_string(path).map_err(EvaluationError::io(path))?;
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
        let mut names: Vec<&str> = protocol.variants.iter().map(|variant| variant.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|names| names[0] == names[1]) {
            return Err(wrong(path, format!("two variants are called '{}'", twice[0])));
        }
        Ok(protocol)
    }

    /// The test pairs below `data`.
    ///
    /// # Errors
    /// [`EvaluationError::NoMatch`] for a pattern without files; [`EvaluationError::Protocol`] for
    /// another number of recordings than the protocol demands or a test file among the training
    /// files.
    pub fn pairs(&self, data: &Path) -> Result<Pairing, EvaluationError> {
        let clean = self.files(data, "corpus.clean", &self.corpus.clean)?;
        let noisy = self.files(data, "corpus.noisy", &self.corpus.noisy)?;
        if let Some(files) = self.corpus.files.filter(|&files| files != noisy.len()) {
            let found = noisy.len();
            let data = data.display();
            return Err(wrong(
                &self.path,
                format!("corpus.files = {files}, but {data} has {found} recordings"),
            ));
        }
        let pairing = pair_lists(data, &clean, &noisy)?;
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
    /// [`EvaluationError::NoMatch`] for a pattern without files.
    pub fn training_files(&self, data: &Path) -> Result<Vec<PathBuf>, EvaluationError> {
        match &self.training {
            Some(training) => self.files(data, "training.clean", &training.clean),
            None => Ok(Vec::new()),
        }
    }

    /// The settings of the training.
    ///
    /// # Errors
    /// [`EvaluationError::Protocol`] naming the key that is wrong, unknown or missing.
    pub fn training_settings<S: DeserializeOwned>(&self) -> Result<S, EvaluationError> {
        let settings = self.training.as_ref().map(|training| training.settings.clone()).unwrap_or_default();
        self.settings_of("training.settings", settings)
    }

    /// What is compared: the variants with their settings, at least one.
    ///
    /// # Errors
    /// [`EvaluationError::Protocol`] naming the key that is wrong, unknown or missing.
    pub fn variants<S: DeserializeOwned>(&self) -> Result<Vec<Variant<S>>, EvaluationError> {
        if self.variants.is_empty() {
            let settings = self.settings_of("settings", self.settings.clone())?;
            return Ok(vec![Variant { name: String::new(), settings }]);
        }
        let variant = |variant: &RawVariant| {
            let mut settings = self.settings.clone();
            settings.extend(variant.settings.clone());
            let settings = self.settings_of(&format!("settings of variant '{}'", variant.name), settings)?;
            Ok(Variant { name: variant.name.clone(), settings })
        };
        self.variants.iter().map(variant).collect()
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
    ) -> Result<Vec<PathBuf>, EvaluationError> {
        let mut files = Vec::new();
        for pattern in patterns {
            let full = format!("{}/{pattern}", glob::Pattern::escape(&data.to_string_lossy()));
            let paths = glob::glob(&full)
                .map_err(|error| wrong(&self.path, format!("{key} = \"{pattern}\": {}", error.msg)))?;
            let before = files.len();
            for path in paths {
                let path = path.map_err(|error| EvaluationError::Io {
                    path: error.path().to_owned(),
                    source: error.into(),
                })?;
                if path.is_file() {
                    files.push(path);
                }
            }
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

fn wrong(path: &Path, reason: String) -> EvaluationError {
    EvaluationError::Protocol { path: path.to_owned(), reason }
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}
