//! Damaged recordings, and formats that only ffmpeg reads or writes.

mod by_ffmpeg;
mod damage;
mod films;
mod metadata;
#[path = "../../../files/tests/shared/mod.rs"]
mod shared;

use alphamf::signal::{SampleFormat, Signal};
use assert_cmd::Command;
use shared::ffmpeg;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const USAGE: i32 = 2;

const INPUT: i32 = 3;

const OUTPUT: i32 = 4;

/// The program with the least processing, as these tests check files, not the quality of denoising.
fn denoise(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("denoise"));
    let least_work = ["--quality", "fast", "--no-neural", "--em-iterations", "1"];
    command.current_dir(folder.path()).args(least_work).args(arguments);
    command
}

fn message(command: &mut Command, code: i32) -> String {
    String::from_utf8(command.assert().code(code).get_output().stderr.clone()).unwrap()
}

/// Losses: the key in the statistics and the words in the message.
const ENDS_EARLY: (&str, &str) = ("ends_early", "the file ends early");
const MISSING_SAMPLES: (&str, &str) = ("missing_samples", "missing at the end");
const DAMAGED_PACKETS: (&str, &str) = ("damaged_packets", "damaged or missing packet");
const DATA_FOLLOW: (&str, &str) = ("data_follow", "more data follow");
const OTHER_RECORDING: (&str, &str) = ("other_recording_follows", "another recording");

/// One second of a sine wave in noise, at 16 kHz.
fn noisy() -> Signal {
    let sample = |n: u32| {
        let hiss = f32::from((n.wrapping_mul(2_654_435_761) >> 16) as u16) / 65_536.0 - 0.5;
        0.2 * (n as f32 * 0.1).sin() + 0.05 * hiss
    };
    Signal::new(16_000, SampleFormat::Float32, vec![(0..16_000).map(sample).collect()]).unwrap()
}

/// Encodes one input to files of these names and options by one run of ffmpeg; false if it is not installed.
fn encoded(folder: &TempDir, input: &[&str], files: &[(&str, &[&str])]) -> bool {
    let outputs = files.iter().flat_map(|(name, options)| options.iter().chain([name]));
    ffmpeg(folder.path(), &input.iter().chain(outputs).copied().collect::<Vec<_>>())
}

/// Output lines of ffprobe for `entries` of a file.
fn probed(folder: &Path, name: &str, entries: &str) -> Vec<String> {
    let arguments = ["-v", "error", "-show_entries", entries, "-of", "csv=p=0", name];
    let output = std::process::Command::new("ffprobe").args(arguments).current_dir(folder).output().unwrap();
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// Tags of a file and of its streams by ffprobe, in lower case.
fn tags(folder: &Path, name: &str) -> String {
    let arguments = ["-v", "error", "-show_entries", "format_tags:stream_tags", "-of", "default", name];
    let output = std::process::Command::new("ffprobe").args(arguments).current_dir(folder).output().unwrap();
    String::from_utf8_lossy(&output.stdout).to_lowercase()
}

/// Statistics of the first file of a successful run, and the standard error.
fn statistics(folder: &TempDir, arguments: &[&str]) -> (serde_json::Value, String) {
    let arguments = [arguments, &["--force", "--stats", "stats.json"]].concat();
    let stderr = message(&mut denoise(folder, &arguments), 0);
    let stats = fs::read(folder.path().join("stats.json")).unwrap();
    let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
    (stats["files"][0].clone(), stderr)
}

/// Asserts that losses are counted and reported in these words, and that --salvage keeps no fewer samples.
fn is_reported(folder: &TempDir, input: &str, losses: &[(&str, &str)]) {
    let (stats, stderr) = statistics(folder, &[input, "reported.wav"]);
    for (key, words) in losses {
        let value = &stats[*key];
        assert!(
            value.as_u64().is_some_and(|count| count > 0) || value.as_bool() == Some(true),
            "{input}, {key}: {stats}"
        );
        assert!(stderr.contains(words), "{input}: {stderr}");
    }
    assert!(alphamf_files::read(folder.path().join("reported.wav")).unwrap().len() > 0);
    let (salvaged, _) = statistics(folder, &[input, "salvaged.wav", "--salvage"]);
    assert!(salvaged["samples"].as_u64() >= stats["samples"].as_u64(), "{input}");
}
