//! `--speech`: probability of speech and sections with speech, as CSV, JSON, RTTM or TextGrid.

use crate::streams::TextOutput;
use alphamf::denoiser::{SpeechSegment, SpeechTrack};
use clap::ValueEnum;
use serde::{Serialize, Serializer};
use std::io::{self, Write};
use std::path::Path;

/// Format of a speech track.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SpeechFormat {
    /// A row for every 10 ms
    Csv,
    /// Segments, and probabilities for every 10 ms
    Json,
    /// Segments, by NIST's Rich Transcription Time Marked
    Rttm,
    /// Segments as tiers for Praat
    #[value(name = "textgrid")]
    TextGrid,
}

impl SpeechFormat {
    /// The format for a file's extension.
    pub fn of(path: &Path) -> Option<Self> {
        let found = path.extension()?;
        Self::value_variants().iter().copied().find(|format| found.eq_ignore_ascii_case(format.ending()))
    }

    /// File extension of the format.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Json => "json",
            Self::Rttm => "rttm",
            Self::TextGrid => "TextGrid",
        }
    }
}

/// Thousandths in a probability of 1: two bytes per 10 ms are 0.7 MB an hour.
const UNIT: f32 = 1000.0;

/// The speech of a recording, by channel, or of all channels together.
#[derive(Debug, Default)]
pub struct Track {
    channels: Vec<Channel>,
    slot_seconds: f64,
}

#[derive(Debug, Default)]
struct Channel {
    /// Thousandths, per slot.
    probability: Vec<u16>,
    segments: Vec<SpeechSegment>,
}

/// Rounds a time to 1 µs: slots are exact, and the end of a recording is precise.
fn rounded_seconds(time: f64) -> f64 {
    (time * 1e6).round() / 1e6
}

fn rounded_decibels(level: f64) -> f64 {
    (level * 100.0).round() / 100.0
}

/// A probability as thousandths. One below the threshold stays below, as its slot belongs to no segment.
fn thousandths(probability: f32) -> u16 {
    let rounded = (probability * UNIT).round();
    let highest =
        if probability < SpeechTrack::THRESHOLD { SpeechTrack::THRESHOLD * UNIT - 1.0 } else { UNIT };
    rounded.min(highest) as u16
}

/// Serialises thousandths as fractions of 1.
fn probabilities<S: Serializer>(thousandths: &[u16], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(thousandths.iter().map(|&p| f64::from(p) / f64::from(UNIT)))
}

impl Track {
    /// Adds the tracks since the last call, by channel.
    pub(super) fn add(&mut self, found: Vec<SpeechTrack>) {
        self.channels.resize_with(found.len(), Channel::default);
        for (channel, track) in self.channels.iter_mut().zip(found) {
            self.slot_seconds = track.slot_seconds;
            channel.probability.extend(track.probability.iter().copied().map(thousandths));
            channel.segments.extend(track.segments);
        }
    }

    /// Writes the track of a recording of this name and duration.
    pub fn write(
        &self,
        mut sheet: TextOutput,
        format: SpeechFormat,
        name: &str,
        duration: f64,
    ) -> anyhow::Result<()> {
        sheet.write(|file| match format {
            SpeechFormat::Csv => self.csv(file),
            SpeechFormat::Json => self.json(file, name, duration),
            SpeechFormat::Rttm => self.rttm(file, name),
            SpeechFormat::TextGrid => self.text_grid(file, duration),
        })?;
        sheet.finish()
    }

    /// A row per slot, with level and SNR of its segment, if any.
    fn csv(&self, file: &mut dyn Write) -> io::Result<()> {
        writeln!(file, "channel,start_seconds,probability,segment,level_dbfs,snr_db")?;
        for (number, channel) in (1..).zip(&self.channels) {
            let mut segments = (1..).zip(&channel.segments).peekable();
            for (slot, &probability) in channel.probability.iter().enumerate() {
                let middle = (slot as f64 + 0.5) * self.slot_seconds;
                let start = slot as f64 * self.slot_seconds;
                while segments.next_if(|(_, segment)| segment.end_seconds <= start + 1e-6).is_some() {}
                let probability = f32::from(probability) / UNIT;
                write!(file, "{number},{start:.2},{probability:.3},")?;
                match segments.peek().filter(|(_, segment)| segment.start_seconds < middle) {
                    Some((index, SpeechSegment { level_dbfs, snr_db, .. })) => {
                        writeln!(file, "{index},{level_dbfs:.2},{snr_db:.2}")?
                    }
                    None => writeln!(file, ",,")?,
                }
            }
        }
        Ok(())
    }

    fn json(&self, file: &mut dyn Write, name: &str, duration: f64) -> io::Result<()> {
        #[derive(Serialize)]
        struct Segment {
            start_seconds: f64,
            end_seconds: f64,
            level_dbfs: f64,
            snr_db: f64,
        }
        #[derive(Serialize)]
        struct Part<'a> {
            channel: usize,
            segments: Vec<Segment>,
            #[serde(serialize_with = "probabilities")]
            probability: &'a [u16],
        }
        #[derive(Serialize)]
        struct File<'a> {
            file: &'a str,
            duration_seconds: f64,
            slot_seconds: f64,
            channels: Vec<Part<'a>>,
        }
        let segment = |found: &SpeechSegment| Segment {
            start_seconds: rounded_seconds(found.start_seconds),
            end_seconds: rounded_seconds(found.end_seconds),
            level_dbfs: rounded_decibels(found.level_dbfs),
            snr_db: rounded_decibels(found.snr_db),
        };
        let channels = (1..).zip(&self.channels).map(|(channel, found)| Part {
            channel,
            segments: found.segments.iter().map(segment).collect(),
            probability: &found.probability,
        });
        let channels = channels.collect();
        let content = File {
            file: name,
            duration_seconds: rounded_seconds(duration),
            slot_seconds: self.slot_seconds,
            channels,
        };
        serde_json::to_writer(&mut *file, &content)?;
        writeln!(file)
    }

    /// A line per segment. White space separates fields, so it is replaced in names.
    fn rttm(&self, file: &mut dyn Write, name: &str) -> io::Result<()> {
        let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
        let stem: String = stem.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
        for (number, channel) in (1..).zip(&self.channels) {
            for SpeechSegment { start_seconds, end_seconds, .. } in &channel.segments {
                let length = end_seconds - start_seconds;
                writeln!(
                    file,
                    "SPEAKER {stem} {number} {start_seconds:.3} {length:.3} <NA> <NA> speech <NA> <NA>"
                )?;
            }
        }
        Ok(())
    }

    /// Praat's long text format: tiers of segments, their levels (dBFS) and their SNR (dB), of every channel.
    fn text_grid(&self, file: &mut dyn Write, duration: f64) -> io::Result<()> {
        type Label = fn(&SpeechSegment) -> String;
        let labels: [(&str, Label); 3] = [
            ("speech", |_| "speech".to_owned()),
            ("level_dbfs", |found| format!("{:.1}", found.level_dbfs)),
            ("snr_db", |found| format!("{:.1}", found.snr_db)),
        ];
        let end = rounded_seconds(duration);
        write!(
            file,
            "File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\nxmin = 0\nxmax = {end}\ntiers? <exists>\n\
             size = {}\nitem []:\n",
            labels.len() * self.channels.len()
        )?;
        let mut item = 0;
        for (number, channel) in (1..).zip(&self.channels) {
            for (name, label) in &labels {
                item += 1;
                let name =
                    if self.channels.len() == 1 { (*name).to_owned() } else { format!("{name} {number}") };
                let intervals = intervals(&channel.segments, end, *label);
                write!(
                    file,
                    "    item [{item}]:\n        class = \"IntervalTier\"\n        name = \"{name}\"\n        xmin = 0\n        \
                     xmax = {end}\n        intervals: size = {}\n",
                    intervals.len()
                )?;
                for (number, (from, to, label)) in (1..).zip(intervals) {
                    write!(
                        file,
                        "        intervals [{number}]:\n            xmin = {from}\n            xmax = {to}\n            \
                         text = \"{label}\"\n"
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// Segments with labels, and the gaps between them without, up to the end.
fn intervals(
    segments: &[SpeechSegment],
    end: f64,
    label: impl Fn(&SpeechSegment) -> String,
) -> Vec<(f64, f64, String)> {
    let mut intervals = Vec::new();
    let mut position = 0.0;
    for segment in segments {
        let (from, to) =
            (rounded_seconds(segment.start_seconds), rounded_seconds(segment.end_seconds).min(end));
        if from > position {
            intervals.push((position, from, String::new()));
        }
        intervals.push((from, to, label(segment)));
        position = to;
    }
    if position < end || intervals.is_empty() {
        intervals.push((position, end, String::new()));
    }
    intervals
}

#[cfg(test)]
mod tests {
    use super::thousandths;

    #[test]
    fn probabilities_below_the_threshold_stay_below() {
        for (probability, expected) in
            [(0.0, 0), (0.4994, 499), (0.4999, 499), (0.5, 500), (0.5006, 501), (0.9996, 1000), (1.0, 1000)]
        {
            assert_eq!(thousandths(probability), expected, "{probability}");
        }
    }
}
