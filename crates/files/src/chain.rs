//! Concatenated FLAC recordings in one stream of bytes, as created by `cat a.flac b.flac`, without the tags of other
//! formats after them.

use super::mpeg::ape_bytes;
use super::source::id3_bytes;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// Starts of a FLAC stream: its marker and the header of a stream information block of 34 bytes, which may be the last
/// block (RFC 9639, section 8). Compressed samples match by chance with probability 2^-63 a byte.
const STARTS: [[u8; 8]; 2] = [*b"fLaC\x00\x00\x00\x22", *b"fLaC\x80\x00\x00\x22"];
/// ID3v1 tag, which some programs append: the decoder would read it as a damaged frame.
const TAG: &[u8; 3] = b"TAG";
const TAG_BYTES: usize = 128;
/// Starts of other tags: ID3v2, whose whole header is checked, and APEv2. A recording, another tag or the end must
/// follow.
const TAG_STARTS: [&[u8]; 2] = [b"ID3", b"APETAGEX"];
/// Maximum length of the header of a tag and of a tag, bytes.
const TAG_HEADER: usize = 32;
const MAX_TAG: u64 = 64 << 20;

/// Bytes kept from the end of a recording, more than a frame of eight channels has.
const MAX_TAIL: usize = 1 << 20;

/// The FLAC streams of one stream of bytes.
pub(super) struct Chain(Arc<Mutex<Bytes>>);

struct Bytes {
    source: Box<dyn Read + Send + Sync>,
    /// Bytes read from the source; the first `passed` of them have been returned.
    read: Vec<u8>,
    passed: usize,
    /// Last returned bytes of the current recording.
    tail: VecDeque<u8>,
    /// Whether the next byte begins a recording.
    at_start: bool,
    exhausted: bool,
    /// Whether the bytes after the last frame have been removed.
    is_trimmed: bool,
}

impl Chain {
    pub(super) fn new(source: Box<dyn Read + Send + Sync>) -> Self {
        let (read, tail) = (Vec::new(), VecDeque::new());
        let bytes =
            Bytes { source, read, passed: 0, tail, at_start: true, exhausted: false, is_trimmed: false };
        Self(Arc::new(Mutex::new(bytes)))
    }

    /// Returns the next recording, if there is one.
    pub(super) fn next(&self) -> Option<impl Read + Send + Sync + 'static> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (bytes.at_start && !(bytes.exhausted && bytes.waiting().is_empty())).then(|| {
            bytes.at_start = false;
            bytes.tail.clear();
            Link { bytes: Arc::clone(&self.0), begun: false }
        })
    }

    /// Whether the current recording, which must have been read to its end, ends within a frame.
    pub(super) fn ends_within_frame(&self) -> bool {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !ends_with_frame(bytes.tail.make_contiguous())
    }
}

/// Whether the bytes end with a complete frame.
fn ends_with_frame(bytes: &[u8]) -> bool {
    bytes_after_frame(bytes, 0).is_some()
}

/// Number of bytes after the last frame, if at most `most`. A frame including its own checksum has the checksum 0 (RFC
/// 9639, section 9.3). Hence the bytes from its start have the checksum of the bytes after its end. One backward pass,
/// which adds the contribution of every bit, covers all starts of frames.
fn bytes_after_frame(bytes: &[u8], most: usize) -> Option<usize> {
    const POLYNOMIAL: u16 = 0x8005;
    let (mut checksum, mut of_bit) = (0, POLYNOMIAL);
    let mut behind = vec![checksum];
    (0..bytes.len()).rev().find_map(|at| {
        for bit in 0..8 {
            checksum ^= if bytes[at] >> bit & 1 == 1 { of_bit } else { 0 };
            of_bit = of_bit << 1 ^ if of_bit >> 15 == 1 { POLYNOMIAL } else { 0 };
        }
        let is_start = matches!(bytes[at..], [0xff, 0xf8 | 0xf9, ..]);
        let found = behind.iter().position(|sum| is_start && *sum == checksum);
        if behind.len() <= most {
            behind.push(checksum);
        }
        found
    })
}

/// Reader of one recording, up to the start of the next.
struct Link {
    bytes: Arc<Mutex<Bytes>>,
    begun: bool,
}

impl Read for Link {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.at_start || target.is_empty() {
            return Ok(0);
        }
        bytes.fill(TAG_BYTES)?;
        bytes.trim();
        let mut is_false_tag = false;
        while self.begun && !is_false_tag && tag_bytes(bytes.waiting()).is_some() {
            is_false_tag = !bytes.skip_tag()?;
            bytes.fill(TAG_BYTES)?;
        }
        let waiting = bytes.waiting();
        if self.begun && is_start(waiting) {
            bytes.at_start = true;
            return Ok(0);
        }
        let end = waiting.len().saturating_sub(TAG_BYTES);
        let is_tagged = waiting.len() >= TAG_BYTES && waiting[end..].starts_with(TAG);
        let whole = if bytes.exhausted && !is_tagged { waiting.len() } else { end };
        // Searches only the bytes to return.
        let most = whole.min(target.len());
        let is_other = |at: &usize| is_start(&waiting[*at..]) || tag_bytes(&waiting[*at..]).is_some();
        let count = (1..most).find(is_other).unwrap_or(most);
        target[..count].copy_from_slice(&waiting[..count]);
        bytes.passed += count;
        self.begun |= count > 0;
        bytes.tail.extend(&target[..count]);
        let surplus = bytes.tail.len().saturating_sub(MAX_TAIL);
        bytes.tail.drain(..surplus);
        Ok(count)
    }
}

impl Bytes {
    /// Bytes read from the source and not yet returned.
    fn waiting(&self) -> &[u8] {
        &self.read[self.passed..]
    }

    /// Removes a few bytes after the last frame, such as the end of a line. The decoder would count them as part of the
    /// frame, whose checksum would then be wrong. Bytes that begin as a frame stay: they are a truncated frame.
    fn trim(&mut self) {
        if !self.exhausted || std::mem::replace(&mut self.is_trimmed, true) {
            return;
        }
        let bytes: Vec<u8> = self.tail.iter().chain(self.waiting()).copied().collect();
        if ends_with_frame(&bytes) {
            return;
        }
        let surplus = bytes_after_frame(&bytes, TAG_BYTES.min(self.waiting().len())).unwrap_or(0);
        if bytes.get(bytes.len() - surplus) != Some(&0xff) {
            self.read.truncate(self.read.len() - surplus);
        }
    }

    /// Skips a tag at the current position; returns false if there is none.
    fn skip_tag(&mut self) -> io::Result<bool> {
        let Some(length) = tag_bytes(self.waiting()) else { return Ok(false) };
        self.fill(length + TAG_BYTES)?;
        let Some(rest) = self.waiting().get(length..) else { return Ok(false) };
        let is_tag = rest.is_empty() || rest.starts_with(TAG) || tag_bytes(rest).is_some() || is_start(rest);
        if is_tag {
            self.passed += length;
        }
        Ok(is_tag)
    }

    /// Reads ahead until more than `most` bytes are waiting, or to the end of the source.
    fn fill(&mut self, most: usize) -> io::Result<()> {
        while !self.exhausted && self.waiting().len() <= most {
            // Moves at most as many bytes as have been returned.
            if self.passed >= self.waiting().len() {
                self.read.drain(..std::mem::take(&mut self.passed));
            }
            let mut chunk = [0; 1 << 15];
            match self.source.read(&mut chunk) {
                Ok(0) => self.exhausted = true,
                Ok(count) => self.read.extend(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Whether a FLAC stream begins here.
fn is_start(bytes: &[u8]) -> bool {
    STARTS.iter().any(|start| bytes.starts_with(start))
}

/// Length of a tag that may begin here, bytes.
fn tag_bytes(start: &[u8]) -> Option<usize> {
    if !TAG_STARTS.iter().any(|tag| start.starts_with(tag)) {
        return None;
    }
    let start = &start[..start.len().min(TAG_HEADER)];
    let length = if start.starts_with(b"ID3") { id3_bytes(start) } else { Some(ape_bytes(start)) };
    length.filter(|&length| length <= MAX_TAG).and_then(|length| usize::try_from(length).ok())
}

#[cfg(test)]
mod tests;
