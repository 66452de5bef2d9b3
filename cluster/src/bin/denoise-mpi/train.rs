//! `denoise-mpi train DIR -o FILE`.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Instant;

use alphamf::learning::{Corpus, TrainingSettings};
use alphamf_cluster::Mpi;
use alphamf_files::Reader;
use alphamf_samplers::distributed::{Communicator as _, Counted, pack, unpack};

use crate::checkpoint::Folder;
use crate::learning::{Learning, share};

/// Arguments of `denoise-mpi train`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    learning: Learning,

    /// Sample rate of the dictionary, Hz [default: the lowest of the folder].
    #[arg(long, value_name = "HZ")]
    rate: Option<u32>,

    /// Number of spectra, 1 to 1,000.
    #[arg(long, value_name = "N", default_value_t = TrainingSettings::default().rank)]
    rank: usize,

    /// Characteristic exponent of speech, 0.2 to 2.
    #[arg(long, value_name = "ALPHA", default_value_t = TrainingSettings::default().alpha)]
    alpha: f64,

    /// Number of sweeps over the speech.
    #[arg(long, value_name = "N", default_value_t = TrainingSettings::default().iterations)]
    iterations: usize,

    /// Length of the analysis window, s.
    #[arg(long, value_name = "S", default_value_t = TrainingSettings::default().window_seconds)]
    window: f64,

    /// Write a checkpoint every N sweeps, 0 for never.
    ///
    /// The same command resumes from it.
    #[arg(long, value_name = "N", default_value_t = 10)]
    checkpoint: usize,
}

/// Trains a dictionary.
pub fn run(arguments: &Arguments, ranks: &mut Mpi) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let Arguments { learning, iterations, .. } = arguments;
    let settings = TrainingSettings {
        rank: arguments.rank,
        alpha: arguments.alpha,
        iterations: *iterations,
        seed: learning.seed,
        window_seconds: arguments.window,
        ..TrainingSettings::default()
    };
    let mut ranks = Counted::new(ranks);
    // Settings are checked before hours of speech are read.
    Corpus::new(arguments.rate.unwrap_or(16_000), settings.clone())?;
    let files = learning.begin(&mut ranks)?;
    let rate = match arguments.rate {
        Some(rate) => rate,
        None => {
            let own = share(&files, ranks.rank(), ranks.ranks());
            // Files that cannot be opened are reported when they are read.
            let rates = own.iter().filter_map(|(file, _)| Some(Reader::open(file).ok()?.sample_rate()));
            let lowest = pack(&[rates.min().unwrap_or(u32::MAX)]);
            let lowest = ranks.all_gather(&lowest).iter().flat_map(|rate| unpack::<u32>(rate)).min();
            lowest.filter(|&rate| rate < u32::MAX).unwrap_or(16_000)
        }
    };
    let mut corpus = Corpus::new(rate, settings.clone())?;
    let left_out = learning.read(&files, &mut ranks, |speech| Ok(corpus.add(speech)?))?;
    let about = serde_json::to_string(&(&settings, rate, &files))?;
    let newest = learning.newest(&about, "sweeps", &mut ranks)?;
    let mut checkpoints = Folder::new(&learning.output, arguments.checkpoint, newest);
    let reading = start.elapsed();
    let reports = ranks.rank() == 0 && learning.verbose;
    let mut progress = |fraction: f64| {
        if reports {
            eprintln!("denoise-mpi: sweep {:.0} of {iterations}", fraction * *iterations as f64);
        }
        ControlFlow::Continue(())
    };
    let dictionary = corpus.train_distributed(&mut ranks, &mut checkpoints, &mut progress)?;
    let count = files.len() - left_out;
    let sentence = format!(
        "{} spectra of {} bins from {:.0} s of speech in {count} file{}; read in {:.1} s, trained in {:.1} s",
        dictionary.header().rank,
        dictionary.header().bins(),
        dictionary.header().seconds,
        if count == 1 { "" } else { "s" },
        reading.as_secs_f64(),
        (start.elapsed() - reading).as_secs_f64(),
    );
    learning.finish(&dictionary.to_bytes()?, left_out, &sentence, &mut ranks)
}
