//! Statistics of a session, over all of its streams.

use crate::array::MicrophoneFault;
use crate::decibels::{decibels, power};
use crate::denoiser::block::ChainResult;
use crate::denoiser::stream::Summary;
use crate::inference::SamplerStatistics;
use serde::Serialize;

/// Statistics of a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// Sample rate, Hz.
    pub sample_rate: u32,
    /// Number of channels.
    pub channels: usize,
    /// Finished samples per channel.
    pub samples: u64,
    /// Duration of the finished samples, s.
    pub duration_seconds: f64,
    /// Estimated signal-to-noise ratio of the input, dB; `None` for silence.
    pub snr_before_db: Option<f64>,
    /// Estimated signal-to-noise ratio of the output, dB; `None` for silence, or if `mix` is below 1.
    pub snr_after_db: Option<f64>,
    /// Ratio of speech to the expected error of the output under the posterior, dB; `None` for silence, or if `mix` is below 1.
    /// Its accuracy is in eval/results; it does not detect interfering speech.
    pub expected_sdr_db: Option<f64>,
    /// Level of the input in pauses of speech, hum included, dB: mean square relative to full scale ±1. Pauses are the fifth
    /// of a block's frames with the least speech, without digital silence; `None` without any.
    pub noise_before_dbfs: Option<f64>,
    /// Level of the output in the same frames, dB; for an array, in the pauses of its second pass.
    pub noise_after_dbfs: Option<f64>,
    /// Level of the hum that was removed, dB: mean square of its samples; `None` without any.
    pub hum_dbfs: Option<f64>,
    /// RT60 per octave, 125 Hz to 8 kHz, s, from the first stream; `None` where too few decays were found.
    pub reverberation_seconds: [Option<f64>; 6],
    /// Clipped input samples, summed over channels: those in runs of at least four at the extreme of their channel, if there
    /// are three or more such runs.
    pub clipped_input_samples: u64,
    /// Clipped samples that were restored, summed over channels: with [`declip`](super::SessionSettings::declip), all at the
    /// level of clipping.
    pub restored_samples: usize,
    /// Faults of the microphones of an array; empty without an array.
    pub microphone_faults: Vec<MicrophoneFault>,
    /// Removed time-domain clicks, summed over channels.
    pub clicks: usize,
    /// Blocks, summed over channels, in which heavy-tailed noise was suppressed in time.
    pub heavy_tailed_blocks: usize,
    /// Sampler moves rejected because they were not finite.
    pub divergences: usize,
    /// Monte Carlo error of the posterior-mean gain; `None` with too few draws.
    pub monte_carlo: Option<MonteCarloError>,
    /// Counts of the samplers over the averaged sweeps; `None` without sampling.
    pub sampler: Option<SamplerStatistics>,
}

/// Monte Carlo error of the posterior-mean gain.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MonteCarloError {
    /// Number of draws of a block.
    pub draws: usize,
    /// Number of monitored gains.
    pub monitored_gains: u64,
    /// Root mean square of their standard errors, of a gain between 0 and 1.
    pub gain_standard_error: f64,
    /// Number of independent draws with the same error; `None` if no gain varied.
    pub effective_draws: Option<f64>,
}

impl Statistics {
    /// Combines the summaries of streams. `mix` is the fraction of the denoised signal in the output. Fields of the
    /// session itself are zero.
    pub(super) fn of_streams(summaries: &[Summary], mix: f64, draws: usize) -> Self {
        let mut chain = ChainResult::default();
        summaries.iter().for_each(|summary| chain.add(&summary.chain));
        let ChainResult { monte_carlo, divergences, counters } = chain;
        let noise_before = mean_power(summaries, |summary| summary.noise_before_dbfs);
        let noise_after = mean_power(summaries, |summary| summary.noise_after_dbfs)
            .zip(noise_before)
            .map(|(after, before)| before * (mix * (after / before).sqrt() + 1.0 - mix).powi(2));
        let sum = |count: fn(&Summary) -> usize| summaries.iter().map(count).sum();
        Self {
            sample_rate: 0,
            channels: 0,
            samples: 0,
            duration_seconds: 0.0,
            snr_before_db: estimated_snr(summaries, |summary| summary.snr_before_db),
            snr_after_db: estimated_snr(summaries, |summary| summary.snr_after_db).filter(|_| mix == 1.0),
            expected_sdr_db: expected_sdr(summaries).filter(|_| mix == 1.0),
            noise_before_dbfs: noise_before.and_then(finite_decibels),
            noise_after_dbfs: noise_after.and_then(finite_decibels),
            hum_dbfs: mean_power(summaries, |summary| summary.hum_dbfs).and_then(finite_decibels),
            reverberation_seconds: summaries
                .first()
                .map_or([None; 6], |summary| summary.reverberation_seconds),
            clipped_input_samples: 0,
            restored_samples: sum(|summary| summary.restored_samples),
            microphone_faults: Vec::new(),
            clicks: sum(|summary| summary.clicks),
            heavy_tailed_blocks: sum(|summary| summary.heavy_tailed_blocks),
            divergences,
            monte_carlo: (monte_carlo.gains > 0).then(|| MonteCarloError {
                draws,
                monitored_gains: monte_carlo.gains,
                gain_standard_error: monte_carlo.standard_error(),
                effective_draws: Some(monte_carlo.effective_draws()).filter(|draws| draws.is_finite()),
            }),
            sampler: counters.statistics(),
        }
    }
}

/// Signal-to-noise ratio over all streams, dB, from their ratios and energies. Streams without a ratio, which are silent, do
/// not count.
fn estimated_snr(summaries: &[Summary], snr_db: fn(&Summary) -> f64) -> Option<f64> {
    let streams = summaries.iter().filter(|summary| !snr_db(summary).is_nan());
    let (speech, whole) = streams.fold((0.0, 0.0), |(sum, whole), summary| {
        (sum + speech(summary.input_energy, snr_db(summary)), whole + summary.input_energy)
    });
    finite_decibels(speech / (whole - speech))
}

/// Expected ratio of speech to error over all streams, dB, from their ratios and energies.
fn expected_sdr(summaries: &[Summary]) -> Option<f64> {
    let of_stream = |summary: &Summary| {
        let speech = speech(summary.input_energy, summary.snr_before_db);
        let error = speech * power(-summary.expected_sdr_db);
        if speech > 0.0 { (speech, error) } else { (0.0, 0.0) }
    };
    let (speech, error) =
        summaries.iter().map(of_stream).fold((0.0, 0.0), |sum, stream| (sum.0 + stream.0, sum.1 + stream.1));
    finite_decibels(speech / error)
}

/// Energy of the speech in a recording.
fn speech(energy: f64, snr_db: f64) -> f64 {
    if energy > 0.0 { energy / (1.0 + power(-snr_db)) } else { 0.0 }
}

/// Mean power of the levels of all streams; those of silent streams are NaN.
fn mean_power(summaries: &[Summary], level_db: fn(&Summary) -> f64) -> Option<f64> {
    let powers: Vec<f64> =
        summaries.iter().map(level_db).filter(|level| !level.is_nan()).map(power).collect();
    (!powers.is_empty()).then(|| powers.iter().sum::<f64>() / powers.len() as f64)
}

fn finite_decibels(ratio: f64) -> Option<f64> {
    Some(decibels(ratio)).filter(|level| level.is_finite())
}
