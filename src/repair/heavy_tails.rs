//! White symmetric alpha-stable noise: detection and suppression.

use super::autoregression::prediction_error_filter;
use super::quantile;
use super::score::Score;
use crate::stable::StableFit;
use crate::transform::{DEFAULT_WINDOW_SECONDS, Stft};

/// Length of the frames of statistics, s.
const FRAME_SECONDS: f64 = 0.032;
/// Fraction of the frames, the quietest, that counts as noise alone.
const QUIET: f64 = 0.3;
/// Minimum number of quiet frames.
const MIN_FRAMES: usize = 8;
/// Minimum of an outlier and maximum of its neighbours, in robust standard deviations. Normal noise has one outlier in a
/// million samples.
const OUTLIER: (f64, f64) = (5.0, 3.0);
/// Neighbours on either side.
const NEIGHBOURS: usize = 6;
/// Minimum fraction of quiet frames with an outlier. At alpha = 1.8 it is about 0.55; pauses of clean speech reach 0.4, but over
/// a non-stationary floor.
const MIN_AFFECTED: f64 = 0.33;
/// Maximum ratio of the 90 % to the 10 % quantile of the quiet frames' levels: the noise is stationary.
const MAX_LEVEL_RATIO: f64 = 1.55;
/// Minimum prediction error of the quiet frames, relative to their power: the noise is white.
const MIN_WHITENESS: f64 = 0.5;
/// The median modulus of a standard normal variable.
const MEDIAN: f64 = 0.6745;

/// Returns the law of the noise, if the quiet parts of the recording are white noise with heavy tails.
pub(crate) fn detect(samples: &[f32], sample_rate: u32) -> Option<StableFit> {
    /// Order of linear prediction, usual for speech at 8 kHz.
    const ORDER: usize = 10;
    let length = (f64::from(sample_rate) * FRAME_SECONDS) as usize;
    let mut frames: Vec<(f64, &[f32])> = samples
        .windows(length)
        .step_by(length / 2)
        .map(|frame| (median_modulus(frame), frame))
        .filter(|(median, _)| *median > 0.0)
        .collect();
    frames.sort_by(|x, y| x.0.total_cmp(&y.0));
    frames.truncate((QUIET * frames.len() as f64) as usize);
    if frames.len() < MIN_FRAMES {
        return None;
    }
    let (mut affected, mut levels, mut errors_left) = (0, Vec::new(), Vec::new());
    for (median, frame) in &frames {
        // Outliers would dominate the model.
        let limited: Vec<f64> =
            frame.iter().map(|&x| f64::from(x).clamp(-3.0 * median, 3.0 * median)).collect();
        let filter = prediction_error_filter(&limited, ORDER);
        let errors = |x: &dyn Fn(usize) -> f64| -> Vec<f64> {
            (ORDER..length).map(|n| filter.iter().enumerate().map(|(k, a)| a * x(n - k)).sum()).collect()
        };
        let power = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        errors_left.push(power(&errors(&|n| limited[n])) / power(&limited));
        let moduli: Vec<f64> = errors(&|n| f64::from(frame[n])).iter().map(|e| e.abs()).collect();
        let level = quantile(&moduli, 0.5)? / MEDIAN;
        levels.push(level);
        let small = |e: &f64| *e < OUTLIER.1 * level;
        let isolated = moduli.windows(2 * NEIGHBOURS + 1).any(|window| {
            window[NEIGHBOURS] > OUTLIER.0 * level
                && window[..NEIGHBOURS].iter().all(small)
                && window[NEIGHBOURS + 1..].iter().all(small)
        });
        affected += usize::from(isolated);
    }
    let level_ratio = quantile(&levels, 0.9)? / quantile(&levels, 0.1)?;
    if (affected as f64) < MIN_AFFECTED * frames.len() as f64
        || level_ratio.is_nan()
        || level_ratio > MAX_LEVEL_RATIO
        || quantile(&errors_left, 0.5)? < MIN_WHITENESS
    {
        return None;
    }
    StableFit::of_real(frames.iter().flat_map(|(_, frame)| frame.iter().map(|&x| f64::from(x))))
}

/// Replaces every sample by its efficient pseudo-observation under the law of the noise: a running estimate of the
/// signal plus the score of the residual, scaled to unit slope.
///
/// To first order, whatever the error of the estimate, the result is the signal plus white noise of variance
/// `sigma^2 / I`, where I is the Fisher information of the law. This is the minimum variance, for which linear
/// filtering, hence the spectral model, is efficient. The estimate is that of the Wiener filter for this noise, so the
/// two alternate; its error variance widens the law of the residual.
///
/// `None` if the transform does not support the sample rate.
pub(crate) fn suppress(samples: &[f32], sample_rate: u32, noise: &StableFit) -> Option<Vec<f32>> {
    /// Number of alternations of pseudo-observation and Wiener filter.
    const ITERATIONS: usize = 8;
    let stft = Stft::new(sample_rate, DEFAULT_WINDOW_SECONDS).ok()?;
    let score = Score::new(noise.alpha);
    // Scaled by a power of two, the powers below are within single precision at any level.
    let unit = libm::exp2(libm::log2(noise.sigma).round());
    let sigma = noise.sigma / unit;
    let samples: &[f32] = &samples.iter().map(|&x| (f64::from(x) / unit) as f32).collect::<Vec<f32>>();
    let mut output = vec![0.0_f32; samples.len()];
    let mut estimate = vec![0.0_f32; samples.len()];
    let mut variance = levels_above_floor(samples, stft.hop(), sigma);
    for _ in 0..ITERATIONS {
        let mut noise_variances = Vec::with_capacity(variance.len());
        for (block, &variance) in variance.iter().enumerate() {
            let tau = variance.sqrt() / sigma;
            noise_variances.push(sigma * sigma / score.at(0.0, tau).1);
            let start = block * stft.hop();
            for n in start..(start + stft.hop()).min(samples.len()) {
                let residual = f64::from(samples[n]) - f64::from(estimate[n]);
                let (weight, information) = score.at(residual / sigma, tau);
                output[n] = (f64::from(estimate[n]) + residual * weight / information) as f32;
            }
        }
        let noise_variance = quantile(&noise_variances, 0.5)?;
        (estimate, variance) = wiener(&output, &stft, noise_variance);
    }
    Some(output.into_iter().map(|x| (f64::from(x) * unit) as f32).collect())
}

/// Returns the variance of the signal above the noise floor for each hop, from medians.
fn levels_above_floor(samples: &[f32], hop: usize, sigma: f64) -> Vec<f64> {
    // The median over four hops is a sufficient estimate of the level.
    let medians: Vec<f64> = (0..samples.len().div_ceil(hop))
        .map(|block| {
            let start = (block * hop).saturating_sub(3 * hop / 2);
            median_modulus(&samples[start..(start + 4 * hop).min(samples.len())])
        })
        .collect();
    let floor = quantile(&medians, 0.15).unwrap_or(0.0);
    let variance = |median: f64| (median * median - floor * floor) / (MEDIAN * MEDIAN);
    medians.into_iter().map(|median| variance(median).max(0.05 * sigma * sigma)).collect()
}

/// Returns the Wiener estimate of a signal in white noise of known variance, and the mean variance of its error for
/// each hop.
///
/// The a-priori signal-to-noise ratio is the geometric mean of two decision-directed estimates (Ephraim and Malah
/// 1984), forwards and backwards in time.
fn wiener(samples: &[f32], stft: &Stft, noise_variance: f64) -> (Vec<f32>, Vec<f64>) {
    let mut spectrogram = stft.analyse(samples);
    let (bins, frames) = (spectrogram.bins(), spectrogram.frames());
    let noise = (noise_variance * stft.white_power()) as f32;
    let power: Vec<f32> = spectrogram.as_slice().iter().map(|x| x.norm_sqr() / noise).collect();
    let forwards = decision_directed(&power, bins, 0..frames);
    let backwards = decision_directed(&power, bins, (0..frames).rev());
    let gains: Vec<f32> = forwards
        .iter()
        .zip(&backwards)
        .map(|(x, y)| {
            let ratio = (x * y).sqrt();
            ratio / (1.0 + ratio)
        })
        .collect();
    spectrogram.apply_gain(&gains);
    let mean_gain = |t: usize| {
        let gains = &gains[t * bins..(t + 1) * bins];
        gains.iter().map(|&gain| f64::from(gain)).sum::<f64>() / bins as f64
    };
    // Hop h lies in frames h to h + 3, mostly in the middle two.
    let variance = (0..samples.len().div_ceil(stft.hop()))
        .map(|h| {
            noise_variance * 0.5 * (mean_gain((h + 1).min(frames - 1)) + mean_gain((h + 2).min(frames - 1)))
        })
        .collect();
    (stft.synthesise(&spectrogram, samples.len()), variance)
}

/// Returns decision-directed a-priori signal-to-noise ratios from powers relative to the noise (`bins x frames`).
/// `order` is the order of the frames.
fn decision_directed(power: &[f32], bins: usize, order: impl Iterator<Item = usize>) -> Vec<f32> {
    /// Weight of the previous frame; 0.98 in Ephraim and Malah.
    const MEMORY: f32 = 0.97;
    /// Minimum ratio, -25 dB, against musical noise.
    const MIN_RATIO: f32 = 3e-3;
    let mut ratios = vec![0.0; power.len()];
    let mut previous: Option<Vec<f32>> = None;
    for t in order {
        let frame = t * bins..(t + 1) * bins;
        let power = &power[frame.clone()];
        let before = previous.get_or_insert_with(|| power.iter().map(|p| (p - 1.0).max(0.0)).collect());
        for ((ratio, &p), before) in ratios[frame].iter_mut().zip(power).zip(before) {
            *ratio = (MEMORY * *before + (1.0 - MEMORY) * (p - 1.0).max(0.0)).max(MIN_RATIO);
            let gain = *ratio / (1.0 + *ratio);
            *before = gain * gain * p;
        }
    }
    ratios
}

fn median_modulus(samples: &[f32]) -> f64 {
    let moduli: Vec<f64> = samples.iter().map(|&x| f64::from(x).abs()).collect();
    quantile(&moduli, 0.5).unwrap_or(0.0)
}
