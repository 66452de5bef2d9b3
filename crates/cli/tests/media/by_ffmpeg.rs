//! Videos and formats that only ffmpeg reads and writes.

use crate::{INPUT, OUTPUT, USAGE, denoise, encoded, ffmpeg, message, noisy, tags};
use alphamf::signal::{SampleFormat, Signal};
use alphamf_files::Reader;
use assert_cmd::Command;
use rand::RngExt;
use std::fs;
#[cfg(target_os = "linux")]
use std::{
    io::{self, Write},
    path::Path,
    process::Output,
};
use tempfile::TempDir;

#[test]
fn video_is_copied_and_its_audio_replaced() {
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
        // The AAC encoder prepends one block and fills the last, 64 ms each, both in the input and in the output.
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
    let found = tags(folder.path(), "clean.mkv");
    for (tag, place) in
        [("language=fre", 0), ("title=pictures", 0), ("language=deu", 1), ("title=a = voice", 1)]
    {
        let stream = found.split("[stream]").nth(place + 1).unwrap_or_default();
        assert!(stream.contains(tag), "{tag} of {found}");
    }

    let without = message(denoise(&folder, &["talk.mkv", "none.mp3"]).env("PATH", ""), USAGE);
    assert!(without.contains("ffmpeg") && without.contains("install it"), "{without}");
    denoise(&folder, &["talk.mkv", "plain.wav"]).env("PATH", "").assert().success();

    let film = fs::read(folder.path().join("talk.mkv")).unwrap();
    let stderr = message(denoise(&folder, &["-", "piped.mp4"]).write_stdin(film), 0);
    assert!(stderr.contains("sound alone"), "{stderr}");

    // An output whose container does not support the video leaves the existing file unchanged.
    fs::write(folder.path().join("kept.webm"), "before").unwrap();
    let failed = message(&mut denoise(&folder, &["talk.mkv", "kept.webm", "--force"]), OUTPUT);
    assert!(failed.contains("kept.webm") && failed.contains("ffmpeg"), "{failed}");
    assert_eq!(fs::read(folder.path().join("kept.webm")).unwrap(), b"before");
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
fn other_files_called_ffmpeg_are_skipped() {
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
    let stderr = message(denoise(&folder, &["in.wma", "none.wav"]).env("PATH", &search), INPUT);
    assert!(stderr.contains("ffmpeg") && stderr.contains("not on the PATH"), "{stderr}");
}

/// On a disk too small for any output, the run fails, keeps the existing file and leaves no partial file.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_of_every_encoder() {
    let folder = TempDir::new().unwrap();
    let sound =
        ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=2:amplitude=0.1:seed=1", "in.wav"];
    if !ffmpeg(folder.path(), &sound) {
        return;
    }
    fs::create_dir(folder.path().join("disk")).unwrap();
    let mount = "mount -t tmpfs -o size=8k none disk";
    if !can_mount(folder.path(), mount) {
        return;
    }
    for output in ["out.mp3", "out.m4a", "out.ogg", "out.opus", "out.mkv", "out.wav"] {
        let script = format!(
            "{mount} && echo before > disk/{output} && \"$0\" in.wav disk/{output} --force -q --quality fast; \
             echo \"code $?\"; ls -A disk; cat disk/{output}"
        );
        let found = isolated(folder.path(), &script).unwrap();
        let stdout = String::from_utf8_lossy(&found.stdout);
        assert_eq!(
            stdout,
            format!("code {OUTPUT}\n{output}\nbefore\n"),
            "{}",
            String::from_utf8_lossy(&found.stdout)
        );
    }
}

/// Runs a shell script in its own mount namespace; `$0` is the program.
#[cfg(target_os = "linux")]
fn isolated(folder: &Path, script: &str) -> io::Result<Output> {
    let mut command = std::process::Command::new("unshare");
    command.args(["-rm", "sh", "-c", script]).arg(assert_cmd::cargo::cargo_bin!("denoise"));
    command.current_dir(folder).output()
}

/// Whether [`isolated`] can mount a file system; otherwise reports that the test is skipped.
#[cfg(target_os = "linux")]
fn can_mount(folder: &Path, mount: &str) -> bool {
    let can = isolated(folder, mount).is_ok_and(|output| output.status.success());
    if !can {
        std::io::stderr()
            .write_all(b"SKIPPED: no file system can be mounted here to test full and read-only disks\n")
            .unwrap();
    }
    can
}

/// A read-only disk is reported before processing, which may take an hour.
#[test]
#[cfg(target_os = "linux")]
fn reports_to_a_disk_that_is_read_only_are_refused_before_any_work() {
    let folder = TempDir::new().unwrap();
    let mount = "mount -t tmpfs -o ro none disk";
    fs::create_dir(folder.path().join("disk")).unwrap();
    if !can_mount(folder.path(), mount) {
        return;
    }
    // Reading this input would fail with another error: reports are checked before it is opened.
    fs::write(folder.path().join("in.wav"), "Not a recording.").unwrap();
    for report in ["--stats disk/s.json", "--levels disk/l.csv", "--plot disk/p.svg", "--residual disk/r.wav"]
    {
        let found = isolated(folder.path(), &format!("{mount} && \"$0\" in.wav out.wav {report}")).unwrap();
        let stderr = String::from_utf8_lossy(&found.stderr);
        assert_eq!(found.status.code(), Some(OUTPUT), "{stderr}");
        assert!(stderr.contains("cannot be written: Read-only file system"), "{stderr}");
    }
    let save = format!("{mount} && \"$0\" eval --clean . --noisy . --save disk/out");
    let found = isolated(folder.path(), &save).unwrap();
    let stderr = String::from_utf8_lossy(&found.stderr);
    assert!(stderr.contains("disk/out: cannot be written: Read-only file system"), "{stderr}");
    let written = isolated(folder.path(), &format!("{mount} && \"$0\" in.wav /dev/null")).unwrap();
    assert_eq!(written.status.code(), Some(INPUT), "a device is no file of its folder");
}

#[test]
fn encoders_of_ffmpeg_choose_their_own_sample_format() {
    let folder = TempDir::new().unwrap();
    let stderr = message(&mut denoise(&folder, &["in.wav", "out.m4a", "--format", "s24"]), USAGE);
    assert!(stderr.contains("out.m4a") && stderr.contains("--format"), "{stderr}");
}

/// AIFF output has the samples of WAV output. By default, ffmpeg would round all of them to 16 bits.
#[test]
fn aiff_has_the_samples_of_the_output() {
    let folder = TempDir::new().unwrap();
    let sound =
        ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=0.5:amplitude=0.1:seed=1", "-ac", "2"];
    for format in ["u8", "s16le", "s24le", "s32le", "f32le", "f64le"] {
        let (input, wav, aiff) =
            (format!("{format}.wav"), format!("{format}-out.wav"), format!("{format}.aiff"));
        let encoder = format!("pcm_{format}");
        if !ffmpeg(folder.path(), &[&sound[..], &["-c:a", &encoder, &input]].concat()) {
            return;
        }
        let read = |output: &str| {
            denoise(&folder, &[&input, output]).assert().success();
            let made = Reader::open(folder.path().join(output)).unwrap();
            (made.format(), made.read_all().unwrap())
        };
        let (expected, found) = (read(&wav), read(&aiff));
        // 64-bit floats in AIFF are read as 32-bit floats.
        assert!(found.0 == expected.0 || format == "f64le", "{format}: {:?}", found.0);
        assert!(found.1.channels() == expected.1.channels(), "{format}");
    }
}

/// The output has the bit depth of the input, although ffmpeg decodes to floats, and 16 bits for lossy codecs.
#[test]
fn files_read_by_ffmpeg_keep_their_bit_depth() {
    use SampleFormat::{Float32, Int8, Int16, Int24};
    let folder = TempDir::new().unwrap();
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=0.5:amplitude=0.1:seed=1"];
    let files: [(&str, &[&str], SampleFormat); 5] = [
        ("u8.mkv", &["-c:a", "pcm_u8", "-sample_fmt", "u8"], Int8),
        ("s24.mov", &["-c:a", "pcm_s24be", "-sample_fmt", "s32"], Int24),
        ("f32.mov", &["-c:a", "pcm_f32be", "-sample_fmt", "flt"], Float32),
        ("s16.wv", &["-c:a", "wavpack", "-sample_fmt", "s16p"], Int16),
        ("lossy.wma", &["-c:a", "wmav2", "-sample_fmt", "fltp"], Int16),
    ];
    if !encoded(&folder, &sound, &files.map(|(name, options, _)| (name, options))) {
        return;
    }
    for (input, _, format) in files {
        denoise(&folder, &[input, "out.wav", "--force"]).assert().success();
        assert_eq!(Reader::open(folder.path().join("out.wav")).unwrap().format(), format, "{input}");
    }
}

/// Playlists that refer to a recording beside them, with the file extensions of recordings and films.
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
            let stderr = message(&mut denoise(&folder, &[input, output]), INPUT);
            assert!(stderr.contains(input) && stderr.lines().count() == 1, "{kind}: {stderr}");
            assert!(
                output != "out.wav" || stderr.contains("playlist") && stderr.contains(kind),
                "{kind}: {stderr}"
            );
            assert!(!folder.path().join(output).exists(), "{kind} by {input}");
        }
        fs::write(folder.path().join("in/talk.wav"), list).unwrap();
        let stderr = message(&mut denoise(&folder, &["in", "-o", "results"]), INPUT);
        assert!(stderr.contains("talk.wav") && stderr.contains("playlist"), "{stderr}");
        let mut eval = Command::new(assert_cmd::cargo::cargo_bin!("denoise"));
        eval.current_dir(folder.path()).args(["eval", "--clean", "clean", "--noisy", "in"]);
        assert!(message(&mut eval, INPUT).contains("playlist"));
    }
    // The first bytes decide the format: an image is refused under the name of a film, too.
    let image = ["-f", "lavfi", "-i", "color=size=16x16:duration=0.1", "-frames:v", "1", "image.png"];
    assert!(ffmpeg(folder.path(), &image));
    fs::rename(folder.path().join("image.png"), folder.path().join("image.mp4")).unwrap();
    let stderr = message(&mut denoise(&folder, &["image.mp4", "none.wav"]), INPUT);
    assert!(stderr.contains("an image (PNG)"), "{stderr}");
}

#[test]
fn formats_of_ffmpeg_alone_are_read_by_it() {
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

/// Containers of camcorders, broadcasters and screen recorders. Their video data may resemble MPEG audio headers.
#[test]
fn the_audio_of_any_container_is_read_and_not_its_video() {
    let folder = TempDir::new().unwrap();
    let pictures = ["-f", "lavfi", "-i", "mandelbrot=size=320x240:rate=25"];
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=48000:duration=1:amplitude=0.1:seed=1"];
    let files: [(&str, &[&str]); 8] = [
        ("a.ts", &["-c:v", "mpeg2video", "-c:a", "ac3"]),
        ("a.m2ts", &["-c:v", "mpeg2video", "-c:a", "ac3", "-mpegts_m2ts_mode", "1"]),
        ("a.mpg", &["-c:v", "mpeg2video", "-c:a", "mp2", "-f", "vob"]),
        ("a.avi", &["-c:v", "mpeg4", "-c:a", "ac3"]),
        ("a.wmv", &["-c:v", "wmv2", "-c:a", "wmav2"]),
        ("a.flv", &["-c:v", "flv", "-c:a", "pcm_s16le", "-ar", "44100"]),
        ("a.mxf", &["-c:v", "mpeg2video", "-c:a", "pcm_s16le"]),
        ("a.nut", &["-c:v", "mpeg4", "-c:a", "ac3"]),
    ];
    let options = files.map(|(_, options)| [options, &["-b:v", "6M", "-t", "1"]].concat());
    let outputs: Vec<(&str, &[&str])> =
        files.iter().zip(&options).map(|((name, _), options)| (*name, &options[..])).collect();
    if !encoded(&folder, &[&pictures[..], &sound].concat(), &outputs) {
        return;
    }
    for (name, _) in files {
        denoise(&folder, &[name, "out.wav", "--force"]).assert().success();
        let duration = alphamf_files::read(folder.path().join("out.wav")).unwrap().duration();
        assert!((0.7..1.2).contains(&duration), "{name}: {duration} s");
        let film = fs::read(folder.path().join(name)).unwrap();
        let stderr = message(denoise(&folder, &["-", "none.wav"]).write_stdin(film), INPUT);
        assert!(stderr.contains("unsupported encoding"), "{name}: {stderr}");
        assert!(stderr.contains("ffmpeg is not used for pipes: name the file"), "{name}: {stderr}");
        let stderr = message(denoise(&folder, &[name, "none.wav"]).env("PATH", ""), INPUT);
        assert!(stderr.contains("not on the PATH"), "{name}: {stderr}");
    }
}

/// A start of ffmpeg takes 0.05 s, and more memory than denoising at 8 kHz.
#[test]
#[cfg(unix)]
fn ffmpeg_is_started_only_as_often_as_needed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    alphamf_files::write(path("in.wav"), &noisy()).unwrap();
    fs::create_dir(path("bin")).unwrap();
    let script = |rest: &str| {
        fs::write(path("bin/ffmpeg"), format!("#!/bin/sh\necho >> '{}'\n{rest}", path("started").display()))
            .unwrap();
        fs::set_permissions(path("bin/ffmpeg"), fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("");
    for output in ["out.wav", "out.flac"] {
        denoise(&folder, &["in.wav", output]).env("PATH", path("bin")).assert().success();
        assert!(!path("started").exists(), "{output}");
    }
    denoise(&folder, &["in.wav", "out.mp3"]).env("PATH", path("bin")).assert().code(USAGE);
    fs::remove_file(path("started")).unwrap();
    if !ffmpeg(folder.path(), &["-i", "in.wav", "in.mp3"]) {
        return;
    }
    script(&format!("PATH='{}' exec ffmpeg \"$@\"\n", std::env::var("PATH").unwrap()));
    denoise(&folder, &["in.wav", "out.mp3"]).env("PATH", path("bin")).assert().success();
    // For its version, for the metadata and other tracks of the input, and to encode.
    assert_eq!(fs::read(path("started")).unwrap().len(), 3);
}

/// Delay of `after` relative to `before` by cross-correlation, -1,500 to 1,500 samples.
fn delay(before: &[f32], after: &[f32]) -> isize {
    let product = |lag: isize| -> f32 {
        let later = |n: usize| after.get(n.saturating_add_signed(lag)).copied().unwrap_or(0.0);
        (4_000..8_000).map(|n| before[n] * later(n)).sum()
    };
    (-1_500..=1_500).max_by(|&a, &b| product(a).total_cmp(&product(b))).unwrap()
}

#[test]
fn the_sound_is_at_its_time_in_every_container_that_can_say_so() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    for rate in [16_000, 22_050, 48_000] {
        let mut random = alphamf::random::SeedTree::new(1).rng(0);
        let hiss = (0..rate).map(|_| random.random_range(-0.3..0.3_f32)).collect();
        let noise = Signal::new(rate, SampleFormat::Int16, vec![hiss]).unwrap();
        alphamf_files::write(path("in.wav"), &noise).unwrap();
        for extension in ["mp3", "m4a", "ogg", "mka", "wma", "avi"] {
            let output = format!("out.{extension}");
            let decode = ["-i", &output, "-c:a", "pcm_f32le", "out.wav"];
            let written = denoise(&folder, &["in.wav", &output, "--mix", "0", "--force"]).output().unwrap();
            if !ffmpeg(folder.path(), &decode) {
                return;
            }
            assert!(written.status.success());
            let decoded = alphamf_files::read(path("out.wav")).unwrap();
            let late = delay(&noise.channels()[0], &decoded.channels()[0]);
            assert_eq!(late, 0, "{extension}, {rate} Hz");
        }
    }
}
