//! Removal of steady tones from a recorded voice: offline, and live above the band of the causal network.

use super::shared::{denoised, denoiser, voice};
use alphamf::Settings;
use alphamf::denoiser::{ChannelMode, GainSettings, LiveControls, LiveSettings, SessionSettings};
use alphamf::random::SeedTree;
use rand::RngExt;
use std::f32::consts::TAU;

const LEVEL: f32 = 0.01;

/// The clean demo, three times.
fn long_voice() -> Vec<f32> {
    voice().repeat(3)
}

fn with_tone(voice: &[f32], hertz: f32, rate: u32) -> Vec<f32> {
    let turns = |n: usize| (f64::from(hertz) * n as f64 / f64::from(rate)).fract() as f32;
    voice.iter().enumerate().map(|(n, x)| x + LEVEL * (TAU * turns(n)).sin()).collect()
}

/// Level of a tone relative to that of [`with_tone`], dB: the median over 0.1 s pieces, as consonants have power there.
fn tone_level(samples: &[f32], hertz: f32, rate: u32) -> f32 {
    let piece = rate as usize / 10;
    let mut levels: Vec<f32> = samples
        .chunks_exact(piece)
        .map(|x| {
            let part = |shift: f32| -> f32 {
                let angle = |n: usize| TAU * (hertz * n as f32 / rate as f32).fract() + shift;
                x.iter().enumerate().map(|(n, x)| x * angle(n).cos()).sum()
            };
            part(0.0).hypot(part(TAU / 4.0)) * 2.0 / (piece as f32 * LEVEL)
        })
        .collect();
    levels.sort_by(f32::total_cmp);
    20.0 * levels[levels.len() / 2].log10()
}

#[test]
fn between_harmonics_they_are_removed() {
    const RATE: u32 = 16_000;
    let denoiser = denoiser(Settings::default());
    for hertz in [2_000.0, 4_000.0, 7_000.0] {
        let noisy = with_tone(&long_voice(), hertz, RATE);
        let level = tone_level(&denoised(&denoiser, &noisy, RATE), hertz, RATE);
        assert!(level < -30.0, "{hertz} Hz: {level} dB");
    }
}

/// Hum is subtracted before the gain is applied, so the voice around it has no effect. An array subtracts hum once,
/// despite its two passes.
#[test]
fn the_minimum_gain_of_hum_is_left_and_it_counts_as_noise() {
    const RATE: u32 = 16_000;
    let lead = 2 * RATE as usize;
    let voice = [vec![0.0; lead], long_voice()[..6 * RATE as usize].to_vec()].concat();
    let mut random = SeedTree::new(1).rng(0);
    let mut channel = || -> Vec<f32> {
        let with_tone = with_tone(&voice, 350.0, RATE);
        with_tone.iter().map(|x| x + 3e-4 * random.random_range(-1.0..1.0_f32)).collect()
    };
    let recording = [channel(), channel()];
    let floor_db = -12.0;
    let gain = GainSettings { floor_db, ..Settings::fast().gain };
    let denoiser = denoiser(Settings { gain, ..Settings::fast() });
    for channels in [ChannelMode::Shared, ChannelMode::Array] {
        let settings = SessionSettings { channels, ..SessionSettings::default() };
        let mut session = denoiser.session(RATE, 2, settings).unwrap();
        let mut speech = session.push(&[&recording[0], &recording[1]]).unwrap().speech;
        speech[0].extend(&session.finish().unwrap().speech[0]);
        let left = f64::from(tone_level(&speech[0][lead / 4..lead * 3 / 4], 350.0, RATE));
        assert!((left - floor_db).abs() < 0.5, "{channels:?}: {left} dB");
        let statistics = session.statistics();
        let [before, after] = [statistics.noise_before_dbfs, statistics.noise_after_dbfs].map(Option::unwrap);
        assert!((before + 43.0).abs() < 0.5, "{channels:?}: {before} dBFS before");
        assert!((after - before - floor_db).abs() < 0.5, "{channels:?}: {after} dBFS after");
        let hum = statistics.hum_dbfs.unwrap();
        assert!((hum + 43.0).abs() < 0.5, "{channels:?}: hum of {hum} dBFS");
        let [before, after] = [statistics.snr_before_db, statistics.snr_after_db].map(Option::unwrap);
        assert!(
            before < 23.0 && (after - before + floor_db).abs() < 1.5,
            "{channels:?}: {before} to {after} dB"
        );
    }
    let mut session = denoiser.session(RATE, 1, SessionSettings::default()).unwrap();
    session.push(&[&voice]).unwrap();
    session.finish().unwrap();
    assert_eq!(session.statistics().hum_dbfs, None);
}

#[test]
fn live_the_minimum_gain_of_hum_is_left_and_the_meters_count_it() {
    const RATE: u32 = 16_000;
    let denoiser = denoiser(Settings::fast());
    let mut random = SeedTree::new(2).rng(0);
    let input: Vec<f32> = with_tone(&vec![0.0; 8 * RATE as usize], 350.0, RATE)
        .iter()
        .map(|x| x + 3e-4 * random.random_range(-1.0..1.0_f32))
        .collect();
    for (floor_db, gain_exponent, expected) in [(-12.0, 1.0, -12.0), (-12.0, 0.5, -6.0), (-40.0, 0.0, 0.0)] {
        let controls = LiveControls { floor_db, gain_exponent, ..LiveControls::default() };
        let settings = LiveSettings { controls, ..LiveSettings::default() };
        let mut live = denoiser.live(RATE, 1, settings).unwrap();
        let mut output = vec![0.0; input.len()];
        live.process(&input, &mut output);
        let left = tone_level(&output[5 * RATE as usize..], 350.0, RATE);
        assert!((left - expected).abs() < 0.5, "{floor_db} dB, exponent {gain_exponent}: {left} dB");
        let meters = live.meters();
        assert!(
            (meters.noise_dbfs + 43.0).abs() < 0.5 && (meters.gain_db - expected).abs() < 0.5,
            "{meters:?}"
        );
        // The remaining hum is aligned with the output: an exponent of zero returns the input.
        let whole = &output[live.latency()..];
        if gain_exponent == 0.0 {
            assert!(whole.iter().zip(&input).all(|(y, x)| (y - x).abs() < 1e-5));
        }
    }
}

/// Tones such as the whine of a screen. The band of the causal network ends at 8 kHz.
#[test]
fn live_above_the_network_they_are_gone_after_two_seconds() {
    const RATE: u32 = 48_000;
    let denoiser = denoiser(Settings::fast());
    // Linear interpolation of the demo's 16 kHz leaves little above 8 kHz.
    let points = long_voice();
    let between = points.windows(2).flat_map(|x| [0.0, 1.0, 2.0].map(|n| x[0] + n / 3.0 * (x[1] - x[0])));
    let clean: Vec<f32> = between.collect();
    for hertz in [9_000.0, 15_630.0, 19_000.0] {
        let input = with_tone(&clean, hertz, RATE);
        let mut live = denoiser.live(RATE, 1, LiveSettings::default()).unwrap();
        let mut output = vec![0.0; input.len()];
        live.process(&input, &mut output);
        let level = tone_level(&output[2 * RATE as usize + live.latency()..], hertz, RATE);
        assert!(level < -30.0, "{hertz} Hz: {level} dB");
    }
}
