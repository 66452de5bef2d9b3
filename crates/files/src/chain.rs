//! Concatenated FLAC recordings in one stream of bytes, as `cat a.flac b.flac` makes them, without an ID3v1 tag at the end.

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

/// The FLAC streams of one stream of bytes.
pub(super) struct Chain(Arc<Mutex<Bytes>>);

struct Bytes {
    source: Box<dyn Read + Send + Sync>,
    /// Read from the source, not yet passed on.
    waiting: VecDeque<u8>,
    /// Whether the next byte begins a recording.
    at_start: bool,
    exhausted: bool,
}

impl Chain {
    pub(super) fn new(source: Box<dyn Read + Send + Sync>) -> Self {
        let bytes = Bytes { source, waiting: VecDeque::new(), at_start: true, exhausted: false };
        Self(Arc::new(Mutex::new(bytes)))
    }

    /// The next recording, if there is one.
    pub(super) fn next(&self) -> Option<impl Read + Send + Sync + 'static> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (bytes.at_start && !(bytes.exhausted && bytes.waiting.is_empty())).then(|| {
            bytes.at_start = false;
            Link { bytes: Arc::clone(&self.0), begun: false }
        })
    }
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
        bytes.fill()?;
        let own_start = usize::from(!self.begun);
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
        let count = next.unwrap_or(whole).min(target.len());
        if next == Some(0) {
            bytes.at_start = true;
        }
        for (target, byte) in target.iter_mut().zip(bytes.waiting.drain(..count)) {
            *target = byte;
        }
        self.begun |= count > 0;
        Ok(count)
    }
}

impl Bytes {
    /// Reads until a start can be recognised, or the source ends.
    fn fill(&mut self) -> io::Result<()> {
        let mut chunk = [0; 1 << 15];
        while !self.exhausted && self.waiting.len() <= TAG_BYTES {
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
}
