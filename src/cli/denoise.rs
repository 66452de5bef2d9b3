//! `denoise IN OUT` and `denoise IN... -o DIR`.

use super::folder::{self, Task};
use super::model::Model;
use super::picture;
use super::recording::{Found, Processing, Recording, is_standard, name};
use super::stats::{Entry, Stats};
use super::terminal::{Progress, check_output, usage};
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

    /// Make results anew that are already in the folder of -o. A single output is always made anew.
    #[arg(long)]
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
    for path in [&arguments.stats, &arguments.plot].into_iter().flatten() {
        check_output(path)?;
    }
    arguments.model.settings().validate()?;
    let processing = &arguments.processing;
    let (denoiser, entries, code);
    if let Some(folder) = &arguments.output_dir {
        let plan = folder::plan(&arguments.files, folder, processing, arguments.force)?;
        if let Some(stats) = &arguments.stats {
            let inputs = plan.iter().map(Task::input).chain(arguments.model.files());
            check_apart(stats, inputs, plan.iter().map(Task::output))?;
        }
        denoiser = arguments.denoiser()?;
        (entries, code) = folder::run(plan, &denoiser, processing, common)?;
    } else {
        let (input, output) = arguments.check()?;
        denoiser = arguments.denoiser()?;
        (entries, code) = (vec![one(arguments, input, output, &denoiser, common)?], 0);
    }
    if let Some(path) = &arguments.stats {
        Stats::new(&denoiser, processing)?.write(path, &entries)?;
    }
    Ok(code.into())
}

/// Denoises one recording.
fn one(
    arguments: &Arguments,
    input: &Path,
    output: &Path,
    denoiser: &Denoiser,
    common: &Common,
) -> anyhow::Result<Entry> {
    let recording = Recording {
        denoiser,
        processing: &arguments.processing,
        input,
        output,
        residual: arguments.residual.as_deref(),
        draw: arguments.plot.is_some(),
    };
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

impl Arguments {
    fn denoiser(&self) -> anyhow::Result<Denoiser> {
        let denoiser = self.model.denoiser()?;
        tracing::info!("dictionary: {}", describe(&denoiser));
        Ok(denoiser)
    }

    /// The one input and output; refuses what cannot come to a good end, before any work.
    fn check(&self) -> anyhow::Result<(&Path, &Path)> {
        let [input, output] = self.files.as_slice() else {
            return Err(usage(match self.files.as_slice() {
                [_] => "an output is needed: a file, - for standard output, or -o DIR",
                _ => "more than one input and one output: give a folder for the results with -o DIR",
            }));
        };
        if !is_standard(input) && input.is_dir() {
            return Err(usage(format!("{} is a folder: say where to with -o DIR", input.display())));
        }
        if !is_standard(output) && output.is_dir() {
            return Err(usage(format!("{0} is a folder: say -o {0}", output.display())));
        }
        if let Some(plot) = self.plot.as_deref().filter(|plot| !picture::is_known(plot)) {
            return Err(usage(format!("{}: expected the name of an SVG or PNG file", plot.display())));
        }
        let sounds = [Some(output), self.residual.as_ref()];
        if sounds.into_iter().flatten().any(|path| is_standard(path)) && std::io::stdout().is_terminal() {
            return Err(usage("standard output is a terminal: redirect it, or name a file"));
        }
        for path in sounds.into_iter().flatten() {
            self.processing.check_name(path)?;
        }
        let pictures = [self.plot.as_ref(), self.stats.as_ref()];
        let outputs: Vec<&Path> =
            sounds.into_iter().chain(pictures).flatten().map(PathBuf::as_path).collect();
        for (index, path) in outputs.iter().enumerate() {
            let inputs = [input.as_path()].into_iter().chain(self.model.files());
            check_apart(path, inputs, outputs[..index].iter().copied())?;
        }
        Ok((input, output))
    }
}

/// Refuses an output that is one of the inputs or of the other outputs.
fn check_apart<'a>(
    path: &Path,
    inputs: impl Iterator<Item = &'a Path>,
    mut others: impl Iterator<Item = &'a Path>,
) -> anyhow::Result<()> {
    if !is_standard(path) {
        for input in inputs {
            audio::check_distinct(input, path)?;
        }
    }
    if others.any(|other| other == path || audio::check_distinct(other, path).is_err()) {
        return Err(usage(format!("{} would be written twice", path.display())));
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
