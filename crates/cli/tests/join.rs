//! `denoise join`: takes of one scene become channels that agree in time.

mod shared;

use hound::{SampleFormat, WavSpec};
use rand::RngExt;
use shared::{Folder, denoise, spec, write};
use std::f64::consts::TAU;
use std::path::{Path, PathBuf};

const RATE: u32 = 16_000;

fn written(folder: &Folder, name: &str, rate: u32, samples: &[f32]) -> PathBuf {
    let path = folder.join(name);
    let float = WavSpec { bits_per_sample: 32, sample_format: SampleFormat::Float, ..spec(rate, 1) };
    write(&path, float, samples.iter().copied());
    path
}

/// Tones that glide over the whole band, at a time in seconds: any two recorders can have it at any time.
fn sound(time: f64) -> f64 {
    let tone = |k: f64| (TAU * 150.0 * k * time + 40.0 * (TAU * (3.0 + 0.37 * k) * time + k).sin()).sin();
    (1..40).map(f64::from).map(tone).sum::<f64>() / 40.0
}

/// A take that starts at a time, with a clock that is fast by some parts per million, and noise of its own.
fn take(start: f64, seconds: f64, ppm: f64, seed: u64) -> Vec<f32> {
    let mut random = alphamf::random::SeedTree::new(seed).rng(0);
    let rate = f64::from(RATE) * (1.0 + 1e-6 * ppm);
    let sample = |n: u32| sound(start + f64::from(n) / rate);
    (0..(seconds * rate) as u32).map(|n| (sample(n) + random.random_range(-0.03..0.03)) as f32).collect()
}

fn join(takes: &[&Path], output: &Path) -> assert_cmd::assert::Assert {
    denoise(["join"]).args(takes).arg("-o").arg(output).assert()
}

fn channels(path: &Path) -> Vec<Vec<f32>> {
    alphamf_files::read(path).unwrap().channels().to_vec()
}

#[test]
fn shift_and_drift_are_taken_out() {
    let folder = Folder::new();
    let first = written(&folder, "first.wav", RATE, &take(3.0, 40.0, 0.0, 1));
    let early = written(&folder, "early.wav", RATE, &take(1.2345, 44.0, 60.0, 2));
    let late = written(&folder, "late.wav", RATE, &take(3.789, 40.0, -40.0, 3));
    let output = folder.join("joined.wav");
    let said = join(&[&first, &early, &late], &output).success().get_output().stderr.clone();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("early.wav: starts 1.76") && said.contains("s earlier, clock 60."), "{said}");
    assert!(said.contains("late.wav: starts 0.78") && said.contains("s later, clock 40."), "{said}");
    // What all have: from the start of the late one to the end of the first.
    let joined = channels(&output);
    assert_eq!(joined.len(), 3);
    let start = 40 * RATE as usize - joined[0].len();
    assert!((start as f64 - 0.789 * f64::from(RATE)).abs() < 40.0, "{start}");
    assert_eq!(joined[0], channels(&first)[0][start..]);
    for take in &joined[1..] {
        for second in [0, 20, 38] {
            let range = second * RATE as usize..(second + 1) * RATE as usize;
            let (one, other) = (&joined[0][range.clone()], &take[range]);
            let energy: f32 = one.iter().map(|x| x * x).sum();
            let difference: f32 = one.iter().zip(other).map(|(x, y)| (x - y) * (x - y)).sum();
            assert!(difference < 0.05 * energy, "second {second}: {difference} of {energy}");
        }
    }
}

#[test]
fn what_cannot_be_joined_is_told() {
    let folder = Folder::new();
    let first = written(&folder, "first.wav", RATE, &take(3.0, 12.0, 0.0, 1));
    let other_rate = written(&folder, "other.wav", 8_000, &take(3.0, 12.0, 0.0, 1));
    let mut random = alphamf::random::SeedTree::new(9).rng(0);
    let noise: Vec<f32> = (0..12 * RATE).map(|_| random.random_range(-0.5..0.5_f32)).collect();
    let noise = written(&folder, "noise.wav", RATE, &noise);
    let output = folder.join("joined.wav");
    for (takes, code, words) in [
        (vec![&first, &other_rate], 3, "other.wav: cannot be read: it has 8000 Hz"),
        (vec![&first, &noise], 3, "noise.wav: cannot be read: it has no sound in common with"),
        (vec![&first], 2, "2 values required"),
        (vec![&first, &folder.join("none.wav")], 3, "none.wav"),
    ] {
        let takes: Vec<&Path> = takes.into_iter().map(PathBuf::as_path).collect();
        let found = join(&takes, &output).code(code).get_output().stderr.clone();
        let said = String::from_utf8(found).unwrap();
        assert!(said.contains(words), "{words}: {said}");
        assert!(!output.exists());
    }
    for takes in [[&first as &Path, Path::new("-")], [&first, &first]] {
        join(&takes, Path::new("voices.mp3")).code(2);
        join(&takes, Path::new("-")).code(2);
    }
    join(&[&first, Path::new("-")], &output).code(2);
    std::fs::write(&output, "mine").unwrap();
    join(&[&first, &first], &output).code(4);
    assert_eq!(std::fs::read(&output).unwrap(), b"mine");
    join(&[&first, &output], &output).code(4);
}
