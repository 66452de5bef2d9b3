//! Output on a terminal, which `script` of util-linux provides, and without one.

#![cfg(target_os = "linux")]

mod shared;

use shared::{Folder, demo, drawn, noisy, spec, terminal, write};
use std::path::Path;

const FAST: [&str; 2] = ["--quality", "fast"];

/// A folder with three recordings of unequal length.
fn recordings() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.join("in")).unwrap();
    for (name, seconds) in
        [("a.wav", 3.0), ("a recording with quite a long name, of rain.wav", 20.0), ("c.wav", 12.0)]
    {
        write(&folder.join("in").join(name), spec(16_000, 1), noisy(seconds));
    }
    folder
}

fn arguments(folder: &Folder) -> Vec<String> {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let mut arguments =
        vec![path("in"), "-o".to_owned(), path("out"), "--threads".to_owned(), "2".to_owned()];
    arguments.extend(FAST.map(str::to_owned));
    arguments
}

/// Whether the output contains an escape sequence that sets a colour.
fn is_coloured(output: &str) -> bool {
    output.split("\x1b[").skip(1).any(|rest| {
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        rest[end..].starts_with('m') && !["", "0"].contains(&&rest[..end])
    })
}

#[test]
fn a_folder_shows_each_file_and_all_with_rate_and_time_left() {
    let folder = recordings();
    let output = terminal(80, &[], &arguments(&folder));
    let lines = drawn(&output, 80);
    let bars: Vec<&String> = lines.iter().filter(|line| line.ends_with(" left")).collect();
    let of = |start: &str| bars.iter().filter(|line| line.starts_with(start)).count();
    let starts = [
        "0 of 3 files",
        "1 of 3 files",
        "2 of 3 files",
        "3 of 3 files",
        "a.wav",
        "a recording with quite a",
        "c.wav",
    ];
    for start in starts.iter().filter(|start| **start != "3 of 3 files") {
        assert!(of(start) > 0, "{start} is not in {lines:#?}");
    }
    for line in &bars {
        // A bar that is too long would shift the lines after it.
        let is_whole = line.contains(" % ") && line.contains(" real time ");
        assert!(is_whole && starts.iter().any(|start| line.starts_with(start)), "{line}");
    }
    assert!(bars.iter().any(|line| line.contains("x real time") && !line.contains("-:--")), "{bars:#?}");
    // The bars are removed; the table remains, and fits the terminal.
    let rows: Vec<&String> =
        lines.iter().filter(|line| line.ends_with(" dB") && line.contains(" s  ")).collect();
    assert!(rows.len() == 3 && rows.iter().all(|row| row.contains(".wav ")), "{lines:#?}");
    assert!(lines.last().unwrap().starts_with("3 denoised, 0 skipped, 0 failed in "), "{lines:#?}");
    assert!(is_coloured(&output), "{output:?}");
}

#[test]
fn no_color_leaves_the_bars_without_colours() {
    let folder = recordings();
    let output = terminal(80, &[("NO_COLOR", "1")], &arguments(&folder));
    assert!(drawn(&output, 80).iter().any(|line| line.starts_with("0 of 3 files")), "{output:?}");
    assert!(!is_coloured(&output), "{output:?}");
}

#[test]
fn a_recording_shows_rate_and_time_left() {
    let folder = Folder::new();
    let result = folder.join("voice.wav");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let output =
        terminal(60, &[], &[path(&demo("demo-noisy.wav")), path(&result), "--quality".into(), "fast".into()]);
    let lines = drawn(&output, 60);
    let bar = lines.iter().find(|line| line.starts_with("denoising ") && line.ends_with(" left")).unwrap();
    assert!(bar.contains(" % ") && bar.contains(" real time "), "{bar}");
}

#[test]
fn without_a_terminal_there_is_a_plain_line_per_file() {
    let folder = recordings();
    let output = shared::stderr_of(shared::denoise(arguments(&folder)), 0);
    assert!(!output.contains(['\x1b', '\r']), "{output:?}");
    for start in ["1 of 3: ", "2 of 3: ", "3 of 3: "] {
        let line = output.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{output}"));
        assert!(line.contains(" s of audio in ") && line.contains("x real time, "), "{line}");
    }
    // A second run skips the files, and shows no progress.
    let output = shared::stderr_of(shared::denoise(arguments(&folder)), 0);
    assert!(!output.contains(" of 3: ") && output.contains("0 denoised, 3 skipped"), "{output}");
}

#[test]
fn a_terminal_that_cannot_redraw_gets_plain_lines() {
    let folder = recordings();
    let output = terminal(80, &[("TERM", "dumb")], &arguments(&folder));
    assert!(!output.contains('\x1b') && output.contains("1 of 3: "), "{output:?}");
}
