//! Tables and headers of MP4.

use crate::source::{array, array_at};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

/// Name of a box of free space.
pub(super) const FREE: u64 = u32::from_be_bytes(*b"free") as u64;

/// QuickTime codecs whose samples are big-endian, unless a box has the name and content of [`LITTLE_ENDIAN`] (QuickTime
/// File Format, sound sample descriptions). The demuxer reads all of them as little-endian.
pub(super) const BIG_ENDIAN: [&[u8; 4]; 4] = [b"in24", b"in32", b"fl32", b"fl64"];
const LITTLE_ENDIAN: &[u8; 6] = b"enda\0\x01";

/// A table of packet durations: number of entries, steps of the demuxer, which restarts for every packet, and sum of
/// the durations.
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
    /// First edit: start in units of the track, duration in units of the file, and rate.
    pub(super) media_time: Option<u64>,
    pub(super) duration: u64,
    pub(super) rate: u32,
}

/// Returns a patch (position and bytes) that shortens a truncated box to `length`. With a header of 8 bytes, a box
/// other than samples becomes free space, which is skipped.
pub(super) fn cut_box(header: &[u8; 8], start: u64, header_bytes: u64, length: u64) -> (u64, [u8; 8]) {
    if header_bytes == 16 {
        return (start + 8, length.to_be_bytes());
    }
    let name = if header[4..] == *b"mdat" { u32::from_be_bytes(*b"mdat").into() } else { FREE };
    (start, (length << 32 | name).to_be_bytes())
}

/// Reads the units per second and the duration from the header of a file or a track.
pub(super) fn header_times(file: &mut (impl Read + Seek)) -> io::Result<(u32, Option<u64>)> {
    let version = array::<4>(file)?[0];
    file.seek(SeekFrom::Current(if version == 1 { 16 } else { 8 }))?;
    Ok((u32::from_be_bytes(array(file)?), duration(file, version)?))
}

/// Reads a duration from a box of this version; `None` if it is unknown.
pub(super) fn duration(file: &mut impl Read, version: u8) -> io::Result<Option<u64>> {
    let (units, unknown) = match version {
        1 => (u64::from_be_bytes(array(file)?), u64::MAX),
        _ => (u32::from_be_bytes(array(file)?).into(), u32::MAX.into()),
    };
    Ok(Some(units).filter(|&units| units != unknown))
}

/// Whether the samples of the first codec in a description are big-endian, although the demuxer reads them as
/// little-endian.
pub(super) fn is_big_endian(description: &[u8]) -> bool {
    let Some(entry) = description.get(8..) else { return false };
    BIG_ENDIAN.iter().any(|name| entry.get(4..8) == Some(&name[..]))
        && !entry.windows(LITTLE_ENDIAN.len()).any(|window| window == LITTLE_ENDIAN)
}

/// Reader of the body of a box, which starts at the current position.
pub(super) fn within(file: &mut impl Read, body: &Range<u64>) -> impl Read {
    BufReader::new(file.take(body.end - body.start))
}

/// Reads the edits that are not empty.
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

/// Reads a table of packet durations.
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

/// Whether an offset in a table, of `BYTES` bytes each, is not greater than the previous one.
pub(super) fn is_out_of_order<const BYTES: usize>(file: &mut impl Read) -> io::Result<bool> {
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
