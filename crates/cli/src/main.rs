#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod claims;
mod command_line;
mod common;
mod completions;
mod denoise;
mod eval;
mod failure;
mod ffmpeg;
mod folder;
#[cfg(test)]
mod help_tests;
mod inputs;
mod interrupts;
mod join;
mod letters;
mod live;
mod live_audio;
mod manifest;
mod manual;
mod model;
mod picture;
mod processing;
mod progress;
mod record;
mod recording;
mod reports;
mod resampler;
mod shard;
mod short_help;
mod stats;
mod streams;
mod systems;
mod terminal;
mod time;
mod train;

use anyhow::Context;
use clap::{Parser, Subcommand};
use common::{Common, without_effect};
use failure::{caught, exit_code, one_line};
use std::process::ExitCode;
use terminal::say;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

fn main() -> ExitCode {
    failure::keep_panics();
    let arguments = match command_line::parse() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match caught(|| run(arguments)).flatten() {
        Ok(code) => code,
        Err(error) => {
            // A thread may still wait for a run of ffmpeg.
            let _stopped = ffmpeg::stop_all();
            say(&format!("denoise: {}", one_line(&error)));
            exit_code(&error).into()
        }
    }
}

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

        /// Choose the name of the program.
        ///
        /// Packages install it under both.
        #[arg(default_value = "denoise", value_parser = ["denoise", "alphamf"])]
        name: String,
    },
    /// Print the manual page, in troff.
    #[command(args = without_effect())]
    Man {
        /// Choose the command.
        ///
        /// Default: denoise itself.
        #[arg(value_parser = ["train", "eval", "live", "join", "merge", "completions", "man"])]
        command: Option<String>,
    },
}

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { command, denoise, common, version: _ } = arguments;
    let level = common.level();
    // Logs of other libraries are dropped: this program reports their errors.
    let own = Targets::new().with_target("alphamf", level).with_target("denoise", level);
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        // The layer would print them, and panic if printing fails.
        .log_internal_errors(false)
        .with_ansi(terminal::has_colours())
        .with_target(level > tracing::Level::INFO)
        .without_time();
    tracing_subscriber::registry().with(layer).with(own).init();
    rayon::ThreadPoolBuilder::new()
        .num_threads(common.threads())
        .build_global()
        .context("cannot start worker threads")?;
    interrupts::watch_for_interrupts()?;
    match command {
        None => denoise::run(&denoise, &common),
        Some(Command::Train(arguments)) => train::run(arguments, &common),
        Some(Command::Eval(arguments)) => eval::run(&arguments, &common),
        Some(Command::Live(arguments)) => live_audio::run(&arguments, &common),
        Some(Command::Join(arguments)) => join::run(&arguments, &common),
        Some(Command::Merge(arguments)) => shard::run(&arguments),
        Some(Command::Completions { shell, name }) => {
            terminal::print(&completions::script(shell, &name))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Man { command }) => {
            let mut page = Vec::new();
            manual::page(command.as_deref()).render(&mut page).context("cannot render the manual page")?;
            terminal::print(&page)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
