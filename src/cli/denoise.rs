//! `denoise IN OUT` and `denoise IN... -o DIR`.

use super::folder;
use super::model::Model;
use super::picture;
use super::recording::{Found, Processing, Recording, is_standard, name};
use super::stats::{Entry, Stats};
use super::terminal::{Failure, Progress, check_output};
use super::{Common, describe};
use alphamf::audio;
use alphamf::inference::Denoiser;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of the main command.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// A recording and where the voice goes, `-` for standard input or output; with -o, recordings and
    /// folders of them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Put the results into this folder, under the names of the inputs.
    #[arg(short, long, value_name = "DIR")]
    output_dir: Option<PathBuf>,

    /// Make results anew that are already in the folder.
    #[arg(long, requires = "output_dir")]
    force: bool,

    /// Write what was taken out: the recording minus the result.
    #[arg(long, value_name = "FILE", conflicts_with = "output_dir")]
    residual: Option<PathBuf>,

    /// Draw the spectrogram before and after, and how sure the gain is of itself: the standard deviation over
    /// its posterior draws. SVG or PNG, by the name.
    #[arg(long, value_name = "FILE", conflicts_with = "output_dir")]
    plot: Option<PathBuf>,

    /// Write all that was found as JSON, to standard output if `-`.
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,

    #[command(flatten)]
    processing: Processing,

    #[command(flatten)]
    model: Model,
}

/// Denoises one recording or several.
pub fn run(arguments: &Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    let denoiser = arguments.model.denoiser()?;
    tracing::info!("dictionary: {}", describe(&denoiser));
    for path in [&arguments.stats, &arguments.plot].into_iter().flatten() {
        check_output(path)?;
    }
    let stats = Stats::new(&denoiser, &arguments.processing)?;
    let (entries, code) = match &arguments.output_dir {
        Some(folder) => {
            let plan = folder::plan(&arguments.files, folder, &arguments.processing, arguments.force)?;
            folder::run(plan, &denoiser, &arguments.processing, common)?
        }
        None => (vec![one(arguments, &denoiser, common)?], 0),
    };
    if let Some(path) = &arguments.stats {
        stats.write(path, &entries)?;
    }
    Ok(code.into())
}

/// Denoises one recording.
fn one(arguments: &Arguments, denoiser: &Denoiser, common: &Common) -> anyhow::Result<Entry> {
    let [input, output] = arguments.files.as_slice() else {
        return Err(usage(match arguments.files.as_slice() {
            [_] => "an output is needed: a file, - for standard output, or -o DIR",
            _ => "more than one input and one output: give a folder for the results with -o DIR",
        }));
    };
    let recording = Recording {
        denoiser,
        processing: &arguments.processing,
        input,
        output,
        residual: arguments.residual.as_deref(),
        draw: arguments.plot.is_some(),
    };
    check(&recording, [arguments.plot.as_deref(), arguments.stats.as_deref()])?;
    let progress = Progress::new("denoising", common.quiet);
    let found = recording.denoise(&mut |seconds, duration| progress.update_seconds(seconds, duration))?;
    drop(progress);
    if let (Some(path), Some(figure)) = (&arguments.plot, &found.figure) {
        if denoiser.settings().iterations == 0 {
            tracing::warn!("nothing is drawn from the posterior at this quality: no deviation to plot");
        }
        picture::write(figure, path)?;
    }
    if !common.quiet {
        eprintln!("{}", sentence(name(output, "standard output"), &found));
    }
    Ok(Entry::denoised(input, output, found))
}

fn usage(what: &str) -> anyhow::Error {
    Failure::Usage(what.to_owned()).into()
}

/// Refuses what cannot come to a good end, before any work.
fn check(recording: &Recording, others: [Option<&Path>; 2]) -> anyhow::Result<()> {
    let Recording { input, output, residual, .. } = recording;
    if !is_standard(input) && input.is_dir() {
        return Err(usage(&format!("{} is a folder: say where to with -o DIR", input.display())));
    }
    if !is_standard(output) && output.is_dir() {
        return Err(usage(&format!("{0} is a folder: say -o {0}", output.display())));
    }
    if let Some(plot) = others[0].filter(|plot| !picture::is_known(plot)) {
        return Err(usage(&format!("{}: expected the name of an SVG or PNG file", plot.display())));
    }
    let outputs: Vec<&Path> = [Some(*output), *residual].into_iter().chain(others).flatten().collect();
    let sounds = [Some(*output), *residual];
    if sounds.into_iter().flatten().any(is_standard) && std::io::stdout().is_terminal() {
        return Err(usage("standard output is a terminal: redirect it, or name a file"));
    }
    for (index, path) in outputs.iter().enumerate() {
        if !is_standard(path) {
            audio::check_distinct(input, path)?;
        }
        if outputs[..index].iter().any(|other| other == path || audio::check_distinct(other, path).is_err()) {
            return Err(usage(&format!("{} would be written twice", path.display())));
        }
    }
    Ok(())
}

/// What was found, in a line.
fn sentence(output: &Path, found: &Found) -> String {
    let (duration, taken) = (found.duration_seconds, found.processing_seconds);
    let mut line = format!("{}: {duration:.2} s of audio in {taken:.2} s", output.display());
    match found.estimated_snr_db {
        Some(level) => line += &format!(", estimated SNR before {level:.1} dB"),
        None if found.attenuation_db.is_none() => line += ", digital silence",
        None => {}
    }
    if let Some(attenuation) = found.attenuation_db {
        line += &format!(", mean attenuation {attenuation:.1} dB");
    }
    for note in found.notes() {
        line += "; ";
        line += &note;
    }
    line
}
