//! Declared lengths of AIFF and Matroska files, whose demuxers do not report truncation. Those of CAF files are in
//! `caf`.

use super::matroska::{self, Elements};
use std::io::{self, Read};

/// Number of first bytes that contain the length of AIFF and Matroska files.
pub(super) const START_BYTES: usize = 256;

/// Maximum accepted length, samples or bytes: 46 years at 192 kHz.
pub(super) const MAX_LENGTH: u64 = 1 << 48;

/// Smallest placeholder length of a program that writes to a pipe: that of SoX.
const OPEN_LENGTH: u32 = 0x7f00_0000;

/// Declared length in bytes of a file with these first bytes, if there is one.
pub(super) fn length(start: &[u8]) -> Option<u64> {
    if let Some(form) = start.strip_prefix(b"FORM").filter(|form| form.get(4..7) == Some(b"AIF")) {
        let length = u32::from_be_bytes(*form.first_chunk()?);
        return (1..OPEN_LENGTH).contains(&length).then(|| u64::from(length) + 8);
    }
    let (header, after_size) = element_size(start.strip_prefix(&matroska::HEADER.to_be_bytes())?)?;
    let segment = after_size.get(usize::try_from(header).ok()?..)?;
    let (size, body) = element_size(segment.strip_prefix(&matroska::SEGMENT.to_be_bytes())?)?;
    Some((start.len() - body.len()) as u64 + size)
}

/// The size of an element and the bytes that follow it; none if the size is unknown.
fn element_size(mut bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (size, is_open) = matroska::size(&mut bytes).ok()?;
    (!is_open).then_some((size, bytes))
}

/// Whether a file is shorter than declared, padding aside.
pub(super) fn is_cut(declared: u64, found: u64) -> bool {
    const PADDING: u64 = 8;
    found.saturating_add(PADDING) < declared
}

/// Reader that passes a stream unchanged and reports whether it ends before its declared end.
pub(super) struct Measured<R> {
    source: R,
    start: Vec<u8>,
    found: u64,
    elements: Elements,
    on_cut: Box<dyn Fn() + Send + Sync>,
}

impl<R: Read> Measured<R> {
    /// `on_cut` is called when the stream ends too early.
    pub(super) fn new(source: R, on_cut: impl Fn() + Send + Sync + 'static) -> Self {
        Self { source, start: Vec::new(), found: 0, elements: Elements::default(), on_cut: Box::new(on_cut) }
    }
}

impl<R: Read> Read for Measured<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(target)?;
        let missing = START_BYTES.saturating_sub(self.start.len());
        self.start.extend(&target[..count.min(missing)]);
        self.found += count as u64;
        if self.start.starts_with(&matroska::HEADER.to_be_bytes()) {
            self.elements.push(&target[..count]);
        }
        if count == 0 && !target.is_empty() {
            let is_cut = match length(&self.start) {
                Some(declared) => {
                    is_cut(declared, self.found) || self.found <= declared && self.elements.is_within()
                }
                None => self.elements.is_within(),
            };
            if is_cut {
                (self.on_cut)();
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    #[test]
    fn lengths_are_read_where_they_are_declared() {
        assert_eq!(length(b"FORM\0\0\x01\0AIFFCOMM"), Some(264));
        for open in
            [b"FORM\0\0\0\0AIFF", b"FORM\x7f\xff\xff\xffAIFC", b"FORM\x7f\0\0\x50AIFF", b"FORM\0\0\x01\0ILBM"]
        {
            assert_eq!(length(open), None);
        }
        let (header, segment) = (matroska::HEADER.to_be_bytes(), matroska::SEGMENT.to_be_bytes());
        let webm = |size: &[u8]| [&header[..], &[0x83, 1, 2, 3], &segment, size, &[0xec]].concat();
        assert_eq!(length(&webm(&[0x41, 0x00])), Some(4 + 4 + 4 + 2 + 256));
        assert_eq!(length(&webm(&[0x01, 0, 0, 0, 0, 0, 1, 0])), Some(4 + 4 + 4 + 8 + 256));
        assert_eq!(length(&webm(&[0x01, 255, 255, 255, 255, 255, 255, 255])), None, "unknown, of a stream");
        for cut in 0..14 {
            assert_eq!(length(&webm(&[0x41, 0x00])[..cut]), None, "{cut} bytes");
        }
    }

    #[test]
    fn a_stream_that_ends_before_its_end_is_noticed() {
        let whole = [&b"FORM\0\0\0\x64AIFF"[..], &[7; 96]].concat();
        for (length, expected) in [(whole.len(), false), (whole.len() - 8, false), (whole.len() - 9, true)] {
            let cut = Arc::new(AtomicBool::new(false));
            let seen = Arc::clone(&cut);
            let mut stream = Measured::new(&whole[..length], move || seen.store(true, Relaxed));
            io::copy(&mut stream, &mut io::sink()).unwrap();
            assert_eq!(cut.load(Relaxed), expected, "{length} bytes");
        }
    }
}
