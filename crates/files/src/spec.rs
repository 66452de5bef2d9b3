//! What is written: the kind of file, the format of its samples, and their channels.

use alphamf_samplers::random::SeedTree;
use alphamf_signal::{SampleFormat, Signal};
use std::path::Path;

/// The file formats that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Container {
    /// WAV, and RF64 from 4 GiB on.
    #[default]
    Wav,
    /// FLAC, at most 24 bits, 8 channels and 96 kHz.
    Flac,
    /// Samples alone, little-endian, the channels in turn.
    Raw,
}

impl Container {
    /// The format that goes with a file's name: FLAC for `.flac`, otherwise WAV.
    #[must_use]
    pub fn from_path(path: impl AsRef<Path>) -> Self {
        let extension = path.as_ref().extension().unwrap_or_default();
        if extension.eq_ignore_ascii_case("flac") { Self::Flac } else { Self::Wav }
    }
}

/// What a [`Writer`](crate::Writer) writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputSpec {
    /// Sample rate in Hz.
    pub sample_rate: u32,
    /// Number of channels.
    pub channels: usize,
    /// How samples are stored. FLAC has 24-bit integers in place of 32 bits.
    pub format: SampleFormat,
    /// The kind of file.
    pub container: Container,
    /// Samples per channel, if known beforehand. This saves a WAV file a header with room for
    /// lengths beyond 4 GiB; another number may be written in the end.
    pub length: Option<u64>,
    /// Loudspeakers of the channels, as the bits of `dwChannelMask`; `None` if unknown, and never guessed from their
    /// number. FLAC knows the usual arrangements of up to eight channels and names any other.
    pub channel_mask: Option<u32>,
    /// Source of the triangular dither of ±1 step that is added before rounding to integers; none if not given. Digital
    /// silence stays silent.
    pub dither: Option<SeedTree>,
}

impl OutputSpec {
    /// A signal as it is, in a file of this kind.
    pub(super) fn of(signal: &Signal, container: Container) -> Self {
        Self {
            sample_rate: signal.sample_rate(),
            channels: signal.channels().len(),
            format: signal.format(),
            container,
            length: Some(signal.len() as u64),
            channel_mask: None,
            dither: None,
        }
    }
}
