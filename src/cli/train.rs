//! `denoise train DIR -o FILE`.

use super::Common;
use super::folder::{read_each, speech_files};
use super::terminal::{Progress, write_whole};
use alphamf::audio;
use alphamf::inference::{Corpus, TrainingSettings};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Arguments of `denoise train`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A folder of clean speech: every audio file in it and below is learned from.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// The dictionary to write, a safetensors file.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Sample rate of the dictionary, Hz: its band is half of it. The lowest of the folder if not given;
    /// files at higher rates need no conversion.
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

    /// Seed of the random start.
    #[arg(long, value_name = "N", default_value_t = TrainingSettings::default().seed)]
    seed: u64,
}

/// Learns a dictionary.
pub fn run(arguments: Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let Arguments { folder, output, rate, rank, alpha, iterations, window, seed } = arguments;
    let files = speech_files(&folder, &output)?;
    let settings = TrainingSettings {
        rank,
        alpha,
        iterations,
        seed,
        window_seconds: window,
        ..TrainingSettings::default()
    };
    // Settings are checked before hours of speech are read.
    Corpus::new(rate.unwrap_or(16_000), settings.clone())?;
    let rate = match rate {
        Some(rate) => rate,
        None => {
            let mut lowest = u32::MAX;
            for file in &files {
                lowest = lowest.min(audio::Reader::open(file)?.sample_rate());
            }
            lowest
        }
    };
    let mut corpus = Corpus::new(rate, settings)?;
    read_each(&files, |speech| corpus.add(speech))?;
    let seconds = corpus.seconds();
    let progress = Progress::new("learning", common.quiet);
    let dictionary = corpus.learn(&mut |share| progress.update(share))?;
    drop(progress);
    write_whole(&output, &dictionary.to_bytes()?)?;
    if !common.quiet {
        eprintln!(
            "{}: {rank} spectra of {} bins from {seconds:.0} s of speech in {} files, in {:.1} s",
            output.display(),
            dictionary.header().bins(),
            files.len(),
            start.elapsed().as_secs_f64()
        );
    }
    Ok(ExitCode::SUCCESS)
}
