//! `denoise train-refiner DIR -o FILE`.

use super::Common;
use super::folder::{read_each, speech_files};
use super::model::dictionary;
use super::terminal::{Progress, write_whole};
use alphamf::audio;
use alphamf::inference::{RefinerSettings, learn_refiner};
use alphamf::refiner::Change;
use alphamf::simulation::Simulator;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Length of a simulated recording, s: about a block of the denoiser.
const EXAMPLE_SECONDS: f64 = 7.5;

/// Arguments of `denoise train-refiner`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A folder of clean speech at 16 kHz: every audio file in it and below is used.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// The refiner to write, a safetensors file.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The dictionary to learn it for, in place of the built-in one.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,

    /// Channels of the network, 1 to 256.
    #[arg(long, value_name = "N", default_value_t = RefinerSettings::default().channels)]
    channels: usize,

    /// How many times new recordings are simulated.
    #[arg(long, value_name = "N", default_value_t = RefinerSettings::default().rounds)]
    rounds: usize,

    /// Recordings that are simulated each time, 7.5 s and up to 6 MB of memory each.
    #[arg(long, value_name = "N", default_value_t = RefinerSettings::default().examples)]
    examples: usize,

    /// How many times each is learned from.
    #[arg(long, value_name = "N", default_value_t = RefinerSettings::default().passes)]
    passes: usize,

    /// Seed of the simulation and the start.
    #[arg(long, value_name = "N", default_value_t = RefinerSettings::default().seed)]
    seed: u64,
}

/// Learns a refiner.
pub fn run(arguments: Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let Arguments { folder, output, model, channels, rounds, examples, passes, seed } = arguments;
    let files = speech_files(&folder, &output)?;
    if let Some(model) = &model {
        audio::check_distinct(model, &output)?;
    }
    let dictionary = dictionary(model.as_deref())?;
    let mut simulator = Simulator::new(EXAMPLE_SECONDS);
    read_each(&files, |speech| simulator.add(speech))?;
    let settings = RefinerSettings { channels, rounds, examples, passes, seed };
    let progress = Progress::new("learning", common.quiet);
    let mut report = |change: Change| {
        tracing::info!(squared_db = change.squared_db, compressed_db = change.compressed_db, "a pass");
    };
    let advance = &mut |share| progress.update(share);
    let refiner = learn_refiner(&simulator, &dictionary, &settings, advance, &mut report)?;
    drop(progress);
    write_whole(&output, &refiner.to_bytes()?)?;
    if !common.quiet {
        eprintln!(
            "{}: learned from {:.1} h simulated with {} files of speech, in {:.0} s",
            output.display(),
            refiner.header().seconds / 3600.0,
            refiner.header().files,
            start.elapsed().as_secs_f64()
        );
    }
    Ok(ExitCode::SUCCESS)
}
