//! `denoise eval`: scores a denoiser on a corpus.

mod checks;
mod tables;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use alphamf::Cancelled;
use alphamf::signal::Signal;
use alphamf_eval::plot;
use alphamf_eval::report::{self, Example, Examples};
use alphamf_eval::{
    Abscissa, Evaluation, EvaluationError, Failure, FileResult, Journal, Options, Pair, Pairing, Protocol,
    Provenance, Study, evaluate, pair_folders, read_manifest,
};
use alphamf_files as audio;
use alphamf_files::FolderContents;
use anyhow::Context;
use checks::{check_apart, check_figure, check_named, check_options, check_save, check_source};
use rayon::prelude::*;
use tables::{comparisons, tables};

use super::common::Common;
use super::failure::{INPUT, usage};
use super::inputs::{LeftOut, contents_below, say_left_out};
use super::interrupts::{check_interrupt, interruptible};
use super::live::Live;
use super::model::Model;
use super::progress::Progress;
use super::shard::Shard;
use super::streams::{check_output, is_standard, write_whole};
use super::systems::System;
use super::terminal::{files, first_error, print, printable, say, write_error};

/// Arguments of `denoise eval`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Input and output")]
// Scores are computed before any rounding.
#[command(mut_arg("no_dither", |argument| argument.hide(true)))]
#[command(after_long_help = "\
A recording is paired with the clean file of the same name or, as in NOIZEUS, of the name before its
first '_': sp21_babble_sn5.wav with sp21.wav, in condition babble_sn5. The recording and the
denoised signal are scored against the clean file by SDR (BSS-eval v3, 512 taps), SI-SDR, SNR,
segmental SNR, STOI, ESTOI and PESQ.

Examples:
  denoise eval --clean clean --noisy noisy --report report.html
  denoise eval --clean clean --enhanced out --csv scores.csv
  denoise eval --protocol eval/noizeus-5db.toml --data noizeus --resume run.jsonl --json result.json

Exit codes are those of denoise; 3 also if a file could not be scored.")]
pub struct Arguments {
    /// Read clean speech from this folder.
    ///
    /// Needs --noisy or --enhanced.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["manifest", "protocol"])]
    clean: Option<PathBuf>,

    /// Read the recordings to denoise from this folder.
    #[arg(long, value_name = "DIR", requires = "clean", conflicts_with_all = ["manifest", "protocol"])]
    noisy: Option<PathBuf>,

    /// Score files that were denoised elsewhere.
    ///
    /// They are scored as they are: options of the denoiser are refused.
    #[arg(long, value_name = "DIR", requires = "clean", conflicts_with_all = ["manifest", "protocol"])]
    enhanced: Option<PathBuf>,

    /// Read pairs of files from a table (CSV).
    ///
    /// Columns: noisy, clean and, optionally, condition and enhanced.
    #[arg(long, value_name = "CSV", conflicts_with = "protocol")]
    manifest: Option<PathBuf>,

    /// Run an experiment: corpus, training and settings.
    ///
    /// Needs --data. Excludes the options of the denoiser.
    #[arg(long, value_name = "TOML", requires = "data", conflicts_with_all = ["Model", "Options"])]
    protocol: Option<PathBuf>,

    /// Read the corpus of --protocol from this folder.
    #[arg(long, value_name = "DIR", requires = "protocol", conflicts_with_all = ["clean", "manifest"])]
    data: Option<PathBuf>,

    /// Score part K of N.
    ///
    /// Files are assigned by a hash of their names; part sizes vary.
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,

    /// Keep the denoised audio in this folder.
    ///
    /// It may not lie in or below a folder of the corpus.
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,

    /// Record finished files, and continue an interrupted run.
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,

    /// Overwrite existing outputs.
    ///
    /// The file of --resume is continued in any case, and so is the audio of --save with it, in place of that of another
    /// run.
    #[arg(long)]
    force: bool,

    /// Count damaged or incomplete files as failures.
    #[arg(long)]
    strict: bool,

    /// Remove lower frequencies before scoring, in Hz.
    ///
    /// Range: 0 to 20000. A protocol sets its own.
    #[arg(long, value_name = "HZ", default_value_t = 0.0, allow_negative_numbers = true, value_parser = parse_frequency)]
    #[arg(conflicts_with = "protocol")]
    high_pass: f64,

    #[command(flatten)]
    live: Live,

    /// Write all results (JSON).
    #[arg(long, value_name = "FILE", help_heading = "Reports")]
    json: Option<PathBuf>,

    /// Write the scores of each file (CSV).
    #[arg(long, value_name = "FILE", help_heading = "Reports")]
    csv: Option<PathBuf>,

    /// Write a page with tables, charts, spectrograms and audio.
    #[arg(long, value_name = "HTML", help_heading = "Reports")]
    report: Option<PathBuf>,

    /// Plot the convergence of the protocol's samplers (SVG).
    ///
    /// Against time, and in NAME.iterations.svg against iterations. Needs --protocol, with trace_every.
    #[arg(long, value_name = "SVG", requires = "protocol", help_heading = "Reports")]
    figure: Option<PathBuf>,

    #[command(flatten)]
    model: Model,
}

/// Files shown in the report, of the best and of the worst.
const EXAMPLES: usize = 3;
/// Failures named on the terminal.
const NAMED: usize = 20;

/// Scores a corpus.
pub fn run(arguments: &Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    let Arguments { live, shard, .. } = arguments;
    live.check()?;
    check_named(arguments)?;
    for output in arguments.reports().chain(arguments.resume.as_deref()) {
        check_output(output)?;
    }
    let protocol = match arguments.protocol.clone() {
        Some(path) => Some(interruptible(move || Protocol::read(&path))??),
        None => None,
    };
    check_source(arguments)?;
    check_figure(arguments, protocol.as_ref())?;
    let mut pairing = pairs(arguments, protocol.as_ref(), common.quiet)?;
    // Determined from the whole corpus, so that the journal of an empty part belongs to the same run.
    let is_enhanced =
        arguments.enhanced.is_some() || pairing.pairs.iter().all(|pair| pair.enhanced.is_some());
    if let Some(shard) = shard {
        pairing.pairs.retain(|pair| shard.holds(&pair.name));
        pairing.unpaired.retain(|unpaired| shard.holds(&unpaired.name));
    }
    check_options(arguments, protocol.is_none() && is_enhanced)?;
    check_save(arguments, protocol.as_ref())?;
    check_apart(arguments, protocol.as_ref(), &pairing)?;
    let systems = match (&protocol, &arguments.data) {
        (Some(protocol), Some(data)) => System::of_protocol(protocol, data, live, arguments.strict, common)?,
        _ if is_enhanced => vec![System::enhanced()],
        _ => vec![System::of_arguments(&arguments.model, live)?],
    };
    let corpus = Scored { pairing, protocol, systems };
    let (mut evaluations, mut options, mut shown) = (Vec::new(), Vec::new(), Ok(()));
    for system in &corpus.systems {
        let (evaluation, scored_with) = corpus.score(system, arguments, common)?;
        shown = shown.and(corpus.show(&evaluation, arguments, common));
        evaluations.push(evaluation);
        options.push(scored_with);
    }
    let study = Study::new(evaluations);
    if !common.quiet {
        shown = shown.and(show(&comparisons(&study), arguments));
    }
    first_error([shown].into_iter().chain(corpus.write(&study, &options, arguments)))?;
    if study.evaluations.iter().all(|evaluation| evaluation.files.is_empty()) {
        say("denoise: no file could be scored");
    }
    let failed = study.evaluations.iter().any(|evaluation| !evaluation.failures.is_empty());
    // Files that were not scored are invalid input.
    Ok(if failed { ExitCode::from(INPUT) } else { ExitCode::SUCCESS })
}

/// Destinations of a system's results while it is scored.
struct Outputs {
    /// The folder of the denoised audio.
    save: Option<PathBuf>,
    journal: Option<PathBuf>,
    /// Whether files in the folder are replaced: with `--force`, or if an interrupted run may have saved one that its
    /// journal lacks.
    replace: bool,
}

/// A corpus, and the systems that are scored on it.
struct Scored {
    pairing: Pairing,
    protocol: Option<Protocol>,
    systems: Vec<System>,
}

impl Scored {
    /// Scores a system.
    fn score(
        &self,
        system: &System,
        arguments: &Arguments,
        common: &Common,
    ) -> anyhow::Result<(Evaluation, Options)> {
        let protocol = self.protocol.as_ref();
        let high_pass_hz = protocol.map_or(arguments.high_pass, |protocol| protocol.corpus.high_pass_hz);
        let provenance = Provenance {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            system: system.name.clone(),
            protocol: protocol.map(|protocol| protocol.name.clone()),
            settings: system.settings.clone(),
            seed: system.seed,
            dictionary_sha256: system.dictionary_sha256.clone(),
            high_pass_hz,
        };
        let name = (self.systems.len() > 1).then_some(system.name.as_str());
        let Outputs { save, journal, replace } = arguments.outputs(name);
        let options = Options { high_pass_hz, save, replace, strict: arguments.strict };
        let journal = journal.map(|path| Journal::open(&path, &provenance).map_err(with_remedy));
        let (files, mut failures) =
            score_all(&self.pairing.pairs, &options, journal.transpose()?.as_ref(), system, common)?;
        failures.extend(self.pairing.unpaired.iter().cloned());
        Ok((Evaluation::new(provenance, files, failures), options))
    }

    /// Reports the scores of a system, and the files without any. Fails if the table cannot be printed.
    fn show(&self, evaluation: &Evaluation, arguments: &Arguments, common: &Common) -> anyhow::Result<()> {
        let mut shown = Ok(());
        if !common.quiet {
            let system = &evaluation.provenance.system;
            let name = if self.systems.len() > 1 { format!("{system}\n") } else { String::new() };
            shown = show(&format!("{name}{}", tables(&evaluation.summary)), arguments);
        }
        report_failures(&evaluation.failures);
        if !common.quiet {
            report_losses(&evaluation.files);
        }
        shown
    }

    /// Writes the results; `options` are those that each system was scored with.
    fn write(&self, study: &Study, options: &[Options], arguments: &Arguments) -> [anyhow::Result<()>; 5] {
        let curves =
            |against, title| plot::curves("Convergence", [title, "SDR in dB"], &study.curves(against));
        let write =
            |path: Option<&Path>, content: &dyn Fn() -> anyhow::Result<String>| -> anyhow::Result<()> {
                let Some(path) = path else { return Ok(()) };
                write_whole(
                    path,
                    content().with_context(|| path.display().to_string())?.as_bytes(),
                    arguments.force,
                )
            };
        let page = || {
            let examples = choose_examples(&self.pairing.pairs, study, options, &self.systems)?;
            Ok(report::render(study, &examples)?)
        };
        [
            write(arguments.json.as_deref(), &|| Ok(study.to_json())),
            write(arguments.csv.as_deref(), &|| Ok(study.to_csv())),
            write(arguments.report.as_deref(), &page),
            write(arguments.figure.as_deref(), &|| {
                Ok(curves(Abscissa::Time, "seconds of processing per second of audio")?)
            }),
            write(arguments.figure_by_iterations().as_deref(), &|| {
                Ok(curves(Abscissa::Iterations, "iterations")?)
            }),
        ]
    }
}

/// Adds the remedy to the error of a journal of other options.
fn with_remedy(error: EvaluationError) -> EvaluationError {
    match error {
        EvaluationError::AnotherRun { path, difference } => {
            let difference = difference + ": give the same options, or another --resume file";
            EvaluationError::AnotherRun { path, difference }
        }
        other => other,
    }
}

impl Arguments {
    /// Files of results.
    fn reports(&self) -> impl Iterator<Item = &Path> {
        [&self.json, &self.csv, &self.report, &self.figure].into_iter().flatten().map(PathBuf::as_path)
    }

    /// The outputs of a system, which is named if there are several.
    fn outputs(&self, system: Option<&str>) -> Outputs {
        let own = |path: &Option<PathBuf>, named: fn(&Path, &str) -> PathBuf| {
            path.as_ref().map(|path| system.map_or_else(|| path.clone(), |system| named(path, system)))
        };
        let (save, journal) =
            (own(&self.save, |folder, system| folder.join(system)), own(&self.resume, beside));
        let replace = self.force || journal.as_ref().is_some_and(|path| path.exists());
        Outputs { save, journal, replace }
    }

    /// The second file of --figure.
    fn figure_by_iterations(&self) -> Option<PathBuf> {
        self.figure.as_deref().map(|path| beside(path, "iterations"))
    }
}

fn pairs(arguments: &Arguments, protocol: Option<&Protocol>, quiet: bool) -> anyhow::Result<Pairing> {
    Ok(match (protocol, &arguments.data, &arguments.manifest, &arguments.clean) {
        (Some(protocol), Some(data), ..) => protocol.pairs(data)?,
        (_, _, Some(manifest), _) => {
            let manifest = manifest.clone();
            interruptible(move || read_manifest(&manifest))??
        }
        (.., Some(clean)) => {
            let (noisy, enhanced) = (arguments.noisy.as_deref(), arguments.enhanced.as_deref());
            pair_folders(clean, noisy, enhanced, |folder| {
                // The user named this folder for its results.
                if enhanced == Some(folder) {
                    return FolderContents::scan(folder, &[]);
                }
                let (mut contents, results) = contents_below(folder, &[])?;
                contents.others.extend(results.iter().cloned());
                say_left_out(&results.into_iter().map(LeftOut::results).collect::<Vec<_>>(), quiet);
                Ok(contents)
            })?
        }
        _ => return Err(usage(NOTHING)),
    })
}

/// Error for arguments without recordings.
const NOTHING: &str = "nothing to score: expected --clean with --noisy or --enhanced, --manifest, or --protocol \
                       with --data";

/// Prints lines of results: on standard error if a report goes to standard output.
fn show(text: &str, arguments: &Arguments) -> anyhow::Result<()> {
    let lines = text.split('\n').map(printable).collect::<Vec<_>>().join("\n");
    if lines.is_empty() {
        return Ok(());
    }
    if arguments.reports().any(is_standard) {
        write_error(&lines);
        return Ok(());
    }
    print(lines.as_bytes())
}

fn score_all(
    pairs: &[Pair],
    options: &Options,
    journal: Option<&Journal>,
    system: &System,
    common: &Common,
) -> anyhow::Result<(Vec<FileResult>, Vec<Failure>)> {
    let progress = Progress::new(&system.name, common.quiet);
    let done = AtomicUsize::new(0);
    let finished = |_: Result<&FileResult, &Failure>| {
        let done = 1 + done.fetch_add(1, Ordering::Relaxed);
        progress.update(done as f64 / pairs.len() as f64)
    };
    Ok(evaluate(pairs, options, journal, &*system.denoise, finished)?)
}

/// Collects the audio for the report, of the files on which the first system is best and worst. Audio that was not
/// saved is denoised again, with equal output by its seed. Files without audio are left out.
fn choose_examples(
    pairs: &[Pair],
    study: &Study,
    options: &[Options],
    systems: &[System],
) -> Result<Examples, Cancelled> {
    let Some(first) = study.evaluations.first() else { return Ok(Examples::default()) };
    let (best, worst) = report::best_and_worst(&first.files, EXAMPLES);
    let example = |index: usize| -> Option<Example> {
        let pair = pairs.iter().find(|pair| pair.name == first.files[index].name)?;
        let clean = audio::read(&pair.clean).ok()?;
        let noisy = pair.noisy.as_ref().and_then(|path| audio::read(path).ok());
        let denoised = |(system, options): (&System, &Options)| -> Option<Signal> {
            let path = pair.enhanced.clone().or_else(|| options.saved(pair));
            let again = || (system.denoise)(noisy.as_ref()?, &mut |_, _| ()).ok();
            path.and_then(|path| audio::read(path).ok()).or_else(again)
        };
        let denoised: Vec<_> = systems.iter().zip(options).map(denoised).collect();
        let name = pair.name.clone();
        denoised.iter().any(Option::is_some).then_some(Example { name, clean, noisy, denoised })
    };
    let examples = Examples {
        best: best.into_par_iter().filter_map(example).collect(),
        worst: worst.into_par_iter().filter_map(example).collect(),
    };
    // After an interrupt, the examples are incomplete.
    check_interrupt()?;
    Ok(examples)
}

/// Inserts a name before the extension: `run.jsonl` and `PSGLD` give `run.PSGLD.jsonl`.
fn beside(path: &Path, name: &str) -> PathBuf {
    let mut ending = OsString::from(name);
    if let Some(extension) = path.extension() {
        ending.push(".");
        ending.push(extension);
    }
    path.with_extension(ending)
}

fn report_failures(failures: &[Failure]) {
    if failures.is_empty() {
        return;
    }
    let lines = failures.iter().map(|failure| format!("{}: {}", failure.name, failure.reason));
    list(&format!("{} could not be scored:", files(failures.len())), lines);
}

/// Reports files that were scored although they are damaged or incomplete; each clean file once.
fn report_losses(results: &[FileResult]) {
    let lines: BTreeSet<&String> = results.iter().flat_map(|result| &result.losses).collect();
    if !lines.is_empty() {
        let scored = "scored without their damaged or missing parts (--strict refuses them):";
        list(&format!("{} {scored}", files(lines.len())), lines.into_iter().cloned());
    }
}

/// Reports the first lines below a title, and the number of others.
fn list(title: &str, lines: impl ExactSizeIterator<Item = String>) {
    say(title);
    let more = lines.len().saturating_sub(NAMED);
    lines.take(NAMED).for_each(|line| say(&format!("  {line}")));
    if more > 0 {
        say(&format!("  and {more} more"));
    }
}

fn parse_frequency(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(hertz) if (0.0..=20_000.0).contains(&hertz) => Ok(hertz),
        _ => Err("expected a frequency of 0 to 20000 Hz".to_owned()),
    }
}
