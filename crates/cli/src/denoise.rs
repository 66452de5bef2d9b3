//! `denoise IN OUT` and `denoise IN... -o DIR`.

use super::claims::{Claims, check_absent};
use super::command_line::meant_command;
use super::common::Common;
use super::failure::{Failure, usage};
use super::ffmpeg::Kind;
use super::folder::{self, Batch, Folders};
use super::inputs::{left_out_code, plain, say_left_out};
use super::manifest::{Manifest, ResultManifest};
use super::model::Model;
use super::picture;
use super::processing::Processing;
use super::progress::Progress;
use super::recording::{Found, Recording, SpeechFormat};
use super::reports::Reports;
use super::shard::Shard;
use super::stats::{Earlier, Entry, Run};
use super::streams::{check_output, check_possible, is_standard, name};
use super::terminal::{first_error, say};
use alphamf::denoiser::Denoiser;
use anyhow::Context;
use clap::ValueEnum;
use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of the main command.
#[derive(Debug, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Input and output")]
pub struct Arguments {
    /// Read IN and write OUT; with -o, read several.
    ///
    /// Files and, with -o, folders. - is standard input or output.
    #[arg(required_unless_present = "manifest", value_name = "FILE", help_heading = "Arguments")]
    files: Vec<PathBuf>,

    /// Write results to this folder, under the input names.
    ///
    /// Up-to-date results are skipped.
    #[arg(short, long, value_name = "DIR")]
    output_dir: Option<PathBuf>,

    /// Overwrite existing outputs.
    ///
    /// With -o, up-to-date results are recomputed, too.
    #[arg(long)]
    force: bool,

    /// Read input names from a file, one per line.
    ///
    /// Or a manifest of NeMo (JSON lines with audio_filepath) or of lhotse (cuts.jsonl.gz), which the output folder then
    /// holds with the results in place of the inputs. Needs -o. Adds to the inputs that are named. Names may come from
    /// standard input: -.
    #[arg(long, value_name = "LIST", requires = "output_dir", hide_short_help = true)]
    manifest: Option<PathBuf>,

    /// Process part K of N.
    ///
    /// Needs -o. Files are assigned by a hash of their names: machines need no coordination, and part sizes vary.
    #[arg(long, value_name = "K/N", requires = "output_dir", hide_short_help = true)]
    shard: Option<Shard>,

    #[command(flatten)]
    processing: Processing,

    /// Write the removed signal: input minus output.
    ///
    /// Output and residual of one depth add up to the input, as their dither is opposite. With -o, a folder. Excludes --live.
    #[arg(long, value_name = "FILE", conflicts_with = "live", help_heading = "Reports")]
    residual: Option<PathBuf>,

    /// Plot the recording before and after (SVG or PNG).
    ///
    /// Waveforms and spectrograms before, after and of the removed signal; speech level with its 90 % interval, and SNR,
    /// over time. From 20 posterior draws also the standard deviation of the gain. With -o, a folder: an SVG file for each
    /// recording and a page of all, index.html. Excludes --live.
    #[arg(long, value_name = "FILE", conflicts_with = "live", help_heading = "Reports")]
    plot: Option<PathBuf>,

    /// Set the frequency scale of --plot.
    ///
    /// Default: linear.
    #[arg(long, value_name = "SCALE", help_heading = "Reports", hide_short_help = true)]
    plot_scale: Option<picture::PlotScale>,

    /// Write speech levels and their intervals (CSV).
    ///
    /// In third octaves and slots of 100 ms, with nominal 90 % intervals. - is standard output. With -o, a folder.
    /// Excludes --live.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "live",
        help_heading = "Reports",
        hide_short_help = true
    )]
    levels: Option<PathBuf>,

    /// Write where speech is: probability and segments.
    ///
    /// Probability per 10 ms; segments with start, end, level and SNR. CSV, JSON, RTTM or Praat TextGrid, by the ending:
    /// .csv, .json, .rttm or .TextGrid. - is standard output. With -o, a folder, of JSON or what --speech-format sets.
    /// Excludes --live.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "live",
        help_heading = "Reports",
        hide_short_help = true
    )]
    speech: Option<PathBuf>,

    /// Set the format of --speech.
    ///
    /// Default: by the ending; json for a folder and standard output. Excludes --live.
    #[arg(
        long,
        value_name = "FORMAT",
        requires = "speech",
        conflicts_with = "live",
        help_heading = "Reports",
        hide_short_help = true
    )]
    speech_format: Option<SpeechFormat>,

    /// Write statistics, options and settings (JSON).
    ///
    /// - is standard output. With -o and a folder, such as stats/, a file for each recording.
    #[arg(long, value_name = "FILE", help_heading = "Reports")]
    stats: Option<PathBuf>,

    #[command(flatten)]
    model: Model,
}

/// Denoises one recording or several.
pub fn run(arguments: &Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    arguments.check_command()?;
    arguments.processing.live.check()?;
    if arguments.plot.is_none() && arguments.plot_scale.is_some() {
        return Err(usage("--plot-scale has no effect without --plot: omit it"));
    }
    arguments.model.settings(arguments.processing.live.mode())?;
    let mut claims = Claims::default();
    arguments.model.dictionary_file().iter().for_each(|path| claims.read(path));
    if let Some(results) = &arguments.output_dir {
        return several(arguments, results, claims, common);
    }
    let (input, output) = arguments.check(&mut claims)?;
    let denoiser = arguments.denoiser()?;
    let run = Run::new(&denoiser, &arguments.model, &arguments.processing)?;
    let entry = one(arguments, input, output, &run, common)?;
    if let Some(path) = &arguments.stats {
        run.write(path, &[entry], &[], None, arguments.force)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Denoises several recordings into a folder.
fn several(
    arguments: &Arguments,
    results: &Path,
    mut claims: Claims,
    common: &Common,
) -> anyhow::Result<ExitCode> {
    let (processing, force) = (&arguments.processing, arguments.force);
    arguments.check_results(results)?;
    arguments.check_report_folders()?;
    let folders = arguments.folders(results);
    // A single file for all recordings.
    let stats = arguments.stats.as_deref().filter(|_| folders.reports.stats.is_none());
    // The run creates folders in that of the results.
    let is_made = |folder: &&Path| !folder.exists() && plain(folder).starts_with(plain(results));
    let made = stats.and_then(Path::parent).filter(is_made);
    if let Some(path) = stats {
        if made.is_none() { check_output(path)? } else { check_possible(path)? }
    }
    let manifest = arguments.manifest.as_deref().map(Manifest::read).transpose()?;
    let listed = manifest.as_ref().map(Manifest::recordings).unwrap_or_default();
    arguments.manifest.iter().for_each(|path| claims.read(path));
    let Batch { mut tasks, left_out, record } =
        folder::plan(&arguments.files, listed, folders, processing, &mut claims)?;
    if let Some(shard) = arguments.shard {
        tasks.retain(|task| shard.holds_file(task.name()));
    }
    if let Some(path) = stats {
        claims.write(path)?;
    }
    // Statistics of an earlier run are replaced, as its results are.
    let earlier = stats.filter(|path| !force && path.is_file()).map(Earlier::read).transpose()?;
    if let Some(path) = stats.filter(|_| earlier.is_none()) {
        check_absent(path, force, "")?;
    }
    let denoiser = arguments.denoiser()?;
    let run = Run::new(&denoiser, &arguments.model, processing)?;
    let settings = run.settings_checksum();
    let manifest =
        manifest.as_ref().map(|of| ResultManifest::new(of, arguments.shard, results, settings, force));
    let manifest = manifest.transpose()?.flatten();
    manifest.iter().try_for_each(|manifest| claims.write(&manifest.path()))?;
    let (entries, code) = folder::run(&tasks, &left_out, &run, &record, force, common)?;
    say_left_out(&left_out, common.quiet);
    let write_stats = |path: &Path| {
        made.map_or(Ok(()), fs::create_dir_all).with_context(|| Failure::Output(path.to_owned()))?;
        run.write(path, &entries, &left_out, earlier.as_ref(), force || earlier.is_some())
    };
    let write_page = |plots: &Path| {
        if picture::write_index(plots)?.is_none() {
            let page = plots.join(picture::INDEX);
            say(&format!("denoise: {}: kept, as --plot did not write it", page.display()));
        }
        Ok(())
    };
    let plots = folders.reports.plot.map(|(plots, _)| plots).filter(|plots| plots.is_dir());
    first_error([
        stats.map_or(Ok(()), write_stats),
        manifest.map_or(Ok(()), |manifest| manifest.write(&entries)),
        plots.map_or(Ok(()), write_page),
    ])?;
    Ok(if code == 0 { left_out_code(&left_out) } else { code }.into())
}

/// Whether a path has the extension of an audio or video file.
fn ends_like_sound(path: &Path) -> bool {
    alphamf_files::has_extension(path) || Kind::of(path).is_some()
}

/// Whether a path is a folder or ends like one.
fn is_folder(path: &Path) -> bool {
    !is_standard(path) && path.is_dir() || path.to_string_lossy().ends_with(std::path::is_separator)
}

/// Denoises one recording.
fn one(
    arguments: &Arguments,
    input: &Path,
    output: &Path,
    run: &Run,
    common: &Common,
) -> anyhow::Result<Entry> {
    let recording = Recording {
        denoiser: run.denoiser(),
        session: run.session(),
        processing: run.processing(),
        input,
        output,
        reports: arguments.reports(),
        replace: arguments.force,
    };
    let progress = Progress::new("denoising", common.quiet);
    let denoised = recording.denoise(&mut |seconds, duration| progress.update_seconds(seconds, duration))?;
    let found = denoised.persist()?;
    drop(progress);
    if !common.quiet {
        say(&sentence(name(output, "standard output"), &found));
    }
    Ok(Entry::denoised(input, output, found))
}

impl Arguments {
    fn denoiser(&self) -> anyhow::Result<Denoiser> {
        let denoiser = self.model.denoiser(self.processing.live.mode())?;
        tracing::info!("dictionary: {}", describe(&denoiser));
        Ok(denoiser)
    }

    /// The output folders of several recordings.
    fn folders<'a>(&'a self, results: &'a Path) -> Folders<'a> {
        let stats = self.stats.as_deref().filter(|path| is_folder(path));
        Folders { results, reports: Reports { stats, ..self.reports() } }
    }

    /// The reports of one recording, or their folders.
    fn reports(&self) -> Reports<&Path> {
        let scale = self.plot_scale.unwrap_or_default().into();
        let format = |path: &Path| {
            let of_name = || SpeechFormat::of(path).filter(|_| self.output_dir.is_none());
            self.speech_format.or_else(of_name).unwrap_or(SpeechFormat::Json)
        };
        Reports {
            residual: self.residual.as_deref(),
            plot: self.plot.as_deref().map(|path| (path, scale)),
            levels: self.levels.as_deref(),
            speech: self.speech.as_deref().map(|path| (path, format(path))),
            stats: self.stats.as_deref(),
        }
    }

    /// Refuses a missing file that looks like a mistyped command.
    fn check_command(&self) -> anyhow::Result<()> {
        let first = self.files.first().filter(|first| !first.exists());
        let meant = first.and_then(|first| meant_command(first.to_str()?));
        let Some((first, meant)) = first.zip(meant) else { return Ok(()) };
        if first.as_os_str() == meant.as_str() {
            return Err(usage(format!("options follow the command: use `denoise {meant} [OPTIONS]`")));
        }
        Err(usage(format!("no such file or command: {}; did you mean `denoise {meant}`?", first.display())))
    }

    /// Refuses a name for the folder of results that looks like that of a file.
    fn check_results(&self, results: &Path) -> anyhow::Result<()> {
        if results.exists() || !ends_like_sound(results) {
            return Ok(());
        }
        let input = self.files.first().map_or("IN".to_owned(), |input| input.display().to_string());
        let name = results.display();
        Err(usage(match self.files.len() {
            0 | 1 if self.manifest.is_none() => format!("-o is a folder: use `denoise {input} {name}`"),
            _ => format!("-o is a folder, and {name} ends like a file: choose another name"),
        }))
    }

    /// Refuses names for the folders of the reports of several recordings that look like those of files.
    fn check_report_folders(&self) -> anyhow::Result<()> {
        type Check = fn(&Path) -> bool;
        let is_table: Check = |path| path.extension().is_some_and(|found| found.eq_ignore_ascii_case("csv"));
        let options = [
            ("--residual", &self.residual, ends_like_sound as Check),
            ("--plot", &self.plot, picture::is_known),
            ("--levels", &self.levels, is_table),
            ("--speech", &self.speech, |path| SpeechFormat::of(path).is_some()),
        ];
        for (option, path, is_file) in options {
            let Some(path) =
                path.as_deref().filter(|path| is_file(path) && !path.exists() && !is_folder(path))
            else {
                continue;
            };
            let format = SpeechFormat::of(path).filter(|_| option == "--speech");
            let advice = match format.and_then(|format| format.to_possible_value()) {
                Some(format) => format!(", and set --speech-format {}", format.get_name()),
                None => String::new(),
            };
            let name = path.display();
            return Err(usage(format!(
                "with -o, {option} is a folder, and {name} ends like a file: choose another name{advice}"
            )));
        }
        Ok(())
    }

    /// Returns the input and the output. Refuses unusable ones before any work.
    fn check(&self, claims: &mut Claims) -> anyhow::Result<(&Path, &Path)> {
        let [input, output] = self.files.as_slice() else {
            return Err(usage(match self.files.as_slice() {
                [_] => "no output: name a file, - for standard output, or -o DIR",
                _ => "more than one input and one output: use -o DIR to denoise several files",
            }));
        };
        if !is_standard(input) && input.is_dir() {
            return Err(usage(format!(
                "{} is a folder: use -o DIR to set the folder of the results",
                input.display()
            )));
        }
        if !is_standard(output) && output.is_dir() {
            return Err(usage(format!("{0} is a folder: use -o {0} to write into it", output.display())));
        }
        if is_folder(output) {
            return Err(usage(format!("{0}: no such folder: use -o {0}", output.display())));
        }
        let reports = self.reports();
        let is_missing_folder = |path: &&Path| is_folder(path) && !path.is_dir();
        if let Some(report) = reports.paths().find(is_missing_folder) {
            let name = report.display();
            return Err(usage(format!("{name} is a folder: name a file, or use -o DIR")));
        }
        if let Some(plot) = self.plot.as_deref().filter(|plot| !picture::is_known(plot)) {
            return Err(usage(format!("{}: expected an SVG or PNG file", plot.display())));
        }
        let is_clear = |path: &&PathBuf| {
            is_standard(path) || self.speech_format.is_some() || SpeechFormat::of(path).is_some()
        };
        if let Some(speech) = self.speech.as_ref().filter(|path| !is_clear(path)) {
            let name = speech.display();
            return Err(usage(format!(
                "{name}: expected .csv, .json, .rttm or .TextGrid, or --speech-format"
            )));
        }
        let sounds = [Some(output), self.residual.as_ref()];
        if sounds.into_iter().flatten().any(|path| is_standard(path)) && std::io::stdout().is_terminal() {
            return Err(usage("standard output is a terminal: redirect it or name a file"));
        }
        for path in sounds.into_iter().flatten() {
            self.processing.check_name(path)?;
        }
        let outputs: Vec<&Path> = std::iter::once(output.as_path()).chain(reports.paths()).collect();
        claims.read(input);
        outputs.iter().try_for_each(|path| claims.write(path))?;
        for path in outputs {
            let advice = if path == output { ", or -o DIR to denoise several files" } else { "" };
            check_absent(path, self.force, advice)?;
            check_output(path)?;
        }
        Ok((input, output))
    }
}

/// Summary of a recording, in a line.
fn sentence(output: &Path, found: &Found) -> String {
    let (statistics, taken) = (&found.statistics, found.processing_seconds);
    let duration = statistics.duration_seconds;
    let mut line = format!("{}: {duration:.2} s of audio in {taken:.2} s", output.display());
    if let Some(seconds) = found.latency_seconds {
        line += &format!("; latency {:.0} ms", 1000.0 * seconds);
    }
    match (statistics.noise_before_dbfs, statistics.noise_after_dbfs) {
        (Some(before), Some(after)) => {
            line += &format!("; noise {before:.1} dBFS before, {after:.1} dBFS after")
        }
        (Some(before), None) => line += &format!("; noise {before:.1} dBFS before, none after"),
        (None, _) if statistics.snr_before_db.is_none() && found.latency_seconds.is_none() => {
            line += "; silence or a constant level"
        }
        (None, _) => {}
    }
    if let Some(before) = statistics.snr_before_db {
        line += &format!("; estimated SNR {before:.1} dB before");
        if let Some(after) = statistics.snr_after_db {
            line += &format!(", {after:.1} dB after");
        }
    }
    for note in found.notes() {
        line += "; ";
        line += &note;
    }
    line
}

/// Description of the dictionary for the log.
fn describe(denoiser: &Denoiser) -> String {
    let header = denoiser.dictionary().header();
    format!("{} spectra, alpha {}, {} Hz", header.rank, header.alpha, header.sample_rate)
}
