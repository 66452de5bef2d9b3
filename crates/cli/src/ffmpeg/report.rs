//! What ffmpeg reports on its standard error, line by line, at `-loglevel repeat+level+info`.

use crate::time::parse_time;
use alphamf::signal::SampleFormat;
use std::io::{BufRead, BufReader, Read};

/// Longer lines are cut, bytes.
const MAX_LINE: u64 = 1 << 12;
/// Why a film without its index cannot be read.
const NO_INDEX: &str =
    "the recorder stopped before it wrote the index (moov): a repair tool such as untrunc is needed";
/// More streams than any recording has are not listed.
const MAX_STREAMS: usize = 256;

/// What ffmpeg has reported of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The inputs, in the order of its arguments.
    pub inputs: Vec<Input>,
    /// Packets that were damaged or could not be decoded.
    pub damaged_packets: u64,
    /// Whether an input ends within an element of its format.
    pub ends_early: bool,
    /// Errors of any kind, but those of video and subtitles, which are not decoded.
    pub errors: u64,
    /// The error that says most of why it failed: of several that say as much, the first.
    pub reason: Option<String>,
    /// How much it says.
    weight: Weight,
    in_output: bool,
}

/// How much an error says of why a run failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    /// It only says that there was another one.
    #[default]
    Consequence,
    Error,
    /// It ended the run.
    Fatal,
    /// Further errors only follow from it.
    Cause,
}

/// A file that ffmpeg reads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Input {
    /// Declared by the file and not estimated from its size, s.
    pub duration_seconds: Option<f64>,
    pub streams: Vec<Stream>,
}

/// A part of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    pub kind: StreamKind,
    /// Among all of the file.
    pub index: usize,
    /// Whether players take it if nobody chooses.
    pub is_default: bool,
    /// The format that keeps its samples, if it is audio: their own, or 16-bit integers if its codec is lossy.
    pub format: Option<SampleFormat>,
    /// Whether it is H.264 that has not the tag of MP4, by which AVI takes it as it is.
    pub is_untagged_h264: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    Audio,
    Video,
    /// A picture of the whole, such as a cover.
    Picture,
    Subtitles(SubtitleKind),
    /// A file within the file, such as a font.
    Attachment,
    /// Measurements of a camera, for example.
    Data,
    /// A time code or titles of chapters, which a container makes for itself.
    Other,
}

/// Subtitles by what a container needs to hold them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubtitleKind {
    Text,
    /// The text of MP4, `mov_text`.
    TimedText,
    Bitmap,
    /// Such as teletext, which no container of video here holds.
    Other,
}

impl StreamKind {
    /// By what follows the number of a stream.
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
    /// The audio track that players take: the first that is marked as default, or the first.
    pub fn audio(&self) -> Option<Stream> {
        let mut tracks = self.streams.iter().filter(|stream| stream.kind == StreamKind::Audio);
        tracks.clone().find(|track| track.is_default).or_else(|| tracks.next()).copied()
    }

    /// Whether streams were found, and no audio among them.
    pub fn is_silent(&self) -> bool {
        !self.streams.is_empty() && self.audio().is_none()
    }

    /// How many streams of a kind there are.
    pub fn count(&self, kind: StreamKind) -> usize {
        self.streams.iter().filter(|stream| stream.kind == kind).count()
    }
}

impl Report {
    /// Reads all that is reported.
    pub fn read(errors: impl Read) -> Self {
        let (mut this, mut codecs, mut is_estimated) = (Self::default(), Vec::new(), false);
        let mut lines = BufReader::new(errors);
        let mut line = Vec::new();
        loop {
            line.clear();
            match lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            }
            for line in String::from_utf8_lossy(&line).split(['\n', '\r']) {
                this.add(line, &mut codecs, &mut is_estimated);
            }
        }
        this
    }

    /// Adds a line. `codecs` are those of streams that are not audio.
    fn add(&mut self, line: &str, codecs: &mut Vec<String>, is_estimated: &mut bool) {
        let Some((context, level, text)) = parts(line) else { return };
        match level {
            "error" | "fatal" | "panic" => {
                if context.is_some_and(|context| codecs.iter().any(|codec| codec == context)) {
                    return;
                }
                self.add_error(context, level, text);
            }
            "warning" => {
                self.damaged_packets += u64::from(text.contains(": corrupt input packet"));
                *is_estimated |= text.starts_with("Estimating duration");
            }
            _ => self.add_information(text, codecs, is_estimated),
        }
    }

    fn add_error(&mut self, context: Option<&str>, level: &str, text: &str) {
        self.errors += 1;
        let undecoded = ["Error while decoding", "Error submitting packet to decoder"];
        self.damaged_packets += u64::from(undecoded.iter().any(|words| text.contains(words)));
        self.ends_early |= text.contains("ended prematurely") || text.contains("partial file");
        if text.starts_with("Format not on whitelist") {
            let format = context.unwrap_or("unknown");
            self.reason = Some(format!("files of the format {format} are not read"));
            self.weight = Weight::Cause;
            return;
        }
        if text.contains("moov atom not found") {
            (self.reason, self.weight) = (Some(NO_INDEX.to_owned()), Weight::Cause);
            return;
        }
        let weight = match level {
            _ if is_of_system(text) => Weight::Cause,
            _ if is_consequence(text) => Weight::Consequence,
            "error" => Weight::Error,
            _ => Weight::Fatal,
        };
        if self.reason.is_none() || weight > self.weight {
            (self.reason, self.weight) = (Some(text.trim().to_owned()), weight);
        }
    }

    fn add_information(&mut self, text: &str, codecs: &mut Vec<String>, is_estimated: &mut bool) {
        let line = text.trim_start();
        if line.starts_with("Input #") {
            self.inputs.push(Input::default());
            self.in_output = false;
        }
        self.in_output |= line.starts_with("Output #") || line.starts_with("Stream mapping");
        let Some(input) = self.inputs.last_mut().filter(|_| !self.in_output) else { return };
        if let Some(rest) = line.strip_prefix("Duration: ") {
            input.duration_seconds = seconds(rest).filter(|_| !std::mem::take(is_estimated));
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
                codecs.extend(codec.filter(|_| kind != StreamKind::Audio).map(str::to_owned));
            }
        }
    }
}

/// The format that keeps the samples of a stream, by its codec, its decoded samples and their bits, such as `s32 (24 bit)`.
fn sample_format(description: &str) -> Option<SampleFormat> {
    let (_, description) = description.split_once(": ")?;
    // Lossy codecs decode to floats, too.
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

/// Who reports, if it is named; at which level; and what.
fn parts(line: &str) -> Option<(Option<&str>, &str, &str)> {
    let line = line.trim_end().strip_prefix('[')?;
    let (first, rest) = line.split_once("] ")?;
    match first.split_once(" @ ") {
        Some((context, _)) => {
            let (level, text) = rest.strip_prefix('[')?.split_once("] ")?;
            Some((context.split(',').next(), level, text))
        }
        None => Some((None, first, rest)),
    }
}

/// Whether a message is the system's of why a file cannot be written.
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

/// Whether a message only says that there was another one.
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

/// Seconds of a time at the start of a text, up to a comma.
fn seconds(text: &str) -> Option<f64> {
    parse_time(text.split(',').next()?.trim())
}

impl Report {
    /// Whether the system has refused to write a file, whatever else happened.
    pub fn is_unwritten(&self) -> bool {
        self.reason.as_deref().is_some_and(is_of_system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_durations_are_read_of_every_input() {
        let text = "[info] Input #0, wav, from 'pipe:0':\n\
             [info]   Duration: N/A, bitrate: 512 kb/s\n\
             [info]   Stream #0:0: Audio: pcm_f32le ([3][0][0][0] / 0x0003), 16000 Hz\n\
             [info] Input #1, mov,mp4,m4a,3gp,3g2,mj2, from 'file:/dev/fd/3':\n\
             [info]   Duration: 01:00:04.06, start: 0.000000, bitrate: 103 kb/s\n\
             [info]   Stream #1:0[0x1](und): Audio: aac (LC) (mp4a / 0x6134706D), 16000 Hz, mono\n\
             [info]   Stream #1:1[0x0]: Video: png, rgb24(pc), 64x64, 90k tbr (attached pic)\n\
             [info]   Stream #1:2(eng): Video: h264 (High), yuv420p\n\
             [info]   Stream #1:3: Subtitle: mov_text\n\
             [info] Output #0, null, to 'pipe:':\n\
             [info]   Duration: 00:00:09.00\n\
             [info]   Stream #0:0: Audio: pcm_s16le\n\
             [h264 @ 0x5] [error] mmco: unref short failure\n";
        let report = Report::read(text.as_bytes());
        let kinds = |input: &Input| input.streams.iter().map(|stream| stream.kind).collect::<Vec<_>>();
        let [sound, film] = &report.inputs[..] else { panic!("{report:?}") };
        assert_eq!((sound.duration_seconds, kinds(sound)), (None, vec![StreamKind::Audio]));
        assert_eq!(film.duration_seconds, Some(3604.06));
        use StreamKind::{Audio, Picture, Subtitles, Video};
        assert_eq!(kinds(film), [Audio, Picture, Video, Subtitles(SubtitleKind::TimedText)]);
        assert_eq!((report.errors, &report.reason), (0, &None), "video is not decoded");
    }

    #[test]
    fn errors_are_counted_and_their_cause_is_kept() {
        let text = "[asf @ 0x1] [warning] Estimating duration from bitrate, this may be inaccurate\n\
             [info] Input #0, asf, from 'file:/dev/fd/0':\n\
             [info]   Duration: 00:00:02.08, start: 0.000000, bitrate: 130 kb/s\n\
             [info]   Stream #0:0: Audio: wmav2\n\
             [warning] file:/dev/fd/0: corrupt input packet in stream 0\n\
             [wmav2 @ 0x2] [error] Input packet size too small (240 < 512)\n\
             [error] Error while decoding stream #0:0: Invalid data found when processing input\n\
             [matroska,webm @ 0x3] [error] File ended prematurely\n";
        let report = Report::read(text.as_bytes());
        assert_eq!(report.inputs[0].duration_seconds, None, "an estimate is no declaration");
        assert_eq!((report.damaged_packets, report.errors, report.ends_early), (2, 3, true));
        let full =
            "[error] av_interleaved_write_frame(): No space left on device\n[error] Error closing file x\n";
        let full = Report::read(full.as_bytes());
        assert!(full.is_unwritten() && full.reason.unwrap().contains("No space"));
        let list =
            "[hls @ 0x1] [error] Format not on whitelist 'wav'\n[error] file:/dev/fd/0: Invalid argument\n";
        assert!(Report::read(list.as_bytes()).reason.unwrap().contains("format hls"));
        assert_eq!(Report::read(&[0xff; 100_000][..]), Report::default());
    }

    #[test]
    fn samples_keep_their_format() {
        use SampleFormat::{Float32, Float64, Int8, Int16, Int24, Int32};
        for (stream, format) in [
            ("Audio: pcm_u8, 8000 Hz, mono, u8, 64 kb/s", Some(Int8)),
            (
                "Audio: pcm_s24be (in24 / 0x34326E69), 48000 Hz, 5.1(side), s32 (24 bit), 2304 kb/s (default)",
                Some(Int24),
            ),
            ("Audio: tta ([1][0][0][0] / 0x0001), 44100 Hz, 2 channels, s16p", Some(Int16)),
            ("Audio: alac (alac / 0x63616C61), 48000 Hz, stereo, s32p (20 bit), 9 kb/s", Some(Int24)),
            ("Audio: wavpack, 48000 Hz, stereo, s32p", Some(Int32)),
            ("Audio: wavpack, 48000 Hz, stereo, fltp", Some(Float32)),
            ("Audio: pcm_f64le, 48000 Hz, stereo, dbl, 6144 kb/s", Some(Float64)),
            ("Audio: aac (HE-AAC) (mp4a / 0x6134706D), 48000 Hz, stereo, fltp, 48 kb/s", Some(Int16)),
            ("Audio: none (twos / 0x736F7774), 48000 Hz, stereo", None),
            ("Video: png, rgb24(pc), 64x64, 90k tbr", None),
        ] {
            assert_eq!(sample_format(stream), format, "{stream}");
        }
    }

    #[test]
    fn the_default_track_is_found_and_what_else_there_is() {
        let text = "[info] Input #0, mov,mp4,m4a,3gp,3g2,mj2, from 'file:/dev/fd/0':\n\
             [info]   Stream #0:0[0x1](und): Video: h264 (avc1 / 0x31637661), yuv444p, 78 kb/s (default)\n\
             [info]   Stream #0:1[0x2](deu): Audio: aac (LC) (mp4a / 0x6134706D), 16000 Hz, mono, 71 kb/s\n\
             [info]   Stream #0:2[0x3](eng): Audio: aac (LC) (mp4a / 0x6134706D), 16000 Hz, mono, 64 kb/s (default)\n\
             [info]   Stream #0:3(eng): Subtitle: hdmv_pgs_subtitle\n\
             [info]   Stream #0:4: Subtitle: ass (default)\n\
             [info]   Stream #0:5: Subtitle: dvb_teletext, 1x1\n\
             [info]   Stream #0:6: Attachment: ttf\n\
             [info]   Stream #0:7(eng): Data: none (gpmd / 0x646D7067), 29 kb/s (default)\n\
             [info]   Stream #0:8(eng): Data: none (tmcd / 0x64636D74)\n\
             [info]   Stream #0:9(eng): Data: bin_data (text / 0x74786574)\n";
        let input = &Report::read(text.as_bytes()).inputs[0];
        assert_eq!(input.audio().map(|track| track.index), Some(2));
        let kinds: Vec<StreamKind> = input.streams[3..].iter().map(|stream| stream.kind).collect();
        use StreamKind::{Attachment, Data, Other, Subtitles};
        let subtitles = [SubtitleKind::Bitmap, SubtitleKind::Text, SubtitleKind::Other].map(Subtitles);
        assert_eq!(kinds, [&subtitles[..], &[Attachment, Data, Other, Other]].concat());
        let unmarked = Report::read(text.replace(" (default)", "").as_bytes());
        assert_eq!(unmarked.inputs[0].audio().map(|track| track.index), Some(1));
        let silent = text.replace("Audio:", "Data:");
        assert!(Report::read(silent.as_bytes()).inputs[0].is_silent() && !input.is_silent());
        assert!(!Input::default().is_silent(), "nothing is known of it");
    }

    #[test]
    fn the_first_error_that_says_anything_is_the_reason() {
        let reason = |text: &str| Report::read(text.as_bytes()).reason.unwrap_or_default();
        let unheld = "[matroska @ 0x1] [error] Subtitle codec 94213 is not supported.\n\
             [error] Could not write header for output file #0 (incorrect codec parameters ?): Function not implemented\n\
             [error] Error initializing output stream 0:3 -- \n[error] \n[error] Conversion failed!\n";
        assert_eq!(reason(unheld), "Subtitle codec 94213 is not supported.");
        let unmapped = "[mp3 @ 0x1] [error] Header missing\n[fatal] Stream map '0:a:7' matches no streams.\n";
        assert_eq!(reason(unmapped), "Stream map '0:a:7' matches no streams.");
        assert_eq!(reason("[error] Conversion failed!\n"), "Conversion failed!", "better than nothing");
        let cut = "[mov @ 0x1] [error] moov atom not found\n[error] file:/dev/fd/0: Invalid data found\n";
        assert!(reason(cut).contains("untrunc"), "{}", reason(cut));
    }
}
