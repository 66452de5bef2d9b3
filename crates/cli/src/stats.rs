//! Statistics of a run, as JSON.

use super::failure::Failure;
use super::inputs::{LeftOut, by_key};
use super::model::Model;
use super::processing::Processing;
use super::record;
use super::recording::Found;
use super::streams::{read_bounded, write_whole};
use alphamf::denoiser::SessionSettings;
use alphamf::{Denoiser, Options, Settings};
use alphamf_eval::checksum;
use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum size of a file of results.
pub const MAX_BYTES: u64 = 1 << 30;

/// Data that all files of a run share.
#[derive(Debug)]
pub struct Run<'a> {
    denoiser: &'a Denoiser,
    session: SessionSettings,
    processing: &'a Processing,
    stats: Stats<'a>,
    settings_checksum: String,
}

/// The part of a run that is recorded.
#[derive(Debug, Serialize)]
struct Stats<'a> {
    version: &'static str,
    /// Its file, or `built-in`.
    dictionary: String,
    dictionary_sha256: String,
    /// Options that were given, by name.
    options: &'a Options,
    settings: &'a Settings,
    processing: serde_json::Value,
}

/// The outcome of a file.
#[derive(Debug, Serialize)]
pub struct Entry {
    #[serde(serialize_with = "by_key")]
    pub input: PathBuf,
    #[serde(serialize_with = "by_key")]
    pub output: PathBuf,
    pub outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(flatten)]
    pub found: Option<Found>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Denoised,
    Skipped,
    Failed,
}

impl Entry {
    /// A file that was denoised.
    pub fn denoised(input: &Path, output: &Path, found: Found) -> Self {
        let (input, output) = (input.to_owned(), output.to_owned());
        Self { input, output, outcome: Outcome::Denoised, error: None, found: Some(found) }
    }
}

impl<'a> Run<'a> {
    /// Creates a run of one denoiser.
    pub fn new(denoiser: &'a Denoiser, model: &'a Model, processing: &'a Processing) -> anyhow::Result<Self> {
        let named = |file: Option<&Path>| {
            file.map_or_else(|| "built-in".to_owned(), |file| file.to_string_lossy().into_owned())
        };
        let session = model.options.session();
        let stats = Stats {
            version: env!("CARGO_PKG_VERSION"),
            dictionary: named(model.dictionary_file()),
            dictionary_sha256: checksum(&denoiser.dictionary().to_bytes()?),
            options: &model.options,
            settings: denoiser.settings(),
            processing: processing.record(&session),
        };
        let mut resolved = processing.clone();
        resolved.live = resolved.live.resolved();
        let all = format!(
            "{} {} {:?} {session:?} {resolved:?}",
            stats.version, stats.dictionary_sha256, stats.settings
        );
        Ok(Self { denoiser, session, processing, stats, settings_checksum: checksum(all.as_bytes()) })
    }

    pub fn denoiser(&self) -> &Denoiser {
        self.denoiser
    }

    pub fn session(&self) -> &SessionSettings {
        &self.session
    }

    pub fn processing(&self) -> &Processing {
        self.processing
    }

    /// Checksum of all that determines the result of a recording.
    pub fn settings_checksum(&self) -> &str {
        &self.settings_checksum
    }

    /// Writes the statistics of files as JSON; replaces an existing file if `replace`. Skipped files keep their figures
    /// from `earlier` statistics.
    pub fn write(
        &self,
        path: &Path,
        files: &[Entry],
        left_out: &[LeftOut],
        earlier: Option<&Earlier>,
        replace: bool,
    ) -> anyhow::Result<()> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum File<'a> {
            New(&'a Entry),
            Kept(&'a RawValue),
        }
        #[derive(Serialize)]
        struct Record<'a> {
            #[serde(flatten)]
            stats: &'a Stats<'a>,
            files: &'a [File<'a>],
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            left_out: &'a [LeftOut],
        }
        let own = serde_json::from_str(&serde_json::to_string(&self.stats)?)?;
        let earlier = earlier.filter(|earlier| earlier.made_by == own);
        let kept = |entry: &Entry| {
            let earlier = earlier.filter(|_| entry.outcome == Outcome::Skipped)?;
            earlier.of(entry)
        };
        let kept: Vec<Option<Box<RawValue>>> = files.iter().map(kept).collect();
        let files: Vec<File> = files
            .iter()
            .zip(&kept)
            .map(|(entry, kept)| kept.as_deref().map_or(File::New(entry), File::Kept))
            .collect();
        let mut json = serde_json::to_string_pretty(&Record { stats: &self.stats, files: &files, left_out })?;
        json.push('\n');
        write_whole(path, json.as_bytes(), replace)
    }
}

/// Statistics that an earlier run has written.
#[derive(Debug)]
pub struct Earlier {
    made_by: MadeBy,
    files: HashMap<String, Box<RawValue>>,
    /// When they were written.
    modified: SystemTime,
}

/// Fields that determine the results.
#[derive(Debug, PartialEq, Deserialize)]
struct MadeBy {
    version: Value,
    dictionary_sha256: Value,
    options: Value,
    settings: Value,
    processing: Value,
}

/// Fields that are read from a file's statistics.
#[derive(Debug, Deserialize)]
struct Known {
    input: String,
    output: String,
    /// None if the file has no figures.
    duration_seconds: Option<f64>,
}

impl Earlier {
    /// Reads statistics, which are recognised by their contents. Refuses to replace any other file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Whole {
            files: Vec<Box<RawValue>>,
        }
        let read = || -> anyhow::Result<Self> {
            let modified = fs::metadata(path)?.modified()?;
            let text = String::from_utf8(read_bounded(path, MAX_BYTES)??)?;
            let made_by = serde_json::from_str(&text)?;
            let Whole { files } = serde_json::from_str(&text)?;
            let named = |file: Box<RawValue>| {
                let known: Known = serde_json::from_str(file.get())?;
                Ok((known.input, file))
            };
            let files = files.into_iter().map(named).collect::<serde_json::Result<_>>()?;
            Ok(Self { made_by, files, modified })
        };
        // The parsing error is omitted: the remedy is always the same.
        read().map_err(|_| {
            anyhow!("remove it or name another: --force would replace all results, edited ones too")
                .context(Failure::Exists(path.to_owned()))
        })
    }

    /// The figures of a skipped file, unless its result is newer than the statistics.
    fn of(&self, entry: &Entry) -> Option<Box<RawValue>> {
        let file = self.files.get(&record::key(&entry.input))?;
        let known: Known = serde_json::from_str(file.get()).ok()?;
        let is_older = fs::metadata(&entry.output).and_then(|found| found.modified()).ok()? <= self.modified;
        let has_figures = known.duration_seconds.is_some() && known.output == record::key(&entry.output);
        let kept = file.get().replacen("\"outcome\": \"denoised\"", "\"outcome\": \"skipped\"", 1);
        (is_older && has_figures).then(|| RawValue::from_string(kept).ok()).flatten()
    }
}
