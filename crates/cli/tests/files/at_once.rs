//! Two runs at once into one folder.

use crate::shared::*;
use std::fs;
use std::process::Stdio;
#[cfg(unix)]
use std::{process::Command, time::Instant};

#[test]
fn two_runs_at_once_share_a_folder() {
    let folder = Folder::new();
    fs::create_dir(folder.join("in")).unwrap();
    for (name, seconds) in [("a.wav", 16.0), ("b.wav", 8.0), ("c.wav", 0.3)] {
        write(&folder.join("in").join(name), spec(16_000, 1), noisy(seconds));
    }
    let start = || {
        let mut command = program();
        command.args(["in", "-o", "out", "--stats", "stats/", "--residual", "rest", "--threads", "1"]);
        command.args(["--quality", "fast"]).current_dir(folder.0.path());
        command.stderr(Stdio::piped()).spawn().unwrap()
    };
    let runs = [start(), start()];
    let messages = runs.map(|run| {
        let output = run.wait_with_output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && message.contains(", 0 failed"), "{message}");
        message
    });
    let words = |message: &String| message.contains("3 denoised, 0 skipped");
    assert!(!messages.iter().all(words), "{messages:?}");
    let again = start().wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&again.stderr);
    assert!(message.contains("0 denoised, 3 skipped"), "{message}");
}

/// The second run, with fewer reports, ends while the first is paused.
#[test]
#[cfg(unix)]
fn reports_of_a_run_that_ended_meanwhile_are_all_there() {
    let folder = Folder::new();
    write(&folder.join("a.wav"), spec(16_000, 1), noisy(15.0));
    let start = |options: &[&str]| {
        let mut command = program();
        command.args(["a.wav", "-o", "out", "--quality", "fast", "--levels", "levels"]).args(options);
        command.current_dir(folder.0.path()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let first = start(&["--speech", "speech"]);
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &first.id().to_string()]).status();
        assert!(sent.unwrap().success());
    };
    let began = Instant::now();
    while fs::read_dir(folder.join("out")).map_or(0, Iterator::count) == 0 {
        assert!(began.elapsed().as_secs() < 60);
    }
    signal("-STOP");
    assert!(!folder.join("out/a.wav").exists(), "it has ended before the other began");
    let second = start(&[]).wait_with_output().unwrap();
    signal("-CONT");
    let first = first.wait_with_output().unwrap();
    for output in [&first, &second] {
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && message.contains("1 denoised"), "{message}");
    }
    for name in ["out/a.wav", "levels/a.csv", "speech/a.json"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    let all = start(&["--speech", "speech"]).wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&all.stderr).contains("1 skipped"));
}
