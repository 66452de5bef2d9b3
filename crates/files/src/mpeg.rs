//! Damaged streams of MPEG audio frames (MP1, MP2, MP3, and AAC in ADTS). Decoders silently skip to the next frame, which
//! shifts all later audio; here, silent frames replace lost ones.

#[cfg(test)]
mod tests;

use super::source::{array_at, id3_bytes};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Bytes of a frame header that are read.
const HEADER: usize = 7;
/// Maximum length of damage that is searched, bytes.
const MAX_GAP: usize = 1 << 22;
/// The largest ID3 tag, bytes.
const MAX_TAG: u64 = 1 << 29;
/// Length of the longest header of a tag, bytes, which APEv2 has.
const MAX_NAME: usize = 32;
/// Names of the tables in first frames that hold the number of frames.
const DECLARATIONS: [&[u8; 4]; 3] = [b"Xing", b"Info", b"VBRI"];
/// Markers of lyrics between frames and an ID3v1 tag (Lyrics3): the start, the end of fields, after six digits of their
/// length, and the end of a text. A text is shorter than [`MAX_LYRICS`] bytes.
const LYRICS: &[u8] = b"LYRICSBEGIN";
const END_OF_FIELDS: &[u8] = b"LYRICS200";
const END_OF_TEXT: &[u8] = b"LYRICSEND";
const MAX_LYRICS: usize = 5_200;
/// Limit on the fields of lyrics; eight are defined.
const MAX_FIELDS: usize = 64;
/// Signatures of other formats: MPEG frames within them are no stream.
const SIGNATURES: [&[u8]; 5] = [b"OggS", b"\x1a\x45\xdf\xa3", b"FORM", b"caff", b"fLaC"];
/// Bytes searched for the first frames, as many as symphonia searches, in steps that grow by a factor of four.
pub(super) const SEARCHED: usize = 1 << 20;
pub(super) const FIRST_STEP: usize = 1 << 14;
const CHUNK: usize = 1 << 16;

/// Bit rates of MPEG-1 layers I, II and III and of MPEG-2 layers I and the others, kbit/s (ISO/IEC 11172-3, 13818-3).
const BIT_RATES: [[usize; 14]; 5] = [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];

/// The header of a frame.
#[derive(Debug, Clone, Copy)]
struct Frame {
    header: [u8; HEADER],
    /// Length including the header, bytes.
    bytes: usize,
    samples: u64,
}

impl Frame {
    /// Parses the header at the start of these bytes.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let header = *bytes.first_chunk::<HEADER>()?;
        let [sync, second, third, fourth, fifth, sixth, _] = header.map(usize::from);
        let is_adts = second & 0xf6 == 0xf0;
        if sync != 0xff || second & 0xe0 != 0xe0 {
            return None;
        }
        if is_adts {
            let bytes = (fourth & 3) << 11 | fifth << 3 | sixth >> 5;
            return (third >> 2 & 15 < 13 && bytes > HEADER).then_some(Self { header, bytes, samples: 1024 });
        }
        let (version, layer) = (second >> 3 & 3, 4 - (second >> 1 & 3));
        let (rate, padding) = (third >> 2 & 3, third >> 1 & 1);
        if version == 1 || layer == 4 || rate == 3 {
            return None;
        }
        let is_first = version == 3;
        let bit_rates = match (is_first, layer) {
            (true, layer) => &BIT_RATES[layer - 1],
            (false, 1) => &BIT_RATES[3],
            (false, _) => &BIT_RATES[4],
        };
        let bit_rate = 1000 * bit_rates.get((third >> 4).checked_sub(1)?)?;
        let sample_rate = [44_100, 48_000, 32_000][rate] >> [2, 0, 1, 0][version];
        let samples = match layer {
            1 => 384,
            3 if !is_first => 576,
            _ => 1152,
        };
        let slot = if layer == 1 { 4 } else { 1 };
        let bytes = (samples / 8 / slot * bit_rate / sample_rate + padding) * slot;
        Some(Self { header, bytes, samples: samples as u64 })
    }

    fn is_adts(&self) -> bool {
        self.header[1] & 6 == 0
    }

    /// Whether both may be of one stream: the same version, layer and sampling frequency.
    fn is_like(&self, other: &Self) -> bool {
        let kind = |frame: &Self| {
            (frame.header[1] & 0xfe, frame.header[2] & if frame.is_adts() { 0x3c } else { 0x0c })
        };
        kind(self) == kind(other)
    }

    /// Creates a silent frame to replace a lost one.
    fn silent(&self) -> Vec<u8> {
        let mut header = self.header;
        header[1] |= 1; // no checksum
        if self.is_adts() {
            // Only the element that ends a frame.
            const END: u8 = 0xe0;
            header[3] &= 0xfc;
            header[4] = (HEADER as u8 + 1) >> 3;
            header[5] = (HEADER as u8 + 1) << 5 | header[5] & 0x1f;
            [&header[..], &[END]].concat()
        } else {
            let mut frame = vec![0; self.bytes];
            frame[..4].copy_from_slice(&header[..4]);
            frame
        }
    }
}

/// Counts of lost data, updated while a stream is read.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// Runs of damaged bytes.
    pub(super) gaps: AtomicU64,
    /// Samples per channel replaced with silence.
    pub(super) samples: AtomicU64,
    /// Whether the last frame lacks bytes.
    pub(super) ends_early: AtomicBool,
    /// Whether frames of another kind follow, which are another recording.
    pub(super) other_recording: AtomicBool,
}

impl Lost {
    fn any(&self) -> bool {
        self.gaps.load(Relaxed) > 0 || self.ends_early.load(Relaxed) || self.other_recording.load(Relaxed)
    }
}

/// Reader of a stream of frames that replaces damaged frames with silent ones, up to the end of the recording. Any
/// other stream passes unchanged.
pub(super) struct MendedFrames<R> {
    source: R,
    exhausted: bool,
    /// Bytes read; those before `place` have been returned.
    bytes: Vec<u8>,
    place: usize,
    /// Number of bytes to return without a check.
    sound: u64,
    /// Silence to return first: the remaining bytes of a silent frame, and the number of further silent frames.
    silence: VecDeque<u8>,
    silent_frames: usize,
    /// The last valid frame.
    last: Option<Frame>,
    /// Number of valid frames and their bytes; the mean length estimates the number of frames lost in a gap.
    frames: usize,
    frame_bytes: usize,
    /// Whether the first frame declares the number of frames.
    is_declared: bool,
    lost: Arc<Lost>,
}

impl<R: Read> MendedFrames<R> {
    pub(super) fn counting(source: R, lost: Arc<Lost>) -> Self {
        Self {
            source,
            exhausted: false,
            bytes: Vec::new(),
            place: 0,
            sound: 0,
            silence: VecDeque::new(),
            silent_frames: 0,
            last: None,
            frames: 0,
            frame_bytes: 0,
            is_declared: false,
            lost,
        }
    }

    /// Returns up to `count` bytes, from `ahead` bytes after the current position.
    fn peek(&mut self, ahead: usize, count: usize) -> io::Result<&[u8]> {
        let end = self.place + ahead + count;
        if self.bytes.len() < end && !self.exhausted {
            self.bytes.drain(..std::mem::take(&mut self.place));
            let missing = (ahead + count - self.bytes.len()).max(CHUNK);
            let read = self.source.by_ref().take(missing as u64).read_to_end(&mut self.bytes)?;
            self.exhausted = read < missing;
        }
        let rest = self.bytes.get(self.place + ahead..).unwrap_or_default();
        Ok(&rest[..count.min(rest.len())])
    }

    /// Returns the frame at an offset, if a frame of the same stream follows it.
    fn confirmed(&mut self, ahead: usize) -> io::Result<Option<Frame>> {
        let Some(frame) = Frame::parse(self.peek(ahead, HEADER)?) else { return Ok(None) };
        let next = Frame::parse(self.peek(ahead + frame.bytes, HEADER)?);
        Ok(Some(frame).filter(|frame| next.is_some_and(|next| next.is_like(frame))))
    }

    /// Finds the first consecutive frames; returns their offset and the first of them.
    fn first_frames(&mut self) -> io::Result<Option<(usize, Frame)>> {
        let mut step = FIRST_STEP;
        loop {
            let bytes = self.peek(0, step)?;
            let is_whole = bytes.len() < step;
            let found = if has_signature(bytes) { None } else { first_frames(bytes, is_whole) };
            if found.is_some() || is_whole || has_signature(bytes) || step >= SEARCHED {
                return Ok(found);
            }
            step *= 4;
        }
    }

    /// Returns the length of lyrics at the current position, bytes, if there are any.
    fn lyrics(&mut self) -> io::Result<Option<u64>> {
        if self.peek(0, LYRICS.len())? != LYRICS {
            return Ok(None);
        }
        let mut length = LYRICS.len();
        for _ in 0..MAX_FIELDS {
            // The name and length of a field, or the total length and the end marker.
            let next = self.peek(length, 6 + END_OF_FIELDS.len())?;
            if next.ends_with(END_OF_FIELDS) && decimal(&next[..6]) == Some(length) {
                return Ok(Some((length + next.len()) as u64));
            }
            let is_name = next.len() > 8 && next[..3].iter().all(u8::is_ascii_uppercase);
            let Some(field) = next.get(3..8).filter(|_| is_name).and_then(decimal) else { break };
            length += 8 + field;
        }
        let text = self.peek(0, MAX_LYRICS)?;
        let end = text.windows(END_OF_TEXT.len()).position(|bytes| bytes == END_OF_TEXT);
        // A text never has the byte with which a frame begins.
        let end = end.filter(|&end| !text[..end].contains(&0xff));
        Ok(end.map(|end| (end + END_OF_TEXT.len()) as u64))
    }

    /// Returns the length of a tag or of lyrics at the current position, bytes, if there are any. After frames, damage
    /// may resemble a tag.
    fn tag(&mut self) -> io::Result<Option<u64>> {
        let tag = match tag_bytes(self.peek(0, MAX_NAME)?) {
            None => self.lyrics()?,
            tag => tag,
        };
        match (tag, self.last) {
            (Some(bytes), Some(last)) if !self.is_tag(bytes, &last)? => Ok(None),
            _ => Ok(tag),
        }
    }

    /// Whether `bytes` bytes after frames are followed by a frame, another tag or the end.
    fn is_tag(&mut self, bytes: u64, last: &Frame) -> io::Result<bool> {
        let Some(bytes) = usize::try_from(bytes).ok().filter(|&bytes| bytes < MAX_GAP) else {
            return Ok(false);
        };
        let is_there = self.peek(0, bytes)?.len() == bytes;
        let next = self.peek(bytes, MAX_NAME)?;
        let is_expected = next.is_empty()
            || tag_bytes(next).is_some()
            || next.starts_with(LYRICS)
            || Frame::parse(next).is_some_and(|frame| frame.is_like(last));
        Ok(is_there && (is_expected || self.confirmed(bytes)?.is_some()))
    }

    /// Determines the number of valid bytes ahead, and the frames lost before them.
    fn advance(&mut self) -> io::Result<()> {
        if let Some(bytes) = self.tag()? {
            self.sound = bytes;
            return Ok(());
        }
        let header = Frame::parse(self.peek(0, HEADER)?);
        let mut next = match (header, self.last) {
            (Some(frame), Some(last)) if frame.is_like(&last) => Some(frame),
            _ => self.confirmed(0)?,
        };
        if next.is_none() && self.last.is_none() {
            let first = self.first_frames()?;
            // Damage may begin with the second frame.
            next = header.filter(|frame| first.is_some_and(|(_, first)| frame.is_like(&first)));
            if next.is_none() {
                self.sound = first.map_or(u64::MAX, |(ahead, _)| ahead as u64);
                return Ok(());
            }
        }
        if let Some(frame) = next {
            if self.last.is_some_and(|last| !frame.is_like(&last)) {
                self.lost.other_recording.store(true, Relaxed);
                return Ok(());
            }
            let found = self.peek(0, frame.bytes)?.len();
            if self.frames == 0 {
                let body = self.peek(0, frame.bytes)?;
                self.is_declared =
                    body.windows(4).any(|four| DECLARATIONS.iter().any(|name| four == &name[..]));
            }
            if found < frame.bytes {
                self.lost.ends_early.store(true, Relaxed);
            }
            self.sound = frame.bytes as u64;
            self.last = Some(frame);
            self.frames += 1;
            self.frame_bytes += frame.bytes;
            return Ok(());
        }
        let Some(last) = self.last else {
            self.sound = u64::MAX;
            return Ok(());
        };
        if self.peek(0, HEADER)?.len() < HEADER && self.peek(0, 1)? == [0xff] {
            self.lost.ends_early.store(true, Relaxed);
        }
        for gap in 1..MAX_GAP {
            let start = self.peek(gap, MAX_NAME)?;
            if start.is_empty() {
                break;
            }
            // Frames, or an ID3 tag before them. Other tags may begin before their marker.
            let tag = id3_bytes(start).and_then(|bytes| usize::try_from(bytes).ok()).filter(|&n| n < MAX_GAP);
            if self.confirmed(gap + tag.unwrap_or(0))?.is_some_and(|frame| frame.is_like(&last)) {
                let lost = (2 * gap * self.frames / self.frame_bytes).div_ceil(2);
                self.place += gap;
                self.silent_frames = lost;
                self.lost.gaps.fetch_add(1, Relaxed);
                self.lost.samples.fetch_add(lost as u64 * last.samples, Relaxed);
                return Ok(());
            }
        }
        // Bytes after the last frame, such as lyrics, are no damage.
        self.sound = u64::MAX;
        Ok(())
    }
}

impl<R: Read> Read for MendedFrames<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.silence.is_empty() || target.is_empty() {
                return self.silence.read(target);
            }
            if let Some(last) = self.last.filter(|_| self.silent_frames > 0) {
                self.silent_frames -= 1;
                self.silence.extend(last.silent());
                continue;
            }
            if self.sound > 0 {
                let most = usize::try_from(self.sound).unwrap_or(usize::MAX).min(CHUNK);
                let count = self.peek(0, most)?.read(target)?;
                self.place += count;
                self.sound -= count as u64;
                return Ok(count);
            }
            if self.lost.other_recording.load(Relaxed) || self.peek(0, 1)?.is_empty() {
                return Ok(0);
            }
            self.advance()?;
        }
    }
}

/// Properties of a stream of frames.
pub(super) struct Survey {
    /// Whether data are lost.
    pub(super) is_damaged: bool,
    /// Samples per channel in its frames, unless the first frame declares them. Demuxers estimate them from the bytes,
    /// which may include tags.
    pub(super) samples: Option<u64>,
}

/// Surveys a stream of frames to its end; does not read other formats to their end.
pub(super) fn survey(source: impl Read) -> io::Result<Survey> {
    let mut mended = MendedFrames::counting(source, Arc::default());
    let mut target = vec![0; CHUNK];
    while mended.sound <= MAX_TAG && mended.read(&mut target)? > 0 {}
    let samples = mended.last.map(|last| mended.frames as u64 * last.samples);
    Ok(Survey { is_damaged: mended.lost.any(), samples: samples.filter(|_| !mended.is_declared) })
}

/// Number of bytes of an APE tag from its header or footer, both of which store the length without the header (APEv2).
pub(super) fn ape_bytes(start: &[u8]) -> u64 {
    const HAS_HEADER: u32 = 1 << 31;
    const IS_HEADER: u32 = 1 << 29;
    const HEADER_BYTES: u64 = 32;
    let Some(header) = start.first_chunk::<{ HEADER_BYTES as usize }>() else { return HEADER_BYTES };
    let number = |at: usize| u32::from_le_bytes(array_at(header, at));
    let body = u64::from(number(12)).min(MAX_TAG - HEADER_BYTES);
    HEADER_BYTES + if number(20) & HAS_HEADER != 0 && number(20) & IS_HEADER != 0 { body } else { 0 }
}

/// Whether a tag or consecutive frames identify the bytes as a stream of frames; a single header may be any data.
/// `is_whole` if there are no further bytes.
pub(super) fn has_frames(bytes: &[u8], is_whole: bool) -> bool {
    tag_bytes(bytes).is_some() || first_frames(bytes, is_whole).is_some()
}

/// Whether the bytes begin with the signature of another format.
pub(super) fn has_signature(start: &[u8]) -> bool {
    SIGNATURES.iter().any(|mark| start.starts_with(mark))
}

/// Finds the first consecutive frames; returns their offset and the first of them. `is_whole` if there are no further
/// bytes.
fn first_frames(bytes: &[u8], is_whole: bool) -> Option<(usize, Frame)> {
    /// Number of consecutive frames of one kind that identify a stream.
    const FRAMES: usize = 4;
    (0..bytes.len()).find_map(|start| {
        let first = Frame::parse(&bytes[start..])?;
        let (mut rest, mut last, mut count) = (&bytes[start..], None, 0);
        while let Some(frame) = Frame::parse(rest)
            && last.is_none_or(|last| frame.is_like(&last))
            && count < FRAMES
        {
            (rest, last, count) = (rest.get(frame.bytes..).unwrap_or_default(), Some(frame), count + 1);
        }
        // A short recording ends with its last frame, or within it.
        let is_short = is_whole && (rest.len() < HEADER || tag_bytes(rest).is_some());
        let is_stream = count == FRAMES || is_short && (count > 1 || start == 0);
        is_stream.then_some((start, first))
    })
}

/// Parses a decimal number.
fn decimal(digits: &[u8]) -> Option<usize> {
    digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| 10 * number + usize::from(digit - b'0')))
}

/// Number of bytes to return without a check for an ID3 (v1, v2) or APE tag at the start.
fn tag_bytes(start: &[u8]) -> Option<u64> {
    if start.starts_with(b"TAG") {
        Some(128)
    } else if start.starts_with(b"APETAGEX") {
        Some(ape_bytes(start))
    } else {
        id3_bytes(start)
    }
}
