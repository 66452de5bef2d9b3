//! The impulse stage on speech: it never acts without impulses, and removes those that are present.
//!
//! Tests without the demo need the NOIZEUS corpus (8 kHz) in `shared/data` beside the checkout.

use super::shared::demo;
use alphamf::random::{SeedTree, SeededRng};
use alphamf::repair::{Impulses, repair};
use alphamf::signal::Signal;
use alphamf::stable::PositiveStable;
use alphamf_eval::metrics::sdr;
use alphamf_files::read;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::io::Write;
use std::path::{Path, PathBuf};

fn noizeus() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .skip(1)
        .map(|folder| folder.join("shared/data/noizeus"))
        .find(|folder| folder.is_dir());
    if folder.is_none() {
        std::io::stderr()
            .write_all(b"SKIPPED: no NOIZEUS corpus in shared/data beside the checkout\n")
            .unwrap();
    }
    folder
}

fn samples(signal: &Signal) -> Vec<f64> {
    signal.channels()[0].iter().map(|&x| f64::from(x)).collect()
}

fn repaired(x: &[f64]) -> (Vec<f64>, Impulses) {
    let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let (y, found) = repair(&x, 8_000);
    (y.iter().map(|&y| f64::from(y)).collect(), found)
}

fn normal(stream: &mut SeededRng) -> f64 {
    StandardNormal.sample(stream)
}

#[test]
fn speech_and_its_noises_pass_bit_for_bit() {
    let Some(data) = noizeus() else { return };
    let mut folders = vec![data.join("clean")];
    for noise in ["airport", "babble", "car", "exhibition", "restaurant", "station", "street", "train"] {
        folders.extend([0, 15].map(|snr| data.join(format!("noisy/{noise}_{snr}dB"))));
    }
    for folder in folders {
        for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let signal = read(&file).unwrap();
            let (y, found) = repair(&signal.channels()[0], signal.sample_rate());
            assert_eq!(found, Impulses::None, "{}", file.display());
            assert!(*y == signal.channels()[0][..]);
        }
    }
}

/// Its sharp glottal pulses are not detected as clicks, in any section and at any offset of the blocks of levels.
#[test]
fn the_voice_of_the_demo_passes_in_parts_and_at_every_delay() {
    let clean = demo("demo-clean.wav");
    let (samples, rate) = (&clean.channels()[0], clean.sample_rate());
    for delay in 0..17 {
        let later = [&vec![0.0; delay][..], samples].concat();
        assert_eq!(repair(&later, rate).1, Impulses::None, "{delay} samples later");
    }
    for seconds in [1, 2, 3, 5] {
        for part in samples.chunks(seconds * rate as usize) {
            assert_eq!(repair(part, rate).1, Impulses::None, "parts of {seconds} s");
        }
    }
}

/// Creaky passages have as many pulses as a recording with clicks, but in clusters.
#[test]
fn a_creaky_voice_beside_silence_passes() {
    let clean = demo("demo-clean.wav");
    let (samples, rate) = (&clean.channels()[0], clean.sample_rate());
    for speed in [0.6, 0.7, 1.25] {
        let at_speed: Vec<f32> = (0..)
            .map(|n| f64::from(n) * speed)
            .take_while(|&at| at + 1.0 < samples.len() as f64)
            .map(|at| {
                let (before, part) = (at as usize, at.fract() as f32);
                samples[before] + part * (samples[before + 1] - samples[before])
            })
            .collect();
        let part = |start: f64, end: f64| {
            let [start, end] = [start, end].map(|seconds| (seconds * f64::from(rate) / speed) as usize);
            &at_speed[start..end.min(at_speed.len())]
        };
        let silence = vec![0.0; rate as usize];
        let x = [part(0.8, 7.0), &silence, part(4.0, 6.0)].concat();
        assert_eq!(repair(&x, rate).1, Impulses::None, "at {speed} times the speed");
    }
}

/// Most glottal pulses are kept, even next to clicks.
#[test]
fn the_voice_of_the_demo_stays_between_clicks() {
    let clean = demo("demo-clean.wav");
    let (voice, rate) = (samples(&clean), clean.sample_rate());
    let top = voice.iter().fold(0.0_f64, |top, x| top.max(x.abs()));
    let kept = [1, 2, 3, 4].map(|seed| {
        let mut x = voice.clone();
        let mut is_near = vec![false; x.len()];
        let mut stream = SeedTree::new(seed).rng(0);
        for _ in 0..24 {
            let start = stream.random_range(100..x.len() - 200);
            for n in 0..48 {
                let decay = (-3.0 * n as f64 / 48.0).exp();
                x[start + n] += 3.0 * top * decay * normal(&mut stream).clamp(-1.0, 1.0);
            }
            is_near[start - 100..start + 148].fill(true);
        }
        let x: Vec<f32> = x.iter().map(|&x| x as f32).collect();
        let (repaired, found) = repair(&x, rate);
        assert!(matches!(found, Impulses::Clicks { count: 24..80, .. }), "{found:?}");
        let far = |y: &[f64]| -> Vec<f64> {
            y.iter().zip(&is_near).map(|(y, near)| if *near { 0.0 } else { *y }).collect()
        };
        let repaired: Vec<f64> = repaired.iter().map(|&x| f64::from(x)).collect();
        sdr(&far(&voice), &far(&repaired)).unwrap()
    });
    assert!(kept.iter().sum::<f64>() / 4.0 > 9.7, "{kept:?} dB");
}

#[test]
fn babble_loses_its_clicks() {
    let Some(data) = noizeus() else { return };
    for number in [1, 6, 11, 16] {
        let clean = samples(&read(data.join(format!("clean/sp{number:02}.wav"))).unwrap());
        let babble = data.join(format!("noisy/babble_5dB/sp{number:02}_babble_sn5.wav"));
        let babble = samples(&read(babble).unwrap());
        let mut stream = SeedTree::new(number).rng(0);
        let top = clean.iter().fold(0.0_f64, |top, x| top.max(x.abs()));
        let mut x = babble.clone();
        for _ in 0..10 * x.len() / 8_000 {
            let length = stream.random_range(8..40);
            let start = stream.random_range(0..x.len() - length);
            for n in 0..length {
                let decay = (-3.0 * n as f64 / length as f64).exp();
                x[start + n] += 3.0 * top * decay * normal(&mut stream).clamp(-1.0, 1.0);
            }
        }
        let (y, found) = repaired(&x);
        assert!(matches!(found, Impulses::Clicks { .. }), "sp{number:02}: {found:?}");
        let [before, after, without] = [&x, &y, &babble].map(|x| sdr(&clean, x).unwrap());
        assert!(before < 0.0 && after > without - 1.0, "sp{number:02}: {before} {after} {without} dB");
    }
}

#[test]
fn stable_noise_loses_its_tails() {
    let Some(data) = noizeus() else { return };
    for number in [1, 11] {
        let clean = samples(&read(data.join(format!("clean/sp{number:02}.wav"))).unwrap());
        let power = clean.iter().map(|x| x * x).sum::<f64>() / clean.len() as f64;
        // At alpha = 2 the noise would lie 5 dB below the speech.
        let sigma = (power / 10.0_f64.powf(0.5) / 2.0).sqrt();
        for alpha in [1.2, 1.5, 1.8] {
            let law = PositiveStable::new(alpha / 2.0).unwrap();
            let mut stream = SeedTree::new(number).rng(1);
            let mut noise = || {
                let impulse: f64 = law.sample(&mut stream);
                sigma * (2.0 * impulse).sqrt() * normal(&mut stream)
            };
            let x: Vec<f64> = clean.iter().map(|s| s + noise()).collect();
            let (y, found) = repaired(&x);
            let Impulses::HeavyTails { alpha: fitted, .. } = found else {
                panic!("sp{number:02}, alpha {alpha}: {found:?}");
            };
            assert!((fitted - alpha).abs() < 0.15, "sp{number:02}, alpha {alpha}: {fitted}");
            let after = sdr(&clean, &y).unwrap();
            assert!(after > 2.5, "sp{number:02}, alpha {alpha}: {after} dB");
        }
    }
}
