//! Tests that blocks join without seams for any division of the input, and that reports agree with the signals.

use super::memory::OVERLAP_FRAMES;
use super::*;
use crate::denoiser::block::Request;
use crate::denoiser::levels::{SlotBank, SlotPlan};
use crate::denoiser::{Denoiser, EmSettings, GainSettings, SamplingSettings, Settings};
use crate::model::Dictionary;
use crate::random::SeedTree;
use crate::transform::Stft;
use crate::wiener::floor::apply_floor;
use rand::RngExt;
use std::f32::consts::TAU;

const RATE: usize = 8_000;

fn one_sweep() -> Settings {
    Settings { em: EmSettings { iterations: Some(1), ..EmSettings::default() }, ..Settings::fast() }
}

/// A denoiser with the model alone: the network sometimes classifies the syllables below as noise.
fn denoiser() -> Denoiser {
    let gain = GainSettings { speech_presence: false, ..GainSettings::default() };
    Denoiser::new(Dictionary::built_in().unwrap(), Settings { gain, ..Settings::fast() }).unwrap()
}

fn stream_of(denoiser: &Denoiser, sample_rate: u32, channels: usize) -> DenoiseStream {
    DenoiseStream::new(Arc::clone(&denoiser.separator), sample_rate, channels).unwrap()
}

/// Syllables of a gliding voice for 0.6 s of every second, and white noise of the given level.
fn recording(seconds: usize, level: impl Fn(f32) -> f32) -> (Vec<f32>, Vec<f32>) {
    let mut stream = SeedTree::new(1).rng(0);
    (0..seconds * RATE)
        .map(|n| {
            let t = n as f32 / RATE as f32;
            let envelope = (TAU * 5.0 / 6.0 * (t % 1.0)).sin().max(0.0);
            let pitch = TAU * (120.0 * t + 4.0 * (0.7 * t).sin());
            let voice: f32 = (1..=20).map(|h| (h as f32 * pitch).sin() / h as f32).sum();
            (0.1 * envelope * voice, level(t) * stream.random_range(-1.0..1.0_f32))
        })
        .unzip()
}

fn denoise(samples: &[f32]) -> Vec<f32> {
    let denoiser = denoiser();
    let mut stream = stream_of(&denoiser, RATE as u32, 1);
    let mut output = stream.push(&[samples], &mut ()).unwrap().remove(0);
    output.extend(&stream.finish(&mut (), None).unwrap()[0]);
    output
}

/// Denoises samples in one block of any length.
fn denoise_at_once(samples: &[f32]) -> Vec<f32> {
    let denoiser = denoiser();
    let stft = Stft::new(RATE as u32, denoiser.dictionary().header().window_seconds).unwrap();
    let mut frames = stft.analyse(samples);
    let power: Vec<f32> = frames.as_slice().iter().map(|x| x.norm_sqr()).collect();
    let scale = power.len() as f32 / power.iter().sum::<f32>();
    let power: Vec<f32> = power.iter().map(|x| x * scale).collect();
    let streams = SeedTree::new(0);
    let request = Request::default();
    let separator = &denoiser.separator;
    let separated = separator.separate(stft.grid(), &power, request, streams, &mut (), None).unwrap();
    let mut gain = separated.gain;
    apply_floor(&mut gain, &separated.floor);
    frames.apply_gain(&gain);
    stft.synthesise(&frames, samples.len())
}

fn power(samples: &[f32]) -> f32 {
    samples.iter().map(|x| x * x).sum::<f32>() / samples.len() as f32
}

fn decibels(ratio: f32) -> f32 {
    10.0 * libm::log10f(ratio)
}

/// Attenuation of the noise between the syllables in every second, dB.
fn attenuations(noise: &[f32], output: &[f32]) -> Vec<f32> {
    let pauses = |x: &'_ [f32]| -> Vec<f32> {
        x.chunks_exact(RATE).map(|second| power(&second[RATE * 7 / 10..RATE * 9 / 10])).collect()
    };
    pauses(noise).iter().zip(pauses(output)).map(|(before, after)| decibels(before / after)).collect()
}

/// Changes of the gains of one result relative to another within a window (dB, RMS over bins), from every frame to the
/// fourth after it.
fn relative_jumps(noisy: &[f32], one: &[f32], other: &[f32]) -> Vec<f32> {
    let stft = Stft::new(RATE as u32, 0.064).unwrap();
    let [noisy, one, other] = [noisy, one, other].map(|x| stft.analyse(x));
    let ratios: Vec<f32> = noisy
        .as_slice()
        .iter()
        .zip(one.as_slice().iter().zip(other.as_slice()))
        .map(|(x, (one, other))| {
            let gain = |y: f32| decibels((y / x.norm_sqr()).clamp(1e-4, 1.0));
            gain(one.norm_sqr()) - gain(other.norm_sqr())
        })
        .collect();
    let frames: Vec<&[f32]> = ratios.chunks_exact(stft.bins()).collect();
    let change = |a: &[f32], b: &[f32]| {
        (a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>() / a.len() as f32).sqrt()
    };
    frames.windows(5).map(|window| change(window[0], window[4])).collect()
}

#[test]
fn blocks_join_without_a_seam() {
    // The last block is so short that it looks back.
    let (voice, noise) = recording(34, |_| 0.03);
    let noisy: Vec<f32> = voice.iter().zip(&noise).map(|(x, n)| x + n).collect();
    let (blocked, whole) = (denoise(&noisy), denoise_at_once(&noisy));
    let difference: Vec<f32> = blocked.iter().zip(&whole).map(|(a, b)| a - b).collect();
    // In sections of 50 ms, relative to the removed signal.
    let length = RATE / 20;
    let removed: Vec<f32> = noisy.iter().zip(&whole).map(|(x, y)| x - y).collect();
    let ratios: Vec<f32> = difference
        .chunks_exact(length)
        .zip(removed.chunks_exact(length))
        .map(|(difference, removed)| decibels(power(difference) / power(removed)))
        .collect();
    let largest = ratios.iter().copied().fold(f32::MIN, f32::max);
    assert!(largest < -15.0, "{largest} dB");
    // Where one block follows another, the gains change no more than they do within a block.
    let (mut joins, mut elsewhere) = (Vec::new(), Vec::new());
    let jumps = relative_jumps(&noisy, &blocked, &whole);
    for (index, &jump) in jumps.iter().enumerate() {
        let beyond = (index + 4) % (BLOCK_FRAMES - OVERLAP_FRAMES);
        if beyond < 4 && index > 4 {
            joins.push(jump);
        } else if beyond > 2 * OVERLAP_FRAMES {
            elsewhere.push(jump);
        }
    }
    assert_eq!(joins.len(), 4 * 4);
    let largest = joins.iter().copied().fold(0.0, f32::max);
    elsewhere.sort_by(f32::total_cmp);
    let (median, high) = (elsewhere[elsewhere.len() / 2], elsewhere[elsewhere.len() * 98 / 100]);
    assert!(largest < high, "{largest} dB where blocks join; elsewhere median {median}, 98% below {high}");
}

/// One block of samples returns all but the overlap with the next block, whatever the size of the pushes.
#[test]
fn the_first_output_comes_after_one_block() {
    let settings = one_sweep();
    let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), settings).unwrap();
    // The last block looks back.
    let (_, noise) = recording(17, |_| 0.1);
    let in_chunks = |size: usize| {
        let mut stream = stream_of(&denoiser, RATE as u32, 1);
        let (block, hop) = (stream.block_samples(), stream.front_end.stft().hop());
        let (mut given, mut output) = (0, Vec::new());
        for chunk in noise.chunks(size) {
            let mut new = stream.push(&[chunk], &mut ()).unwrap().remove(0);
            given += chunk.len();
            if given < block {
                assert!(new.is_empty(), "{} samples after {given}", new.len());
            } else if given < block + size && given < 2 * block {
                // The first frames begin before the recording.
                let lead = stream.front_end.stft().window() - hop;
                assert_eq!(new.len(), block - OVERLAP_FRAMES * hop - lead);
            }
            output.append(&mut new);
        }
        output.append(&mut stream.finish(&mut (), None).unwrap()[0]);
        output
    };
    let whole = in_chunks(noise.len());
    assert_eq!(whole.len(), noise.len());
    for size in [1, 777] {
        assert!(in_chunks(size) == whole, "in chunks of {size}");
    }
}

#[test]
fn what_waits_does_not_grow_with_the_recording() {
    let settings = one_sweep();
    let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), settings).unwrap();
    let mut stream = stream_of(&denoiser, RATE as u32, 1);
    let (_, noise) = recording(20, |_| 0.1);
    let (mut given, mut taken) = (0, 0);
    for _ in 0..8 {
        given += noise.len();
        taken += stream.push(&[&noise], &mut ()).unwrap()[0].len();
        assert!(given - taken <= stream.latency(), "{} samples after {} s", given - taken, given / RATE);
    }
}

#[test]
fn the_summary_agrees_with_the_signals() {
    // White noise of -40 dBFS in the pauses of a voice.
    let (voice, noise) = recording(20, |_| 0.01 * 3.0_f32.sqrt());
    let noisy: Vec<f32> = voice.iter().zip(&noise).map(|(x, n)| x + n).collect();
    let denoiser = denoiser();
    let mut stream = stream_of(&denoiser, RATE as u32, 1);
    let mut output = stream.push(&[&noisy], &mut ()).unwrap().remove(0);
    output.extend(&stream.finish(&mut (), None).unwrap()[0]);
    let summary = stream.summary();
    let pause = |x: &[f32]| -> f64 {
        let pauses: Vec<f32> =
            x.chunks_exact(RATE).flat_map(|x| &x[RATE * 7 / 10..RATE * 9 / 10]).copied().collect();
        decibels(power(&pauses)).into()
    };
    let snr = f64::from(decibels(power(&voice) / power(&noise)));
    assert!((summary.noise_before_dbfs - pause(&noisy)).abs() < 0.5, "{summary:?} {}", pause(&noisy));
    assert!((summary.noise_after_dbfs - pause(&output)).abs() < 3.0, "{summary:?} {}", pause(&output));
    assert!((summary.snr_before_db - snr).abs() < 2.0, "{summary:?} {snr}");
    assert!(summary.snr_after_db > summary.snr_before_db + 6.0, "{summary:?}");
    let error: Vec<f32> = output.iter().zip(&voice).map(|(found, voice)| found - voice).collect();
    let sdr = f64::from(decibels(power(&voice) / power(&error)));
    assert!((summary.expected_sdr_db - sdr).abs() < 3.0, "{summary:?} {sdr}");
}

#[test]
fn noise_that_changes_is_followed() {
    type Level = fn(f32) -> f32;
    // Slow changes over a minute, a sudden rise in a later block, and a sudden fall.
    let levels: [Level; 3] = [
        |t| 0.02 * libm::powf(10.0, 0.5 * (TAU * t / 60.0).sin()),
        |t| if t < 25.0 { 0.005 } else { 0.05 },
        |t| if t < 25.0 { 0.05 } else { 0.005 },
    ];
    for (case, level) in levels.into_iter().enumerate() {
        let (voice, noise) = recording(60, level);
        let noisy: Vec<f32> = voice.iter().zip(&noise).map(|(x, n)| x + n).collect();
        let output = denoise(&noisy);
        let found = attenuations(&noise, &output);
        // The noise estimate of a block follows its greater part: louder noise in the smaller part before it remains.
        let missed = found.iter().filter(|&&x| x < 15.0).count();
        assert!(missed <= if case == 2 { 2 } else { 0 }, "case {case}: {found:?}");
    }
}

/// Compares the levels of a voice in white noise with its own levels, for any division of the input.
/// tests/denoiser/levels.rs counts the coverage of the intervals.
#[test]
fn levels_are_those_of_the_voice() {
    let (voice, noise) = recording(20, |_| 0.03);
    let noisy: Vec<f32> = voice.iter().zip(&noise).map(|(x, n)| x + n).collect();
    let gather = |samples: &[f32], size: usize| {
        let denoiser = denoiser();
        let mut stream = stream_of(&denoiser, RATE as u32, 1);
        stream.record_levels().unwrap();
        let mut cells = Vec::new();
        for chunk in samples.chunks(size) {
            stream.push(&[chunk], &mut ()).unwrap();
            let levels = stream.take_levels();
            assert_eq!(levels.first_slot * 15, cells.len() as u64);
            cells.extend(levels.cells);
        }
        stream.finish(&mut (), None).unwrap();
        let levels = stream.take_levels();
        cells.extend(levels.cells);
        (cells, levels.edges_hertz)
    };
    let (cells, edges) = gather(&noisy, 5_000);
    assert!(cells == gather(&noisy, noisy.len()).0);
    assert_eq!(cells.len(), 15 * 200);
    // Levels of the voice through ideal filters, in exactly those slots.
    let plan = Arc::new(SlotPlan::new(RATE as u32, 0.1, &edges));
    let mut truth = SlotBank::new(plan);
    truth.push(&voice);
    truth.finish(voice.len() as u64, 200);
    // The median error of levels that are late by `late` slots.
    let error = |late: usize| {
        let truth = truth.rows.iter().skip(15 * late).map(|square| 10.0 * libm::log10(square + 1e-12));
        let pairs =
            cells.iter().zip(truth).filter_map(|(found, truth)| Some((found.as_ref()?.level_dbfs, truth)));
        let loud = pairs.filter(|(found, _)| *found > -60.0);
        let mut errors: Vec<f64> = loud.map(|(found, truth)| (found - truth).abs()).collect();
        assert!(errors.len() > 500, "{}", errors.len());
        errors.sort_by(f64::total_cmp);
        errors[errors.len() / 2]
    };
    assert!(error(0) < 1.5 && error(1) > 2.0, "{} {}", error(0), error(1));
}

#[test]
fn every_frame_has_a_deviation_if_there_are_draws() {
    let samples: Vec<f32> =
        (0..16_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 8) as f32 / 2e8).collect();
    let deviations = |iterations| {
        let em = EmSettings { iterations: Some(4), ..EmSettings::default() };
        let burn_in = iterations / 2;
        let sampling = SamplingSettings { iterations, burn_in, ..SamplingSettings::default() };
        let sampling = (iterations > 0).then_some(sampling);
        let settings = Settings { em, sampling, ..Settings::default() };
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), settings).unwrap();
        let mut stream = stream_of(&denoiser, 16_000, 1);
        stream.record_gain_std();
        stream.push(&[&samples], &mut ()).unwrap();
        stream.finish(&mut (), None).unwrap();
        stream.take_gain_std()
    };
    let stft = Stft::new(16_000, 0.064).unwrap();
    let drawn = deviations(8);
    assert_eq!(drawn.len(), stft.bins() * stft.frames(samples.len()));
    assert!(drawn.iter().all(|x| (0.0..=0.5).contains(x)) && drawn.iter().any(|&x| x > 0.001));
    // One draw does not vary, and expectation maximisation has no draws.
    assert!(deviations(1).iter().all(|&x| x < 1e-3));
    assert!(deviations(0).is_empty());
}
