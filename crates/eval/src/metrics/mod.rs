//! Objective scores of an estimate against a clean reference, each in `f32` or `f64`, computed in `f64`.
//!
//! | function | definition | equals |
//! |---|---|---|
//! | [`sdr`] | BSS-eval v3, one source, 512-tap distortion filter (Vincent, Gribonval and Fevotte 2006) | `fast_bss_eval.sdr`, `mir_eval.separation.bss_eval_sources` |
//! | [`si_sdr`] | scale-invariant SDR without removal of the mean (Le Roux et al. 2019) | `fast_bss_eval.si_sdr` |
//! | [`snr`] | energy of the reference over that of the difference | |
//! | [`segmental_snr`] | mean over 30 ms segments of the SNR limited to -10..35 dB | |
//! | [`log_spectral_distance`] | difference of the logarithms of short-time powers in a band | |
//! | [`spectral_distances`] | log-spectral distance over all frames and over the loudest frames in the band | |
//! | [`stoi`], [`estoi`] | Taal et al. 2011; Jensen and Taal 2016 | `pystoi.stoi` |
#![cfg_attr(
    feature = "pesq",
    doc = "| [`narrow_band_pesq`] | ITU-T P.862.1 MOS-LQO, at 8 kHz whatever the rate, by the `pesq` crate | within 0.1 of the `pesq` package for Python |\n| [`wide_band_pesq`] | ITU-T P.862.2 MOS-LQO at 16 kHz, by the `pesq` crate | the `pesq` package for Python |"
)]
//!
//! All functions take the reference first. Signals are slices of equal length, in any common unit. No function alters,
//! aligns or trims its input.
//!
//! # Edge cases
//!
//! | case | result |
//! |---|---|
//! | lengths differ, a sample is NaN or infinite, too few samples | [`MetricError`] |
//! | the reference is zero throughout | [`MetricError::SilentReference`] |
//! | the estimate equals the reference | `+inf` for SDR, SI-SDR and SNR; 35 dB segmental SNR; 1 for STOI and ESTOI |
//! | the estimate is zero throughout | `-inf` for SDR and SI-SDR; 0 dB for SNR and segmental SNR; 0 for STOI and ESTOI |
//!
//! # PESQ
//!
//! The feature `pesq`, on by default, uses the clean-room crate `pesq` 0.2.0. Its wide-band scores (P.862.2) agree to
//! 0.0002 with the reference on VoiceBank+DEMAND, its narrow-band scores (P.862.1) to 0.1 on NOIZEUS: compare
//! narrow-band scores with each other only.

use alphamf::signal::counted;

mod pairwise;
#[cfg(feature = "pesq")]
mod pesq;
mod resample;
mod sample;
mod sdr;
mod spectral;
mod stoi;
#[cfg(test)]
mod tests;

pub use pairwise::{segmental_snr, si_sdr, snr};
#[cfg(feature = "pesq")]
pub use pesq::{narrow_band_pesq, wide_band_pesq};
#[cfg(feature = "pesq")]
pub(crate) use resample::resample;
pub use sample::Sample;
pub use sdr::{FILTER_TAPS, sdr};
pub use spectral::{SpectralDistances, log_spectral_distance, spectral_distances};
pub use stoi::{Intelligibility, estoi, intelligibility, stoi};

/// Why a score could not be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MetricError {
    /// The two signals have different lengths.
    #[error(
        "the reference has {} but the estimate has {estimate}; both must have one length",
        counted(*reference as u64, "sample")
    )]
    LengthMismatch {
        /// Length of the reference in samples.
        reference: usize,
        /// Length of the estimate in samples.
        estimate: usize,
    },
    /// The signals are shorter than the measure needs.
    #[error("{metric} needs {required}, found {found}")]
    TooShort {
        /// The measure.
        metric: &'static str,
        /// The minimum.
        required: String,
        /// The length found.
        found: String,
    },
    /// Every sample of the reference is zero.
    #[error("the reference is silent: every sample is zero")]
    SilentReference,
    /// A sample is NaN or infinite.
    #[error("sample {} of the {signal} is not a finite number", index + 1)]
    NotFinite {
        /// `"reference"` or `"estimate"`.
        signal: &'static str,
        /// Index of the first invalid sample, from 0; the message counts from 1.
        index: usize,
    },
    /// The measure is not defined at this sample rate.
    #[error("{metric} is not defined at {rate} Hz; expected {expected}")]
    SampleRate {
        /// The measure.
        metric: &'static str,
        /// Sample rate of the signals, Hz.
        rate: u32,
        /// The supported rates.
        expected: &'static str,
    },
}

/// Checks the requirements of every measure: equal lengths, finite samples, a reference that is not silent.
fn check(reference: &[f64], estimate: &[f64]) -> Result<(), MetricError> {
    if reference.len() != estimate.len() {
        return Err(MetricError::LengthMismatch { reference: reference.len(), estimate: estimate.len() });
    }
    for (signal, samples) in [("reference", reference), ("estimate", estimate)] {
        if let Some(index) = samples.iter().position(|x| !x.is_finite()) {
            return Err(MetricError::NotFinite { signal, index });
        }
    }
    if reference.iter().all(|&x| x == 0.0) {
        return Err(MetricError::SilentReference);
    }
    Ok(())
}

/// Energy of a signal: the sum of its squared samples.
fn energy(samples: impl IntoIterator<Item = f64>) -> f64 {
    samples.into_iter().map(|x| x * x).sum()
}

/// `10 log10(signal / distortion)` in dB; a distortion of zero gives `+inf`, a signal of zero `-inf`.
fn decibels(signal: f64, distortion: f64) -> f64 {
    if signal == 0.0 { f64::NEG_INFINITY } else { 10.0 * (signal / distortion).log10() }
}
