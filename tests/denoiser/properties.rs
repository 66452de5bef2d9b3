//! Properties of the whole chain for arbitrary input.

use super::shared::denoiser;
use alphamf::denoiser::{Denoiser, EmSettings, GainSettings, SamplingSettings, SessionSettings, Settings};
use alphamf::random::SeedTree;
use alphamf::signal::{SampleFormat, Signal};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rand::RngExt;
use std::sync::LazyLock;

static DENOISER: LazyLock<Denoiser> = LazyLock::new(|| {
    let em = EmSettings { iterations: Some(4), ..EmSettings::default() };
    let sampling = SamplingSettings { iterations: 3, burn_in: 1, ..SamplingSettings::default() };
    let settings = Settings { em, sampling: Some(sampling), ..Settings::default() };
    denoiser(settings)
});

fn denoise(rate: u32, channels: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
    let noisy = Signal::new(rate, SampleFormat::Float32, channels).unwrap();
    DENOISER.denoise(&noisy).unwrap().signal.into_channels()
}

/// Output of a session with the input divided at `cuts`.
fn in_session(rate: u32, channels: &[Vec<f32>], cuts: &[usize]) -> Vec<Vec<f32>> {
    let mut session = DENOISER.session(rate, channels.len(), SessionSettings::default()).unwrap();
    let mut out = vec![Vec::new(); channels.len()];
    let mut append = |block: Vec<Vec<f32>>| {
        out.iter_mut().zip(block).for_each(|(out, samples)| out.extend(samples));
    };
    let length = channels[0].len();
    let ends = cuts.iter().copied().chain([length]);
    let mut start = 0;
    for end in ends {
        let block: Vec<&[f32]> = channels.iter().map(|samples| &samples[start..end]).collect();
        append(session.push(&block).unwrap().speech);
        start = end;
    }
    append(session.finish().unwrap().speech);
    out
}

fn power(channels: &[Vec<f32>]) -> f64 {
    channels.iter().flatten().map(|&x| f64::from(x) * f64::from(x)).sum()
}

fn decibels(ratio: f64) -> f64 {
    10.0 * ratio.log10()
}

/// A recording: its sample rate, and channels of one level, each with noise, a tone, clicks, silence or a square wave.
fn recording() -> impl Strategy<Value = (u32, Vec<Vec<f32>>)> {
    let rate = prop_oneof![
        Just(8_000_u32),
        Just(11_025),
        Just(16_000),
        Just(44_100),
        Just(48_000),
        Just(192_000),
        8_000..192_000_u32
    ];
    (rate, 1..=8_usize, 8..20_000_usize, any::<u64>(), -7..=0_i32).prop_map(
        |(rate, channels, length, seed, level)| {
            let level = 10.0_f32.powi(level);
            // The total number of samples does not depend on the number of channels.
            let length = length / channels;
            let channel = |index: usize| {
                let mut stream = SeedTree::new(seed).rng(index as u64);
                let kind = stream.random_range(0..5_u32);
                let step = stream.random_range(0.001..3.0_f32);
                (0..length)
                    .map(|n| match kind {
                        0 => stream.random_range(-1.0..1.0_f32),
                        1 => (n as f32 * step).sin(),
                        2 => f32::from(stream.random_bool(0.01)),
                        3 => 0.0,
                        _ => (n as f32 * 0.01 * step).sin().signum(),
                    })
                    .map(|x| level * x)
                    .collect()
            };
            (rate, (0..channels).map(channel).collect())
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    /// The division into pushes does not change the output.
    #[test]
    fn any_recording_stays_finite_of_its_length_and_no_louder(
        (rate, channels) in recording(),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
    ) {
        let length = channels[0].len();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(length + 1)).collect();
        cuts.sort_unstable();
        let output = denoise(rate, channels.clone());
        prop_assert_eq!(output.len(), channels.len());
        prop_assert!(output.iter().all(|samples| samples.len() == length));
        prop_assert!(output.iter().flatten().all(|x| x.is_finite()));
        for (before, after) in channels.iter().zip(&output) {
            let (before, after) = (power(std::slice::from_ref(before)), power(std::slice::from_ref(after)));
            prop_assert!(after <= 1.26 * before, "{} dB", decibels(after / before));
        }
        prop_assert_eq!(in_session(rate, &channels, &cuts), output);
    }
}

#[test]
fn blocks_do_not_depend_on_the_pushes_either() {
    // Long enough for three blocks.
    let mut stream_of_noise = SeedTree::new(1).rng(0);
    let noise: Vec<f32> = (0..30 * 8_000).map(|_| stream_of_noise.random_range(-0.1..0.1)).collect();
    let whole = denoise(8_000, vec![noise.clone()]);
    assert_eq!(whole[0].len(), noise.len());
    assert_eq!(in_session(8_000, &[noise], &[1, 777, 100_000, 100_000, 239_999]), whole);
}

#[test]
fn exact_silence_stays_silence() {
    for (rate, channels) in [(8_000, 1), (48_000, 8), (192_000, 2)] {
        let silence = vec![vec![0.0; 30_000]; channels];
        assert_eq!(denoise(rate, silence.clone()), silence);
    }
    // Silence between sounds also stays silence, except in frames that overlap the sounds.
    let mut noise = SeedTree::new(2).rng(0);
    let mut x: Vec<f32> = (0..24_000).map(|_| noise.random_range(-0.5..0.5)).collect();
    x[6_000..18_000].fill(0.0);
    assert!(denoise(8_000, vec![x])[0][6_512..17_488].iter().all(|&x| x == 0.0));
}

#[test]
fn square_waves_of_full_scale_are_no_more_than_noise() {
    for rate in [8_000, 44_100, 96_000] {
        // The frequency glides, as steady tones are removed as hum beforehand.
        let square: Vec<f32> = (0..rate)
            .map(|n| f64::from(n) / f64::from(rate))
            .map(|seconds| if (seconds * (200.0 + 20.0 * seconds)).fract() < 0.5 { 1.0 } else { -1.0 })
            .collect();
        let loss = decibels(power(&denoise(rate, vec![square.clone()])) / power(&[square]));
        // A square wave is not speech: its gain may fall to the minimum of -45 dB, but no further.
        let floor = GainSettings::default().floor_db - 0.5;
        assert!((floor..=1.0).contains(&loss), "{rate} Hz: {loss} dB");
    }
}

#[test]
fn a_constant_offset_leaves_no_trace() {
    let output = denoise(8_000, vec![vec![0.3; 12_000]]);
    assert!(output[0].iter().all(|x| x.abs() < 1e-3), "no clicks at the ends");
    let mut noise = SeedTree::new(5).rng(0);
    let tone = |n: usize| 0.2 * (n as f32 * 0.2).sin() * (n as f32 * 0.001).sin();
    let x: Vec<f32> = (0..24_000).map(|n| tone(n) + 0.01 * noise.random_range(-1.0..1.0)).collect();
    let [plain, offset] =
        [0.0, 0.2].map(|level| denoise(8_000, vec![x.iter().map(|x| x + level).collect()]).remove(0));
    let difference: Vec<f32> = plain.iter().zip(&offset).map(|(a, b)| a - b).collect();
    let loudest = difference.iter().fold(0.0_f32, |loudest, x| loudest.max(x.abs()));
    assert!(loudest < 0.01, "{loudest}, from the first sample to the last");
}

#[test]
fn speech_after_a_long_silence_and_an_offset_is_kept() {
    // Syllables of a voice with 16 harmonics, in faint noise, after 20 s of silence and 20 s of a constant.
    let rate = 8_000;
    let mut noise = SeedTree::new(3).rng(0);
    let voice = |n: usize| -> f32 {
        let t = n as f32 / rate as f32;
        let envelope = (t * 9.0).sin().max(0.0);
        let pitch = 2.0 * std::f32::consts::PI * (120.0 * t + 3.0 * (2.0 * t).sin());
        envelope * (1..=16).map(|h| (h as f32 * pitch).sin() / h as f32).sum::<f32>() * 0.1
    };
    let speech: Vec<f32> =
        (0..15 * rate).map(|n| voice(n) + 0.003 * noise.random_range(-1.0..1.0_f32)).collect();
    let mut x = vec![0.0; 20 * rate];
    x.resize(40 * rate, 0.25);
    x.extend(&speech);
    let output = denoise(rate as u32, vec![x]);
    assert!(output[0][..20 * rate - 600].iter().all(|&x| x == 0.0));
    let alone = denoise(rate as u32, vec![speech]);
    let [after, alone] = [&output[0][40 * rate + 600..], &alone[0][600..]].map(|x| power(&[x.to_vec()]));
    // The network's estimate depends on the rest of the block, here silence or more of the voice, by 0.82 dB.
    assert!(decibels(after / alone).abs() < 1.0, "{} dB", decibels(after / alone));
}

#[test]
fn garbage_among_the_samples_is_no_part_of_the_recording() {
    let mut noise = SeedTree::new(6).rng(0);
    let x: Vec<f32> = (0..16_000).map(|_| noise.random_range(-0.1..0.1)).collect();
    let plain = denoise(8_000, vec![x.clone()]);
    let mut garbled = x.clone();
    garbled[5_000] = 1e9;
    let output = denoise(8_000, vec![garbled]);
    let [plain, garbled] = [&plain, &output].map(|y| power(&[y[0][8_000..].to_vec()]));
    assert!(decibels(garbled / plain).abs() < 0.5, "{} dB", decibels(garbled / plain));
    // Recordings far out of range stay finite, and have the gain of a recording in range.
    assert!(denoise(8_000, vec![vec![3e38; 2]]).iter().flatten().all(|y| y.is_finite()));
    let loud = denoise(8_000, vec![x.iter().map(|x| x * 1e19).collect()]);
    let level = decibels(power(&loud) / 1e38 / power(&denoise(8_000, vec![x])));
    assert!(level.abs() < 0.1, "{level} dB");
}

#[test]
fn what_follows_a_whisper_is_denoised_alike() {
    // 20 s of noise, then 20 s of noise at a level 160 dB higher.
    let mut noise = SeedTree::new(4).rng(0);
    let x: Vec<f32> = (0..40 * 8_000)
        .map(|n| noise.random_range(-1.0..1.0) * if n < 20 * 8_000 { 1e-9 } else { 0.1 })
        .collect();
    let output = denoise(8_000, vec![x.clone()]);
    let late = 30 * 8_000..;
    let loss = decibels(power(&[output[0][late.clone()].to_vec()]) / power(&[x[late].to_vec()]));
    assert!(loss < -10.0, "{loss} dB");
}
