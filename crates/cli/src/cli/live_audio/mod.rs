//! `denoise live`: from a microphone to an output, now.

#[cfg(any(feature = "live-audio", test))]
#[cfg_attr(not(feature = "live-audio"), allow(dead_code))]
mod bridge;
#[cfg(feature = "live-audio")]
mod card;

use super::Common;
use super::live::parse_latency;
use super::model::Model;
use super::recording::parse_share;
use std::process::ExitCode;

/// Arguments of `live`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0    ended by Ctrl-C, or devices listed
  1    devices cannot be listed
  2    wrong usage, or a program that was built without sound cards
  3    the input is of no use: no such device, a sample rate out of range, no permission, lost
  4    the output is of no use
  5    a dictionary is of no use
What waits between the two devices is bounded: too much is dropped, too little is silence, and both are counted.")]
pub struct Arguments {
    /// Tell which devices there are, and end.
    #[arg(long)]
    list_devices: bool,

    /// The device to hear: its identity or name, or a part of one that no other has. The system's choice if not given.
    #[arg(long, value_name = "NAME")]
    input: Option<String>,

    /// The device to play on, likewise.
    #[arg(long, value_name = "NAME")]
    output: Option<String>,

    /// How late the denoiser is, 4 to 32 ms; the devices add their own.
    #[arg(long, value_name = "MS", default_value_t = 16.0, value_parser = parse_latency)]
    latency: f64,

    /// How much of what comes out is denoised, 0 to 1; the rest is as it came.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = parse_share)]
    mix: f32,

    #[command(flatten)]
    model: Model,
}

#[cfg(feature = "live-audio")]
pub fn run(arguments: &Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    card::run(arguments, common)
}

/// Programs that are linked statically, and machines without what a sound card needs to compile, have this.
#[cfg(not(feature = "live-audio"))]
pub fn run(_: &Arguments, _: &Common) -> anyhow::Result<ExitCode> {
    let how = "cargo install --locked --path crates/cli --features live-audio";
    Err(super::terminal::usage(format!("this program was built without sound cards; to have them: {how}")))
}
