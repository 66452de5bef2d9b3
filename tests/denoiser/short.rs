//! Recordings too short for a pause.

use super::shared::{demo, denoised, denoiser};
use alphamf::Settings;
use alphamf::denoiser::GainSettings;
use alphamf::random::SeedTree;
use rand::RngExt;

/// The loudest section of the demo's voice, `samples` long, with noise 30 dB below it.
fn loudest(samples: usize, rate: u32) -> Vec<f32> {
    let demo = demo("demo-clean.wav");
    assert_eq!(demo.sample_rate(), rate);
    let power = |part: &[f32]| part.iter().map(|x| x * x).sum::<f32>() / samples as f32;
    let parts = demo.channels()[0].windows(samples).step_by(samples / 4);
    let part = parts.max_by(|a, b| power(a).total_cmp(&power(b))).unwrap();
    let noise = (3.0 * power(part) / 1e3).sqrt();
    let mut random = SeedTree::new(1).rng(0);
    part.iter().map(|x| x + noise * random.random_range(-1.0..1.0_f32)).collect()
}

/// Gain of denoising, by projection of the output onto the input, dB.
fn kept_db(denoised: &[f32], noisy: &[f32]) -> f32 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    20.0 * (product(denoised, noisy) / product(noisy, noisy)).log10()
}

/// A word as cut out by a noise gate or an editor. Noise cannot be measured in digital silence.
#[test]
fn a_word_in_digital_silence_stays() {
    let demo = demo("demo-clean.wav");
    let (voice, rate) = (&demo.channels()[0], demo.sample_rate());
    for settings in [Settings::default(), Settings::fast()] {
        let denoiser = denoiser(settings.clone());
        // Sounds of 0.1 s.
        for start in [60_000, 88_000, 100_000, 112_000] {
            let word = &voice[start..start + 1_600];
            for (before, after) in [(0, 12_000), (8_000, 8_000), (200_000, 0)] {
                let padded = [&vec![0.0; before], word, &vec![0.0; after]].concat();
                let kept_db = kept_db(&denoised(&denoiser, &padded, rate), &padded);
                assert!(
                    (-2.0..1.0).contains(&kept_db),
                    "{kept_db} dB from {start} on, {before} {after}, {settings:?}"
                );
            }
        }
    }
}

#[test]
fn a_voice_without_a_pause_stays() {
    const RATE: u32 = 16_000;
    let alone = GainSettings { speech_presence: false, ..GainSettings::default() };
    let alone = Settings { gain: alone, ..Settings::default() };
    for settings in [Settings::default(), Settings::fast(), alone] {
        let denoiser = denoiser(settings.clone());
        for milliseconds in [50, 100, 150, 200, 500] {
            let noisy = loudest(RATE as usize / 1000 * milliseconds, RATE);
            let kept_db = kept_db(&denoised(&denoiser, &noisy, RATE), &noisy);
            assert!((-2.0..1.0).contains(&kept_db), "{kept_db} dB of {milliseconds} ms, {settings:?}");
        }
    }
}
