//! Uncompressed samples as bytes, and recordings that are nothing but such bytes.

use super::error::ReadError;
use super::metadata::Metadata;
use super::wav::{Rest, WavHeader};
use alphamf_signal::{InvalidSignal, MAX_CHANNELS, SampleFormat, check_sample_rate};
use std::io::{self, Read};
use std::str::FromStr;
use thiserror::Error;

/// How one sample is encoded in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encoding {
    pub(super) kind: Kind,
    pub(super) big_endian: bool,
}

/// The number a sample stands for, apart from the order of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Unsigned8,
    Signed8,
    Signed16,
    Signed24,
    Signed32,
    /// 24 bits in the lower three bytes of four, which some recorders write.
    Signed24In32,
    Float32,
    Float64,
    ALaw,
    MuLaw,
}

impl Encoding {
    /// Bytes a sample takes.
    pub(super) fn bytes(self) -> usize {
        match self.kind {
            Kind::Unsigned8 | Kind::Signed8 | Kind::ALaw | Kind::MuLaw => 1,
            Kind::Signed16 => 2,
            Kind::Signed24 => 3,
            Kind::Signed32 | Kind::Signed24In32 | Kind::Float32 => 4,
            Kind::Float64 => 8,
        }
    }

    /// The format that keeps these samples.
    pub(super) fn format(self) -> SampleFormat {
        match self.kind {
            Kind::Unsigned8 | Kind::Signed8 => SampleFormat::Int8,
            Kind::Signed16 | Kind::ALaw | Kind::MuLaw => SampleFormat::Int16,
            Kind::Signed24 | Kind::Signed24In32 => SampleFormat::Int24,
            Kind::Signed32 => SampleFormat::Int32,
            Kind::Float32 => SampleFormat::Float32,
            Kind::Float64 => SampleFormat::Float64,
        }
    }

    /// The value of a sample; `bytes` holds [`Encoding::bytes`] of them.
    fn value(self, bytes: &[u8]) -> f32 {
        // Little-endian, in the lower bytes.
        let mut word = [0; 8];
        let word_bytes = &mut word[..bytes.len()];
        word_bytes.copy_from_slice(bytes);
        if self.big_endian {
            word_bytes.reverse();
        }
        let word = u64::from_le_bytes(word);
        // In the upper bits, so that a cast to i32 finds the sign.
        let upper = |bits: u32| ((word << (32 - bits)) as u32).cast_signed();
        let integer = match self.kind {
            Kind::Float32 => return f32::from_bits(word as u32),
            Kind::Float64 => return f64::from_bits(word) as f32,
            Kind::Unsigned8 => upper(8) ^ i32::MIN,
            Kind::Signed8 => upper(8),
            Kind::Signed16 => upper(16),
            Kind::Signed24 | Kind::Signed24In32 => upper(24),
            Kind::Signed32 => upper(32),
            Kind::ALaw => i32::from(a_law(word as u8)) << 16,
            Kind::MuLaw => i32::from(mu_law(word as u8)) << 16,
        };
        (f64::from(integer) / 2_f64.powi(31)) as f32
    }
}

/// The 16-bit value of an A-law code (ITU-T G.711, table 1).
fn a_law(code: u8) -> i16 {
    let code = code ^ 0x55;
    let mantissa = i16::from(code & 0x0f) << 4;
    let magnitude = match (code >> 4) & 0x07 {
        0 => mantissa + 0x008,
        segment => (mantissa + 0x108) << (segment - 1),
    };
    if code & 0x80 == 0 { -magnitude } else { magnitude }
}

/// The 16-bit value of a mu-law code (ITU-T G.711, table 2).
fn mu_law(code: u8) -> i16 {
    let code = !code;
    let mantissa = i16::from(code & 0x0f) << 3;
    let magnitude = ((mantissa + 0x84) << ((code >> 4) & 0x07)) - 0x84;
    if code & 0x80 == 0 { magnitude } else { -magnitude }
}

/// Decodes interleaved samples from a stream of bytes.
pub(super) struct PcmDecoder {
    bytes: Box<dyn Read + Send + Sync>,
    encoding: Encoding,
    channels: usize,
    /// Samples per channel still to come in this chunk, if that is known.
    remaining: Option<u64>,
    /// Samples per channel that there should be, if that is known.
    length: Option<u64>,
    /// Samples per channel so far.
    position: u64,
    /// How the file goes on behind this chunk.
    rest: Option<Rest>,
    /// Whether the length counts all chunks.
    length_of_all: bool,
    /// Whether a fraction of a sample at the end of a stream of unknown length is an error.
    whole_samples: bool,
    /// Bytes of a sample at the end that is not whole.
    fraction: usize,
    buffer: Vec<u8>,
}

impl PcmDecoder {
    /// A decoder of the samples behind a header; `length` of all its chunks, in samples per channel, if that is known.
    pub(super) fn new(bytes: Box<dyn Read + Send + Sync>, header: &WavHeader, length: Option<u64>) -> Self {
        Self {
            bytes,
            encoding: header.encoding,
            channels: header.channels,
            remaining: header.length,
            length: length.or(header.length),
            position: 0,
            rest: header.rest,
            length_of_all: length.is_some(),
            whole_samples: false,
            fraction: 0,
            buffer: Vec::new(),
        }
    }

    /// A decoder of bytes without any header.
    pub(super) fn raw(bytes: Box<dyn Read + Send + Sync>, raw: RawFormat) -> Self {
        Self {
            bytes,
            encoding: raw.encoding,
            channels: raw.channels,
            remaining: None,
            length: None,
            position: 0,
            rest: None,
            length_of_all: false,
            whole_samples: true,
            fraction: 0,
            buffer: Vec::new(),
        }
    }

    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Goes on with the next chunk of samples.
    fn next_chunk(&mut self) -> Result<(), ReadError> {
        let Some(rest) = self.rest.take() else { return Ok(()) };
        let frame_bytes = (self.encoding.bytes() * self.channels) as u64;
        // What is said behind the first samples of a stream comes too late for its output.
        if let Some(further) = rest.next(&mut self.bytes, frame_bytes, &mut Metadata::default())? {
            (self.remaining, self.rest) = (Some(further.length), Some(further.rest));
            if let (false, Some(length)) = (self.length_of_all, &mut self.length) {
                *length = length.saturating_add(further.length);
            }
        }
        Ok(())
    }

    /// Appends some samples to every channel, none at the end.
    pub(super) fn decode(&mut self, channels: &mut [Vec<f32>]) -> Result<(), ReadError> {
        const CHUNK: usize = 1 << 16;
        while self.remaining == Some(0) && self.rest.is_some() {
            self.next_chunk()?;
        }
        let sample_bytes = self.encoding.bytes();
        let frame_bytes = sample_bytes * self.channels;
        let frames = self.remaining.unwrap_or(u64::MAX).min((CHUNK / frame_bytes).max(1) as u64);
        self.buffer.resize(frames as usize * frame_bytes, 0);
        let mut filled = 0;
        while filled < self.buffer.len() {
            match self.bytes.read(&mut self.buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::Io(error)),
            }
            // What a live stream has so far must not wait for more.
            if self.remaining.is_none() && filled.is_multiple_of(frame_bytes) {
                break;
            }
        }
        let found = filled / frame_bytes;
        for frame in self.buffer[..found * frame_bytes].chunks_exact(frame_bytes) {
            for (channel, sample) in channels.iter_mut().zip(frame.chunks_exact(sample_bytes)) {
                channel.push(self.encoding.value(sample));
            }
        }
        self.position += found as u64;
        if let Some(remaining) = &mut self.remaining {
            *remaining -= found as u64;
        }
        if filled > 0 {
            self.fraction = filled % frame_bytes;
        }
        // What is there is given out first.
        if found > 0 {
            return Ok(());
        }
        if self.remaining.is_some_and(|remaining| remaining > 0) {
            let expected = self.length.unwrap_or_default();
            return Err(ReadError::Truncated { expected, found: self.position });
        }
        if self.whole_samples && self.fraction > 0 {
            return Err(ReadError::PartialSample { found: self.fraction, expected: frame_bytes });
        }
        Ok(())
    }
}

/// What a recording without a header holds, written `RATE:CHANNELS:FORMAT`.
///
/// The rate is in Hz. The format is one of `u8`, `s8`, `s16`, `s24`, `s32`, `f32`, `f64`, `alaw`
/// and `mulaw`; those of several bytes may end in `le` (little-endian, as without it) or `be`.
///
/// ```
/// use alphamf_files::RawFormat;
/// assert!("16000:1:s16".parse::<RawFormat>().is_ok());
/// assert!("48000:2:f32be".parse::<RawFormat>().is_ok());
/// let error = "16000:1:s17".parse::<RawFormat>().unwrap_err();
/// assert!(error.to_string().contains("s17"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawFormat {
    pub(super) sample_rate: u32,
    pub(super) channels: usize,
    pub(super) encoding: Encoding,
}

/// Why a text is not a [`RawFormat`].
#[derive(Debug, Clone, PartialEq, Error)]
pub enum InvalidRawFormat {
    /// It does not consist of three parts.
    #[error("raw format {0:?}: expected RATE:CHANNELS:FORMAT, such as 16000:1:s16")]
    Parts(String),
    /// The sample rate is not a number or out of range.
    #[error("raw format with a sample rate of {found:?}: {reason}")]
    SampleRate {
        /// What stands there.
        found: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The number of channels is not a number or out of range.
    #[error("raw format with {0:?} channels: expected a number from 1 to {MAX_CHANNELS}")]
    Channels(String),
    /// The sample format is unknown.
    #[error(
        "raw format with samples of {0:?}: \
         expected u8, s8, s16, s24, s32, f32, f64 (each but the first two with or without le or be), \
         alaw or mulaw"
    )]
    Format(String),
}

impl FromStr for RawFormat {
    type Err = InvalidRawFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split(':').collect();
        let [rate, channels, format] = parts[..] else {
            return Err(InvalidRawFormat::Parts(text.to_owned()));
        };
        let in_rate = |reason: String| InvalidRawFormat::SampleRate { found: rate.to_owned(), reason };
        let sample_rate = rate.parse().map_err(|_| in_rate("expected a number of Hz".into()))?;
        check_sample_rate(sample_rate).map_err(|e: InvalidSignal| in_rate(e.to_string()))?;
        let channels = match channels.parse() {
            Ok(channels @ 1..=MAX_CHANNELS) => channels,
            _ => return Err(InvalidRawFormat::Channels(channels.to_owned())),
        };
        let unknown = || InvalidRawFormat::Format(format.to_owned());
        let (kind, big_endian) = match (format.strip_suffix("le"), format.strip_suffix("be")) {
            (Some(kind), _) => (kind, Some(false)),
            (_, Some(kind)) => (kind, Some(true)),
            _ => (format, None),
        };
        let kind = match (kind, big_endian) {
            ("u8", None) => Kind::Unsigned8,
            ("s8", None) => Kind::Signed8,
            ("alaw", None) => Kind::ALaw,
            ("mulaw", None) => Kind::MuLaw,
            ("s16", _) => Kind::Signed16,
            ("s24", _) => Kind::Signed24,
            ("s32", _) => Kind::Signed32,
            ("f32", _) => Kind::Float32,
            ("f64", _) => Kind::Float64,
            _ => return Err(unknown()),
        };
        let encoding = Encoding { kind, big_endian: big_endian.unwrap_or(false) };
        Ok(Self { sample_rate, channels, encoding })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(kind: Kind, bytes: &[u8]) -> f32 {
        let little = Encoding { kind, big_endian: false };
        assert_eq!(bytes.len(), little.bytes());
        let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
        let big = Encoding { kind, big_endian: true };
        assert_eq!(little.value(bytes).to_bits(), big.value(&reversed).to_bits());
        little.value(bytes)
    }

    #[test]
    fn samples_have_the_value_of_their_code() {
        for (kind, bytes, expected) in [
            (Kind::Unsigned8, &[0][..], -1.0),
            (Kind::Unsigned8, &[128], 0.0),
            (Kind::Unsigned8, &[255], 127.0 / 128.0),
            (Kind::Signed8, &[0x80], -1.0),
            (Kind::Signed8, &[1], 1.0 / 128.0),
            (Kind::Signed16, &[0, 0x80], -1.0),
            (Kind::Signed16, &[0xff, 0x7f], 32_767.0 / 32_768.0),
            (Kind::Signed24, &[0xff, 0xff, 0xff], -1.0 / 8_388_608.0),
            (Kind::Signed24, &[0, 0, 0x40], 0.5),
            (Kind::Signed24In32, &[0, 0, 0xc0, 0], -0.5),
            (Kind::Signed32, &[0, 0, 0, 0xc0], -0.5),
            (Kind::Float32, &1.5_f32.to_le_bytes(), 1.5),
            (Kind::Float64, &(-2.5_f64).to_le_bytes(), -2.5),
            // The extremes and the smallest steps of G.711.
            (Kind::ALaw, &[0xaa], 32_256.0 / 32_768.0),
            (Kind::ALaw, &[0x2a], -32_256.0 / 32_768.0),
            (Kind::ALaw, &[0xd5], 8.0 / 32_768.0),
            (Kind::ALaw, &[0x55], -8.0 / 32_768.0),
            (Kind::MuLaw, &[0x80], 32_124.0 / 32_768.0),
            (Kind::MuLaw, &[0x00], -32_124.0 / 32_768.0),
            (Kind::MuLaw, &[0xff], 0.0),
            (Kind::MuLaw, &[0xfe], 8.0 / 32_768.0),
        ] {
            assert_eq!(value(kind, bytes), expected, "{kind:?} {bytes:?}");
        }
    }

    #[test]
    fn raw_formats_are_parsed_or_refused_by_name() {
        let raw: RawFormat = "8000:3:s24be".parse().unwrap();
        assert_eq!((raw.sample_rate, raw.channels), (8_000, 3));
        assert_eq!(raw.encoding, Encoding { kind: Kind::Signed24, big_endian: true });
        for text in ["", "16000", "16000:1", "16000:1:s16:x"] {
            assert_eq!(text.parse::<RawFormat>(), Err(InvalidRawFormat::Parts(text.into())));
        }
        for text in ["0:1:s16", "7999:1:s16", "200000:1:s16", "x:1:s16", "-1:1:s16"] {
            assert!(matches!(text.parse::<RawFormat>(), Err(InvalidRawFormat::SampleRate { .. })));
        }
        for text in ["8000:0:s16", "8000:65536:s16", "8000::s16", "8000:-1:s16"] {
            assert!(matches!(text.parse::<RawFormat>(), Err(InvalidRawFormat::Channels(_))));
        }
        for text in ["8000:1:", "8000:1:u8le", "8000:1:le", "8000:1:s16lebe", "8000:1:S16"] {
            assert!(matches!(text.parse::<RawFormat>(), Err(InvalidRawFormat::Format(_))), "{text}");
        }
    }
}
