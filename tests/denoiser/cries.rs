//! A voice that the speech-presence network classifies as noise is kept in part if the recording would otherwise become
//! silent.

use super::shared::{denoised, denoiser};
use alphamf::denoiser::Settings;
use alphamf::random::SeedTree;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::{PI, TAU};

const RATE: u32 = 16_000;

/// Three cries of 0.6 s, whose pitch falls from 1.2 kHz at 600 Hz per second, with all harmonics up to 7 kHz.
fn cries() -> Vec<f64> {
    let mut phase = 0.0;
    (0..3 * RATE)
        .map(|n| {
            let time = f64::from(n % RATE) / f64::from(RATE);
            let hertz = 1200.0 - 600.0 * time;
            phase += TAU * hertz / f64::from(RATE);
            let harmonics = (1..40).map(f64::from).take_while(|k| k * hertz < 7000.0);
            let sum: f64 = harmonics.map(|k| libm::sin(k * phase) / k.sqrt()).sum();
            if time < 0.6 { 0.02 * sum * libm::sin(PI * time / 0.6) } else { 0.0 }
        })
        .collect()
}

/// Change in the level of `sounds` by denoising, dB, after addition of white noise with an RMS of `noise`.
fn level_db(sounds: &[f64], noise: f64) -> f64 {
    let mut random = SeedTree::new(1).rng(0);
    let noisy = sounds.iter().map(|x| {
        let hiss: f64 = StandardNormal.sample(&mut random);
        (x + noise * hiss) as f32
    });
    let denoised = denoised(&denoiser(Settings::default()), &noisy.collect::<Vec<_>>(), RATE);
    let along = |x: &[f32]| x.iter().zip(sounds).map(|(x, sound)| f64::from(*x) * sound).sum::<f64>();
    let energy: f64 = sounds.iter().map(|x| x * x).sum();
    20.0 * libm::log10(along(&denoised) / energy)
}

#[test]
fn a_cry_in_noise_is_kept_in_part() {
    let level_db = level_db(&cries(), 0.01);
    // Without the fallback to the model alone, the level would be 45 dB lower.
    assert!(level_db > -20.0, "{level_db:.1} dB");
}

/// Hammer blows, which the model alone classifies as speech, in a recording of more than one block.
#[test]
fn noise_before_the_first_word_is_removed() {
    let blow = |time: f64| {
        let ring = |level: f64, hertz: f64, decay: f64| {
            level * libm::exp(-time / decay) * libm::sin(TAU * hertz * time)
        };
        ring(0.3, 900.0, 0.04) + ring(0.2, 2350.0, 0.02)
    };
    let blows: Vec<f64> = (0..10 * RATE).map(|n| blow(f64::from(n % 9000) / f64::from(RATE))).collect();
    let level_db = level_db(&blows, 0.001);
    // If the fallback to the model alone applied to longer recordings, the level would be -12 dB.
    assert!(level_db < -40.0, "{level_db:.1} dB");
}
