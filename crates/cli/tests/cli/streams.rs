//! Pipes, formats and interrupts.

use crate::shared::*;
use alphamf_files::Reader;
use hound::{SampleFormat, WavSpec};
use std::fs;
use std::io::{Cursor, Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The samples of a WAV or FLAC stream, channel by channel.
fn decode(bytes: Vec<u8>) -> Vec<Vec<f32>> {
    Reader::from_stream("stdout", Cursor::new(bytes)).unwrap().read_all().unwrap().into_channels()
}

#[test]
fn pipes_and_raw_samples_give_what_files_give() {
    let folder = Folder::new();
    let (input, output) = (folder.join("in.wav"), folder.join("out.wav"));
    write(&input, spec(16_000, 1), noisy(1.0));
    denoise([&input, &output]).args(FAST).assert().success();
    let expected = vec![read(&output).1];
    let bytes = fs::read(&input).unwrap();
    let piped = |options: &[&str], bytes: &[u8]| {
        let assert =
            denoise(["-", "-"]).args(FAST).args(options).write_stdin(bytes).assert().success().stderr("");
        assert.get_output().stdout.clone()
    };
    assert!(decode(piped(&[], &bytes)) == expected);
    assert!(decode(piped(&["--raw", "16000:1:s16"], &bytes[44..])) == expected);
    let flac = piped(&["--format", "flac"], &bytes);
    assert!(flac.starts_with(b"fLaC") && decode(flac) == expected);
    let assert = denoise(["-", "-"]).args(FAST).write_stdin("not audio").assert().code(INPUT);
    let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(message.starts_with("denoise: standard input: not an audio file"), "{message}");
    denoise(["-", "-"]).args(FAST).args(["--raw", "16000:1:s16"]).write_stdin("odd").assert().code(INPUT);
}

#[test]
fn formats_are_those_asked_for_or_the_inputs() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    write(
        &input,
        WavSpec { bits_per_sample: 32, sample_format: SampleFormat::Float, ..spec(16_000, 1) },
        noisy(0.5),
    );
    for (name, options, bits, float) in [
        ("a.wav", &[][..], 32, true),
        ("b.wav", &["--format", "s24"], 24, false),
        ("c.wav", &["--format", "u8"], 8, false),
        ("d.flac", &[], 24, false),
        ("e.flac", &["--format", "s16"], 16, false),
        ("f", &["--format", "wav:s32"], 32, false),
        ("g", &["--format", "flac:s16"], 16, false),
    ] {
        let output = folder.join(name);
        denoise([&input, &output]).args(FAST).args(options).assert().success();
        let bytes = fs::read(&output).unwrap();
        let flac = name.ends_with(".flac") || name == "g";
        assert!(bytes.starts_with(if flac { b"fLaC" } else { b"RIFF" }), "{name}");
        let format = Reader::open(&output).unwrap().format();
        assert_eq!((format.bits(), !format.is_integer()), (bits, float), "{name}");
    }
    let compressed = folder.join("x.MP3");
    let without_ffmpeg = denoise([&input, &compressed]).env("PATH", "").assert().code(USAGE);
    let message = String::from_utf8_lossy(&without_ffmpeg.get_output().stderr).into_owned();
    assert!(message.contains("x.MP3: only WAV and FLAC") && message.contains("ffmpeg"), "{message}");
    for (name, option, words) in [
        ("x.MP3", &["--format", "wav"][..], "x.MP3: --format writes WAV, not .mp3: change the extension"),
        ("x.flac", &["--format", "wav:s32"], "x.flac: --format writes WAV, not FLAC"),
        ("x.wave", &["--format", "flac"], "x.wave: --format writes FLAC, not WAV"),
        ("x.wav", &["--raw-out"], "x.wav: --raw-out writes raw samples, not WAV"),
    ] {
        fails(&[&input, &folder.join(name)], option, USAGE, &[words]);
    }
    fails(&[&input, &folder.join("x.flac")], &["--format", "f32"], USAGE, &["x.flac", "24 bits"]);
    for format in ["s17", "s16:s24", "wav:flac", "", "S16", "flac:s32", "f32:flac"] {
        denoise([&input, &folder.join("x.wav")]).args(["--format", format]).assert().code(USAGE);
    }
}

#[test]
fn output_errors_name_the_output_and_nothing_else() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    write(&input, spec(16_000, 1), noisy(0.3));
    for output in [input.join("out.wav"), folder.join("missing").join("out.wav")] {
        let assert = denoise([&input, &output]).args(FAST).assert().code(OUTPUT);
        let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        let expected = format!("denoise: {}: cannot be written: ", output.display());
        assert!(message.starts_with(&expected) && !message.contains(".part"), "{message}");
    }
    #[cfg(target_os = "linux")]
    {
        fails(&[&input, Path::new("/dev/full")], &["-q"], OUTPUT, &["/dev/full: cannot be written", "space"]);
        denoise([&input, Path::new("/dev/null")]).args(FAST).assert().success();
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut child = spawn(&[&input, Path::new("-")], full.into());
        let message = rest_of(child.stderr.take().unwrap());
        assert_eq!(child.wait().unwrap().code(), Some(OUTPUT));
        assert!(message.starts_with("denoise: standard output: cannot be written: No space"), "{message}");
        for shown in ["-h", "--help", "--version"] {
            let full = fs::File::options().write(true).open("/dev/full").unwrap();
            let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("denoise"));
            assert_eq!(
                command.arg(shown).stdout(full).output().unwrap().status.code(),
                Some(OUTPUT),
                "{shown}"
            );
        }
    }
    assert_eq!(folder.names(), ["in.wav"]);
}

#[test]
fn a_closed_pipe_is_one_line() {
    let folder = Folder::new();
    let input = folder.join("in.wav");
    write(&input, spec(16_000, 1), noisy(0.5));
    let mut child = spawn(&[&input, Path::new("-")], Stdio::piped());
    drop(child.stdout.take());
    let message = rest_of(child.stderr.take().unwrap());
    assert_eq!(child.wait().unwrap().code(), Some(OUTPUT));
    assert!(message.starts_with("denoise: standard output: cannot be written"), "{message}");
    assert_eq!(message.lines().count(), 1);
}

/// A named pipe, which can be read only once, serves as input and as output.
#[test]
#[cfg(unix)]
fn pipes_with_names_are_read_and_written() {
    let folder = Folder::new();
    let [input, fifo, output] = ["in.wav", "fifo", "out.wav"].map(|name| folder.join(name));
    write(&input, spec(16_000, 1), noisy(0.5));
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let bytes = fs::read(&input).unwrap();
    let writer = thread::spawn({
        let fifo = fifo.clone();
        move || fs::write(fifo, bytes)
    });
    let mut command = denoise([&fifo, &output]);
    command.args(FAST).timeout(Duration::from_secs(60)).assert().success();
    writer.join().unwrap().unwrap();
    assert_eq!(read(&output).1.len(), 8_000);
    let reader = thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).unwrap()
    });
    let mut command = denoise([&input, &output]);
    command.args(FAST).arg("--stats").arg(&fifo).timeout(Duration::from_secs(60)).assert().success();
    assert!(serde_json::from_slice::<serde_json::Value>(&reader.join().unwrap()).is_ok());
}

/// A stream is denoised in blocks of 8.192 s while it is open, except for the overlap with the next block.
#[test]
fn the_first_output_comes_after_one_block() {
    const BLOCK: usize = 65_536;
    let mut child = spawn(&["-", "-", "--raw", "8000:1:s16"].map(Path::new), Stdio::piped());
    let mut input = child.stdin.take().unwrap();
    let mut output = child.stdout.take().unwrap();
    let (sender, receiver) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut bytes = vec![0; 44 + 2 * (BLOCK - 5_000)];
        output.read_exact(&mut bytes).unwrap();
        sender.send(()).unwrap();
        output.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let samples: Vec<u8> = hiss(20 * 8_000).flat_map(|x| ((x * 5_000.0) as i16).to_le_bytes()).collect();
    let (first, rest) = samples.split_at(2 * BLOCK);
    input.write_all(first).unwrap();
    input.flush().unwrap();
    receiver.recv_timeout(Duration::from_secs(60)).expect("some output while the input is open");
    input.write_all(rest).unwrap();
    drop(input);
    assert_eq!(decode(reader.join().unwrap())[0].len(), 20 * 8_000);
    assert!(child.wait().unwrap().success());
}

#[test]
#[cfg(unix)]
fn interrupts_leave_nothing() {
    let interrupt = |child: &mut Child| {
        let pid = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let message = rest_of(child.stderr.take().unwrap());
        assert_eq!(child.wait().unwrap().code(), Some(130), "{message}");
        assert!(message.starts_with("denoise: ") && message.trim_end().ends_with("interrupted"), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    };
    let wait_for = |what: &dyn Fn() -> bool| {
        let began = Instant::now();
        while !what() {
            assert!(began.elapsed() < Duration::from_secs(240));
            thread::sleep(Duration::from_millis(5));
        }
    };
    let folder = Folder::new();
    let (input, output, results) = (folder.join("in.wav"), folder.join("out.wav"), folder.join("results"));
    write(&input, spec(48_000, 1), hiss(60 * 48_000));
    // In the middle of a long file.
    let mut child = spawn(&[&input, &output], Stdio::null());
    wait_for(&|| folder.names().len() > 1);
    interrupt(&mut child);
    // Among the files of a folder.
    let mut child = spawn(&[&input, Path::new("-o"), &results], Stdio::null());
    wait_for(&|| fs::read_dir(&results).is_ok_and(|mut entries| entries.next().is_some()));
    interrupt(&mut child);
    assert!(!results.exists());
    // While it waits for input.
    fs::write(&output, "before").unwrap();
    let mut child = spawn(&["-".as_ref(), &output, "--raw".as_ref(), "16000:1:s16".as_ref()], Stdio::null());
    wait_for(&|| folder.names().len() > 2);
    interrupt(&mut child);
    assert_eq!(folder.names(), ["in.wav", "out.wav"]);
    assert_eq!(fs::read(&output).unwrap(), b"before");
}

/// The run cannot stop cleanly, as its output is not read.
#[test]
#[cfg(unix)]
fn a_second_interrupt_ends_at_once_and_leaves_nothing() {
    let folder = Folder::new();
    let (input, residual) = (folder.join("in.wav"), folder.join("residual.wav"));
    write(&input, spec(16_000, 1), hiss(20 * 16_000));
    for signal in ["-INT", "-TERM", "-HUP"] {
        let arguments = [&input, Path::new("-"), Path::new("--residual"), &residual];
        let mut child = spawn(&arguments, Stdio::piped());
        // The program then fills the pipe and blocks.
        let mut output = child.stdout.take().unwrap();
        output.read_exact(&mut [0; 45]).unwrap();
        assert_eq!(folder.names().len(), 2, "the residual is being written");
        thread::sleep(Duration::from_millis(200));
        let pid = child.id().to_string();
        let kill =
            || assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
        kill();
        thread::sleep(Duration::from_millis(300));
        assert!(child.try_wait().unwrap().is_none(), "{signal}");
        kill();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{signal}");
        assert_eq!(folder.names(), ["in.wav"], "{signal}");
    }
}
