//! Options of inputs, outputs and the noise section.

use super::failure::usage;
use super::ffmpeg::{self, Ffmpeg};
use super::live::Live;
use super::streams::{is_device, is_standard};
use super::time::parse_time;
use alphamf::denoiser::SessionSettings;
use alphamf::signal::SampleFormat;
use alphamf_files::{Container, RawFormat};
use std::path::Path;
use std::str::FromStr;

/// Options of what is read and written.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Input and output")]
pub struct Processing {
    /// Set the output container and sample format.
    ///
    /// wav or flac; u8, s16, s24, s32, f32 or f64; or both, such as flac:s24. Default: the container by the output's
    /// name, the sample format of the input.
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,

    /// Read headerless samples.
    ///
    /// RATE:CHANNELS:FORMAT, such as 16000:1:s16. Formats: u8, s8, s16, s24, s32, f32, f64, alaw, mulaw. Needs the names of
    /// files, not of folders.
    #[arg(long, value_name = "RATE:CHANNELS:FORMAT", hide_short_help = true)]
    pub raw: Option<RawFormat>,

    /// Write headerless samples.
    ///
    /// u8, or little-endian s16, s24, s32, f32 or f64: the sample format of --format or of the input. --raw with s8, alaw,
    /// mulaw or big-endian samples needs --format.
    #[arg(long, hide_short_help = true)]
    raw_out: bool,

    /// Process truncated or damaged input.
    ///
    /// By default a truncated file is refused. Non-finite samples become zero.
    #[arg(long, hide_short_help = true)]
    pub salvage: bool,

    /// Refuse input with lost or damaged packets.
    ///
    /// By default they become silence and are reported. Excludes --salvage.
    #[arg(long, conflicts_with = "salvage", hide_short_help = true)]
    pub strict: bool,

    /// Estimate the noise from a noise-only section.
    ///
    /// In seconds or minutes:seconds, such as 0..1.5 or 1:20..1:24. Needs a file. Excludes --live.
    #[arg(long, value_name = "START..END", conflicts_with = "live", allow_hyphen_values = true)]
    #[arg(help_heading = "Denoising", display_order = 100)]
    pub noise_from: Option<Section>,

    #[command(flatten)]
    pub live: Live,
}

/// A container, a sample format, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Format {
    pub container: Option<Container>,
    pub depth: Option<SampleFormat>,
}

/// Reason to refuse a sample format for FLAC.
const SHALLOW: &str = "FLAC has 24 bits at most";

impl Format {
    /// Whether it asks for more than 24 bits.
    fn is_deep(self) -> bool {
        self.depth.is_some_and(|depth| depth.bits() > 24)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut format = Self::default();
        for part in text.split(':') {
            let repeated = match part {
                "wav" => format.container.replace(Container::Wav).is_some(),
                "flac" => format.container.replace(Container::Flac).is_some(),
                "u8" => format.depth.replace(SampleFormat::Int8).is_some(),
                "s16" => format.depth.replace(SampleFormat::Int16).is_some(),
                "s24" => format.depth.replace(SampleFormat::Int24).is_some(),
                "s32" => format.depth.replace(SampleFormat::Int32).is_some(),
                "f32" => format.depth.replace(SampleFormat::Float32).is_some(),
                "f64" => format.depth.replace(SampleFormat::Float64).is_some(),
                _ => return Err(format!("{part:?}: expected u8, s16, s24, s32, f32, f64, wav or flac")),
            };
            if repeated {
                return Err("expected one container and one sample format at most".to_owned());
            }
        }
        if format.container == Some(Container::Flac) && format.is_deep() {
            return Err(SHALLOW.to_owned());
        }
        Ok(format)
    }
}

/// A section of a recording, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Section {
    pub start: f64,
    /// `None` is the end of the recording.
    pub end: Option<f64>,
}

impl FromStr for Section {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str =
            "expected START..END in seconds or minutes:seconds, such as 0..1.5 or 1:20..1:24";
        let (start, end) = text.split_once("..").ok_or(EXPECTED)?;
        let start = if start.is_empty() { 0.0 } else { parse_time(start).ok_or(EXPECTED)? };
        let end = if end.is_empty() { None } else { Some(parse_time(end).ok_or(EXPECTED)?) };
        if end.is_some_and(|end| end <= start) {
            return Err("expected an end after the start".to_owned());
        }
        Ok(Self { start, end })
    }
}

impl Processing {
    /// The container that options set, regardless of the output's name.
    pub fn container(&self) -> Option<Container> {
        if self.raw_out { Some(Container::Raw) } else { self.format.and_then(|format| format.container) }
    }

    /// The file extension of the result of a recording with this name.
    pub fn ending(&self, name: &Path) -> &'static str {
        match self.container().unwrap_or_else(|| Container::from_path(name)) {
            Container::Wav => "wav",
            Container::Flac => "flac",
            Container::Raw => "raw",
        }
    }

    /// The kind of file that ffmpeg writes under this name, if any.
    pub fn encoded(&self, output: &Path) -> Option<ffmpeg::Kind> {
        ffmpeg::Kind::of(output).filter(|_| self.container().is_none())
    }

    /// Records these options and those of the session as JSON.
    pub fn record(&self, session: &SessionSettings) -> serde_json::Value {
        let noise_from = self.noise_from.map(|section| (section.start, section.end));
        serde_json::json!({
            "mix": session.mix, "channels": session.channels, "noise_from_seconds": noise_from,
            "dither": session.dither, "live_latency_seconds": self.live.latency_seconds(),
        })
    }

    /// Refuses incompatible options, a sample format that cannot be written, and an extension of another container.
    pub fn check_name(&self, output: &Path) -> anyhow::Result<()> {
        let container = self.container().unwrap_or_else(|| Container::from_path(output));
        let name = output.display();
        if container == Container::Flac && self.format.is_some_and(Format::is_deep) {
            return Err(usage(format!("{name}: {SHALLOW}")));
        }
        if self.raw_out && self.format.is_some_and(|format| format.container.is_some()) {
            return Err(usage("--raw-out has no container: set the sample format alone with --format"));
        }
        let is_other = |raw: RawFormat| raw.output_format().is_none();
        if self.raw_out && self.raw.is_some_and(is_other) && self.format.is_none() {
            return Err(usage(
                "--raw-out does not write the sample format of --raw: set one with --format, such as s16",
            ));
        }
        if let (Some(asked), Some(named)) = (self.container(), container_of_name(output))
            && asked.to_string() != named
        {
            let option = if self.raw_out { "--raw-out" } else { "--format" };
            return Err(usage(format!("{name}: {option} writes {asked}, not {named}: change the extension")));
        }
        if let Some(kind) = self.encoded(output) {
            if self.format.is_some() {
                return Err(usage(format!(
                    "{name}: --format is for WAV, FLAC and --raw-out, not for {kind}"
                )));
            }
            if Ffmpeg::find().is_some() {
                return Ok(());
            }
            return Err(usage(format!(
                "{name}: only WAV and FLAC are written without ffmpeg, which is not on the PATH: install it to write {kind}"
            )));
        }
        if self.container().is_some() || is_standard(output) || is_device(output) || is_written(output) {
            return Ok(());
        }
        Err(usage(format!(
            "{name}: only WAV and FLAC are written, and by ffmpeg .aiff, .mp3, .m4a, .opus, .ogg and video: change the extension or set --format"
        )))
    }
}

/// The container of files with this extension, in words; none if it is unknown.
fn container_of_name(name: &Path) -> Option<String> {
    let written = is_written(name).then(|| Container::from_path(name).to_string());
    written.or_else(|| ffmpeg::Kind::of(name).map(|kind| kind.to_string()))
}

/// Whether this program writes the container that the extension names.
pub fn is_written(name: &Path) -> bool {
    let extension = name.extension().unwrap_or_default();
    ["wav", "wave", "flac"].iter().any(|written| extension.eq_ignore_ascii_case(written))
}
