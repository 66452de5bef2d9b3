//! Information chunk and declared length of CAF files, which the demuxer of symphonia lacks.

use std::io::{self, Read, Seek, SeekFrom};

/// Limit on chunks; files have fewer.
const MAX_CHUNKS: usize = 10_000;
/// The longest information chunk that is read, bytes.
const MAX_INFORMATION_BYTES: u64 = 1 << 20;

/// Keys of the information chunk whose names differ from those of Vorbis comments.
const NAMES: [(&str, &str); 6] = [
    ("track number", "TRACKNUMBER"),
    ("track", "TRACKNUMBER"),
    ("comments", "COMMENT"),
    ("year", "DATE"),
    ("album_artist", "ALBUMARTIST"),
    ("encoding application", "ENCODER"),
];

/// Contents of the chunks of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chunks {
    /// Declared length in bytes, if there is one.
    pub(super) length: Option<u64>,
    /// Names, as in Vorbis comments, and values.
    pub(super) tags: Vec<(String, String)>,
    /// Position of the size of the samples, in bytes from the start.
    pub(super) size_at: Option<u64>,
}

/// A file that is cut off, read with the size of what is there of its last part.
pub(super) struct Mended<R> {
    source: R,
    size_at: u64,
    size: [u8; 8],
    position: u64,
}

impl<R: Read + Seek> Mended<R> {
    /// Eight bytes at a place are others.
    pub(super) fn new(mut source: R, size_at: u64, size: [u8; 8]) -> io::Result<Self> {
        source.rewind()?;
        Ok(Self { source, size_at, size, position: 0 })
    }
}

/// The size of the samples if they end with a file of this length in bytes.
pub(super) fn size_to_end(size_at: u64, length: u64) -> [u8; 8] {
    length.saturating_sub(size_at.saturating_add(8)).to_be_bytes()
}

impl<R: Read> Read for Mended<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(target)?;
        for (at, byte) in (self.size_at..).zip(self.size) {
            let place = at.checked_sub(self.position).and_then(|place| usize::try_from(place).ok());
            if let Some(target) = place.and_then(|place| target[..count].get_mut(place)) {
                *target = byte;
            }
        }
        self.position += count as u64;
        Ok(count)
    }
}

impl<R: Seek> Seek for Mended<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = self.source.seek(to)?;
        Ok(self.position)
    }
}

/// Walks the chunks of a file that begins as CAF.
pub(super) fn chunks(file: &mut (impl Read + Seek)) -> io::Result<Chunks> {
    let (mut position, mut is_open) = (8, false);
    let mut this = Chunks::default();
    for _ in 0..MAX_CHUNKS {
        let mut chunk = [0; 12];
        if file.seek(SeekFrom::Start(position)).is_err() || file.read_exact(&mut chunk).is_err() {
            break;
        }
        let size = chunk[4..].iter().fold(0_u64, |size, byte| size << 8 | u64::from(*byte));
        if &chunk[..4] == b"info" && size <= MAX_INFORMATION_BYTES {
            let mut body = Vec::new();
            file.take(size).read_to_end(&mut body)?;
            this.tags = tags(&body);
        }
        if &chunk[..4] == b"data" {
            this.size_at = Some(position + 4);
        }
        // The samples may extend to the end.
        is_open |= &chunk[..4] == b"data" && size == u64::MAX;
        let Some(next) = position.checked_add(12).and_then(|body| body.checked_add(size)) else { break };
        (position, this.length) = (next, Some(next));
    }
    this.length = this.length.filter(|_| !is_open);
    Ok(this)
}

/// The pairs of an information chunk: their number, then names and values, each with a zero at its end.
fn tags(body: &[u8]) -> Vec<(String, String)> {
    let mut texts = body.get(4..).unwrap_or_default().split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let mut found = Vec::new();
    while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        let known = NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
        let name = known.map_or_else(|| name.to_ascii_uppercase(), |(_, name)| (*name).to_owned());
        if !name.is_empty() && !value.is_empty() {
            found.push((name, value.into_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn chunk(name: &[u8; 4], size: u64, body: &[u8]) -> Vec<u8> {
        [&name[..], &size.to_be_bytes(), body].concat()
    }

    #[test]
    fn the_size_of_what_is_left_stands_in_place_of_the_declared_one() {
        let whole = [b"caff\0\x01\0\0".to_vec(), chunk(b"data", 100, &[7; 40])].concat();
        let expected = [b"caff\0\x01\0\0".to_vec(), chunk(b"data", 40, &[7; 40])].concat();
        for step in 1..whole.len() {
            let mut mended =
                Mended::new(Cursor::new(&whole), 12, size_to_end(12, whole.len() as u64)).unwrap();
            let mut found: Vec<u8> = Vec::new();
            let mut block = vec![0; step];
            loop {
                let count = mended.read(&mut block).unwrap();
                if count == 0 {
                    break;
                }
                found.extend(&block[..count]);
            }
            assert_eq!(found, expected, "{step} bytes at a time");
            mended.seek(SeekFrom::Start(14)).unwrap();
            let mut rest = [0; 6];
            mended.read_exact(&mut rest).unwrap();
            assert_eq!(rest, expected[14..20]);
        }
    }

    #[test]
    fn lengths_and_tags_are_read() {
        let information = b"\0\0\0\x02title\0A title\0track number\x003\0empty\0\0";
        let start =
            [b"caff\0\x01\0\0".to_vec(), chunk(b"info", information.len() as u64, information)].concat();
        let of = |data: &[u8]| chunks(&mut Cursor::new([&start, data].concat())).unwrap();
        let found = of(&chunk(b"data", 100, &[0; 40]));
        assert_eq!(found.length, Some(start.len() as u64 + 12 + 100));
        let expected = [("TITLE", "A title"), ("TRACKNUMBER", "3")];
        assert_eq!(found.tags, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(found.size_at, Some(start.len() as u64 + 4));
        assert_eq!(of(&chunk(b"data", u64::MAX, &[0; 40])).length, None);
        assert_eq!(of(&chunk(b"data", u64::MAX - 1, &[])).length, Some(start.len() as u64));
        for length in 0..start.len() {
            assert!(chunks(&mut Cursor::new(&start[..length])).unwrap().tags.len() < 3);
        }
    }
}
