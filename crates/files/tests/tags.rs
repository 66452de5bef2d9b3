//! Tags in every encoding and place, and whatever else stands behind samples without being one.
//!
//! Some need ffmpeg to make files; without it they say so and do nothing.

mod shared;

use alphamf_files::{Losses, Reader};
use shared::ffmpeg;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use tempfile::TempDir;

/// The first channel from a file and from a stream, with its losses and tags.
fn all(bytes: &[u8]) -> [(Vec<f32>, Losses, Vec<(String, String)>); 2] {
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

fn owned(tags: &[(&str, &str)]) -> Vec<(String, String)> {
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

/// One channel of so many bytes at 8 kHz.
fn format(sample_bytes: u8) -> Vec<u8> {
    let rest = [sample_bytes, 0, 8 * sample_bytes, 0];
    chunk(b"fmt ", &[&b"\x01\x00\x01\x00\x40\x1f\x00\x00\x40\x1f\x00\x00"[..], &rest].concat())
}

fn list(title: &[u8]) -> Vec<u8> {
    chunk(b"LIST", &[&b"INFO"[..], &chunk(b"INAM", title)].concat())
}

#[test]
fn tags_that_are_no_chunks_end_a_wav_file() {
    let id3v1 = |title: &[u8]| [&b"TAG"[..], title, &vec![0; 125 - title.len()]].concat();
    let id3v2 = [&b"ID3\x04\0\0\0\0\0\x14TIT2\0\0\0\x0a\0\0\0A title.."[..], &[0; 10]].concat();
    let ape = [&b"APETAGEX\xd0\x07\0\0\x20\0\0\0\0\0\0\0\0\0\0\x80"[..], &[0; 8]].concat();
    let tags = [
        id3v1(b"A title"),
        // Whose titles look like the length of a chunk.
        id3v1(b"A"),
        id3v1(b"Ab"),
        id3v1(b""),
        id3v2.clone(),
        ape.clone(),
        [&ape[..], &id3v1(b"A title")].concat(),
    ];
    for tag in &tags {
        // With an odd number of bytes, too, with and without the byte behind them.
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
    // More behind it is no tag.
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
            // Those behind the samples of a stream come too late.
            assert_eq!(tags.len(), if number == 0 { 2 } else { 0 }, "{padding}: {tags:?}");
        }
    }
    // What stands behind the byte counts first, and an even number has none.
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
            // Of a download that was never completed, and of a page in the middle.
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
    // Delay and padding of the encoder, by the table.
    let mut shorter = padded(9, 0);
    shorter[body + 8..body + 16].copy_from_slice(&40_000_u64.to_be_bytes());
    shorter[body + 16..body + 20].copy_from_slice(&1_000_u32.to_be_bytes());
    for (samples, losses, _) in all(&shorter) {
        assert!(samples == whole[1_000..41_000] && !losses.any(), "{} samples, {losses}", samples.len());
    }
}
