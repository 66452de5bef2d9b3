//! Recordings that are damaged, and those that come in or go into what only ffmpeg reads and writes.

use alphamf::signal::{SampleFormat, Signal};
use alphamf_files::Reader;
use assert_cmd::Command;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const USAGE: i32 = 2;
const INPUT: i32 = 3;
const OUTPUT: i32 = 4;

fn denoise(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("denoise"));
    command.current_dir(folder.path()).args(["--quality", "fast"]).args(arguments);
    command
}

fn message(command: &mut Command, code: i32) -> String {
    String::from_utf8(command.assert().code(code).get_output().stderr.clone()).unwrap()
}

/// Runs ffmpeg; false, and loudly so, if it is not installed.
fn ffmpeg(folder: &Path, arguments: &[&str]) -> bool {
    let mut command = std::process::Command::new("ffmpeg");
    command
        .args(["-nostdin", "-hide_banner", "-loglevel", "error", "-y"])
        .args(arguments)
        .current_dir(folder);
    match command.status() {
        Ok(status) => {
            assert!(status.success(), "{arguments:?}");
            true
        }
        Err(_) => {
            eprintln!("SKIPPED: ffmpeg is not installed, so that {arguments:?} was not tested");
            false
        }
    }
}

/// A second of a hum in a hiss.
fn noisy() -> Signal {
    let sample = |n: u32| {
        let hiss = f32::from((n.wrapping_mul(2_654_435_761) >> 16) as u16) / 65_536.0 - 0.5;
        0.2 * (n as f32 * 0.1).sin() + 0.05 * hiss
    };
    Signal::new(16_000, SampleFormat::Float32, vec![(0..16_000).map(sample).collect()]).unwrap()
}

#[test]
fn a_damaged_recording_is_refused_salvaged_or_told() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("in.wav");
    alphamf_files::write(&path, &noisy()).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let start = bytes.len() - 64_000;
    bytes[start + 400..start + 404].copy_from_slice(&f32::NAN.to_le_bytes());
    bytes.truncate(start + 4 * 12_000);
    fs::write(&path, bytes).unwrap();

    assert!(message(&mut denoise(&folder, &["in.wav", "out.wav"]), INPUT).contains("sample 100"));
    assert!(!folder.path().join("out.wav").exists());
    let salvage = ["in.wav", "out.wav", "--salvage", "--stats", "stats.json"];
    let said = message(&mut denoise(&folder, &salvage), 0);
    assert!(said.contains("4000 samples missing at the end"), "{said}");
    assert!(said.contains("1 samples that were not finite"), "{said}");
    assert_eq!(alphamf_files::read(folder.path().join("out.wav")).unwrap().len(), 12_000);
    let stats = fs::read_to_string(folder.path().join("stats.json")).unwrap();
    assert!(stats.contains("\"missing_samples\": 4000") && stats.contains("\"samples_not_finite\": 1"));
    assert!(
        message(&mut denoise(&folder, &["in.wav", "b.wav", "--salvage", "--strict"]), USAGE)
            .contains("--strict")
    );
}

#[test]
fn a_stream_that_is_cut_off_is_told_and_refused_if_asked() {
    let folder = TempDir::new().unwrap();
    let noise = "anoisesrc=sample_rate=16000:duration=4:amplitude=0.2";
    if !ffmpeg(folder.path(), &["-f", "lavfi", "-i", noise, "whole.ogg"]) {
        return;
    }
    let whole = fs::read(folder.path().join("whole.ogg")).unwrap();
    fs::write(folder.path().join("cut.ogg"), &whole[..whole.len() / 2]).unwrap();
    denoise(&folder, &["whole.ogg", "out.wav", "--strict"]).assert().success();
    let said = message(&mut denoise(&folder, &["cut.ogg", "cut.wav"]), 0);
    assert!(said.contains("unexpected end of file"), "{said}");
    let said = message(&mut denoise(&folder, &["cut.ogg", "none.wav", "--strict"]), INPUT);
    assert!(said.contains("cut.ogg") && said.contains("ends early"), "{said}");
    assert!(!folder.path().join("none.wav").exists());
}

#[test]
fn what_is_said_of_a_recording_and_its_loudspeakers_are_kept() {
    let folder = TempDir::new().unwrap();
    let arguments =
        ["-f", "lavfi", "-i", "sine=sample_rate=16000:duration=0.5", "-ac", "3", "-channel_layout", "2.1"];
    let tags =
        ["-metadata", "title=A title", "-metadata", "originator=Someone", "-write_bext", "1", "in.wav"];
    if !ffmpeg(folder.path(), &[&arguments[..], &tags].concat()) {
        return;
    }
    let before = Reader::open(folder.path().join("in.wav")).unwrap();
    assert_eq!(before.speakers(), Some(0xb), "2.1, which is not 3.0");
    for output in ["out.wav", "out.flac"] {
        denoise(&folder, &["in.wav", output]).assert().success();
        let after = Reader::open(folder.path().join(output)).unwrap();
        assert_eq!(after.speakers(), Some(0xb));
        assert!(after.metadata().tags().any(|tag| tag == ("TITLE", "A title")));
        let bytes = fs::read(folder.path().join(output)).unwrap();
        assert!(bytes.windows(7).any(|window| window == b"Someone"), "{output}");
    }
}

#[test]
fn pictures_stay_and_the_sound_is_replaced() {
    let folder = TempDir::new().unwrap();
    let pictures = "testsrc=size=64x48:rate=10:duration=1";
    let sound = "anoisesrc=sample_rate=16000:duration=1:amplitude=0.1";
    let codecs = ["-c:v", "mpeg4", "-c:a", "aac", "-metadata", "title=A title"];
    let of_pictures = ["-metadata:s:v", "language=fre", "-metadata:s:v", "title=Pictures"];
    let of_sound = ["-metadata:s:a", "language=deu", "-metadata:s:a", "title=A = voice"];
    let inputs = ["-f", "lavfi", "-i", pictures, "-f", "lavfi", "-i", sound];
    let video = [&inputs[..], &codecs, &of_pictures, &of_sound, &["talk.mkv"]].concat();
    if !ffmpeg(folder.path(), &video) {
        return;
    }
    for output in
        ["clean.mkv", "clean.mp4", "voice.mp3", "voice.opus", "voice.ogg", "voice.m4a", "voice.flac"]
    {
        denoise(&folder, &["talk.mkv", output]).assert().success();
        assert_eq!(
            fs::read_dir(folder.path())
                .unwrap()
                .filter(|entry| { entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".part") })
                .count(),
            0
        );
        let made = Reader::open(folder.path().join(output)).unwrap();
        let duration = made.read_all().unwrap().duration();
        // AAC begins with a block of its encoder's and ends with a whole one, 64 ms each, here and in the input.
        assert!((0.9..1.26).contains(&duration), "{output}: {duration} s");
    }
    let hashes = |name: &str| {
        let arguments = ["-loglevel", "error", "-i", name, "-map", "0:v", "-c", "copy", "-f", "hash", "-"];
        let output =
            std::process::Command::new("ffmpeg").args(arguments).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success());
        output.stdout
    };
    assert_eq!(hashes("talk.mkv"), hashes("clean.mkv"), "the pictures are not touched");
    let said = tags(folder.path(), "clean.mkv");
    for (tag, place) in
        [("language=fre", 0), ("title=pictures", 0), ("language=deu", 1), ("title=a = voice", 1)]
    {
        let stream = said.split("[stream]").nth(place + 1).unwrap_or_default();
        assert!(stream.contains(tag), "{tag} of {said}");
    }

    let without = message(denoise(&folder, &["talk.mkv", "none.mp3"]).env("PATH", ""), USAGE);
    assert!(without.contains("ffmpeg") && without.contains("not on the PATH"), "{without}");
    denoise(&folder, &["talk.mkv", "plain.wav"]).env("PATH", "").assert().success();

    // What cannot be held leaves what was there.
    fs::write(folder.path().join("kept.webm"), "before").unwrap();
    let failed = message(&mut denoise(&folder, &["talk.mkv", "kept.webm", "--force"]), OUTPUT);
    assert!(failed.contains("kept.webm") && failed.contains("ffmpeg"), "{failed}");
    assert_eq!(fs::read(folder.path().join("kept.webm")).unwrap(), b"before");
}

/// What ffmpeg shows to be said of a file or its sound.
fn tags(folder: &Path, name: &str) -> String {
    let arguments = ["-v", "error", "-show_entries", "format_tags:stream_tags", "-of", "default", name];
    let output = std::process::Command::new("ffprobe").args(arguments).current_dir(folder).output().unwrap();
    String::from_utf8_lossy(&output.stdout).to_lowercase()
}

#[test]
fn what_is_said_of_a_recording_stays_whoever_writes_it() {
    let folder = TempDir::new().unwrap();
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=48000:duration=0.3:amplitude=0.1"];
    let said = ["title=A title", "artist=Someone", "album=Many", "comment=A comment", "date=2021", "track=3"];
    let said = said.map(|tag| ["-metadata", tag]).concat();
    let inputs = ["in.mp3", "in.m4a", "in.ogg", "in.opus", "in.mka", "in.flac", "in.wav", "in.wma"];
    for input in inputs {
        let language = ["-metadata:s:a:0", "language=deu"];
        if !ffmpeg(folder.path(), &[&sound[..], &said, &language, &[input]].concat()) {
            return;
        }
    }
    let check = |from: &str, output: &str| {
        let tags = tags(folder.path(), output);
        for said in ["=a title", "=someone", "=many", "=a comment", "=2021", "track=3"] {
            assert!(tags.contains(said), "{from} to {output}, {said}: {tags}");
        }
        tags
    };
    // All of one kind and one of all kinds.
    for input in inputs {
        denoise(&folder, &[input, "out.mp3", "--force"]).assert().success();
        check(input, "out.mp3");
    }
    for output in ["out.m4a", "out.ogg", "out.opus", "out.mka", "out.wma", "out.aiff", "out.mkv", "out.mp4"] {
        for input in ["in.ogg", "in.mka"] {
            denoise(&folder, &[input, output, "--force"]).assert().success();
            let tags = check(input, output);
            let has_language = input == "in.mka" && ["out.mka", "out.mkv", "out.mp4"].contains(&output);
            assert!(!has_language || tags.contains("language=deu"), "{output}: {tags}");
        }
    }
    // Of a pipe, only what comes with the sound is known.
    let bytes = fs::read(folder.path().join("in.flac")).unwrap();
    denoise(&folder, &["-", "piped.mp3"]).write_stdin(bytes).assert().success();
    check("a pipe", "piped.mp3");
}

#[test]
fn what_only_ffmpeg_reads_is_read_by_it() {
    let folder = TempDir::new().unwrap();
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=1:amplitude=0.1", "in.wma"];
    if !ffmpeg(folder.path(), &sound) {
        return;
    }
    denoise(&folder, &["in.wma", "out.wav"]).assert().success();
    assert!((alphamf_files::read(folder.path().join("out.wav")).unwrap().duration() - 1.0).abs() < 0.15);
    let without = message(denoise(&folder, &["in.wma", "none.wav"]).env("PATH", ""), INPUT);
    assert!(without.contains("in.wma") && without.contains("ffmpeg"), "{without}");
    fs::write(folder.path().join("text.wma"), "This is not audio. ".repeat(100)).unwrap();
    assert!(message(&mut denoise(&folder, &["text.wma", "none.wav"]), INPUT).contains("not an audio file"));
}
