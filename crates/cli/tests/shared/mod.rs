//! Helpers shared by the tests of the program: folders, recordings and runs.
#![allow(dead_code)] // not every test needs all of it

use assert_cmd::Command;
use hound::{SampleFormat, WavReader, WavSpec, WavWriter};
use std::f32::consts::TAU;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const USAGE: i32 = 2;
pub const INPUT: i32 = 3;
pub const OUTPUT: i32 = 4;
pub const DICTIONARY: i32 = 5;

pub fn demo(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join("audio").join(name)
}

/// Temporary folder of a test.
pub struct Folder(pub TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs the program in the folder at fast quality, expects exit code `code` and returns standard error.
    pub fn run(&self, arguments: &[&str], code: i32) -> String {
        let mut command = denoise(arguments);
        command.args(["--quality", "fast"]).current_dir(self.0.path());
        stderr_of(command, code)
    }

    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Waits until the program handles signals, which a busy machine may delay.
#[cfg(unix)]
pub fn wait_for_handlers(child: &Child) {
    let status = format!("/proc/{}/status", child.id());
    let handles = || {
        let text = fs::read_to_string(&status).ok()?;
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let caught = u64::from_str_radix(field("SigCgt:")?, 16).ok()?;
        // A shell or `env` may run first. SIGTERM is number 15; neither scripts nor `nohup` ignore it.
        Some(field("Name:") == Some("denoise") && caught >> 14 & 1 == 1)
    };
    // Without /proc, the test waits for half a second.
    if !cfg!(target_os = "linux") {
        return thread::sleep(Duration::from_millis(500));
    }
    let began = Instant::now();
    while handles() != Some(true) {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not handle signals");
        thread::sleep(Duration::from_millis(10));
    }
}

pub fn denoise(arguments: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("denoise"));
    command.args(arguments);
    command
}

/// Runs a command, expects exit code `code` and returns standard error.
pub fn stderr_of(mut command: Command, code: i32) -> String {
    String::from_utf8(command.assert().code(code).get_output().stderr.clone()).unwrap()
}

/// Runs the program and expects it to fail with an exit code and one line that contains all of `words`.
pub fn fails(arguments: &[&Path], options: &[&str], code: i32, words: &[&str]) {
    let mut command = denoise(arguments);
    command.args(options);
    fails_as(command, code, words);
}

/// Like [`fails`], for a command.
pub fn fails_as(mut command: Command, code: i32, words: &[&str]) {
    let assert = command.assert().code(code);
    let output = assert.get_output();
    assert!(output.stdout.is_empty());
    let message = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    for word in words {
        assert!(message.contains(word), "'{word}' is not in: {message}");
    }
}

pub fn spec(sample_rate: u32, channels: u16) -> WavSpec {
    WavSpec { channels, sample_rate, bits_per_sample: 16, sample_format: SampleFormat::Int }
}

pub fn write(path: &Path, spec: WavSpec, samples: impl IntoIterator<Item = f32>) {
    let mut writer = WavWriter::create(path, spec).unwrap();
    for sample in samples {
        match spec.sample_format {
            SampleFormat::Int => writer.write_sample((sample * 32_767.0) as i16).unwrap(),
            SampleFormat::Float => writer.write_sample(sample).unwrap(),
        }
    }
    writer.finalize().unwrap();
}

pub fn read(path: &Path) -> (WavSpec, Vec<f32>) {
    let mut reader = WavReader::open(path).unwrap();
    let samples = reader.samples::<i16>().map(|sample| f32::from(sample.unwrap()) / 32_768.0).collect();
    (reader.spec(), samples)
}

/// Synthetic speech, sufficient for training: two formants on a gliding pitch, in syllables.
pub fn voice(sample_rate: u32, seconds: f32, pitch: f32) -> Vec<f32> {
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
pub fn hiss(count: usize) -> impl Iterator<Item = f32> {
    let mut state = 1_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    })
    .take(count)
}

/// A voice in white noise at 16 kHz, `seconds` long.
pub fn noisy(seconds: f32) -> Vec<f32> {
    let voice = voice(16_000, seconds, 140.0);
    let hiss = hiss(voice.len());
    voice.into_iter().zip(hiss).map(|(s, n)| s + 0.05 * n).collect()
}

/// Options of fast, quiet runs that may overwrite their output.
pub const FAST: [&str; 4] = ["-q", "--quality", "fast", "--force"];

/// The program with the default handling of signals. Tests under `nohup`, or in the background of a script, start with
/// some signals ignored, and their child processes would inherit this.
pub fn program() -> std::process::Command {
    static RESETS: LazyLock<bool> = LazyLock::new(|| {
        let mut env = std::process::Command::new("env");
        let probe = env.args(["--default-signal", "true"]).stderr(Stdio::null());
        cfg!(target_os = "linux") && probe.status().is_ok_and(|status| status.success())
    });
    let program = assert_cmd::cargo::cargo_bin!("denoise");
    if !*RESETS {
        return std::process::Command::new(program);
    }
    let mut command = std::process::Command::new("env");
    command.arg("--default-signal").arg(program);
    command
}

pub fn spawn(arguments: &[&Path], output: Stdio) -> Child {
    program()
        .args(arguments)
        .args(FAST)
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub fn rest_of(mut stream: impl Read) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Output of a successful run of the program on a terminal of `columns` columns, with environment `variables`.
pub fn terminal(columns: usize, variables: &[(&str, &str)], arguments: &[String]) -> String {
    let quoted = |text: &String| format!("'{}'", text.replace('\'', r"'\''"));
    let words: Vec<String> = std::iter::once(&path()).chain(arguments).map(quoted).collect();
    on_terminal(columns, variables, &words.join(" "))
}

/// Path of the program.
pub fn path() -> String {
    assert_cmd::cargo::cargo_bin!("denoise").display().to_string()
}

/// Output of a successful shell line on a terminal, which `script` of util-linux provides.
pub fn on_terminal(columns: usize, variables: &[(&str, &str)], line: &str) -> String {
    let line = format!("stty cols {columns} rows 24; exec {line}");
    let mut command = std::process::Command::new("script");
    command.args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"]);
    command
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .env_remove("PULSE_SERVER")
        .envs(variables.iter().copied());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    text
}

/// Lines drawn on a terminal of `columns` columns, in order of output, without escape sequences.
pub fn drawn(output: &str, columns: usize) -> Vec<String> {
    let mut text = String::new();
    let mut rest = output;
    while let Some(start) = rest.find("\x1b[") {
        text += &rest[..start];
        rest = &rest[start + 2..];
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        // A sequence that moves the cursor begins a new line.
        text += if rest[end..].starts_with('m') { "" } else { "\n" };
        rest = &rest[end + 1..];
    }
    // A full line continues on the next.
    let written = text + rest;
    let characters = written.split(['\r', '\n']).map(|line| line.chars().collect::<Vec<char>>());
    let lines = characters.flat_map(|line| {
        line.chunks(columns).map(|line| line.iter().collect::<String>()).collect::<Vec<_>>()
    });
    lines.map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}
