//! `denoise train DIR -o FILE`.

use super::claims::{Claims, check_absent};
use super::common::Common;
use super::failure::{Failure, INPUT, one_line, usage};
use super::inputs::{LeftOut, audio_files_below, left_out_code, say_left_out};
use super::interrupts::{check_interrupt, interruptible};
use super::model;
use super::progress::Progress;
use super::recording::read_whole;
use super::streams::{check_output, write_whole};
use super::terminal::{files, say};
use alphamf::denoiser::SettingsError;
use alphamf::learning::{Corpus, FullBandCorpus, TrainingError, TrainingSettings};
use alphamf::model::Dictionary;
use alphamf::signal::Signal;
use alphamf_files as audio;
use anyhow::{Context, anyhow};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
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
    #[arg(long, value_name = "HZ", help_heading = "Model", allow_negative_numbers = true, value_parser = u32::from_str)]
    rate: Option<u32>,

    /// Set the number of spectra.
    ///
    /// Range: 1 to 1000.
    #[arg(long, value_name = "N", help_heading = "Model", default_value_t = TrainingSettings::default().rank, allow_negative_numbers = true)]
    rank: usize,

    /// Set the characteristic exponent of speech.
    ///
    /// Range: 0.2 to 2.
    #[arg(long, value_name = "ALPHA", help_heading = "Model", default_value_t = TrainingSettings::default().alpha, allow_negative_numbers = true)]
    alpha: f64,

    /// Set the number of sweeps over the speech.
    ///
    /// Range: 1 to 100000.
    #[arg(long, value_name = "N", help_heading = "Model", default_value_t = TrainingSettings::default().iterations, allow_negative_numbers = true)]
    iterations: usize,

    /// Set the length of the analysis window, in seconds.
    ///
    /// Range: 0.001 to 1.
    #[arg(long, value_name = "S", help_heading = "Model", default_value_t = TrainingSettings::default().window_seconds, allow_negative_numbers = true)]
    window: f64,

    /// Extend this dictionary above its band.
    ///
    /// Trains the high-band extension of its spectra on full-band speech, and writes the dictionary with it. Excludes
    /// --rate, --rank, --alpha and --window.
    #[arg(long = "continue", help_heading = "Model", value_name = "MODEL", conflicts_with_all = ["rate", "rank", "alpha", "window"])]
    continued: Option<PathBuf>,

    /// Write the dictionary, in the safetensors format.
    #[arg(short, long, value_name = "FILE", help_heading = "Input and output")]
    output: PathBuf,

    /// Seed the random numbers.
    ///
    /// The same seed gives the same file.
    #[arg(long, value_name = "N", help_heading = "Model", default_value_t = 0, allow_negative_numbers = true, value_parser = alphamf::parse_seed)]
    seed: u64,

    /// Stop at the first invalid or damaged recording.
    ///
    /// By default invalid recordings are reported and left out, and the exit code is 3.
    #[arg(long, help_heading = "Input and output")]
    strict: bool,

    /// Overwrite an existing output.
    #[arg(long, help_heading = "Input and output")]
    force: bool,
}

/// Trains a dictionary, or the high-band extension of one.
pub fn run(arguments: Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    let start = Instant::now();
    let mut speech = arguments.speech()?;
    let (dictionary, what, seconds) = match &arguments.continued {
        Some(model) => train_extension(&arguments, model, &mut speech, common)?,
        None => train_dictionary(&arguments, &mut speech, common)?,
    };
    let sentence = format!(
        "{what} from {seconds:.0} s of speech in {}, in {:.1} s",
        files(speech.files.len() - speech.bad),
        start.elapsed().as_secs_f64()
    );
    arguments.finish(&dictionary.to_bytes()?, &speech, &sentence, common)
}

/// The recordings of a folder.
struct Speech {
    folder: PathBuf,
    files: Vec<PathBuf>,
    left_out: Vec<LeftOut>,
    /// Number of invalid files.
    bad: usize,
}

impl Arguments {
    /// Lists the recordings to train on; checks first that the output may be written and is neither one of them nor the
    /// model.
    fn speech(&self) -> anyhow::Result<Speech> {
        let folder = self.folder.clone();
        if folder.exists() && !folder.is_dir() {
            return Err(anyhow!("expected a folder of clean speech").context(Failure::Unusable(folder)));
        }
        let (files, left_out) = audio_files_below(&folder, &[])?;
        check_output(&self.output)?;
        let mut claims = Claims::default();
        files
            .iter()
            .map(PathBuf::as_path)
            .chain(self.continued.as_deref())
            .for_each(|input| claims.read(input));
        claims.write(&self.output)?;
        check_absent(&self.output, self.force, "")?;
        Ok(Speech { folder, files, left_out, bad: 0 })
    }

    /// Writes the dictionary. Reports the files left out, and `sentence`, a description of the training.
    fn finish(
        &self,
        bytes: &[u8],
        speech: &Speech,
        sentence: &str,
        common: &Common,
    ) -> anyhow::Result<ExitCode> {
        write_whole(&self.output, bytes, self.force)?;
        say_left_out(&speech.left_out, common.quiet);
        if !common.quiet {
            say(&format!("{}: {sentence}", self.output.display()));
        }
        Ok(if speech.bad > 0 { INPUT } else { left_out_code(&speech.left_out) }.into())
    }
}

impl Speech {
    /// Passes the recordings to `add` one by one. Invalid ones are reported and counted; if `strict`, the first one is
    /// an error.
    fn read_each<E>(
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
            check_interrupt()?;
        }
        if self.bad == self.files.len() {
            let reason = anyhow!("no valid recording in it");
            return Err(reason.context(Failure::Unusable(self.folder.clone())));
        }
        Ok(())
    }
}

/// Converts an error of the settings to one that names the option.
fn by_option(error: TrainingError) -> anyhow::Error {
    let TrainingError::Settings(SettingsError { name, value, expected }) = error else { return error.into() };
    let option = match name {
        "sample_rate" => "rate",
        "window_seconds" => "window",
        name => name,
    };
    usage(format!("--{option} is {value}: expected {expected}"))
}

/// A dictionary, its description, and the seconds of speech that it was trained on.
type Trained = (Dictionary, String, f64);

fn train_extension(
    arguments: &Arguments,
    path: &Path,
    speech: &mut Speech,
    common: &Common,
) -> anyhow::Result<Trained> {
    let corpus = FullBandCorpus::new(model::dictionary(Some(path))?, arguments.iterations);
    let mut corpus = corpus.map_err(by_option)?;
    speech.read_each(arguments.strict, |speech| corpus.add(speech))?;
    let seconds = corpus.seconds();
    let progress = Progress::new("training", common.quiet);
    let dictionary = corpus.train_with_progress(&mut |fraction: f64| progress.update(fraction))?;
    // Upper edge of the extension, which follows the band of the speech, in steps of 500 Hz.
    let header = dictionary.header();
    let steps = header.continuation.as_ref().map_or(0, |continuation| continuation.knots.saturating_sub(1));
    let kilohertz = f64::from(header.sample_rate) / 2_000.0 + 0.5 * steps as f64;
    Ok((dictionary, format!("{} with its spectra extended to {kilohertz} kHz,", path.display()), seconds))
}

fn train_dictionary(arguments: &Arguments, speech: &mut Speech, common: &Common) -> anyhow::Result<Trained> {
    let &Arguments { rate, rank, alpha, iterations, window, seed, strict, .. } = arguments;
    let settings = TrainingSettings {
        rank,
        alpha,
        iterations,
        seed,
        window_seconds: window,
        ..TrainingSettings::default()
    };
    // Settings are checked before hours of speech are read.
    Corpus::new(rate.unwrap_or(16_000), settings.clone()).map_err(by_option)?;
    let rate = match rate {
        Some(rate) => rate,
        None => {
            let mut lowest = u32::MAX;
            for file in &speech.files {
                let path = file.clone();
                match interruptible(move || audio::Reader::open(path).map(|reader| reader.sample_rate()))? {
                    Ok(rate) => lowest = lowest.min(rate),
                    Err(error) if strict => return Err(error.into()),
                    // The error is reported when the file is read.
                    Err(_) => {}
                }
            }
            // Without any readable file, the rate does not matter: reading them reports it.
            if lowest == u32::MAX { 16_000 } else { lowest }
        }
    };
    let mut corpus = Corpus::new(rate, settings)?;
    speech.read_each(strict, |speech| corpus.add(speech))?;
    let seconds = corpus.seconds();
    let progress = Progress::new("training", common.quiet);
    let dictionary = corpus.train_with_progress(&mut |fraction: f64| progress.update(fraction))?;
    let spectra = if rank == 1 { "spectrum" } else { "spectra" };
    let what = format!("{rank} {spectra} of {} bins", dictionary.header().bins());
    Ok((dictionary, what, seconds))
}
