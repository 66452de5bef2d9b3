//! Output specification: container, sample format and channels.

use alphamf_samplers::random::SeedTree;
use alphamf_signal::{SampleFormat, Signal};
use std::fmt;
use std::path::Path;

/// The file formats that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Container {
    /// WAV, and RF64 from 4 GiB on.
    #[default]
    Wav,
    /// FLAC, at most 24 bits, 8 channels and 96 kHz.
    Flac,
    /// Samples alone, little-endian, interleaved.
    Raw,
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wav => "WAV",
            Self::Flac => "FLAC",
            Self::Raw => "raw samples",
        })
    }
}

impl Container {
    /// Returns the container for a file name: FLAC for `.flac`, otherwise WAV.
    #[must_use]
    pub fn from_path(path: impl AsRef<Path>) -> Self {
        let extension = path.as_ref().extension().unwrap_or_default();
        if extension.eq_ignore_ascii_case("flac") { Self::Flac } else { Self::Wav }
    }
}

/// Triangular dither of ±1 step, added before rounding to integers. Digital silence stays silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dither {
    pub(super) seeds: SeedTree,
    pub(super) negated: bool,
}

impl Dither {
    /// Dither drawn from `seeds`.
    #[must_use]
    pub fn new(seeds: SeedTree) -> Self {
        Self { seeds, negated: false }
    }

    /// Returns the dither with the opposite sign. Two parts of a recording that are rounded with opposite dither add up
    /// to its codes.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { negated: !self.negated, ..self }
    }
}

/// Output format of a [`Writer`](crate::Writer).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputSpec {
    /// Sample rate in Hz.
    pub sample_rate: u32,
    /// Number of channels.
    pub channels: usize,
    /// Sample format. FLAC stores 24-bit integers in place of 32 bits.
    pub format: SampleFormat,
    /// The container.
    pub container: Container,
    /// Samples per channel, if known beforehand. A WAV header then needs no room for lengths beyond 4 GiB; the number of
    /// samples written may differ.
    pub length: Option<u64>,
    /// Speaker positions, as the bits of `dwChannelMask`; `None` if unknown, never guessed from the number of channels. FLAC
    /// implies default positions for up to eight channels and stores others in a tag.
    pub channel_mask: Option<u32>,
    /// Dither of integers; none if not given.
    pub dither: Option<Dither>,
}

impl OutputSpec {
    /// The specification that keeps the format of a signal.
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
