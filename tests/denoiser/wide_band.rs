//! Recordings with more bandwidth than the dictionary, or with less than their sample rate allows.

use super::shared::{denoised, denoiser};
use alphamf::denoiser::Settings;
use alphamf::random::{SeedTree, SeededRng};
use alphamf::transform::{Spectrogram, Stft};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::PI;
use std::ops::Range;

fn denoise(rate: u32, samples: &[f64]) -> Vec<f64> {
    let samples: Vec<f32> = samples.iter().map(|&x| x as f32).collect();
    denoised(&denoiser(Settings::fast()), &samples, rate).into_iter().map(f64::from).collect()
}

fn normal(stream: &mut SeededRng) -> f64 {
    StandardNormal.sample(stream)
}

/// Filters `x` in place by a resonance with unit gain at its peak; `rate`, `frequency` and `bandwidth` are in Hz.
fn resonate(x: &mut [f64], rate: f64, frequency: f64, bandwidth: f64) {
    let r = (-PI * bandwidth / rate).exp();
    let (a, b) = (2.0 * r * (2.0 * PI * frequency / rate).cos(), -r * r);
    let gain = (1.0 - r) * (1.0 - 2.0 * r * (4.0 * PI * frequency / rate).cos() + r * r).sqrt();
    let mut state = [0.0; 2];
    for x in x {
        let y = gain * *x + a * state[0] + b * state[1];
        state = [y, state[0]];
        *x = y;
    }
}

/// Vowels (gliding pulse trains through four resonances) that alternate with fricatives (noise around 6 kHz, with
/// about as much above 8 kHz as below) and pauses; mean power 1e-2.
fn speech(rate: u32, seconds: f64, seed: u64) -> Vec<f64> {
    let fs = f64::from(rate);
    let length = (seconds * fs) as usize;
    let mut stream = SeedTree::new(seed).rng(0);
    let (mut vowels, mut fricatives) = (vec![0.0; length], vec![0.0; length]);
    let mut phase = 0.0;
    for n in 0..length {
        let t = n as f64 / fs;
        let place = t * 2.5 % 1.0;
        let window = |from: f64, to: f64| {
            if (from..to).contains(&place) { (PI * (place - from) / (to - from)).sin() } else { 0.0 }
        };
        phase += (130.0 + 25.0 * (1.7 * t).sin()) / fs;
        if phase >= 1.0 {
            vowels[n] = window(0.0, 0.5) * fs.sqrt();
        }
        phase %= 1.0;
        fricatives[n] = window(0.5, 0.75) * normal(&mut stream);
    }
    let formants = [(600.0, 80.0), (1_400.0, 90.0), (2_600.0, 120.0), (3_500.0, 200.0)];
    let mut voice = vec![0.0; length];
    for (frequency, bandwidth) in formants {
        let mut formant = vowels.clone();
        resonate(&mut formant, fs, frequency, bandwidth);
        voice.iter_mut().zip(&formant).for_each(|(sum, x)| *sum += x);
    }
    let scale = |x: &mut [f64], power: f64| {
        let factor = (power * x.len() as f64 / x.iter().map(|x| x * x).sum::<f64>()).sqrt();
        x.iter_mut().for_each(|x| *x *= factor);
    };
    resonate(&mut fricatives, fs, 6_000.0_f64.min(0.4 * fs), 5_000.0);
    scale(&mut voice, 0.8e-2);
    scale(&mut fricatives, 0.2e-2);
    voice.iter().zip(&fricatives).map(|(vowel, fricative)| vowel + fricative).collect()
}

fn spectrogram(rate: u32, x: &[f64]) -> (Spectrogram, f64) {
    let stft = Stft::new(rate, 0.032).unwrap();
    let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    (stft.analyse(&x), stft.bin_spacing())
}

/// Energy of a frame between two frequencies, Hz.
fn frame_energy((frames, spacing): &(Spectrogram, f64), t: usize, hertz: &Range<f64>) -> f64 {
    let bin = |hertz: f64| ((hertz / spacing) as usize).min(frames.bins());
    frames.frame(t)[bin(hertz.start)..bin(hertz.end)].iter().map(|x| f64::from(x.norm_sqr())).sum()
}

/// Energy between two frequencies (Hz) of the frames in which `choose` holds.
fn energy(spectrogram: &(Spectrogram, f64), hertz: Range<f64>, choose: impl Fn(usize) -> bool) -> f64 {
    (0..spectrogram.0.frames()).filter(|&t| choose(t)).map(|t| frame_energy(spectrogram, t, &hertz)).sum()
}

fn decibels(ratio: f64) -> f64 {
    10.0 * ratio.log10()
}

/// Attenuation of the noise in the pauses, and change of the speech in the fricatives, dB, in a band (Hz).
fn effect(clean: &[f64], noisy: &[f64], output: &[f64], rate: u32, hertz: Range<f64>) -> (f64, f64) {
    let [clean, noisy, output] = [clean, noisy, output].map(|x| spectrogram(rate, x));
    let high = |t: usize| frame_energy(&clean, t, &(5_000.0..8_000.0));
    let top = (0..clean.0.frames()).map(high).fold(0.0, f64::max);
    let pause = |t: usize| frame_energy(&clean, t, &(0.0..f64::from(rate))) < 1e-6 * top;
    let fricative = |t: usize| high(t) > 0.1 * top;
    let attenuation = energy(&noisy, hertz.clone(), pause) / energy(&output, hertz.clone(), pause);
    let kept = energy(&output, hertz.clone(), fricative) / energy(&clean, hertz, fricative);
    (decibels(attenuation), decibels(kept))
}

#[test]
fn above_the_dictionary_noise_goes_and_speech_stays() {
    for rate in [44_100, 48_000, 96_000] {
        let clean = speech(rate, 6.0, 1);
        let mut stream = SeedTree::new(2).rng(0);
        // 20 dB below the speech, within a bandwidth of 24 kHz.
        let level = 1e-2 * (f64::from(rate) / 48_000.0).sqrt();
        let noisy: Vec<f64> = clean.iter().map(|x| x + level * normal(&mut stream)).collect();
        let output = denoise(rate, &noisy);
        let (below, kept_below) = effect(&clean, &noisy, &output, rate, 6_000.0..8_000.0);
        for band in [8_000.0..9_000.0, 9_000.0..12_000.0, 12_000.0..20_000.0] {
            let (attenuation, kept) = effect(&clean, &noisy, &output, rate, band.clone());
            assert!(attenuation > 15.0, "{rate} Hz, {band:?}: attenuation {attenuation} dB");
            // Log odds above 8 kHz have a bias of 1 towards speech, which preserves fricatives. The bias costs 4.0 to
            // 5.0 dB of attenuation up to 9 kHz, and at most 1.9 dB above.
            let margin = if band.start < 9_000.0 { 5.5 } else { 3.0 };
            assert!(attenuation > below - margin, "{rate} Hz, {band:?}: {attenuation} and {below} dB");
            if band.end <= 12_000.0 {
                let change = kept - kept_below;
                assert!(change > -1.0, "{rate} Hz, {band:?}: {change} dB of the speech");
            }
        }
    }
}

#[test]
fn a_wider_band_leaves_the_band_below_as_it_is() {
    // A recording without and with a tone at 15 kHz, above the dictionary's band.
    let clean = speech(48_000, 5.0, 3);
    let mut stream = SeedTree::new(4).rng(0);
    let mut noise: Vec<f64> = clean.iter().map(|_| 0.1 * normal(&mut stream)).collect();
    for _ in 0..3 {
        resonate(&mut noise, 48_000.0, 500.0, 1_500.0);
    }
    let noisy: Vec<f64> = clean.iter().zip(&noise).map(|(x, n)| x + n).collect();
    let loud: Vec<f64> = noisy
        .iter()
        .enumerate()
        .map(|(n, x)| x + 0.03 * (PI * 2.0 * 15_000.0 * n as f64 / 48_000.0).sin())
        .collect();
    let [quiet, loud] = [noisy, loud].map(|x| spectrogram(48_000, &denoise(48_000, &x)));
    let difference: f64 = (0..quiet.0.frames())
        .flat_map(|t| quiet.0.frame(t).iter().zip(loud.0.frame(t)).take((7_900.0 / quiet.1) as usize))
        .map(|(a, b)| f64::from((a - b).norm_sqr()))
        .sum();
    let level = decibels(difference / energy(&quiet, 0.0..7_900.0, |_| true));
    assert!(level < -40.0, "{level} dB");
}

#[test]
fn an_empty_band_stays_empty_and_costs_no_quality() {
    // Content below 4 kHz only, at sample rates of 8 to 192 kHz.
    let narrow = |rate: u32| {
        let fs = f64::from(rate);
        let mut stream = SeedTree::new(5).rng(0);
        let tones: Vec<(f64, f64, f64)> = (0..300)
            .map(|_| {
                let (frequency, phase) =
                    (stream.random_range(20.0..3_600.0), stream.random_range(0.0..2.0 * PI));
                (2.0 * PI * frequency, phase, 2e-2 / 300.0_f64.sqrt())
            })
            .collect();
        (0..(2.5 * fs) as usize)
            .map(|n| {
                let t = n as f64 / fs;
                let envelope = (2.5 * PI * t).sin().powi(2);
                let pitch = 2.0 * PI * (125.0 * t + (1.3 * t).sin());
                let voice: f64 = (1..=20).map(|h| (f64::from(h) * pitch).sin() / f64::from(h)).sum();
                let noise: f64 =
                    tones.iter().map(|(omega, phase, level)| level * (omega * t + phase).sin()).sum();
                (0.05 * envelope * voice, noise)
            })
            .unzip::<f64, f64, Vec<f64>, Vec<f64>>()
    };
    let quality = |rate: u32| {
        let (clean, noise) = narrow(rate);
        let noisy: Vec<f64> = clean.iter().zip(&noise).map(|(x, n)| x + n).collect();
        let output = denoise(rate, &noisy);
        let error: f64 = clean.iter().zip(&output).map(|(x, y)| (x - y) * (x - y)).sum();
        let [before, after] =
            [&noisy, &output].map(|x| energy(&spectrogram(rate, x), 5_000.0..f64::from(rate), |_| true));
        // The band holds only leakage from below, which a time-varying gain slightly increases.
        let change = decibels(after / before);
        assert!(rate == 8_000 || change < 0.5, "{rate} Hz: {change} dB");
        decibels(clean.iter().map(|x| x * x).sum::<f64>() / error)
    };
    let expected = quality(8_000);
    for rate in [16_000, 48_000, 192_000] {
        let found = quality(rate);
        assert!((found - expected).abs() < 0.5, "{rate} Hz: {found} dB, at 8 kHz {expected} dB");
    }
}
