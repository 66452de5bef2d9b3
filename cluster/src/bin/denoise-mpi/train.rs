//! `denoise-mpi train DIR -o FILE`.

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use alphamf::learning::{Corpus, TrainingSettings};
use alphamf_cluster::Mpi;
use alphamf_files::output::write_whole;
use alphamf_files::{Contents, Reader, read_with_losses};
use alphamf_samplers::distributed::{Communicator, Counted, pack, unpack};
use anyhow::{Context as _, anyhow, ensure};

use crate::checkpoint::{self, Folder};

/// Arguments of `denoise-mpi train`: those of `denoise train`, and how to divide the work.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A folder of clean speech: every audio file in it and below is learned from.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// The file to write, in the safetensors format. Beside it, FILE.checkpoint is kept until it is complete.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Sample rate of the dictionary, Hz. The lowest of the folder if not given.
    #[arg(long, value_name = "HZ")]
    rate: Option<u32>,

    /// Number of spectra, 1 to 1,000.
    #[arg(long, value_name = "N", default_value_t = TrainingSettings::default().rank)]
    rank: usize,

    /// Characteristic exponent of speech, 0.2 to 2.
    #[arg(long, value_name = "ALPHA", default_value_t = TrainingSettings::default().alpha)]
    alpha: f64,

    /// Sweeps over the speech.
    #[arg(long, value_name = "N", default_value_t = TrainingSettings::default().iterations)]
    iterations: usize,

    /// Length of the analysis window, s.
    #[arg(long, value_name = "S", default_value_t = TrainingSettings::default().window_seconds)]
    window: f64,

    /// Seed of all random numbers: the same seed gives the same file.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Keep the state after every so many sweeps; 0 for never. The same command goes on from it.
    #[arg(long, value_name = "SWEEPS", default_value_t = 10)]
    checkpoint: usize,

    /// Threads of each rank.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,

    /// Replace an output that exists.
    #[arg(long)]
    force: bool,

    /// Say after every sweep how far it is.
    #[arg(short, long)]
    verbose: bool,
}

/// Recordings were left out, as in `denoise`.
const INPUT: u8 = 3;

/// Learns a dictionary.
pub fn run(arguments: Arguments, ranks: &mut Mpi) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let settings = TrainingSettings {
        rank: arguments.rank,
        alpha: arguments.alpha,
        iterations: arguments.iterations,
        seed: arguments.seed,
        window_seconds: arguments.window,
        ..TrainingSettings::default()
    };
    rayon::ThreadPoolBuilder::new().num_threads(arguments.threads).build_global()?;
    let mut ranks = Counted::new(ranks);
    let first = ranks.rank() == 0;
    // Settings are checked before hours of speech are read.
    Corpus::new(arguments.rate.unwrap_or(16_000), settings.clone())?;
    let files = if first { list(&arguments)? } else { Vec::new() };
    let files: Vec<(PathBuf, u64)> =
        serde_json::from_slice(&from_first(&mut ranks, &serde_json::to_vec(&files)?))?;
    let own = share(&files, ranks.rank(), ranks.ranks());

    let rate = match arguments.rate {
        Some(rate) => rate,
        None => {
            // What cannot be opened is told of when it is read.
            let rates = own.iter().filter_map(|(file, _)| Some(Reader::open(file).ok()?.sample_rate()));
            let lowest = pack(&[rates.min().unwrap_or(u32::MAX)]);
            let lowest = ranks.all_gather(&lowest).iter().flat_map(|rate| unpack::<u32>(rate)).min();
            lowest.filter(|&rate| rate < u32::MAX).unwrap_or(16_000)
        }
    };
    let mut corpus = Corpus::new(rate, settings.clone())?;
    let mut bad = Vec::new();
    for (file, _) in own {
        let read = read_with_losses(file).map_err(anyhow::Error::from);
        let added = read.and_then(|(speech, losses)| {
            if losses.any() {
                eprintln!("denoise-mpi: {}: {losses}", file.display());
            }
            corpus.add(&speech).with_context(|| file.display().to_string())
        });
        if let Err(error) = added {
            bad.push(format!("{error:#}"));
        }
    }
    let mut left_out = 0;
    for message in ranks.all_gather(&serde_json::to_vec(&bad)?) {
        let bad: Vec<String> = serde_json::from_slice(&message)?;
        left_out += bad.len();
        bad.iter().filter(|_| first).for_each(|reason| eprintln!("denoise-mpi: left out: {reason}"));
    }
    ensure!(left_out < files.len(), "{}: none of its recordings is of use", arguments.folder.display());

    let about = serde_json::to_string(&(&settings, rate, &files))?;
    let newest =
        if first { checkpoint::prepare(&arguments.output, &about).context("the checkpoint")? } else { None };
    let newest: Option<usize> =
        serde_json::from_slice(&from_first(&mut ranks, &serde_json::to_vec(&newest)?))?;
    if let Some(sweeps) = newest.filter(|_| first) {
        eprintln!("denoise-mpi: going on from the state after {sweeps} sweeps");
    }
    let mut checkpoints = Folder::new(&arguments.output, arguments.checkpoint, newest);
    let reading = start.elapsed();
    let iterations = arguments.iterations;
    let mut watch = |share: f64| {
        if first && arguments.verbose {
            eprintln!("denoise-mpi: sweep {:.0} of {iterations}", share * iterations as f64);
        }
        ControlFlow::Continue(())
    };
    let dictionary = corpus.learn_together(&mut ranks, &mut checkpoints, &mut watch)?;
    let sent: u64 =
        ranks.all_gather(&pack(&[ranks.bytes])).iter().flat_map(|bytes| unpack::<u64>(bytes)).sum();
    if first {
        write_whole(&arguments.output, &dictionary.to_bytes()?)
            .with_context(|| arguments.output.display().to_string())?;
        checkpoint::remove(&arguments.output).context("the checkpoint")?;
        eprintln!(
            "{}: {} spectra of {} bins from {:.0} s of speech in {} files on {} ranks; read in {:.1} s, learned in {:.1} s; \
             {:.1} MB sent",
            arguments.output.display(),
            dictionary.header().rank,
            dictionary.header().bins(),
            dictionary.header().seconds,
            files.len() - left_out,
            ranks.ranks(),
            reading.as_secs_f64(),
            (start.elapsed() - reading).as_secs_f64(),
            sent as f64 / 1e6,
        );
    }
    Ok(if first && left_out > 0 { INPUT.into() } else { ExitCode::SUCCESS })
}

/// The recordings in the order of their names with their lengths in bytes, once it is clear that the output may be written.
fn list(arguments: &Arguments) -> anyhow::Result<Vec<(PathBuf, u64)>> {
    let Arguments { folder, output, force, .. } = arguments;
    if !force && output.exists() {
        return Err(anyhow!("{} exists; --force replaces it", output.display()));
    }
    let contents = Contents::of(folder, None).with_context(|| folder.display().to_string())?;
    for (path, reason) in &contents.unreadable {
        eprintln!("denoise-mpi: left out: {}: {reason}", path.display());
    }
    ensure!(!contents.audio.is_empty(), "{}: no audio file in it or below", folder.display());
    let length = |path: PathBuf| {
        let length = fs::metadata(&path).map_or(0, |file| file.len());
        (path, length)
    };
    Ok(contents.audio.into_iter().map(length).collect())
}

/// What the first rank says.
fn from_first(ranks: &mut dyn Communicator, message: &[u8]) -> Vec<u8> {
    let own = if ranks.rank() == 0 { message } else { &[] };
    ranks.all_gather(own).swap_remove(0)
}

/// A rank's share of the files: a run of them with about as many bytes as the others'.
fn share(files: &[(PathBuf, u64)], rank: usize, ranks: usize) -> &[(PathBuf, u64)] {
    let total: u128 = files.iter().map(|&(_, length)| u128::from(length) + 1).sum();
    let bound = |rank: usize| {
        let mut before = 0;
        let within = |&&(_, length): &&(PathBuf, u64)| {
            before += u128::from(length) + 1;
            before * ranks as u128 <= total * rank as u128
        };
        files.iter().take_while(within).count()
    };
    &files[bound(rank)..bound(rank + 1)]
}
