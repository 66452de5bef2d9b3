//! Edit lists and limits of MP4 files, which the demuxer of symphonia lacks.
//!
//! The edit list holds the number of samples that an encoder put before the first. Without it, AAC recordings are late by
//! the delay of their encoder, 1024 samples or more. A fragment that announces millions of packets would keep the demuxer
//! busy for minutes.

use super::error::ReadError;
use std::io::{self, Read, Seek, SeekFrom};

/// Nesting depth of the boxes that are read: moov, trak, edts.
const DEPTH: u32 = 3;

/// Limit on boxes; hours in fragments of a second need fewer.
const MAX_BOXES: u32 = 1_000_000;

/// Limit on the packets of a fragment: an hour and a half of AAC. The demuxer's work grows with their square.
const MAX_PACKETS: u32 = 1 << 18;

/// The start of the audio track by its edit list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EditStart {
    /// Time before the first sample, in units of the time scale.
    media_time: u64,
    /// Units a second.
    time_scale: u32,
}

impl EditStart {
    /// Samples at a sample rate in Hz.
    pub(super) fn samples(self, sample_rate: u32) -> u64 {
        let samples =
            u128::from(self.media_time) * u128::from(sample_rate) / u128::from(self.time_scale.max(1));
        u64::try_from(samples).unwrap_or(u64::MAX)
    }
}

/// Whether the first bytes of a file are those of MP4.
pub(super) fn is_mp4(start: &[u8]) -> bool {
    start.get(4..8) == Some(b"ftyp")
}

/// The start of the first audio track of a file, if it has a readable edit list.
///
/// # Errors
/// If the file holds more boxes or announces more packets than it can or needs.
pub(super) fn edit_start(file: &mut (impl Read + Seek)) -> Result<Option<EditStart>, ReadError> {
    let length = file.seek(SeekFrom::End(0)).map_err(ReadError::Io)?;
    let mut walk = Walk { length, boxes: 0, track: Track::default(), start: None, excess: false };
    // The demuxer refuses a file that ends within its boxes.
    let _ = walk.boxes(file, 0, length, 0);
    if walk.excess {
        return Err(ReadError::NotAudio("its index announces more than it can hold".into()));
    }
    Ok(walk.start)
}

struct Walk {
    /// Bytes of the file.
    length: u64,
    boxes: u32,
    track: Track,
    start: Option<EditStart>,
    excess: bool,
}

/// Boxes of a track, as far as they were read.
#[derive(Default)]
struct Track {
    is_audio: bool,
    time_scale: Option<u32>,
    media_time: Option<u64>,
}

impl Walk {
    /// Walks the boxes from `start` to `end`.
    fn boxes(
        &mut self,
        file: &mut (impl Read + Seek),
        mut start: u64,
        end: u64,
        depth: u32,
    ) -> io::Result<()> {
        while start + 8 <= end && !self.excess {
            self.boxes += 1;
            self.excess = self.boxes > MAX_BOXES;
            file.seek(SeekFrom::Start(start))?;
            let header: [u8; 8] = array(file)?;
            let (size, header_bytes) = match u32_at(&header, 0) {
                0 => (end - start, 8),
                1 => (u64::from_be_bytes(array(file)?), 16),
                size => (u64::from(size), 8),
            };
            if size < header_bytes || size > end - start {
                return Ok(());
            }
            let (body, next) = (start + header_bytes, start + size);
            match &header[4..] {
                b"trak" if depth < DEPTH => {
                    self.track = Track::default();
                    self.boxes(file, body, next, depth + 1)?;
                    if let Track {
                        is_audio: true,
                        time_scale: Some(time_scale),
                        media_time: Some(media_time),
                    } = self.track
                        && self.start.is_none()
                    {
                        self.start = Some(EditStart { media_time, time_scale });
                    }
                }
                b"moov" | b"mdia" | b"edts" | b"moof" | b"traf" if depth < DEPTH => {
                    self.boxes(file, body, next, depth + 1)?;
                }
                b"mdhd" => {
                    let version = array::<4>(file)?[0];
                    file.seek(SeekFrom::Current(if version == 1 { 16 } else { 8 }))?;
                    self.track.time_scale = Some(u32::from_be_bytes(array(file)?));
                }
                b"hdlr" => self.track.is_audio = &array::<12>(file)?[8..] == b"soun",
                b"elst" => self.track.media_time = first_edit(file)?,
                b"trun" => {
                    let count = u32_at(&array::<8>(file)?, 4);
                    self.excess |= u64::from(count) > self.length || count > MAX_PACKETS;
                }
                _ => {}
            }
            start = next;
        }
        Ok(())
    }
}

/// The start of the first edit that is not empty.
fn first_edit(file: &mut impl Read) -> io::Result<Option<u64>> {
    let version = array::<4>(file)?[0];
    let entries = u32::from_be_bytes(array(file)?);
    for _ in 0..entries.min(16) {
        let media_time = if version == 1 {
            let entry: [u8; 20] = array(file)?;
            i64::from(u32_at(&entry, 8).cast_signed()) << 32 | i64::from(u32_at(&entry, 12))
        } else {
            let entry: [u8; 12] = array(file)?;
            i64::from(u32_at(&entry, 4).cast_signed())
        };
        // An empty edit has -1.
        if let Ok(media_time) = u64::try_from(media_time) {
            return Ok(Some(media_time));
        }
    }
    Ok(None)
}

fn array<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut array = [0; N];
    file.read_exact(&mut array)?;
    Ok(array)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn boxed(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
        [&(body.len() as u32 + 8).to_be_bytes(), &name[..], body].concat()
    }

    fn track(kind: &[u8; 4], time_scale: u32, media_times: &[i32]) -> Vec<u8> {
        let mut list = vec![0; 4];
        list.extend((media_times.len() as u32).to_be_bytes());
        for time in media_times {
            list.extend([0, 0, 1, 0]);
            list.extend(time.to_be_bytes());
            list.extend([0, 1, 0, 0]);
        }
        let mdhd = boxed(b"mdhd", &[&[0; 12][..], &time_scale.to_be_bytes(), &[0; 8]].concat());
        let hdlr = boxed(b"hdlr", &[&[0; 8][..], kind, &[0; 12]].concat());
        let edts = boxed(b"edts", &boxed(b"elst", &list));
        boxed(b"trak", &[edts, boxed(b"mdia", &[mdhd, hdlr].concat())].concat())
    }

    fn start(file: Vec<u8>) -> Option<EditStart> {
        edit_start(&mut Cursor::new(file)).unwrap()
    }

    #[test]
    fn the_first_audio_track_counts() {
        let tracks =
            [track(b"vide", 90_000, &[7]), track(b"soun", 48_000, &[-1, 1_024]), track(b"soun", 1, &[5])];
        let file = [boxed(b"ftyp", b"M4A "), boxed(b"mdat", &[0; 99]), boxed(b"moov", &tracks.concat())];
        let file = file.concat();
        let found = start(file.clone()).unwrap();
        assert_eq!(found, EditStart { media_time: 1_024, time_scale: 48_000 });
        assert_eq!((found.samples(48_000), found.samples(24_000)), (1_024, 512));
        for length in 0..file.len() {
            assert_eq!(start(file[..length].to_vec()), None, "{length} bytes");
        }
        assert_eq!(start(boxed(b"moov", &track(b"soun", 48_000, &[]))), None);
    }

    #[test]
    fn fragments_cannot_hold_more_packets_than_the_file_has_bytes() {
        let fragment = |count: u32| {
            boxed(b"moof", &boxed(b"traf", &boxed(b"trun", &[[0; 4], count.to_be_bytes()].concat())))
        };
        assert_eq!(start(fragment(32)), None);
        assert!(edit_start(&mut Cursor::new(fragment(33))).is_err());
        let behind = |file: Vec<u8>| [file, boxed(b"mdat", &vec![0; 2 * MAX_PACKETS as usize])].concat();
        assert_eq!(start(behind(fragment(MAX_PACKETS))), None);
        assert!(edit_start(&mut Cursor::new(behind(fragment(MAX_PACKETS + 1)))).is_err());
    }

    #[test]
    fn boxes_within_boxes_come_to_an_end() {
        let mut nested = Vec::new();
        for _ in 0..10_000 {
            nested = boxed(b"mdia", &nested);
        }
        assert_eq!(start(nested), None);
        assert_eq!(start([0, 0, 0, 1, b'm', b'o', b'o', b'v'].repeat(9)), None);
        let many = boxed(b"free", &[]).repeat(MAX_BOXES as usize + 1);
        assert!(edit_start(&mut Cursor::new(many)).is_err());
    }
}
