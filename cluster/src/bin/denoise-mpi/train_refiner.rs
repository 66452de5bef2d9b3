//! `denoise-mpi train-refiner DIR -o FILE`.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use alphamf::learning::{EXAMPLE_SECONDS, RefinerSettings, Simulator, learn_refiner_together};
use alphamf::model::Dictionary;
use alphamf::refiner::Change;
use alphamf_cluster::Mpi;
use alphamf_samplers::distributed::{Communicator as _, Counted};
use anyhow::{Context as _, ensure};

use crate::checkpoint::Folder;
use crate::learning::{Learning, with_length};

/// Arguments of `denoise-mpi train-refiner`: those of `denoise train-refiner`, and how to divide the work.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    learning: Learning,

    /// The dictionary to learn it for, in place of the built-in one.
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,

    /// Channels of the network, 1 to 256.
    #[arg(long, value_name = "N", default_value_t = RefinerSettings::default().channels)]
    channels: usize,

    /// How many times new recordings are simulated.
    #[arg(long, value_name = "N", default_value_t = RefinerSettings::default().rounds)]
    rounds: usize,

    /// Recordings that are simulated each time by all ranks together, 7.5 s and up to 6 MB of memory each.
    #[arg(long, value_name = "N", default_value_t = RefinerSettings::default().examples)]
    examples: usize,

    /// How many times each is learned from.
    #[arg(long, value_name = "N", default_value_t = RefinerSettings::default().passes)]
    passes: usize,

    /// Keep the state after every so many passes; 0 for never. The same command goes on from it.
    #[arg(long, value_name = "PASSES", default_value_t = 1)]
    checkpoint: usize,
}

/// Learns a refiner.
pub fn run(arguments: &Arguments, ranks: &mut Mpi) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let Arguments { learning, model, channels, rounds, examples, passes, checkpoint } = arguments;
    let settings = RefinerSettings {
        channels: *channels,
        rounds: *rounds,
        examples: *examples,
        passes: *passes,
        seed: learning.seed,
    };
    let mut ranks = Counted::new(ranks);
    // Settings and the dictionary are checked before hours of speech are read.
    settings.validate()?;
    let dictionary = match model {
        Some(path) => {
            let read = || anyhow::Ok(Dictionary::from_bytes(&fs::read(path)?)?);
            read().with_context(|| path.display().to_string())?
        }
        None => Dictionary::shipped()?,
    };
    let files = learning.begin(&mut ranks)?;
    let mut simulator = Simulator::new(EXAMPLE_SECONDS);
    let left_out = learning.read(&files, &mut ranks, |speech| Ok(simulator.add(speech)?))?;
    simulator.gather(&mut ranks);
    let found = simulator.speech_seconds();
    ensure!(
        found >= EXAMPLE_SECONDS,
        "{found:.1} s of speech that is not silence; expected at least {EXAMPLE_SECONDS} s"
    );
    let model = model.clone().map(with_length);
    let about = serde_json::to_string(&(&settings, &model, &files))?;
    let newest = learning.newest(&about, "passes", &mut ranks)?;
    let mut checkpoints = Folder::new(&learning.output, *checkpoint, newest);
    let reading = start.elapsed();
    let told = ranks.rank() == 0 && learning.verbose;
    let mut report = |Change { squared_db, compressed_db }| {
        if told {
            eprintln!(
                "denoise-mpi: a pass: squared error {squared_db:+.2} dB, compressed {compressed_db:+.2} dB"
            );
        }
    };
    let refiner = learn_refiner_together(
        &simulator,
        &dictionary,
        &settings,
        &mut ranks,
        &mut checkpoints,
        &mut (),
        &mut report,
    )?;
    let sentence = format!(
        "learned from {:.1} h simulated with {} files of speech; read in {:.1} s, learned in {:.1} s",
        refiner.header().seconds / 3600.0,
        refiner.header().files,
        reading.as_secs_f64(),
        (start.elapsed() - reading).as_secs_f64(),
    );
    learning.finish(&refiner.to_bytes()?, left_out, &sentence, &mut ranks)
}
