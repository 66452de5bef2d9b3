//! Impulses in synthetic voices, and the signals that tests of this module share.

use super::*;
use crate::random::SeedTree;
use crate::stable::PositiveStable;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::{PI, TAU};

const RATE: u32 = 8_000;

fn normal(stream: &mut crate::random::SeededRng) -> f64 {
    StandardNormal.sample(stream)
}

/// Four seconds of syllables: a gliding pulse train through two resonances, with pauses, each
/// closed by a burst of noise like that of a plosive.
pub(super) fn voice(rate: u32, seed: u64) -> Vec<f64> {
    let mut stream = SeedTree::new(seed).rng(0);
    let fs = f64::from(rate);
    let (mut phase, mut state) = (0.0, [[0.0_f64; 2]; 2]);
    (0..4 * rate as usize)
        .map(|n| {
            let t = n as f64 / fs;
            let syllable = t * 2.5 % 1.0;
            let envelope = if syllable < 0.6 { (PI * syllable / 0.6).sin() } else { 0.0 };
            phase += (120.0 + 30.0 * (0.9 * t).sin()) / fs;
            let mut x = if phase >= 1.0 { envelope } else { 0.0 };
            phase %= 1.0;
            if (0.6..0.63).contains(&syllable) {
                x += 0.1 * (1.0 - (syllable - 0.6) / 0.03) * normal(&mut stream);
            }
            for (state, frequency) in state.iter_mut().zip([600.0, 1500.0]) {
                let r = (-PI * 80.0 / fs).exp();
                let y = x + 2.0 * r * (2.0 * PI * frequency / fs).cos() * state[0] - r * r * state[1];
                *state = [y, state[0]];
                x = y;
            }
            0.01 * x + 2e-5 * normal(&mut stream)
        })
        .collect()
}

pub(super) fn power(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64
}

/// Signal-to-noise ratio in dB.
pub(super) fn snr(clean: &[f64], noisy: &[f64]) -> f64 {
    let noise: Vec<f64> = clean.iter().zip(noisy).map(|(s, x)| x - s).collect();
    10.0 * (power(clean) / power(&noise)).log10()
}

pub(super) fn single(x: &[f64]) -> Vec<f32> {
    x.iter().map(|&x| x as f32).collect()
}

pub(super) fn sum(a: &[f64], b: &[f64]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| (a + b) as f32).collect()
}

pub(super) fn double(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| f64::from(x)).collect()
}

/// Eight seconds of a voice in soft hiss.
pub(super) fn speech(rate: u32) -> Vec<f64> {
    let mut stream = SeedTree::new(1).rng(0);
    let hiss = move || -> f64 { StandardNormal.sample(&mut stream) };
    let voice: Vec<f64> = [1, 2].into_iter().flat_map(|seed| voice(rate, seed)).collect();
    let level = 0.03 * power(&voice).sqrt();
    voice.iter().zip(std::iter::repeat_with(hiss)).map(|(s, n)| s + level * n).collect()
}

/// Harmonics of 50 Hz up to 1 kHz, as strong as `like`, with the drift of the mains.
pub(super) fn hum(rate: u32, like: &[f64]) -> Vec<f64> {
    let mut phase = 0.0;
    let hum: Vec<f64> = (0..like.len())
        .map(|n| {
            let seconds = n as f64 / f64::from(rate);
            phase += TAU * (50.0 + 0.01 * (0.7 * seconds).sin()) / f64::from(rate);
            (1..=20).map(|k| f64::from(k).powf(-0.5) * (f64::from(k) * phase + f64::from(k * k)).sin()).sum()
        })
        .collect();
    let scale = (power(like) / power(&hum)).sqrt();
    hum.iter().map(|x| scale * x).collect()
}

/// Noise of exponent `alpha`, scaled so that at alpha = 2 it would lie 5 dB below the voice.
fn stable_noise(voice: &[f64], alpha: f64, seed: u64) -> (Vec<f64>, f64) {
    let mut stream = SeedTree::new(seed).rng(1);
    let law = PositiveStable::new(alpha / 2.0).unwrap();
    let sigma = (power(voice) / 10.0_f64.powf(0.5) / 2.0).sqrt();
    let mut draw = || {
        let impulse: f64 = law.sample(&mut stream);
        sigma * (2.0 * impulse).sqrt() * normal(&mut stream)
    };
    (voice.iter().map(|s| s + draw()).collect(), sigma)
}

/// Decaying bursts of noise of 1 to 5 ms, `rate_per_second` per second, with `peak` times the peak of the voice.
pub(super) fn clicks(voice: &[f64], rate: u32, rate_per_second: usize, peak: f64, seed: u64) -> Vec<f64> {
    let mut stream = SeedTree::new(seed).rng(2);
    let top = voice.iter().fold(0.0_f64, |top, x| top.max(x.abs()));
    let mut out = vec![0.0; voice.len()];
    for _ in 0..rate_per_second * voice.len() / rate as usize {
        let length = (stream.random_range(0.001..0.005) * f64::from(rate)) as usize;
        let start = stream.random_range(0..out.len() - length);
        for n in 0..length {
            let decay = (-3.0 * n as f64 / length as f64).exp();
            out[start + n] += peak * top * decay * normal(&mut stream).clamp(-1.0, 1.0);
        }
    }
    out
}

#[test]
fn voices_and_normal_noise_pass_bit_for_bit() {
    for rate in [8_000, 16_000, 48_000] {
        for seed in 0..3 {
            let voice = voice(rate, seed);
            for alpha in [None, Some(2.0)] {
                let x = alpha.map_or_else(|| voice.clone(), |alpha| stable_noise(&voice, alpha, seed).0);
                let x = single(&x);
                let (repaired, found) = repair(&x, rate);
                assert_eq!(found, Impulses::None, "{rate} Hz, seed {seed}, {alpha:?}");
                assert!(matches!(repaired, Cow::Borrowed(_)));
            }
        }
    }
}

#[test]
fn silence_and_short_recordings_pass() {
    for x in [vec![0.0; 20_000], vec![0.3; 20_000], vec![], vec![1.0], vec![0.1; 3_999]] {
        assert_eq!(repair(&x, RATE).1, Impulses::None);
    }
    let mut x = vec![0.0; 20_000];
    x[777] = 1.0;
    assert_eq!(repair(&x, RATE).1, Impulses::None);
}

#[test]
fn heavy_tails_become_nearly_normal() {
    let voice = voice(RATE, 1);
    for alpha in [1.2, 1.5, 1.8] {
        let (noisy, sigma) = stable_noise(&voice, alpha, 1);
        let (repaired, found) = {
            let x = single(&noisy);
            let (repaired, found) = repair(&x, RATE);
            (double(&repaired), found)
        };
        let Impulses::HeavyTails { alpha: fitted, sigma: scale } = found else {
            panic!("alpha {alpha}: {found:?}");
        };
        assert!((fitted - alpha).abs() < 0.15, "alpha {alpha}: {fitted}");
        assert!((scale / sigma - 1.0).abs() < 0.1, "alpha {alpha}: {scale} {sigma}");
        // The normal case would be at 5 dB.
        let after = snr(&voice, &repaired);
        assert!(after > 3.5 && after > snr(&voice, &noisy) + 1.0, "alpha {alpha}: {after} dB");
        let noise: Vec<f64> = voice.iter().zip(&repaired).map(|(s, y)| y - s).collect();
        let fourth = noise.iter().map(|x| x.powi(4)).sum::<f64>() / noise.len() as f64;
        let kurtosis = fourth / (power(&noise) * power(&noise));
        assert!((1.5..4.5).contains(&kurtosis), "alpha {alpha}: kurtosis {kurtosis}");
    }
}

#[test]
fn heavy_tails_do_not_depend_on_the_level() {
    let x = single(&stable_noise(&voice(RATE, 1), 1.5, 1).0);
    let (repaired, found) = repair(&x, RATE);
    assert!(matches!(found, Impulses::HeavyTails { .. }), "{found:?}");
    for exponent in [-70, -40, 40, 70] {
        let level = 2.0_f32.powi(exponent);
        let scaled: Vec<f32> = x.iter().map(|x| level * x).collect();
        let (scaled, found) = repair(&scaled, RATE);
        assert!(matches!(found, Impulses::HeavyTails { .. }), "2^{exponent}: {found:?}");
        assert!(scaled.iter().zip(repaired.iter()).all(|(y, x)| *y == level * x), "2^{exponent}");
    }
}

#[test]
fn clicks_are_cut_out_and_the_rest_is_untouched() {
    for rate in [8_000, 16_000, 44_100] {
        let (voice, seed) = (voice(rate, 2), 3);
        let noisy: Vec<f64> = {
            let mut stream = SeedTree::new(seed).rng(0);
            let level = 0.3 * power(&voice).sqrt();
            voice.iter().map(|s| s + level * normal(&mut stream)).collect()
        };
        let clicks = clicks(&voice, rate, 10, 3.0, seed);
        let x: Vec<f64> = noisy.iter().zip(&clicks).map(|(x, c)| x + c).collect();
        let x = single(&x);
        let (repaired, found) = repair(&x, rate);
        let Impulses::Clicks { count, fraction } = found else { panic!("{rate} Hz: {found:?}") };
        assert!((25..=45).contains(&count) && fraction < 0.08, "{rate} Hz: {found:?}");
        let changed = x.iter().zip(repaired.iter()).filter(|(x, y)| x != y).count();
        assert!(changed as f64 <= fraction * x.len() as f64 + 0.5);
        let (before, without) = (snr(&voice, &double(&x)), snr(&voice, &noisy));
        let after = snr(&voice, &double(&repaired));
        assert!(before < 0.0 && after > without - 2.5, "{rate} Hz: {before} {after} {without} dB");
    }
}

#[test]
fn rounded_pops_are_found_too() {
    let voice = voice(RATE, 4);
    let mut x = voice.clone();
    let top = x.iter().fold(0.0_f64, |top, x| top.max(x.abs()));
    for start in (500..x.len() - 100).step_by(1_100) {
        for n in 0..24 {
            x[start + n] += 3.0 * top * (PI * (n as f64 + 0.5) / 24.0).sin().powi(2);
        }
    }
    let x = single(&x);
    let (repaired, found) = repair(&x, RATE);
    assert!(matches!(found, Impulses::Clicks { .. }), "{found:?}");
    let (before, after) = (snr(&voice, &double(&x)), snr(&voice, &double(&repaired)));
    assert!(after > before + 10.0, "{before} {after} dB");
}

#[test]
fn a_short_last_block_is_repaired_and_counted_once() {
    let (seconds, rest) = (12 * RATE as usize, RATE as usize / 5);
    let voice: Vec<f64> = (0..4).flat_map(|seed| voice(RATE, seed)).take(seconds + rest).collect();
    let top = voice.iter().fold(0.0_f64, |top, x| top.max(x.abs()));
    let mut x = single(&voice);
    // Five a second: one in the last block.
    x[100..].iter_mut().step_by(1_600).for_each(|x| *x = 4.0 * top as f32);
    let mut blocks = ImpulseRepair::default();
    let (_, found) = blocks.repair(&x[..seconds], RATE);
    assert!(matches!(found, Impulses::Clicks { count: 60, .. }), "{found:?}");
    let (repaired, found) = blocks.repair(&x[seconds..], RATE);
    assert!(matches!(found, Impulses::Clicks { count: 1, .. }), "{found:?}");
    let last = &voice[seconds..];
    assert_eq!(repaired.len(), rest);
    let (before, after) = (snr(last, &double(&x[seconds..])), snr(last, &double(&repaired)));
    assert!(after > before + 10.0, "{before} {after} dB");
    // A block of one sample is processed as well, and no sample is lost.
    let (again, found) = blocks.repair(&x[..1], RATE);
    assert!(again.len() == 1 && found == Impulses::None);
}

#[test]
fn clicks_late_in_a_long_recording_are_found_and_the_start_is_untouched() {
    let voice: Vec<f64> = (0..8).flat_map(|seed| voice(RATE, seed)).collect();
    let start = voice.len() - 10 * RATE as usize;
    let clicks = clicks(&voice[start..], RATE, 8, 3.0, 1);
    let mut x = voice.clone();
    x[start..].iter_mut().zip(&clicks).for_each(|(x, click)| *x += click);
    let x = single(&x);
    let (repaired, found) = repair(&x, RATE);
    assert!(matches!(found, Impulses::Clicks { count: 60.., .. }), "{found:?}");
    assert!(repaired[..start - 100] == x[..start - 100]);
}

#[test]
fn after_a_block_with_clicks_fewer_are_enough() {
    let voice: Vec<f64> = (0..3).flat_map(|seed| voice(RATE, seed)).collect();
    let noisy: Vec<f64> =
        voice.iter().zip(clicks(&voice, RATE, 3, 4.0, 5)).map(|(x, click)| x + click).collect();
    let (first, last) = noisy.split_at(8 * RATE as usize);
    let last = single(last);
    assert_eq!(repair(&last, RATE).1, Impulses::None, "4 s alone");
    let mut repairing = ImpulseRepair::default();
    assert!(matches!(repairing.repair(&single(first), RATE).1, Impulses::Clicks { .. }));
    let (repaired, found) = repairing.repair(&last, RATE);
    assert!(matches!(found, Impulses::Clicks { count: 9..=13, .. }), "{found:?}");
    let clean = &voice[first.len()..];
    let (before, after) = (snr(clean, &double(&last)), snr(clean, &double(&repaired)));
    assert!(after > before + 10.0, "{before} {after} dB");
    // Voices without clicks stay unchanged, even after a block with clicks.
    let clean = single(clean);
    let mut behind = repairing;
    assert_eq!(behind.repair(&clean, RATE), (Cow::Borrowed(&clean[..]), Impulses::None));
    assert_eq!(behind.repair(&last, RATE).1, Impulses::None, "none in the block before");
}
