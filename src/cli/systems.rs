//! The denoisers that `denoise eval` scores: one of the command line's making, or those of a protocol.

use std::error::Error;
use std::path::Path;

use alphamf::audio::Signal;
use alphamf::evaluation::{Observer, Protocol};
use clap::Args;

/// Denoises one recording, and may show how the estimate develops.
type Denoise = dyn Fn(&Signal, &mut Observer) -> Result<Signal, Box<dyn Error + Send + Sync>> + Sync;

/// Something to score.
pub struct System {
    /// Name in the results.
    pub name: String,
    /// Settings for the record.
    pub settings: serde_json::Value,
    /// Seed of its random numbers.
    pub seed: Option<u64>,
    /// SHA-256 of its dictionary.
    pub dictionary_sha256: Option<String>,
    /// The denoiser.
    pub denoise: Box<Denoise>,
}

impl System {
    /// Stands for files that were enhanced elsewhere.
    pub fn enhanced() -> Self {
        Self {
            name: "enhanced".to_owned(),
            settings: serde_json::Value::Null,
            seed: None,
            dictionary_sha256: None,
            denoise: Box::new(|_, _| Err("there is no enhanced file for this recording".into())),
        }
    }
}

/// Settings of the denoiser.
#[derive(Debug, Args)]
pub struct DenoiserArgs {}

/// The denoiser that the command line describes.
pub fn of_arguments(_: &DenoiserArgs) -> anyhow::Result<System> {
    anyhow::bail!("denoising is still to come")
}

/// The denoisers that a protocol compares, their dictionary trained if it says so.
pub fn of_protocol(_: &Protocol, _: &Path, _: &DenoiserArgs) -> anyhow::Result<Vec<System>> {
    anyhow::bail!("denoising is still to come")
}
