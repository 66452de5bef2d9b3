//! MP4 files built box by box: many tracks, samples out of order, missing fragments.

use alphamf_files::{Error, Losses, ReadError, Reader};
use std::io::Cursor;
use std::time::{Duration, Instant};

/// Samples of a complete file: 16 bits, one channel, 16 kHz.
const LENGTH: usize = 16_000;

fn boxed(name: &[u8; 4], parts: &[Vec<u8>]) -> Vec<u8> {
    let body = parts.concat();
    [&(body.len() as u32 + 8).to_be_bytes(), &name[..], &body].concat()
}

/// Builds a box: flags, numbers, and the remaining bytes.
fn full(name: &[u8; 4], flags: u32, values: &[u32], rest: &[u8]) -> Vec<u8> {
    boxed(name, &[numbers(&[flags]), numbers(values), rest.to_vec()])
}

fn numbers(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

fn samples() -> Vec<i16> {
    (0..LENGTH).map(|n| (3_000.0 * (n as f32 / 5.0).sin()) as i16 + 1).collect()
}

fn bytes(samples: &[i16]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

fn matrix() -> Vec<u8> {
    numbers(&[1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30])
}

/// Builds a track with one sample per packet: `durations` as pairs of count and duration, offsets of `chunks`, and
/// `of_each` samples per chunk.
fn track(kind: &[u8; 4], id: u32, durations: &[[u32; 2]], chunks: &[u32], of_each: u32) -> Vec<u8> {
    let count: u32 = durations.iter().map(|[count, _]| count).sum();
    let format = [&[0; 6][..], &[0, 1], &[0; 8], &[0, 1, 0, 16, 0, 0, 0, 0]].concat();
    let entry = boxed(b"sowt", &[format, numbers(&[16_000 << 16])]);
    let table = boxed(
        b"stbl",
        &[
            full(b"stsd", 0, &[1], &entry),
            full(b"stts", 0, &[&[durations.len() as u32], &durations.concat()[..]].concat(), &[]),
            full(b"stsc", 0, &[1, 1, of_each, 1], &[]),
            full(b"stsz", 0, &[2, count], &[]),
            full(b"stco", 0, &[&[chunks.len() as u32], chunks].concat(), &[]),
        ],
    );
    let data = boxed(b"dinf", &[full(b"dref", 0, &[1], &full(b"url ", 1, &[], &[]))]);
    let minf = boxed(b"minf", &[full(b"smhd", 0, &[0], &[]), data, table]);
    let header = full(b"mdhd", 0, &[0, 0, 16_000, count], &[0x55, 0xc4, 0, 0]);
    let handler = full(b"hdlr", 0, &[0], &[&kind[..], &[0; 12], b"x\0"].concat());
    let mdia = boxed(b"mdia", &[header, handler, minf]);
    let place = [&[0; 8][..], &matrix(), &[0; 8]].concat();
    boxed(b"trak", &[full(b"tkhd", 3, &[0, 0, id, 0, count, 0, 0], &place), mdia])
}

/// Offset of the samples in a file.
const START: u32 = 28;

/// Builds a file of samples and tracks, with `behind` at the end of its index.
fn file(samples: &[u8], tracks: &[Vec<u8>], behind: &[Vec<u8>]) -> Vec<u8> {
    let rest = [&[1, 0][..], &[0; 10], &matrix(), &[0; 24], &[0, 0, 0, 9]].concat();
    let header = full(b"mvhd", 0, &[0, 0, 16_000, 0, 1 << 16], &rest);
    let kind = boxed(b"ftyp", &[b"qt  \0\0\0\0qt  ".to_vec()]);
    let index = boxed(b"moov", &[header, tracks.concat(), behind.concat()]);
    [kind, boxed(b"mdat", &[samples.to_vec()]), index].concat()
}

fn read(file: &[u8]) -> Result<(Vec<i16>, Losses), Error> {
    let mut reader = Reader::from_seekable("file", Cursor::new(file.to_vec()))?;
    let mut samples = Vec::new();
    loop {
        let block = reader.read_block(10_000)?;
        if block[0].is_empty() {
            return Ok((samples, reader.losses()));
        }
        samples.extend(block[0].iter().map(|sample| (sample * 32_768.0) as i16));
    }
}

fn is_unsupported(file: &[u8]) -> bool {
    matches!(read(file), Err(Error::Read { reason: ReadError::Unsupported(_), .. }))
}

#[test]
fn samples_out_of_order_are_not_read_from_the_wrong_places() {
    let samples = samples();
    let whole = [[LENGTH as u32, 1]];
    let in_order = track(b"soun", 1, &whole, &[START, START + 16_000], 8_000);
    assert!(read(&file(&bytes(&samples), &[in_order], &[])).unwrap().0 == samples);
    let reversed = track(b"soun", 1, &whole, &[START + 16_000, START], 8_000);
    let data = [&samples[8_000..], &samples[..8_000]].concat();
    assert!(is_unsupported(&file(&bytes(&data), &[reversed], &[])));
}

#[test]
fn other_tracks_are_left_out() {
    let samples = samples();
    let sound = |id: u32, from: u32| track(b"soun", id, &[[LENGTH as u32, 1]], &[from], LENGTH as u32);
    // A video track whose frame durations alternate, so that its table has an entry for every frame.
    let durations: Vec<_> = (0..200_000).map(|n| [1, n % 2]).collect();
    let pictures = track(b"vide", 2, &durations, &[START], 200_000);
    let many: Vec<_> = (1..2_000).map(|id| sound(id, if id == 1 { START } else { START + 2 })).collect();
    for (tracks, others) in
        [(vec![pictures, sound(1, START)], 0), (vec![sound(1, START), sound(1, START + 2)], 1), (many, 1_998)]
    {
        let start = Instant::now();
        let file = file(&bytes(&samples), &tracks, &[]);
        let (found, losses) = read(&file).unwrap();
        assert!(found == samples && !losses.any(), "{} samples, {losses}", found.len());
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        let reader = Reader::from_seekable("file", Cursor::new(file)).unwrap();
        assert_eq!(reader.other_tracks(), others);
    }
}

#[test]
fn a_missing_fragment_is_silent() {
    let samples = samples();
    let fragment = |number: usize| {
        let part = |place: u32| {
            let parts = [
                full(b"tfhd", 0x2_0000, &[1], &[]),
                full(b"tfdt", 0, &[number as u32 * 2_000], &[]),
                full(b"trun", 1, &[2_000, place], &[]),
            ];
            boxed(b"moof", &[full(b"mfhd", 0, &[number as u32 + 1], &[]), boxed(b"traf", &parts)])
        };
        let data = bytes(&samples[number * 2_000..][..2_000]);
        [part(part(0).len() as u32 + 8), boxed(b"mdat", &[data])].concat()
    };
    let defaults = boxed(b"mvex", &[full(b"trex", 0, &[1, 1, 1, 2, 0], &[])]);
    let start = file(&[], &[track(b"soun", 1, &[], &[], 1)], &[defaults]);
    let of = |numbers: &[usize]| {
        let fragments: Vec<_> = numbers.iter().map(|&number| fragment(number)).collect();
        read(&[start.clone(), fragments.concat()].concat()).unwrap()
    };
    let (whole, losses) = of(&[0, 1, 2, 3, 4, 5, 6, 7]);
    assert!(whole == samples && !losses.any(), "{} samples, {losses}", whole.len());
    for lost in [vec![3], vec![3, 4], vec![2, 5]] {
        let there: Vec<_> = (0..8).filter(|number| !lost.contains(number)).collect();
        let (found, losses) = of(&there);
        let mut expected = samples.clone();
        lost.iter().for_each(|number| expected[number * 2_000..][..2_000].fill(0));
        assert!(found == expected, "{lost:?}: {} samples, {losses}", found.len());
        assert_eq!(losses.silent_samples, 2_000 * lost.len() as u64);
        assert_eq!(losses.damaged_packets, if lost == [3, 4] { 1 } else { lost.len() as u64 });
    }
    // A live stream from its fifth fragment.
    assert!(of(&[4, 5, 6, 7]).0 == samples[8_000..]);
}
