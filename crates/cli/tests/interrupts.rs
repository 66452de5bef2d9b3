//! Ctrl-C while something is learned.
#![cfg(unix)]

mod shared;

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn learning_is_ended_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let (speech, dictionary) = (folder.path().join("speech"), folder.path().join("dictionary.safetensors"));
    std::fs::create_dir(&speech).unwrap();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../audio/demo-clean.wav");
    std::fs::copy(demo, speech.join("clean.wav")).unwrap();
    let child = shared::program()
        .args([Path::new("train"), &speech, Path::new("-o"), &dictionary])
        .args(["--iterations", "100000"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It learns by then, for minutes.
    shared::wait_for_handlers(&child);
    thread::sleep(Duration::from_secs(2));
    let pressed = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(message.ends_with("interrupted\n"), "{message}");
    // A second on a machine at rest.
    assert!(pressed.elapsed() < Duration::from_secs(5), "{:?}", pressed.elapsed());
    assert!(!dictionary.exists());
}
