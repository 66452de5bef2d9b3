//! Damaged and truncated recordings in containers that are read without ffmpeg: losses are counted, and complete files
//! have none.
//!
//! ffmpeg generates most files; without it, their tests print a notice and pass.

mod shared;

use alphamf_files::{Container, Error, Losses, ReadError, Reader, encode};
use alphamf_signal::{SampleFormat, Signal};
use shared::ffmpeg;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use tempfile::TempDir;

/// Encodes `seconds` of noise with a click in the last second. Returns false without ffmpeg.
fn sound(folder: &Path, seconds: u32, options: &[&str], name: &str) -> bool {
    let click = seconds - 1;
    let noise = format!(
        "aevalsrc='0.1*(2*random(1)-1)+0.8*between(t,{click},{click}.01)':sample_rate=48000:duration={seconds}"
    );
    ffmpeg(folder, &[&["-f", "lavfi", "-i", &noise], options, &[name]].concat())
}

/// Encodes `video` seconds of pictures and `audio` seconds of noise. Returns false without ffmpeg.
fn film(folder: &Path, video: u32, audio: u32, options: &[&str], name: &str) -> bool {
    let pictures = format!("testsrc=size=64x48:rate=10:duration={video}");
    let noise = format!("anoisesrc=sample_rate=48000:duration={audio}:amplitude=0.1:seed=1");
    let inputs = ["-f", "lavfi", "-i", &pictures, "-f", "lavfi", "-i", &noise, "-c:v", "mpeg4"];
    ffmpeg(folder, &[&inputs, options, &[name]].concat())
}

/// Reads the first channel and the losses, from a file and from a stream.
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
/// WebM as streamed by a browser: neither sizes nor a duration are filled in.
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
        // Video and audio have different lengths.
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
fn a_cut_is_reported_wherever_it_is() {
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
        for fraction in [0.4, 0.611, 0.75] {
            let cut = &bytes[..(fraction * bytes.len() as f64) as usize];
            for (samples, losses) in all(cut, false) {
                assert!(losses.any(), "{name}, {fraction}: {losses}");
                assert!(samples.len() > 48_000, "{name}, {fraction}: {} samples", samples.len());
            }
        }
    }
    // Cut after a page of Ogg, all packets are complete, but the end-of-stream flag is missing.
    for name in ["opus.ogg", "vorbis.ogg"] {
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let pages = pages(&bytes);
        for (_, losses) in all(&bytes[..pages[pages.len() - 2]], false) {
            assert!(losses.ends_early, "{name}: {losses}");
        }
    }
    // Cut after a cluster in a segment of unknown size, only the declared duration of Matroska reveals the loss.
    let mut bytes = fs::read(folder.path().join("opus.webm")).unwrap();
    let segment = find(&bytes, &[0x18, 0x53, 0x80, 0x67]);
    bytes[segment + 4..segment + 12].copy_from_slice(&[1, 255, 255, 255, 255, 255, 255, 255]);
    let clusters: Vec<usize> =
        (0..bytes.len() - 4).filter(|&at| bytes[at..].starts_with(&[0x1f, 0x43, 0xb6, 0x75])).collect();
    for (_, losses) in all(&bytes[..clusters[1]], false) {
        assert!(losses.missing_samples > 20_000, "{losses}");
    }
    // Cut within the header of a fragment.
    let bytes = fs::read(folder.path().join("fragments.m4a")).unwrap();
    let last = (0..bytes.len() - 4).rfind(|&at| bytes[at..].starts_with(b"moof")).unwrap();
    for (_, losses) in all(&bytes[..last + 30], false) {
        assert!(losses.ends_early, "{losses}");
    }
}

/// Returns the offsets of the pages of an Ogg stream.
fn pages(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len() - 27).filter(|&at| bytes[at..].starts_with(b"OggS\0")).collect()
}

fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).unwrap()
}

/// Returns the offsets of the blocks of a Matroska track.
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
        // The segment and clusters contain the other elements.
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
fn holes_are_reported_and_what_follows_stays_in_time() {
    let folder = TempDir::new().unwrap();
    let files: [(&str, &[&str]); 5] =
        [("a.opus", OPUS), ("a.ogg", VORBIS), ("a.webm", OPUS), ("a.mka", VORBIS), ("b.mka", MPEG4)];
    // The last click: damage may cause earlier ones.
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
                // Blocks become `Void` elements.
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
                // If the demuxer cannot resynchronise after the damage, the remaining samples are missing.
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
fn a_missing_page_of_ogg_is_silent_where_it_was() {
    let folder = TempDir::new().unwrap();
    for (name, options) in [("a.opus", OPUS), ("a.ogg", VORBIS), ("a.oga", &["-c:a", "flac"])] {
        // Pages of 0.7 s, so that the last page is shorter than the others.
        let options = [options, &["-page_duration", "700000"]].concat();
        if !sound(folder.path(), 8, &options, name) {
            return;
        }
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let [whole, _] = all(&bytes, false);
        let mut starts = pages(&bytes);
        starts.push(bytes.len());
        let granule = |page: usize| {
            usize::try_from(i64::from_le_bytes(bytes[starts[page] + 6..][..8].try_into().unwrap())).unwrap()
        };
        let count = starts.len() - 1;
        // The last page but one, and a page in the middle.
        for lost in [count - 2, count / 2] {
            let dropped = [&bytes[..starts[lost]], &bytes[starts[lost + 1]..]].concat();
            let mut damaged = bytes.clone();
            damaged[starts[lost + 1] - 9] ^= 1;
            for (samples, losses) in [dropped, damaged].iter().flat_map(|bytes| all(bytes, false)) {
                let place = format!("{name}, page {lost} of {count}: {losses}");
                assert_eq!(losses.damaged_packets, 1, "{place}");
                assert!(losses.missing_samples == 0 && !losses.ends_early, "{place}");
                assert!(samples.len().abs_diff(whole.0.len()) < 960, "{place}: {} samples", samples.len());
                // Packets that begin on the lost page are lost, too. Before the last page, the silence is shorter by
                // the encoder padding, which the granule position of that page excludes.
                let length = granule(lost) - granule(lost - 1);
                let silent = losses.silent_samples as usize;
                let padding = length.saturating_sub(silent);
                assert!(padding < if lost == count - 2 { 960 } else { 1 }, "{place}: of {length} samples");
                assert!(silent < length + 9_000, "{place}: of {length} samples");
                let start = granule(lost - 1) + 100;
                assert!(samples[start..start + length - 2_000].iter().all(|&x| x == 0.0), "{place}");
                // The following samples keep their position. Decoders need some time to settle.
                let behind = granule(lost - 1) + silent + 9_600;
                let end = whole.0.len().min(samples.len()) - 2_000;
                let pairs = || samples[behind..end].iter().zip(&whole.0[behind + padding..]);
                let of = |sum: f64| (sum / (end - behind) as f64).sqrt();
                let difference = of(pairs().map(|(a, b)| f64::from(a - b).powi(2)).sum());
                let power = of(pairs().map(|(_, b)| f64::from(*b).powi(2)).sum());
                assert!(difference < 0.5 * power, "{place}: {difference} of {power}");
            }
        }
    }
}

#[test]
fn an_unknown_end_of_ogg_is_no_length() {
    let folder = TempDir::new().unwrap();
    if !sound(folder.path(), 2, OPUS, "a.opus") {
        return;
    }
    let mut bytes = fs::read(folder.path().join("a.opus")).unwrap();
    let last = *pages(&bytes).last().unwrap();
    let page = &mut bytes[last..];
    page[6..14].fill(0xff);
    page[22..26].fill(0);
    let sum = checksum(page);
    page[22..26].copy_from_slice(&sum.to_le_bytes());
    let reader = Reader::from_seekable("file", Cursor::new(bytes.clone())).unwrap();
    assert_eq!(reader.length(), None);
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
fn audio_that_ends_before_its_own_declared_end_is_reported_beside_a_video() {
    let folder = TempDir::new().unwrap();
    for name in ["a.mkv", "a.mp4"] {
        if !film(folder.path(), 8, 6, MPEG4, name) {
            return;
        }
    }
    let mut bytes = fs::read(folder.path().join("a.mkv")).unwrap();
    let blocks = blocks(&bytes, 2);
    // The last 2 s, in packets of 1024 samples.
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

/// Divides the 32-bit numbers at `offsets` from the name of a box, if the box exists.
fn divide(bytes: &mut [u8], name: &[u8; 4], offsets: &[usize], by: u32) {
    let Some(at) = bytes.windows(4).position(|window| window == name) else { return };
    for place in offsets.iter().map(|offset| at + offset..at + offset + 4) {
        let number = u32::from_be_bytes(bytes[place.clone()].try_into().unwrap());
        assert_eq!(number % by, 0, "{number}");
        bytes[place].copy_from_slice(&(number / by).to_be_bytes());
    }
}

#[test]
fn time_scales_other_than_the_sample_rate_change_nothing() {
    let folder = TempDir::new().unwrap();
    for (name, codec) in [("aac.m4a", "aac"), ("alac.m4a", "alac")] {
        if !sound(folder.path(), 2, &["-ar", "16000", "-c:a", codec], name) {
            return;
        }
        let mut bytes = fs::read(folder.path().join(name)).unwrap();
        let [whole, _] = all(&bytes, false);
        // A time scale of milliseconds: a packet lasts 64 ms or 256 ms.
        let entries = bytes[find(&bytes, b"stts") + 11];
        let durations: Vec<usize> = (0..entries).map(|entry| 16 + 8 * usize::from(entry)).collect();
        divide(&mut bytes, b"mdhd", &[16, 20], 16);
        divide(&mut bytes, b"stts", &durations, 16);
        divide(&mut bytes, b"elst", &[16], 16);
        for (samples, losses) in all(&bytes, false) {
            assert!(!losses.any(), "{name}: {losses}");
            assert!(samples == whole.0, "{name}: {} samples of {}", samples.len(), whole.0.len());
        }
    }
    // At 44.1 kHz, a packet lasts 23.2 ms. The rounding error must not count as padding.
    assert!(sound(folder.path(), 2, &["-ar", "44100", "-c:a", "aac"], "a.m4a"));
    let mut bytes = fs::read(folder.path().join("a.m4a")).unwrap();
    let [whole, _] = all(&bytes, false);
    let mut set = |name: &[u8; 4], offset: usize, number: u32| {
        let at = find(&bytes, name) + offset;
        bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
    };
    let packets = (whole.0.len() as u32).div_ceil(1_024) + 1;
    set(b"mdhd", 16, 1_000);
    set(b"mdhd", 20, 23 * packets);
    set(b"stts", 16, 23);
    // The duration of the last packet.
    set(b"stts", 24, 3);
    set(b"elst", 16, 23);
    for (samples, losses) in all(&bytes, false) {
        assert!(!losses.any() && samples.len().abs_diff(whole.0.len()) < 50, "{} samples", samples.len());
    }
}

#[test]
fn silence_is_as_long_as_the_packets_that_it_replaces() {
    let folder = TempDir::new().unwrap();
    if !sound(folder.path(), 2, &["-c:a", "libopus", "-frame_duration", "10"], "a.mka") {
        return;
    }
    let mut bytes = fs::read(folder.path().join("a.mka")).unwrap();
    let [whole, _] = all(&bytes, false);
    // Replaces the language by the default duration of a packet, 10 ms.
    let language = find(&bytes, b"\x22\xb5\x9c\x83und");
    bytes[language..language + 7].copy_from_slice(&[0x23, 0xe3, 0x83, 0x83, 0x98, 0x96, 0x80]);
    let blocks = blocks(&bytes, 1);
    for &block in &blocks[60..64] {
        let packet = block + 1 + bytes[block + 1].leading_zeros() as usize + 1 + 4;
        // A packet without frames.
        bytes[packet..packet + 2].copy_from_slice(&[0x7b, 0]);
    }
    for (samples, losses) in all(&bytes, false) {
        assert_eq!((losses.damaged_packets, losses.silent_samples), (4, 4 * 480));
        assert_eq!(samples.len(), whole.0.len());
    }
}

/// Builds a Matroska element.
fn element(kind: u32, body: &[u8]) -> Vec<u8> {
    let kind = kind.to_be_bytes();
    let start = kind.iter().take_while(|byte| **byte == 0).count();
    [&kind[start..], &(body.len() as u32 | 1 << 28).to_be_bytes(), body].concat()
}

/// Builds the content of a Matroska track entry: 16-bit samples at 16 kHz, without a default duration.
fn pcm_track() -> Vec<u8> {
    let format = [element(0xb5, &16_000_f32.to_be_bytes()), element(0x6264, &[16])].concat();
    let parts = [
        element(0xd7, &[1]),
        element(0x73c5, &[1]),
        element(0x83, &[2]),
        element(0x86, b"A_PCM/INT/LIT"),
        element(0xe1, &format),
    ];
    parts.concat()
}

#[test]
fn silence_is_bounded_by_what_is_there() {
    // Packets of 20 ms.
    let track = [pcm_track(), element(0x23_e383, &20_000_000_u32.to_be_bytes())];
    let header = element(0x1a45_dfa3, &element(0x4282, b"matroska"));
    let scale = element(0x2a_d7b1, &1_000_000_u32.to_be_bytes());
    let information = [scale, element(0x4d80, b"none"), element(0x5741, b"none")].concat();
    let file = |seconds_apart: u32| {
        let mut parts = element(0x1549_a966, &information);
        parts.extend(element(0x1654_ae6b, &element(0xae, &track.concat())));
        for number in 0..101 {
            let time = element(0xe7, &(1_000 * seconds_apart * number).to_be_bytes());
            let block = element(0xa3, &[&[0x81, 0, 0, 0x80][..], &[7; 640]].concat());
            parts.extend(element(0x1f43_b675, &[time, block].concat()));
        }
        [header.clone(), element(0x1853_8067, &parts)].concat()
    };
    // Gaps of 500 s in total are below the limit.
    for (samples, losses) in all(&file(5), false) {
        assert_eq!((samples.len(), losses.damaged_packets), ((100 * 5 * 50 + 1) * 320, 100));
    }
    let jumps = file(500);
    let mut reader = Reader::from_seekable("file", Cursor::new(jumps.clone())).unwrap();
    let failed = loop {
        match reader.read_block(1 << 16) {
            Ok(block) => assert!(!block[0].is_empty(), "read as a whole"),
            Err(error) => break error,
        }
    };
    assert!(matches!(failed, Error::Read { reason: ReadError::Damaged { .. }, .. }), "{failed}");
    for (samples, losses) in all(&jumps, true) {
        assert!(losses.ends_early && samples.len() < 601 * 16_000, "{} samples", samples.len());
    }
}

#[test]
fn unrecoverable_matroska_data_is_reported() {
    let information = [element(0x4d80, b"none"), element(0x5741, b"none")].concat();
    let block = |number: u16| {
        element(0xa3, &[&[0x81][..], &(20 * number).to_be_bytes(), &[0x80], &[7; 640]].concat())
    };
    // Two clusters without a duration, with bytes after the first (`behind`) and within the second (`within`).
    let file = |behind: &[u8], within: &[u8]| {
        let blocks = |numbers: std::ops::Range<u16>| numbers.flat_map(block).collect::<Vec<_>>();
        let cluster = |parts: &[u8]| element(0x1f43_b675, &[&element(0xe7, &[0]), parts].concat());
        let parts = [
            element(0x1549_a966, &information),
            element(0x1654_ae6b, &element(0xae, &pcm_track())),
            cluster(&blocks(0..25)),
            behind.to_vec(),
            cluster(&[&blocks(25..35), within, &blocks(35..50)].concat()),
        ];
        [element(0x1a45_dfa3, &element(0x4282, b"matroska")), element(0x1853_8067, &parts.concat())].concat()
    };
    for (samples, losses) in all(&file(&[], &[]), false) {
        assert!(samples.len() == 16_000 && !losses.any(), "{} samples, {losses}", samples.len());
    }
    // A block that declares gigabytes.
    let other = [0xa3, 0x08, 0xff, 0xff, 0xff, 0xff, 0x81, 0, 0, 0x80];
    for bytes in [file(&other, &[]), file(&[], &other)] {
        for (samples, losses) in all(&bytes, false) {
            assert!(samples.len() < 16_000 && losses.ends_early, "{} samples, {losses}", samples.len());
        }
    }
}

#[test]
fn a_compressed_track_of_matroska_is_refused() {
    let format = [element(0xb5, &16_000_f32.to_be_bytes()), element(0x6264, &[16])].concat();
    let track = |number: u8, kind: u8, codec: &[u8], rest: &[u8]| {
        let parts = [
            &element(0xd7, &[number])[..],
            &element(0x73c5, &[number]),
            &element(0x83, &[kind]),
            &element(0x86, codec),
            rest,
        ];
        element(0xae, &parts.concat())
    };
    let audio = element(0xe1, &format);
    let compression = element(0x6d80, &element(0x6240, &element(0x5034, &element(0x4254, &[0]))));
    let information = [element(0x4d80, b"none"), element(0x5741, b"none")].concat();
    let file = |of_audio: &[u8], of_text: &[u8]| {
        let tracks = [
            track(1, 17, b"S_TEXT/UTF8", of_text),
            track(2, 2, b"A_PCM/INT/LIT", &[&audio, of_audio].concat()),
        ];
        let mut parts = element(0x1549_a966, &information);
        parts.extend(element(0x1654_ae6b, &tracks.concat()));
        let block = element(0xa3, &[&[0x82, 0, 0, 0x80][..], &[7; 640]].concat());
        parts.extend(element(0x1f43_b675, &[element(0xe7, &[0]), block].concat()));
        [element(0x1a45_dfa3, &element(0x4282, b"matroska")), element(0x1853_8067, &parts)].concat()
    };
    for (samples, losses) in all(&file(&[], &compression), false) {
        assert!(samples.len() == 320 && !losses.any(), "subtitles are often compressed");
    }
    let bytes = file(&compression, &[]);
    for refused in [
        Reader::from_seekable("file", Cursor::new(bytes.clone())).unwrap_err(),
        Reader::from_stream("stream", Cursor::new(bytes)).unwrap_err(),
    ] {
        assert!(matches!(refused, Error::Read { reason: ReadError::Unsupported(_), .. }), "{refused}");
    }
}

#[test]
fn audio_behind_an_edit_stays_out() {
    let folder = TempDir::new().unwrap();
    for (name, codec) in [("aac.m4a", "aac"), ("alac.m4a", "alac")] {
        if !sound(folder.path(), 3, &["-c:a", codec], name) {
            return;
        }
        let mut bytes = fs::read(folder.path().join(name)).unwrap();
        let [whole, _] = all(&bytes, false);
        // An edit of one second, starting at 0.5 s.
        let at = find(&bytes, b"elst") + 12;
        let start = u32::from_be_bytes(bytes[at + 4..at + 8].try_into().unwrap());
        bytes[at..at + 4].copy_from_slice(&1_000_u32.to_be_bytes());
        bytes[at + 4..at + 8].copy_from_slice(&(start + 24_000).to_be_bytes());
        for (samples, losses) in all(&bytes, false) {
            assert!(!losses.any(), "{name}: {losses}");
            assert!((48_000..48_100).contains(&samples.len()), "{name}: {} samples", samples.len());
            assert!(samples == whole.0[24_000..24_000 + samples.len()], "{name}");
        }
    }
}

/// Computes the checksum of an Ogg page (RFC 3533).
fn checksum(page: &[u8]) -> u32 {
    page.iter().fold(0_u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte) << 24, |sum, _| {
            sum << 1 ^ if sum >> 31 == 1 { 0x04c1_1db7 } else { 0 }
        })
    })
}

#[test]
fn the_middle_of_an_ogg_stream_is_whole() {
    let folder = TempDir::new().unwrap();
    for (name, options) in [("a.opus", OPUS), ("a.ogg", VORBIS), ("a.oga", &["-c:a", "flac"])] {
        if !sound(folder.path(), 2, options, name) {
            return;
        }
        let mut bytes = fs::read(folder.path().join(name)).unwrap();
        let [whole, _] = all(&bytes, false);
        let mut starts = pages(&bytes);
        starts.push(bytes.len());
        for ends in starts.windows(2) {
            let page = &mut bytes[ends[0]..ends[1]];
            let granule = i64::from_le_bytes(page[6..14].try_into().unwrap());
            if granule > 0 {
                page[6..14].copy_from_slice(&(granule + 480_000).to_le_bytes());
            }
            page[22..26].fill(0);
            let sum = checksum(page);
            page[22..26].copy_from_slice(&sum.to_le_bytes());
        }
        for (samples, losses) in all(&bytes, false) {
            assert!(!losses.any(), "{name}: {losses}");
            assert!(samples.len().abs_diff(whole.0.len()) < 1_000, "{name}: {} samples", samples.len());
        }
    }
}

#[test]
fn flac_is_compared_with_its_signature() {
    for (format, channels) in [
        (SampleFormat::Int8, 1),
        (SampleFormat::Int16, 2),
        (SampleFormat::Int16, 6),
        (SampleFormat::Int24, 2),
    ] {
        let channel = |c: usize| (0..9_000).map(|n| ((n * 7 + c * 31) % 256) as f32 / 256.0 - 0.5).collect();
        let signal = Signal::new(8_000, format, (0..channels).map(channel).collect()).unwrap();
        let right = encode(&signal, Container::Flac).unwrap();
        let mut wrong = right.clone();
        // The last byte of the MD5 signature, which ends the STREAMINFO block.
        wrong[41] ^= 1;
        let joined = [&right[..], &wrong].concat();
        for (bytes, is_wrong) in [(&right, false), (&wrong, true), (&joined, true)] {
            for (samples, losses) in all(bytes, false) {
                assert_eq!(samples.len() % 9_000, 0);
                assert_eq!(losses.checksum_mismatch, is_wrong, "{format} {channels}: {losses}");
                assert_eq!(losses.any(), is_wrong);
            }
        }
    }
}

#[test]
fn a_short_cut_of_a_declared_length_is_refused() {
    let folder = TempDir::new().unwrap();
    let files: [(&str, &[&str], usize); 3] = [
        ("ms.wav", &["-c:a", "adpcm_ms"], 1_024),
        ("ima.wav", &["-c:a", "adpcm_ima_wav"], 1_024),
        ("a.mp3", &["-c:a", "libmp3lame", "-b:a", "96k"], 100),
    ];
    for (name, options, cut) in files {
        if !sound(folder.path(), 2, &[&["-ar", "16000"], options].concat(), name) {
            return;
        }
        let bytes = fs::read(folder.path().join(name)).unwrap();
        for (_, losses) in all(&bytes, false) {
            assert!(!losses.any(), "{name}: {losses}");
        }
        let cut = &bytes[..bytes.len() - cut];
        for reader in [
            Reader::from_seekable(name, Cursor::new(cut.to_vec())),
            Reader::from_stream(name, Cursor::new(cut.to_vec())),
        ] {
            let read = reader.unwrap().read_all();
            assert!(matches!(read, Err(Error::Read { reason: ReadError::Truncated { .. }, .. })), "{name}");
        }
        for (_, losses) in all(cut, true) {
            assert!((1..4_000).contains(&losses.missing_samples), "{name}: {losses}");
        }
    }
}

#[test]
fn mp3_that_lacks_frames_of_its_declared_length_is_refused() {
    let folder = TempDir::new().unwrap();
    // Frames of 432 bytes and 576 samples, and of 288 bytes and 1152 samples.
    for (rate, bit_rate, frame_bytes, frame_samples) in
        [("16000", "96k", 432, 576), ("48000", "96k", 288, 1_152)]
    {
        let options = ["-ar", rate, "-c:a", "libmp3lame", "-b:a", bit_rate];
        if !sound(folder.path(), 2, &options, "a.mp3") {
            return;
        }
        let bytes = fs::read(folder.path().join("a.mp3")).unwrap();
        let [(whole, losses), _] = all(&bytes, false);
        assert!(!losses.any(), "{losses}");
        let cut = |frames: usize| &bytes[..bytes.len() - frames * frame_bytes];
        for (samples, losses) in all(cut(1), false) {
            assert!(!losses.any() && samples.len() <= whole.len(), "{rate}: {losses}");
        }
        let lost = 4_608 / frame_samples + 1;
        for reader in [
            Reader::from_seekable("file", Cursor::new(cut(lost).to_vec())),
            Reader::from_stream("stream", Cursor::new(cut(lost).to_vec())),
        ] {
            let read = reader.unwrap().read_all();
            assert!(matches!(read, Err(Error::Read { reason: ReadError::Truncated { .. }, .. })), "{rate}");
        }
        for (_, losses) in all(cut(lost), true) {
            assert!((2_305..6_000).contains(&losses.missing_samples), "{rate}: {losses}");
        }
    }
}

#[test]
fn wrong_lengths_of_adpcm_are_no_other_encoding() {
    let folder = TempDir::new().unwrap();
    for codec in ["adpcm_ms", "adpcm_ima_wav"] {
        if !sound(folder.path(), 2, &["-ar", "16000", "-c:a", codec], "a.wav") {
            return;
        }
        let mut bytes = fs::read(folder.path().join("a.wav")).unwrap();
        let [whole, _] = all(&bytes, false);
        let size = find(&bytes, b"data") + 4;
        // Placeholders, as written to a pipe (two kinds), and a declared length that exceeds the file.
        for (riff, data, is_whole) in [(u32::MAX, u32::MAX, true), (0, u32::MAX, true), (100, 1 << 20, false)]
        {
            bytes[4..8].copy_from_slice(&riff.to_le_bytes());
            bytes[size..size + 4].copy_from_slice(&data.to_le_bytes());
            for (samples, losses) in all(&bytes, true) {
                assert_eq!(losses.any(), !is_whole, "{codec}, {riff}, {data}: {losses}");
                assert!(samples.len().abs_diff(whole.0.len()) < 2_048, "{codec}: {} samples", samples.len());
            }
        }
        // A block size of zero bytes.
        bytes[32..34].fill(0);
        for refused in [
            Reader::from_seekable("file", Cursor::new(bytes.clone())).unwrap_err(),
            Reader::from_stream("stream", Cursor::new(bytes.clone())).unwrap_err(),
        ] {
            assert!(matches!(refused, Error::Read { reason: ReadError::NotAudio(_), .. }), "{refused}");
        }
    }
}

#[test]
fn codecs_without_a_decoder_are_named() {
    let folder = TempDir::new().unwrap();
    for (codec, name, expected) in [
        ("ac3", "a.mka", "AC-3"),
        ("ac3", "a.mp4", "AC-3"),
        ("eac3", "b.mp4", "E-AC-3"),
        ("wavpack", "b.mka", "WavPack"),
        ("tta", "c.mka", "TTA"),
    ] {
        if !sound(folder.path(), 1, &["-c:a", codec], name) {
            return;
        }
        let error = Reader::open(folder.path().join(name)).unwrap_err().to_string();
        assert!(error.ends_with(&format!("unsupported encoding: {expected}")), "{name}: {error}");
    }
}
