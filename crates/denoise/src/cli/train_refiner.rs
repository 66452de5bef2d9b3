//! `denoise train-refiner DIR -o FILE`.

use super::Common;
use super::learning::Learning;
use super::model::dictionary;
use super::terminal::{Failure, Progress};
use alphamf::learning::{EXAMPLE_SECONDS, RefinerSettings, Simulator, learn_refiner};
use alphamf::refiner::Change;
use anyhow::anyhow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Arguments of `denoise train-refiner`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A folder of clean speech at 16 kHz: every audio file in it and below is used.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// The dictionary to learn it for, in place of the built-in one.
    #[arg(id = "model", long = "model", value_name = "FILE")]
    dictionary: Option<PathBuf>,

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

    #[command(flatten)]
    learning: Learning,
}

/// Learns a refiner.
pub fn run(arguments: Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let Arguments { folder, dictionary: path, channels, rounds, examples, passes, learning } = arguments;
    // Settings are checked before hours of speech are read.
    let settings = RefinerSettings { channels, rounds, examples, passes, seed: learning.seed };
    settings.validate()?;
    let mut speech = learning.speech(folder.clone(), path.as_deref())?;
    let dictionary = dictionary(path.as_deref())?;
    let mut simulator = Simulator::new(EXAMPLE_SECONDS);
    speech.read_each(learning.strict, |speech| simulator.add(speech))?;
    let found = simulator.speech_seconds();
    if found < EXAMPLE_SECONDS {
        let reason = anyhow!("{found:.1} s of speech that is not silence; at least {EXAMPLE_SECONDS} s");
        return Err(reason.context(Failure::Input(folder)));
    }
    let progress = Progress::new("learning", common.quiet);
    let mut report = |change: Change| {
        tracing::info!(squared_db = change.squared_db, compressed_db = change.compressed_db, "a pass");
    };
    let watch = &mut |share: f64| progress.update(share);
    let refiner = learn_refiner(&simulator, &dictionary, &settings, watch, &mut report)?;
    drop(progress);
    let sentence = format!(
        "learned from {:.1} h simulated with {} files of speech, in {:.0} s",
        refiner.header().seconds / 3600.0,
        refiner.header().files,
        start.elapsed().as_secs_f64()
    );
    learning.finish(&refiner.to_bytes()?, &speech, &sentence, common)
}
