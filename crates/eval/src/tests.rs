//! Evaluations of small folders, from their files to their records.

mod pairing;
mod protocols;
mod records;
mod runs;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use alphamf::signal::{SampleFormat, Signal};
use alphamf_files as audio;

/// A second of a swelling buzz at 8 kHz, with some noise added.
fn sound(noise: f32) -> Signal {
    let mut state = 1_u32;
    let samples = (0..8000_u16)
        .map(|n| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let t = f32::from(n) / 8000.0;
            let buzz: f32 = (1..20_u8).map(|k| (800.0 * f32::from(k) * t).sin() / f32::from(k)).sum();
            0.2 * (1.2 - (9.0 * t).cos()) * buzz + noise * (state as f32 / 2.0_f32.powi(31) - 1.0)
        })
        .collect();
    Signal::new(8000, SampleFormat::Float32, vec![samples]).unwrap()
}

fn put(folder: &Path, name: &str, signal: &Signal) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    audio::write(&path, signal).unwrap();
    path
}

/// Pairs all files of the folders.
fn pair_folders(
    clean: &Path,
    noisy: Option<&Path>,
    enhanced: Option<&Path>,
) -> Result<Pairing, EvaluationError> {
    super::pair_folders(clean, noisy, enhanced, |folder| audio::FolderContents::scan(folder, &[]))
}

/// Two clean files, and four recordings of them in two conditions.
fn corpus() -> (TempDir, Pairing) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["sp01", "sp02"] {
        put(folder.path(), &format!("clean/{name}.wav"), &sound(0.0));
        for (condition, noise) in [("hiss_sn5", 0.2), ("hum_sn0", 0.4)] {
            put(folder.path(), &format!("noisy/{condition}/{name}_{condition}.wav"), &sound(noise));
        }
    }
    let pairing =
        pair_folders(&folder.path().join("clean"), Some(&folder.path().join("noisy")), None).unwrap();
    (folder, pairing)
}

/// Files that macOS adds on foreign disks have the names and extensions of audio files.
#[test]
fn hidden_files_are_not_paired() {
    let (folder, pairing) = corpus();
    for name in ["noisy/hiss_sn5/._sp01_hiss_sn5.wav", "clean/._sp01.wav", "noisy/.cache/sp02.wav"] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "no recording").unwrap();
    }
    let [clean, noisy] = ["clean", "noisy"].map(|name| folder.path().join(name));
    assert_eq!(pair_folders(&clean, Some(&noisy), None).unwrap(), pairing);
}

type Denoised = Result<Signal, Box<dyn std::error::Error + Send + Sync>>;

/// Stands in for a denoiser: halves the signal's higher half of the band.
fn smooth(signal: &Signal, _: &mut Observer) -> Denoised {
    let samples = &signal.channels()[0];
    let smoothed = (0..samples.len()).map(|n| 0.5 * (samples[n] + samples[n.saturating_sub(1)])).collect();
    Ok(signal.with_channels(vec![smoothed])?)
}

fn provenance() -> Provenance {
    Provenance {
        version: "1.2.3".into(),
        system: "denoise".into(),
        protocol: None,
        settings: serde_json::json!({"iterations": 150, "noise": {"rank": 2}}),
        seed: Some(7),
        dictionary_sha256: Some("ab".into()),
        high_pass_hz: 0.0,
    }
}

fn without_times(mut results: Vec<FileResult>) -> Vec<FileResult> {
    for result in &mut results {
        result.processing_seconds = None;
        result.trace.iter_mut().for_each(|point| point.seconds = 0.0);
    }
    results
}
