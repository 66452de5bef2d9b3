//! Steady noise leaves a steady residual: its level changes neither between blocks nor within a block.

use super::shared::denoiser;
use alphamf::denoiser::{SessionSettings, Settings};
use alphamf::random::{SeedTree, SeededRng};
use alphamf::transform::Stft;
use alphamf_files::read;
use rand_distr::{Distribution, StandardNormal};
use std::f32::consts::TAU;
use std::io::Write;
use std::path::Path;

const RATE: usize = 8_000;
/// Maximum difference of the gain of a third-octave band between two seconds, dB.
const MAX_DIFFERENCE_DB: f64 = 2.0;
/// Maximum gain in the first pause, after two seconds of voice, dB.
const FIRST_PAUSE_DB: f64 = -30.0;

fn normal(stream: &mut SeededRng) -> f32 {
    StandardNormal.sample(stream)
}

fn white(seconds: usize) -> Vec<f32> {
    let mut stream = SeedTree::new(3).rng(0);
    (0..seconds * RATE).map(|_| 0.03 * normal(&mut stream)).collect()
}

/// Pink noise by the filter of Paul Kellet, within 0.1 dB of -3 dB per octave above 10 Hz.
fn pink(seconds: usize) -> Vec<f32> {
    let poles = [(0.998_86, 0.055_52), (0.993_32, 0.075_08), (0.969, 0.153_85), (0.866_5, 0.310_49)];
    let mut stream = SeedTree::new(4).rng(0);
    let mut states = [0.0_f32; 4];
    let sample = |_| {
        let x = normal(&mut stream);
        for (state, (pole, weight)) in states.iter_mut().zip(poles) {
            *state = pole * *state + weight * x;
        }
        0.02 * (states.iter().sum::<f32>() + 0.536_2 * x)
    };
    (0..seconds * RATE).map(sample).collect()
}

/// A fan: pink noise and a hum with its harmonics.
fn fan(seconds: usize) -> Vec<f32> {
    let hum = |n: usize| -> f32 {
        let phase = TAU * 97.0 * n as f32 / RATE as f32;
        (1..12).map(|h| 0.015 / h as f32 * (h as f32 * (phase + 1.0)).sin()).sum()
    };
    pink(seconds).iter().enumerate().map(|(n, x)| x + hum(n)).collect()
}

/// Denoises `samples` in pushes of `size` samples.
fn denoise(settings: Settings, samples: &[f32], rate: usize, size: usize) -> Vec<f32> {
    let denoiser = denoiser(settings);
    let mut session = denoiser.session(rate as u32, 1, SessionSettings::default()).unwrap();
    let mut output = Vec::new();
    for samples in samples.chunks(size) {
        output.append(&mut session.push(&[samples]).unwrap().speech[0]);
    }
    output.append(&mut session.finish().unwrap().speech[0]);
    output
}

/// Centre frequency of each third-octave band, Hz, and its gains in every second, dB.
fn gains(before: &[f32], after: &[f32], rate: usize) -> Vec<(f64, Vec<f64>)> {
    let stft = Stft::new(rate as u32, 0.128).unwrap();
    let per_second = rate / stft.hop();
    let [before, after] = [before, after].map(|x| stft.analyse(x));
    let energy = |frames: &[num_complex::Complex<f32>], low: usize, high: usize| -> f64 {
        let bins = frames.chunks_exact(stft.bins()).flat_map(|frame| &frame[low..high]);
        bins.map(|x| f64::from(x.norm_sqr())).sum()
    };
    let bin = |hertz: f64| (hertz / stft.bin_spacing()).round() as usize;
    (-9..=5)
        .map(|third| {
            let middle = 1_000.0 * 2.0_f64.powf(f64::from(third) / 3.0);
            let (low, high) = (bin(middle * 2.0_f64.powf(-1.0 / 6.0)), bin(middle * 2.0_f64.powf(1.0 / 6.0)));
            let seconds = before.as_slice().chunks_exact(per_second * stft.bins());
            let seconds = seconds.zip(after.as_slice().chunks_exact(per_second * stft.bins()));
            let gains = seconds
                .map(|(before, after)| 10.0 * (energy(after, low, high) / energy(before, low, high)).log10());
            (middle, gains.collect())
        })
        .collect()
}

/// Asserts that the residual of a noise is steady and at least 20 dB below the noise.
fn check(name: &str, noise: &[f32], rate: usize, settings: Settings, size: usize) {
    let output = denoise(settings, noise, rate, size);
    for (middle, gains) in gains(noise, &output, rate) {
        let mut sorted = gains.clone();
        sorted.sort_by(f64::total_cmp);
        let [least, .., loudest] = sorted[..] else { panic!("too short") };
        assert!(loudest - least < MAX_DIFFERENCE_DB, "{name}, {middle:.0} Hz: {gains:.1?} dB");
        assert!(loudest < -20.0, "{name}, {middle:.0} Hz: only {loudest:.1} dB");
    }
}

#[test]
fn nothing_but_noise_stays_steady() {
    for (name, noise, size) in
        [("white", white(32), 777), ("pink", pink(32), 40_000), ("fan", fan(32), 8_000)]
    {
        check(name, &noise, RATE, Settings::fast(), size);
    }
    check("white, drawn", &white(16), RATE, Settings::default(), 8_000);
}

/// Recorded heavy rain. Single audible drops would sometimes be classified as voice, and their residual is not steady.
#[test]
fn recorded_rain_stays_steady() {
    const RAIN: &str = "shared/data/noise_train/steady-rain__openclonk__Liquids-ocg-StereoRain.opus";
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().skip(1);
    let Some(file) = above.map(|folder| folder.join(RAIN)).find(|file| file.is_file()) else {
        return std::io::stderr()
            .write_all(b"SKIPPED: no recording of rain in shared/data beside the checkout\n")
            .unwrap();
    };
    let rain = read(file).unwrap();
    let rate = rain.sample_rate() as usize;
    for size in [12_345, 20 * rate] {
        check("rain", &rain.channels()[0][..20 * rate], rate, Settings::fast(), size);
    }
}

/// The voice is intermittent, and some blocks hold more of it than others.
#[test]
fn the_pauses_of_a_voice_stay_steady() {
    let noise = white(40);
    // A gliding voice in two of every four seconds, alternately rich and poor in high frequencies. It begins 0.1 s
    // after a full second, so that no frame of the previous second overlaps it.
    let voice = |n: usize| -> f32 {
        let t = n as f32 / RATE as f32;
        let since = (t + 3.9) % 4.0;
        let envelope = if since < 2.0 { (TAU * 2.0 * since).sin().abs() } else { 0.0 };
        let pitch = TAU * (120.0 * t + 4.0 * (0.7 * t).sin());
        let tilt = if t % 16.0 < 8.0 { 0.6 } else { 1.4 };
        let harmonic = |h: i32| (h as f32 * pitch).sin() / (h as f32).powf(tilt);
        0.05 * envelope * (1..=30).map(harmonic).sum::<f32>()
    };
    let noisy: Vec<f32> = noise.iter().enumerate().map(|(n, x)| x + voice(n)).collect();
    let output = denoise(Settings::fast(), &noisy, RATE, 8_000);
    for (middle, gains) in gains(&noise, &output, RATE) {
        // The second halves of the pauses.
        let pauses: Vec<f64> = gains.iter().skip(3).step_by(4).copied().collect();
        assert!(pauses[0] < FIRST_PAUSE_DB, "{middle:.0} Hz: {pauses:.1?} dB");
        for (index, step) in pauses[1..].windows(2).map(|pair| (pair[1] - pair[0]).abs()).enumerate() {
            assert!(step < MAX_DIFFERENCE_DB, "{middle:.0} Hz, pause {}: {pauses:.1?} dB", index + 1);
        }
    }
}
