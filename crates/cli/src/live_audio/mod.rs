//! `denoise live`: denoises from an audio input to an audio output.

#[cfg(any(feature = "live-audio", test))]
#[cfg_attr(not(feature = "live-audio"), allow(dead_code))]
mod bridge;
#[cfg(feature = "live-audio")]
mod card;
#[cfg(any(feature = "live-audio", test))]
#[cfg_attr(not(feature = "live-audio"), allow(dead_code))]
mod meters;

use super::common::Common;
use super::live::parse_latency;
use super::model::{Model, as_usage};
use alphamf::Options;
use alphamf::denoiser::DEFAULT_LATENCY_MS;
use clap::Arg;
use std::process::ExitCode;

/// Arguments of `live`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Input and output")]
#[command(mut_args(hide_refused))]
#[command(after_long_help = "\
Exit codes:
  0    ended by Ctrl-C, or devices listed
  1    devices cannot be listed
  2    wrong usage, or a program built without audio devices
  3    input failed: no such device, sample rate out of range, no permission, or disconnected
  4    output failed
  5    invalid dictionary

The buffer between the devices is bounded: overruns drop samples, underruns insert silence; both are counted.")]
pub struct Arguments {
    /// List the devices, and exit.
    #[arg(long)]
    list_devices: bool,

    /// Set the input device.
    ///
    /// ID, name or unique substring. Default: that of the system.
    #[arg(long, value_name = "NAME")]
    input: Option<String>,

    /// Set the output device.
    ///
    /// ID, name or unique substring. Default: that of the system.
    #[arg(long, value_name = "NAME")]
    output: Option<String>,

    /// Set the latency of the denoiser, in ms.
    ///
    /// Range: 4 to 64. The devices add their own.
    #[arg(long, value_name = "MS", default_value_t = DEFAULT_LATENCY_MS, allow_negative_numbers = true, value_parser = parse_latency, help_heading = "Live")]
    latency: f64,

    #[command(flatten)]
    model: Model,
}

/// Options of a live denoiser, except those of its output files.
fn used() -> Vec<&'static str> {
    Options::LIVE.iter().copied().filter(|name| !["seed", "no_dither"].contains(name)).collect()
}

/// Hides an option without effect from the help.
fn hide_refused(argument: Arg) -> Arg {
    let name = argument.get_id().as_str();
    let refused = Options::names().contains(&name) && !used().contains(&name);
    if refused { argument.hide(true) } else { argument }
}

/// Refuses options of the denoiser without effect, before a device is opened.
fn check_options(arguments: &Arguments) -> anyhow::Result<()> {
    let options = &arguments.model.options;
    options.only(&used(), "on audio devices").map_err(as_usage)?;
    options.live_settings().map(drop).map_err(as_usage)
}

#[cfg(feature = "live-audio")]
pub fn run(arguments: &Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    check_options(arguments)?;
    card::run(arguments, common)
}

/// Refuses: static programs, and builds without ALSA, have no audio devices.
#[cfg(not(feature = "live-audio"))]
pub fn run(arguments: &Arguments, _: &Common) -> anyhow::Result<ExitCode> {
    check_options(arguments)?;
    let how = "cargo install --locked --path crates/cli --features live-audio";
    Err(super::failure::usage(format!("built without audio devices: install with {how}")))
}
