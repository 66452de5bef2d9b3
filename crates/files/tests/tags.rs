//! Tags in every encoding and position, and other bytes after the samples, such as padding.
//!
//! Some tests need ffmpeg; without it, they print a notice and pass.

mod shared;

use alphamf_files::{Losses, Reader};
use shared::ffmpeg;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use tempfile::TempDir;

type Tags = Vec<(String, String)>;

/// Reads the first channel, the losses and the tags, from a file and from a stream.
fn all(bytes: &[u8]) -> [(Vec<f32>, Losses, Tags); 2] {
    let open = [
        Reader::from_seekable("file", Cursor::new(bytes.to_vec())),
        Reader::from_stream("stream", Cursor::new(bytes.to_vec())),
    ];
    open.map(|reader| {
        let mut reader = reader.unwrap();
        let tags =
            reader.metadata().tags().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut samples = Vec::new();
        loop {
            let mut block = reader.read_block(10_000).unwrap();
            if block[0].is_empty() {
                return (samples, reader.losses(), tags);
            }
            samples.append(&mut block[0]);
        }
    })
}

fn tags_of(path: &Path) -> Tags {
    let reader = Reader::open(path).unwrap();
    reader.metadata().tags().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn owned(tags: &[(&str, &str)]) -> Tags {
    tags.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut chunk = unpadded(name, body);
    chunk.resize(chunk.len().next_multiple_of(2), 0);
    chunk
}

fn unpadded(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    [&name[..], &(body.len() as u32).to_le_bytes(), body].concat()
}

fn riff(chunks: &[Vec<u8>]) -> Vec<u8> {
    let body = chunks.concat();
    [b"RIFF", &(body.len() as u32 + 4).to_le_bytes()[..], b"WAVE", &body].concat()
}

/// A `fmt ` chunk: one channel at 8 kHz, `sample_bytes` bytes per sample.
fn format(sample_bytes: u8) -> Vec<u8> {
    let rest = [sample_bytes, 0, 8 * sample_bytes, 0];
    chunk(b"fmt ", &[&b"\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00"[..], &rest].concat())
}

fn list(title: &[u8]) -> Vec<u8> {
    chunk(b"LIST", &[&b"INFO"[..], &chunk(b"INAM", title)].concat())
}

#[test]
fn texts_of_wav_are_utf_8_or_latin_1() {
    for (title, expected) in [
        ("Übung „x“\0".as_bytes(), "Übung „x“"),
        (b"\xdcbung \x84x\x93\0", "Übung „x“"),
        (b"\xe9t\xe9", "été"),
        // Leftover memory after the terminating zero.
        (b"\xc3\x9cbung\0\xff\0rest", "Übung"),
    ] {
        let file = riff(&[format(2), list(title), chunk(b"data", &[1; 60])]);
        for (_, _, tags) in all(&file) {
            assert_eq!(tags, owned(&[("TITLE", expected)]));
        }
    }
}

/// Two blocks of IMA ADPCM, of 8 bytes and 9 samples each, one channel at 8 kHz.
fn adpcm() -> [Vec<u8>; 3] {
    let format = b"\x11\0\x01\0\x40\x1f\0\0\xa0\x0f\0\0\x08\0\x04\0\x02\0\x09\0";
    let block = [0x10, 0, 0, 0, 1, 2, 3, 4];
    [chunk(b"fmt ", format), chunk(b"fact", &18_u32.to_le_bytes()), chunk(b"data", &block.repeat(2))]
}

#[test]
fn tags_of_adpcm_are_those_of_any_wav_file() {
    for (title, expected) in [("Übung „x“\0".as_bytes(), "Übung „x“"), (b"\xdcbung \x84x\x93\0", "Übung „x“")]
    {
        for is_behind in [false, true] {
            let [format, fact, data] = adpcm();
            let (before, behind) =
                if is_behind { (Vec::new(), list(title)) } else { (list(title), Vec::new()) };
            let file = riff(&[format, fact, before, data, behind]);
            for (number, (samples, losses, tags)) in all(&file).into_iter().enumerate() {
                assert!(samples.len() == 18 && !losses.any(), "{} samples, {losses}", samples.len());
                // In a stream, tags after the samples are not available yet.
                let expected = if is_behind && number == 1 { vec![] } else { owned(&[("TITLE", expected)]) };
                assert_eq!(tags, expected);
            }
        }
    }
    let tag = b"ID3\x04\0\0\0\0\0\x14TIT2\0\0\0\x0a\0\0\0\xdcbung....";
    for (samples, _, tags) in all(&[&tag[..], &riff(&adpcm())].concat()) {
        assert_eq!((samples.len(), tags), (18, owned(&[("TITLE", "Übung....")])));
    }
}

#[test]
fn texts_of_aiff_are_utf_8_or_latin_1() {
    let part = |name: &[u8; 4], body: &[u8]| {
        let mut part = [&name[..], &(body.len() as u32).to_be_bytes(), body].concat();
        part.resize(part.len().next_multiple_of(2), 0);
        part
    };
    // One channel of 16 bits at 8 kHz, 10 samples.
    let common = part(b"COMM", b"\0\x01\0\0\0\x0a\0\x10\x40\x0b\xfa\0\0\0\0\0\0\0");
    let sound = part(b"SSND", &[0; 8 + 20]);
    for (title, expected) in [("Übung".as_bytes(), "Übung"), (b"\xdcbung", "Übung"), (b"plain", "plain")] {
        let body = [&b"AIFF"[..], &common, &part(b"NAME", title), &sound].concat();
        let file = [b"FORM", &(body.len() as u32).to_be_bytes()[..], &body].concat();
        for (samples, _, tags) in all(&file) {
            assert_eq!((samples.len(), tags), (10, owned(&[("TITLE", expected)])));
        }
    }
}

#[test]
fn tags_that_are_no_chunks_end_a_wav_file() {
    let id3v1 = |title: &[u8]| [&b"TAG"[..], title, &vec![0; 125 - title.len()]].concat();
    let id3v2 = [&b"ID3\x04\0\0\0\0\0\x14TIT2\0\0\0\x0a\0\0\0A title.."[..], &[0; 10]].concat();
    let ape = [&b"APETAGEX\xd0\x07\0\0\x20\0\0\0\0\0\0\0\0\0\0\x80"[..], &[0; 8]].concat();
    let tags = [
        id3v1(b"A title"),
        // Titles that resemble the length of a chunk.
        id3v1(b"A"),
        id3v1(b"Ab"),
        id3v1(b""),
        id3v2.clone(),
        ape.clone(),
        [&ape[..], &id3v1(b"A title")].concat(),
    ];
    for tag in &tags {
        // Also with an odd number of bytes, with and without the padding byte.
        for (bytes, sample_bytes, padding) in [(60, 2, 0), (61, 1, 1), (61, 1, 0)] {
            let data = [unpadded(b"data", &vec![7; bytes]), vec![0; padding]].concat();
            for before in [Vec::new(), list(b"A title")] {
                let file = [&riff(&[format(sample_bytes), data.clone(), before])[..], tag].concat();
                for (samples, losses, _) in all(&file) {
                    let place = format!("{:?}, {bytes} bytes: {losses}", &tag[..8]);
                    assert_eq!(samples.len(), bytes / usize::from(sample_bytes), "{place}");
                    assert!(!losses.any(), "{place}");
                }
            }
        }
    }
    // A tag followed by more bytes does not count as a tag.
    let file = [&riff(&[format(2), chunk(b"data", &[7; 60])])[..], &id3v1(b"A title"), &[9; 50]].concat();
    assert!(all(&file).iter().all(|(_, losses, _)| losses.data_follow));
}

#[test]
fn chunks_behind_an_odd_number_of_bytes_are_found_without_padding() {
    let data = |bytes: u8| unpadded(b"data", &(0..bytes).collect::<Vec<_>>());
    let further = unpadded(b"data", &[7; 41]);
    for padding in [0, 1] {
        let pad = || vec![0; padding];
        let file =
            riff(&[format(1), data(61), pad(), list(b"A title"), further.clone(), pad(), list(b"A title")]);
        for (number, (samples, losses, tags)) in all(&file).into_iter().enumerate() {
            assert!(
                samples.len() == 61 + 41 && !losses.any(),
                "{padding}: {} samples, {losses}",
                samples.len()
            );
            // In a stream, tags after the samples are not available yet.
            assert_eq!(tags.len(), if number == 0 { 2 } else { 0 }, "{padding}: {tags:?}");
        }
    }
    // A chunk after the padding byte takes precedence. An even number of bytes has no padding.
    let strange = riff(&[format(1), data(61), b"L".to_vec(), list(b"A title")]);
    assert_eq!(all(&strange)[0].2.len(), 1);
    assert_eq!(all(&riff(&[format(1), data(60), list(b"A title")]))[0].2.len(), 1);
}

#[test]
fn zeros_behind_ogg_are_left_out() {
    let folder = TempDir::new().unwrap();
    let noise = "anoisesrc=sample_rate=48000:duration=3:amplitude=0.1:seed=1";
    for (name, codec) in [("a.opus", "libopus"), ("a.ogg", "libvorbis"), ("a.oga", "flac")] {
        if !ffmpeg(folder.path(), &["-f", "lavfi", "-i", noise, "-c:a", codec, name]) {
            return;
        }
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let [(whole, ..), _] = all(&bytes);
        for zeros in [1, 100, 70_000, 200_000, 1_000_000] {
            let padded = [&bytes[..], &vec![0; zeros]].concat();
            let length = Reader::from_seekable("file", Cursor::new(padded.clone())).unwrap().length();
            assert_eq!(length, Some(whole.len() as u64), "{name}");
            for (samples, losses, _) in all(&padded) {
                assert!(samples == whole && !losses.any(), "{name}, {zeros}: {losses}");
            }
            // An incomplete download, and damage in the middle.
            let cut = [&bytes[..2 * bytes.len() / 3], &vec![0; zeros]].concat();
            let mut damaged = padded.clone();
            let middle = bytes.len() / 2;
            damaged[middle..middle + 200].fill(0x55);
            for (samples, losses, _) in [cut, damaged].iter().flat_map(|bytes| all(bytes)) {
                assert!(losses.any() && samples.len() > 40_000, "{name}, {zeros}: {losses}");
            }
        }
    }
}

#[test]
fn padding_behind_the_packets_of_caf_is_left_out() {
    let folder = TempDir::new().unwrap();
    let noise = "anoisesrc=sample_rate=44100:duration=1:amplitude=0.1:seed=1";
    if !ffmpeg(folder.path(), &["-f", "lavfi", "-i", noise, "-c:a", "alac", "a.caf"]) {
        return;
    }
    let bytes = fs::read(folder.path().join("a.caf")).unwrap();
    let [(whole, ..), _] = all(&bytes);
    let table = bytes.windows(4).position(|name| name == b"pakt").unwrap();
    let body = table + 12;
    let size = u64::from_be_bytes(bytes[table + 4..body].try_into().unwrap()) as usize;
    let padded = |padding: usize, zeros: u8| {
        let size = (size + padding) as u64;
        [&bytes[..table + 4], &size.to_be_bytes(), &bytes[body..body + size as usize - padding]]
            .concat()
            .into_iter()
            .chain(vec![zeros; padding])
            .chain(bytes[body + size as usize - padding..].iter().copied())
            .collect::<Vec<_>>()
    };
    for (padding, zeros) in [(1, 0), (5, 0), (11, 0), (12, 0), (500, 0), (3_000, 0xff)] {
        for (samples, losses, _) in all(&padded(padding, zeros)) {
            assert!(samples == whole && !losses.any(), "{padding}: {} samples, {losses}", samples.len());
        }
    }
    // Encoder delay and padding from the packet table.
    let mut shorter = padded(9, 0);
    shorter[body + 8..body + 16].copy_from_slice(&40_000_u64.to_be_bytes());
    shorter[body + 16..body + 20].copy_from_slice(&1_000_u32.to_be_bytes());
    for (samples, losses, _) in all(&shorter) {
        assert!(samples == whole[1_000..41_000] && !losses.any(), "{} samples, {losses}", samples.len());
    }
}

/// Builds a Matroska element.
fn element(kind: u32, body: &[u8]) -> Vec<u8> {
    let kind = kind.to_be_bytes();
    let start = kind.iter().take_while(|byte| **byte == 0).count();
    [&kind[start..], &(body.len() as u32 | 1 << 28).to_be_bytes(), body].concat()
}

/// Builds a `Tag` element with texts, for a target level and a track, if given.
fn tag(level: Option<u8>, track: Option<u8>, texts: &[(&str, &str)]) -> Vec<u8> {
    let level = level.map_or_else(Vec::new, |level| element(0x68ca, &[level]));
    let track = track.map_or_else(Vec::new, |track| element(0x63c5, &[track]));
    let text = |(name, value): &(&str, &str)| {
        element(0x67c8, &[element(0x45a3, name.as_bytes()), element(0x4487, value.as_bytes())].concat())
    };
    let texts: Vec<u8> = texts.iter().flat_map(text).collect();
    element(0x7373, &[element(0x63c0, &[level, track].concat()), texts].concat())
}

/// Builds a file with tags and two audio tracks: numbers 1 and 2, UIDs 11 and 12. The second is the default track.
fn matroska(tags: &[Vec<u8>]) -> Vec<u8> {
    let format = [element(0xb5, &16_000_f32.to_be_bytes()), element(0x6264, &[16])].concat();
    let track = |number: u8| {
        let parts = [
            element(0xd7, &[number]),
            element(0x73c5, &[10 + number]),
            element(0x83, &[2]),
            element(0x88, &[number - 1]),
            element(0x86, b"A_PCM/INT/LIT"),
            element(0xe1, &format),
        ];
        element(0xae, &parts.concat())
    };
    let information = [element(0x4d80, b"none"), element(0x5741, b"none")].concat();
    let block = |number: u8| element(0xa3, &[&[0x80 | number, 0, 0, 0x80][..], &[7; 640]].concat());
    let parts = [
        element(0x1549_a966, &information),
        element(0x1654_ae6b, &[track(1), track(2)].concat()),
        element(0x1254_c367, &tags.concat()),
        element(0x1f43_b675, &[element(0xe7, &[0]), block(1), block(2)].concat()),
    ];
    [element(0x1a45_dfa3, &element(0x4282, b"matroska")), element(0x1853_8067, &parts.concat())].concat()
}

fn sorted(mut tags: Tags) -> Tags {
    tags.sort();
    tags
}

#[test]
fn tags_of_other_tracks_of_matroska_are_not_taken() {
    let statistics = [
        ("DURATION", "00:00:01.000000000"),
        ("BPS", "256000"),
        ("BPS-eng", "256000"),
        ("NUMBER_OF_FRAMES", "1"),
        ("NUMBER_OF_BYTES", "640"),
        ("_STATISTICS_TAGS", "BPS DURATION"),
        ("ENCODER", "Lavc pcm_s16le"),
    ];
    let file = matroska(&[
        tag(None, None, &[("TITLE", "All"), ("ENCODER", "Lavf"), ("ENCODER_SETTINGS", "kept")]),
        tag(None, Some(11), &[&statistics[..], &[("MOOD", "of the first")]].concat()),
        tag(None, Some(12), &[&statistics[..], &[("MOOD", "of the second")]].concat()),
    ]);
    let expected = owned(&[("ENCODER_SETTINGS", "kept"), ("MOOD", "of the second"), ("TITLE", "All")]);
    let [file, _] = all(&file);
    assert_eq!(sorted(file.2), expected);
    let folder = TempDir::new().unwrap();
    let pictures = "testsrc=size=64x48:rate=10:duration=1";
    let inputs = ["-f", "lavfi", "-i", pictures, "-f", "lavfi", "-i", "sine=duration=1", "-c:v", "mpeg4"];
    let said = [
        "-metadata",
        "title=A title",
        "-metadata:s:v",
        "mood=of the video",
        "-metadata:s:a",
        "mood=of the sound",
    ];
    if !ffmpeg(folder.path(), &[&inputs[..], &said, &["-c:a", "aac", "a.mkv"]].concat()) {
        return;
    }
    let expected = owned(&[("MOOD", "of the sound"), ("TITLE", "A title")]);
    assert_eq!(sorted(tags_of(&folder.path().join("a.mkv"))), expected);
}

#[test]
fn tags_of_matroska_are_named_by_their_level() {
    let album = [("TITLE", "The album"), ("ARTIST", "All"), ("TOTAL_PARTS", "2"), ("GENRE", "Speech")];
    let disc = [("TITLE", "The disc"), ("PART_NUMBER", "1"), ("TOTAL_PARTS", "9"), ("GENRE", "Speech")];
    let track = [("TITLE", "The track"), ("ARTIST", "One"), ("PART_NUMBER", "3")];
    let file = |tags: &[Vec<u8>]| sorted(all(&matroska(tags))[0].2.clone());
    let (album, disc, track) =
        (tag(Some(50), None, &album), tag(Some(40), None, &disc), tag(Some(30), Some(12), &track));
    let of_all = file(&[
        album.clone(),
        disc,
        track.clone(),
        tag(Some(70), None, &[("TITLE", "A series"), ("PART_NUMBER", "4")]),
    ]);
    let expected = [
        ("ALBUM", "The album"),
        ("ALBUMARTIST", "All"),
        ("ARTIST", "One"),
        ("COLLECTION", "A series"),
        ("DISCNUMBER", "1"),
        ("DISCSUBTITLE", "The disc"),
        ("DISCTOTAL", "2"),
        ("GENRE", "Speech"),
        ("TITLE", "The track"),
        ("TRACKNUMBER", "3"),
        ("TRACKTOTAL", "9"),
    ];
    assert_eq!(of_all, owned(&expected));
    // Without discs, the parts of an album are tracks.
    let of_album = file(&[album, track]);
    assert!(of_album.contains(&owned(&[("TRACKTOTAL", "2")])[0]), "{of_album:?}");
    // Writers that set no levels.
    let flat = file(&[tag(None, None, &[("TITLE", "A title"), ("ARTIST", "One"), ("PART_NUMBER", "3")])]);
    assert_eq!(flat, owned(&[("ARTIST", "One"), ("TITLE", "A title"), ("TRACKNUMBER", "3")]));
}
