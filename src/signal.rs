//! Recordings: the samples themselves.

use std::ops::RangeInclusive;
use thiserror::Error;

/// The sample rates that are accepted, in Hz.
pub const SAMPLE_RATES: RangeInclusive<u32> = 8_000..=192_000;

/// The most channels that are accepted. A header of 44 bytes may announce 65,535, each of which takes a transform's
/// worth of memory however short the recording is.
pub const MOST_CHANNELS: usize = 256;

/// The most samples per second, all channels together, of a recording that is denoised: 64 channels at 48 kHz, or 16 at
/// 192 kHz. Memory does not grow with a recording's length, but with these, to about 1 GB.
pub const MOST_SAMPLES_PER_SECOND: u64 = 64 * 48_000;

/// The voice has nothing below this, Hz; many a clean recording has rumble there.
pub(crate) const LOWEST_VOICE_HERTZ: f64 = 65.0;

/// How a sample is stored in a file.
///
/// Integer formats of `n` bits map [-1, 1) onto their whole range: the value of code `k` is
/// `k / 2^(n-1)`, so that -1 is the lowest code and +1 lies one step above the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleFormat {
    /// 8-bit integer, stored with an offset of 128.
    Int8,
    /// 16-bit integer.
    Int16,
    /// 24-bit integer, three bytes a sample.
    Int24,
    /// 32-bit integer. Samples are held as `f32`, so only the upper 24 bits survive.
    Int32,
    /// 32-bit IEEE floating point; values beyond ±1 are kept.
    Float32,
    /// 64-bit IEEE floating point. Samples are held as `f32`, so only that much of them survives.
    Float64,
}

impl SampleFormat {
    /// Bits a sample takes in a file.
    #[must_use]
    pub fn bits(self) -> u16 {
        match self {
            Self::Int8 => 8,
            Self::Int16 => 16,
            Self::Int24 => 24,
            Self::Int32 | Self::Float32 => 32,
            Self::Float64 => 64,
        }
    }

    /// Whether samples are stored as integers.
    #[must_use]
    pub fn is_integer(self) -> bool {
        !matches!(self, Self::Float32 | Self::Float64)
    }
}

impl std::fmt::Display for SampleFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-bit {}", self.bits(), if self.is_integer() { "integer" } else { "float" })
    }
}

/// A recording: finite samples, full scale ±1, in one vector per channel.
///
/// There are one to [`MOST_CHANNELS`] channels and at least one sample, every channel has the same number of samples,
/// and the sample rate lies in [`SAMPLE_RATES`].
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    sample_rate: u32,
    format: SampleFormat,
    channels: Vec<Vec<f32>>,
}

impl Signal {
    /// A signal from its channels; `sample_rate` in Hz, `format` as it will be written.
    ///
    /// # Errors
    /// The first thing wrong: the sample rate, no channel or too many, no sample, channels of unequal length,
    /// or a sample that is not finite (with its channel and position).
    pub fn new(
        sample_rate: u32,
        format: SampleFormat,
        channels: Vec<Vec<f32>>,
    ) -> Result<Self, InvalidSignal> {
        check_sample_rate(sample_rate)?;
        check_channels(channels.len())?;
        let length = channels[0].len();
        if length == 0 {
            return Err(InvalidSignal::NoSamples);
        }
        for (channel, samples) in channels.iter().enumerate() {
            if samples.len() != length {
                return Err(InvalidSignal::UnequalChannels {
                    channel,
                    found: samples.len(),
                    expected: length,
                });
            }
            if let Some(sample) = samples.iter().position(|x| !x.is_finite()) {
                return Err(InvalidSignal::NotFinite { channel, sample, value: samples[sample] });
            }
        }
        Ok(Self { sample_rate, format, channels })
    }

    /// Other samples at the same sample rate and in the same format, such as this signal denoised.
    ///
    /// # Errors
    /// As for [`Signal::new`].
    pub fn with_channels(&self, channels: Vec<Vec<f32>>) -> Result<Self, InvalidSignal> {
        Self::new(self.sample_rate, self.format, channels)
    }

    /// The same samples, to be written in `format`.
    #[must_use]
    pub fn with_format(self, format: SampleFormat) -> Self {
        Self { format, ..self }
    }

    /// Sample rate in Hz.
    #[must_use]
    pub fn sample_rate(&self) -> u32 {
        self.sample_rate
    }

    /// The format the samples came in, and will be written in.
    #[must_use]
    pub fn format(&self) -> SampleFormat {
        self.format
    }

    /// The samples of every channel.
    #[must_use]
    pub fn channels(&self) -> &[Vec<f32>] {
        &self.channels
    }

    /// Takes the samples of every channel out.
    #[must_use]
    pub fn into_channels(self) -> Vec<Vec<f32>> {
        self.channels
    }

    /// Samples per channel, at least one.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a signal is never empty")]
    pub fn len(&self) -> usize {
        self.channels[0].len()
    }

    /// Duration in seconds.
    #[must_use]
    pub fn duration(&self) -> f64 {
        self.len() as f64 / f64::from(self.sample_rate)
    }
}

/// Checks that a sample rate in Hz is one of [`SAMPLE_RATES`].
///
/// # Errors
/// If it is not.
pub fn check_sample_rate(sample_rate: u32) -> Result<(), InvalidSignal> {
    if SAMPLE_RATES.contains(&sample_rate) {
        Ok(())
    } else {
        Err(InvalidSignal::SampleRate { found: sample_rate })
    }
}

/// Checks that there are channels, and no more than [`MOST_CHANNELS`].
///
/// # Errors
/// If there are none, or more.
pub fn check_channels(channels: usize) -> Result<(), InvalidSignal> {
    match channels {
        0 => Err(InvalidSignal::NoChannels),
        1..=MOST_CHANNELS => Ok(()),
        found => Err(InvalidSignal::TooManyChannels { found }),
    }
}

/// Checks a sample rate in Hz and a number of channels, and that both together are no more than
/// [`MOST_SAMPLES_PER_SECOND`].
pub(crate) fn check_recording(sample_rate: u32, channels: usize) -> Result<(), InvalidSignal> {
    check_sample_rate(sample_rate)?;
    check_channels(channels)?;
    if u64::from(sample_rate) * channels as u64 > MOST_SAMPLES_PER_SECOND {
        return Err(InvalidSignal::TooManySamples { sample_rate, channels });
    }
    Ok(())
}

/// Why samples do not make a [`Signal`].
#[derive(Debug, Clone, PartialEq, Error)]
pub enum InvalidSignal {
    /// The sample rate is not supported.
    #[error(
        "sample rate of {found} Hz: expected {} to {} Hz", SAMPLE_RATES.start(), SAMPLE_RATES.end()
    )]
    SampleRate {
        /// Sample rate in Hz.
        found: u32,
    },
    /// There is no channel.
    #[error("no channels: expected at least one")]
    NoChannels,
    /// There are more channels than are accepted.
    #[error("{found} channels: expected {MOST_CHANNELS} at most")]
    TooManyChannels {
        /// Number of channels.
        found: usize,
    },
    /// There are more samples per second than are denoised together.
    #[error(
        "{channels} channels at {sample_rate} Hz: expected {} at most at this rate, in a file of their own",
        MOST_SAMPLES_PER_SECOND / u64::from(*sample_rate)
    )]
    TooManySamples {
        /// Sample rate in Hz.
        sample_rate: u32,
        /// Number of channels.
        channels: usize,
    },
    /// There is no sample.
    #[error("no samples: expected at least one")]
    NoSamples,
    /// A channel is longer or shorter than the first.
    #[error("channel {channel} has {found} samples: expected {expected}, as in channel 0")]
    UnequalChannels {
        /// Index of the channel, from 0.
        channel: usize,
        /// Its number of samples.
        found: usize,
        /// The number of samples of channel 0.
        expected: usize,
    },
    /// A sample is infinite or not a number.
    #[error("sample {sample} of channel {channel} is {value}: expected a finite value")]
    NotFinite {
        /// Index of the channel, from 0.
        channel: usize,
        /// Index of the sample, from 0.
        sample: usize,
        /// The offending value.
        value: f32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(sample_rate: u32, channels: &[&[f32]]) -> Result<Signal, InvalidSignal> {
        Signal::new(sample_rate, SampleFormat::Int16, channels.iter().map(|c| c.to_vec()).collect())
    }

    #[test]
    fn every_invariant_is_checked_and_named() {
        assert_eq!(signal(7_999, &[&[0.0]]), Err(InvalidSignal::SampleRate { found: 7_999 }));
        assert_eq!(signal(192_001, &[&[0.0]]), Err(InvalidSignal::SampleRate { found: 192_001 }));
        assert_eq!(signal(8_000, &[]), Err(InvalidSignal::NoChannels));
        assert_eq!(signal(8_000, &[&[0.0][..]; 257]), Err(InvalidSignal::TooManyChannels { found: 257 }));
        assert!(signal(8_000, &[&[0.0][..]; 256]).is_ok());
        assert_eq!(signal(8_000, &[&[], &[]]), Err(InvalidSignal::NoSamples));
        assert_eq!(
            signal(8_000, &[&[0.0, 0.0], &[0.0]]),
            Err(InvalidSignal::UnequalChannels { channel: 1, found: 1, expected: 2 })
        );
        let infinite = signal(8_000, &[&[0.0, 0.0], &[0.0, f32::NEG_INFINITY]]).unwrap_err();
        assert_eq!(infinite.to_string(), "sample 1 of channel 1 is -inf: expected a finite value");
        assert!(signal(8_000, &[&[f32::NAN]]).is_err());

        let signal = signal(192_000, &[&[0.0; 48_000], &[0.5; 48_000]]).unwrap();
        assert_eq!((signal.len(), signal.channels().len(), signal.duration()), (48_000, 2, 0.25));
    }
}
