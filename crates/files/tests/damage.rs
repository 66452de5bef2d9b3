//! Damaged and cut recordings in containers that are read without ffmpeg: what is missing is counted, and whole ones lack
//! nothing.
//!
//! Needs ffmpeg to make them; without it the tests say so and do nothing.

mod shared;

use alphamf_files::{Losses, Reader};
use shared::ffmpeg;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use tempfile::TempDir;

/// So many seconds of noise with a click in the last of them, in a file with these options of the encoder.
fn sound(folder: &Path, seconds: u32, options: &[&str], name: &str) -> bool {
    let click = seconds - 1;
    let noise = format!(
        "aevalsrc='0.1*(2*random(1)-1)+0.8*between(t,{click},{click}.01)':sample_rate=48000:duration={seconds}"
    );
    ffmpeg(folder, &[&["-f", "lavfi", "-i", &noise], options, &[name]].concat())
}

/// Noise beside a video, each of so many seconds.
fn film(folder: &Path, video: u32, audio: u32, options: &[&str], name: &str) -> bool {
    let pictures = format!("testsrc=size=64x48:rate=10:duration={video}");
    let noise = format!("anoisesrc=sample_rate=48000:duration={audio}:amplitude=0.1:seed=1");
    let inputs = ["-f", "lavfi", "-i", &pictures, "-f", "lavfi", "-i", &noise, "-c:v", "mpeg4"];
    ffmpeg(folder, &[&inputs, options, &[name]].concat())
}

/// The first channel of what is there, from a file and from a stream, and what is not.
fn all(bytes: &[u8], salvage: bool) -> [(Vec<f32>, Losses); 2] {
    let open = [
        Reader::from_seekable("file", Cursor::new(bytes.to_vec())),
        Reader::from_stream("stream", Cursor::new(bytes.to_vec())),
    ];
    open.map(|reader| {
        let mut reader = reader.unwrap().salvage(salvage);
        let mut samples = Vec::new();
        loop {
            let mut block = reader.read_block(10_000).unwrap();
            if block[0].is_empty() {
                return (samples, reader.losses());
            }
            samples.append(&mut block[0]);
        }
    })
}

const MPEG4: &[&str] = &["-c:a", "aac"];
const FRAGMENTED: &[&str] =
    &["-c:a", "aac", "-movflags", "frag_keyframe+empty_moov", "-frag_duration", "500000"];
const INDEX_FIRST: &[&str] = &["-c:a", "aac", "-movflags", "+faststart"];
const ALAC: &[&str] = &["-c:a", "alac", "-movflags", "+faststart"];
const OPUS: &[&str] = &["-c:a", "libopus"];
const VORBIS: &[&str] = &["-c:a", "libvorbis"];
/// As a browser streams it: neither sizes nor a duration are filled in.
const LIVE: &[&str] = &["-c:a", "libopus", "-f", "webm", "-live", "1"];

#[test]
fn whole_recordings_lack_nothing() {
    let folder = TempDir::new().unwrap();
    let audio: [(&str, &[&str]); 17] = [
        ("opus.ogg", OPUS),
        ("vorbis.ogg", VORBIS),
        ("flac.oga", &["-c:a", "flac"]),
        ("opus.webm", OPUS),
        ("long.webm", &["-c:a", "libopus", "-frame_duration", "60"]),
        ("live.webm", LIVE),
        ("vorbis.mka", VORBIS),
        ("low.mka", &["-c:a", "libvorbis", "-ar", "8000"]),
        ("aac.mka", MPEG4),
        ("mp3.mka", &["-c:a", "libmp3lame", "-ar", "22050"]),
        ("flac.mka", &["-c:a", "flac"]),
        ("pcm.mka", &["-c:a", "pcm_s16le"]),
        ("last.m4a", MPEG4),
        ("first.m4a", INDEX_FIRST),
        ("low.m4a", &["-c:a", "aac", "-ar", "8000", "-movflags", "+faststart"]),
        ("alac.m4a", ALAC),
        ("fragments.m4a", FRAGMENTED),
    ];
    let films: [(&str, &[&str]); 6] = [
        ("a.mkv", MPEG4),
        ("b.mkv", VORBIS),
        ("c.mkv", OPUS),
        ("d.mp4", MPEG4),
        ("e.mp4", INDEX_FIRST),
        ("f.mp4", FRAGMENTED),
    ];
    let is_whole = |name: &str, seconds: u32| {
        for (samples, losses) in all(&fs::read(folder.path().join(name)).unwrap(), false) {
            assert!(!losses.any(), "{name}, {seconds} s: {losses}");
            assert!(samples.len() > 7_900 * seconds as usize, "{name}: {} samples", samples.len());
        }
    };
    for (name, options) in audio {
        for seconds in [2, 7] {
            if !sound(folder.path(), seconds, options, name) {
                return;
            }
            is_whole(name, seconds);
        }
    }
    for (name, options) in films {
        // The lengths of the two are their own.
        for (video, audio) in [(6, 3), (3, 6)] {
            assert!(film(folder.path(), video, audio, options, name));
            is_whole(name, audio);
        }
        let later = format!("later-{name}");
        let shift = ["-i", name, "-c", "copy", "-output_ts_offset", "2", later.as_str()];
        assert!(ffmpeg(folder.path(), &shift));
        is_whole(&later, 6);
    }
}

#[test]
fn a_cut_is_told_wherever_it_is() {
    let folder = TempDir::new().unwrap();
    let files: [(&str, &[&str]); 8] = [
        ("opus.ogg", OPUS),
        ("vorbis.ogg", VORBIS),
        ("opus.webm", OPUS),
        ("vorbis.mka", VORBIS),
        ("first.m4a", INDEX_FIRST),
        ("alac.m4a", ALAC),
        ("fragments.m4a", FRAGMENTED),
        ("live.webm", LIVE),
    ];
    for (name, options) in files {
        if !sound(folder.path(), 6, options, name) {
            return;
        }
        let bytes = fs::read(folder.path().join(name)).unwrap();
        for share in [0.4, 0.611, 0.75] {
            let cut = &bytes[..(share * bytes.len() as f64) as usize];
            for (samples, losses) in all(cut, false) {
                assert!(losses.any(), "{name}, {share}: {losses}");
                assert!(samples.len() > 48_000, "{name}, {share}: {} samples", samples.len());
            }
        }
    }
    // Behind a page of Ogg, all that is there is whole, but for the mark of the last.
    for name in ["opus.ogg", "vorbis.ogg"] {
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let pages = pages(&bytes);
        for (_, losses) in all(&bytes[..pages[pages.len() - 2]], false) {
            assert!(losses.ends_early, "{name}: {losses}");
        }
    }
    // Behind a cluster of Matroska whose size was left open, its declared duration tells.
    let mut bytes = fs::read(folder.path().join("opus.webm")).unwrap();
    let segment = find(&bytes, &[0x18, 0x53, 0x80, 0x67]);
    bytes[segment + 4..segment + 12].copy_from_slice(&[1, 255, 255, 255, 255, 255, 255, 255]);
    let clusters: Vec<usize> =
        (0..bytes.len() - 4).filter(|&at| bytes[at..].starts_with(&[0x1f, 0x43, 0xb6, 0x75])).collect();
    for (_, losses) in all(&bytes[..clusters[1]], false) {
        assert!(losses.missing_samples > 20_000, "{losses}");
    }
    // A header of a fragment.
    let bytes = fs::read(folder.path().join("fragments.m4a")).unwrap();
    let last = (0..bytes.len() - 4).rfind(|&at| bytes[at..].starts_with(b"moof")).unwrap();
    for (_, losses) in all(&bytes[..last + 30], false) {
        assert!(losses.ends_early, "{losses}");
    }
}

/// Where the pages of an Ogg stream begin.
fn pages(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len() - 27).filter(|&at| bytes[at..].starts_with(b"OggS\0")).collect()
}

fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).unwrap()
}

/// The blocks of a track of Matroska, by where they begin.
fn blocks(bytes: &[u8], track: u8) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    let size = |at: usize| {
        let length = bytes[at].leading_zeros() as usize + 1;
        let number = bytes[at..at + length].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        (length, number & ((1 << (7 * length)) - 1))
    };
    while at + 12 < bytes.len() {
        let name = bytes[at].leading_zeros() as usize + 1;
        let kind = &bytes[at..at + name];
        let (length, body) = size(at + name);
        // A segment and clusters hold the rest.
        if kind == [0x18, 0x53, 0x80, 0x67] || kind == [0x1f, 0x43, 0xb6, 0x75] {
            at += name + length;
            continue;
        }
        if kind == [0xa3] && bytes[at + name + length] == 0x80 | track {
            found.push(at);
        }
        at += name + length + body as usize;
    }
    found
}

#[test]
fn holes_are_told_and_what_follows_stays_in_time() {
    let folder = TempDir::new().unwrap();
    let files: [(&str, &[&str]); 5] =
        [("a.opus", OPUS), ("a.ogg", VORBIS), ("a.webm", OPUS), ("a.mka", VORBIS), ("b.mka", MPEG4)];
    // Behind any that damage makes.
    let click = |samples: &[f32]| samples.iter().rposition(|x| x.abs() > 0.5).unwrap();
    for (name, options) in files {
        if !sound(folder.path(), 8, options, name) {
            return;
        }
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let [whole, _] = all(&bytes, false);
        let mut holed = Vec::new();
        if bytes.starts_with(b"OggS") {
            let pages = pages(&bytes);
            holed.push([&bytes[..pages[4]], &bytes[pages[5]..]].concat());
        } else {
            let blocks = blocks(&bytes, 1);
            for lost in [1, 20] {
                let mut bytes = bytes.clone();
                // Blocks become padding.
                blocks[60..60 + lost].iter().for_each(|&at| bytes[at] = 0xec);
                holed.push(bytes);
            }
        }
        let middle = bytes.len() / 2;
        for fill in [0, 0xff, 0x55] {
            let mut bytes = bytes.clone();
            bytes[middle..middle + 2_000].fill(fill);
            holed.push(bytes);
        }
        for (number, bytes) in holed.iter().enumerate() {
            for (samples, losses) in all(bytes, false) {
                let place = format!("{name}, hole {number}: {losses}");
                assert!(losses.damaged_packets > 0, "{place}");
                // Where the demuxer does not find its way behind the damage, the rest is missing.
                if losses.ends_early && number > 1 && !name.ends_with("us") && !name.ends_with("ogg") {
                    continue;
                }
                assert!(losses.silent_samples > 0, "{place}");
                assert!(samples.len().abs_diff(whole.0.len()) < 1_500, "{place}: {} samples", samples.len());
                let moved = click(&samples).abs_diff(click(&whole.0));
                assert!(moved < 1_000, "{place}: the click has moved by {moved}");
            }
        }
    }
}

#[test]
fn packets_of_alac_that_do_not_decode_are_silent() {
    let folder = TempDir::new().unwrap();
    if !sound(folder.path(), 4, ALAC, "a.m4a") {
        return;
    }
    let bytes = fs::read(folder.path().join("a.m4a")).unwrap();
    let [whole, _] = all(&bytes, false);
    for fill in [0, 0x55, 0xff] {
        let mut bytes = bytes.clone();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 30_000].fill(fill);
        for (samples, losses) in all(&bytes, false) {
            assert!(losses.damaged_packets > 0 && losses.silent_samples >= 4_096, "{fill}: {losses}");
            assert_eq!(samples.len(), whole.0.len(), "{fill}");
            assert_eq!(samples[samples.len() - 40_000..], whole.0[samples.len() - 40_000..], "{fill}");
        }
    }
}

#[test]
fn audio_that_ends_before_its_own_declared_end_is_told_beside_a_video() {
    let folder = TempDir::new().unwrap();
    for name in ["a.mkv", "a.mp4"] {
        if !film(folder.path(), 8, 6, MPEG4, name) {
            return;
        }
    }
    let mut bytes = fs::read(folder.path().join("a.mkv")).unwrap();
    let blocks = blocks(&bytes, 2);
    // Packets of 1024 samples: the last 2 s.
    blocks[blocks.len() - 94..].iter().for_each(|&at| bytes[at] = 0xec);
    let [(_, losses), _] = all(&bytes, false);
    assert!(losses.missing_samples.abs_diff(96_000) < 10_000, "{losses}");

    let mut bytes = fs::read(folder.path().join("a.mp4")).unwrap();
    let audio = (0..bytes.len() - 4).rfind(|&at| bytes[at..].starts_with(b"mdhd")).unwrap();
    let scale = u32::from_be_bytes(bytes[audio + 16..audio + 20].try_into().unwrap());
    assert_eq!(scale, 48_000);
    let duration = u32::from_be_bytes(bytes[audio + 20..audio + 24].try_into().unwrap());
    for (more, is_told) in [(0, false), (20_000, false), (48_000, true)] {
        bytes[audio + 20..audio + 24].copy_from_slice(&(duration + more).to_be_bytes());
        for (_, losses) in all(&bytes, false) {
            assert_eq!(losses.missing_samples > 40_000, is_told, "{more}: {losses}");
            assert_eq!(losses.any(), is_told, "{more}: {losses}");
        }
    }
}
