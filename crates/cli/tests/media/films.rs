//! Films: their subtitles, fonts and further audio tracks are kept or reported.

use crate::{INPUT, OUTPUT, denoise, ffmpeg, message, probed, statistics};
use std::fs;
use tempfile::TempDir;

const PICTURES: [&str; 4] = ["-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=1"];
const SOUND: [&str; 4] = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=1:amplitude=0.1:seed=1"];

/// Writes a film with subtitles in the container of `name`; false if ffmpeg is not installed.
fn film(folder: &TempDir, name: &str, codecs: &[&str]) -> bool {
    let path = |name: &str| folder.path().join(name);
    fs::write(path("in.srt"), "1\n00:00:00,200 --> 00:00:00,800\nA line\n").unwrap();
    ffmpeg(folder.path(), &[&PICTURES[..], &SOUND, &["-i", "in.srt"], codecs, &[name]].concat())
}

#[test]
fn subtitles_of_a_film_are_kept_in_every_container_that_holds_them() {
    let folder = TempDir::new().unwrap();
    let inputs: [(&str, &[&str]); 4] = [
        ("in.mp4", &["-c:v", "mpeg4", "-c:a", "aac", "-c:s", "mov_text"]),
        ("srt.mkv", &["-c:v", "libvpx", "-c:a", "libopus", "-c:s", "srt"]),
        ("ass.mkv", &["-c:v", "mpeg4", "-c:a", "aac", "-c:s", "ass"]),
        ("in.webm", &["-c:v", "libvpx", "-c:a", "libopus", "-c:s", "webvtt"]),
    ];
    for (input, codecs) in inputs {
        if !film(&folder, input, codecs) {
            return;
        }
        // WebM does not hold MPEG-4 video. MP4 is not tested with VP8.
        let has_vp8 = ["srt.mkv", "in.webm"].contains(&input);
        let outputs: &[(&str, &str)] = if has_vp8 {
            &[("out.webm", "webvtt"), ("out.mkv", "")]
        } else {
            &[("out.mp4", "mov_text"), ("out.mov", "mov_text"), ("out.mkv", "")]
        };
        for (output, codec) in outputs {
            let (stats, stderr) = statistics(&folder, &[input, output]);
            assert!(stats["left_out"].is_null() && !stderr.contains("left out"), "{input}: {stderr}");
            let found = probed(folder.path(), output, "stream=codec_name,codec_type");
            let is_kept = |line: &String| line.ends_with(",subtitle") && line.starts_with(codec);
            assert_eq!(found.iter().filter(|line| is_kept(line)).count(), 1, "{input}, {output}: {found:?}");
            let text = ["-i", output, "-map", "0:s", "text.srt"];
            assert!(ffmpeg(folder.path(), &text));
            assert!(fs::read_to_string(folder.path().join("text.srt")).unwrap().contains("A line"));
        }
        if !has_vp8 {
            let (stats, stderr) = statistics(&folder, &[input, "out.avi"]);
            assert!(stderr.contains("1 subtitle track left out"), "{stderr}");
            assert_eq!(stats["left_out"][0], "1 subtitle track left out");
            let stderr = message(&mut denoise(&folder, &[input, "none.webm"]), OUTPUT);
            assert!(stderr.contains("Only VP8 or VP9"), "{stderr}");
        }
    }
}

#[test]
fn fonts_of_a_film_are_kept_or_reported() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a.ttf"), "a font").unwrap();
    let font = ["-c:v", "libvpx", "-c:a", "libopus", "-attach", "a.ttf"];
    let named = ["-metadata:s:t", "mimetype=application/x-truetype-font"];
    if !film(&folder, "in.mkv", &[&font[..], &named].concat()) {
        return;
    }
    let (stats, stderr) = statistics(&folder, &["in.mkv", "out.mkv"]);
    assert!(stats["left_out"].is_null(), "{stderr}");
    let found = probed(folder.path(), "out.mkv", "stream=codec_type:stream_tags=filename,mimetype");
    assert!(found.iter().any(|line| line.starts_with("attachment") && line.contains("a.ttf")), "{found:?}");
    let (_, stderr) = statistics(&folder, &["in.mkv", "out.webm"]);
    assert!(stderr.contains("1 attached file left out"), "{stderr}");
}

/// Matroska and MP4 hold H.264 in one form, but AVI accepts it unchanged only with the tag of MP4.
#[test]
fn h264_is_copied_into_every_container_that_holds_it() {
    let folder = TempDir::new().unwrap();
    let inputs = ["in.mkv", "in.mp4", "in.ts"];
    if !ffmpeg(
        folder.path(),
        &[&PICTURES[..], &SOUND, &["-c:v", "libx264", "-c:a", "aac", inputs[0]]].concat(),
    ) {
        return;
    }
    for input in &inputs[1..] {
        assert!(ffmpeg(folder.path(), &["-i", inputs[0], "-c", "copy", input]));
    }
    for input in inputs {
        for output in ["out.avi", "out.mkv", "out.mp4", "out.mov"] {
            let (_, stderr) = statistics(&folder, &[input, output]);
            let found = probed(folder.path(), output, "stream=codec_name,codec_type");
            assert!(found.contains(&"h264,video".to_owned()), "{input}, {output}: {found:?}");
            let decode = [
                "-xerror", "-i", output, "-an", "-vsync", "0", "-pix_fmt", "gray", "-f", "rawvideo", "frames",
            ];
            assert!(ffmpeg(folder.path(), &decode), "{input}, {output}: {stderr}");
            let bytes = fs::metadata(folder.path().join("frames")).unwrap().len();
            assert_eq!(bytes, 10 * 64 * 48, "{input}, {output}");
        }
    }
}

#[test]
fn a_film_without_sound_is_refused_with_the_reason() {
    let folder = TempDir::new().unwrap();
    for name in ["in.mkv", "in.avi", "in.ts"] {
        if !ffmpeg(folder.path(), &[&PICTURES[..], &["-c:v", "mpeg4", name]].concat()) {
            return;
        }
        for output in ["none.wav", "none.mkv"] {
            let stderr = message(&mut denoise(&folder, &[name, output]), INPUT);
            assert!(stderr.contains("it has no audio track"), "{name} to {output}: {stderr}");
        }
    }
}

/// Of two audio tracks, the first silent, the one marked as default is processed, as players select it.
#[test]
fn the_audio_track_that_is_marked_as_default_is_taken() {
    let folder = TempDir::new().unwrap();
    let silence = ["-f", "lavfi", "-i", "anullsrc=sample_rate=16000:channel_layout=mono"];
    let tracks = ["-map", "0", "-map", "1", "-map", "2", "-shortest", "-c:v", "mpeg4", "-c:a", "aac"];
    // The only code of QuickTime for German is `ger`.
    let languages = ["-metadata:s:a:0", "language=ger", "-metadata:s:a:1", "language=eng"];
    for (mark, is_second) in [(["0", "default"], true), (["default", "0"], false)] {
        let marks = ["-disposition:a:0", mark[0], "-disposition:a:1", mark[1]];
        for input in ["in.mp4", "in.mkv", "in.mov"] {
            let made = [&PICTURES[..], &silence, &SOUND, &tracks, &languages, &marks, &[input]].concat();
            if !ffmpeg(folder.path(), &made) {
                return;
            }
            // Written by this program itself, and by ffmpeg.
            for output in ["out.wav", "out.mkv", "out.mka"] {
                let (_, stderr) =
                    statistics(&folder, &[input, output, "--mix", "1", "--residual", "rest.wav"]);
                assert!(stderr.contains("1 further audio track left out"), "{output}: {stderr}");
                let rest = alphamf_files::read(folder.path().join("rest.wav")).unwrap();
                let loudest = rest.channels()[0].iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
                assert_eq!(loudest > 0.01, is_second, "{input} to {output}, {mark:?}: {loudest}");
                if output != "out.wav" {
                    let found = probed(folder.path(), output, "stream=codec_type:stream_tags=language");
                    let language = if is_second { "audio,eng" } else { "audio,ger" };
                    assert!(found.iter().any(|line| line == language), "{found:?}");
                }
            }
        }
    }
}

/// Packets missing in the middle are a loss; packets missing at the start only delay the sound.
#[test]
fn pauses_in_the_sound_of_a_film_are_reported() {
    let folder = TempDir::new().unwrap();
    let film = ["-c:v", "mpeg4", "-c:a", "libopus", "-t", "4"];
    let drop = |range: &str| format!("noise=amount=0:drop=between(pts*tb\\,{range})");
    let (pause, start) = (drop("1\\,2"), drop("-1\\,1"));
    let pictures = ["-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=4"];
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=48000:duration=4:amplitude=0.1:seed=1"];
    if !ffmpeg(folder.path(), &[&pictures[..], &sound, &film, &["whole.mkv"]].concat()) {
        return;
    }
    for (filter, name) in [(&pause, "pause.mkv"), (&start, "late.mkv")] {
        assert!(ffmpeg(folder.path(), &["-i", "whole.mkv", "-c", "copy", "-bsf:a", filter, name]));
    }
    let (stats, stderr) = statistics(&folder, &["pause.mkv", "out.mkv"]);
    assert_eq!(stats["damaged_packets"], 1, "{stderr}");
    let silent = stats["silent_samples"].as_u64().unwrap();
    assert!(silent.abs_diff(48_000) < 2_000, "{silent}");
    assert!(stderr.contains("samples replaced with silence"), "{stderr}");
    let stderr = message(&mut denoise(&folder, &["pause.mkv", "strict.mkv", "--strict"]), INPUT);
    assert!(stderr.contains("refused by --strict"), "{stderr}");
    for name in ["whole.mkv", "late.mkv"] {
        let (stats, stderr) = statistics(&folder, &[name, "out.mkv"]);
        assert_eq!((&stats["damaged_packets"], &stats["silent_samples"]), (&0.into(), &0.into()), "{stderr}");
    }
}

#[test]
fn the_track_that_players_take_stays_that() {
    let folder = TempDir::new().unwrap();
    for flag in ["default", "0"] {
        let codecs = ["-c:v", "mpeg4", "-c:a", "libopus", "-disposition:a:0", flag];
        if !film(&folder, "in.mkv", &codecs) {
            return;
        }
        denoise(&folder, &["in.mkv", "out.mkv", "--force"]).assert().success();
        let [before, after] = ["in.mkv", "out.mkv"]
            .map(|name| probed(folder.path(), name, "stream=codec_type:stream_disposition=default"));
        assert_eq!(before, after, "{flag}");
    }
}
