//! Properties of Matroska files that the demuxer does not report: the title, which is no tag (RFC 9559, section 5.1.2),
//! the durations of tracks, which are tags, the default audio track, encryption, and truncation.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Identifiers of the elements that are read and of their parents, and of the cluster, which begins the samples.
pub(super) const HEADER: u32 = 0x1a45_dfa3;
pub(super) const SEGMENT: u32 = 0x1853_8067;
const INFO: u32 = 0x1549_a966;
const TITLE: u32 = 0x7ba9;
const TRACKS: u32 = 0x1654_ae6b;
const TRACK: u32 = 0xae;
const TRACK_NUMBER: u32 = 0xd7;
const TRACK_UID: u32 = 0x73c5;
const TRACK_TYPE: u32 = 0x83;
const FLAG_DEFAULT: u32 = 0x88;
const CONTENT_ENCODINGS: u32 = 0x6d80;
const TAGS: u32 = 0x1254_c367;
const TAG: u32 = 0x7373;
const TARGETS: u32 = 0x63c0;
const TARGET_TRACK: u32 = 0x63c5;
const SIMPLE_TAG: u32 = 0x67c8;
const TAG_NAME: u32 = 0x45a3;
const TAG_TEXT: u32 = 0x4487;
const CLUSTER: u32 = 0x1f43_b675;

/// Limit on the elements before the samples, above that of any file.
const MAX_ELEMENTS: usize = 10_000;
/// Maximum length of a text, bytes.
const MAX_TEXT: u64 = 1 << 16;

/// Description of a file in the elements before its samples.
#[derive(Debug, Default, PartialEq)]
pub(super) struct About {
    pub(super) title: Option<String>,
    tracks: Vec<Track>,
    /// Ends of tracks, s, by their identifiers in tags.
    ends: Vec<(u64, f64)>,
    /// Whether the size of the file is unknown, as in a stream: its index may point beyond its end.
    pub(super) is_open: bool,
    /// Whether an element extends beyond the end of the file or segment, by truncation or because of foreign bytes
    /// among the elements.
    pub(super) is_cut: bool,
}

#[derive(Debug, PartialEq)]
struct Track {
    number: u64,
    /// Identifier of the track in tags.
    uid: u64,
    is_audio: bool,
    /// Whether the track is a default one, as it is without a flag.
    is_default: bool,
    /// Whether its packets are compressed or encrypted: the demuxer returns them without decoding.
    is_encoded: bool,
}

impl About {
    /// Reads the elements before the samples as far as possible; none of another format.
    pub(super) fn read(file: &mut (impl Read + Seek)) -> Self {
        let mut this = Self::default();
        // A truncated file yields the elements before its end.
        let _ = this.walk(file);
        this
    }

    /// Reads a file of unknown size to its end, to detect truncation.
    fn detect_truncation(&mut self, file: &mut (impl Read + Seek)) -> io::Result<()> {
        file.rewind()?;
        let (mut elements, mut bytes) = (Elements::default(), vec![0; 1 << 16]);
        loop {
            match file.read(&mut bytes)? {
                0 => break,
                count => elements.push(&bytes[..count]),
            }
        }
        self.is_cut = elements.is_within();
        Ok(())
    }

    /// End of the track with this number, s, if it is declared.
    pub(super) fn seconds_of(&self, track: u32) -> Option<f64> {
        let track = self.tracks.iter().find(|found| found.number == u64::from(track))?;
        self.ends.iter().find(|(end, _)| *end == track.uid).map(|(_, seconds)| *seconds)
    }

    /// Identifier in tags of the track with this number.
    pub(super) fn uid_of(&self, track: u32) -> Option<u64> {
        Some(self.tracks.iter().find(|found| found.number == u64::from(track))?.uid)
    }

    /// The number of the first audio track that is marked as default.
    pub(super) fn default_audio(&self) -> Option<u32> {
        let marked = self.tracks.iter().find(|track| track.is_audio && track.is_default)?;
        u32::try_from(marked.number).ok()
    }

    /// Whether the packets of the track of this number are compressed or encrypted.
    pub(super) fn is_encoded(&self, track: u32) -> bool {
        self.tracks.iter().any(|found| found.number == u64::from(track) && found.is_encoded)
    }

    fn walk(&mut self, file: &mut (impl Read + Seek)) -> io::Result<()> {
        file.rewind()?;
        if number(file, true)? != u64::from(HEADER) {
            return Ok(());
        }
        file.rewind()?;
        let (mut target, mut is_duration) = (0, false);
        let mut end = None;
        for _ in 0..MAX_ELEMENTS {
            let kind = u32::try_from(number(file, true)?).unwrap_or(0);
            let (length, is_open) = size(file)?;
            // Only for the first segment of unknown size.
            if kind == SEGMENT && is_open && !self.is_open {
                let place = file.stream_position()?;
                self.is_open = true;
                self.detect_truncation(file)?;
                file.seek(SeekFrom::Start(place))?;
            }
            if kind == SEGMENT && !is_open {
                end = file.stream_position()?.checked_add(length);
            }
            match kind {
                SEGMENT | INFO | TRACKS | TAGS | TARGETS | SIMPLE_TAG => {}
                TRACK => self.tracks.push(Track {
                    number: 0,
                    uid: 0,
                    is_audio: false,
                    is_default: true,
                    is_encoded: false,
                }),
                TAG => (target, is_duration) = (0, false),
                TRACK_NUMBER | TRACK_UID | TRACK_TYPE | FLAG_DEFAULT => {
                    const AUDIO: u64 = 2;
                    let value = unsigned(file, length)?;
                    if let Some(track) = self.tracks.last_mut() {
                        match kind {
                            TRACK_NUMBER => track.number = value,
                            TRACK_UID => track.uid = value,
                            TRACK_TYPE => track.is_audio = value == AUDIO,
                            _ => track.is_default = value != 0,
                        }
                    }
                }
                CONTENT_ENCODINGS if length > 0 => {
                    self.tracks.last_mut().into_iter().for_each(|track| track.is_encoded = true);
                    let Ok(length) = i64::try_from(length) else { break };
                    file.seek(SeekFrom::Current(length))?;
                }
                TARGET_TRACK => target = unsigned(file, length)?,
                TITLE if length <= MAX_TEXT => {
                    let title = text(file, length)?;
                    self.title = self.title.take().or(Some(title)).filter(|title| !title.is_empty());
                }
                TAG_NAME if length <= MAX_TEXT => is_duration = text(file, length)? == "DURATION",
                TAG_TEXT if length <= MAX_TEXT && is_duration => {
                    let seconds = seconds(&text(file, length)?);
                    self.ends.extend(seconds.map(|seconds| (target, seconds)));
                }
                CLUSTER => {
                    self.is_cut |= end.map_or(Ok(false), |end| overruns_segment(file, end))?;
                    break;
                }
                _ => {
                    let Ok(length) = i64::try_from(length) else { break };
                    file.seek(SeekFrom::Current(length))?;
                }
            }
        }
        Ok(())
    }
}

/// Whether an element after the current position, or one in a cluster, is invalid or extends beyond the `end` of the
/// segment. False if the file ends before `end`.
fn overruns_segment(file: &mut (impl Read + Seek), end: u64) -> io::Result<bool> {
    let mut place = file.stream_position()?;
    if file.seek(SeekFrom::End(0))? < end {
        return Ok(false);
    }
    file.seek(SeekFrom::Start(place))?;
    let mut file = BufReader::new(file);
    while place < end {
        let mut start = Counted { source: &mut file, count: 0 };
        let read = number(&mut start, true).and_then(|kind| Ok((kind, size(&mut start)?)));
        let Ok((kind, (length, is_open))) = read else { return Ok(true) };
        place += u64::from(start.count);
        if kind == u64::from(CLUSTER) {
            continue;
        }
        if is_open {
            return Ok(false);
        }
        match i64::try_from(length) {
            Ok(bytes) if length <= end.saturating_sub(place) => file.seek_relative(bytes)?,
            _ => return Ok(true),
        }
        place += length;
    }
    Ok(false)
}

/// Incremental parser of the elements of a file, which detects an end within an element.
#[derive(Debug, Default)]
pub(super) struct Elements {
    /// Identifier and size of the current element, as far as they have been read.
    start: Vec<u8>,
    /// Remaining bytes of its body.
    rest: u64,
    /// Whether parsing stopped at invalid bytes or at an element of unknown size.
    is_lost: bool,
}

impl Elements {
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.is_lost {
            let skipped = usize::try_from(self.rest).unwrap_or(usize::MAX).min(bytes.len());
            if skipped > 0 {
                self.rest -= skipped as u64;
                bytes = &bytes[skipped..];
                continue;
            }
            self.start.push(bytes[0]);
            bytes = &bytes[1..];
            let mut start = &self.start[..];
            match number(&mut start, true).and_then(|kind| Ok((kind, size(&mut start)?))) {
                Ok((kind, (length, is_open))) => {
                    let is_entered = [SEGMENT, CLUSTER].iter().any(|&entered| kind == u64::from(entered));
                    self.is_lost = is_open && !is_entered;
                    self.rest = if is_entered { 0 } else { length };
                    self.start.clear();
                }
                Err(error) => self.is_lost = error.kind() != io::ErrorKind::UnexpectedEof,
            }
        }
    }

    /// Whether the bytes end within an element.
    pub(super) fn is_within(&self) -> bool {
        !self.is_lost && (self.rest > 0 || !self.start.is_empty())
    }
}

/// Reads the size of an element, and whether it is unknown.
pub(super) fn size(file: &mut impl Read) -> io::Result<(u64, bool)> {
    let mut counted = Counted { source: file, count: 0 };
    let size = number(&mut counted, false)?;
    Ok((size, size == (1 << (7 * counted.count)) - 1))
}

/// Reader that counts the bytes it reads.
struct Counted<R> {
    source: R,
    count: u32,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(target)?;
        self.count += count as u32;
        Ok(count)
    }
}

/// Reads a text of `length` bytes.
fn text(file: &mut impl Read, length: u64) -> io::Result<String> {
    let mut bytes = vec![0; length as usize];
    file.read_exact(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned())
}

/// Reads a number of `length` bytes.
fn unsigned(file: &mut impl Read, length: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    let place = usize::try_from(length).ok().and_then(|length| bytes.get_mut(..length));
    let Some(place) = place else { return Err(io::Error::other("a number of more than 8 bytes")) };
    file.read_exact(place)?;
    Ok(place.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Parses `hours:minutes:seconds` into seconds.
fn seconds(text: &str) -> Option<f64> {
    let mut parts = text.splitn(3, ':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    Some(3600.0 * hours + 60.0 * minutes + seconds).filter(|seconds| seconds.is_finite())
}

/// Reads a number of variable size (RFC 8794, section 4). `marked` keeps its length marker, as in identifiers of
/// elements.
fn number(file: &mut impl Read, marked: bool) -> io::Result<u64> {
    let mut first = [0];
    file.read_exact(&mut first)?;
    let more = first[0].leading_zeros() as usize;
    let mut bytes = [0; 8];
    let Some(rest) = bytes.get_mut(1..=more) else {
        return Err(io::Error::other("a number of more than 8 bytes"));
    };
    file.read_exact(rest)?;
    bytes[0] = if marked { first[0] } else { first[0] & (0x7f >> more) };
    Ok(bytes[..=more].iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests;
