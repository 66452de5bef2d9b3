//! Recordings: the samples themselves.

use crate::{SampleFormat, counted};
use std::ops::RangeInclusive;
use thiserror::Error;

/// Accepted sample rates, Hz.
pub const SAMPLE_RATE_RANGE: RangeInclusive<u32> = 8_000..=192_000;

/// Maximum number of channels. A header of 44 bytes may declare 65,535, each of which needs memory for a transform,
/// however short the recording.
pub const MAX_CHANNELS: usize = 256;

/// Maximum number of samples per second of a recording, over all channels: 64 channels at 48 kHz, or 16 at 192 kHz.
/// Memory does not grow with the length of a recording, but with this rate, to about 1 GB.
pub const MAX_SAMPLES_PER_SECOND: u64 = 64 * 48_000;

/// A recording: finite samples, full scale ±1, in one vector per channel.
///
/// There are one to [`MAX_CHANNELS`] channels and at least one sample, every channel has the same number of samples,
/// and the sample rate lies in [`SAMPLE_RATE_RANGE`].
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    sample_rate: u32,
    format: SampleFormat,
    channels: Vec<Vec<f32>>,
}

impl Signal {
    /// Creates a signal from its channels; `sample_rate` in Hz, `format` for writing.
    ///
    /// # Errors
    /// The first error found: the sample rate, no channel or too many, no sample, channels of unequal length, or a
    /// sample that is not finite (with its channel and position).
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

    /// Creates a signal with other samples at the sample rate and in the format of this one.
    ///
    /// # Errors
    /// As for [`Signal::new`].
    pub fn with_channels(&self, channels: Vec<Vec<f32>>) -> Result<Self, InvalidSignal> {
        Self::new(self.sample_rate, self.format, channels)
    }

    /// Returns this signal with another format for writing.
    #[must_use]
    pub fn with_format(self, format: SampleFormat) -> Self {
        Self { format, ..self }
    }

    /// Sample rate in Hz.
    #[must_use]
    pub fn sample_rate(&self) -> u32 {
        self.sample_rate
    }

    /// The format in which the samples were read and will be written.
    #[must_use]
    pub fn format(&self) -> SampleFormat {
        self.format
    }

    /// The samples of every channel.
    #[must_use]
    pub fn channels(&self) -> &[Vec<f32>] {
        &self.channels
    }

    /// Consumes the signal and returns the samples of every channel.
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

/// Checks that a sample rate in Hz is one of [`SAMPLE_RATE_RANGE`].
///
/// # Errors
/// If the sample rate is outside the range.
pub fn check_sample_rate(sample_rate: u32) -> Result<(), InvalidSignal> {
    if SAMPLE_RATE_RANGE.contains(&sample_rate) {
        Ok(())
    } else {
        Err(InvalidSignal::SampleRate { found: sample_rate })
    }
}

/// Checks that there are channels, and no more than [`MAX_CHANNELS`].
///
/// # Errors
/// If there are none, or more than [`MAX_CHANNELS`].
pub fn check_channels(channels: usize) -> Result<(), InvalidSignal> {
    match channels {
        0 => Err(InvalidSignal::NoChannels),
        1..=MAX_CHANNELS => Ok(()),
        found => Err(InvalidSignal::TooManyChannels { found }),
    }
}

/// Checks a sample rate in Hz and a number of channels, and that their product is at most [`MAX_SAMPLES_PER_SECOND`].
///
/// # Errors
/// If one of the three checks fails.
pub fn check_recording(sample_rate: u32, channels: usize) -> Result<(), InvalidSignal> {
    check_sample_rate(sample_rate)?;
    check_channels(channels)?;
    if u64::from(sample_rate) * channels as u64 > MAX_SAMPLES_PER_SECOND {
        return Err(InvalidSignal::TooManySamples { sample_rate, channels });
    }
    Ok(())
}

/// Why samples are not a valid [`Signal`].
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum InvalidSignal {
    /// The sample rate is not supported.
    #[error(
        "sample rate of {found} Hz: expected {} to {} Hz", SAMPLE_RATE_RANGE.start(), SAMPLE_RATE_RANGE.end()
    )]
    SampleRate {
        /// Sample rate in Hz.
        found: u32,
    },
    /// There is no channel.
    #[error("no channels: expected at least one")]
    NoChannels,
    /// There are more than [`MAX_CHANNELS`] channels.
    #[error("{found} channels: expected {MAX_CHANNELS} at most")]
    TooManyChannels {
        /// Number of channels.
        found: usize,
    },
    /// There are more than [`MAX_SAMPLES_PER_SECOND`] samples per second.
    #[error(
        "{channels} channels at {sample_rate} Hz: expected {} at most at this rate, in a file of their own",
        MAX_SAMPLES_PER_SECOND / u64::from(*sample_rate)
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
    #[error(
        "channel {} has {}: expected {expected}, as in channel 1", channel + 1, counted(*found as u64, "sample")
    )]
    UnequalChannels {
        /// Index of the channel, from 0; the message counts from 1.
        channel: usize,
        /// Number of samples of the channel.
        found: usize,
        /// The number of samples of the first channel.
        expected: usize,
    },
    /// A sample is infinite or not a number.
    #[error("sample {} of channel {} is {value}: expected a finite value", sample + 1, channel + 1)]
    NotFinite {
        /// Index of the channel, from 0; the message counts from 1.
        channel: usize,
        /// Index of the sample, from 0; the message counts from 1.
        sample: usize,
        /// The offending value.
        value: f32,
    },
}
