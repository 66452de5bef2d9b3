//! Tests of the declarations of CAF.

use super::*;
use crate::source::Patched;
use std::io::Cursor;

fn chunk(name: &[u8; 4], size: u64, body: &[u8]) -> Vec<u8> {
    [&name[..], &size.to_be_bytes(), body].concat()
}

#[test]
fn the_size_of_what_is_left_stands_in_place_of_the_declared_one() {
    let whole = [b"caff\0\x01\0\0".to_vec(), chunk(b"data", 100, &[7; 40])].concat();
    let expected = [b"caff\0\x01\0\0".to_vec(), chunk(b"data", 40, &[7; 40])].concat();
    for step in 1..whole.len() {
        let mut patched = Patched::new(Cursor::new(&whole), 12, size_to_end(12, whole.len() as u64)).unwrap();
        let mut found: Vec<u8> = Vec::new();
        let mut block = vec![0; step];
        loop {
            let count = patched.read(&mut block).unwrap();
            if count == 0 {
                break;
            }
            found.extend(&block[..count]);
        }
        assert_eq!(found, expected, "{step} bytes at a time");
        patched.seek(SeekFrom::Start(14)).unwrap();
        let mut rest = [0; 6];
        patched.read_exact(&mut rest).unwrap();
        assert_eq!(rest, expected[14..20]);
    }
}

#[test]
fn packets_beyond_the_file_are_noticed() {
    let description = |bytes: u32, samples: u32| {
        let rest = [&bytes.to_be_bytes()[..], &samples.to_be_bytes(), &[0; 8]].concat();
        chunk(b"desc", 32, &[&[0; 16][..], &rest].concat())
    };
    let excess = |description: Vec<u8>, table: &[u8]| {
        let table = [&[0, 0, 0, 0, 0, 0, 0, 9][..], &[0; 16], table].concat();
        let parts = [description, chunk(b"pakt", table.len() as u64, &table), chunk(b"data", 9, &[0; 9])];
        declarations(&mut Cursor::new([b"caff\0\x01\0\0".to_vec(), parts.concat()].concat())).unwrap().excess
    };
    assert!(!excess(description(0, 64), &[7, 0x80, 9]) && excess(description(0, 64), &[7, 0x90, 0x80, 0]));
    // The second number of each entry is the number of its samples.
    assert!(!excess(description(0, 0), &[7, 0x90, 0x80, 0]));
    assert!(!excess(description(2, 1), &[]) && excess(description(1 << 20, 1), &[]));
}

#[test]
fn known_layouts_have_speaker_positions() {
    let mask = |layout: u32, bitmap: u32| {
        let body = [layout.to_be_bytes(), bitmap.to_be_bytes(), [0; 4]].concat();
        let file = [b"caff\0\x01\0\0".to_vec(), chunk(b"chan", 12, &body)].concat();
        declarations(&mut Cursor::new(file)).unwrap().channel_mask
    };
    assert_eq!((mask(BITMAP_LAYOUT, 0x60f), mask(121 << 16 | 6, 0)), (Some(0x60f), Some(0x3f)));
    // Centre, left, right and so on.
    assert_eq!(mask(124 << 16 | 6, 0), None);
}

#[test]
fn delay_and_length_are_those_of_the_packet_table() {
    let table =
        [&7_i64.to_be_bytes()[..], &5_000_i64.to_be_bytes(), &2_112_i32.to_be_bytes(), &[0; 4]].concat();
    let description = chunk(b"desc", 32, &[0; 32]);
    let parts = [b"caff\0\x01\0\0".to_vec(), description, chunk(b"pakt", 24, &table)];
    let found = declarations(&mut Cursor::new(parts.concat())).unwrap();
    assert_eq!((found.valid, found.priming, found.has_packet_table), (Some(5_000), 2_112, true));
}

#[test]
fn lengths_and_tags_are_read() {
    let information = b"\0\0\0\x02title\0A title\0track number\x003\0empty\0\0";
    let start = [b"caff\0\x01\0\0".to_vec(), chunk(b"info", information.len() as u64, information)].concat();
    let of = |data: &[u8]| declarations(&mut Cursor::new([&start, data].concat())).unwrap();
    let found = of(&chunk(b"data", 100, &[0; 40]));
    assert_eq!(found.length, Some(start.len() as u64 + 12 + 100));
    let expected = [("TITLE", "A title"), ("TRACKNUMBER", "3")];
    assert_eq!(found.tags, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(found.size_at, Some(start.len() as u64 + 4));
    for open in [u64::MAX, u64::MAX - 1, 1 << 60] {
        let found = of(&chunk(b"data", open, &[0; 40]));
        assert!(found.length.is_none() && found.is_open && found.size_at.is_some());
    }
    for length in 0..start.len() {
        assert!(declarations(&mut Cursor::new(&start[..length])).unwrap().tags.len() < 3);
    }
}
