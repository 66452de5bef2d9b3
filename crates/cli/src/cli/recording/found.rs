//! What is reported of a denoised recording.

use super::speech::{SpeechFormat, Track};
use crate::cli::terminal::{name, write_whole};
use alphamf::denoiser::{MicrophoneFault, Statistics};
use alphamf_eval::plot::Figure;
use alphamf_files::Losses;
use serde::Serialize;
use std::path::Path;

/// Below this estimated SNR of the input no speech has been found, dB. Of 90 development mixtures at 0 to 15 dB none is below -18; 23 of 35
/// noises alone are below this.
const NO_SPEECH_DB: f64 = -30.0;

/// The statistics of a denoised recording.
#[derive(Debug, Serialize)]
pub struct Found {
    #[serde(flatten)]
    pub statistics: Statistics,
    pub input_format: String,
    pub output_format: String,
    pub clipped_samples: u64,
    pub damaged_packets: u64,
    /// Silent samples per channel in place of lost packets.
    pub silent_samples: u64,
    /// Missing samples per channel at the end.
    pub missing_samples: u64,
    pub samples_not_finite: u64,
    pub ends_early: bool,
    /// Samples beyond the declared end of a WAV file.
    pub data_follow: bool,
    /// Parts of the file with another sample rate.
    pub other_recording_follows: bool,
    /// Parts of the input that the output lacks, such as further audio tracks, a few words each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Latency of `--live`, s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_seconds: Option<f64>,
    /// Starts and ends of speech, with `--live`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speech_sections_seconds: Option<Vec<[f64; 2]>>,
    pub processing_seconds: f64,
    pub real_time_factor: f64,
    #[serde(skip)]
    pub figure: Option<Figure>,
    /// Speech levels, as a table.
    #[serde(skip)]
    pub levels: Option<String>,
    /// Where speech is.
    #[serde(skip)]
    pub speech: Option<Track>,
}

impl Found {
    /// Warnings for the user, a few words each.
    pub fn notes(&self) -> Vec<String> {
        let facts = [
            (self.ends_early, "unexpected end of file"),
            (self.data_follow, "more data follow the declared end"),
            (
                self.other_recording_follows,
                "another recording of another sample rate follows and was left out",
            ),
            (
                self.statistics.snr_before_db.is_some_and(|snr| snr < NO_SPEECH_DB),
                "no speech found (if there is a voice, try --no-neural)",
            ),
        ];
        [
            (self.statistics.clipped_input_samples, "clipped input samples (not restored)"),
            (self.clipped_samples, "samples clipped in the output"),
            (self.damaged_packets, "damaged packets replaced with silence"),
            (self.missing_samples, "samples missing at the end"),
            (self.samples_not_finite, "non-finite samples replaced with zeros"),
            (self.statistics.clicks as u64, "clicks repaired"),
            (self.statistics.heavy_tailed_blocks as u64, "blocks with heavy-tailed noise"),
            (self.statistics.divergences as u64, "divergent sampler proposals rejected"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .chain(facts.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what.to_owned()))
        .chain(self.statistics.microphone_faults.iter().map(|fault| match fault {
            MicrophoneFault::Silent { channel } => format!("channel {channel} is silent"),
            MicrophoneFault::Equal { channel, to } => format!("channel {channel} repeats channel {to}"),
            MicrophoneFault::Inverted { channel } => {
                format!("channel {channel} has the opposite sign of the others")
            }
        }))
        .chain(self.left_out.iter().cloned())
        .collect()
    }
}

impl Found {
    /// Writes where speech is in the recording of this name.
    pub fn write_speech(&self, path: &Path, format: SpeechFormat, input: &Path) -> anyhow::Result<()> {
        let Some(track) = &self.speech else { return Ok(()) };
        let input = name(input, "standard input").file_name().unwrap_or_default().to_string_lossy();
        write_whole(path, track.render(format, &input, self.statistics.duration_seconds).as_bytes())
    }
}

/// A recording that `--strict` refuses.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {losses}: refused by --strict")]
pub struct Incomplete {
    pub(super) name: String,
    pub(super) losses: Losses,
}
