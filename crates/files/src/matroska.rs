//! What the demuxer of Matroska leaves out: the title of a file, which is no tag there (RFC 9559, section 5.1.2), how long
//! each track is, which is a tag of it, the default audio track, encryption, and where the file is truncated.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// The elements on the way to them, and what begins the samples, behind which nobody looks.
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

/// More elements than any file has before its samples.
const MAX_ELEMENTS: usize = 10_000;
/// The longest text that is kept, bytes.
const MAX_TEXT: u64 = 1 << 16;

/// What a file says of itself before its samples.
#[derive(Debug, Default, PartialEq)]
pub(super) struct About {
    pub(super) title: Option<String>,
    tracks: Vec<Track>,
    /// What tracks are called in tags, and when they end, s.
    ends: Vec<(u64, f64)>,
    /// Whether its size is left open, as in a stream: what its index points to may not be there.
    pub(super) is_open: bool,
    /// Whether it ends within an element, or something else stands among its elements, so that one of them seems to reach beyond
    /// its end.
    pub(super) is_cut: bool,
}

#[derive(Debug, PartialEq)]
struct Track {
    number: u64,
    /// What it is called in tags.
    uid: u64,
    is_audio: bool,
    /// As it is without a mark.
    is_default: bool,
    /// Whether its packets are compressed or encrypted: the demuxer passes them on as they are.
    is_encoded: bool,
}

impl About {
    /// As far as it can be read: nothing of another format.
    pub(super) fn read(file: &mut (impl Read + Seek)) -> Self {
        let mut this = Self::default();
        // What is cut off says no more.
        let _ = this.walk(file);
        this
    }

    /// Reads a file whose size is left open to its end.
    fn look_for_the_end(&mut self, file: &mut (impl Read + Seek)) -> io::Result<()> {
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

    /// When the track of this number ends, s, if that is declared.
    pub(super) fn seconds_of(&self, track: u32) -> Option<f64> {
        let track = self.tracks.iter().find(|found| found.number == u64::from(track))?;
        self.ends.iter().find(|(end, _)| *end == track.uid).map(|(_, seconds)| *seconds)
    }

    /// What the track of this number is called in tags.
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
            // Once, however many there are.
            if kind == SEGMENT && is_open && !self.is_open {
                let place = file.stream_position()?;
                self.is_open = true;
                self.look_for_the_end(file)?;
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
                    self.is_cut |= end.map_or(Ok(false), |end| is_astray(file, end))?;
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

/// Whether one of the elements from the present position on, and of those in clusters, does not end within their segment, which
/// ends there. No matter if the file does not reach that far.
fn is_astray(file: &mut (impl Read + Seek), end: u64) -> io::Result<bool> {
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

/// The elements of a file as its bytes come, to tell whether it ends within one.
#[derive(Debug, Default)]
pub(super) struct Elements {
    /// The name and the size of an element, as far as they have come.
    start: Vec<u8>,
    /// Bytes of its body that are to come.
    rest: u64,
    /// Whether these are not elements whose end is known.
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

    /// Whether an element has begun and not ended.
    pub(super) fn is_within(&self) -> bool {
        !self.is_lost && (self.rest > 0 || !self.start.is_empty())
    }
}

/// The size of an element, and whether it is left open.
pub(super) fn size(file: &mut impl Read) -> io::Result<(u64, bool)> {
    let mut counted = Counted { source: file, count: 0 };
    let size = number(&mut counted, false)?;
    Ok((size, size == (1 << (7 * counted.count)) - 1))
}

/// Counts the bytes that are read.
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

/// A text of so many bytes.
fn text(file: &mut impl Read, length: u64) -> io::Result<String> {
    let mut bytes = vec![0; length as usize];
    file.read_exact(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned())
}

/// A number of so many bytes.
fn unsigned(file: &mut impl Read, length: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    let place = usize::try_from(length).ok().and_then(|length| bytes.get_mut(..length));
    let Some(place) = place else { return Err(io::Error::other("a number of more than 8 bytes")) };
    file.read_exact(place)?;
    Ok(place.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Seconds of `hours:minutes:seconds`.
fn seconds(text: &str) -> Option<f64> {
    let mut parts = text.splitn(3, ':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    Some(3600.0 * hours + 60.0 * minutes + seconds).filter(|seconds| seconds.is_finite())
}

/// A number of variable size (RFC 8794, section 4), with the mark of its size, as in the names of elements, or without.
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
