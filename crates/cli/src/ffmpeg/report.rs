//! Parser of ffmpeg's standard error at `-loglevel repeat+level+info`.

use crate::time::parse_time;
use alphamf::signal::SampleFormat;
use std::io::{BufRead, BufReader, Read};

/// Maximum length of a line, bytes; the rest of a line is dropped.
const MAX_LINE: u64 = 1 << 12;
/// Reason that a film without its index cannot be read.
const NO_INDEX: &str =
    "the recorder stopped before it wrote the index (moov): a repair tool such as untrunc is needed";
/// Filter that inserts silence for missing packets, as named in ffmpeg's reports.
pub(super) const PAUSES: &str = "aresample@pauses";
/// Maximum number of samples in one report of [`PAUSES`].
const MAX_SILENCE: u64 = 1 << 14;
/// Maximum number of streams that are listed, more than any recording has.
const MAX_STREAMS: usize = 256;

/// ffmpeg's report on a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The inputs, in the order of its arguments.
    pub inputs: Vec<Input>,
    /// Packets that were damaged or could not be decoded.
    pub damaged_packets: u64,
    /// Pauses between packets that [`PAUSES`] has filled, and their samples per channel.
    pub pauses: u64,
    pub silent_samples: u64,
    /// Whether an input ends within an element of its format.
    pub ends_early: bool,
    /// Number of errors, except those of video and subtitles, which are not decoded.
    pub errors: u64,
    /// The most specific error message; the first if several are equally specific.
    pub reason: Option<String>,
}

/// Parser state of a report.
#[derive(Default)]
struct Lines {
    report: Report,
    /// Specificity of the reason.
    weight: Weight,
    /// Codecs of streams that are not audio.
    codecs: Vec<String>,
    /// Whether the next silence belongs to the same pause.
    is_in_pause: bool,
    /// Whether the next duration is estimated.
    is_estimated: bool,
    /// Whether the lines describe an output.
    in_output: bool,
}

/// How specifically an error explains the failure of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// Refers to another error.
    #[default]
    Consequence,
    Error,
    /// Ended the run.
    Fatal,
    /// Caused all further errors.
    Cause,
}

/// A file that ffmpeg reads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Input {
    /// Duration that the file declares, s; none if ffmpeg estimates it from the size.
    pub duration_seconds: Option<f64>,
    pub streams: Vec<Stream>,
}

/// A stream of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    pub kind: StreamKind,
    /// Index among all streams of the file.
    pub index: usize,
    /// Whether players select it by default.
    pub is_default: bool,
    /// Sample format, if it is audio; 16-bit integers if its codec is lossy.
    pub format: Option<SampleFormat>,
    /// Whether it is H.264 without MP4's tag. With the tag, AVI holds it unchanged.
    pub is_untagged_h264: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    Audio,
    Video,
    /// An attached picture, such as a cover.
    Picture,
    Subtitles(SubtitleKind),
    /// A file within the file, such as a font.
    Attachment,
    /// Other data, such as measurements of a camera.
    Data,
    /// A time code or chapter titles, which containers generate themselves.
    Other,
}

/// Kinds of subtitles, distinguished by container support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubtitleKind {
    Text,
    /// The text of MP4, `mov_text`.
    TimedText,
    Bitmap,
    /// Subtitles that no supported video container holds, such as teletext.
    Other,
}

impl StreamKind {
    /// Determines the kind from the description after the number of a stream.
    fn of(description: &str) -> Self {
        let (kind, codec) = description.split_once(": ").unwrap_or((description, ""));
        match kind {
            "Audio" => Self::Audio,
            "Video" if codec.contains("(attached pic)") => Self::Picture,
            "Video" => Self::Video,
            "Subtitle" => Self::Subtitles(match codec.split([' ', ',']).next().unwrap_or_default() {
                "subrip" | "srt" | "ass" | "ssa" | "webvtt" | "text" => SubtitleKind::Text,
                "mov_text" => SubtitleKind::TimedText,
                "dvd_subtitle" | "dvb_subtitle" | "hdmv_pgs_subtitle" => SubtitleKind::Bitmap,
                _ => SubtitleKind::Other,
            }),
            "Attachment" => Self::Attachment,
            "Data" if !["(tmcd", "bin_data (text"].iter().any(|own| codec.contains(own)) => Self::Data,
            _ => Self::Other,
        }
    }
}

impl Input {
    /// The audio track that players select: the first marked as default, or else the first.
    pub fn audio(&self) -> Option<Stream> {
        let mut tracks = self.streams.iter().filter(|stream| stream.kind == StreamKind::Audio);
        tracks.clone().find(|track| track.is_default).or_else(|| tracks.next()).copied()
    }

    /// Index of [`Self::audio`] among the audio tracks.
    pub fn audio_number(&self) -> usize {
        let mut tracks = self.streams.iter().filter(|stream| stream.kind == StreamKind::Audio);
        tracks.position(|&track| Some(track) == self.audio()).unwrap_or(0)
    }

    /// Whether there are streams, but none of audio.
    pub fn is_silent(&self) -> bool {
        !self.streams.is_empty() && self.audio().is_none()
    }

    /// Counts the streams of a kind.
    pub fn count(&self, kind: StreamKind) -> usize {
        self.streams.iter().filter(|stream| stream.kind == kind).count()
    }
}

impl Report {
    /// Parses ffmpeg's standard error to its end.
    pub fn read(errors: impl Read) -> Self {
        let mut all = Lines::default();
        let mut source = BufReader::new(errors);
        let mut line = Vec::new();
        loop {
            line.clear();
            match source.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            if line.last() != Some(&b'\n') && source.skip_until(b'\n').is_err() {
                break;
            }
            String::from_utf8_lossy(&line).split(['\n', '\r']).for_each(|line| all.add(line));
        }
        all.report
    }

    /// Whether the reason is a system error that prevents writing a file.
    pub fn is_unwritten(&self) -> bool {
        self.reason.as_deref().is_some_and(is_of_system)
    }
}

impl Lines {
    fn add(&mut self, line: &str) {
        let Some((context, level, text)) = parts(line) else { return };
        match level {
            "error" | "fatal" | "panic" => {
                let is_of_other = |context| self.codecs.iter().any(|codec| codec == context);
                if !context.is_some_and(is_of_other) {
                    self.add_error(context, level, text);
                }
            }
            "warning" => {
                self.report.damaged_packets += u64::from(text.contains(": corrupt input packet"));
                self.is_estimated |= text.starts_with("Estimating duration");
            }
            "verbose" => {
                let silence = text.strip_prefix("adding ").filter(|_| context == Some(PAUSES));
                let samples = silence.and_then(|text| text.strip_suffix(" audio samples of silence"));
                self.add_silence(samples.and_then(|samples| samples.parse().ok()).unwrap_or(0));
            }
            _ => self.add_information(text),
        }
    }

    fn add_silence(&mut self, samples: u64) {
        if samples > 0 {
            self.report.pauses += u64::from(!self.is_in_pause);
            self.report.silent_samples += samples;
            self.is_in_pause = samples == MAX_SILENCE;
        }
    }

    fn add_error(&mut self, context: Option<&str>, level: &str, text: &str) {
        let report = &mut self.report;
        report.errors += 1;
        let undecoded = ["Error while decoding", "Error submitting packet to decoder"];
        report.damaged_packets += u64::from(undecoded.iter().any(|words| text.contains(words)));
        report.ends_early |= text.contains("ended prematurely") || text.contains("partial file");
        if text.starts_with("Format not on whitelist") {
            let format = context.unwrap_or("unknown");
            report.reason = Some(format!("files of the format {format} are not read"));
            self.weight = Weight::Cause;
            return;
        }
        if text.contains("moov atom not found") {
            (report.reason, self.weight) = (Some(NO_INDEX.to_owned()), Weight::Cause);
            return;
        }
        let weight = match level {
            _ if is_of_system(text) => Weight::Cause,
            _ if is_consequence(text) => Weight::Consequence,
            "error" => Weight::Error,
            _ => Weight::Fatal,
        };
        if report.reason.is_none() || weight > self.weight {
            (report.reason, self.weight) = (Some(text.trim().to_owned()), weight);
        }
    }

    fn add_information(&mut self, text: &str) {
        let line = text.trim_start();
        if line.starts_with("Input #") {
            self.report.inputs.push(Input::default());
            self.in_output = false;
        }
        self.in_output |= line.starts_with("Output #") || line.starts_with("Stream mapping");
        let Some(input) = self.report.inputs.last_mut().filter(|_| !self.in_output) else { return };
        if let Some(rest) = line.strip_prefix("Duration: ") {
            input.duration_seconds = seconds(rest).filter(|_| !std::mem::take(&mut self.is_estimated));
        } else if let Some((_, rest)) = line.strip_prefix("Stream #").and_then(|rest| rest.split_once(':')) {
            let index = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            let (Ok(index), Some((_, description))) = (index.parse(), rest.split_once(": ")) else { return };
            let codec = description.split_once(": ").and_then(|(_, codec)| codec.split([' ', ',']).next());
            let kind = StreamKind::of(description);
            let is_default = description.contains("(default)");
            let format = sample_format(description).filter(|_| kind == StreamKind::Audio);
            let is_untagged_h264 = codec == Some("h264") && !description.contains("(avc1");
            if input.streams.len() < MAX_STREAMS {
                input.streams.push(Stream { kind, index, is_default, format, is_untagged_h264 });
                self.codecs.extend(codec.filter(|_| kind != StreamKind::Audio).map(str::to_owned));
            }
        }
    }
}

/// Derives the sample format of a stream from its codec, decoded format and bit depth, such as `s32 (24 bit)`.
fn sample_format(description: &str) -> Option<SampleFormat> {
    let (_, description) = description.split_once(": ")?;
    // Other codecs that decode to floats are lossy.
    let has_floats = ["pcm_", "wavpack"].iter().any(|codec| description.starts_with(codec));
    description.split(", ").find_map(|part| {
        let (decoded, rest) = part.split_once(' ').unwrap_or((part, ""));
        let bits = rest.strip_prefix('(').and_then(|rest| rest.split_once(" bit)")?.0.parse().ok());
        Some(match (decoded.strip_suffix('p').unwrap_or(decoded), bits.unwrap_or(32)) {
            ("u8", _) => SampleFormat::Int8,
            ("s16", _) => SampleFormat::Int16,
            ("s32" | "s64", ..=16) => SampleFormat::Int16,
            ("s32" | "s64", 17..=24) => SampleFormat::Int24,
            ("s32" | "s64", _) => SampleFormat::Int32,
            ("flt", _) if has_floats => SampleFormat::Float32,
            ("dbl", _) if has_floats => SampleFormat::Float64,
            ("flt" | "dbl", _) => SampleFormat::Int16,
            _ => return None,
        })
    })
}

/// Splits a line into context (if any), level and message. Of several contexts, the first counts.
fn parts(line: &str) -> Option<(Option<&str>, &str, &str)> {
    let mut whole = None;
    let mut line = line.trim_end();
    loop {
        let (first, rest) = line.strip_prefix('[')?.split_once("] ")?;
        match first.split_once(" @ ") {
            Some((context, _)) => whole = whole.or(context.split(',').next()),
            None => return Some((whole, first, rest)),
        }
        line = rest;
    }
}

/// Whether a message is a system error that prevents writing a file.
fn is_of_system(text: &str) -> bool {
    [
        "No space left on device",
        "File too large",
        "Disk quota exceeded",
        "Input/output error",
        "Read-only file system",
    ]
    .iter()
    .any(|words| text.contains(words))
}

/// Whether a message only refers to another error.
fn is_consequence(text: &str) -> bool {
    [
        "Conversion failed",
        "Could not write header",
        "Error initializing output stream",
        "Error opening output file",
        "Error while opening encoder",
        "Nothing was written into output file",
        "Task finished with error code",
        "Terminating thread with return code",
    ]
    .iter()
    .any(|words| text.starts_with(words))
}

/// Parses the time before the first comma of a text, s.
fn seconds(text: &str) -> Option<f64> {
    parse_time(text.split(',').next()?.trim())
}

#[cfg(test)]
mod tests;
