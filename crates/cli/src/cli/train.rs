//! `denoise train DIR -o FILE`.

use super::Common;
use super::learning::{Learning, Speech};
use super::model;
use super::terminal::{Progress, interruptible};
use alphamf::learning::{Corpus, FullBandCorpus, TrainingSettings};
use alphamf::model::Dictionary;
use alphamf_files as audio;
use std::path::{Path, PathBuf};
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

/// Learns a dictionary, or the continuation of one.
pub fn run(arguments: Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let mut speech = arguments.learning.speech(arguments.folder.clone(), arguments.continued.as_deref())?;
    let (dictionary, what, seconds) = match &arguments.continued {
        Some(model) => learn_continuation(&arguments, model, &mut speech, common)?,
        None => learn_dictionary(&arguments, &mut speech, common)?,
    };
    let sentence = format!(
        "{what} from {seconds:.0} s of speech in {} files, in {:.1} s",
        speech.files.len() - speech.bad,
        start.elapsed().as_secs_f64()
    );
    arguments.learning.finish(&dictionary.to_bytes()?, &speech, &sentence, common)
}

/// A dictionary, what it is in words, and the seconds of speech that it was learned from.
type Learned = (Dictionary, String, f64);

fn learn_continuation(
    arguments: &Arguments,
    path: &Path,
    speech: &mut Speech,
    common: &Common,
) -> anyhow::Result<Learned> {
    let mut corpus = FullBandCorpus::new(model::dictionary(Some(path))?, arguments.iterations)?;
    speech.read_each(arguments.learning.strict, |speech| corpus.add(speech))?;
    let seconds = corpus.seconds();
    let progress = Progress::new("learning", common.quiet);
    let dictionary = corpus.train_with_progress(&mut |share: f64| progress.update(share))?;
    Ok((dictionary, format!("{} with its spectra continued up to 24 kHz,", path.display()), seconds))
}

fn learn_dictionary(arguments: &Arguments, speech: &mut Speech, common: &Common) -> anyhow::Result<Learned> {
    let &Arguments { rate, rank, alpha, iterations, window, ref learning, .. } = arguments;
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
                    Err(error) if learning.strict => return Err(error.into()),
                    // It is told of when it is read.
                    Err(_) => {}
                }
            }
            // Of none at all: any will do for what follows.
            if lowest == u32::MAX { 16_000 } else { lowest }
        }
    };
    let mut corpus = Corpus::new(rate, settings)?;
    speech.read_each(learning.strict, |speech| corpus.add(speech))?;
    let seconds = corpus.seconds();
    let progress = Progress::new("learning", common.quiet);
    let dictionary = corpus.train_with_progress(&mut |share: f64| progress.update(share))?;
    let what = format!("{rank} spectra of {} bins", dictionary.header().bins());
    Ok((dictionary, what, seconds))
}
