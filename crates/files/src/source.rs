//! Files and streams to read: detection of their format, and readers that repeat, replace or omit bytes.

use super::error::ReadError;
use super::{mp4, wav};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// Limit on an ID3 tag before WAV, and on blocks before FLAC, in a stream, bytes.
pub(super) const MAX_START: u64 = 32 << 20;

/// A source that can be rewound.
pub(super) trait ReadSeek: Read + Seek + Send + Sync {}
impl<T: Read + Seek + Send + Sync> ReadSeek for T {}

/// The format of a file by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileKind {
    Wav,
    Wave64,
    Au,
    Mp4,
    Caf,
    Flac,
    /// A container that is not demuxed here; its name.
    Container(&'static str),
    /// Not audio; its description.
    Foreign(&'static str),
    Other,
}

/// Starts of files that are often mistaken for audio. Playlists are rejected, as reading one would open other files.
pub(super) const FOREIGN: [(&[u8], &str); 9] = [
    (b"#EXTM3U", "a playlist (M3U or HLS), which names other files"),
    (b"\xef\xbb\xbf#EXTM3U", "a playlist (M3U or HLS), which names other files"),
    (b"ffconcat", "a playlist (concat), which names other files"),
    (b"[playlist]", "a playlist (PLS), which names other files"),
    (b"<MPD", "a playlist (DASH), which names other files"),
    (b"<?xml", "an XML document, such as a playlist (DASH)"),
    (b"\x89PNG", "an image (PNG)"),
    (b"\xff\xd8\xff", "an image (JPEG)"),
    (b"GIF8", "an image (GIF)"),
];

/// Starts of containers that are not demuxed here. Their video data contain bytes that resemble frames of MPEG audio.
const CONTAINERS: [(&[u8], &str); 6] = [
    (b"\x00\x00\x01\xba", "an MPEG program stream"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "Windows Media (ASF)"),
    (b"FLV\x01", "Flash Video"),
    (b"\x06\x0e\x2b\x34\x02\x05\x01\x01", "MXF"),
    (b".RMF", "RealMedia"),
    (b"nut/multimed", "NUT"),
];

/// Bytes that [`transport_stream`] reads.
pub(super) const TRANSPORT_BYTES: u64 = 4 + 192 * TRANSPORT_PACKETS as u64;

/// Packets of a transport stream that must follow one another.
const TRANSPORT_PACKETS: usize = 5;

/// The name of an MPEG transport stream, if a file begins as one: packets of 188 bytes that begin with 0x47. On discs
/// and in camcorders (M2TS), a time stamp of 4 bytes precedes each.
pub(super) fn transport_stream(start: &[u8]) -> Option<&'static str> {
    let is_packed = |offset: usize, step: usize| {
        (0..TRANSPORT_PACKETS).all(|packet| start.get(offset + packet * step) == Some(&0x47))
    };
    (is_packed(0, 188) || is_packed(4, 192)).then_some("an MPEG transport stream")
}

/// The name of a container in RIFF that is not WAV.
fn riff(start: &[u8]) -> Option<&'static str> {
    match (start.get(..4)?, start.get(8..12)?) {
        (b"RIFF", b"AVI ") => Some("AVI"),
        (b"RIFF", b"CDXA") => Some("an MPEG program stream"),
        _ => None,
    }
}

impl FileKind {
    pub(super) fn of(start: &[u8]) -> Self {
        match start {
            start if wav::is_wav(start) => Self::Wav,
            start if wav::is_wave64(start) => Self::Wave64,
            start if wav::is_au(start) => Self::Au,
            start if mp4::is_mp4(start) => Self::Mp4,
            start if start.starts_with(b"caff") => Self::Caf,
            start if start.starts_with(b"fLaC") => Self::Flac,
            _ => {
                let begins = |(mark, _): &&(&[u8], _)| start.starts_with(mark);
                let container = CONTAINERS.iter().find(begins).map(|(_, name)| *name).or_else(|| riff(start));
                let foreign = FOREIGN.iter().find(begins).map(|(_, what)| Self::Foreign(what));
                container.map(Self::Container).or(foreign).unwrap_or(Self::Other)
            }
        }
    }
}

pub(super) fn open_file(path: &Path) -> Result<File, ReadError> {
    File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if path.is_symlink() => ReadError::Io(io::Error::new(
            io::ErrorKind::NotFound,
            "it is a link to a file that does not exist",
        )),
        io::ErrorKind::NotFound => ReadError::Missing,
        _ => ReadError::Io(error),
    })
}

/// The length of the ID3 tag that begins here, if there is one (ID3v2.4, section 3.1), bytes.
pub(super) fn id3_bytes(start: &[u8]) -> Option<u64> {
    let [b'I', b'D', b'3', version, revision, flags, size @ ..] = *start.first_chunk::<10>()? else {
        return None;
    };
    let is_tag = (2..=4).contains(&version) && revision == 0 && flags & 0xf == 0;
    let size: [u8; 4] = Some(size).filter(|size| is_tag && size.iter().all(|byte| *byte < 0x80))?;
    let body = size.iter().fold(0, |size, byte| size << 7 | u64::from(*byte));
    let footer = if flags & 0x10 != 0 { 10 } else { 0 };
    Some(10 + body + footer)
}

/// Reader that keeps the bytes it reads, so that they can be read again.
pub(super) struct Recorded<R> {
    pub(super) source: R,
    seen: Vec<u8>,
}

impl<R: Read> Recorded<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, seen: Vec::new() }
    }

    /// Returns a reader that starts again at the beginning.
    pub(super) fn again(self) -> impl Read + use<R> {
        Cursor::new(self.seen).chain(self.source)
    }
}

impl<R: Read> Read for Recorded<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.seen.len() as u64 > MAX_START {
            return Err(io::Error::other("its header is too long"));
        }
        let count = self.source.read(target)?;
        self.seen.extend(&target[..count]);
        Ok(count)
    }
}

/// Source with some bytes replaced, eight at a time, such as the size of a truncated part.
pub(super) struct Patched<R> {
    source: R,
    patches: BTreeMap<u64, [u8; 8]>,
    position: u64,
}

impl<R: Read + Seek> Patched<R> {
    /// Replaces the bytes from `at`.
    pub(super) fn new(source: R, at: u64, bytes: [u8; 8]) -> io::Result<Self> {
        Self::several(source, BTreeMap::from([(at, bytes)]))
    }

    /// Replaces eight bytes at each of these positions.
    pub(super) fn several(mut source: R, patches: BTreeMap<u64, [u8; 8]>) -> io::Result<Self> {
        source.rewind()?;
        Ok(Self { source, patches, position: 0 })
    }
}

impl<R: Read> Read for Patched<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(target)?;
        let end = self.position + count as u64;
        for (start, bytes) in self.patches.range(self.position.saturating_sub(7)..end) {
            for (at, byte) in (*start..).zip(bytes) {
                let place = at.checked_sub(self.position).and_then(|place| usize::try_from(place).ok());
                if let Some(target) = place.and_then(|place| target[..count].get_mut(place)) {
                    *target = *byte;
                }
            }
        }
        self.position = end;
        Ok(count)
    }
}

impl<R: Seek> Seek for Patched<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = self.source.seek(to)?;
        Ok(self.position)
    }
}

/// Source without the bytes of a range, such as padding at the end.
pub(super) struct Excluding<R> {
    source: R,
    left_out: Range<u64>,
    /// Position in the whole source.
    position: u64,
}

impl<R: Read + Seek> Excluding<R> {
    pub(super) fn new(mut source: R, left_out: Range<u64>) -> io::Result<Self> {
        source.rewind()?;
        Ok(Self { source, left_out, position: 0 })
    }

    fn bytes_left_out(&self) -> u64 {
        self.left_out.end - self.left_out.start
    }

    /// Position in the source without the range.
    fn visible_position(&self) -> u64 {
        let behind = self.position.checked_sub(self.left_out.end).map(|behind| self.left_out.start + behind);
        behind.unwrap_or(self.position.min(self.left_out.start))
    }
}

impl<R: Read + Seek> Read for Excluding<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.left_out.contains(&self.position) {
            self.position = self.source.seek(SeekFrom::Start(self.left_out.end))?;
        }
        let before = self.left_out.start.checked_sub(self.position).filter(|&before| before > 0);
        let most = before
            .map_or(target.len(), |before| usize::try_from(before).unwrap_or(usize::MAX).min(target.len()));
        let count = self.source.read(&mut target[..most])?;
        self.position += count as u64;
        Ok(count)
    }
}

impl<R: Read + Seek> Seek for Excluding<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let left_out = self.bytes_left_out();
        let target = match to {
            SeekFrom::Start(target) => Some(target),
            SeekFrom::Current(by) => self.visible_position().checked_add_signed(by),
            SeekFrom::End(by) => {
                self.source.seek(SeekFrom::End(0))?.saturating_sub(left_out).checked_add_signed(by)
            }
        };
        let target = target.ok_or(io::ErrorKind::InvalidInput)?;
        let is_behind = target >= self.left_out.start;
        let whole = if is_behind { target.saturating_add(left_out) } else { target };
        self.position = self.source.seek(SeekFrom::Start(whole))?;
        Ok(target)
    }
}

/// The next `N` bytes.
pub(super) fn array<const N: usize>(bytes: &mut impl Read) -> io::Result<[u8; N]> {
    let mut array = [0; N];
    bytes.read_exact(&mut array)?;
    Ok(array)
}

/// The `N` bytes from `at`.
pub(super) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|n| bytes[at + n])
}

/// The first bytes of a stream, enough to recognise its format.
pub(super) fn start_of(stream: &mut impl Read) -> Result<Vec<u8>, ReadError> {
    let mut start = Vec::new();
    stream.take(12).read_to_end(&mut start).map_err(ReadError::Io)?;
    if start.is_empty() { Err(ReadError::Empty) } else { Ok(start) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_left_out() {
        let bytes: Vec<u8> = (0..40).collect();
        for left_out in [0..3, 7..19, 30..40, 5..5] {
            let (start, end) = (left_out.start as usize, left_out.end as usize);
            let expected = [&bytes[..start], &bytes[end..]].concat();
            let mut source = Excluding::new(Cursor::new(&bytes), left_out.clone()).unwrap();
            for at in 0..=expected.len() as u64 {
                let back = at as i64 - expected.len() as i64;
                for to in [SeekFrom::Start(at), SeekFrom::End(back), SeekFrom::Current(0)] {
                    assert_eq!(source.seek(to).unwrap(), at, "{left_out:?}");
                    let mut found = Vec::new();
                    source.read_to_end(&mut found).unwrap();
                    assert_eq!(found, expected[at as usize..], "{left_out:?}, {to:?}");
                    assert_eq!(source.seek(SeekFrom::Current(back)).unwrap(), at);
                }
            }
            assert!(source.seek(SeekFrom::Current(-100)).is_err());
        }
    }
}
