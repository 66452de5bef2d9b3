//! Statistics of a run, as JSON.

use super::inputs::{LeftOut, lossy};
use super::model::Model;
use super::processing::Processing;
use super::recording::Found;
use super::streams::write_whole;
use alphamf::denoiser::SessionSettings;
use alphamf::{Denoiser, Options, Settings};
use alphamf_eval::checksum;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What all files of a run share.
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
    #[serde(serialize_with = "lossy")]
    pub input: PathBuf,
    #[serde(serialize_with = "lossy")]
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
    /// Runs of one denoiser.
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
        let all = format!(
            "{} {} {:?} {session:?} {processing:?}",
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

    /// Writes the statistics of files as JSON.
    pub fn write(&self, path: &Path, files: &[Entry], left_out: &[LeftOut]) -> anyhow::Result<()> {
        #[derive(Serialize)]
        struct Record<'a> {
            #[serde(flatten)]
            stats: &'a Stats<'a>,
            files: &'a [Entry],
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            left_out: &'a [LeftOut],
        }
        let mut json = serde_json::to_string_pretty(&Record { stats: &self.stats, files, left_out })?;
        json.push('\n');
        write_whole(path, json.as_bytes())
    }
}
