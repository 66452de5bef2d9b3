//! Tests of the pages of Ogg.

use super::*;
use std::io::Cursor;

fn page(track: u32, granule: i64) -> Vec<u8> {
    [&CAPTURE[..], &[0, 0], &granule.to_le_bytes(), &track.to_le_bytes(), &[7; 20]].concat()
}

#[test]
fn the_last_page_of_each_track_counts() {
    let file = [page(1, 960), page(2, 5), page(1, 1_920), page(1, -1), vec![0; 9]].concat();
    let granules = |file: &[u8]| end(&mut Cursor::new(file)).unwrap().granules;
    assert_eq!(granules(&file), BTreeMap::from([(1, 1_920), (2, 5)]));
    for length in 0..file.len() {
        end(&mut Cursor::new(&file[..length])).unwrap();
    }
    let long = [page(1, 3), vec![0; 1 << 18], page(1, 99)].concat();
    assert_eq!(granules(&long), BTreeMap::from([(1, 99)]));
    assert!(granules(&file[1..]).is_empty());
}

/// A page of segments of these sizes.
fn whole_page(marks: u8, granule: i64, track: u32, number: u32, sizes: &[u8]) -> Vec<u8> {
    let mut page = [&CAPTURE[..], &[0, marks], &granule.to_le_bytes(), &track.to_le_bytes()].concat();
    page.extend([&number.to_le_bytes()[..], &[0; 4], &[sizes.len() as u8], sizes].concat());
    page.extend(sizes.iter().flat_map(|&size| vec![7; usize::from(size)]));
    let mut sum = Crc32::new(0);
    sum.process_buf_bytes(&page);
    page[22..26].copy_from_slice(&sum.crc().to_le_bytes());
    page
}

#[test]
fn zeros_behind_the_last_page_are_found() {
    let pages = [whole_page(2, 0, 1, 0, &[19]), whole_page(4, 7, 1, 1, &[9])].concat();
    for sound in [7, 0] {
        let mut pages = pages.clone();
        // The end of the last packet.
        let end_of_pages = pages.len();
        pages[end_of_pages - 5..].fill(sound);
        for zeros in [0, 1, 100, 1 << 17, 300_000] {
            let file = [&pages[..], &vec![0; zeros]].concat();
            let found = end(&mut Cursor::new(&file)).unwrap();
            assert_eq!(found.granules, BTreeMap::from([(1, 7)]));
            assert_eq!(found.zeros_from, Some(end_of_pages as u64).filter(|_| zeros > 0), "{zeros}");
        }
        assert_eq!(end(&mut Cursor::new([&pages[..], b"\0\0more"].concat())).unwrap().zeros_from, None);
    }
    assert_eq!(end(&mut Cursor::new([&CAPTURE[..], &[0; 90_000]].concat())).unwrap().granules.len(), 1);
}

#[test]
fn holes_between_pages_are_noted() {
    let pages = [
        whole_page(2, 0, 1, 0, &[19]),
        whole_page(0, 0, 1, 1, &[50]),
        whole_page(0, 100, 1, 2, &[9, 9]),
        whole_page(2, 0, 2, 0, &[19]),
        whole_page(0, 200, 1, 3, &[9, 255]),
        whole_page(1, -1, 1, 4, &[255]),
        whole_page(1, 300, 1, 5, &[9, 9]),
        whole_page(0, 900, 2, 1, &[9]),
        whole_page(4, 350, 1, 6, &[9]),
    ];
    let holes = |lost: &[usize], damaged: Option<usize>, step: usize| {
        let left: Vec<_> = (0..pages.len()).filter(|number| !lost.contains(number)).collect();
        let mut bytes: Vec<u8> = b"OggSjunkOg".to_vec();
        for number in left {
            let start = bytes.len();
            bytes.extend(&pages[number]);
            if damaged == Some(number) {
                bytes[start + 6] ^= 1;
            }
        }
        let found = Arc::<Holes>::default();
        let mut source = Pages::new(Cursor::new(&bytes), Arc::clone(&found));
        let mut passed = vec![0; bytes.len() + 1];
        let mut count = 0;
        loop {
            let end = passed.len().min(count + step);
            match source.read(&mut passed[count..end]).unwrap() {
                0 => break,
                more => count += more,
            }
        }
        assert_eq!(passed[..count], bytes);
        drop(source);
        Arc::into_inner(found).unwrap().0.into_inner().unwrap().into_iter().collect::<Vec<_>>()
    };
    for step in [1, 7, 100, 10_000] {
        assert_eq!(holes(&[], None, step), []);
        assert_eq!(holes(&[2], None, step), [((1, 0), 200)]);
        assert_eq!(holes(&[4], None, step), [((1, 100), 300)]);
        assert_eq!(holes(&[], Some(4), step), [((1, 100), 300)]);
        assert_eq!(holes(&[6], None, step), [((1, 200), 350)]);
        assert_eq!(holes(&[5], None, step), [((1, 200), 300)]);
        assert_eq!(holes(&[3, 7, 8], None, step), []);
        assert_eq!(holes(&[0, 1], None, step), []);
    }
    let found = Holes(Mutex::new(BTreeMap::from([((1, 5), 9)])));
    assert_eq!((found.take(2, 5), found.take(1, 4), found.take(1, 5)), (None, None, Some(9)));
    assert_eq!(found.take(1, 5), None);
}

#[test]
fn tracks_and_holes_take_no_memory_by_their_number() {
    let count = MAX_KEPT as u32 + 100;
    // The page numbers of a track skip one.
    let pages =
        |track: u32| [0, 1, 3].map(|number| whole_page(0, i64::from(number), track, number, &[1])).concat();
    let bytes: Vec<u8> = (0..count).rev().flat_map(pages).collect();
    let holes = Arc::<Holes>::default();
    let mut source = Pages::new(Cursor::new(bytes), Arc::clone(&holes));
    io::copy(&mut source, &mut io::sink()).unwrap();
    assert_eq!((source.last.len(), holes.0.lock().unwrap().len()), (MAX_KEPT, MAX_KEPT));
    assert_eq!(holes.take(0, 1), Some(3), "the last one");
}
