//! Levels of speech and noise per bin, and the minimum gain that follows from them.
//!
//! At low signal-to-noise ratio, a gain that fluctuates from frame to frame is more annoying than the noise it removes.
//! At high ratio, smoothing removes more speech than noise, and noise far below the speech is inaudible. Smoothing and
//! minimum gain therefore depend on the ratio around each bin, over the block.

use super::settings::GainSettings;
use crate::decibels::{amplitude, decibels};
use std::ops::{Range, RangeInclusive};

/// Half the width of the band around a bin, Hz.
const HALF_BAND_HERTZ: f64 = 31.25;
/// Minimum gain of a band with equal levels of speech and noise, dB; without a network.
const EVEN_DB: f64 = -26.0;
/// Distance of residual noise below the speech of its band, dB. A smaller distance is audible, a larger one degrades
/// speech.
const RESIDUAL_DB: RangeInclusive<f64> = 20.0..=32.0;
/// Range of band floors, dB. Without speech, the speech estimate is random, and lower floors would fluctuate with it.
const FLOORS_DB: RangeInclusive<f64> = -40.0..=-17.0;

/// Weight of earlier blocks relative to the current one: a memory of about 30 s, so that floors and smoothing are
/// continuous across blocks.
const MEMORY: f64 = 0.75;

/// Maximum change of a floor between blocks of steady noise, dB: steps of residual noise are audible.
const STEP_DB: f64 = 1.0;
/// Random change of the noise estimate between blocks of steady noise, dB.
const STEADY_DB: f64 = 2.0;

/// Powers of speech and noise per bin, in units of the mean power of their block.
#[derive(Debug, Clone)]
pub(crate) struct BinLevels {
    speech: Vec<f64>,
    noise: Vec<f64>,
    /// Mean power of the noise of the last block.
    block_noise: Vec<f64>,
}

impl BinLevels {
    /// Computes the levels of a block with `gain` and `power` (bins x frames each), continuing those of the previous
    /// blocks.
    pub(crate) fn new(gain: &[f32], power: &[f32], bins: usize, before: Option<&Self>) -> Self {
        let (mut speech, mut noise) = match before {
            Some(before) => [&before.speech, &before.noise]
                .map(|levels| levels.iter().map(|level| MEMORY * level).collect::<Vec<f64>>())
                .into(),
            None => (vec![0.0; bins], vec![f64::from(f32::MIN_POSITIVE); bins]),
        };
        let mut block_noise = vec![0.0; bins];
        for (gain, power) in gain.chunks_exact(bins).zip(power.chunks_exact(bins)) {
            for bin in 0..bins {
                let (gain, power) = (f64::from(gain[bin]), f64::from(power[bin]));
                speech[bin] += gain * power;
                block_noise[bin] += (1.0 - gain) * power;
            }
        }
        let frames = power.len() / bins;
        for (noise, block) in noise.iter_mut().zip(&mut block_noise) {
            *noise += *block;
            *block /= frames as f64;
        }
        Self { speech, noise, block_noise }
    }

    /// Signal-to-noise ratio around each bin, dB.
    pub(crate) fn snr_db(&self, bin_hertz: f64) -> Vec<f64> {
        let sums = |levels: &[f64]| around(levels, bin_hertz);
        sums(&self.speech)
            .iter()
            .zip(sums(&self.noise))
            .map(|(speech, noise)| decibels(speech / noise))
            .collect()
    }
}

/// Sums of levels around each bin.
fn around(levels: &[f64], bin_hertz: f64) -> Vec<f64> {
    let half = (HALF_BAND_HERTZ / bin_hertz).round() as usize;
    let band = |bin: usize| -> Range<usize> { bin.saturating_sub(half)..(bin + half + 1).min(levels.len()) };
    (0..levels.len()).map(|bin| levels[band(bin)].iter().sum()).collect()
}

/// The minimum gain of each bin in a block, and the noise level it applies to.
#[derive(Debug, Clone)]
pub(crate) struct Floors {
    /// dB.
    levels: Vec<f64>,
    /// Power of the noise around the bin.
    noise: Vec<f64>,
}

impl Floors {
    /// Computes the floors of a block from its levels and signal-to-noise ratios. `with_net`: the gain is fused with a
    /// network. The change from the previous block is limited unless the noise level changes.
    pub(crate) fn new(
        settings: &GainSettings,
        with_net: bool,
        levels: &BinLevels,
        snr_db: &[f64],
        bin_hertz: f64,
        before: Option<&Self>,
    ) -> Self {
        let noise = around(&levels.block_noise, bin_hertz);
        let mut floors = floors_db(settings, with_net, snr_db);
        if let Some(before) = before {
            for (bin, floor) in floors.iter_mut().enumerate() {
                let was = before.noise[bin].max(f64::MIN_POSITIVE);
                let change = decibels(noise[bin].max(f64::MIN_POSITIVE) / was).abs();
                let most = STEP_DB + (change - STEADY_DB).max(0.0);
                *floor = floor.clamp(before.levels[bin] - most, before.levels[bin] + most);
            }
        }
        Self { levels: floors, noise }
    }

    /// Limits the floors of bin `from` and all higher bins to the floor of the bin below `from`.
    pub(crate) fn level_off(&mut self, from: usize) {
        let (below, above) = self.levels.split_at_mut(from);
        if let Some(&top) = below.last() {
            above.iter_mut().for_each(|floor| *floor = floor.min(top));
        }
    }

    /// Changes the unit of power.
    pub(crate) fn scale_power(&mut self, factor: f32) {
        self.noise.iter_mut().for_each(|noise| *noise *= f64::from(factor));
    }

    /// The floors as amplitude factors.
    pub(crate) fn amplitudes(&self) -> Vec<f32> {
        self.levels.iter().map(|&level| amplitude(level)).collect()
    }
}

/// Computes the minimum gain of each bin, dB, from its signal-to-noise ratio.
fn floors_db(settings: &GainSettings, with_net: bool, snr_db: &[f64]) -> Vec<f64> {
    let floor_db = |snr: f64| {
        if with_net || !settings.band_floors {
            return settings.floor_db;
        }
        // Bands without noise or without speech have infinite ratios; those with neither have NaN.
        let snr = if snr.is_nan() { 0.0 } else { snr.clamp(-100.0, 100.0) };
        EVEN_DB
            .clamp(snr - RESIDUAL_DB.end(), snr - RESIDUAL_DB.start())
            .clamp(*FLOORS_DB.start(), *FLOORS_DB.end())
    };
    snr_db.iter().map(|&snr| floor_db(snr)).collect()
}

/// Raises the gain (bins x frames) to the floor of each bin (a factor of amplitude).
pub(crate) fn apply_floor(gain: &mut [f32], floor: &[f32]) {
    for frame in gain.chunks_exact_mut(floor.len()) {
        frame.iter_mut().zip(floor).for_each(|(gain, floor)| *gain = gain.max(*floor));
    }
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
        let at = |band_floors: bool, bin: usize| {
            let settings = GainSettings { band_floors, ..GainSettings::default() };
            floors_db(&settings, false, &snr)[bin]
        };
        for (bin, expected) in [(20, -26.0), (150, -17.0), (250, -40.0)] {
            assert!((at(true, bin) - expected).abs() < 0.1, "{}", at(true, bin));
            assert_eq!(at(false, bin), GainSettings::default().floor_db);
        }
        assert!(
            floors_db(&GainSettings::default(), false, &[f64::NEG_INFINITY, f64::INFINITY])
                .iter()
                .all(|&floor| (0.009..0.15).contains(&amplitude(floor)))
        );
    }

    #[test]
    fn earlier_blocks_count_by_their_age() {
        let first = BinLevels::new(&[0.5], &[2.0], 1, None);
        let second = BinLevels::new(&[0.8], &[10.0], 1, Some(&first));
        let ratio = (8.0 + MEMORY) / (2.0 + MEMORY);
        assert!((second.snr_db(15.625)[0] - decibels(ratio)).abs() < 1e-5);
        assert!((second.block_noise[0] - 2.0).abs() < 1e-6);
    }

    #[test]
    fn floors_go_on_over_the_seams_of_blocks() {
        // The little speech estimated in a block changes by 10 dB from block to block.
        let (bins, frames) = (40, 30);
        type Block = (BinLevels, Floors);
        let block = |speech_db: f64, noise: f32, before: Option<&Block>| -> Block {
            let gain = libm::pow(10.0, speech_db / 10.0) as f32;
            let power = vec![noise / (1.0 - gain); bins * frames];
            let levels =
                BinLevels::new(&vec![gain; bins * frames], &power, bins, before.map(|(levels, _)| levels));
            let before = before.map(|(_, floors)| floors);
            let floors =
                Floors::new(&GainSettings::default(), false, &levels, &levels.snr_db(15.625), 15.625, before);
            (levels, floors)
        };
        // Noise alone.
        for speech_db in [-25.0, -30.0, -45.0] {
            assert!((block(speech_db, 1.0, None).1.levels[0] + 40.0).abs() < 1e-3);
        }
        // Some speech in steady noise.
        let mut before = block(-10.0, 1.0, None);
        for number in 1..6 {
            let next = block(if number % 2 == 0 { -10.0 } else { -25.0 }, 1.0, Some(&before));
            let step = (next.1.levels[0] - before.1.levels[0]).abs();
            assert!(step > 0.1 && step < STEP_DB + 1e-3, "{step} dB from one block to the next");
            before = next;
        }
        // Noise that has changed, as opposed to another unit of power or to a random change.
        let steady = block(-10.0, 1.0, None);
        let random = block(-25.0, 1.4, Some(&steady)).1.levels[0];
        assert!((random - steady.1.levels[0]).abs() < STEP_DB + 1e-3, "{random} dB");
        let fresh = block(-1.0, 1.0, None);
        let louder = block(-25.0, 100.0, Some(&fresh)).1.levels[0];
        assert!(louder < fresh.1.levels[0] - 3.0, "{louder} dB, before {} dB", fresh.1.levels[0]);
        let mut scaled = fresh.clone();
        scaled.1.scale_power(100.0);
        let same = block(-25.0, 100.0, Some(&scaled)).1.levels[0];
        assert!((same - fresh.1.levels[0]).abs() < STEP_DB + 1e-3, "{same} dB");
    }
}
