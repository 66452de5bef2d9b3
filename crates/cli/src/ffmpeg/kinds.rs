//! File formats that ffmpeg writes for this program, and those that it may read.

use super::report::SubtitleKind;
use alphamf::signal::SampleFormat;
use std::path::Path;

/// A kind of file that ffmpeg writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    extension: &'static str,
    pub(super) muxer: &'static str,
    /// Options of the encoder.
    pub(super) encoder: &'static [&'static str],
    /// Whether it holds video, which is copied from the input.
    has_video: bool,
}

const AAC: &[&str] = &["-c:a", "aac", "-b:a", "192k"];
const OPUS: &[&str] = &["-c:a", "libopus", "-b:a", "128k"];
const VORBIS: &[&str] = &["-c:a", "libvorbis", "-q:a", "6"];
const MP3: &[&str] = &["-c:a", "libmp3lame", "-q:a", "2"];
const WMA: &[&str] = &["-c:a", "wmav2", "-b:a", "192k"];
/// AIFF's own chunks hold only a title and a comment.
const AIFF: &[&str] = &["-write_id3v2", "1"];

const fn audio(extension: &'static str, muxer: &'static str, encoder: &'static [&'static str]) -> Kind {
    Kind { extension, muxer, encoder, has_video: false }
}

const fn video(extension: &'static str, muxer: &'static str, encoder: &'static [&'static str]) -> Kind {
    Kind { extension, muxer, encoder, has_video: true }
}

const KINDS: [Kind; 16] = [
    audio("mp3", "mp3", MP3),
    audio("m4a", "ipod", AAC),
    audio("aac", "adts", AAC),
    audio("opus", "opus", OPUS),
    audio("ogg", "ogg", VORBIS),
    audio("oga", "ogg", VORBIS),
    // Not AAC: ffmpeg does not store its encoder delay in Matroska.
    audio("mka", "matroska", VORBIS),
    audio("wma", "asf", WMA),
    audio("aif", "aiff", AIFF),
    audio("aiff", "aiff", AIFF),
    video("mp4", "mp4", AAC),
    video("m4v", "mp4", AAC),
    video("mov", "mov", AAC),
    video("mkv", "matroska", AAC),
    video("webm", "webm", OPUS),
    video("avi", "avi", MP3),
];

/// The demuxers that may read an input: formats that hold their audio and video themselves. Playlists and scripts (hls,
/// dash, concat, sdp), images, generators (lavfi) and devices are not among them, as they open other files.
pub(super) const DEMUXERS: &str = "aac,ac3,adx,aiff,amr,amrnb,amrwb,ape,asf,au,avi,caf,dsf,dts,dtshd,eac3,flac,flv,\
     gsm,iff,ircam,matroska,mlp,mov,mp3,mpc,mpc8,mpeg,mpegts,mxf,nistsphere,nut,ogg,oma,rm,sox,tak,truehd,tta,voc,w64,wav,\
     webm,wsaud,wv,xwma";

impl Kind {
    /// The kind for a file's extension; none for unknown extensions and the formats that this program writes itself.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        KINDS.into_iter().find(|kind| extension.eq_ignore_ascii_case(kind.extension))
    }

    /// Whether it holds video.
    pub fn has_video(self) -> bool {
        self.has_video
    }

    /// The encoder that stores samples of this format unchanged; none if the kind is lossy.
    pub(super) fn pcm(self, format: SampleFormat) -> Option<&'static str> {
        (self.muxer == "aiff").then_some(match format {
            SampleFormat::Int8 => "pcm_s8",
            SampleFormat::Int16 => "pcm_s16be",
            SampleFormat::Int24 => "pcm_s24be",
            SampleFormat::Int32 => "pcm_s32be",
            SampleFormat::Float32 => "pcm_f32be",
            SampleFormat::Float64 => "pcm_f64be",
        })
    }

    /// Whether it holds a cover picture beside the audio.
    pub(super) fn has_cover(self) -> bool {
        ["mp3", "ipod"].contains(&self.muxer)
    }

    /// Codec of a video's subtitles in this kind of file; none if it cannot hold them.
    pub(super) fn subtitle_codec(self, kind: SubtitleKind) -> Option<&'static str> {
        use SubtitleKind::{Bitmap, Text, TimedText};
        match (self.muxer, kind) {
            ("matroska", Text | Bitmap) => Some("copy"),
            ("matroska", TimedText) => Some("srt"),
            ("mp4" | "mov", Text | TimedText) => Some("mov_text"),
            ("webm", Text | TimedText) => Some("webvtt"),
            _ => None,
        }
    }

    /// Whether H.264 without MP4's tag, such as from Matroska, must be converted to the form with start codes.
    pub(super) fn needs_start_codes(self) -> bool {
        self.muxer == "avi"
    }

    /// Whether it holds attached files, such as fonts of subtitles.
    pub(super) fn has_attachments(self) -> bool {
        self.has_video && self.muxer == "matroska"
    }

    /// Value of `-af` that compensates the encoder delay, for containers that do not store it.
    pub(super) fn delay_filter(self, sample_rate: u32) -> Option<String> {
        /// Delay of an MP3 encoder and decoder, samples.
        const MP3_DELAY: u32 = 576 + 529;
        match self.muxer {
            // With video, losing the start of the audio is better than delaying all of it.
            "avi" => Some(format!("atrim=start_sample={MP3_DELAY},asetpts=PTS-STARTPTS")),
            "asf" => {
                // Decoders drop the first block.
                let block = match sample_rate {
                    0..=16_000 => 512,
                    16_001..=22_050 => 1024,
                    _ => 2048,
                };
                Some(format!("adelay=delays={block}S:all=1"))
            }
            _ => None,
        }
    }

    /// Maximum number of channels of the encoder; none if no recording exceeds it.
    pub fn max_channels(self) -> Option<usize> {
        (self.encoder == MP3 || self.encoder == WMA).then_some(2)
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, ".{}", self.extension)
    }
}
