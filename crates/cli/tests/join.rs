//! `denoise join`: combines takes of one scene into synchronous channels.

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

/// Value of gliding tones over the whole band at `time` (s), so that takes may have any start and sample rate.
fn sound(time: f64) -> f64 {
    let tone = |k: f64| (TAU * 150.0 * k * time + 40.0 * (TAU * (3.0 + 0.37 * k) * time + k).sin()).sin();
    (1..40).map(f64::from).map(tone).sum::<f64>() / 40.0
}

/// A take of [`sound`] from `start` (s), by a clock that is fast by `ppm` parts per million, plus noise by `seed`.
fn take(start: f64, seconds: f64, ppm: f64, seed: u64) -> Vec<f32> {
    take_at(RATE, start, seconds, ppm, seed)
}

fn take_at(rate: u32, start: f64, seconds: f64, ppm: f64, seed: u64) -> Vec<f32> {
    take_of(sound, rate, start, seconds, ppm, seed)
}

fn take_of(sound: fn(f64) -> f64, rate: u32, start: f64, seconds: f64, ppm: f64, seed: u64) -> Vec<f32> {
    let mut random = alphamf::random::SeedTree::new(seed).rng(0);
    let rate = f64::from(rate) * (1.0 + 1e-6 * ppm);
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
fn shift_and_drift_are_removed() {
    let folder = Folder::new();
    let first = written(&folder, "first.wav", RATE, &take(3.0, 40.0, 0.0, 1));
    let early = written(&folder, "early.wav", RATE, &take(1.2345, 44.0, 60.0, 2));
    let late = written(&folder, "late.wav", RATE, &take(3.789, 40.0, -40.0, 3));
    let output = folder.join("joined.wav");
    let stderr = join(&[&first, &early, &late], &output).success().get_output().stderr.clone();
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(stderr.contains("early.wav: starts 1.76") && stderr.contains("s earlier, clock 60."), "{stderr}");
    assert!(stderr.contains("late.wav: starts 0.78") && stderr.contains("s later, clock 40."), "{stderr}");
    // The common section lasts from the start of the late take to the end of the first.
    let joined = channels(&output);
    assert_eq!(joined.len(), 3);
    let start = 40 * RATE as usize - joined[0].len();
    assert!((start as f64 - 0.789 * f64::from(RATE)).abs() < 40.0, "{start}");
    assert_eq!(joined[0], channels(&first)[0][start..]);
    agree(&joined, &[0, 20, 38], 0.05);
}

/// A drift of 1700 ppm, as of film sound at another frame rate.
#[test]
fn fast_drift_is_removed_exactly() {
    let folder = Folder::new();
    // Drift blurs long sounds, so these are as short as syllables.
    let syllables = |time: f64| if time % 0.9 < 0.1 { 6.0 * sound(time) } else { 0.1 * sound(time) };
    let first = written(&folder, "first.wav", RATE, &take_of(syllables, RATE, 3.0, 40.0, 0.0, 1));
    let fast = written(&folder, "fast.wav", RATE, &take_of(syllables, RATE, 2.5, 42.0, 1_700.0, 2));
    let output = folder.join("joined.wav");
    let stderr = join(&[&first, &fast], &output).success().get_output().stderr.clone();
    let stderr = String::from_utf8(stderr).unwrap();
    assert!(stderr.contains("clock 1700.0 ppm fast"), "{stderr}");
    agree(&channels(&output), &[0, 12, 24, 38], 0.05);
}

/// Asserts that each channel differs from the first by less than the fraction `most` of its energy in given `seconds`.
fn agree(channels: &[Vec<f32>], seconds: &[usize], most: f32) {
    for take in &channels[1..] {
        for second in seconds {
            let range = second * RATE as usize..(second + 1) * RATE as usize;
            let (one, other) = (&channels[0][range.clone()], &take[range]);
            let energy: f32 = one.iter().map(|x| x * x).sum();
            let difference: f32 = one.iter().zip(other).map(|(x, y)| (x - y) * (x - y)).sum();
            assert!(difference < most * energy, "second {second}: {difference} of {energy}");
        }
    }
}

#[test]
fn takes_of_other_sample_rates_get_that_of_the_first() {
    let folder = Folder::new();
    let first = written(&folder, "first.wav", RATE, &take(3.0, 20.0, 0.0, 1));
    let high = written(&folder, "high.wav", 44_100, &take_at(44_100, 2.5, 18.0, 30.0, 2));
    let low = written(&folder, "low.wav", 11_025, &take_at(11_025, 3.2, 22.0, -20.0, 3));
    let output = folder.join("joined.wav");
    join(&[&first, &high, &low], &output).success();
    let (reader, joined) = (alphamf_files::Reader::open(&output).unwrap(), channels(&output));
    assert_eq!((reader.sample_rate(), reader.channels()), (RATE, 3));
    // From the start of the low take, 0.2 s into the first, to the end of the high take, 2.5 s before the first ends.
    let seconds = joined[0].len() as f64 / f64::from(RATE);
    assert!((seconds - 17.3).abs() < 0.01, "{seconds}");
    // The low take has no content above 5.5 kHz.
    agree(&joined[..2], &[0, 8, 15], 0.05);
    agree(&joined, &[0, 8, 15], 0.2);
}

#[test]
fn takes_of_a_few_seconds_are_joined() {
    let folder = Folder::new();
    let first = written(&folder, "first.wav", RATE, &take(3.0, 3.9, 0.0, 1));
    for start in [3.0, 3.8] {
        let second = written(&folder, "second.wav", RATE, &take(start, 3.9, 0.0, 2));
        let output = folder.join(&format!("{start}.wav"));
        join(&[&first, &second], &output).success();
        let joined = channels(&output);
        let seconds = joined[0].len() as f64 / f64::from(RATE);
        assert!((seconds - (6.9 - start)).abs() < 0.01, "{seconds}");
        agree(&joined, &[0, 1, 2], 0.05);
    }
}

#[test]
fn short_takes_are_said_to_be_short() {
    let folder = Folder::new();
    let first = written(&folder, "first.wav", RATE, &take(3.0, 12.0, 0.0, 1));
    let short = written(&folder, "short.wav", RATE, &take(3.0, 0.3, 0.0, 2));
    let found = join(&[&first, &short], &folder.join("joined.wav")).code(3).get_output().stderr.clone();
    let stderr = String::from_utf8(found).unwrap();
    assert!(stderr.contains("short.wav: less than 1 s of it was found in all takes"), "{stderr}");
}

/// A recorder may still be writing the take.
#[test]
#[cfg(target_os = "linux")]
fn a_take_that_changes_while_it_is_read_is_refused() {
    let folder = Folder::new();
    let of_seconds = |name, seconds| {
        written(&folder, name, RATE, &shared::hiss(seconds * RATE as usize).collect::<Vec<_>>())
    };
    let [first, second, longer] =
        [("first.wav", 90), ("second.wav", 90), ("longer.wav", 91)].map(|(name, n)| of_seconds(name, n));
    let mut command = shared::program();
    command.args([Path::new("join"), &first, &second, Path::new("-o"), Path::new("joined.wav")]);
    let child = command.current_dir(folder.0.path()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    // Waits until the program has opened the second take.
    let files = format!("/proc/{}/fd", child.id());
    let is_open = |path: &Path| {
        let files = std::fs::read_dir(&files).into_iter().flatten().flatten();
        files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|file| file == path)
    };
    let began = std::time::Instant::now();
    while !is_open(&second) {
        assert!(began.elapsed().as_secs() < 60);
    }
    std::fs::rename(&longer, &second).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("second.wav: it changed while it was read"), "{stderr}");
    assert_eq!(folder.names(), ["first.wav", "second.wav"]);
}

/// One of the two microphones of a recorder has its wires crossed.
#[test]
fn channels_of_opposite_sign_do_not_hide_a_take() {
    let folder = Folder::new();
    let first = written(&folder, "first.wav", RATE, &take(1.0, 12.0, 0.0, 1));
    let crossed = folder.join("crossed.wav");
    let samples = take(1.5, 12.0, 0.0, 2).into_iter().flat_map(|x| [0.5 * x, -0.5 * x]);
    write(
        &crossed,
        WavSpec { bits_per_sample: 32, sample_format: SampleFormat::Float, ..spec(RATE, 2) },
        samples,
    );
    for takes in [[&first, &crossed], [&crossed, &first]] {
        let output = folder.join(if takes[0] == &first { "a.wav" } else { "b.wav" });
        join(&takes.map(PathBuf::as_path), &output).success();
        let found = channels(&output);
        let [x, y] = if takes[0] == &first { [&found[0], &found[1]] } else { [&found[2], &found[0]] };
        agree(&[x.clone(), y.iter().map(|y| 2.0 * y).collect()], &[0, 5, 10], 0.05);
    }
}

#[test]
fn what_cannot_be_joined_is_reported() {
    let folder = Folder::new();
    let first = written(&folder, "first.wav", RATE, &take(3.0, 12.0, 0.0, 1));
    let mut random = alphamf::random::SeedTree::new(9).rng(0);
    let noise: Vec<f32> = (0..12 * RATE).map(|_| random.random_range(-0.5..0.5_f32)).collect();
    let noise = written(&folder, "noise.wav", RATE, &noise);
    let output = folder.join("joined.wav");
    for (takes, code, words) in [
        (vec![&first, &noise], 3, "noise.wav: it has no sound in common with"),
        (vec![&first], 2, "2 values required"),
        (vec![&first, &folder.join("none.wav")], 3, "none.wav"),
    ] {
        let takes: Vec<&Path> = takes.into_iter().map(PathBuf::as_path).collect();
        let found = join(&takes, &output).code(code).get_output().stderr.clone();
        let stderr = String::from_utf8(found).unwrap();
        assert!(stderr.contains(words), "{words}: {stderr}");
        assert!(!output.exists());
    }
    for takes in [[&first as &Path, Path::new("-")], [&first, &first]] {
        for name in ["voices.mp3", "voices.txt", "voices", "-"] {
            join(&takes, Path::new(name)).code(2);
        }
    }
    join(&[&first, Path::new("-")], &output).code(2);
    std::fs::write(&output, "mine").unwrap();
    join(&[&first, &first], &output).code(4);
    assert_eq!(std::fs::read(&output).unwrap(), b"mine");
    join(&[&first, &output], &output).code(4);
}

#[test]
fn takes_that_are_one_file_are_refused() {
    let folder = Folder::new();
    let first = written(&folder, "first.wav", RATE, &take(3.0, 12.0, 0.0, 1));
    let other = written(&folder, "other.wav", RATE, &take(3.5, 12.0, 0.0, 2));
    let output = folder.join("joined.wav");
    let refused = |takes: &[&Path], words: &str| {
        let found = join(takes, &output).code(2).get_output().stderr.clone();
        let stderr = String::from_utf8(found).unwrap();
        assert!(stderr.contains(words) && stderr.lines().count() == 1, "{words}: {stderr}");
        assert!(!output.exists());
    };
    refused(&[&first, &other, &first], "first.wav is given twice: expected different takes");
    refused(&[&first, &folder.join("./first.wav")], "first.wav is given twice");
    #[cfg(unix)]
    {
        let [link, hard] = ["link.wav", "hard.wav"].map(|name| folder.join(name));
        std::os::unix::fs::symlink("first.wav", &link).unwrap();
        std::fs::hard_link(&first, &hard).unwrap();
        refused(&[&other, &first, &link], "link.wav is given twice, as ");
        refused(&[&first, &hard], "hard.wav is given twice, as ");
    }
}

#[test]
fn what_cannot_be_written_is_refused_before_takes_are_read() {
    let folder = Folder::new();
    let first = written(&folder, "first.wav", RATE, &take(3.0, 12.0, 0.0, 1));
    let output = folder.join("joined.flac");
    let many = folder.join("many.wav");
    write(&many, spec(RATE, 8), (0..8 * RATE).map(|_| 0.0));
    // The second take is silent: reading it would fail with another error, that no sound is common.
    let found = join(&[&first, &many], &output).code(4).get_output().stderr.clone();
    let stderr = String::from_utf8(found).unwrap();
    assert!(stderr.contains("9 channels: expected 1 to 8"), "{stderr}");
    #[cfg(unix)]
    {
        join(&[&first, &first], Path::new("/dev/null")).code(2);
        // Opening a pipe without a writer would block forever.
        let pipe = folder.join("pipe.wav");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        join(&[&first, &pipe], &folder.join("joined.wav")).code(2);
    }
}

#[test]
fn samples_beyond_full_scale_are_counted() {
    let folder = Folder::new();
    let loud = |start: f64, seed: u64| -> Vec<f32> {
        let mut samples = take(start, 8.0, 0.0, seed);
        let peak = samples.iter().fold(0.0, |peak, x| x.abs().max(peak));
        samples.iter_mut().for_each(|x| *x *= 1.5 / peak);
        samples
    };
    let first = written(&folder, "first.wav", RATE, &loud(3.0, 1));
    let second = written(&folder, "second.wav", RATE, &loud(3.0, 2));
    for (name, is_clipped) in [("joined.flac", true), ("joined.wav", false)] {
        let found = join(&[&first, &second], &folder.join(name)).success().get_output().stderr.clone();
        let stderr = String::from_utf8(found).unwrap();
        assert_eq!(stderr.contains(" samples clipped in the output"), is_clipped, "{name}: {stderr}");
    }
}

#[test]
fn a_take_that_lacks_samples_is_reported() {
    let folder = Folder::new();
    let first = written(&folder, "first.wav", RATE, &take(3.0, 72.0, 0.0, 1));
    let mut samples = take(3.0, 72.0, 0.0, 2);
    let whole = written(&folder, "whole.wav", RATE, &samples);
    samples.drain(30 * RATE as usize..31 * RATE as usize);
    let lacking = written(&folder, "lacking.wav", RATE, &samples);
    let found =
        join(&[&first, &whole, &lacking], &folder.join("joined.wav")).success().get_output().stderr.clone();
    let stderr = String::from_utf8(found).unwrap();
    assert_eq!(stderr.matches("no sound in common").count(), 1, "{stderr}");
    assert!(
        stderr.contains("lacking.wav: no sound in common with ") && stderr.contains(" after 30 s of it"),
        "{stderr}"
    );
}

#[test]
fn damage_of_takes_is_reported() {
    let folder = Folder::new();
    let samples = take(3.0, 12.0, 0.0, 1);
    let first = written(&folder, "first.wav", RATE, &samples);
    // The file holds more samples than its header declares, as after an interrupted recording.
    let second = folder.join("second.wav");
    write(&second, spec(RATE, 1), samples);
    let mut bytes = std::fs::read(&second).unwrap();
    let (start, declared) = (44, 10 * 2 * RATE);
    bytes[start - 4..start].copy_from_slice(&declared.to_le_bytes());
    bytes[4..8].copy_from_slice(&(declared + 36).to_le_bytes());
    std::fs::write(&second, bytes).unwrap();
    let found = join(&[&first, &second], &folder.join("joined.wav")).success().get_output().stderr.clone();
    let stderr = String::from_utf8(found).unwrap();
    assert!(stderr.contains("second.wav: more data follow the declared end"), "{stderr}");
}
