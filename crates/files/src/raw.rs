//! Recordings without a header.

use super::sample::{Encoding, Kind};
use alphamf_signal::{InvalidSignal, MAX_CHANNELS, SampleFormat, check_sample_rate};
use std::str::FromStr;
use thiserror::Error;

/// Format of a recording without a header, written `RATE:CHANNELS:FORMAT`.
///
/// The rate is in Hz. The format is one of `u8`, `s8`, `s16`, `s24`, `s32`, `f32`, `f64`, `alaw` and `mulaw`. Formats
/// of several bytes may end in `le` (little-endian, the default) or `be` (big-endian).
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

/// Reason why a text is not a [`RawFormat`].
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum InvalidRawFormat {
    /// The text does not consist of three parts.
    #[error("raw format {0:?}: expected RATE:CHANNELS:FORMAT, such as 16000:1:s16")]
    Parts(String),
    /// The sample rate is not a number or out of range.
    #[error("raw format with a sample rate of {found:?}: {reason}")]
    SampleRate {
        /// The text found.
        found: String,
        /// The reason.
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

impl RawFormat {
    /// Output format that encodes the samples in identical bytes. `None` for `s8`, `alaw`, `mulaw` and big-endian
    /// samples, which no output has.
    ///
    /// ```
    /// use alphamf_files::RawFormat;
    /// use alphamf_signal::SampleFormat;
    /// let output = |text: &str| text.parse::<RawFormat>().unwrap().output_format();
    /// assert_eq!(output("16000:1:s16"), Some(SampleFormat::Int16));
    /// assert_eq!(output("16000:1:s16be"), None);
    /// assert_eq!(output("8000:1:mulaw"), None);
    /// ```
    #[must_use]
    pub fn output_format(&self) -> Option<SampleFormat> {
        let Encoding { kind, big_endian } = self.encoding;
        let is_kept = !big_endian && !matches!(kind, Kind::Signed8 | Kind::ALaw | Kind::MuLaw);
        is_kept.then(|| self.encoding.format())
    }
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
