//! A voice that the speech-presence network takes for noise is not removed.

use alphamf::denoiser::{Denoiser, Settings};
use alphamf::model::Dictionary;
use alphamf::random::SeedTree;
use alphamf::signal::{SampleFormat, Signal};
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::{PI, TAU};

const RATE: u32 = 16_000;

/// Three cries of 0.6 s that fall from 1.2 kHz by 600 Hz a second, with all harmonics up to 7 kHz.
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

#[test]
fn a_cry_in_noise_is_kept_in_part() {
    let clean = cries();
    let mut random = SeedTree::new(1).rng(0);
    let noisy = clean.iter().map(|x| {
        let hiss: f64 = StandardNormal.sample(&mut random);
        (x + 0.01 * hiss) as f32
    });
    let noisy = Signal::new(RATE, SampleFormat::Float32, vec![noisy.collect()]).unwrap();
    let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::default()).unwrap();
    let denoised = denoiser.denoise(&noisy).unwrap();
    let along = |x: &[f32]| x.iter().zip(&clean).map(|(x, c)| f64::from(*x) * c).sum::<f64>();
    let energy: f64 = clean.iter().map(|c| c * c).sum();
    let level_db = 20.0 * libm::log10(along(&denoised.signal.channels()[0]) / energy);
    // Without the model's word against the network's it would be 45 dB lower.
    assert!(level_db > -20.0, "{level_db:.1} dB");
}
