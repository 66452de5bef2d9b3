//! Training on a folder of speech: its options, recordings and output.

use super::claims::{Claims, check_absent};
use super::inputs::{LeftOut, audio_files_below, left_out_code, say_left_out};
use super::recording::read_whole;
use super::terminal::{Failure, check_output, interrupted, interruptible, say, write_whole};
use super::{Common, INPUT, one_line};
use alphamf::Cancelled;
use alphamf::signal::Signal;
use anyhow::{Context, anyhow};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of the commands that train.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Input and output")]
pub struct Learning {
    /// Write the dictionary, in the safetensors format.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// Seed the random numbers.
    ///
    /// The same seed gives the same file.
    #[arg(long, value_name = "N", help_heading = "Model", default_value_t = 0, allow_negative_numbers = true, value_parser = parse_seed)]
    pub seed: u64,

    /// Stop at the first invalid or damaged recording.
    ///
    /// By default invalid recordings are reported and left out, and the exit code is 3.
    #[arg(long)]
    pub strict: bool,

    /// Overwrite an existing output.
    #[arg(long)]
    force: bool,
}

/// The recordings of a folder.
pub struct Speech {
    folder: PathBuf,
    pub files: Vec<PathBuf>,
    left_out: Vec<LeftOut>,
    /// Number of invalid files.
    pub bad: usize,
}

impl Learning {
    /// Lists the recordings to train on; checks first that the output may be written and is neither one of them nor the
    /// model.
    pub fn speech(&self, folder: PathBuf, model: Option<&Path>) -> anyhow::Result<Speech> {
        let (files, left_out) = audio_files_below(&folder, None)?;
        check_output(&self.output)?;
        let mut claims = Claims::default();
        files.iter().map(PathBuf::as_path).chain(model).for_each(|input| claims.read(input));
        claims.write(&self.output)?;
        check_absent(&self.output, self.force, "")?;
        Ok(Speech { folder, files, left_out, bad: 0 })
    }

    /// Writes the dictionary, and reports what was left out and, in `sentence`, what was made.
    pub fn finish(
        &self,
        bytes: &[u8],
        speech: &Speech,
        sentence: &str,
        common: &Common,
    ) -> anyhow::Result<ExitCode> {
        write_whole(&self.output, bytes)?;
        say_left_out(&speech.left_out, common.quiet);
        if !common.quiet {
            say(&format!("{}: {sentence}", self.output.display()));
        }
        Ok(if speech.bad > 0 { INPUT } else { left_out_code(&speech.left_out) }.into())
    }
}

impl Speech {
    /// Passes the recordings to `add` one by one. Invalid ones are reported and counted; if `strict`, the first one ends
    /// it.
    pub fn read_each<E>(
        &mut self,
        strict: bool,
        mut add: impl FnMut(&Signal) -> Result<(), E>,
    ) -> anyhow::Result<()>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        for file in &self.files {
            let path = file.clone();
            let read = interruptible(move || read_whole(&path, strict))?;
            let added = read.and_then(|speech| add(&speech).with_context(|| file.display().to_string()));
            match added {
                Ok(()) => {}
                Err(error) if strict => return Err(error),
                Err(error) => {
                    self.bad += 1;
                    say(&format!("denoise: left out: {}", one_line(&error)));
                }
            }
            if interrupted().is_break() {
                return Err(Cancelled.into());
            }
        }
        if self.bad == self.files.len() {
            let reason = anyhow!("no valid recording in it");
            return Err(reason.context(Failure::Input(self.folder.clone())));
        }
        Ok(())
    }
}

/// Reads a seed.
fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}
