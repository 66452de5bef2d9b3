//! Tables and headers of MP4.

use crate::source::{array, array_at};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

/// The name of free space.
pub(super) const FREE: u64 = u32::from_be_bytes(*b"free") as u64;

/// Codecs of QuickTime whose samples are big-endian unless a box of this name and content says otherwise (QuickTime File Format,
/// sound sample descriptions); the demuxer takes all of them for little-endian.
pub(super) const BIG_ENDIAN: [&[u8; 4]; 4] = [b"in24", b"in32", b"fl32", b"fl64"];
const LITTLE_ENDIAN: &[u8; 6] = b"enda\0\x01";

/// A table of the durations of packets: how many entries it has, the steps of the demuxer, which begins anew for every packet,
/// and the sum of all.
#[derive(Default)]
pub(super) struct Durations {
    pub(super) entries: u64,
    pub(super) steps: u64,
    pub(super) total: u64,
}

/// Edits that are not empty.
#[derive(Default)]
pub(super) struct Edits {
    pub(super) count: u32,
    /// Of the first: its start in units of the track, its duration in those of the whole, and its rate.
    pub(super) media_time: Option<u64>,
    pub(super) duration: u64,
    pub(super) rate: u32,
}

/// The place and the bytes that make a box as long as what is there of it: samples stay what they are, a part of an index
/// is skipped.
pub(super) fn cut_box(header: &[u8; 8], start: u64, header_bytes: u64, length: u64) -> (u64, [u8; 8]) {
    if header_bytes == 16 {
        return (start + 8, length.to_be_bytes());
    }
    let name = if header[4..] == *b"mdat" { u32::from_be_bytes(*b"mdat").into() } else { FREE };
    (start, (length << 32 | name).to_be_bytes())
}

/// Units a second and duration in the header of a file or a track.
pub(super) fn header_times(file: &mut (impl Read + Seek)) -> io::Result<(u32, Option<u64>)> {
    let version = array::<4>(file)?[0];
    file.seek(SeekFrom::Current(if version == 1 { 16 } else { 8 }))?;
    Ok((u32::from_be_bytes(array(file)?), duration(file, version)?))
}

/// A duration in a box of this version, if it is known.
pub(super) fn duration(file: &mut impl Read, version: u8) -> io::Result<Option<u64>> {
    let (units, unknown) = match version {
        1 => (u64::from_be_bytes(array(file)?), u64::MAX),
        _ => (u32::from_be_bytes(array(file)?).into(), u32::MAX.into()),
    };
    Ok(Some(units).filter(|&units| units != unknown))
}

/// Whether the samples of the first codec of a description are big-endian and not taken for such.
pub(super) fn is_big_endian(description: &[u8]) -> bool {
    let Some(entry) = description.get(8..) else { return false };
    BIG_ENDIAN.iter().any(|name| entry.get(4..8) == Some(&name[..]))
        && !entry.windows(LITTLE_ENDIAN.len()).any(|window| window == LITTLE_ENDIAN)
}

/// The body of a box, whose start is the present position.
pub(super) fn within(file: &mut impl Read, body: &Range<u64>) -> impl Read {
    BufReader::new(file.take(body.end - body.start))
}

/// The edits that are not empty.
pub(super) fn edits(file: &mut impl Read) -> io::Result<Edits> {
    let version = array::<4>(file)?[0];
    let entries = u32::from_be_bytes(array(file)?);
    let mut edits = Edits::default();
    for _ in 0..entries {
        let (duration, media_time) = if version == 1 {
            let entry: [u8; 16] = array(file)?;
            (u64::from_be_bytes(array_at(&entry, 0)), i64::from_be_bytes(array_at(&entry, 8)))
        } else {
            let entry: [u8; 8] = array(file)?;
            (u32_at(&entry, 0).into(), u32_at(&entry, 4).cast_signed().into())
        };
        let rate = u32::from_be_bytes(array(file)?);
        // An empty edit has -1.
        let Ok(media_time) = u64::try_from(media_time) else { continue };
        edits.count += 1;
        if edits.count == 1 {
            (edits.media_time, edits.duration, edits.rate) = (Some(media_time), duration, rate);
        }
    }
    Ok(edits)
}

/// A table of durations.
pub(super) fn durations(file: &mut impl Read) -> io::Result<Durations> {
    let entries = u64::from(u32_at(&array::<8>(file)?, 4));
    let mut durations = Durations { entries, ..Durations::default() };
    for entry in 1..=entries {
        let numbers: [u8; 8] = array(file)?;
        let (packets, of_each) = (u64::from(u32_at(&numbers, 0)), u64::from(u32_at(&numbers, 4)));
        durations.steps = durations.steps.saturating_add(packets * entry);
        durations.total = durations.total.saturating_add(packets * of_each);
    }
    Ok(durations)
}

/// Whether one of the places in a table, of so many bytes each, is not behind the one before it.
pub(super) fn falls_back<const BYTES: usize>(file: &mut impl Read) -> io::Result<bool> {
    let count = u32_at(&array::<8>(file)?, 4);
    let mut last = None;
    for _ in 0..count {
        let place: [u8; BYTES] = array(file)?;
        if last.replace(place) >= Some(place) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array_at(bytes, at))
}
