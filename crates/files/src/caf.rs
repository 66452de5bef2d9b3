//! Information chunk and declared length of CAF files, which the demuxer of symphonia lacks.

use super::declared::MAX_LENGTH;
use super::source::array_at;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

/// Limit on chunks; files have fewer.
const MAX_CHUNKS: usize = 10_000;
/// The longest information chunk that is read, bytes.
const MAX_INFORMATION_BYTES: u64 = 1 << 20;

/// Maximum length of a packet in a table, and of packets of constant length, bytes: 256 channels are far shorter.
const MAX_PACKET: u64 = 16 << 20;
const MAX_FIXED_PACKET: u32 = 1 << 16;

/// Keys of the information chunk whose names differ from those of Vorbis comments.
const NAMES: [(&str, &str); 6] = [
    ("track number", "TRACKNUMBER"),
    ("track", "TRACKNUMBER"),
    ("comments", "COMMENT"),
    ("year", "DATE"),
    ("album_artist", "ALBUMARTIST"),
    ("encoding application", "ENCODER"),
];

/// Channel layouts in the order of `dwChannelMask`, and its bits (Core Audio, `AudioChannelLayoutTag`). Files with
/// [`BITMAP_LAYOUT`] store the bits.
const LAYOUTS: [(u32, u32); 8] = [
    (108 << 16 | 4, 0x33),
    (113 << 16 | 3, 0x7),
    (115 << 16 | 4, 0x107),
    (117 << 16 | 5, 0x37),
    (121 << 16 | 6, 0x3f),
    (125 << 16 | 7, 0x13f),
    (126 << 16 | 8, 0xff),
    (132 << 16 | 4, 0x33),
];
const BITMAP_LAYOUT: u32 = 1 << 16;

/// Contents of the chunks of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Declarations {
    /// Declared length in bytes, if there is one.
    pub(super) length: Option<u64>,
    /// Names, as in Vorbis comments, and values.
    pub(super) tags: Vec<(String, String)>,
    /// Position of the size field of the samples, bytes from the start.
    pub(super) size_at: Option<u64>,
    /// Whether the samples extend to the end of the file: their size is -1 or larger than any file.
    pub(super) is_open: bool,
    /// Whether a packet is declared longer than the file or the limits: the demuxer would allocate memory for it.
    pub(super) excess: bool,
    /// Whether a table has the lengths of the packets, which differ.
    pub(super) has_packet_table: bool,
    /// Samples per channel before the recording and in it, from the packet table.
    pub(super) priming: u64,
    pub(super) valid: Option<u64>,
    /// Position of the padding after the packet table, which the demuxer would read as chunks.
    pub(super) padding: Option<Range<u64>>,
    /// Speaker positions, as the bits of `dwChannelMask`, if they are known and in that order.
    pub(super) channel_mask: Option<u32>,
}

/// Size of the samples if they end with a file of `length` bytes. `size_at` is the position of the size field.
pub(super) fn size_to_end(size_at: u64, length: u64) -> [u8; 8] {
    length.saturating_sub(size_at.saturating_add(8)).to_be_bytes()
}

/// Reads the declarations in the chunks of a file that begins as CAF.
pub(super) fn declarations(file: &mut (impl Read + Seek)) -> io::Result<Declarations> {
    let file_length = file.seek(SeekFrom::End(0))?;
    let mut position = 8;
    let mut this = Declarations::default();
    // Bytes and samples of a packet, 0 if they vary.
    let mut packet = (0, 0);
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
        if &chunk[..4] == b"desc" {
            let mut body = [0; 32];
            if file.read_exact(&mut body).is_err() {
                break;
            }
            let number = |at: usize| u32::from_be_bytes(array_at(&body, at));
            packet = (number(16), number(20));
            this.excess |= packet.0 > MAX_FIXED_PACKET;
            let (channels, bits) = (number(24), number(28));
            if &body[8..12] == b"lpcm" && packet == (channels.saturating_mul(4), 1) && bits == 24 {
                // The demuxer does not support these samples, and ffmpeg reads them as packed ones.
                return Err(io::Error::other(
                    "24-bit samples in 4 bytes: expected 3 bytes, or 32-bit samples",
                ));
            }
        }
        if &chunk[..4] == b"chan" {
            let mut body = [0; 8];
            if file.read_exact(&mut body).is_err() {
                break;
            }
            let [layout, bitmap] = [0, 4].map(|at| u32::from_be_bytes(array_at(&body, at)));
            let known = LAYOUTS.iter().find(|(known, _)| *known == layout).map(|(_, mask)| *mask);
            this.channel_mask = if layout == BITMAP_LAYOUT { Some(bitmap) } else { known };
        }
        if &chunk[..4] == b"pakt" && packet.0 == 0 {
            let mut table = BufReader::new(file.by_ref().take(size));
            let mut header = [0; 24];
            this.has_packet_table = true;
            if table.read_exact(&mut header).is_ok() {
                let valid = i64::from_be_bytes(array_at(&header, 8));
                this.valid = u64::try_from(valid).ok().filter(|&valid| valid > 0);
                this.priming = i32::from_be_bytes(array_at(&header, 16)).try_into().unwrap_or(0);
                let packets = u64::from_be_bytes(array_at(&header, 0));
                let (longest, table_bytes) = longest_packet(&mut table, packets, packet.1 == 0);
                this.excess |= longest > file_length.min(MAX_PACKET);
                let body = position + 12;
                let end = body.saturating_add(size).min(file_length);
                this.padding =
                    Some(body + header.len() as u64 + table_bytes..end).filter(|it| !it.is_empty());
            }
        }
        if &chunk[..4] == b"data" {
            this.size_at = Some(position + 4);
            this.is_open = size > MAX_LENGTH;
        }
        let Some(next) = position.checked_add(12).and_then(|body| body.checked_add(size)) else { break };
        (position, this.length) = (next, Some(next));
    }
    this.length = this.length.filter(|_| !this.is_open);
    Ok(this)
}

/// Reads the lengths of `packets` packets after the header of a table; returns the longest packet and the length of the
/// table in bytes. With `has_samples`, the number of samples follows each length.
fn longest_packet(table: &mut impl Read, packets: u64, has_samples: bool) -> (u64, u64) {
    let (mut longest, mut bytes) = (0, 0);
    for _ in 0..packets {
        let Some(length) = variable(table, &mut bytes) else { break };
        longest = longest.max(length);
        if has_samples && variable(table, &mut bytes).is_none() {
            break;
        }
    }
    (longest, bytes)
}

/// Reads a number of seven bits a byte, whose bytes except the last have the high bit set. Adds their number to
/// `bytes`.
fn variable(table: &mut impl Read, bytes: &mut u64) -> Option<u64> {
    let (mut number, mut byte) = (0_u64, [0x80]);
    while byte[0] & 0x80 != 0 {
        table.read_exact(&mut byte).ok()?;
        *bytes += 1;
        number = number.checked_mul(128)? | u64::from(byte[0] & 0x7f);
    }
    Some(number)
}

/// Reads the pairs of an information chunk: their number, then names and values, each terminated by a zero.
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
mod tests;
