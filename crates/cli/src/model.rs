//! The denoiser that the options describe.

use super::failure::{Failure, usage};
use super::streams::read_bounded;
use alphamf::{Denoiser, Dictionary, Method, Options, OptionsError, Settings};
use anyhow::Context;
use std::path::{Path, PathBuf};

/// The largest dictionary file: a thousand spectra of 96,001 bins.
const MAX_BYTES: u64 = 400 << 20;

/// Options of the denoiser, shared by all commands that denoise.
#[derive(Debug, Clone, clap::Args)]
pub struct Model {
    #[command(flatten)]
    pub options: Options,

    /// Use a dictionary made by `denoise train`.
    ///
    /// Default: the built-in dictionary.
    #[arg(id = "model", long = "model", value_name = "FILE", help_heading = "Model", display_order = 0)]
    dictionary: Option<PathBuf>,
}

/// Whether recordings are denoised offline or live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Offline,
    Live,
}

impl Model {
    /// The dictionary that replaces the built-in one.
    pub fn dictionary_file(&self) -> Option<&Path> {
        self.dictionary.as_deref()
    }

    /// The library's settings. Options without effect are refused.
    pub fn settings(&self, mode: Mode) -> anyhow::Result<Settings> {
        let settings = match mode {
            Mode::Offline => self.options.settings(),
            Mode::Live => self.options.live_settings(),
        };
        settings.map_err(as_usage)
    }

    /// The denoiser that the options describe.
    pub fn denoiser(&self, mode: Mode) -> anyhow::Result<Denoiser> {
        let settings = self.settings(mode)?;
        let denoiser = Denoiser::new(dictionary(self.dictionary.as_deref())?, settings)?;
        let trained = denoiser.dictionary().header().alpha;
        if let (Some(Method::Published), Some(alpha)) =
            (self.options.method, denoiser.settings().model.alpha_speech)
            && alpha != trained
        {
            tracing::warn!(
                "the dictionary was trained with alpha {trained}, the method expects {alpha}: \
                 train one with `denoise train --alpha {alpha}`"
            );
        }
        Ok(denoiser)
    }
}

/// Converts an error of the options to one with their names on the command line.
pub fn as_usage(error: OptionsError) -> anyhow::Error {
    let text = error.to_string();
    // Names stand between backticks.
    let parts = text.split('`').enumerate().map(|(place, part)| match place % 2 {
        0 => part.to_owned(),
        _ => format!("--{}", part.replace('_', "-")),
    });
    usage(parts.collect::<String>())
}

/// The dictionary of a file, or the built-in one.
pub fn dictionary(path: Option<&Path>) -> anyhow::Result<Dictionary> {
    let Some(path) = path else { return Ok(Dictionary::built_in()?) };
    let failed = || Failure::Dictionary(path.to_owned());
    let bytes = read_bounded(path, MAX_BYTES)?.with_context(failed)?;
    Dictionary::from_bytes(&bytes).with_context(failed)
}
