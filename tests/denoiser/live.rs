//! Live denoising: guarantees of [`LiveDenoiser`], and defects that users report of other live denoisers.

use super::shared::{demo, denoiser};
use crate::counting::allocations;
use alphamf::denoiser::{LiveControls, LiveSettings};
use alphamf::model::DictionaryHeader;
use alphamf::random::SeedTree;
use alphamf::{Denoiser, Dictionary, LiveDenoiser, Settings};
use alphamf_eval::metrics;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::f32::consts::TAU;
use std::sync::LazyLock;

static DENOISER: LazyLock<Denoiser> = LazyLock::new(|| denoiser(Settings::fast()));

fn live(rate: u32, channels: usize, controls: LiveControls) -> LiveDenoiser {
    DENOISER.live(rate, channels, LiveSettings { controls, ..LiveSettings::default() }).unwrap()
}

const PASS: LiveControls = LiveControls {
    gain_exponent: 1.0,
    floor_db: -45.0,
    mix: 0.0,
    bypass: false,
    voice_threshold: 0.5,
    voice_hang_over_seconds: 0.3,
};

pub(super) fn noise(samples: usize, level: f32, seed: u64) -> Vec<f32> {
    let mut random = SeedTree::new(seed).rng(0);
    (0..samples).map(|_| level * random.random_range(-1.0..1.0_f32)).collect()
}

fn run(live: &mut LiveDenoiser, input: &[f32], size: usize) -> Vec<f32> {
    let mut output = vec![0.0; input.len()];
    let size = size * live.channels();
    input.chunks(size).zip(output.chunks_mut(size)).for_each(|(x, y)| live.process(x, y));
    output
}

/// Mean square, dB.
fn level(samples: &[f32]) -> f32 {
    10.0 * (samples.iter().map(|x| x * x).sum::<f32>() / samples.len() as f32).log10()
}

/// Plosives and glottal pulses are not removed as clicks.
#[test]
fn a_clean_voice_passes_where_nothing_is_attenuated() {
    let clean = demo("demo-clean.wav");
    let input = clean.channels()[0].repeat(4);
    let mut live = live(clean.sample_rate(), 1, LiveControls { floor_db: 0.0, ..LiveControls::default() });
    let output = run(&mut live, &input, 160);
    let latency = live.latency();
    let error: Vec<f32> = output[latency..].iter().zip(&input).map(|(y, x)| y - x).collect();
    assert!(level(&error) - level(&input) < -60.0, "{} dB", level(&error) - level(&input));
}

#[test]
fn blocks_of_any_size_give_the_same_samples() {
    let input = noise(2 * 24_000, 0.1, 1);
    let whole = run(&mut live(48_000, 2, LiveControls::default()), &input, 24_000);
    assert!(level(&whole) > -80.0);
    for size in [1, 16, 64, 441, 1_023] {
        let divided = run(&mut live(48_000, 2, LiveControls::default()), &input, size);
        assert!(divided == whole, "blocks of {size}");
    }
}

#[test]
fn the_latency_is_what_is_said_at_every_rate() {
    for rate in [8_000, 11_025, 16_000, 44_100, 48_000, 96_000, 192_000] {
        for latency_seconds in [0.004, 0.008, 0.016, 0.032, 0.048, 0.064] {
            let settings = LiveSettings { latency_seconds, controls: PASS };
            let mut live = DENOISER.live(rate, 1, settings).unwrap();
            let latency = live.latency();
            let wanted = latency_seconds * f64::from(rate);
            // Rounding of half a sample per hop: two hops, or above 32 ms three or four, which must fit into a window.
            let tolerance = if latency_seconds > 0.032 { 2.5 } else { 1.0 };
            assert!((latency as f64 - wanted).abs() <= tolerance, "{rate} Hz: {latency} for {wanted}");
            let input = noise(3 * latency + 1_000, 0.5, 2);
            // A mix of zero returns the delayed input, bit for bit.
            let output = run(&mut live, &input, 100);
            assert!(output[..latency].iter().all(|y| *y == 0.0));
            assert!(output[latency..] == input[..input.len() - latency]);
            // A mix of one and an exponent of zero return the input through the transform.
            live.set_controls(LiveControls { gain_exponent: 0.0, mix: 1.0, ..PASS });
            live.reset();
            let output = run(&mut live, &input, 100);
            let error = output[latency..].iter().zip(&input).map(|(y, x)| (y - x).abs());
            let error = error.fold(0.0, f32::max);
            assert!(error < 1e-5, "{rate} Hz, {latency_seconds} s: {error}");
        }
    }
    let refused = |latency_seconds| {
        let settings = LiveSettings { latency_seconds, ..LiveSettings::default() };
        DENOISER.live(48_000, 1, settings).err().unwrap().to_string()
    };
    assert_eq!(refused(0.5), "latency_seconds is 0.5; expected 0.004 to 0.064");
    assert!(refused(f64::NAN).contains("latency_seconds"));
    assert!(DENOISER.live(4_000, 1, LiveSettings::default()).is_err());
    assert!(DENOISER.live(48_000, 0, LiveSettings::default()).is_err());
}

#[test]
fn a_latency_beyond_the_window_of_a_dictionary_names_the_dictionary() {
    let header = DictionaryHeader {
        window_seconds: 0.01,
        sample_rate: 8_000,
        rank: 1,
        continuation: None,
        ..DENOISER.dictionary().header().clone()
    };
    let bins = header.bins();
    let dictionary = Dictionary::new(header, vec![1.0; bins]).unwrap();
    let denoiser = Denoiser::new(dictionary, Settings::default()).unwrap();
    let refused = |latency_seconds| {
        let settings = LiveSettings { latency_seconds, ..LiveSettings::default() };
        denoiser.live(8_000, 1, settings).err().map(|error| error.to_string())
    };
    let expected = "latency is 16 ms; expected 4 to 10 ms, a window of the dictionary";
    assert_eq!(refused(0.016).as_deref(), Some(expected));
    assert_eq!(refused(0.002).as_deref(), Some("latency_seconds is 0.002; expected 0.004 to 0.01"));
    assert_eq!(refused(0.008), None);
}

#[test]
fn an_impulse_takes_the_latency_at_every_rate() {
    for rate in [8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000] {
        for latency_seconds in [0.004, 0.008, 0.016, 0.032, 0.048, 0.064] {
            let settings = LiveSettings { latency_seconds, ..LiveSettings::default() };
            let mut live = DENOISER.live(rate, 1, settings).unwrap();
            let latency = live.latency();
            assert!(latency as f64 <= latency_seconds * f64::from(rate) + 1.5, "{rate} Hz: {latency}");
            let mut input = noise(rate as usize / 2, 1e-3, 10);
            let at = rate as usize / 4;
            input[at] = 0.5;
            // The exponent 1 is tested at the default latency only: at 4 ms, the residual of an impulse is spread.
            let exponents: &[f32] = if latency_seconds == 0.016 { &[0.0, 0.1, 1.0] } else { &[0.0, 0.1] };
            for &gain_exponent in exponents {
                live.set_controls(LiveControls { gain_exponent, ..LiveControls::default() });
                live.reset();
                let output = run(&mut live, &input, 100);
                let (peak, _) =
                    output.iter().enumerate().max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs())).unwrap();
                assert_eq!(peak, at + latency, "{rate} Hz, {latency_seconds} s, exponent {gain_exponent}");
            }
        }
    }
}

#[test]
fn speech_starts_and_ends_where_the_voice_does() {
    let voice = demo("demo-clean.wav");
    let rate = voice.sample_rate() as usize;
    let voice = &voice.channels()[0];
    let (before, after) = (2 * rate, 2 * rate + voice.len());
    let mut input = noise(after + 3 * rate, 0.01, 11);
    input[before..].iter_mut().zip(voice).for_each(|(x, voice)| *x += voice);
    let found = |controls: LiveControls, size: usize| {
        let mut live = live(rate as u32, 1, controls);
        let mut output = vec![0.0; input.len()];
        let mut events = Vec::new();
        let mut probabilities = Vec::new();
        for (x, y) in input.chunks(size).zip(output.chunks_mut(size)) {
            live.process_with_events(x, y, |event| events.push((event.speaking, event.sample as usize)));
            let meters = live.meters();
            assert_eq!(meters.speech_probability, live.voice_activity().probability);
            assert_eq!(live.voice_activity().speaking, events.last().is_some_and(|(speaking, _)| *speaking));
            probabilities.push(meters.speech_probability);
        }
        (output, events, probabilities)
    };
    let hop = live(rate as u32, 1, LiveControls::default()).latency() / 2;
    let (output, events, probabilities) = found(LiveControls::default(), hop);
    // Starts and ends alternate, within the duration of the voice.
    assert!(events.iter().enumerate().all(|(n, (speaking, _))| *speaking == (n % 2 == 0)), "{events:?}");
    let hang_over = 3 * rate / 10;
    assert!(events[0].1 >= before, "{events:?}");
    assert!(events.iter().all(|(_, sample)| *sample < after + hang_over + rate / 4), "{events:?}");
    assert!(events.len() % 2 == 0 && events.iter().all(|(_, sample)| sample % hop == 0), "{events:?}");
    // Frames of the voice within 30 dB of the loudest have a higher probability than frames of noise alone.
    let power = |frame: &[f32]| frame.iter().map(|x| x * x).sum::<f32>();
    let loudest = voice.chunks(hop).map(power).fold(0.0, f32::max);
    let of = |range: std::ops::Range<usize>| &probabilities[range.start / hop..range.end / hop];
    let loud: Vec<f32> = voice
        .chunks(hop)
        .zip(of(before..after))
        .filter(|(frame, _)| power(frame) > 1e-3 * loudest)
        .map(|(_, probability)| *probability)
        .collect();
    let mean = |values: &[f32]| values.iter().sum::<f32>() / values.len() as f32;
    let (speech, noise) = (mean(&loud), mean(of(rate / 2..before)));
    assert!(speech > 0.8 && noise < 0.2, "{speech} in speech, {noise} in noise");

    // Events do not depend on the block size, nor the output on the voice threshold.
    let (_, again, _) = found(LiveControls::default(), 1_000);
    assert_eq!(again, events);
    let (same, never, _) = found(LiveControls { voice_threshold: 1.0, ..LiveControls::default() }, hop);
    assert!(same == output && never.is_empty(), "{never:?}");
    // A hang-over of 2.5 s joins all sections; without a hang-over, there are more sections.
    let count = |voice_hang_over_seconds: f32| {
        found(LiveControls { voice_hang_over_seconds, ..LiveControls::default() }, hop).1.len()
    };
    assert_eq!(count(2.5), 2);
    assert!(count(0.0) > events.len());
}

#[test]
fn a_voice_comes_out_of_its_noise() {
    let (noisy, clean) = (demo("demo-noisy.wav"), demo("demo-clean.wav"));
    let mut live = live(noisy.sample_rate(), 1, LiveControls::default());
    let mut input = noisy.channels()[0].clone();
    input.resize(noisy.len() + live.latency(), 0.0);
    let output = run(&mut live, &input, 480);
    let wide = |samples: &[f32]| samples.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let clean = wide(&clean.channels()[0]);
    let score = |estimate: &[f32]| metrics::si_sdr(&clean, &wide(estimate)).unwrap();
    let before = score(&noisy.channels()[0]);
    let after = score(&output[live.latency()..]);
    assert!(after > before + 4.0, "{before} dB before, {after} dB after");
}

#[test]
fn an_offset_is_removed_without_a_click() {
    let (noisy, clean) = (demo("demo-noisy.wav"), demo("demo-clean.wav"));
    let rate = noisy.sample_rate();
    let denoised = |level: f32| {
        let mut live = live(rate, 1, LiveControls::default());
        let mut input: Vec<f32> = noisy.channels()[0].iter().map(|x| x + level).collect();
        input.resize(noisy.len() + live.latency(), level);
        run(&mut live, &input, 480).split_off(live.latency())
    };
    let wide = |samples: &[f32]| samples.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let score = |output: &[f32]| metrics::si_sdr(&wide(&clean.channels()[0]), &wide(output)).unwrap();
    let expected = denoised(0.0);
    for level in [0.05, -0.4] {
        let output = denoised(level);
        let (before, after) = (score(&expected), score(&output));
        assert!(after > before - 0.5, "{level}: {before} dB without an offset, {after} dB with one");
        let difference = output.iter().zip(&expected).map(|(a, b)| (a - b).abs());
        let start = difference.take(rate as usize / 20).fold(0.0, f32::max);
        assert!(start < 0.02 * level.abs(), "{level}: {start}");
    }
}

#[test]
fn noise_is_known_soon_and_followed() {
    for rate in [8_000, 16_000, 48_000] {
        let second = rate as usize;
        let mut live = live(rate, 1, LiveControls::default());
        let mut input = noise(3 * second, 0.01, 3);
        // Noise that is 20 dB louder, then noise at this level again after 2 s of digital silence.
        input.extend(noise(3 * second, 0.1, 4));
        input.extend(vec![0.0; 2 * second]);
        input.extend(noise(second, 0.1, 5));
        let output = run(&mut live, &input, 64);
        let latency = live.latency();
        let change = |from: f32, to: f32| {
            let [from, to] = [from, to].map(|time| (time * second as f32) as usize);
            level(&output[from + latency..to + latency]) - level(&input[from..to])
        };
        for (what, change) in [
            ("0.3 s after the start", change(0.3, 1.0)),
            ("later", change(2.0, 3.0)),
            ("1 s after it has become louder", change(4.0, 4.5)),
            ("later", change(5.0, 6.0)),
            ("after silence", change(8.1, 8.9)),
        ] {
            assert!(change < -15.0, "{rate} Hz, {what}: {change} dB");
        }
        // From the first window of 64 ms that holds only silence.
        let silent = &output[6 * second + second * 64 / 1_000 + latency..8 * second];
        assert!(silent.iter().all(|y| y.abs() < 1e-6), "{rate} Hz");
        let meters = live.meters();
        assert!((meters.noise_dbfs - level(&input[5 * second..6 * second])).abs() < 3.0, "{meters:?}");
        assert!(meters.gain_db < -15.0, "{meters:?}");
    }
}

#[test]
fn steady_noise_alone_is_gone_within_two_seconds() {
    for (rate, amplitude) in [(16_000, 0.1), (16_000, 0.01), (48_000, 0.1)] {
        let mut random = SeedTree::new(11).rng(0);
        let gaussian =
            |_| amplitude * <StandardNormal as Distribution<f32>>::sample(&StandardNormal, &mut random);
        let input: Vec<f32> = (0..6 * rate).map(gaussian).collect();
        let mut live = live(rate as u32, 1, LiveControls::default());
        let change = level(&run(&mut live, &input, 480)[2 * rate..]) - level(&input[2 * rate..]);
        assert!(change < -40.0, "{rate} Hz, {amplitude}: {change} dB");
    }
}

#[test]
fn invalid_samples_leave_no_lasting_effect() {
    let mut live = live(16_000, 1, LiveControls::default());
    let mut fresh = live.clone();
    let good = noise(5 * 16_000, 0.05, 6);
    run(&mut live, &good, 128);
    let bad = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE / 8.0, -1e30, 1e-42];
    let input: Vec<f32> = (0..16_000).map(|n| if n % 3 == 0 { bad[n / 3 % 7] } else { good[n] }).collect();
    assert!(run(&mut live, &input, 128).iter().all(|y| y.is_finite()));
    // Clipped noise and subnormal samples give finite output.
    let clipped: Vec<f32> = noise(16_000, 8.0, 7).iter().map(|x| x.clamp(-1.0, 1.0)).collect();
    assert!(run(&mut live, &clipped, 128).iter().all(|y| y.is_finite()));
    let subnormal = vec![1e-40; 16_000];
    assert!(run(&mut live, &subnormal, 128).iter().all(|y| y.is_finite()));
    // The state of a band decays with a time constant of 8 s: after a minute, it has no effect.
    let [harmed, spared] = [&mut live, &mut fresh].map(|live| {
        run(live, &noise(60 * 16_000, 0.05, 8), 128);
        level(&run(live, &noise(3 * 16_000, 0.05, 9), 128))
    });
    assert!((harmed - spared).abs() < 0.1, "{spared} dB without, {harmed} dB after");
    // Output without a matching frame of input is filled with zeros.
    let mut output = [1.0; 7];
    live.process(&[0.0; 3], &mut output);
    assert!(output[3..] == [0.0; 4]);
    live.process(&[0.0; 9], &mut output);
    let mut pairs = DENOISER.live(16_000, 2, LiveSettings::default()).unwrap();
    pairs.process(&[0.5; 7], &mut output);
    assert!(output[6] == 0.0);
}

#[test]
fn controls_are_faded() {
    let input: Vec<f32> = (0..48_000).map(|n| 0.5 * (TAU * 200.0 * n as f32 / 48_000.0).sin()).collect();
    let steepest = |samples: &[f32]| samples.windows(2).map(|w| (w[1] - w[0]).abs()).fold(0.0, f32::max);
    let mut live = live(48_000, 1, LiveControls::default());
    let mut output = Vec::new();
    for (n, block) in input.chunks(4_800).enumerate() {
        let bypass = n % 2 == 0;
        live.set_controls(LiveControls {
            bypass,
            floor_db: -60.0 * (n % 3) as f32,
            ..LiveControls::default()
        });
        output.extend(run(&mut live, block, 64));
    }
    // The steepest step of the tone, plus that of a fade over its peak-to-peak range in 20 ms.
    let most = steepest(&input) * 1.2 + 2.0 * 0.5 / 960.0;
    assert!(steepest(&output[1_000..]) < most, "{} of {most}", steepest(&output[1_000..]));

    let wild = LiveControls {
        gain_exponent: f32::NAN,
        floor_db: 7.0,
        mix: -1.0,
        voice_threshold: 2.0,
        voice_hang_over_seconds: f32::INFINITY,
        ..PASS
    };
    live.set_controls(wild);
    let near = LiveControls { floor_db: 0.0, voice_threshold: 1.0, voice_hang_over_seconds: 10.0, ..PASS };
    assert_eq!(live.controls(), near);
    let settings = LiveSettings { controls: wild, ..LiveSettings::default() };
    assert!(DENOISER.live(48_000, 1, settings).is_err());
}

#[test]
fn learned_noise_is_removed_at_once() {
    let hum =
        |n: usize| 0.1 * (1..6).map(|k| (TAU * 310.0 * k as f32 * n as f32 / 16_000.0).sin()).sum::<f32>();
    let input: Vec<f32> = (0..16_000).map(hum).collect();
    let mut live = live(16_000, 1, LiveControls::default());
    live.learn_noise(0.5);
    let output = run(&mut live, &input, 160);
    let change = level(&output[2_000..]) - level(&input[2_000..]);
    assert!(change < -20.0, "{change} dB");
    // During the estimate, the gain is the minimum gain.
    let floor = LiveControls::default().floor_db;
    let change = level(&output[2_000..8_000]) - level(&input[2_000..8_000]);
    assert!((change - floor).abs() < 1.0, "{change} dB");
}

/// Digital silence of a muted microphone counts towards the time. An exponent of zero passes the input meanwhile.
#[test]
fn noise_is_estimated_from_the_next_seconds_whatever_they_hold() {
    let input = [vec![0.0; 16_000], noise(8_000, 0.2, 3)].concat();
    let mut muted = live(16_000, 1, LiveControls::default());
    muted.learn_noise(0.5);
    let mut usual = live(16_000, 1, LiveControls::default());
    assert!(run(&mut muted, &input, 160) == run(&mut usual, &input, 160));

    let mut passing = live(16_000, 1, LiveControls { gain_exponent: 0.0, ..LiveControls::default() });
    passing.learn_noise(0.5);
    let output = run(&mut passing, &input[16_000..], 160);
    let change = level(&output[2_000..6_000]) - level(&input[18_000..22_000]);
    assert!(change.abs() < 1.0, "{change} dB");
}

/// Without smoothing, the level of the output would jump by the whole minimum gain within a hop.
#[test]
fn the_exponent_changes_smoothly_while_noise_is_learned() {
    let input = noise(16_000, 0.2, 4);
    let mut live = live(16_000, 1, LiveControls { gain_exponent: 0.0, ..LiveControls::default() });
    live.learn_noise(f64::INFINITY);
    run(&mut live, &input[..8_000], 160);
    live.set_controls(LiveControls::default());
    let output = run(&mut live, &input[8_000..], 160);
    let changes: Vec<f32> = (0..50)
        .map(|n| n * 160..(n + 1) * 160)
        .map(|hop| {
            level(&output[hop.clone()]) - level(&input[hop.start + 8_000 - 256..hop.end + 8_000 - 256])
        })
        .collect();
    for pair in changes.windows(2) {
        assert!((pair[1] - pair[0]).abs() < 15.0, "{changes:?}");
    }
    assert!((changes[49] - LiveControls::default().floor_db).abs() < 1.0, "{changes:?}");
}

#[test]
fn channels_have_one_gain_and_a_reset_is_a_new_start() {
    let mono = noise(8_000, 0.2, 8);
    let pairs: Vec<f32> = mono.iter().flat_map(|x| [*x, 0.25 * x]).collect();
    let mut live = live(16_000, 2, LiveControls::default());
    let output = run(&mut live, &pairs, 100);
    assert!(output.chunks_exact(2).all(|frame| frame[1] == 0.25 * frame[0]));
    live.reset();
    assert!(run(&mut live, &pairs, 77) == output);
    // The meters also restart, even in silence, where no frame is separated.
    live.reset();
    run(&mut live, &[0.0; 3_200], 77);
    let mut new = self::live(16_000, 2, LiveControls::default());
    run(&mut new, &[0.0; 3_200], 77);
    assert_eq!(live.meters(), new.meters());
}

#[test]
fn a_reset_to_learned_noise_starts_from_it() {
    let (learned, input) = (noise(16_000, 0.01, 12), noise(8_000, 0.2, 13));
    let mut live = live(16_000, 1, LiveControls::default());
    let unlearned = run(&mut live, &input, 100);
    live.reset_to_learned_noise();
    assert!(run(&mut live, &input, 100) == unlearned);
    live.learn_noise(f64::INFINITY);
    run(&mut live, &learned, 100);
    // A stop of the estimate keeps the learned noise.
    live.learn_noise(0.0);
    let [output, again] = [50, 100].map(|size| {
        live.reset_to_learned_noise();
        run(&mut live, &input, size)
    });
    assert!(output == again && output != unlearned);
    live.reset();
    assert!(run(&mut live, &input, 100) == unlearned);
    let noise_dbfs = [LiveDenoiser::reset, LiveDenoiser::reset_to_learned_noise].map(|reset| {
        reset(&mut live);
        run(&mut live, &input[..1_600], 100);
        live.meters().noise_dbfs
    });
    assert!(noise_dbfs[0] - noise_dbfs[1] > 3.0, "{noise_dbfs:?}");
}

#[test]
fn learned_noise_can_be_kept_for_a_later_session() {
    let (learned, input) = (noise(16_000, 0.01, 12), noise(8_000, 0.2, 13));
    let mut first = live(16_000, 1, LiveControls::default());
    assert_eq!(first.learned_noise(), None);
    first.learn_noise(0.9);
    run(&mut first, &learned, 100);
    let power = first.learned_noise().unwrap().to_vec();
    // The power of uniformly distributed white noise: a third of its squared peak.
    let mean = power.iter().sum::<f32>() / power.len() as f32;
    assert!((3.0 * mean / 0.01_f32.powi(2)).ln().abs() < 0.1, "{mean:e}");
    first.reset_to_learned_noise();
    let expected = run(&mut first, &input, 100);

    let mut later = live(16_000, 1, LiveControls::default());
    let unlearned = run(&mut later, &input, 100);
    later.reset();
    later.set_learned_noise(Some(&power)).unwrap();
    assert!(run(&mut later, &input, 100) == expected && expected != unlearned);
    let wrong = [vec![1.0; power.len() - 1], vec![-1.0; power.len()], vec![f32::NAN; power.len()]];
    for wrong in wrong {
        later.set_learned_noise(Some(&wrong)).unwrap_err();
        assert_eq!(later.learned_noise(), Some(&power[..]));
    }
    // Digital silence after the last window with sound leaves the learned noise unchanged.
    run(&mut later, &[0.0; 1_600], 100);
    later.learn_noise(0.5);
    run(&mut later, &[0.0; 16_000], 100);
    assert_eq!(later.learned_noise(), Some(&power[..]));
    later.learn_noise(0.5);
    run(&mut later, &input, 100);
    assert_ne!(later.learned_noise(), Some(&power[..]));
    later.set_learned_noise(None).unwrap();
    later.reset_to_learned_noise();
    assert!(later.learned_noise().is_none() && run(&mut later, &input, 100) == unlearned);
}

/// One second of varied input, repeated every minute: noise whose level varies by 50 dB, voices made of pulses, hum,
/// music, clipping, clicks, digital silence and NaN.
fn second_of_a_day(second: usize) -> Vec<f32> {
    const RATE: usize = 8_000;
    let time = |n: usize| (second % 60 * RATE + n) as f32 / RATE as f32;
    let seed = (second % 60) as u64;
    let level = [0.003, 0.05, 0.01, 0.3, 0.02, 0.001][second / 10 % 6];
    let mut sound = noise(RATE, level, seed);
    match second / 5 % 6 {
        1 => (0..RATE).step_by(80).filter(|n| n / 2_000 % 2 == 0).for_each(|n| sound[n] += 0.5),
        2 => sound.iter_mut().enumerate().for_each(|(n, x)| *x += 0.1 * (TAU * 100.0 * time(n)).sin()),
        3 => sound.iter_mut().enumerate().for_each(|(n, x)| {
            let chord =
                [220.0, 277.0, 330.0].map(|pitch| (TAU * pitch * (1.0 + 0.01 * time(n)) * time(n)).sin());
            *x += 0.1 * chord.iter().sum::<f32>();
        }),
        4 => sound.iter_mut().for_each(|x| *x = (20.0 * *x).clamp(-1.0, 1.0)),
        5 => (0..RATE).step_by(997).for_each(|n| sound[n] = 1.0),
        _ => {}
    }
    match second % 60 {
        20..23 => sound.fill(0.0),
        40 => (0..RATE).step_by(501).for_each(|n| sound[n] = f32::NAN),
        _ => {}
    }
    sound
}

/// Asserts that, over `seconds` of varied input, the output stays finite, aligned to the sample and as loud as in the
/// second minute, without allocations.
fn long_run(seconds: usize) {
    let mut live = live(8_000, 1, LiveControls::default());
    let latency = live.latency();
    let (mut before, mut first_levels) = (vec![0.0; latency], Vec::new());
    let mut output = vec![0.0; 8_000];
    for second in 0..seconds {
        let input = second_of_a_day(second);
        // Bypass in the last second of each minute allows a check of the delay, and changes a control throughout.
        let bypass = second % 60 == 59;
        let count = allocations();
        live.set_controls(LiveControls { bypass, ..LiveControls::default() });
        input.chunks(256).zip(output.chunks_mut(256)).for_each(|(x, y)| live.process(x, y));
        assert_eq!(allocations(), count, "second {second}");
        assert!(output.iter().all(|y| y.is_finite()), "second {second}");
        before.extend(&input);
        if bypass {
            assert!(output[400..] == before[400..8_000], "second {second}");
        }
        before.drain(..8_000);
        // The second minute is the reference, as the first starts without an estimate.
        let level = level(&output).max(-80.0);
        if (60..120).contains(&second) {
            first_levels.push(level);
        } else if second >= 120 {
            let first: f32 = first_levels[second % 60];
            assert!((level - first).abs() < 3.0, "second {second}: {level} dB, at first {first} dB");
        }
    }
}

#[test]
fn minutes_later_it_is_as_at_first() {
    long_run(150);
}

/// `cargo test --test denoiser half_an_hour_later -- --ignored`
#[test]
#[ignore = "takes minutes"]
fn half_an_hour_later_it_is_as_at_first() {
    long_run(1_800);
}

/// `cargo test --test denoiser a_day_later -- --ignored`
#[test]
#[ignore = "takes an hour"]
fn a_day_later_it_is_as_at_first() {
    long_run(86_400);
}
