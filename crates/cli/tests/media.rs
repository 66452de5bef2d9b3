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
    assert!(said.contains("1 non-finite samples"), "{said}");
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
    let noise = "anoisesrc=sample_rate=16000:duration=4:amplitude=0.2:seed=1";
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
    assert_eq!(before.channel_mask(), Some(0xb), "2.1, which is not 3.0");
    for output in ["out.wav", "out.flac"] {
        denoise(&folder, &["in.wav", output]).assert().success();
        let after = Reader::open(folder.path().join(output)).unwrap();
        assert_eq!(after.channel_mask(), Some(0xb));
        assert!(after.metadata().tags().any(|tag| tag == ("TITLE", "A title")));
        let bytes = fs::read(folder.path().join(output)).unwrap();
        assert!(bytes.windows(7).any(|window| window == b"Someone"), "{output}");
    }
}

#[test]
fn pictures_stay_and_the_sound_is_replaced() {
    let folder = TempDir::new().unwrap();
    let pictures = "testsrc=size=64x48:rate=10:duration=1";
    let sound = "anoisesrc=sample_rate=16000:duration=1:amplitude=0.1:seed=1";
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
    assert!(without.contains("ffmpeg") && without.contains("install it"), "{without}");
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
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=48000:duration=0.3:amplitude=0.1:seed=1"];
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

/// The statistics of a run, and what it says.
fn statistics(folder: &TempDir, arguments: &[&str]) -> (serde_json::Value, String) {
    let arguments = [arguments, &["--force", "--stats", "stats.json"]].concat();
    let said = message(&mut denoise(folder, &arguments), 0);
    let stats = fs::read(folder.path().join("stats.json")).unwrap();
    let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
    (stats["files"][0].clone(), said)
}

/// Refused if asked, told otherwise, and counted.
fn is_told(folder: &TempDir, input: &str, keys: &[&str]) {
    let (stats, said) = statistics(folder, &[input, "told.wav"]);
    for key in keys {
        let value = &stats[*key];
        assert!(
            value.as_u64().is_some_and(|count| count > 0) || value.as_bool() == Some(true),
            "{input}, {key}: {stats}"
        );
    }
    assert!(said.contains("; "), "{input}: {said}");
    assert!(alphamf_files::read(folder.path().join("told.wav")).unwrap().len() > 0);
    let said = message(&mut denoise(folder, &[input, "none.wav", "--strict"]), INPUT);
    assert!(said.contains(input) && said.contains("--strict"), "{said}");
    assert!(!folder.path().join("none.wav").exists());
    let (salvaged, _) = statistics(folder, &[input, "salvaged.wav", "--salvage"]);
    assert!(salvaged["samples"].as_u64() >= stats["samples"].as_u64(), "{input}");
}

#[test]
fn what_is_missing_is_told_whoever_decodes() {
    let folder = TempDir::new().unwrap();
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=4:amplitude=0.1:seed=3"];
    let by_ffmpeg: [(&str, &[&str]); 5] = [
        ("a.tta", &[]),
        ("a.wma", &[]),
        ("a.wv", &["-frame_size", "4096"]),
        ("a.spx", &["-c:a", "libspeex"]),
        ("a.ac3", &[]),
    ];
    let here: [(&str, &[&str]); 6] = [
        ("a.caf", &["-c:a", "pcm_s16le"]),
        ("a.aiff", &[]),
        ("a.webm", &["-c:a", "libopus"]),
        ("a.mka", &[]),
        ("a.mkv", &[]),
        ("a.flac", &[]),
    ];
    for (name, options) in by_ffmpeg.into_iter().chain(here) {
        if !ffmpeg(folder.path(), &[&sound[..], options, &[name]].concat()) {
            return;
        }
        denoise(&folder, &[name, "whole.wav", "--strict", "--force"]).assert().success();
        let whole = fs::read(folder.path().join(name)).unwrap();
        let cut = format!("cut-{name}");
        // Within a packet.
        fs::write(folder.path().join(&cut), &whole[..whole.len() * 5 / 8 + 1]).unwrap();
        match name {
            // Those have refused a file that is cut off from the first, and salvage it.
            "a.flac" => {
                assert!(message(&mut denoise(&folder, &[&cut, "none.wav"]), INPUT).contains("truncated"));
            }
            // Whose last packet is whole looks whole: it does not say how long it is.
            "a.spx" => {}
            "a.caf" | "a.aiff" => is_told(&folder, &cut, &["ends_early", "missing_samples"]),
            "a.tta" | "a.wv" => is_told(&folder, &cut, &["missing_samples"]),
            "a.wma" | "a.ac3" => is_told(&folder, &cut, &["damaged_packets"]),
            _ => is_told(&folder, &cut, &["ends_early"]),
        }
    }
    // Also without ffmpeg.
    for name in ["cut-a.aiff", "cut-a.webm", "cut-a.caf", "cut-a.mkv"] {
        let mut command = denoise(&folder, &[name, "out.wav", "--force"]);
        let said = message(command.env("PATH", ""), 0);
        assert!(said.contains("unexpected end of file"), "{name}: {said}");
        denoise(&folder, &[name, "out.wav", "--force", "--salvage"]).env("PATH", "").assert().success();
        assert!(
            message(denoise(&folder, &[name, "none.wav", "--strict"]).env("PATH", ""), INPUT)
                .contains("--strict")
        );
    }
    // As streams, too.
    for name in ["cut-a.aiff", "cut-a.webm", "cut-a.caf"] {
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let mut command = denoise(&folder, &["-", "none.wav", "--strict"]);
        let said = message(command.write_stdin(bytes), INPUT);
        assert!(said.contains("--strict"), "{name}: {said}");
    }
    // Damage in the middle. By the seed, some of it reaches the decoder of WMA: else the packets are only missing.
    for name in ["a.tta", "a.wma", "a.ac3"] {
        let mut bytes = fs::read(folder.path().join(name)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 600].fill(0x55);
        let damaged = format!("damaged-{name}");
        fs::write(folder.path().join(&damaged), bytes).unwrap();
        is_told(&folder, &damaged, &["damaged_packets"]);
    }
}

#[test]
fn a_recorder_that_died_leaves_more_than_its_header_says() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("in.wav");
    alphamf_files::write(&path, &noisy().with_format(SampleFormat::Int16)).unwrap();
    denoise(&folder, &["in.wav", "whole.wav", "--strict"]).assert().success();
    let mut bytes = fs::read(&path).unwrap();
    let start = bytes.len() - 32_000;
    bytes[start - 4..start].copy_from_slice(&16_000_u32.to_le_bytes());
    bytes[4..8].copy_from_slice(&(start as u32 + 15_992).to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    is_told(&folder, "in.wav", &["data_follow"]);
    let samples = |name: &str| alphamf_files::read(folder.path().join(name)).unwrap().len();
    assert_eq!((samples("told.wav"), samples("salvaged.wav")), (8_000, 16_000));
    let mut piped = denoise(&folder, &["-", "none.wav", "--strict"]);
    assert!(message(piped.write_stdin(bytes), INPUT).contains("more data follow"));
}

#[test]
fn a_chain_of_mp3s_of_other_rates_is_told() {
    let folder = TempDir::new().unwrap();
    let sound = |rate: u32, name: &str| {
        let noise = format!("anoisesrc=sample_rate={rate}:duration=2:amplitude=0.1:seed=1");
        ffmpeg(folder.path(), &["-f", "lavfi", "-i", &noise, "-write_xing", "0", name])
    };
    if !sound(16_000, "a.mp3") || !sound(44_100, "b.mp3") {
        return;
    }
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    fs::write(folder.path().join("ab.mp3"), [read("a.mp3"), read("b.mp3")].concat()).unwrap();
    fs::write(folder.path().join("ba.mp3"), [read("b.mp3"), read("a.mp3")].concat()).unwrap();
    for name in ["ab.mp3", "ba.mp3"] {
        is_told(&folder, name, &["other_recording_follows"]);
        let duration = alphamf_files::read(folder.path().join("told.wav")).unwrap().duration();
        assert!((duration - 2.0).abs() < 0.2, "{name}: {duration} s");
    }
    fs::write(folder.path().join("aa.mp3"), [read("a.mp3"), read("a.mp3")].concat()).unwrap();
    denoise(&folder, &["aa.mp3", "whole.wav", "--strict", "--force"]).assert().success();
}

#[test]
fn names_that_begin_with_a_dash_are_names() {
    let folder = TempDir::new().unwrap();
    alphamf_files::write(folder.path().join("-in.wav"), &noisy()).unwrap();
    if !ffmpeg(folder.path(), &["-i", "./-in.wav", "./-in.wma"]) {
        return;
    }
    for (input, output) in
        [("-in.wav", "-y.mp3"), ("-in.wma", "-y.mkv"), ("-y.mkv", "-i.mkv"), ("-in.wma", "-n.wav")]
    {
        denoise(&folder, &["--", input, output]).assert().success();
        let duration = alphamf_files::read(folder.path().join(output)).unwrap().duration();
        assert!((0.9..1.3).contains(&duration), "{input} to {output}: {duration} s");
    }
}

#[test]
#[cfg(unix)]
fn what_is_only_called_ffmpeg_is_passed_over() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().unwrap();
    let sound =
        ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=1:amplitude=0.1:seed=1", "in.wma"];
    if !ffmpeg(folder.path(), &sound) {
        return;
    }
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path("folder/ffmpeg")).unwrap();
    for (place, content, mode) in [
        ("text", "not a program", 0o755),
        ("script", "#!/bin/sh\nexit 0\n", 0o755),
        ("plain", "#!/bin/sh\n", 0o644),
    ] {
        fs::create_dir(path(place)).unwrap();
        fs::write(path(place).join("ffmpeg"), content).unwrap();
        fs::set_permissions(path(place).join("ffmpeg"), fs::Permissions::from_mode(mode)).unwrap();
    }
    let impostors = ["folder", "text", "script", "plain"].map(path);
    let system = std::env::var_os("PATH").unwrap();
    let all = impostors.iter().cloned().chain(std::env::split_paths(&system));
    let search = std::env::join_paths(all).unwrap();
    for output in ["out.wav", "out.mp3"] {
        denoise(&folder, &["in.wma", output]).env("PATH", &search).assert().success();
    }
    let search = std::env::join_paths(&impostors).unwrap();
    let said = message(denoise(&folder, &["in.wma", "none.wav"]).env("PATH", &search), INPUT);
    assert!(said.contains("ffmpeg") && said.contains("not on the PATH"), "{said}");
}

/// A disk of so few kilobytes that no output fits on it: nothing is lost, nothing stays, and it is an error.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_whoever_encodes() {
    let folder = TempDir::new().unwrap();
    let sound =
        ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=4:amplitude=0.1:seed=1", "in.wav"];
    if !ffmpeg(folder.path(), &sound) {
        return;
    }
    let isolated = |script: &str| {
        let mut command = std::process::Command::new("unshare");
        command.args(["-rm", "sh", "-c", script]).arg(assert_cmd::cargo::cargo_bin!("denoise"));
        command.current_dir(folder.path()).output()
    };
    fs::create_dir(folder.path().join("disk")).unwrap();
    let mount = "mount -t tmpfs -o size=8k none disk";
    if !isolated(mount).is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no file system can be mounted here, so that a full disk was not tested");
        return;
    }
    for output in ["out.mp3", "out.m4a", "out.ogg", "out.opus", "out.mkv", "out.wav"] {
        let script = format!(
            "{mount} && echo before > disk/{output} && \"$0\" in.wav disk/{output} --force -q --quality fast; \
             echo \"code $?\"; ls -A disk; cat disk/{output}"
        );
        let found = isolated(&script).unwrap();
        let said = String::from_utf8_lossy(&found.stdout);
        assert_eq!(
            said,
            format!("code {OUTPUT}\n{output}\nbefore\n"),
            "{}",
            String::from_utf8_lossy(&found.stderr)
        );
    }
}

#[test]
fn tracks_covers_and_channels_are_kept_or_told() {
    let folder = TempDir::new().unwrap();
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=1:amplitude=0.1:seed=1"];
    let two = ["-map", "0", "-map", "0", "-c:a", "aac", "two.mka"];
    if !ffmpeg(folder.path(), &[&sound[..], &two].concat()) {
        return;
    }
    let cover = ["-f", "lavfi", "-i", "color=size=16x16:duration=0.1", "-frames:v", "1", "cover.png"];
    assert!(ffmpeg(folder.path(), &[&sound[..], &["plain.wav"]].concat()) && ffmpeg(folder.path(), &cover));
    let codecs = [("cover.mp3", "libmp3lame"), ("cover.m4a", "aac"), ("cover.flac", "flac")];
    for (name, codec) in codecs {
        let joined = ["-i", "plain.wav", "-i", "cover.png", "-map", "0", "-map", "1", "-c:v", "copy"];
        let kept = ["-disposition:v", "attached_pic", "-c:a", codec, name];
        assert!(ffmpeg(folder.path(), &[&joined[..], &kept].concat()));
    }
    let streams = |name: &str| {
        let arguments = ["-v", "error", "-show_entries", "stream=codec_type", "-of", "csv=p=0", name];
        let output =
            std::process::Command::new("ffprobe").args(arguments).current_dir(folder.path()).output();
        String::from_utf8(output.unwrap().stdout).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for (input, _) in codecs {
        for output in ["out.mp3", "out.m4a", "out.flac"] {
            let (stats, _) = statistics(&folder, &[input, output]);
            assert_eq!(streams(output), ["audio", "video"], "{input} to {output}");
            assert!(stats["left_out"].is_null(), "{stats}");
        }
        for output in ["out.wav", "out.ogg"] {
            let (stats, said) = statistics(&folder, &[input, output]);
            assert!(said.contains("1 cover pictures left out"), "{input} to {output}: {said}");
            assert_eq!(stats["left_out"][0], "1 cover pictures left out");
        }
    }
    for output in ["out.wav", "out.mka", "out.mkv"] {
        let (_, said) = statistics(&folder, &["two.mka", output]);
        assert!(said.contains("1 further audio tracks left out"), "{output}: {said}");
    }
    let six = ["-af", "pan=5.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0", "six.wav"];
    assert!(ffmpeg(folder.path(), &[&sound[..], &six].concat()));
    for output in ["out.mp3", "out.wma"] {
        let (_, said) = statistics(&folder, &["six.wav", output]);
        assert!(said.contains("6 channels are mixed to 2"), "{output}: {said}");
    }
}

#[test]
fn tags_without_a_place_in_wav_come_back() {
    let folder = TempDir::new().unwrap();
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=0.3:amplitude=0.1:seed=1"];
    let names = ["title", "artist", "composer", "album_artist", "track", "language", "mood"];
    let said: Vec<String> = names.iter().map(|name| format!("{name}=my {name}")).collect();
    let said: Vec<&str> = said.iter().flat_map(|tag| ["-metadata", tag]).collect();
    for input in ["in.flac", "in.mp3", "in.caf", "in.wav"] {
        if !ffmpeg(folder.path(), &[&sound[..], &said, &[input]].concat()) {
            return;
        }
        for (from, to) in [(input, "there.wav"), ("there.wav", "back.flac"), ("back.flac", "again.wav")] {
            denoise(&folder, &[from, to, "--force"]).assert().success();
            let reader = Reader::open(folder.path().join(to)).unwrap();
            let tags: Vec<_> = reader.metadata().tags().collect();
            // What the list of a WAV file by ffmpeg holds.
            let kept = if input == "in.wav" {
                &["TITLE", "ARTIST", "TRACKNUMBER", "LANGUAGE"][..]
            } else {
                &["TITLE", "ARTIST", "COMPOSER", "TRACKNUMBER", "LANGUAGE", "MOOD"]
            };
            for name in kept {
                let value = format!("my {}", name.to_lowercase().replace("tracknumber", "track"));
                assert!(
                    tags.contains(&(*name, value.as_str())),
                    "{input}, {from} to {to}: {name} of {tags:?}"
                );
            }
        }
    }
}

/// Playlists that name the recording beside them, under the names of recordings and films.
#[test]
fn a_playlist_opens_no_other_file() {
    let folder = TempDir::new().unwrap();
    let secret = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=1:amplitude=0.1:seed=1"];
    if !ffmpeg(folder.path(), &[&secret[..], &["secret.wav"]].concat())
        || !ffmpeg(folder.path(), &[&secret[..], &["secret.ts"]].concat())
    {
        return;
    }
    let manifest = "<MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" profiles=\"urn:mpeg:dash:profile:isoff-live:2011\" \
         type=\"static\" mediaPresentationDuration=\"PT1S\"><Period><AdaptationSet mimeType=\"audio/mp4\"><Representation \
         id=\"1\" bandwidth=\"1\"><BaseURL>secret.wav</BaseURL></Representation></AdaptationSet></Period></MPD>";
    let lists = [
        ("HLS", "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nsecret.ts\n#EXT-X-ENDLIST\n".to_owned()),
        ("concat", "ffconcat version 1.0\nfile secret.wav\n".to_owned()),
        ("DASH", manifest.to_owned()),
        ("DASH", format!("<?xml version=\"1.0\"?>\n{manifest}")),
    ];
    fs::create_dir(folder.path().join("in")).unwrap();
    fs::create_dir(folder.path().join("clean")).unwrap();
    fs::copy(folder.path().join("secret.wav"), folder.path().join("clean/talk.wav")).unwrap();
    for (kind, list) in &lists {
        for (input, output) in [
            ("talk.wav", "out.wav"),
            ("talk.mkv", "out.wav"),
            ("talk.mp4", "out.mp4"),
            ("talk.mp3", "out.mp3"),
        ] {
            fs::write(folder.path().join(input), list).unwrap();
            let said = message(&mut denoise(&folder, &[input, output]), INPUT);
            assert!(said.contains(input) && said.lines().count() == 1, "{kind}: {said}");
            assert!(
                output != "out.wav" || said.contains("playlist") && said.contains(kind),
                "{kind}: {said}"
            );
            assert!(!folder.path().join(output).exists(), "{kind} by {input}");
        }
        fs::write(folder.path().join("in/talk.wav"), list).unwrap();
        let said = message(&mut denoise(&folder, &["in", "-o", "results"]), INPUT);
        assert!(said.contains("talk.wav") && said.contains("playlist"), "{said}");
        let mut eval = Command::new(assert_cmd::cargo::cargo_bin!("denoise"));
        eval.current_dir(folder.path()).args(["eval", "--clean", "clean", "--noisy", "in"]);
        assert!(message(&mut eval, INPUT).contains("playlist"));
    }
    // A film as a list, but with a recording of its own before it: its first bytes decide.
    let image = ["-f", "lavfi", "-i", "color=size=16x16:duration=0.1", "-frames:v", "1", "image.png"];
    assert!(ffmpeg(folder.path(), &image));
    fs::rename(folder.path().join("image.png"), folder.path().join("image.mp4")).unwrap();
    let said = message(&mut denoise(&folder, &["image.mp4", "none.wav"]), INPUT);
    assert!(said.contains("an image (PNG)"), "{said}");
}

#[test]
fn what_only_ffmpeg_reads_is_read_by_it() {
    let folder = TempDir::new().unwrap();
    let sound =
        ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=1:amplitude=0.1:seed=1", "in.wma"];
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
