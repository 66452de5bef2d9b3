//! Damaged, cut and mixed recordings: refused, salvaged or reported.

use crate::{
    DAMAGED_PACKETS, DATA_FOLLOW, ENDS_EARLY, INPUT, MISSING_SAMPLES, OTHER_RECORDING, USAGE, denoise,
    encoded, ffmpeg, is_reported, message, noisy,
};
use alphamf::signal::{SampleFormat, Signal};
use std::fs;
use tempfile::TempDir;

#[test]
fn a_damaged_recording_is_refused_salvaged_or_reported() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("in.wav");
    alphamf_files::write(&path, &noisy()).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let start = bytes.len() - 64_000;
    bytes[start + 400..start + 404].copy_from_slice(&f32::NAN.to_le_bytes());
    bytes.truncate(start + 4 * 12_000);
    fs::write(&path, bytes).unwrap();

    assert!(message(&mut denoise(&folder, &["in.wav", "out.wav"]), INPUT).contains("sample 101"));
    assert!(!folder.path().join("out.wav").exists());
    let salvage = ["in.wav", "out.wav", "--salvage", "--stats", "stats.json"];
    let stderr = message(&mut denoise(&folder, &salvage), 0);
    assert!(stderr.contains("4000 samples missing at the end"), "{stderr}");
    assert!(stderr.contains("1 non-finite sample,"), "{stderr}");
    assert_eq!(alphamf_files::read(folder.path().join("out.wav")).unwrap().len(), 12_000);
    let stats = fs::read_to_string(folder.path().join("stats.json")).unwrap();
    assert!(stats.contains("\"missing_samples\": 4000") && stats.contains("\"samples_not_finite\": 1"));
    assert!(
        message(&mut denoise(&folder, &["in.wav", "b.wav", "--salvage", "--strict"]), USAGE)
            .contains("--strict")
    );
}

/// A header as left by a recorder that lost power.
#[test]
fn a_header_that_declares_no_samples_is_no_end_of_the_recording() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("in.wav");
    let noise = Signal::new(16_000, SampleFormat::Int16, noisy().channels().to_vec()).unwrap();
    alphamf_files::write(&path, &noise).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let start = bytes.len() - 32_000;
    bytes[start - 4..start].fill(0);
    fs::write(&path, bytes).unwrap();
    let stderr = message(&mut denoise(&folder, &["in.wav", "out.wav"]), INPUT);
    assert!(stderr.contains("declares no samples: --salvage reads the data that follow"), "{stderr}");
    denoise(&folder, &["in.wav", "out.wav", "--salvage"]).assert().success();
    assert_eq!(alphamf_files::read(folder.path().join("out.wav")).unwrap().len(), 16_000);
}

#[test]
fn a_truncated_stream_is_reported_or_refused() {
    let folder = TempDir::new().unwrap();
    let noise = "anoisesrc=sample_rate=16000:duration=2:amplitude=0.2:seed=1";
    let pages = ["-page_duration", "250000", "whole.ogg"];
    if !ffmpeg(folder.path(), &[&["-f", "lavfi", "-i", noise], &pages[..]].concat()) {
        return;
    }
    let whole = fs::read(folder.path().join("whole.ogg")).unwrap();
    fs::write(folder.path().join("cut.ogg"), &whole[..whole.len() / 2]).unwrap();
    denoise(&folder, &["whole.ogg", "out.wav", "--strict"]).assert().success();
    let stderr = message(&mut denoise(&folder, &["cut.ogg", "cut.wav"]), 0);
    assert!(stderr.contains("the file ends early"), "{stderr}");
    let stderr = message(&mut denoise(&folder, &["cut.ogg", "none.wav", "--strict"]), INPUT);
    assert!(stderr.contains("cut.ogg") && stderr.contains("ends early"), "{stderr}");
    assert!(!folder.path().join("none.wav").exists());
}

#[test]
fn missing_samples_are_reported_by_every_decoder() {
    let folder = TempDir::new().unwrap();
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=2.5:amplitude=0.1:seed=3"];
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
    let files = [&by_ffmpeg[..], &here].concat();
    if !encoded(&folder, &sound, &files) {
        return;
    }
    for (name, _) in files {
        denoise(&folder, &[name, "whole.wav", "--strict", "--force"]).assert().success();
        let whole = fs::read(folder.path().join(name)).unwrap();
        let cut = format!("cut-{name}");
        // The file ends within a packet.
        fs::write(folder.path().join(&cut), &whole[..whole.len() * 5 / 8 + 1]).unwrap();
        match name {
            // A truncated FLAC file is refused without --salvage.
            "a.flac" => {
                assert!(message(&mut denoise(&folder, &[&cut, "none.wav"]), INPUT).contains("truncated"));
            }
            // Speex declares no length: a file that ends after a whole packet appears complete.
            "a.spx" => {}
            "a.caf" | "a.aiff" => is_reported(&folder, &cut, &[ENDS_EARLY, MISSING_SAMPLES]),
            "a.tta" | "a.wv" => is_reported(&folder, &cut, &[MISSING_SAMPLES]),
            "a.wma" | "a.ac3" => is_reported(&folder, &cut, &[DAMAGED_PACKETS]),
            _ => is_reported(&folder, &cut, &[ENDS_EARLY]),
        }
    }
    let stderr = message(&mut denoise(&folder, &["cut-a.tta", "none.wav", "--strict"]), INPUT);
    assert!(stderr.contains("cut-a.tta") && stderr.contains("--strict"), "{stderr}");
    assert!(!folder.path().join("none.wav").exists());
    // Also without ffmpeg.
    for name in ["cut-a.aiff", "cut-a.webm", "cut-a.caf", "cut-a.mkv"] {
        let mut command = denoise(&folder, &[name, "out.wav", "--force"]);
        let stderr = message(command.env("PATH", ""), 0);
        assert!(stderr.contains("the file ends early"), "{name}: {stderr}");
        denoise(&folder, &[name, "out.wav", "--force", "--salvage"]).env("PATH", "").assert().success();
        assert!(
            message(denoise(&folder, &[name, "none.wav", "--strict"]).env("PATH", ""), INPUT)
                .contains("--strict")
        );
    }
    // Also from standard input.
    for name in ["cut-a.aiff", "cut-a.webm", "cut-a.caf"] {
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let mut command = denoise(&folder, &["-", "none.wav", "--strict"]);
        let stderr = message(command.write_stdin(bytes), INPUT);
        assert!(stderr.contains("--strict"), "{name}: {stderr}");
    }
    // Damage in the middle. With this seed, some of it reaches the WMA decoder instead of only losing packets.
    for name in ["a.tta", "a.wma", "a.ac3"] {
        let mut bytes = fs::read(folder.path().join(name)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 600].fill(0x55);
        let damaged = format!("damaged-{name}");
        fs::write(folder.path().join(&damaged), bytes).unwrap();
        is_reported(&folder, &damaged, &[DAMAGED_PACKETS]);
    }
}

/// The counts of the decoders are tested in `alphamf-files`.
#[test]
fn holes_and_cuts_in_other_containers_are_reported_without_ffmpeg() {
    let folder = TempDir::new().unwrap();
    let sound = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=16000:duration=2:amplitude=0.1:seed=3"];
    let fragments = ["-movflags", "frag_keyframe+empty_moov", "-frag_duration", "500000"];
    let files: [(&str, &[&str]); 5] = [
        ("first.m4a", &["-movflags", "+faststart"]),
        ("fragments.m4a", &fragments),
        ("alac.m4a", &["-c:a", "alac", "-movflags", "+faststart"]),
        ("a.opus", &["-page_duration", "250000"]),
        ("a.webm", &["-c:a", "libopus"]),
    ];
    if !encoded(&folder, &sound, &files) {
        return;
    }
    for (name, _) in files {
        denoise(&folder, &[name, "whole.wav", "--strict", "--force"]).env("PATH", "").assert().success();
        let whole = fs::read(folder.path().join(name)).unwrap();
        let (middle, cut, holed) = (whole.len() / 2, format!("cut-{name}"), format!("holed-{name}"));
        fs::write(folder.path().join(&cut), &whole[..middle]).unwrap();
        is_reported(&folder, &cut, &[ENDS_EARLY]);
        if !name.ends_with("m4a") || name.starts_with("alac") {
            let mut bytes = whole;
            bytes[middle..middle + 20_000.min(middle / 4)].fill(0);
            fs::write(folder.path().join(&holed), bytes).unwrap();
            is_reported(&folder, &holed, &[DAMAGED_PACKETS]);
        }
    }
}

#[test]
fn a_dead_recorder_leaves_more_than_its_header_declares() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("in.wav");
    alphamf_files::write(&path, &noisy().with_format(SampleFormat::Int16)).unwrap();
    denoise(&folder, &["in.wav", "whole.wav", "--strict"]).assert().success();
    let mut bytes = fs::read(&path).unwrap();
    let start = bytes.len() - 32_000;
    bytes[start - 4..start].copy_from_slice(&16_000_u32.to_le_bytes());
    bytes[4..8].copy_from_slice(&(start as u32 + 15_992).to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    is_reported(&folder, "in.wav", &[DATA_FOLLOW]);
    let samples = |name: &str| alphamf_files::read(folder.path().join(name)).unwrap().len();
    assert_eq!((samples("reported.wav"), samples("salvaged.wav")), (8_000, 16_000));
    let mut piped = denoise(&folder, &["-", "none.wav", "--strict"]);
    assert!(message(piped.write_stdin(bytes), INPUT).contains("more data follow"));
    // Two concatenated files, as by `cat a.wav a.wav`.
    alphamf_files::write(&path, &noisy().with_format(SampleFormat::Int16)).unwrap();
    let twice = fs::read(&path).unwrap().repeat(2);
    fs::write(folder.path().join("twice.wav"), &twice).unwrap();
    let mut joined = denoise(&folder, &["twice.wav", "none.wav", "--strict"]);
    assert!(message(&mut joined, INPUT).contains("more data follow"));
}

/// The demuxer computes the timestamps of a page from the page before it, which is damaged here.
/// The length of the output still agrees within 10 ms.
#[test]
fn a_damaged_page_before_the_last_one_is_reported() {
    let folder = TempDir::new().unwrap();
    let noise = ["-f", "lavfi", "-i", "anoisesrc=sample_rate=48000:duration=3.5:amplitude=0.1:seed=1"];
    for (name, codec) in [("in.opus", "libopus"), ("in.ogg", "libvorbis")] {
        let page = ["-c:a", codec, "-page_duration", "1000000", name];
        if !ffmpeg(folder.path(), &[&noise[..], &page].concat()) {
            return;
        }
        denoise(&folder, &[name, "whole.wav", "--strict", "--force"]).assert().success();
        let samples = |name: &str| alphamf_files::read(folder.path().join(name)).unwrap().len();
        let path = folder.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        let pages: Vec<usize> = (0..bytes.len() - 4).filter(|&at| bytes[at..].starts_with(b"OggS")).collect();
        bytes[pages[pages.len() - 2] + 400] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let mut damaged = denoise(&folder, &[name, "none.wav", "--strict"]);
        assert!(message(&mut damaged, INPUT).contains("samples replaced with silence"), "{name}");
        denoise(&folder, &[name, "mended.wav", "--force"]).assert().success();
        assert!(samples("mended.wav").abs_diff(samples("whole.wav")) < 480, "{name}");
    }
}

#[test]
fn a_chain_of_mp3s_of_other_rates_is_reported() {
    let folder = TempDir::new().unwrap();
    let sound = |rate: u32, name: &str| {
        let noise = format!("anoisesrc=sample_rate={rate}:duration=1:amplitude=0.1:seed=1");
        ffmpeg(folder.path(), &["-f", "lavfi", "-i", &noise, "-write_xing", "0", name])
    };
    if !sound(16_000, "a.mp3") || !sound(44_100, "b.mp3") {
        return;
    }
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    fs::write(folder.path().join("ab.mp3"), [read("a.mp3"), read("b.mp3")].concat()).unwrap();
    fs::write(folder.path().join("ba.mp3"), [read("b.mp3"), read("a.mp3")].concat()).unwrap();
    for name in ["ab.mp3", "ba.mp3"] {
        is_reported(&folder, name, &[OTHER_RECORDING]);
        let duration = alphamf_files::read(folder.path().join("reported.wav")).unwrap().duration();
        assert!((duration - 1.0).abs() < 0.2, "{name}: {duration} s");
    }
    fs::write(folder.path().join("aa.mp3"), [read("a.mp3"), read("a.mp3")].concat()).unwrap();
    denoise(&folder, &["aa.mp3", "whole.wav", "--strict", "--force"]).assert().success();
}
