//! Reported results of a denoised recording.

use crate::progress::clock;
use alphamf::denoiser::{MicrophoneFault, Statistics};
use alphamf::signal::counted;
use alphamf_files::Losses;
use serde::{Serialize, Serializer};
use std::ops::Deref;

/// Estimated SNR of the input below which a recording counts as without speech, dB. None of 90 development mixtures at
/// 0 to 15 dB is below -18; 23 of 35 recordings of noise alone are below this value.
const NO_SPEECH_DB: f64 = -30.0;

/// Hum is not reported if it is this much softer than all noise in speech pauses, dB.
const SOFT_HUM_DB: f64 = 10.0;

/// The statistics of a denoised recording.
#[derive(Debug, Serialize)]
pub struct Found {
    #[serde(flatten)]
    pub statistics: Counted,
    pub input_format: String,
    pub output_format: String,
    pub clipped_samples: u64,
    /// Missing and damaged parts of the input.
    #[serde(flatten, serialize_with = "as_fields")]
    pub losses: Losses,
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
}

/// Statistics. Some are counted offline only: with `--live`, they are null in JSON.
#[derive(Debug)]
pub struct Counted {
    pub(super) statistics: Statistics,
    pub(super) is_live: bool,
}

impl Deref for Counted {
    type Target = Statistics;

    fn deref(&self) -> &Statistics {
        &self.statistics
    }
}

impl Serialize for Counted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const OFFLINE: [&str; 3] = ["restored_samples", "clicks", "heavy_tailed_blocks"];
        if !self.is_live {
            return self.statistics.serialize(serializer);
        }
        let mut fields = serde_json::to_value(&self.statistics).map_err(serde::ser::Error::custom)?;
        OFFLINE.into_iter().for_each(|key| fields[key] = serde_json::Value::Null);
        fields.serialize(serializer)
    }
}

/// Writes losses as fields.
fn as_fields<S: Serializer>(losses: &Losses, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Fields {
        damaged_packets: u64,
        silent_samples: u64,
        missing_samples: u64,
        samples_not_finite: u64,
        ends_early: bool,
        data_follow: bool,
        other_recording_follows: bool,
        checksum_mismatch: bool,
    }
    let fields = Fields {
        damaged_packets: losses.damaged_packets,
        silent_samples: losses.silent_samples,
        missing_samples: losses.missing_samples,
        samples_not_finite: losses.not_finite,
        ends_early: losses.ends_early,
        data_follow: losses.data_follow,
        other_recording_follows: losses.other_recording,
        checksum_mismatch: losses.checksum_mismatch,
    };
    fields.serialize(serializer)
}

impl Found {
    /// Warnings for the user, a few words each.
    pub fn notes(&self) -> Vec<String> {
        let no_speech = self.statistics.snr_before_db.is_some_and(|snr| snr < NO_SPEECH_DB);
        let no_speech = no_speech.then_some("no speech found (if there is a voice, try --no-neural)");
        let noise_dbfs = self.statistics.noise_before_dbfs.unwrap_or(f64::NEG_INFINITY);
        let hum = self.statistics.hum_dbfs.filter(|&level| level > noise_dbfs - SOFT_HUM_DB);
        let hum = hum.map(|level| format!("hum of {level:.0} dBFS removed"));
        let losses = self.losses.any().then(|| self.losses.to_string());
        let restored = self.statistics.restored_samples as u64;
        let clipped = if restored > 0 { 0 } else { self.statistics.clipped_input_samples };
        let remedy = if self.statistics.is_live { "" } else { " (--declip restores them)" };
        [
            (clipped, "clipped input sample", remedy),
            (restored, "clipped input sample", " restored"),
            (self.clipped_samples, "sample", " clipped in the output"),
            (self.statistics.clicks as u64, "click", " repaired"),
            (self.statistics.heavy_tailed_blocks as u64, "block", " with heavy-tailed noise"),
            (self.statistics.divergences as u64, "divergent sampler proposal", " rejected"),
        ]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, thing, rest)| counted(count, thing) + rest)
        .chain(hum)
        .chain(losses)
        .chain(no_speech.map(str::to_owned))
        .chain(self.statistics.microphone_faults.iter().map(|fault| match fault {
            MicrophoneFault::Silent { channel } => format!("channel {channel} is silent"),
            MicrophoneFault::Interrupted { channel, from_second, to_second } => {
                let [from, to] = [from_second, to_second].map(|&second| clock(second as f64));
                format!("channel {channel} is silent from {from} to {to}")
            }
            MicrophoneFault::Equal { channel, to } => format!("channel {channel} repeats channel {to}"),
            MicrophoneFault::Inverted { channel } => {
                format!("channel {channel} has the opposite sign of the others")
            }
        }))
        .chain(self.left_out.iter().cloned())
        .collect()
    }
}

/// A recording that `--strict` refuses.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {losses}: refused by --strict")]
pub struct Incomplete {
    pub(super) name: String,
    pub(super) losses: Losses,
}
