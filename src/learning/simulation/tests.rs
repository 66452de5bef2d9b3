//! Simulated recordings: their levels, seeds and what is refused.

use super::shaping::{at, white};
use super::*;
use crate::signal::SampleFormat;
use std::collections::HashSet;
use std::f64::consts::TAU;

const SHORT: f64 = 1.25;

/// A harmonic tone that swells four times a second, a little like syllables.
fn voice(sample_rate: u32, pitch: f64, seconds: f64) -> Signal {
    let sample = |n: usize| {
        let t = n as f64 / f64::from(sample_rate);
        let tone: f64 = (1..20).map(|h| (TAU * pitch * f64::from(h) * t).sin() / f64::from(h)).sum();
        (0.1 * tone * (TAU * 2.0 * t).sin().abs()) as f32
    };
    let samples = (0..(seconds * f64::from(sample_rate)) as usize).map(sample).collect();
    Signal::new(sample_rate, SampleFormat::Float32, vec![samples]).unwrap()
}

fn simulator(seconds: f64) -> Simulator {
    let mut simulator = Simulator::new(seconds);
    for pitch in [97.0, 131.0, 171.0, 223.0] {
        simulator.add(&voice(SAMPLE_RATE, pitch, pitch / 100.0)).unwrap();
    }
    simulator
}

fn tone(hertz: f64, rate: f64, samples: usize) -> Vec<f64> {
    (0..samples).map(|n| (TAU * hertz * n as f64 / rate).sin()).collect()
}

fn decibels(ratio: f64) -> f64 {
    10.0 * ratio.log10()
}

#[test]
fn examples_depend_on_their_streams_alone() {
    let simulator = simulator(SHORT);
    let streams = SeedTree::new(3);
    let first = simulator.draw(streams.child(0)).unwrap();
    assert_eq!(simulator.draw(streams.child(0)).unwrap(), first);
    let other = simulator.draw(streams.child(1)).unwrap();
    assert_ne!((other.clean, other.noisy), (first.clean, first.noisy));
}

#[test]
fn examples_have_the_documented_lengths_ratios_and_peaks() {
    let simulator = simulator(SHORT);
    let mut rates = HashSet::new();
    let mut ratios = Vec::new();
    for index in 0..150 {
        let Example { sample_rate, clean, noisy } = simulator.draw(SeedTree::new(5).child(index)).unwrap();
        rates.insert(sample_rate);
        assert_eq!(clean.len(), (SHORT * f64::from(sample_rate)) as usize);
        assert_eq!(noisy.len(), clean.len());
        let peak = clean.iter().chain(&noisy).fold(0.0_f32, |peak, x| peak.max(x.abs()));
        assert!((0.23..=0.951).contains(&peak), "{index}: peak {peak}");
        assert!(clean.iter().chain(&noisy).all(|x| x.abs() <= 1.0), "{index}: not finite");
        let speech: Vec<f64> = clean.iter().map(|&x| f64::from(x)).collect();
        let noise: Vec<f64> = noisy.iter().zip(&clean).map(|(y, x)| f64::from(y - x)).collect();
        let ratio = decibels(power(&speech) / power(&noise));
        // Rumble may lower the ratio: 4 dB and 3 dB above the speech are 6.5 dB together, if uncorrelated.
        let lowest = if sample_rate == SAMPLE_RATE { -7.5 } else { -4.001 };
        assert!((lowest..25.1).contains(&ratio), "{index}: {ratio} dB");
        ratios.push(ratio);
    }
    assert_eq!(rates, HashSet::from([8_000, 16_000]));
    let share = |range: Range<f64>| ratios.iter().filter(|x| range.contains(x)).count();
    assert!(share(-8.0..2.0) > 15 && share(16.0..26.0) > 15, "{ratios:?}");
}

#[test]
fn every_kind_of_noise_is_finite_with_power() {
    let simulator = simulator(SHORT);
    for (kind, _) in Kind::ALL {
        for index in 0..20 {
            let noise = simulator.noise(kind, &mut SeedTree::new(7).rng(index));
            assert_eq!(noise.len(), simulator.samples());
            assert!((power(&noise) - 1.0).abs() < 1e-6, "{kind:?}, {index}: power {}", power(&noise));
        }
    }
    let rumble = simulator.rumble(&mut SeedTree::new(7).rng(0));
    let above = simulator.whole.filter(rumble.clone(), |hertz| f64::from(u8::from(hertz > 500.0)));
    assert!((power(&rumble) - 1.0).abs() < 1e-6 && power(&above) < 1e-3);
}

#[test]
fn the_shortest_examples_are_drawn_as_well() {
    let simulator = simulator(*SECONDS.start());
    for index in 0..100 {
        let example = simulator.draw(SeedTree::new(17).child(index)).unwrap();
        assert_eq!(example.noisy.len() as u32, example.sample_rate / 10);
        assert!(example.noisy.iter().all(|x| x.abs() <= 1.0) && example.noisy != example.clean);
    }
}

#[test]
fn kinds_are_drawn_with_their_probabilities() {
    let stream = &mut SeedTree::new(9).rng(0);
    let draws: Vec<Kind> = (0..20_000).map(|_| choose(Kind::ALL, stream)).collect();
    for (kind, probability) in Kind::ALL {
        let share = draws.iter().filter(|&&drawn| drawn == kind).count() as f64 / draws.len() as f64;
        assert!((share - probability).abs() < 0.015, "{kind:?}: {share}");
    }
}

#[test]
fn half_the_sample_rate_keeps_what_is_below_and_drops_what_is_above() {
    let (whole, half) = (Fourier::new(4_000), Fourier::new(2_000));
    let mut signal = tone(1_000.0, 16_000.0, 4_000);
    mix(&mut signal, &tone(5_000.0, 16_000.0, 4_000), 1.0);
    let halved = whole.halve(signal, &half);
    let expected = tone(1_000.0, 8_000.0, 2_000);
    assert_eq!(halved.len(), expected.len());
    assert!(halved.iter().zip(&expected).all(|(x, y)| (x - y).abs() < 1e-9));
}

#[test]
fn filters_have_their_gains() {
    let (fourier, stream) = (Fourier::new(4_000), &mut SeedTree::new(11).rng(0));
    let noise = white(4_000, stream);
    let quiet = fourier.shape(noise.clone(), &[-20.0; 7]);
    assert!(quiet.iter().zip(&noise).all(|(x, y)| (x - 0.1 * y).abs() < 1e-12));
    // A curve from 0 dB to -40 dB at 8 kHz.
    let slope = fourier.shape(tone(2_000.0, 16_000.0, 4_000), &[0.0, -40.0]);
    assert!((decibels(power(&slope) / 0.5) + 10.0).abs() < 1e-6);
    assert!((decibels(low_pass(100.0, 100.0, 5).powi(2)) + 3.01).abs() < 0.01);
    assert!((high_pass(50.0, 100.0, 2) - 1.0 / 17.0_f64.sqrt()).abs() < 1e-12);
    assert_eq!(high_pass(0.0, 100.0, 2), 0.0);
    assert_eq!([0.0, 0.25, 1.0].map(|position| at(&[1.0, 3.0, 0.0], position)), [1.0, 2.0, 0.0]);
}

#[test]
fn a_room_keeps_the_length_and_decays() {
    let mut click = vec![0.0; 32_000];
    click[100] = 1.0;
    for index in 0..10 {
        let room =
            Fourier::new(32_000).reverberate(click.clone(), 0.0..2.7, &mut SeedTree::new(13).rng(index));
        assert_eq!(room.len(), 32_000);
        assert!((power(&room) * 32_000.0 - 1.0).abs() < 1e-9);
        assert!(power(&room[100..1_000]) > 10.0 * power(&room[10_000..18_000]));
        assert!(power(&room[18_000..]) < 1e-12, "longer than a second");
    }
    // Shorter than the room rings.
    let short =
        Fourier::new(2_000).reverberate(click[..2_000].to_vec(), 0.0..2.7, &mut SeedTree::new(13).rng(0));
    assert!(short.len() == 2_000 && power(&short) > 0.0);
}

#[test]
fn excerpts_are_played_at_their_speed() {
    let mut simulator = Simulator::new(1.0);
    let samples = tone(500.0, 16_000.0, 16_000).iter().map(|&x| x as f32).collect();
    simulator.add(&Signal::new(SAMPLE_RATE, SampleFormat::Float32, vec![samples]).unwrap()).unwrap();
    let excerpt = simulator.excerpt(2.0, &mut SeedTree::new(15).rng(0));
    let only =
        simulator.whole.filter(excerpt.clone(), |hertz| f64::from(u8::from((hertz - 1e3).abs() < 5.0)));
    assert!((power(&excerpt) - 1.0).abs() < 0.02 && power(&only) > 0.99 * power(&excerpt));
}

#[test]
fn speech_is_checked_mixed_and_brought_to_one_level() {
    let mut simulator = Simulator::new(SHORT);
    assert_eq!(simulator.draw(SeedTree::new(0)), Err(SimulationError::NoSpeech));
    let error = simulator.add(&voice(44_100, 100.0, 0.5)).unwrap_err();
    assert_eq!(error, SimulationError::SampleRate { found: 44_100, expected: 16_000 });
    assert_eq!(error.to_string(), "a sample rate of 44100 Hz; clean speech needs 16000 Hz");

    let left = voice(SAMPLE_RATE, 100.0, 0.5).into_channels().remove(0);
    let add = |simulator: &mut Simulator, left: &[f32], right: Vec<f32>| {
        let signal = Signal::new(SAMPLE_RATE, SampleFormat::Float32, vec![left.to_vec(), right]).unwrap();
        simulator.add(&signal).unwrap();
    };
    // Opposite channels cancel out, and a constant lies below the voice: both count as silence.
    add(&mut simulator, &left, left.iter().map(|x| -x).collect());
    add(&mut simulator, &vec![0.5; left.len()], vec![0.5; left.len()]);
    assert!(simulator.is_empty());
    add(&mut simulator, &left, vec![0.0; left.len()]);
    assert_eq!(simulator.len(), 1);
    let clip: Vec<f64> = simulator.speech[0].iter().map(|&x| f64::from(x)).collect();
    assert!((power(&clip) - 1.0).abs() < 1e-6);
}
