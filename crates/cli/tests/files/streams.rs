//! Pipes, devices, standard output and signals.

use crate::recording;
use crate::shared::*;
use std::fs;
use std::path::Path;
use std::process::Stdio;
#[cfg(unix)]
use std::{
    process::Child,
    thread,
    time::{Duration, Instant},
};

#[test]
#[cfg(target_os = "linux")]
fn a_limit_on_the_size_of_files_is_an_error_of_writing() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    write(&input, spec(16_000, 1), noisy(2.0));
    let program = assert_cmd::cargo::cargo_bin!("denoise");
    let limited = std::process::Command::new("sh")
        .args(["-c", "ulimit -f 8; exec \"$0\" \"$@\" -q --quality fast"])
        .arg(program)
        .args([&input, &output])
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&limited.stderr);
    assert_eq!(limited.status.code(), Some(OUTPUT), "{message}");
    assert!(message.contains("out.wav: cannot be written"), "{message}");
    assert_eq!(folder.names(), ["in.wav"]);
}

#[test]
#[cfg(target_os = "linux")]
fn endless_inputs_are_not_read_to_their_end() {
    let folder = Folder::new();
    let (input, output, zero) = (folder.join("in.wav"), folder.join("out.wav"), Path::new("/dev/zero"));
    recording(&input);
    fails(&[&input, &output, Path::new("--model"), zero], &[], DICTIONARY, &["/dev/zero", "more than"]);
    let eval = Path::new("eval");
    fails(&[eval, Path::new("--manifest"), zero], &[], INPUT, &["/dev/zero", "more than"]);
    fails(&[eval, Path::new("--protocol"), zero, Path::new("--data"), zero], &[], INPUT, &["/dev/zero"]);
}

/// Sends one signal to the program and returns its exit code; panics unless it ends within 20 s.
#[cfg(unix)]
fn interrupted(mut child: Child, signal: &str) -> Option<i32> {
    wait_for_handlers(&child);
    assert!(child.try_wait().unwrap().is_none(), "it does not wait");
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("one {signal} does not end the waiting");
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.wait().unwrap().code()
}

#[test]
#[cfg(unix)]
fn one_interrupt_ends_the_waiting_for_a_pipe() {
    let folder = Folder::new();
    let [input, output, fifo] = ["in.wav", "out.wav", "fifo.wav"].map(|name| folder.join(name));
    recording(&input);
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let path = Path::new;
    let waiting: [(&[&Path], &str); 4] = [
        (&[&input, &output, path("--model"), &fifo], "-INT"),
        (&[&input, &fifo], "-TERM"),
        (&[&input, &output, path("--stats"), &fifo], "-INT"),
        (&[path("eval"), path("--manifest"), &fifo], "-TERM"),
    ];
    for (arguments, signal) in waiting {
        let child = program().args(arguments).arg("-q").stderr(Stdio::null()).spawn().unwrap();
        assert_eq!(interrupted(child, signal), Some(130), "{arguments:?}");
        let _ = fs::remove_file(&output);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn ignored_signals_stay_ignored() {
    let folder = Folder::new();
    let output = folder.join("out.wav");
    let program = assert_cmd::cargo::cargo_bin!("denoise");
    let mut child = std::process::Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$0\" - \"$1\" --raw 16000:1:s16 -q --quality fast"])
        .arg(program)
        .arg(&output)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_handlers(&child);
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    thread::sleep(Duration::from_millis(200));
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, &[1; 32_000]).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    assert_eq!(read(&output).1.len(), 16_000);
}

#[test]
#[cfg(unix)]
fn standard_output_is_a_file_or_nothing() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    recording(&input);
    let program = assert_cmd::cargo::cargo_bin!("denoise");
    let shell = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &format!("\"$0\" in.wav - -q --quality fast {script}")]).arg(program);
        command.current_dir(folder.0.path()).output().unwrap()
    };
    assert!(shell("> /dev/null").status.success());
    // Opened for reading and writing, as by Python's `subprocess.DEVNULL`.
    assert!(shell("1<> /dev/null").status.success());
    // The header is completed at the end, as in a named file.
    assert!(shell("> piped.wav").status.success());
    denoise([&input, &folder.join("named.wav")]).args(FAST).assert().success();
    assert!(fs::read(folder.join("piped.wav")).unwrap() == fs::read(folder.join("named.wav")).unwrap());
    // A file opened by `>>` is written to only at its end.
    fs::write(folder.join("appended"), "before").unwrap();
    assert!(shell(">> appended").status.success());
    let appended = fs::read(folder.join("appended")).unwrap();
    assert!(appended.starts_with(b"beforeRIFF") && !appended[20..].windows(4).any(|four| four == b"RIFF"));
}

#[test]
fn samples_go_out_as_they_came_in() {
    let folder = Folder::new();
    let [input, raw, wav, output] = ["in.wav", "in.raw", "out.wav", "out.raw"].map(|name| folder.join(name));
    recording(&input);
    fs::write(&raw, &fs::read(&input).unwrap()[44..]).unwrap();
    denoise([&input, &wav]).args(FAST).assert().success();
    denoise([&raw, &output]).args(FAST).args(["--raw", "16000:1:s16", "--raw-out"]).assert().success();
    assert!(fs::read(&output).unwrap() == fs::read(&wav).unwrap()[44..]);
    fails(&[&input, &output], &["--force", "--raw-out", "--format", "flac"], USAGE, &["--raw-out"]);
    // Sample formats that cannot be written need --format for the output.
    for format in ["s8", "alaw", "mulaw", "s16be", "s32be"] {
        let raw_format = format!("16000:1:{format}");
        let options = ["--force", "--raw", &raw_format, "--raw-out"];
        fails(&[&raw, &output], &options, USAGE, &["--raw-out", "set one with --format, such as s16"]);
        let mut command = denoise([&raw, &output]);
        command.args(FAST).args(options.into_iter().skip(1)).args(["--format", "s16"]).assert().success();
    }
}

#[test]
fn names_promise_what_is_written() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    recording(&input);
    // Formats written by ffmpeg are tested in media/by_ffmpeg.rs.
    for name in ["a.txt", "a", "a.wav.part"] {
        fails(&[&input, &folder.join(name)], &[], USAGE, &[name, "only WAV and FLAC", "--format"]);
    }
    denoise([&input, &folder.join("a.txt")]).args(FAST).args(["--format", "wav"]).assert().success();
    assert_eq!(folder.names(), ["a.txt", "in.wav"]);
}
