//! `denoise train DIR -o FILE`.

use super::Common;
use super::learning::Learning;
use super::model;
use super::terminal::{Progress, interruptible};
use alphamf::learning::{Corpus, FullBandCorpus, TrainingSettings};
use alphamf_files as audio;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Arguments of `denoise train`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A folder of clean speech: every audio file in it and below is learned from.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

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

    /// Learn how the spectra of this dictionary go on above its band, from speech of the whole band, in place of a
    /// dictionary: what is written is this one with its continuation.
    #[arg(long = "continue", value_name = "MODEL", conflicts_with_all = ["rate", "rank", "alpha", "window"])]
    continued: Option<PathBuf>,

    #[command(flatten)]
    learning: Learning,
}

/// Learns a dictionary.
pub fn run(arguments: Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let Arguments { folder, rate, rank, alpha, iterations, window, continued, learning } = arguments;
    let strict = learning.strict;
    let mut speech = learning.speech(folder, continued.as_deref())?;
    if let Some(path) = continued {
        let mut corpus = FullBandCorpus::new(model::dictionary(Some(&path))?, iterations)?;
        speech.read_each(strict, |speech| corpus.add(speech))?;
        let seconds = corpus.seconds();
        let progress = Progress::new("learning", common.quiet);
        let dictionary = corpus.learn_with(&mut |share: f64| progress.update(share))?;
        drop(progress);
        let sentence = format!(
            "{} with its spectra continued up to 24 kHz, from {seconds:.0} s of speech in {} files, in {:.1} s",
            path.display(),
            speech.files.len() - speech.bad,
            start.elapsed().as_secs_f64()
        );
        return learning.finish(&dictionary.to_bytes()?, &speech, &sentence, common);
    }
    let settings = TrainingSettings {
        rank,
        alpha,
        iterations,
        seed: learning.seed,
        window_seconds: window,
        ..TrainingSettings::default()
    };
    // Settings are checked before hours of speech are read.
    Corpus::new(rate.unwrap_or(16_000), settings.clone())?;
    let rate = match rate {
        Some(rate) => rate,
        None => {
            let mut lowest = u32::MAX;
            for file in &speech.files {
                let path = file.clone();
                match interruptible(move || audio::Reader::open(path).map(|reader| reader.sample_rate()))? {
                    Ok(rate) => lowest = lowest.min(rate),
                    Err(error) if strict => return Err(error.into()),
                    // It is told of when it is read.
                    Err(_) => {}
                }
            }
            // Of none at all: any will do for what follows.
            if lowest == u32::MAX { 16_000 } else { lowest }
        }
    };
    let mut corpus = Corpus::new(rate, settings)?;
    speech.read_each(strict, |speech| corpus.add(speech))?;
    let seconds = corpus.seconds();
    let progress = Progress::new("learning", common.quiet);
    let dictionary = corpus.learn_with(&mut |share: f64| progress.update(share))?;
    drop(progress);
    let sentence = format!(
        "{rank} spectra of {} bins from {seconds:.0} s of speech in {} files, in {:.1} s",
        dictionary.header().bins(),
        speech.files.len() - speech.bad,
        start.elapsed().as_secs_f64()
    );
    learning.finish(&dictionary.to_bytes()?, &speech, &sentence, common)
}
