//! Concatenated FLAC recordings in one stream of bytes, as `cat a.flac b.flac` makes them, without the tags of other formats
//! behind them.

use super::mpeg::ape_bytes;
use super::source::id3_bytes;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// Starts of a FLAC stream: its name and the header of a stream information block of 34 bytes, which may be the last
/// (RFC 9639, section 8). Compressed samples match by chance with probability 2^-63 a byte.
const STARTS: [[u8; 8]; 2] = [*b"fLaC\x00\x00\x00\x22", *b"fLaC\x80\x00\x00\x22"];
/// An ID3v1 tag, which some programs append: the decoder takes it for a damaged frame.
const TAG: &[u8; 3] = b"TAG";
const TAG_BYTES: usize = 128;
/// Other tags: ID3v2, of which all of the header is looked at, and APEv2. Beside it, one of the starts or the end has to follow.
const TAG_STARTS: [&[u8]; 2] = [b"ID3", b"APETAGEX"];
/// The longest header of a tag, and the longest tag that is looked for, bytes.
const TAG_HEADER: usize = 32;
const MAX_TAG: u64 = 64 << 20;

/// The end of a recording that is kept, bytes: more than a frame of eight channels has.
const MAX_TAIL: usize = 1 << 20;

/// The FLAC streams of one stream of bytes.
pub(super) struct Chain(Arc<Mutex<Bytes>>);

struct Bytes {
    source: Box<dyn Read + Send + Sync>,
    /// Read from the source; the first `passed` of them are passed on.
    read: Vec<u8>,
    passed: usize,
    /// The end of what was passed on of the present recording.
    tail: VecDeque<u8>,
    /// Whether the next byte begins a recording.
    at_start: bool,
    exhausted: bool,
    /// Whether bytes behind the last frame have been left out.
    is_trimmed: bool,
}

impl Chain {
    pub(super) fn new(source: Box<dyn Read + Send + Sync>) -> Self {
        let (read, tail) = (Vec::new(), VecDeque::new());
        let bytes =
            Bytes { source, read, passed: 0, tail, at_start: true, exhausted: false, is_trimmed: false };
        Self(Arc::new(Mutex::new(bytes)))
    }

    /// The next recording, if there is one.
    pub(super) fn next(&self) -> Option<impl Read + Send + Sync + 'static> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (bytes.at_start && !(bytes.exhausted && bytes.waiting().is_empty())).then(|| {
            bytes.at_start = false;
            bytes.tail.clear();
            Link { bytes: Arc::clone(&self.0), begun: false }
        })
    }
}

impl Chain {
    /// Whether the present recording, which was read to its end, ends within a frame.
    pub(super) fn ends_within_frame(&self) -> bool {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        !ends_with_frame(bytes.tail.make_contiguous())
    }
}

/// Whether the last of these bytes is that of a frame.
fn ends_with_frame(bytes: &[u8]) -> bool {
    behind_frame(bytes, 0).is_some()
}

/// Number of bytes behind the last frame, if there are no more than `most`. The checksum of a frame with that at its end is zero
/// (RFC 9639, section 9.3). From the end of all on, every bit adds its own to that of those behind it: one pass for all starts
/// of frames, whose sums are those of the bytes behind them.
fn behind_frame(bytes: &[u8], most: usize) -> Option<usize> {
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

/// One recording, up to the start of the next.
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
        // No more is looked at than is passed on.
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
    /// Read from the source, not yet passed on.
    fn waiting(&self) -> &[u8] {
        &self.read[self.passed..]
    }

    /// Leaves out a few bytes behind the last frame, such as the end of a line: the decoder counts them as part of the frame,
    /// whose checksum is wrong then. What begins as a frame is one that is cut off.
    fn trim(&mut self) {
        if !self.exhausted || std::mem::replace(&mut self.is_trimmed, true) {
            return;
        }
        let bytes: Vec<u8> = self.tail.iter().chain(self.waiting()).copied().collect();
        if ends_with_frame(&bytes) {
            return;
        }
        let surplus = behind_frame(&bytes, TAG_BYTES.min(self.waiting().len())).unwrap_or(0);
        if bytes.get(bytes.len() - surplus) != Some(&0xff) {
            self.read.truncate(self.read.len() - surplus);
        }
    }

    /// Leaves out a tag at the present position; false if it is none.
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

    /// Reads more than so many bytes, if the source has them.
    fn fill(&mut self, most: usize) -> io::Result<()> {
        while !self.exhausted && self.waiting().len() <= most {
            // As few as were passed on are moved, at most.
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

/// The length of a tag that may begin here.
fn tag_bytes(start: &[u8]) -> Option<usize> {
    if !TAG_STARTS.iter().any(|tag| start.starts_with(tag)) {
        return None;
    }
    let start = &start[..start.len().min(TAG_HEADER)];
    let length = if start.starts_with(b"ID3") { id3_bytes(start) } else { Some(ape_bytes(start)) };
    length.filter(|&length| length <= MAX_TAG).and_then(|length| usize::try_from(length).ok())
}

#[cfg(test)]
mod tests {
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
        // What looks like tags stays.
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
            assert_eq!((behind_frame(&more, 11), behind_frame(&more, 9)), (Some(11), None));
        }
        assert!(!ends_with_frame(&[]) && !ends_with_frame(&[0xff]));
    }

    /// What takes time in proportion to the square of the size takes minutes here.
    #[test]
    fn much_that_looks_like_something_else_takes_no_longer() {
        let starts_of_frames = [0xff, 0xf8].repeat(1 << 17);
        // Of a length beyond the end, and of one that is there without anything behind that would make it a tag.
        let tags = [[0, 0, 9, 0], [1, 0, 0, 0]].map(|length| [&b"ID3\x04\0\0"[..], &length].concat());
        for looks_alike in [starts_of_frames, tags[0].repeat(1 << 17), tags[1].repeat(1 << 17)] {
            let bytes = [&STARTS[0][..], &[7; 300], &looks_alike].concat();
            let start = Instant::now();
            let chain = Chain::new(Box::new(Cursor::new(bytes.clone())));
            let mut found = Vec::new();
            chain.next().unwrap().read_to_end(&mut found).unwrap();
            // By chance, some of the starts may be that of a frame.
            let _ = chain.ends_within_frame();
            assert!(found == bytes, "{} of {} bytes", found.len(), bytes.len());
            assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        }
    }
}
