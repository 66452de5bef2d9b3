//! `denoise train DIR -o FILE`.

use super::Common;
use super::learning::{Learning, Speech};
use super::model;
use super::progress::Progress;
use super::terminal::interruptible;
use alphamf::learning::{Corpus, FullBandCorpus, TrainingSettings};
use alphamf::model::Dictionary;
use alphamf_files as audio;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// Arguments of `denoise train`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Train on the clean speech in and below this folder.
    #[arg(value_name = "DIR")]
    folder: PathBuf,

    /// Set the sample rate of the dictionary, in Hz.
    ///
    /// Its band is half of it. Range: 8000 to 192000. Default: the lowest of the folder. Files at higher rates need no
    /// conversion.
    #[arg(long, value_name = "HZ", help_heading = "Model")]
    rate: Option<u32>,

    /// Set the number of spectra.
    ///
    /// Range: 1 to 1000.
    #[arg(long, value_name = "N", help_heading = "Model", default_value_t = TrainingSettings::default().rank)]
    rank: usize,

    /// Set the characteristic exponent of speech.
    ///
    /// Range: 0.2 to 2.
    #[arg(long, value_name = "ALPHA", help_heading = "Model", default_value_t = TrainingSettings::default().alpha)]
    alpha: f64,

    /// Set the number of sweeps over the speech.
    ///
    /// Range: 1 to 100000.
    #[arg(long, value_name = "N", help_heading = "Model", default_value_t = TrainingSettings::default().iterations)]
    iterations: usize,

    /// Set the length of the analysis window, in seconds.
    ///
    /// Range: 0.001 to 1.
    #[arg(long, value_name = "S", help_heading = "Model", default_value_t = TrainingSettings::default().window_seconds)]
    window: f64,

    /// Extend this dictionary above its band.
    ///
    /// Trains the high-band extension of its spectra on full-band speech, and writes the dictionary with it. Excludes
    /// --rate, --rank, --alpha and --window.
    #[arg(long = "continue", help_heading = "Model", value_name = "MODEL", conflicts_with_all = ["rate", "rank", "alpha", "window"])]
    continued: Option<PathBuf>,

    #[command(flatten)]
    learning: Learning,
}

/// Trains a dictionary, or the high-band extension of one.
pub fn run(arguments: Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let mut speech = arguments.learning.speech(arguments.folder.clone(), arguments.continued.as_deref())?;
    let (dictionary, what, seconds) = match &arguments.continued {
        Some(model) => train_extension(&arguments, model, &mut speech, common)?,
        None => train_dictionary(&arguments, &mut speech, common)?,
    };
    let sentence = format!(
        "{what} from {seconds:.0} s of speech in {} files, in {:.1} s",
        speech.files.len() - speech.bad,
        start.elapsed().as_secs_f64()
    );
    arguments.learning.finish(&dictionary.to_bytes()?, &speech, &sentence, common)
}

/// A dictionary, its description, and the seconds of speech that it was trained on.
type Trained = (Dictionary, String, f64);

fn train_extension(
    arguments: &Arguments,
    path: &Path,
    speech: &mut Speech,
    common: &Common,
) -> anyhow::Result<Trained> {
    let mut corpus = FullBandCorpus::new(model::dictionary(Some(path))?, arguments.iterations)?;
    speech.read_each(arguments.learning.strict, |speech| corpus.add(speech))?;
    let seconds = corpus.seconds();
    let progress = Progress::new("training", common.quiet);
    let dictionary = corpus.train_with_progress(&mut |fraction: f64| progress.update(fraction))?;
    Ok((dictionary, format!("{} with its spectra extended to 24 kHz,", path.display()), seconds))
}

fn train_dictionary(arguments: &Arguments, speech: &mut Speech, common: &Common) -> anyhow::Result<Trained> {
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
                    // It is reported when it is read.
                    Err(_) => {}
                }
            }
            // Without any readable file, the rate does not matter: reading them reports it.
            if lowest == u32::MAX { 16_000 } else { lowest }
        }
    };
    let mut corpus = Corpus::new(rate, settings)?;
    speech.read_each(learning.strict, |speech| corpus.add(speech))?;
    let seconds = corpus.seconds();
    let progress = Progress::new("training", common.quiet);
    let dictionary = corpus.train_with_progress(&mut |fraction: f64| progress.update(fraction))?;
    let what = format!("{rank} spectra of {} bins", dictionary.header().bins());
    Ok((dictionary, what, seconds))
}
