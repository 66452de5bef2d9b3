//! Tags, speaker positions, covers and further tracks: kept or reported.

use crate::{OUTPUT, denoise, encoded, ffmpeg, message, noisy, statistics, tags};
use alphamf::signal::{SampleFormat, Signal};
use alphamf_files::{Container, Metadata, OutputSpec, Reader, Writer};
use std::fs::{self, File};
use tempfile::TempDir;

#[test]
fn metadata_and_speaker_positions_are_kept() {
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
fn tags_are_kept_by_every_encoder() {
    let folder = TempDir::new().unwrap();
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=0.3:amplitude=0.1:seed=1"];
    let wanted =
        ["title=A title", "artist=Someone", "album=Many", "comment=A comment", "date=2021", "track=3"];
    let wanted = wanted.map(|tag| ["-metadata", tag]).concat();
    let inputs = ["in.mp3", "in.m4a", "in.ogg", "in.opus", "in.mka", "in.flac", "in.wav", "in.wma"];
    let options = [&wanted[..], &["-metadata:s:a:0", "language=deu"]].concat();
    if !encoded(&folder, &sound, &inputs.map(|input| (input, &options[..]))) {
        return;
    }
    let check = |from: &str, output: &str| {
        let tags = tags(folder.path(), output);
        for tag in ["=a title", "=someone", "=many", "=a comment", "=2021", "track=3"] {
            assert!(tags.contains(tag), "{from} to {output}, {tag}: {tags}");
        }
        tags
    };
    // Every input format to MP3, then two input formats to every output format.
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
    // From a pipe, only the metadata before the samples are available.
    let bytes = fs::read(folder.path().join("in.flac")).unwrap();
    denoise(&folder, &["-", "piped.mp3"]).write_stdin(bytes).assert().success();
    check("a pipe", "piped.mp3");
}

/// FLAC stores a comment as DESCRIPTION, WAV as ISBJ, a chunk for which ffmpeg has no tag name.
#[test]
fn names_of_wav_chunks_are_no_tags() {
    let folder = TempDir::new().unwrap();
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=0.3:amplitude=0.1:seed=1"];
    let wanted = ["-metadata", "comment=A comment", "-metadata", "composer=Someone", "in.flac"];
    if !ffmpeg(folder.path(), &[&sound[..], &wanted].concat()) {
        return;
    }
    // The LIST chunk of the WAV file contains both chunks.
    denoise(&folder, &["in.flac", "in.wav"]).assert().success();
    let bytes = fs::read(folder.path().join("in.wav")).unwrap();
    assert!(bytes.windows(4).any(|name| name == b"ISBJ") && bytes.windows(4).any(|name| name == b"IMUS"));
    let piped = fs::read(folder.path().join("in.flac")).unwrap();
    for output in ["out.mp3", "out.opus", "out.ogg"] {
        for input in ["in.flac", "in.wav", "-"] {
            denoise(&folder, &[input, output, "--force"]).write_stdin(piped.clone()).assert().success();
            let tags = tags(folder.path(), output);
            assert!(!tags.contains("isbj") && !tags.contains("imus"), "{input} to {output}: {tags}");
            for tag in ["=a comment", "composer=someone"] {
                assert_eq!(tags.matches(tag).count(), 1, "{input} to {output}: {tags}");
            }
        }
    }
}

/// ffmpeg reads the texts of WAV files as UTF-8, and a zero byte ends an argument of a program.
#[test]
fn texts_of_wav_files_reach_ffmpeg_in_utf_8() {
    let folder = TempDir::new().unwrap();
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=0.3:amplitude=0.1:seed=1"];
    let wanted =
        ["-metadata", "title=0bung #", "-metadata", "artist=A name", "-c:a", "adpcm_ima_wav", "in.wav"];
    if !ffmpeg(folder.path(), &[&sound[..], &wanted].concat()) {
        return;
    }
    let path = folder.path().join("in.wav");
    let bytes = fs::read(&path).unwrap();
    let text = bytes.windows(7).position(|text| text == b"0bung #").unwrap();
    let [mut latin, mut zero] = [bytes.clone(), bytes];
    latin[text] = 0xdc;
    // The byte after the zero byte is leftover memory, not text.
    (zero[text + 5], zero[text + 6]) = (0, 0xff);
    for (bytes, expected) in [(latin, "title=übung #\n"), (zero, "title=0bung\n")] {
        fs::write(&path, &bytes).unwrap();
        for input in ["in.wav", "-"] {
            for output in ["out.mp3", "out.opus"] {
                denoise(&folder, &[input, output, "--force"]).write_stdin(bytes.clone()).assert().success();
                let tags = tags(folder.path(), output);
                assert!(tags.contains(expected), "{input} to {output}: {tags}");
                assert!(tags.contains("artist=a name"), "{input} to {output}: {tags}");
            }
        }
    }
}

/// Tags of a piped input are passed as arguments of ffmpeg, whose length systems limit.
#[test]
fn a_tag_that_is_too_long_for_ffmpeg_is_left_out_and_reported() {
    let folder = TempDir::new().unwrap();
    let signal = noisy();
    let mut metadata = Metadata::default();
    metadata.push_tag("LYRICS", &"ä".repeat(100_000));
    metadata.push_tag("TITLE", "Übung");
    let spec = OutputSpec {
        sample_rate: signal.sample_rate(),
        channels: 1,
        format: signal.format(),
        container: Container::Wav,
        length: None,
        channel_mask: None,
        dither: None,
    };
    // A stream has its tags before the samples, so they can be read from a pipe.
    let path = folder.path().join("in.wav");
    let mut writer = Writer::to_stream(&path, spec, &metadata, File::create(&path).unwrap()).unwrap();
    writer.write_block(signal.channels()).unwrap();
    writer.finish().unwrap();
    if !ffmpeg(folder.path(), &["-i", "in.wav", "-f", "null", "-"]) {
        return;
    }
    let stream = fs::read(&path).unwrap();
    let stderr = message(denoise(&folder, &["-", "out.mp3"]).write_stdin(stream), 0);
    assert!(stderr.contains("1 tag left out"), "{stderr}");
    let tags = tags(folder.path(), "out.mp3");
    assert!(tags.contains("title=übung") && !tags.contains("lyrics"), "{tags}");
}

#[test]
fn tracks_covers_and_channels_are_kept_or_reported() {
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
            let (stats, stderr) = statistics(&folder, &[input, output]);
            assert!(stderr.contains("1 cover picture left out"), "{input} to {output}: {stderr}");
            assert_eq!(stats["left_out"][0], "1 cover picture left out");
        }
    }
    for output in ["out.wav", "out.mka", "out.mkv"] {
        let (_, stderr) = statistics(&folder, &["two.mka", output]);
        assert!(stderr.contains("1 further audio track left out"), "{output}: {stderr}");
    }
    let six = ["-af", "pan=5.1|c0=c0|c1=c0|c2=c0|c3=c0|c4=c0|c5=c0", "six.wav"];
    assert!(ffmpeg(folder.path(), &[&sound[..], &six].concat()));
    for output in ["out.mp3", "out.wma"] {
        let (_, stderr) = statistics(&folder, &["six.wav", output]);
        assert!(stderr.contains("6 channels are mixed to 2"), "{output}: {stderr}");
    }
    let nine = Signal::new(16_000, SampleFormat::Int16, vec![vec![0.1; 16_000]; 9]).unwrap();
    alphamf_files::write(folder.path().join("nine.wav"), &nine).unwrap();
    let stderr = message(&mut denoise(&folder, &["nine.wav", "nine.mp3"]), OUTPUT);
    assert!(
        stderr.contains("nine.mp3: cannot be written: 9 channels: expected 1 to 8: name a .wav"),
        "{stderr}"
    );
}

#[test]
fn tags_without_a_place_in_wav_come_back() {
    let folder = TempDir::new().unwrap();
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=0.3:amplitude=0.1:seed=1"];
    let names = ["title", "artist", "composer", "album_artist", "track", "language", "mood"];
    let wanted: Vec<String> = names.iter().map(|name| format!("{name}=my {name}")).collect();
    let wanted: Vec<&str> = wanted.iter().flat_map(|tag| ["-metadata", tag]).collect();
    for input in ["in.flac", "in.mp3", "in.caf", "in.wav"] {
        if !ffmpeg(folder.path(), &[&sound[..], &wanted, &[input]].concat()) {
            return;
        }
        for (from, to) in [(input, "there.wav"), ("there.wav", "back.flac"), ("back.flac", "again.wav")] {
            denoise(&folder, &[from, to, "--force"]).assert().success();
            let reader = Reader::open(folder.path().join(to)).unwrap();
            let tags: Vec<_> = reader.metadata().tags().collect();
            // Tags that ffmpeg writes to the LIST chunk of a WAV file.
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
