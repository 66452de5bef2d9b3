//! The record of a run.

use super::recording::{Found, Processing, is_standard};
use super::terminal::{print, write_whole};
use alphamf::evaluation::checksum;
use alphamf::inference::{Denoiser, Settings};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// All that is the same for every file of a run.
#[derive(Debug, Serialize)]
pub struct Stats<'a> {
    version: &'static str,
    dictionary_sha256: String,
    refiner_sha256: Option<String>,
    settings: &'a Settings,
    processing: serde_json::Value,
}

/// What became of a file.
#[derive(Debug, Serialize)]
pub struct Entry {
    pub input: PathBuf,
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

/// The checksum of the refiner's file, if there is one.
pub fn refiner_checksum(denoiser: &Denoiser) -> anyhow::Result<Option<String>> {
    Ok(denoiser.refiner().map(|refiner| refiner.to_bytes()).transpose()?.map(|bytes| checksum(&bytes)))
}

impl<'a> Stats<'a> {
    /// The record of runs of one denoiser.
    pub fn new(denoiser: &'a Denoiser, processing: &Processing) -> anyhow::Result<Self> {
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            dictionary_sha256: checksum(&denoiser.dictionary().to_bytes()?),
            refiner_sha256: refiner_checksum(denoiser)?,
            settings: denoiser.settings(),
            processing: processing.record(),
        })
    }

    /// Writes it, with its files, as JSON.
    pub fn write(&self, path: &Path, files: &[Entry]) -> anyhow::Result<()> {
        #[derive(Serialize)]
        struct Record<'a> {
            #[serde(flatten)]
            stats: &'a Stats<'a>,
            files: &'a [Entry],
        }
        let mut json = serde_json::to_string_pretty(&Record { stats: self, files })?;
        json.push('\n');
        if is_standard(path) { print(json.as_bytes()) } else { write_whole(path, json.as_bytes()) }
    }
}
