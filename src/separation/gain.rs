//! From the posterior-mean gain of a block to the gain that is applied.
//!
//! Where there is much noise, variation of the gain from frame to frame sounds worse than what it saves; where there
//! is little, smoothing it costs more speech than noise, and noise far below the speech does no harm. Both are
//! decided for every bin, by the ratio of speech to noise around it over the block.

use super::settings::GainSettings;
use std::ops::{Range, RangeInclusive};

/// Half the width of the band around a bin, Hz.
const HALF_BAND_HERTZ: f64 = 31.25;
/// The ratio of speech to noise at which gains are smoothed by half, dB.
const HALF_SMOOTH_DB: f64 = 10.0;
/// How far below the speech of its band noise is left, dB: closer would be heard, farther is not worth the harm.
const RESIDUAL_DB: RangeInclusive<f64> = 20.0..=32.0;
/// The floors that this may ask for, dB. Where there is no speech, estimates of it say nothing: lower floors would
/// follow them up and down.
const FLOORS_DB: RangeInclusive<f64> = -40.0..=-17.0;

/// How much of what was found before a block counts beside it: a memory of some 30 s, so that floors and smoothing go
/// on over its seams as before.
const MEMORY: f64 = 0.75;

/// Speech and noise in every bin, in units of the mean power of the block that they are from.
#[derive(Debug, Clone)]
pub(crate) struct BinLevels {
    speech: Vec<f64>,
    noise: Vec<f64>,
}

impl BinLevels {
    /// The levels of a block by its gain and power (bins x frames each), and those of the blocks before it.
    pub(crate) fn new(gain: &[f32], power: &[f32], bins: usize, before: Option<&Self>) -> Self {
        let (mut speech, mut noise) = match before {
            Some(before) => [&before.speech, &before.noise]
                .map(|levels| levels.iter().map(|level| MEMORY * level).collect::<Vec<f64>>())
                .into(),
            None => (vec![0.0; bins], vec![f64::from(f32::MIN_POSITIVE); bins]),
        };
        for (gain, power) in gain.chunks_exact(bins).zip(power.chunks_exact(bins)) {
            for bin in 0..bins {
                let (gain, power) = (f64::from(gain[bin]), f64::from(power[bin]));
                speech[bin] += gain * power;
                noise[bin] += (1.0 - gain) * power;
            }
        }
        Self { speech, noise }
    }

    /// The ratio of speech to noise around every bin, dB.
    pub(crate) fn snr_db(&self, bin_hertz: f64) -> Vec<f64> {
        let bins = self.speech.len();
        let half = (HALF_BAND_HERTZ / bin_hertz).round() as usize;
        let band = |bin: usize| -> Range<usize> { bin.saturating_sub(half)..(bin + half + 1).min(bins) };
        let sum = |values: &[f64]| values.iter().sum::<f64>();
        let ratio = |bin: usize| sum(&self.speech[band(bin)]) / sum(&self.noise[band(bin)]);
        (0..bins).map(|bin| 10.0 * libm::log10(ratio(bin))).collect()
    }
}

/// Averages the gain of every frame with its neighbours' in the bins `rough`, by 1/4, 1/2 and 1/4 where there is much
/// noise and less where there is little.
pub(crate) fn smooth_over_frames(gain: &mut [f32], snr_db: &[f64], rough: Range<usize>) {
    if rough.is_empty() {
        return;
    }
    let bins = snr_db.len();
    let before = gain.to_vec();
    let frames = gain.len() / bins;
    let share = |&snr: &f64| 1.0 / (1.0 + libm::pow(10.0, (snr - HALF_SMOOTH_DB) / 10.0)) as f32;
    let shares: Vec<f32> = snr_db[rough.clone()].iter().map(share).collect();
    for (t, frame) in gain.chunks_exact_mut(bins).enumerate() {
        let (previous, next) = (t.saturating_sub(1) * bins, (t + 1).min(frames - 1) * bins);
        for ((bin, gain), share) in rough.clone().zip(&mut frame[rough.clone()]).zip(&shares) {
            let neighbours = 0.5 * (before[previous + bin] + before[next + bin]);
            *gain += 0.5 * share * (neighbours - *gain);
        }
    }
}

/// The least gain of every bin, as a factor of amplitude.
pub(crate) fn floors(settings: &GainSettings, snr_db: &[f64]) -> Vec<f32> {
    let floor_db = |snr: f64| {
        if !settings.floor_by_band {
            return settings.floor_db;
        }
        // Bands without any noise or speech have infinite ratios; of those with neither, there is none.
        let snr = if snr.is_nan() { 0.0 } else { snr.clamp(-100.0, 100.0) };
        settings
            .floor_db
            .clamp(snr - RESIDUAL_DB.end(), snr - RESIDUAL_DB.start())
            .clamp(*FLOORS_DB.start(), *FLOORS_DB.end())
    };
    snr_db.iter().map(|&snr| amplitude(floor_db(snr))).collect()
}

/// A factor of amplitude from its level, dB.
pub(crate) fn amplitude(level_db: f64) -> f32 {
    libm::pow(10.0, level_db / 20.0) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_counted_around_every_bin() {
        // Speech of power one in all bins; noise of power one, 1/100 and 100 in a third each.
        let (bins, frames) = (300, 50);
        let noise = |bin: usize| [1.0, 0.01, 100.0_f32][bin / 100];
        let frame: Vec<(f32, f32)> =
            (0..bins).map(|bin| (1.0 / (1.0 + noise(bin)), 1.0 + noise(bin))).collect();
        let (gain, power): (Vec<f32>, Vec<f32>) = frame.repeat(frames).into_iter().unzip();
        let snr = BinLevels::new(&gain, &power, bins, None).snr_db(15.625);
        assert!(snr[20].abs() < 1e-3 && (snr[150] - 20.0).abs() < 1e-3, "{} {}", snr[20], snr[150]);
        let at = |floor_by_band: bool, bin: usize| {
            let settings = GainSettings { floor_by_band, ..GainSettings::default() };
            20.0 * libm::log10f(floors(&settings, &snr)[bin])
        };
        for (bin, expected) in [(20, -26.0), (150, -17.0), (250, -40.0)] {
            assert!((at(true, bin) - expected).abs() < 0.1, "{}", at(true, bin));
            assert!((at(false, bin) + 26.0).abs() < 1e-3);
        }
        assert!(
            floors(&GainSettings::default(), &[f64::NEG_INFINITY, f64::INFINITY])
                .iter()
                .all(|floor| (0.009..0.15).contains(floor))
        );
    }

    #[test]
    fn floors_go_on_over_the_seams_of_blocks() {
        // What little a block takes for speech changes by 10 dB from each to the next.
        let (bins, frames) = (40, 30);
        let levels = |speech_db: f64, before: Option<&BinLevels>| {
            let gain = libm::pow(10.0, speech_db / 10.0) as f32;
            BinLevels::new(&vec![gain; bins * frames], &vec![1.0; bins * frames], bins, before)
        };
        let floor_db = |levels: &BinLevels| {
            20.0 * libm::log10f(floors(&GainSettings::default(), &levels.snr_db(15.625))[0])
        };
        // Noise alone.
        for speech_db in [-25.0, -30.0, -45.0] {
            assert!((floor_db(&levels(speech_db, None)) + 40.0).abs() < 1e-3);
        }
        // Some speech.
        let mut before = levels(-10.0, None);
        for block in 1..6 {
            let next = levels(if block % 2 == 0 { -10.0 } else { -20.0 }, Some(&before));
            let step = (floor_db(&next) - floor_db(&before)).abs();
            assert!(step < 4.0, "{step} dB from one block to the next");
            before = next;
        }
    }

    #[test]
    fn gains_are_smoothed_where_there_is_noise() {
        let mut gain = vec![0.0, 0.0, 1.0, 1.0, 0.0, 0.0_f32];
        smooth_over_frames(&mut gain, &[-40.0, 60.0], 0..2);
        let expected = [0.25, 0.0, 0.5, 1.0, 0.25, 0.0];
        assert!(gain.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-3), "{gain:?}");
    }
}
