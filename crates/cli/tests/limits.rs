//! Runs with little: memory, places to write to, descriptors, and sizes of files.
#![cfg(target_os = "linux")]

mod shared;

use shared::*;
use std::fs;
use std::process::Output;

/// Runs the program on `in.wav` after a shell script that takes something away from it.
fn limited(folder: &Folder, limits: &str, arguments: &str) -> Output {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &format!("{limits}; exec \"$0\" {arguments} -q --quality fast")]);
    command.arg(assert_cmd::cargo::cargo_bin!("denoise")).current_dir(folder.0.path()).output().unwrap()
}

fn with_recording() -> Folder {
    let folder = Folder::new();
    write(&folder.join("in.wav"), spec(16_000, 1), noisy(2.0));
    folder
}

#[test]
fn little_memory_and_few_descriptors_are_enough() {
    let folder = with_recording();
    fs::create_dir(folder.join("many")).unwrap();
    for number in 0..20 {
        fs::copy(folder.join("in.wav"), folder.join(&format!("many/{number}.wav"))).unwrap();
    }
    for limits in ["ulimit -v 524288", "ulimit -n 32"] {
        for arguments in ["in.wav out.wav --force", "many -o out --force"] {
            let output = limited(&folder, limits, arguments);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{limits}, {arguments}: {said}");
        }
    }
    assert_eq!(fs::read_dir(folder.join("out")).unwrap().count(), 21, "and the record");
}

#[test]
fn nothing_is_written_but_beside_the_output() {
    let folder = with_recording();
    // Neither home nor temporary folder can be written to, and no other program be found.
    let limits =
        "export HOME=/proc/nowhere TMPDIR=/proc/nowhere XDG_CACHE_HOME=/proc/nowhere PATH=/proc/nowhere";
    let output =
        limited(&folder, limits, "in.wav out.wav --stats stats.json --plot plot.svg --levels levels.csv");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(folder.names(), ["in.wav", "levels.csv", "out.wav", "plot.svg", "stats.json"]);
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error() {
    let folder = with_recording();
    fs::write(folder.join("out.wav"), "before").unwrap();
    let output = limited(&folder, "ulimit -f 40", "in.wav out.wav --force");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(OUTPUT), "{said}");
    assert!(said.contains("out.wav") && said.contains("File too large"), "{said}");
    assert_eq!(folder.names(), ["in.wav", "out.wav"]);
    assert_eq!(fs::read(folder.join("out.wav")).unwrap(), b"before");
}
