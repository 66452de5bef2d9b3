//! The program as its users meet it: files in, files out, one-line errors and exit codes.

use assert_cmd::Command;
use hound::{SampleFormat, WavReader, WavSpec, WavWriter};
use std::f32::consts::TAU;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const USAGE: i32 = 2;
const INPUT: i32 = 3;
const OUTPUT: i32 = 4;
const DICTIONARY: i32 = 5;

fn demo(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("audio").join(name)
}

/// A folder of its own for a test.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn denoise(arguments: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("denoise"));
    command.args(arguments);
    command
}

/// Runs the program and expects it to fail with an exit code and one line that holds all of `words`.
fn fails(arguments: &[&Path], options: &[&str], code: i32, words: &[&str]) {
    let mut command = denoise(arguments);
    let assert = command.args(options).assert().code(code);
    let output = assert.get_output();
    assert!(output.stdout.is_empty());
    let message = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    for word in words {
        assert!(message.contains(word), "'{word}' is not in: {message}");
    }
}

fn spec(sample_rate: u32, channels: u16) -> WavSpec {
    WavSpec { channels, sample_rate, bits_per_sample: 16, sample_format: SampleFormat::Int }
}

fn write(path: &Path, spec: WavSpec, samples: impl IntoIterator<Item = f32>) {
    let mut writer = WavWriter::create(path, spec).unwrap();
    for sample in samples {
        match spec.sample_format {
            SampleFormat::Int => writer.write_sample((sample * 32_767.0) as i16).unwrap(),
            SampleFormat::Float => writer.write_sample(sample).unwrap(),
        }
    }
    writer.finalize().unwrap();
}

fn read(path: &Path) -> (WavSpec, Vec<f32>) {
    let mut reader = WavReader::open(path).unwrap();
    let samples = reader.samples::<i16>().map(|sample| f32::from(sample.unwrap()) / 32_768.0).collect();
    (reader.spec(), samples)
}

/// Two formants on a gliding pitch, in syllables: speech enough to learn from.
fn voice(sample_rate: u32, seconds: f32, pitch: f32) -> Vec<f32> {
    let rate = sample_rate as f32;
    let count = (seconds * rate) as usize;
    let sample = |n: usize| {
        let time = n as f32 / rate;
        let syllable = (0.5 - 0.5 * (TAU * 3.0 * time).cos()).powi(2);
        let vowel = 500.0 + 250.0 * (TAU * 0.7 * time).sin();
        let partial = |k: i32| {
            let frequency = k as f32 * pitch;
            let near = |formant: f32| (-((frequency - formant) / 150.0).powi(2)).exp();
            let phase = TAU * k as f32 * (pitch * time + 0.3 * (TAU * 0.5 * time).sin());
            (near(vowel) + 0.5 * near(1_500.0)) * phase.sin()
        };
        0.15 * syllable * (1..24).map(partial).sum::<f32>()
    };
    (0..count).map(sample).collect()
}

/// White noise in [-1, 1] by a linear congruential generator.
fn hiss(count: usize) -> impl Iterator<Item = f32> {
    let mut state = 1_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    })
    .take(count)
}

/// Scale-invariant signal-to-distortion ratio, dB.
fn si_sdr(reference: &[f32], estimate: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>();
    let scale = dot(reference, estimate) / dot(reference, reference);
    let target = scale * scale * dot(reference, reference);
    10.0 * (target / (dot(estimate, estimate) - target)).log10()
}

#[test]
fn the_demo_clip_gets_cleaner_and_keeps_its_format() {
    let folder = Folder::new();
    let (input, output) = (demo("demo-noisy.wav"), folder.join("voice.wav"));
    let assert = denoise([&input, &output]).assert().success();
    let summary = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    for word in ["voice.wav", "s of audio", "SNR", "attenuation"] {
        assert!(summary.contains(word), "{summary}");
    }
    assert_eq!(summary.lines().count(), 1, "no progress bar in a pipe: {summary}");
    assert_eq!(folder.names(), ["voice.wav"], "no temporary file stays");
    let ((noisy_spec, noisy), (spec, voice)) = (read(&input), read(&output));
    assert_eq!((spec, voice.len()), (noisy_spec, noisy.len()));
    let (_, clean) = read(&demo("demo-clean.wav"));
    let (before, after) = (si_sdr(&clean, &noisy), si_sdr(&clean, &voice));
    assert!(after > before + 2.0, "{before:.2} dB before, {after:.2} dB after");
}

#[test]
fn the_output_depends_on_the_seed_and_not_on_threads() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    let noisy = voice(16_000, 1.0, 130.0).into_iter().zip(hiss(16_000)).map(|(s, n)| s + 0.05 * n);
    write(&input, spec(16_000, 1), noisy);
    let run = |name: &str, options: &[&str]| {
        let output = folder.join(name);
        denoise([&input, &output])
            .args(["-q", "--warm-start", "6"])
            .args(options)
            .assert()
            .success()
            .stderr("");
        fs::read(output).unwrap()
    };
    let sampled = ["--iterations", "6", "--impulses", "sampled", "--seed"];
    let one = run("a.wav", &[&sampled[..], &["3", "--threads", "1"]].concat());
    let three = run("b.wav", &[&sampled[..], &["3", "--threads", "3"]].concat());
    assert!(one == three);
    assert!(one != run("c.wav", &[&sampled[..], &["4", "--threads", "1"]].concat()));
}

#[test]
fn inputs_of_no_use_are_named_and_leave_no_output() {
    let folder = Folder::new();
    let output = folder.join("out.wav");
    let input = folder.join("in.wav");
    fails(&[&input, &output], &[], INPUT, &["in.wav", "no such file"]);
    fs::write(&input, []).unwrap();
    fails(&[&input, &output], &[], INPUT, &["in.wav", "empty"]);
    fs::write(&input, "Not a recording, though it is long enough to be one.").unwrap();
    fails(&[&input, &output], &[], INPUT, &["in.wav", "not an audio file"]);
    write(&input, spec(16_000, 1), voice(16_000, 0.2, 120.0));
    let whole = fs::read(&input).unwrap();
    fs::write(&input, &whole[..whole.len() / 2]).unwrap();
    fails(&[&input, &output], &[], INPUT, &["in.wav", "truncated"]);
    fs::write(&input, &whole[..20]).unwrap();
    fails(&[&input, &output], &[], INPUT, &["in.wav"]);
    fails(&[folder.0.path(), &output], &[], INPUT, &[]);
    let float = WavSpec { bits_per_sample: 32, sample_format: SampleFormat::Float, ..spec(16_000, 2) };
    for (value, name) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf")] {
        write(&input, float, (0..2_000).map(|n| if n == 1_001 { value } else { 0.1 }));
        fails(&[&input, &output], &[], INPUT, &["in.wav", "sample 500 of channel 1", name]);
    }
    assert_eq!(folder.names(), ["in.wav"]);
}

#[test]
fn outputs_of_no_use_are_named_and_nothing_is_overwritten() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    write(&input, spec(16_000, 1), voice(16_000, 0.2, 120.0));
    let bytes = fs::read(&input).unwrap();
    fails(&[&input, &input], &[], OUTPUT, &["in.wav", "same file"]);
    fails(&[&input, &folder.join(".").join("in.wav")], &[], OUTPUT, &["same file"]);
    fails(
        &[&input, &folder.join("missing").join("out.wav")],
        &["-q"],
        OUTPUT,
        &["out.wav", "cannot be written"],
    );
    fails(&[&input, folder.0.path()], &["-q"], OUTPUT, &["not a regular file"]);
    #[cfg(unix)]
    {
        let link = folder.join("link.wav");
        std::os::unix::fs::symlink(&input, &link).unwrap();
        fails(&[&input, &link], &[], OUTPUT, &["link.wav", "same file"]);
        fs::remove_file(link).unwrap();
    }
    assert_eq!(folder.names(), ["in.wav"]);
    assert!(fs::read(&input).unwrap() == bytes);

    let (output, broken) = (folder.join("out.wav"), folder.join("broken.wav"));
    fs::write(&output, "precious").unwrap();
    fs::write(&broken, &bytes[..bytes.len() - 100]).unwrap();
    fails(&[&broken, &output], &[], INPUT, &["truncated"]);
    fails(&[&input, &output], &["--floor-db", "1"], USAGE, &[]);
    assert_eq!(fs::read(&output).unwrap(), b"precious");
    denoise([&input, &output]).arg("-q").assert().success();
    assert_eq!(read(&output).1.len(), 3_200);
    assert_eq!(folder.names(), ["broken.wav", "in.wav", "out.wav"]);
}

#[test]
fn options_out_of_range_are_told_their_range() {
    let folder = Folder::new();
    let (input, output) = (demo("demo-noisy.wav"), folder.join("out.wav"));
    for (options, words) in [
        (["--floor-db", "3"], ["floor", "-100 to 0"]),
        (["--floor-db", "-101"], ["floor", "-100 to 0"]),
        (["--floor-db", "nan"], ["NaN", "-100 to 0"]),
        (["--alpha-noise", "2.5"], ["2.5", "0.2 to 2"]),
        (["--alpha-speech", "0.1"], ["0.1", "0.2 to 2"]),
        (["--noise-rank", "65"], ["65", "1 to 64"]),
        (["--noise-rank", "0"], ["0", "1 to 64"]),
        (["--warm-start", "10001"], ["10001", "0 to 10000"]),
        (["--burn-in", "20"], ["burn-in", "0 to 19"]),
        (["--iterations", "2000000"], ["iterations", "0 to 1000000"]),
    ] {
        fails(&[&input, &output], &options, USAGE, &words);
    }
    // These are the argument parser's own.
    for options in [["--threads", "0"], ["--seed", "x"], ["--sampler", "none"], ["--nonsense", "1"]] {
        denoise([&input, &output]).args(options).assert().code(USAGE);
    }
    denoise([&input]).assert().code(USAGE);
    denoise([""; 0]).assert().code(USAGE);
    assert!(folder.names().is_empty());
}

#[test]
fn what_is_not_a_dictionary_is_refused() {
    let folder = Folder::new();
    let (input, output, model) = (demo("demo-noisy.wav"), folder.join("out.wav"), folder.join("model"));
    let options = ["--model", model.to_str().unwrap()];
    fails(&[&input, &output], &options, DICTIONARY, &["model"]);
    fs::write(&model, "not a dictionary").unwrap();
    fails(&[&input, &output], &options, DICTIONARY, &["model", "not a dictionary"]);
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join("speech-16k.safetensors");
    let bytes = fs::read(shipped).unwrap();
    fs::write(&model, &bytes[..bytes.len() / 2]).unwrap();
    fails(&[&input, &output], &options, DICTIONARY, &["model", "truncated"]);
    assert_eq!(folder.names(), ["model"]);
}

#[test]
fn silence_stays_silence() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    write(&input, spec(44_100, 2), std::iter::repeat_n(0.0, 30_000));
    let assert = denoise([&input, &output]).assert().success();
    assert!(String::from_utf8_lossy(&assert.get_output().stderr).contains("digital silence"));
    assert!(fs::read(&input).unwrap() == fs::read(&output).unwrap());
}

#[test]
fn every_length_rate_and_number_of_channels_is_kept() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    for (rate, channels, frames) in [(16_000, 1, 1), (8_000, 2, 777), (48_000, 3, 5_000), (22_050, 2, 2)] {
        let count = frames * usize::from(channels);
        write(&input, spec(rate, channels), hiss(count).map(|x| 0.3 * x));
        denoise([&input, &output]).args(["-q", "--warm-start", "4"]).assert().success();
        let (found, samples) = read(&output);
        assert_eq!((found, samples.len()), (spec(rate, channels), count));
    }
}

#[test]
fn stereo_keeps_its_image() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    let left: Vec<f32> =
        voice(16_000, 1.0, 140.0).into_iter().zip(hiss(16_000)).map(|(s, n)| s + 0.02 * n).collect();
    write(&input, spec(16_000, 2), left.iter().flat_map(|&x| [x, 0.5 * x]));
    denoise([&input, &output]).args(["-q", "--warm-start", "10"]).assert().success();
    let (_, samples) = read(&output);
    let (pairs, _) = samples.as_chunks::<2>();
    assert!(pairs.iter().any(|[left, _]| left.abs() > 0.05));
    for [left, right] in pairs {
        assert!((0.5 * left - right).abs() < 3.0 / 32_768.0, "{left} {right}");
    }
}

#[test]
fn a_dictionary_learned_from_a_folder_denoises() {
    let folder = Folder::new();
    let speech = folder.join("speech");
    fs::create_dir_all(speech.join("more")).unwrap();
    write(&speech.join("low.wav"), spec(16_000, 1), voice(16_000, 2.0, 110.0));
    write(&speech.join("more").join("HIGH.WAV"), spec(48_000, 1), voice(48_000, 2.0, 190.0));
    fs::write(speech.join("notes.txt"), "not a recording").unwrap();
    let (model, again) = (folder.join("mine.safetensors"), folder.join("again.safetensors"));
    let train = |model: &Path, threads: &str| {
        denoise([Path::new("train"), &speech, Path::new("-o"), model])
            .args(["--rank", "8", "--iterations", "12", "--threads", threads])
            .assert()
            .success()
    };
    let summary = train(&model, "1");
    let summary = String::from_utf8_lossy(&summary.get_output().stderr).into_owned();
    assert!(summary.contains("8 spectra of 513 bins") && summary.contains("2 files"), "{summary}");
    train(&again, "3");
    assert!(fs::read(&model).unwrap() == fs::read(&again).unwrap());

    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    let clean = voice(16_000, 2.0, 150.0);
    let noisy: Vec<f32> = clean.iter().zip(hiss(32_000)).map(|(s, n)| s + 0.08 * n).collect();
    write(&input, spec(16_000, 1), noisy.iter().copied());
    denoise([&input, &output]).args(["-q", "--model", model.to_str().unwrap()]).assert().success();
    let (before, after) = (si_sdr(&clean, &noisy), si_sdr(&clean, &read(&output).1));
    assert!(after > before + 3.0, "{before:.2} dB before, {after:.2} dB after");
    assert_eq!(folder.names(), ["again.safetensors", "in.wav", "mine.safetensors", "out.wav", "speech"]);
}

#[test]
fn folders_of_no_use_are_named() {
    let folder = Folder::new();
    let (speech, model) = (folder.join("speech"), folder.join("model"));
    let fails = |options: &[&str], code: i32, words: &[&str]| {
        fails(&[Path::new("train"), &speech, Path::new("-o"), &model], options, code, words);
    };
    fails(&[], INPUT, &["speech"]);
    fs::create_dir(&speech).unwrap();
    fails(&[], INPUT, &["speech", "no WAV file"]);
    write(&speech.join("a.wav"), spec(16_000, 1), voice(16_000, 0.5, 120.0));
    fails(&["--rate", "48000", "--rank", "2"], INPUT, &["a.wav", "16000 Hz", "48000 Hz"]);
    fails(&["--rate", "4000"], USAGE, &["4000", "8000 to 192000"]);
    fails(&["--rank", "0"], USAGE, &["rank", "1 to 1000"]);
    fails(&["--rank", "900"], INPUT, &["900"]);
    fails(&["--alpha", "3"], USAGE, &["0.2 to 2"]);
    fails(&["--iterations", "0"], USAGE, &["1 to 100000"]);
    fails(&["--window", "2"], USAGE, &["0.001 to 1"]);
    fs::write(speech.join("b.wav"), "not audio").unwrap();
    fails(&["--rank", "2"], INPUT, &["b.wav"]);
    fs::remove_file(speech.join("b.wav")).unwrap();
    let nowhere = folder.join("missing").join("model");
    self::fails(
        &[Path::new("train"), &speech, Path::new("-o"), &nowhere],
        &["-q", "--rank", "2", "--iterations", "2"],
        OUTPUT,
        &["model", "cannot be written"],
    );
    assert_eq!(folder.names(), ["speech"]);
}
