//! What the commands have in common that learn from a folder of speech.

use super::claims::{Claims, check_absent};
use super::inputs::{LeftOut, audio_files_below, left_out_code, say_left_out};
use super::model::parse_seed;
use super::recording::read_whole;
use super::terminal::{Failure, check_output, interrupted, interruptible, say, write_whole};
use super::{Common, INPUT, one_line};
use alphamf::Cancelled;
use alphamf::signal::Signal;
use anyhow::{Context, anyhow};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of the commands that learn.
#[derive(Debug, Clone, clap::Args)]
pub struct Learning {
    /// The file to write, in the safetensors format.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    /// Seed of all random numbers: the same seed gives the same file.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = parse_seed)]
    pub seed: u64,

    /// Stop at the first recording that is of no use or lacks anything; else what is of no use is named and left out,
    /// and the exit code is 3.
    #[arg(long)]
    pub strict: bool,

    /// Replace an output that exists.
    #[arg(long)]
    force: bool,
}

/// The recordings of a folder.
pub struct Speech {
    folder: PathBuf,
    pub files: Vec<PathBuf>,
    left_out: Vec<LeftOut>,
    /// How many of the files were of no use.
    pub bad: usize,
}

impl Learning {
    /// The recordings to learn from, once it is clear that the output may be written and is none of them, nor the
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

    /// Writes what was learned, and says what was left out and, in `sentence`, what was made.
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
    /// Reads the recordings one by one for `add`. Those that are of no use are told of and counted, unless one is
    /// enough to stop.
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
            let reason = anyhow!("none of its recordings is of use");
            return Err(reason.context(Failure::Input(self.folder.clone())));
        }
        Ok(())
    }
}
