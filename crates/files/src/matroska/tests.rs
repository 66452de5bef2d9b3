//! Tests of the elements of Matroska.

use super::*;
use std::io::Cursor;

fn element(kind: u32, body: &[u8]) -> Vec<u8> {
    let kind = kind.to_be_bytes();
    let start = kind.iter().take_while(|byte| **byte == 0).count();
    [&kind[start..], &[0x40 | (body.len() >> 8) as u8, body.len() as u8], body].concat()
}

#[test]
fn the_title_is_found_before_the_samples_alone() {
    let information = element(INFO, &[element(0x2a_d7b1, &[1; 3]), element(TITLE, b"A title\0")].concat());
    let header = element(HEADER, &[7; 300]);
    let file = |parts: &[&[u8]]| [header.clone(), element(SEGMENT, &parts.concat())].concat();
    let found = |file: Vec<u8>| About::read(&mut Cursor::new(file)).title;
    let whole = file(&[&element(0xec, &[0; 40]), &information, &element(CLUSTER, &[0; 9])]);
    assert_eq!(found(whole.clone()).as_deref(), Some("A title"));
    assert_eq!(found(file(&[&element(CLUSTER, &[0; 9]), &information])), None);
    // Of unknown length, as in a stream.
    let stream = [&header, &[0x18, 0x53, 0x80, 0x67, 0x01][..], &[0xff; 7], &information].concat();
    assert!(About::read(&mut Cursor::new(&stream)).is_open);
    assert_eq!(found(stream).as_deref(), Some("A title"));
}

#[test]
fn what_is_cut_off_or_made_up_has_no_title() {
    let whole =
        [element(HEADER, &[]), element(SEGMENT, &element(INFO, &element(TITLE, b"A title")))].concat();
    for length in 0..whole.len() {
        assert_eq!(About::read(&mut Cursor::new(&whole[..length])), About::default(), "{length} bytes");
    }
    for rest in
        [&[0; 16][..], &[0xff; 16], &[0x01; 16], &[0xec, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]]
    {
        let file = [&element(HEADER, &[]), rest].concat();
        assert_eq!(About::read(&mut Cursor::new(file)), About::default());
    }
    // Empty elements without end.
    let many = [element(HEADER, &[]), [0xec, 0x80].repeat(MAX_ELEMENTS), element(TITLE, b"A")].concat();
    assert_eq!(About::read(&mut Cursor::new(many)), About::default());
}

#[test]
fn an_end_within_an_element_is_noticed() {
    let open = |kind: u32| [&kind.to_be_bytes()[..], &[1, 255, 255, 255, 255, 255, 255, 255]].concat();
    let blocks = [element(0xe7, &[0]), element(0xa3, &[7; 300])];
    let parts = [element(HEADER, &[1; 9]), open(SEGMENT), element(INFO, &[]), open(CLUSTER)];
    let whole = [&parts.concat(), &blocks.concat(), &open(CLUSTER), &blocks.concat()[..]].concat();
    let ends: Vec<usize> = (0..=whole.len())
        .filter(|&length| {
            let mut elements = Elements::default();
            whole[..length].chunks(7).for_each(|bytes| elements.push(bytes));
            let mut of_one = Elements::default();
            of_one.push(&whole[..length]);
            assert_eq!(elements.is_within(), of_one.is_within());
            !elements.is_within()
        })
        .collect();
    // The parts, then twice a cluster's two blocks, and the cluster between.
    assert_eq!(ends.len(), 1 + 4 + 2 + 1 + 2, "{ends:?}");
    assert!(!About::read(&mut Cursor::new(&whole)).is_cut);
    assert!(About::read(&mut Cursor::new(&whole[..whole.len() - 1])).is_cut);
    let mut garbage = Elements::default();
    garbage.push(&[0; 40]);
    assert!(!garbage.is_within());
}

#[test]
fn what_stands_among_the_elements_is_noticed() {
    let cluster = element(CLUSTER, &[element(0xe7, &[0]), element(0xa3, &[7; 300])].concat());
    let open = [&CLUSTER.to_be_bytes()[..], &[0xff], &element(0xa3, &[7; 300])].concat();
    let is_cut = |parts: &[&[u8]], behind: &[u8]| {
        let segment = element(SEGMENT, &[&element(INFO, &[]), &parts.concat()[..]].concat());
        About::read(&mut Cursor::new([&element(HEADER, &[]), &segment, behind].concat())).is_cut
    };
    let void = element(0xec, &[0; 30]);
    for parts in [&[&cluster[..], &cluster, &void][..], &[&cluster], &[&open, &open, &void], &[&void]] {
        assert!(!is_cut(parts, &[]) && !is_cut(parts, &[0xff; 99]));
    }
    // Bytes that resemble an element of a megabyte, and bytes that resemble none.
    for other in [&[0xa3, 0x10, 0x10, 0, 0, 1, 2, 3][..], &[0; 9]] {
        assert!(is_cut(&[&cluster, other, &cluster], &[]) && is_cut(&[&open, &cluster, other, &void], &[]));
    }
}

#[test]
fn a_file_is_read_to_its_end_once() {
    struct Counting(Cursor<Vec<u8>>, usize);
    impl Read for Counting {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            let count = self.0.read(target)?;
            self.1 += count;
            Ok(count)
        }
    }
    impl Seek for Counting {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }
    let segments = [&SEGMENT.to_be_bytes()[..], &[0xff]].concat().repeat(9_000);
    let bytes = [element(HEADER, &[]), segments].concat();
    let length = bytes.len();
    let mut file = Counting(Cursor::new(bytes), 0);
    assert!(About::read(&mut file).is_open);
    assert!(file.1 <= 3 * length, "{} bytes of {length}", file.1);
}

/// A track without a flag is a default one (RFC 9559, section 5.1.4.1.6).
#[test]
fn the_default_audio_track_is_found() {
    let found = |tracks: &[(u8, Option<u8>)]| {
        let track = |(number, &(kind, mark)): (u8, &(u8, Option<u8>))| {
            let mark = mark.map(|mark| element(FLAG_DEFAULT, &[mark])).unwrap_or_default();
            element(TRACK, &[element(TRACK_NUMBER, &[number]), element(TRACK_TYPE, &[kind]), mark].concat())
        };
        let tracks: Vec<_> = (1_u8..).zip(tracks).map(track).collect();
        let whole = [element(HEADER, &[]), element(SEGMENT, &element(TRACKS, &tracks.concat()))].concat();
        About::read(&mut Cursor::new(&whole)).default_audio()
    };
    assert_eq!(found(&[(1, None), (2, None), (2, Some(1))]), Some(2));
    assert_eq!(found(&[(1, Some(1)), (2, Some(0)), (2, None)]), Some(3));
    assert_eq!(found(&[(2, Some(0)), (2, Some(1)), (2, Some(1))]), Some(2));
    assert_eq!(found(&[(1, None), (2, Some(0))]), None);
}

#[test]
fn compressed_tracks_are_noticed() {
    let track = |number: u8, rest: &[u8]| {
        element(TRACK, &[&element(TRACK_NUMBER, &[number])[..], &element(0x83, &[2]), rest].concat())
    };
    let compression = element(CONTENT_ENCODINGS, &element(0x6240, &element(0x5034, &[])));
    let tracks = [track(1, &[]), track(2, &compression), track(3, &element(CONTENT_ENCODINGS, &[]))];
    let whole = [element(HEADER, &[]), element(SEGMENT, &element(TRACKS, &tracks.concat()))].concat();
    let about = About::read(&mut Cursor::new(&whole));
    assert_eq!([1, 2, 3, 4].map(|track| about.is_encoded(track)), [false, true, false, false]);
}

#[test]
fn the_ends_of_tracks_are_found() {
    let track = |number: u8, uid: u8| {
        element(TRACK, &[element(TRACK_NUMBER, &[number]), element(TRACK_UID, &[0, uid])].concat())
    };
    let tag = |uid: u8, name: &[u8], text: &[u8]| {
        let simple = element(SIMPLE_TAG, &[element(TAG_NAME, name), element(TAG_TEXT, text)].concat());
        element(TAG, &[element(TARGETS, &element(TARGET_TRACK, &[uid])), simple].concat())
    };
    let tags = [tag(7, b"DURATION", b"00:01:04.250000000\0"), tag(9, b"ENCODER", b"00:00:01")];
    let parts = [element(TRACKS, &[track(1, 7), track(2, 9)].concat()), element(TAGS, &tags.concat())];
    let whole = [element(HEADER, &[]), element(SEGMENT, &parts.concat())].concat();
    let about = About::read(&mut Cursor::new(&whole));
    assert_eq!((about.seconds_of(1), about.seconds_of(2), about.seconds_of(3)), (Some(64.25), None, None));
    for length in 0..whole.len() {
        assert!(About::read(&mut Cursor::new(&whole[..length])).ends.is_empty() || length > whole.len() / 2);
    }
    assert_eq!((seconds("1:2"), seconds("1:2:x"), seconds("1:1:1e999")), (None, None, None));
}
