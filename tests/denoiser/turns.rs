//! A voice that alternates with a louder one is not removed as noise.

use super::live::noise;
use super::shared::{denoised, denoiser, voice};
use alphamf::Settings;
use alphamf::denoiser::LiveSettings;

const RATE: u32 = 16_000;
const TURN: usize = 4 * RATE as usize;
/// Factor of the softer voice: -24 dB.
const SOFTER: f32 = 0.063;

/// The first `samples` samples of another voice: the demo at (4 + `quarters`) / 4 of its speed.
fn faster(demo: &[f32], quarters: usize, samples: usize) -> Vec<f32> {
    let sample = |n: usize| {
        let (at, share) = (n * (4 + quarters) / 4, (n * quarters % 4) as f32 / 4.0);
        demo[at] + share * (demo[at + 1] - demo[at])
    };
    (0..samples).map(sample).collect()
}

/// The clean demo, alternating with a softer voice, in faint white noise.
fn turns() -> Vec<f32> {
    let louder = voice();
    let softer = faster(&louder, 1, TURN).into_iter().map(|x| SOFTER * x);
    let pair: Vec<f32> = louder[..TURN].iter().copied().chain(softer).collect();
    pair.repeat(3).iter().zip(noise(6 * TURN, 2e-4, 1)).map(|(x, noise)| x + noise).collect()
}

/// Level of the softer turns relative to the input, dB.
fn softer_level(input: &[f32], output: &[f32]) -> f32 {
    let power =
        |samples: &[f32]| -> f32 { samples.chunks(TURN).skip(1).step_by(2).flatten().map(|x| x * x).sum() };
    10.0 * (power(output) / power(input)).log10()
}

#[test]
fn offline_it_is_kept() {
    let input = turns();
    for settings in [Settings::fast(), Settings::default()] {
        let output = denoised(&denoiser(settings), &input, RATE);
        let level = softer_level(&input, &output);
        assert!(level > -1.0, "{level} dB");
    }
}

#[test]
fn a_voice_that_the_network_takes_for_noise_at_nearly_the_same_level_is_kept() {
    const SHORT: usize = 3 * RATE as usize;
    let first = voice();
    let other: Vec<f32> = faster(&first, 2, SHORT).iter().map(|x| 0.7 * x).collect();
    let input = [&first[..SHORT], &other, &first[SHORT..5 * RATE as usize]].concat();
    for settings in [Settings::fast(), Settings::default()] {
        let output = denoised(&denoiser(settings), &input, RATE);
        let power = |samples: &[f32]| -> f32 { samples.iter().map(|x| x * x).sum() };
        let kept = power(&output[SHORT..2 * SHORT]) / power(&other);
        assert!(kept > 0.8, "{} dB", 10.0 * kept.log10());
    }
}

#[test]
fn live_it_is_kept() {
    let input = turns();
    let denoiser = denoiser(Settings::fast());
    let mut live = denoiser.live(RATE, 1, LiveSettings::default()).unwrap();
    let mut output = vec![0.0; input.len()];
    live.process(&input, &mut output);
    let level = softer_level(&input, &output[live.latency()..]);
    assert!(level > -1.0, "{level} dB");
}
