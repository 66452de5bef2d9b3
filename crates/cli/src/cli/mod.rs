//! The command line: the only place that prints, and the one that decides exit codes.

mod claims;
mod denoise;
mod eval;
mod ffmpeg;
mod folder;
#[cfg(test)]
mod help_tests;
mod inputs;
mod join;
mod listing;
mod live;
mod live_audio;
mod manifest;
mod model;
mod picture;
mod processing;
mod progress;
mod record;
mod recording;
mod resampler;
mod shard;
mod short_help;
mod stats;
mod systems;
mod terminal;
mod time;
mod train;

use alphamf::denoiser::SettingsError;
use alphamf::learning::TrainingError;
use alphamf::model::DictionaryError;
use alphamf::{Cancelled, DenoiseError, Denoiser, ErrorKind};
use alphamf_eval::EvaluationError;
use alphamf_files as audio;
use anyhow::Context;
use clap::builder::TypedValueParser;
use clap::{Args, CommandFactory, Parser, Subcommand};
use std::process::ExitCode;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub use short_help::parse;
pub use terminal::say;

/// Remove background noise from recorded speech.
///
/// Reads a noisy recording and writes the speech at the same sample rate, depth and length. Speech is modelled by
/// spectra trained on clean speech, noise by spectra estimated from the recording; a Wiener gain keeps the speech.
#[derive(Debug, Parser)]
#[command(name = "denoise", bin_name = "denoise", version, max_term_width = 100)]
#[command(disable_help_flag = true, disable_version_flag = true)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(override_usage = "denoise [OPTIONS] <IN> <OUT>\n       \
    denoise [OPTIONS] <IN>... -o <DIR>\n       denoise <COMMAND>")]
#[command(after_help = "`denoise --help` lists all options, examples and exit codes.")]
#[command(after_long_help = "\
Examples:
  denoise interview.wav speech.wav           with the built-in dictionary
  denoise talk.mp3 speech.flac --mix 0.8     keep some of the room
  denoise recordings/ -o speech/             every recording in a folder
  denoise hum.wav out.wav --noise-from 0..2  noise alone in the first two seconds
  arecord -f S16_LE -r 16000 -t raw | denoise - - --live --raw 16000:1:s16 | aplay
  denoise train speech/ -o mine.safetensors && denoise in.wav out.wav --model mine.safetensors

Exit codes:
  0    success
  1    failure
  2    wrong usage, or a setting out of range
  3    invalid input
  4    an output cannot be written, exists, or is an input
  5    invalid dictionary
  130  interrupted
With several inputs, one that fails does not stop the others; the exit code is that of the first that failed.")]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    denoise: denoise::Arguments,

    #[command(flatten)]
    common: Common,

    /// Print version.
    #[arg(short = 'V', long, action = clap::ArgAction::Version, help_heading = "General", hide_short_help = true)]
    version: Option<bool>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train a dictionary on a folder of clean speech.
    Train(train::Arguments),
    /// Score a denoiser on a corpus.
    Eval(Box<eval::Arguments>),
    /// Denoise a microphone until Ctrl-C.
    Live(Box<live_audio::Arguments>),
    /// Join takes of several recorders into one file, in time.
    Join(join::Arguments),
    /// Merge the statistics or journals of sharded runs.
    Merge(shard::Arguments),
    /// Print shell completions.
    #[command(args = without_effect())]
    Completions {
        /// Choose the shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page, in troff.
    #[command(args = without_effect())]
    Man {
        /// Choose the command.
        ///
        /// Default: denoise itself.
        #[arg(value_parser = ["train", "eval", "live", "join", "merge"])]
        command: Option<String>,
    },
}

/// Options of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "General")]
pub struct Common {
    /// Set the number of worker threads.
    ///
    /// Range: 1 to 1024. Default: one per core. Output does not depend on it.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Print errors only.
    #[arg(short, long, global = true)]
    quiet: bool,

    /// Set the log level.
    ///
    /// Excludes --quiet.
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn", conflicts_with = "quiet")]
    #[arg(hide_short_help = true)]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(["error", "warn", "info", "debug", "trace"])
        .try_map(|level| level.parse::<tracing::Level>()))]
    log: tracing::Level,

    /// Print help: common options with -h, all with --help.
    #[arg(short, long, global = true, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// The options of every command but help, hidden, for commands on which they have no effect.
fn without_effect() -> Vec<clap::Arg> {
    let common = Common::augment_args(clap::Command::new("denoise"));
    let others = common.get_arguments().filter(|option| option.get_id() != "help");
    others.map(|option| option.clone().hide(true)).collect()
}

const FAILED: u8 = 1;
const USAGE: u8 = 2;
/// Exit code for invalid input.
pub const INPUT: u8 = 3;
const OUTPUT: u8 = 4;
const DICTIONARY: u8 = 5;
const INTERRUPTED: u8 = 130;

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { command, denoise, common, version: _ } = arguments;
    let level = if common.quiet { tracing::Level::ERROR } else { common.log };
    // Other libraries log what this program reports as an error.
    let own = Targets::new().with_target("alphamf", level).with_target("denoise", level);
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        // It would print them, and panic where that fails.
        .log_internal_errors(false)
        .with_ansi(terminal::has_colours())
        .with_target(level > tracing::Level::INFO)
        .without_time();
    tracing_subscriber::registry().with(layer).with(own).init();
    rayon::ThreadPoolBuilder::new()
        .num_threads(terminal::threads(common.threads))
        .build_global()
        .context("cannot start worker threads")?;
    terminal::watch_for_interrupts()?;
    match command {
        None => denoise::run(&denoise, &common),
        Some(Command::Train(arguments)) => train::run(arguments, &common),
        Some(Command::Eval(arguments)) => eval::run(&arguments, &common),
        Some(Command::Live(arguments)) => live_audio::run(&arguments, &common),
        Some(Command::Join(arguments)) => join::run(&arguments, &common),
        Some(Command::Merge(arguments)) => shard::run(&arguments),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "denoise", &mut script);
            terminal::print(&script)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Man { command }) => {
            let mut page = Vec::new();
            manual(command.as_deref()).render(&mut page).context("cannot render the manual page")?;
            terminal::print(&page)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// The manual page of a command.
fn manual(command: Option<&str>) -> clap_mangen::Man {
    let mut program = Arguments::command();
    program.build();
    let found = command.and_then(|name| program.find_subcommand(name)).cloned();
    clap_mangen::Man::new(found.unwrap_or(program))
}

/// The chain of an error in one line.
pub fn one_line(error: &anyhow::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain().map(|cause| cause.to_string().replace('\n', " ")) {
        // Some errors include their source.
        if parts.last().is_none_or(|last| !last.contains(&cause)) {
            parts.push(cause);
        }
    }
    parts.join(": ")
}

/// Exit code of an error; see `denoise --help`.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    let of = |cause: &(dyn std::error::Error + 'static)| {
        fn ask<E: std::error::Error + 'static>(
            cause: &(dyn std::error::Error + 'static),
            kind: fn(&E) -> ErrorKind,
        ) -> Option<ErrorKind> {
            cause.downcast_ref().map(kind)
        }
        if let Some(error) = cause.downcast_ref::<audio::Error>() {
            return Some(if matches!(error, audio::Error::Write { .. }) { OUTPUT } else { INPUT });
        }
        if cause.is::<recording::Incomplete>() {
            return Some(INPUT);
        }
        let kind = ask(cause, DenoiseError::kind)
            .or_else(|| ask(cause, TrainingError::kind))
            .or_else(|| ask(cause, EvaluationError::kind))
            .or_else(|| ask(cause, |_: &SettingsError| ErrorKind::Setting))
            .or_else(|| ask(cause, |_: &DictionaryError| ErrorKind::Model))
            .or_else(|| ask(cause, |_: &Cancelled| ErrorKind::Cancelled))?;
        match kind {
            ErrorKind::Setting => Some(USAGE),
            ErrorKind::Input => Some(INPUT),
            ErrorKind::Model => Some(DICTIONARY),
            ErrorKind::Cancelled => Some(INTERRUPTED),
            _ => None,
        }
    };
    // A context is not a link of the chain.
    let failure = || {
        Some(match error.downcast_ref::<terminal::Failure>()? {
            terminal::Failure::Input(_) | terminal::Failure::Unusable(_) => INPUT,
            terminal::Failure::Output(_)
            | terminal::Failure::Exists(_)
            | terminal::Failure::Changed(_)
            | terminal::Failure::OfAnother(..) => OUTPUT,
            terminal::Failure::Dictionary(_) => DICTIONARY,
            terminal::Failure::Usage(_) => USAGE,
        })
    };
    error.chain().find_map(of).or_else(failure).unwrap_or(FAILED)
}

/// The command that a mistyped word most likely means.
fn meant_command(word: &str) -> Option<String> {
    /// Threshold of clap.
    const ALIKE: f64 = 0.7;
    let alike = |name: &str| strsim::jaro(word, name);
    let program = Arguments::command();
    let names = program.get_subcommands().map(|command| command.get_name().to_owned());
    let best = names.max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
    (!word.contains(['.', '/']) && alike(&best) > ALIKE).then_some(best)
}

/// Description of the dictionary in the summary line.
fn describe(denoiser: &Denoiser) -> String {
    let header = denoiser.dictionary().header();
    format!("{} spectra, alpha {}, {} Hz", header.rank, header.alpha, header.sample_rate)
}
