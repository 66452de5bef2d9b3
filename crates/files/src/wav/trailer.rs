//! The part of a RIFF file after its samples: further samples, metadata, and tags that are no chunks.

use super::{WavHeader, word};
use crate::error::ReadError;
use crate::metadata::Metadata;
use std::io::{self, Read, Seek, SeekFrom};

/// Limit on `data` chunks after the first; recorders write fewer.
const MAX_CHUNKS: usize = 10_000;

/// Names of chunks after samples. If the file ends within one of them, the chunk is truncated; with any other name, its
/// bytes are samples.
const CHUNKS: [&[u8; 4]; 25] = [
    b"LIST", b"id3 ", b"ID3 ", b"bext", b"iXML", b"axml", b"chna", b"cue ", b"plst", b"smpl", b"inst",
    b"acid", b"fact", b"PEAK", b"JUNK", b"junk", b"FLLR", b"PAD ", b"cart", b"DISP", b"afsp", b"LGWV",
    b"umid", b"_PMX", b"strc",
];

/// The part of a RIFF file after its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rest {
    /// Bytes from the last whole sample to the end of its chunk.
    pub(crate) skip: u64,
    /// Whether the chunk has an odd length, so that a padding byte should follow.
    pub(crate) is_odd: bool,
    pub(crate) big_endian: bool,
}

/// Samples in a further chunk.
pub(crate) struct Further {
    /// Number of samples per channel.
    pub(crate) length: u64,
    pub(crate) rest: Rest,
}

/// Contents that follow samples.
pub(crate) enum Next {
    Samples(Further),
    /// Nothing, or bytes that do not belong to the recording.
    End,
    /// Bytes that are neither a chunk nor padding.
    Unknown,
}

impl Rest {
    /// Returns the part after a chunk of `data_bytes` bytes.
    pub(crate) fn behind(data_bytes: u64, frame_bytes: u64, big_endian: bool) -> Self {
        Self { skip: data_bytes % frame_bytes, is_odd: data_bytes % 2 == 1, big_endian }
    }

    /// Advances to the samples of the next `data` chunk, if there is one; keeps the metadata in between.
    pub(crate) fn next(
        self,
        bytes: &mut impl Read,
        frame_bytes: u64,
        metadata: &mut Metadata,
    ) -> Result<Next, ReadError> {
        io::copy(&mut bytes.by_ref().take(self.skip), &mut io::sink()).map_err(ReadError::Io)?;
        let mut is_odd = self.is_odd;
        loop {
            let mut chunk = Vec::new();
            let start = 4 + u64::from(is_odd);
            bytes.by_ref().take(start).read_to_end(&mut chunk).map_err(ReadError::Io)?;
            // Some writers omit the padding byte.
            let is_padded = !is_expected(&chunk) || is_expected(&chunk[1..]);
            if is_odd && is_padded && !chunk.is_empty() {
                chunk.remove(0);
            }
            let missing = 8 - chunk.len() as u64;
            bytes.by_ref().take(missing).read_to_end(&mut chunk).map_err(ReadError::Io)?;
            if is_tag(&chunk) && ends_with_tag(&chunk, bytes).map_err(ReadError::Io)? {
                return Ok(Next::End);
            }
            // An incomplete chunk header does not belong to the recording.
            let Some((name, length)) = chunk.split_first_chunk::<4>().filter(|(_, rest)| rest.len() == 4)
            else {
                return Ok(Next::End);
            };
            let length = u64::from(word(length, self.big_endian));
            if name == b"data" {
                let rest = Self::behind(length, frame_bytes, self.big_endian);
                return Ok(Next::Samples(Further { length: length / frame_bytes, rest }));
            }
            // Another recording.
            if [b"RIFF", b"RIFX", b"RF64", b"BW64", b"fLaC", b"OggS"].contains(&name) {
                return Ok(Next::Unknown);
            }
            if !is_name(name) {
                let is_padding =
                    chunk.iter().all(|byte| *byte == 0) && is_zero(bytes).map_err(ReadError::Io)?;
                return Ok(if is_padding { Next::End } else { Next::Unknown });
            }
            let mut body = bytes.by_ref().take(length);
            metadata.read_chunk(*name, length, &mut body)?;
            io::copy(&mut body, &mut io::sink()).map_err(ReadError::Io)?;
            if body.limit() > 0 {
                return Ok(if CHUNKS.contains(&name) { Next::End } else { Next::Unknown });
            }
            is_odd = length % 2 == 1;
        }
    }
}

/// Whether a known chunk or a tag begins here.
fn is_expected(start: &[u8]) -> bool {
    let is_chunk = |name: &[u8; 4]| name == b"data" || CHUNKS.contains(&name);
    start.first_chunk().is_some_and(is_chunk) || is_tag(start)
}

/// Whether a tag that is no chunk may begin here: ID3v1, ID3v2 or APE.
fn is_tag(start: &[u8]) -> bool {
    let is_id3v2 = start.starts_with(b"ID3") && start.get(3).is_some_and(|version| (2..=4).contains(version));
    is_id3v2 || start.starts_with(b"TAG") || start.starts_with(b"APET")
}

/// Whether these 8 bytes, which may be the start of a tag, begin one.
fn ends_with_tag(start: &[u8], bytes: &mut impl Read) -> io::Result<bool> {
    const ID3V1_BYTES: u64 = 128;
    if !start.starts_with(b"TAG") {
        return Ok(!start.starts_with(b"APET") || start == b"APETAGEX");
    }
    // An ID3v1 tag is the last part of a file.
    let rest = ID3V1_BYTES - start.len() as u64;
    Ok(io::copy(&mut bytes.by_ref().take(rest + 1), &mut io::sink())? == rest)
}

/// Whether these may be the name of a chunk.
pub(crate) fn is_name(name: &[u8]) -> bool {
    name.iter().all(|byte| (0x20..0x7f).contains(byte))
}

/// Whether all remaining bytes are zero.
fn is_zero(bytes: &mut impl Read) -> io::Result<bool> {
    let mut block = vec![0; 1 << 16];
    loop {
        match bytes.read(&mut block) {
            Ok(0) => return Ok(true),
            Ok(count) if block[..count].iter().any(|byte| *byte != 0) => return Ok(false),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

/// Contents of a file after its first samples.
pub(crate) struct Trailer {
    /// Samples per channel in all chunks, if the header has their length.
    pub(crate) length: Option<u64>,
    /// Metadata of the header and of the chunks after the samples.
    pub(crate) metadata: Metadata,
    /// Whether more data follow than are declared.
    pub(crate) data_follow: bool,
}

/// Searches for further samples and metadata after the samples of a file, which begin at the current position. Restores
/// the position.
pub(crate) fn read_trailer(file: &mut (impl Read + Seek), header: &WavHeader) -> Result<Trailer, ReadError> {
    let mut trailer =
        Trailer { length: header.length, metadata: header.metadata.clone(), data_follow: false };
    let (Some(first), Some(mut rest)) = (header.length, header.rest) else {
        return Ok(trailer);
    };
    let start = file.stream_position().map_err(ReadError::Io)?;
    let end = file.seek(SeekFrom::End(0)).map_err(ReadError::Io)?;
    let frame_bytes = (header.encoding.bytes() * header.channels) as u64;
    let (mut position, mut length, mut total) = (start, first, first);
    for _ in 0..MAX_CHUNKS {
        position = position.saturating_add(length.saturating_mul(frame_bytes));
        if position >= end {
            break;
        }
        file.seek(SeekFrom::Start(position)).map_err(ReadError::Io)?;
        let further = match rest.next(file, frame_bytes, &mut trailer.metadata)? {
            Next::Samples(further) => further,
            next => {
                trailer.data_follow = matches!(next, Next::Unknown);
                break;
            }
        };
        position = file.stream_position().map_err(ReadError::Io)?;
        (length, rest) = (further.length, further.rest);
        total = total.saturating_add(length);
    }
    file.seek(SeekFrom::Start(start)).map_err(ReadError::Io)?;
    trailer.length = Some(total);
    Ok(trailer)
}
