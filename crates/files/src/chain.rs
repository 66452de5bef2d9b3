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
const START_BYTES: usize = 8;
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
    /// Read from the source, not yet passed on.
    waiting: VecDeque<u8>,
    /// The end of what was passed on of the present recording.
    tail: VecDeque<u8>,
    /// Whether the next byte begins a recording.
    at_start: bool,
    exhausted: bool,
}

impl Chain {
    pub(super) fn new(source: Box<dyn Read + Send + Sync>) -> Self {
        let (waiting, tail) = (VecDeque::new(), VecDeque::new());
        let bytes = Bytes { source, waiting, tail, at_start: true, exhausted: false };
        Self(Arc::new(Mutex::new(bytes)))
    }

    /// The next recording, if there is one.
    pub(super) fn next(&self) -> Option<impl Read + Send + Sync + 'static> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (bytes.at_start && !(bytes.exhausted && bytes.waiting.is_empty())).then(|| {
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
        let tail = bytes.tail.make_contiguous();
        // The checksum of a frame with its own checksum is zero (RFC 9639, section 9.3).
        let is_start = |start: &[u8]| matches!(start, [0xff, 0xf8 | 0xf9]);
        let mut starts = (0..tail.len().saturating_sub(1)).rev().filter(|&at| is_start(&tail[at..at + 2]));
        !starts.any(|at| checksum(&tail[at..]) == 0)
    }
}

/// The checksum of a FLAC frame.
fn checksum(frame: &[u8]) -> u16 {
    frame.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| sum << 1 ^ if sum >> 15 == 1 { 0x8005 } else { 0 })
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
        let own_start = usize::from(!self.begun);
        let mut count = None;
        while self.begun && tag_bytes(bytes.waiting.make_contiguous()).is_some() {
            if !bytes.skip_tag()? {
                // What looks like one.
                count = Some(1);
                break;
            }
            bytes.fill(TAG_BYTES)?;
        }
        let exhausted = bytes.exhausted;
        let waiting = bytes.waiting.make_contiguous();
        let next = waiting
            .windows(START_BYTES)
            .skip(own_start)
            .position(|window| STARTS.iter().any(|start| window == start))
            .map(|position| position + own_start);
        let end = waiting.len().saturating_sub(TAG_BYTES);
        let is_tagged = waiting.len() >= TAG_BYTES && waiting[end..].starts_with(TAG);
        let whole = if exhausted && !is_tagged { waiting.len() } else { end };
        let before_tag = (1..whole).find(|&at| tag_bytes(&waiting[at..]).is_some());
        let count = count.or(next).unwrap_or(whole).min(before_tag.unwrap_or(whole)).min(target.len());
        if next == Some(0) {
            bytes.at_start = true;
        }
        for (target, byte) in target.iter_mut().zip(bytes.waiting.drain(..count)) {
            *target = byte;
        }
        self.begun |= count > 0;
        bytes.tail.extend(&target[..count]);
        let surplus = bytes.tail.len().saturating_sub(MAX_TAIL);
        bytes.tail.drain(..surplus);
        Ok(count)
    }
}

impl Bytes {
    /// Leaves out a tag at the present position; false if it is none.
    fn skip_tag(&mut self) -> io::Result<bool> {
        let Some(length) = tag_bytes(self.waiting.make_contiguous()) else { return Ok(false) };
        self.fill(length + TAG_BYTES)?;
        let Some(rest) = self.waiting.make_contiguous().get(length..) else { return Ok(false) };
        let is_tag = rest.is_empty()
            || rest.starts_with(TAG)
            || tag_bytes(rest).is_some()
            || STARTS.iter().any(|start| rest.starts_with(start));
        if is_tag {
            self.waiting.drain(..length);
        }
        Ok(is_tag)
    }

    /// Reads more than so many bytes, if the source has them.
    fn fill(&mut self, most: usize) -> io::Result<()> {
        let mut chunk = [0; 1 << 15];
        while !self.exhausted && self.waiting.len() <= most {
            match self.source.read(&mut chunk) {
                Ok(0) => self.exhausted = true,
                Ok(count) => self.waiting.extend(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The length of a tag that may begin here.
fn tag_bytes(start: &[u8]) -> Option<usize> {
    if !TAG_STARTS.iter().any(|tag| start.starts_with(tag)) {
        return None;
    }
    let start = &start[..start.len().min(TAG_HEADER)];
    let is_id3 = |header: &[u8; 10]| {
        let [.., version, revision, flags, a, b, c, d] = *header;
        (2..=4).contains(&version) && revision == 0 && flags & 0xf == 0 && (a | b | c | d) < 0x80
    };
    let length = match start.first_chunk::<10>() {
        Some(header) if start.starts_with(b"ID3") => id3_bytes(start).filter(|_| is_id3(header)),
        Some(_) => Some(ape_bytes(start)),
        None => None,
    };
    length.filter(|&length| length <= MAX_TAG).and_then(|length| usize::try_from(length).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

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
}
