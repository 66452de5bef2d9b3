//! Reconstruction, frames and bins at every sample rate.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const RATES: [u32; 15] = [
    8_000, 8_001, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 37_800, 44_100, 48_000, 88_200, 96_000,
    176_400, 192_000,
];

fn noise(samples: usize, seed: u64) -> Vec<f32> {
    use rand::RngExt;
    let mut random = crate::random::SeedTree::new(seed).rng(0);
    (0..samples).map(|_| random.random_range(-1.0..1.0)).collect()
}

fn reconstruction_error(sample_rate: u32, window_seconds: f64, samples: usize, seed: u64) -> f32 {
    let stft = Stft::new(sample_rate, window_seconds).unwrap();
    let signal = noise(samples, seed);
    let again = stft.synthesise(&stft.analyse(&signal), samples);
    assert_eq!(again.len(), samples);
    signal.iter().zip(&again).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]
    #[test]
    fn reconstruction_is_perfect(
        rate in prop_oneof![prop::sample::select(RATES.to_vec()), 8_000_u32..=192_000],
        window_seconds in prop_oneof![Just(DEFAULT_WINDOW_SECONDS), 0.001..0.2],
        samples in prop_oneof![1_usize..50, 1_usize..60_000],
        seed in any::<u64>(),
    ) {
        let error = reconstruction_error(rate, window_seconds, samples, seed);
        prop_assert!(error < 1e-6, "{error}");
    }
}

#[test]
fn one_sample_and_window_lengths_are_reconstructed_at_every_rate() {
    for rate in RATES {
        let window = Stft::new(rate, DEFAULT_WINDOW_SECONDS).unwrap().window();
        for samples in [1, 2, window / 4, window - 1, window, window + 1, 3 * window] {
            let error = reconstruction_error(rate, DEFAULT_WINDOW_SECONDS, samples, 1);
            assert!(error < 1e-6, "{rate} Hz, {samples} samples: {error}");
        }
    }
}

#[test]
fn windows_are_64_ms_and_bins_15_625_hz_at_every_rate() {
    for rate in RATES {
        let stft = Stft::new(rate, DEFAULT_WINDOW_SECONDS).unwrap();
        assert!((stft.bin_spacing() / 15.625 - 1.0).abs() < 0.0015, "{rate}: {}", stft.bin_spacing());
        assert_eq!((stft.window() % 2, stft.hop()), (0, stft.window() / 4));
    }
    assert_eq!(Stft::new(16_000, DEFAULT_WINDOW_SECONDS).unwrap().window(), 1024);
    assert_eq!(Stft::new(11_025, DEFAULT_WINDOW_SECONDS).unwrap().window(), 706);
    // A quarter of the window is not a whole number of samples.
    let grid = Stft::new(11_025, DEFAULT_WINDOW_SECONDS).unwrap().grid();
    assert_eq!(grid.frame_seconds, 176.0 / 11_025.0);
    assert_eq!((grid.bins, grid.bin_hertz), (354, 11_025.0 / 706.0));
    for seconds in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
        assert!(Stft::new(16_000, seconds).is_err());
    }
}

/// A sinusoid on a bin: amplitude times half the sum of the window in the bin, zero two bins away.
#[test]
fn a_sinusoid_is_in_its_bin() {
    let stft = Stft::new(16_000, DEFAULT_WINDOW_SECONDS).unwrap();
    let samples: Vec<f32> =
        (0..4096).map(|n| (0.5 * (2.0 * PI * 64.0 * f64::from(n) / 1024.0).cos()) as f32).collect();
    let spectrogram = stft.analyse(&samples);
    let frame = spectrogram.frame(8); // samples 1280 to 2304
    assert!((frame[64] - Complex::new(128.0, 0.0)).norm() < 1e-3, "{}", frame[64]);
    assert!((frame[65] - Complex::new(-64.0, 0.0)).norm() < 1e-3, "{}", frame[65]);
    assert!(frame[67..].iter().chain(&frame[..62]).all(|x| x.norm() < 1e-3));
}

#[test]
fn blocks_of_any_length_give_the_same_bits_as_the_whole() {
    use rand::RngExt;
    let mut random = crate::random::SeedTree::new(7).rng(0);
    for rate in [8_000, 11_025, 48_000] {
        let stft = Stft::new(rate, DEFAULT_WINDOW_SECONDS).unwrap();
        for length in [1, 700, 20_000] {
            let signal = noise(length, 3);
            let (mut analyser, mut synthesiser) = (stft.analyser(), stft.synthesiser());
            let mut all = Spectrogram::new(stft.bins(), 0);
            let mut again = Vec::new();
            let mut rest = &signal[..];
            while !rest.is_empty() {
                let (block, others) = rest.split_at(random.random_range(0..=rest.len().min(3_000)));
                let mut frames = Spectrogram::new(stft.bins(), 0);
                analyser.push(block, &mut frames);
                synthesiser.push(&frames, &mut again);
                all.values.extend(frames.as_slice());
                rest = others;
                // The documented latency.
                let pushed = length - rest.len();
                assert_eq!(all.frames(), pushed / stft.hop());
                assert_eq!(again.len(), (all.frames() * stft.hop()).saturating_sub(stft.lead()));
            }
            let mut frames = Spectrogram::new(stft.bins(), 0);
            analyser.finish(&mut frames);
            synthesiser.push(&frames, &mut again);
            synthesiser.finish(length as u64, &mut again);
            all.values.extend(frames.as_slice());
            assert_eq!(all, stft.analyse(&signal));
            assert_eq!(again, stft.synthesise(&all, length));
        }
    }
}

#[test]
fn an_empty_signal_has_no_frames() {
    let stft = Stft::new(8_000, DEFAULT_WINDOW_SECONDS).unwrap();
    let spectrogram = stft.analyse(&[]);
    assert_eq!(spectrogram.frames(), 0);
    assert!(stft.synthesise(&spectrogram, 0).is_empty());
    assert_eq!(stft.synthesise(&spectrogram, 3), [0.0; 3]);
}
