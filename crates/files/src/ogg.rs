//! Structure of Ogg files that the demuxer does not report after a damaged page: the ends of tracks, and the positions
//! of packets after missing ones.

use super::source::array_at;
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};
use symphonia::core::checksum::Crc32;
use symphonia::core::io::Monitor;

/// Start of a page, and the header bytes that are read here (RFC 3533, section 6).
pub(super) const CAPTURE: &[u8; 4] = b"OggS";
const HEADER_BYTES: usize = 18;
/// Length of the page header before its segment table, bytes.
const PAGE_HEADER_BYTES: usize = 27;
const MAX_PAGE_BYTES: u64 = PAGE_HEADER_BYTES as u64 + 255 + 255 * 255;
/// Bytes searched at the end of a file, more than the longest page has.
const TAIL_BYTES: u64 = 1 << 17;
/// Limit on the stored tracks, and on the stored holes: a page of 28 bytes can begin one.
const MAX_KEPT: usize = 1 << 12;

/// The end of an Ogg file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct End {
    /// Last granule position of every track in the last pages, samples per channel from its start, by track number.
    pub(super) granules: BTreeMap<u32, u64>,
    /// End of the last page, bytes from the start, if only zeros follow it.
    pub(super) zeros_from: Option<u64>,
    /// Whether no valid page starts within one page length of the end: the demuxer searches no further back.
    pub(super) is_lost: bool,
}

/// Reads the end of a file; empty if the file does not begin as Ogg.
pub(super) fn end(file: &mut (impl Read + Seek)) -> io::Result<End> {
    let mut start = Vec::new();
    file.rewind()?;
    file.by_ref().take(CAPTURE.len() as u64).read_to_end(&mut start)?;
    if start != CAPTURE {
        return Ok(End::default());
    }
    let length = file.seek(SeekFrom::End(0))?;
    let filled = length_without_zeros(file, length)?;
    let tail_start = filled.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(tail_start))?;
    let mut tail = Vec::new();
    // The last page may end with zeros.
    file.by_ref().take(2 * TAIL_BYTES).read_to_end(&mut tail)?;
    let (mut granules, mut last_end, mut last_whole) = (BTreeMap::new(), None, 0);
    for at in 0..tail.len().saturating_sub(HEADER_BYTES - 1) {
        let header = &tail[at..at + HEADER_BYTES];
        if !header.starts_with(CAPTURE) {
            continue;
        }
        if let Some(bytes) = page_bytes(&tail[at..]) {
            last_end = Some(tail_start + (at + bytes) as u64);
            if tail.get(at..at + bytes).is_some_and(is_valid) {
                last_whole = tail_start + at as u64;
            }
        }
        let (Some(granule), Some(track)) = (header[6..].first_chunk(), header[14..].first_chunk()) else {
            continue;
        };
        // A page on which no packet ends has no granule position.
        let (granule, track) = (i64::from_le_bytes(*granule), u32::from_le_bytes(*track));
        let Ok(granule) = u64::try_from(granule) else { continue };
        granules.insert(track, granule);
    }
    // A truncated last page is kept.
    let end = last_end.map_or(filled, |end| end.max(filled)).min(length);
    let is_lost = last_whole + MAX_PAGE_BYTES < end;
    Ok(End { granules, zeros_from: Some(end).filter(|&end| end < length), is_lost })
}

/// Length of a file of `length` bytes without the zeros at its end, bytes.
fn length_without_zeros(file: &mut (impl Read + Seek), mut length: u64) -> io::Result<u64> {
    let mut block = Vec::new();
    while length > 0 {
        let start = length.saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(start))?;
        block.clear();
        file.by_ref().take(length - start).read_to_end(&mut block)?;
        if let Some(last) = block.iter().rposition(|byte| *byte != 0) {
            return Ok(start + last as u64 + 1);
        }
        length = start;
    }
    Ok(0)
}

/// Holes in tracks, by the track and the granule position at which each begins: the granule position of the first page
/// after it. The demuxer puts the packets of that page at the beginning of the hole.
#[derive(Debug, Default)]
pub(super) struct Holes(Mutex<BTreeMap<(u32, i64), i64>>);

impl Holes {
    /// Removes the hole of a track that begins at a granule position, and returns the granule position after it.
    pub(super) fn take(&self, track: u32, granule: i64) -> Option<i64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&(track, granule))
    }
}

/// Reader that passes the bytes of an Ogg file or stream unchanged and records the holes between its pages.
pub(super) struct Pages<R> {
    source: R,
    holes: Arc<Holes>,
    /// Last bytes read, which are not a complete page yet.
    bytes: Vec<u8>,
    /// The last page of each track.
    last: BTreeMap<u32, LastPage>,
}

#[derive(Default)]
struct LastPage {
    number: u32,
    /// Granule position of the last page on which a packet ends.
    granule: Option<i64>,
    /// Whether pages are missing since the last page on which a packet ends.
    is_behind_hole: bool,
}

impl<R> Pages<R> {
    pub(super) fn new(source: R, holes: Arc<Holes>) -> Self {
        Self { source, holes, bytes: Vec::new(), last: BTreeMap::new() }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let mut at = 0;
        while let Some(skipped) = self.bytes[at..].windows(4).position(|start| start == CAPTURE) {
            at += skipped;
            let Some(length) =
                page_bytes(&self.bytes[at..]).filter(|length| self.bytes.len() - at >= *length)
            else {
                self.bytes.drain(..at);
                return;
            };
            let page = &self.bytes[at..at + length];
            if is_valid(page) {
                note(page, &mut self.last, &self.holes);
                at += length;
            } else {
                at += CAPTURE.len();
            }
        }
        let kept = (self.bytes.len() - at).min(CAPTURE.len() - 1);
        self.bytes.drain(..self.bytes.len() - kept);
    }
}

/// Length of the page at the start of `bytes`, if its header is complete.
fn page_bytes(bytes: &[u8]) -> Option<usize> {
    let segments = usize::from(*bytes.get(PAGE_HEADER_BYTES - 1)?);
    let sizes = bytes.get(PAGE_HEADER_BYTES..PAGE_HEADER_BYTES + segments)?;
    Some(PAGE_HEADER_BYTES + segments + sizes.iter().map(|&size| usize::from(size)).sum::<usize>())
}

/// Whether the demuxer accepts a page: version 0, known flags only, and a matching checksum.
fn is_valid(page: &[u8]) -> bool {
    if page[4] != 0 || page[5] & 0xf8 != 0 {
        return false;
    }
    let mut sum = Crc32::new(0);
    sum.process_buf_bytes(&page[..22]);
    sum.process_buf_bytes(&[0; 4]);
    sum.process_buf_bytes(&page[26..]);
    sum.crc() == u32::from_le_bytes(array_at(page, 22))
}

/// Records the hole before a page, if there is one.
fn note(page: &[u8], last: &mut BTreeMap<u32, LastPage>, holes: &Holes) {
    const CONTINUED: u8 = 1;
    const FIRST: u8 = 2;
    let (marks, granule) = (page[5], i64::from_le_bytes(array_at(page, 6)));
    let (track, number) = (u32::from_le_bytes(array_at(page, 14)), u32::from_le_bytes(array_at(page, 18)));
    let segments = usize::from(page[PAGE_HEADER_BYTES - 1]);
    let sizes = &page[PAGE_HEADER_BYTES..PAGE_HEADER_BYTES + segments];
    let before = last.remove(&track).filter(|_| marks & FIRST == 0);
    let is_next = before.as_ref().is_none_or(|before| number == before.number.wrapping_add(1));
    let before = before.unwrap_or_default();
    let is_behind_hole = before.is_behind_hole || !is_next;
    // The demuxer drops the rest of a packet that began in the hole.
    let begun = usize::from(is_behind_hole && marks & CONTINUED != 0);
    let mut page = LastPage { number, granule: before.granule, is_behind_hole };
    if sizes.iter().filter(|&&size| size < 255).count() > begun && granule >= 0 {
        if let Some(start) = before.granule.filter(|&start| is_behind_hole && start < granule) {
            insert(&mut holes.0.lock().unwrap_or_else(PoisonError::into_inner), (track, start), granule);
        }
        (page.granule, page.is_behind_hole) = (Some(granule), false);
    }
    insert(last, track, page);
}

/// Adds a value; removes another one if there are more than [`MAX_KEPT`].
fn insert<K: Ord + Copy, V>(kept: &mut BTreeMap<K, V>, key: K, value: V) {
    kept.insert(key, value);
    if kept.len() > MAX_KEPT {
        let other = kept.keys().copied().find(|other| *other != key);
        other.and_then(|other| kept.remove(&other));
    }
}

impl<R: Read> Read for Pages<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(target)?;
        self.push(&target[..count]);
        Ok(count)
    }
}

impl<R: Seek> Seek for Pages<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.clear();
        self.last.clear();
        self.source.seek(to)
    }
}

#[cfg(test)]
mod tests;
