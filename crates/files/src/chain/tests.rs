//! Tests of chains of recordings.

use super::*;
use std::io::Cursor;
use std::time::{Duration, Instant};

/// Returns this number of bytes at a time.
struct Slow(Cursor<Vec<u8>>, usize);

impl Read for Slow {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = target.len().min(self.1);
        self.0.read(&mut target[..count])
    }
}

#[test]
fn recordings_are_separated_however_they_are_read() {
    let first = [&STARTS[0][..], b"abc fLaC\x01 fLaC"].concat();
    let second = [&STARTS[1][..], b"x"].concat();
    let third = STARTS[0].to_vec();
    for size in 1..40 {
        let bytes = [&first[..], &second, &third].concat();
        let chain = Chain::new(Box::new(Slow(Cursor::new(bytes), size)));
        for expected in [&first, &second, &third] {
            let mut found = Vec::new();
            chain.next().unwrap().read_to_end(&mut found).unwrap();
            assert_eq!(&found, expected, "{size} bytes at a time");
        }
        assert!(chain.next().is_none());
    }
}

#[test]
fn a_tag_at_the_end_is_left_out() {
    let recording = [&STARTS[0][..], &[7; 300]].concat();
    let tag = [&TAG[..], &[1; TAG_BYTES - 3]].concat();
    for size in [1, 7, 127, 128, 1_000] {
        for (bytes, expected) in [
            ([&recording[..], &tag].concat(), recording.clone()),
            ([&recording[..], &tag[..127]].concat(), [&recording[..], &tag[..127]].concat()),
            (recording[..50].to_vec(), recording[..50].to_vec()),
        ] {
            let chain = Chain::new(Box::new(Slow(Cursor::new(bytes), size)));
            let mut found = Vec::new();
            chain.next().unwrap().read_to_end(&mut found).unwrap();
            assert!(found == expected && chain.next().is_none(), "{size} bytes at a time");
        }
    }
}

#[test]
fn tags_behind_and_between_recordings_are_left_out() {
    let id3 =
        |bytes: u8| [&b"ID3\x04\0\0\0\0\x01"[..], &[bytes], &vec![9; 128 + usize::from(bytes)]].concat();
    let size = [92, 0, 0, 0];
    let part =
        |flag: u8| [&b"APETAGEX\xd0\x07\0\0"[..], &size, &[1, 0, 0, 0, 0, 0, 0, flag], &[0; 8]].concat();
    let ape = [&part(0xa0)[..], &[b'x'; 60], &part(0x80)].concat();
    let id3v1 = [&TAG[..], &[1; TAG_BYTES - 3]].concat();
    // Bytes that resemble tags stay.
    let first =
        [&STARTS[0][..], &[7; 300], b"ID3\x04\0\0\0\0\0\x02abcd ID3 ID3\xff APETAGE", &[7; 90]].concat();
    let second = [&STARTS[1][..], b"x"].concat();
    for size in [1, 7, 31, 128, 1_000] {
        for between in [id3(5), ape.clone(), [id3(100), id3(5)].concat(), Vec::new()] {
            for behind in [id3(5), ape.clone(), id3v1.clone(), [&ape[..], &id3v1].concat(), Vec::new()] {
                let bytes = [&first[..], &between, &second, &behind].concat();
                let chain = Chain::new(Box::new(Slow(Cursor::new(bytes), size)));
                for expected in [&first, &second] {
                    let mut found = Vec::new();
                    chain.next().unwrap().read_to_end(&mut found).unwrap();
                    assert!(&found == expected, "{size} bytes at a time: {} bytes", found.len());
                }
                assert!(chain.next().is_none());
            }
        }
    }
}

#[test]
fn the_last_frame_is_known_by_its_checksum() {
    let checksum = |bytes: &[u8]| {
        bytes.iter().fold(0_u16, |sum, byte| {
            (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| {
                sum << 1 ^ if sum >> 15 == 1 { 0x8005 } else { 0 }
            })
        })
    };
    for length in 0..50_u8 {
        let body: Vec<u8> = (0..length).map(|n| n.wrapping_mul(89) ^ length).collect();
        let frame = [&[0xff, 0xf8 + length % 2][..], &body].concat();
        let whole = [&frame[..], &checksum(&frame).to_be_bytes()].concat();
        assert!(ends_with_frame(&whole) && ends_with_frame(&[b"before \xff\xf8", &whole[..]].concat()));
        assert!(!ends_with_frame(&whole[..whole.len() - 1]) && !ends_with_frame(&whole[1..]));
        let more = [&whole[..], b"\r\n and more"].concat();
        assert_eq!((bytes_after_frame(&more, 11), bytes_after_frame(&more, 9)), (Some(11), None));
    }
    assert!(!ends_with_frame(&[]) && !ends_with_frame(&[0xff]));
}

/// Code that takes quadratic time takes minutes here.
#[test]
fn much_that_looks_like_something_else_takes_no_longer() {
    let starts_of_frames = [0xff, 0xf8].repeat(1 << 17);
    // Tags that extend beyond the end, and tags that nothing valid follows.
    let tags = [[0, 0, 9, 0], [1, 0, 0, 0]].map(|length| [&b"ID3\x04\0\0"[..], &length].concat());
    for looks_alike in [starts_of_frames, tags[0].repeat(1 << 17), tags[1].repeat(1 << 17)] {
        let bytes = [&STARTS[0][..], &[7; 300], &looks_alike].concat();
        let start = Instant::now();
        let chain = Chain::new(Box::new(Cursor::new(bytes.clone())));
        let mut found = Vec::new();
        chain.next().unwrap().read_to_end(&mut found).unwrap();
        // By chance, some of the starts may begin a frame.
        let _ = chain.ends_within_frame();
        assert!(found == bytes, "{} of {} bytes", found.len(), bytes.len());
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
}
