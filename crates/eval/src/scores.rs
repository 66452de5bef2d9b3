//! The scores of one file.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::metrics::{self, MetricError};
use alphamf::signal::{Signal, counted};

/// Maximum difference in duration, in seconds; the longer signal is truncated.
pub const MAX_EXCESS_SECONDS: f64 = 0.1;

/// Minimum sample rate with the whole audible band, Hz.
const MIN_FULL_BAND_RATE: u32 = 40_000;

/// A measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// [`metrics::sdr`].
    Sdr,
    /// [`metrics::si_sdr`].
    SiSdr,
    /// [`metrics::snr`].
    Snr,
    /// [`metrics::segmental_snr`].
    SegmentalSnr,
    /// [`metrics::stoi`].
    Stoi,
    /// [`metrics::estoi`].
    Estoi,
    /// [`metrics::log_spectral_distance`] from 100 Hz to 8 kHz, at rates of 40 kHz and more.
    LowDistance,
    /// [`metrics::log_spectral_distance`] from 8 to 20 kHz.
    HighDistance,
    /// Distance of the loudest frames from 8 to 20 kHz, by [`metrics::spectral_distances`].
    FricativeDistance,
    /// Narrow-band PESQ, with the feature `pesq`, from 8 kHz; other rates than 8 and 16 kHz are resampled.
    NarrowBandPesq,
    /// Wide-band PESQ, with the feature `pesq`, from 16 kHz; higher rates are resampled to 16 kHz.
    WideBandPesq,
}

impl Metric {
    /// All measures, in the order in which they are shown.
    pub const ALL: [Self; 11] = [
        Self::Sdr,
        Self::SiSdr,
        Self::Snr,
        Self::SegmentalSnr,
        Self::Stoi,
        Self::Estoi,
        Self::LowDistance,
        Self::HighDistance,
        Self::FricativeDistance,
        Self::NarrowBandPesq,
        Self::WideBandPesq,
    ];

    /// Name of the field in records: `sdr`, `si_sdr`, ...
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Sdr => "sdr",
            Self::SiSdr => "si_sdr",
            Self::Snr => "snr",
            Self::SegmentalSnr => "segmental_snr",
            Self::Stoi => "stoi",
            Self::Estoi => "estoi",
            Self::LowDistance => "low_distance",
            Self::HighDistance => "high_distance",
            Self::FricativeDistance => "fricative_distance",
            Self::NarrowBandPesq => "narrow_band_pesq",
            Self::WideBandPesq => "wide_band_pesq",
        }
    }

    /// Short title for a table.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Sdr => "SDR",
            Self::SiSdr => "SI-SDR",
            Self::Snr => "SNR",
            Self::SegmentalSnr => "segSNR",
            Self::Stoi => "STOI",
            Self::Estoi => "ESTOI",
            Self::LowDistance => "LSD",
            Self::HighDistance => "LSD above 8 kHz",
            Self::FricativeDistance => "of fricatives",
            Self::NarrowBandPesq => "PESQ-NB",
            Self::WideBandPesq => "PESQ-WB",
        }
    }

    /// Unit, empty for a pure number.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Sdr
            | Self::SiSdr
            | Self::Snr
            | Self::SegmentalSnr
            | Self::LowDistance
            | Self::HighDistance
            | Self::FricativeDistance => "dB",
            Self::Stoi | Self::Estoi => "",
            Self::NarrowBandPesq | Self::WideBandPesq => "MOS-LQO",
        }
    }

    /// Whether a smaller score is better.
    #[must_use]
    pub fn less_is_better(self) -> bool {
        matches!(self, Self::LowDistance | Self::HighDistance | Self::FricativeDistance)
    }

    /// Number of digits to show after the decimal point.
    #[must_use]
    pub fn digits(self) -> usize {
        match self {
            Self::Stoi | Self::Estoi => 3,
            _ => 2,
        }
    }

    /// The definition of the measure.
    #[must_use]
    pub fn definition(self) -> &'static str {
        match self {
            Self::Sdr => "BSS-eval v3, single source, 512-tap distortion filter",
            Self::SiSdr => "scale-invariant SDR (Le Roux et al. 2019), mean not removed",
            Self::Snr => "energy of the clean signal over that of the difference",
            Self::SegmentalSnr => {
                "mean over 30 ms segments of the SNR limited to -10..35 dB, pauses left out"
            }
            Self::Stoi => "Taal et al. 2011, at 10 kHz",
            Self::Estoi => "Jensen and Taal 2016, at 10 kHz",
            Self::LowDistance => "log-spectral distance, 0.1 to 8 kHz; less is better",
            Self::HighDistance => "log-spectral distance, 8 to 20 kHz; less is better",
            Self::FricativeDistance => {
                "the same in the tenth of the frames with most of the voice there; less is better"
            }
            Self::NarrowBandPesq => {
                "ITU-T P.862 with the mapping of P.862.1; absent for less than 0.25 s of speech"
            }
            Self::WideBandPesq => "ITU-T P.862.2, at 16 kHz; absent for less than 0.25 s of speech",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}

/// The scores of a signal against the clean one.
///
/// In records an infinite score (a perfect or a silent estimate) is the string `"inf"` or `"-inf"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    #[serde(with = "extended")]
    sdr: f64,
    #[serde(with = "extended")]
    si_sdr: f64,
    #[serde(with = "extended")]
    snr: f64,
    segmental_snr: f64,
    stoi: f64,
    estoi: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    low_distance: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    high_distance: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fricative_distance: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    narrow_band_pesq: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wide_band_pesq: Option<f64>,
}

impl Scores {
    /// The score by one measure; `None` if it was not computed.
    #[must_use]
    pub fn get(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Sdr => Some(self.sdr),
            Metric::SiSdr => Some(self.si_sdr),
            Metric::Snr => Some(self.snr),
            Metric::SegmentalSnr => Some(self.segmental_snr),
            Metric::Stoi => Some(self.stoi),
            Metric::Estoi => Some(self.estoi),
            Metric::LowDistance => self.low_distance,
            Metric::HighDistance => self.high_distance,
            Metric::FricativeDistance => self.fricative_distance,
            Metric::NarrowBandPesq => self.narrow_band_pesq,
            Metric::WideBandPesq => self.wide_band_pesq,
        }
    }
}

/// A pair of signals cannot be scored.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScoreError {
    /// The sample rates differ.
    #[error("{found} Hz, but its clean file has {expected} Hz")]
    SampleRate {
        /// Rate of the estimate in Hz.
        found: u32,
        /// Rate of the clean signal in Hz.
        expected: u32,
    },
    /// One of the signals has more than one channel.
    #[error("{}, and its clean file {clean}: expected one in both", counted(*found as u64, "channel"))]
    Channels {
        /// Channels of the estimate.
        found: usize,
        /// Channels of the clean signal.
        clean: usize,
    },
    /// The lengths differ by more than [`MAX_EXCESS_SECONDS`].
    #[error(
        "{}, but its clean file has {expected}: expected a difference of at most {MAX_EXCESS_SECONDS} s",
        counted(*found as u64, "sample")
    )]
    Length {
        /// Samples of the estimate.
        found: usize,
        /// Samples of the clean signal.
        expected: usize,
    },
    /// The high-pass is above half the sample rate.
    #[error("nothing is left above {hertz} Hz at a sample rate of {rate} Hz: lower the high-pass")]
    HighPass {
        /// Its cutoff in Hz.
        hertz: f64,
        /// The sample rate in Hz.
        rate: u32,
    },
    /// A measure is not defined for these signals.
    #[error(transparent)]
    Metric(#[from] MetricError),
}

/// Scores one signal against the clean one, both after a high-pass at `high_pass_hz`.
///
/// # Errors
/// [`ScoreError`] when the signals do not match or a measure is not defined for them.
pub fn score(clean: &Signal, estimate: &Signal, high_pass_hz: f64) -> Result<Scores, ScoreError> {
    let rate = clean.sample_rate();
    if estimate.sample_rate() != rate {
        return Err(ScoreError::SampleRate { found: estimate.sample_rate(), expected: rate });
    }
    let ([clean_channel], [channel]) = (clean.channels(), estimate.channels()) else {
        return Err(ScoreError::Channels { found: estimate.channels().len(), clean: clean.channels().len() });
    };
    let (expected, found) = (clean_channel.len(), channel.len());
    if expected.abs_diff(found) as f64 > MAX_EXCESS_SECONDS * f64::from(rate) {
        return Err(ScoreError::Length { found, expected });
    }
    if 2.0 * high_pass_hz > f64::from(rate) {
        return Err(ScoreError::HighPass { hertz: high_pass_hz, rate });
    }
    let prepare = |samples: &[f32]| -> Vec<f64> {
        let samples = samples[..expected.min(found)].iter().map(|&x| f64::from(x)).collect();
        if high_pass_hz > 0.0 { high_pass(samples, rate, high_pass_hz) } else { samples }
    };
    let (clean, estimate) = (prepare(clean_channel), prepare(channel));
    let distances = |band| {
        let is_full_band = rate >= MIN_FULL_BAND_RATE;
        is_full_band.then(|| metrics::spectral_distances(&clean, &estimate, rate, band)).transpose()
    };
    let (below, above) = (distances(100.0..=8_000.0)?, distances(8_000.0..=20_000.0)?);
    let [narrow_band_pesq, wide_band_pesq] = pesq(&clean, &estimate, rate);
    let intelligibility = metrics::intelligibility(&clean, &estimate, rate)?;
    Ok(Scores {
        sdr: metrics::sdr(&clean, &estimate)?,
        si_sdr: metrics::si_sdr(&clean, &estimate)?,
        snr: metrics::snr(&clean, &estimate)?,
        segmental_snr: metrics::segmental_snr(&clean, &estimate, rate)?,
        stoi: intelligibility.stoi,
        estoi: intelligibility.estoi,
        low_distance: below.map(|below| below.all),
        high_distance: above.map(|above| above.all),
        fricative_distance: above.map(|above| above.loudest),
        narrow_band_pesq,
        wide_band_pesq,
    })
}

/// Computes narrow- and wide-band PESQ where they are defined; signals with less than a quarter of a second of speech
/// have none.
#[cfg(feature = "pesq")]
fn pesq(clean: &[f64], estimate: &[f64], rate: u32) -> [Option<f64>; 2] {
    let at = match rate {
        ..8_000 => return [None, None],
        8_000..16_000 => 8_000,
        16_000.. => 16_000,
    };
    let [clean, estimate] = [clean, estimate].map(|samples| metrics::resample(samples, rate, at));
    let narrow = metrics::narrow_band_pesq(&clean, &estimate, at).ok();
    let wide = if at == 16_000 { metrics::wide_band_pesq(&clean, &estimate, at).ok() } else { None };
    [narrow, wide].map(|score| score.filter(|score| score.is_finite()))
}

#[cfg(not(feature = "pesq"))]
fn pesq(_: &[f64], _: &[f64], _: u32) -> [Option<f64>; 2] {
    [None, None]
}

/// Removes everything below `cutoff` Hz by one Fourier transform of the whole signal.
///
/// For corpora whose noise is mostly inaudible rumble, such as VoiceBank+DEMAND below 75 Hz.
#[must_use]
pub fn high_pass(mut samples: Vec<f64>, sample_rate: u32, cutoff: f64) -> Vec<f64> {
    let length = samples.len();
    if length == 0 {
        return samples;
    }
    let forward = alphamf_fourier::forward::<f64>(length);
    let mut spectrum = forward.make_output_vec();
    let done = forward.process(&mut samples, &mut spectrum);
    debug_assert!(done.is_ok(), "the buffers have the planned lengths");
    let bin = f64::from(sample_rate) / length as f64;
    for (_, x) in spectrum.iter_mut().enumerate().take_while(|(k, _)| (*k as f64) * bin < cutoff) {
        *x = 0.0.into();
    }
    let done = alphamf_fourier::inverse(length).process(&mut spectrum, &mut samples);
    debug_assert!(done.is_ok(), "the mean is real, and so is the bin at half the sample rate");
    samples.iter_mut().for_each(|x| *x /= length as f64);
    samples
}

/// Serialisation of numbers that may be infinite, which JSON cannot represent.
pub(super) mod extended {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Extended {
        Number(f64),
        Text(String),
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() { serializer.serialize_f64(*value) } else { serializer.collect_str(value) }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        match Extended::deserialize(deserializer)? {
            Extended::Number(value) => Ok(value),
            Extended::Text(text) => match text.as_str() {
                "inf" => Ok(f64::INFINITY),
                "-inf" => Ok(f64::NEG_INFINITY),
                _ => Err(D::Error::custom(format!("\"{text}\": expected a number, \"inf\" or \"-inf\""))),
            },
        }
    }
}
