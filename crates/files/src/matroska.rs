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
mod tests {
    use super::*;
    use std::io::Cursor;

    fn element(kind: u32, body: &[u8]) -> Vec<u8> {
        let kind = kind.to_be_bytes();
        let start = kind.iter().take_while(|byte| **byte == 0).count();
        [&kind[start..], &[0x40 | (body.len() >> 8) as u8, body.len() as u8], body].concat()
    }

    #[test]
    fn the_title_is_found_before_the_samples_alone() {
        let information =
            element(INFO, &[element(0x2a_d7b1, &[1; 3]), element(TITLE, b"A title\0")].concat());
        let header = element(HEADER, &[7; 300]);
        let file = |parts: &[&[u8]]| [header.clone(), element(SEGMENT, &parts.concat())].concat();
        let found = |file: Vec<u8>| About::read(&mut Cursor::new(file)).title;
        let whole = file(&[&element(0xec, &[0; 40]), &information, &element(CLUSTER, &[0; 9])]);
        assert_eq!(found(whole.clone()).as_deref(), Some("A title"));
        assert_eq!(found(file(&[&element(CLUSTER, &[0; 9]), &information])), None);
        // Of unknown length, as in a stream.
        let stream = [&header, &[0x18, 0x53, 0x80, 0x67, 0x01][..], &[0xff; 7], &information].concat();
        assert!(About::read(&mut Cursor::new(&stream)).is_open);
        assert_eq!(found(stream).as_deref(), Some("A title"));
    }

    #[test]
    fn what_is_cut_off_or_made_up_has_no_title() {
        let whole =
            [element(HEADER, &[]), element(SEGMENT, &element(INFO, &element(TITLE, b"A title")))].concat();
        for length in 0..whole.len() {
            assert_eq!(About::read(&mut Cursor::new(&whole[..length])), About::default(), "{length} bytes");
        }
        for rest in
            [&[0; 16][..], &[0xff; 16], &[0x01; 16], &[0xec, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]]
        {
            let file = [&element(HEADER, &[]), rest].concat();
            assert_eq!(About::read(&mut Cursor::new(file)), About::default());
        }
        // Empty elements without end.
        let many = [element(HEADER, &[]), [0xec, 0x80].repeat(MAX_ELEMENTS), element(TITLE, b"A")].concat();
        assert_eq!(About::read(&mut Cursor::new(many)), About::default());
    }

    #[test]
    fn an_end_within_an_element_is_noticed() {
        let open = |kind: u32| [&kind.to_be_bytes()[..], &[1, 255, 255, 255, 255, 255, 255, 255]].concat();
        let blocks = [element(0xe7, &[0]), element(0xa3, &[7; 300])];
        let parts = [element(HEADER, &[1; 9]), open(SEGMENT), element(INFO, &[]), open(CLUSTER)];
        let whole = [&parts.concat(), &blocks.concat(), &open(CLUSTER), &blocks.concat()[..]].concat();
        let ends: Vec<usize> = (0..=whole.len())
            .filter(|&length| {
                let mut elements = Elements::default();
                whole[..length].chunks(7).for_each(|bytes| elements.push(bytes));
                let mut of_one = Elements::default();
                of_one.push(&whole[..length]);
                assert_eq!(elements.is_within(), of_one.is_within());
                !elements.is_within()
            })
            .collect();
        // The parts, then twice a cluster's two blocks, and the cluster between.
        assert_eq!(ends.len(), 1 + 4 + 2 + 1 + 2, "{ends:?}");
        assert!(!About::read(&mut Cursor::new(&whole)).is_cut);
        assert!(About::read(&mut Cursor::new(&whole[..whole.len() - 1])).is_cut);
        let mut garbage = Elements::default();
        garbage.push(&[0; 40]);
        assert!(!garbage.is_within());
    }

    #[test]
    fn what_stands_among_the_elements_is_noticed() {
        let cluster = element(CLUSTER, &[element(0xe7, &[0]), element(0xa3, &[7; 300])].concat());
        let open = [&CLUSTER.to_be_bytes()[..], &[0xff], &element(0xa3, &[7; 300])].concat();
        let is_cut = |parts: &[&[u8]], behind: &[u8]| {
            let segment = element(SEGMENT, &[&element(INFO, &[]), &parts.concat()[..]].concat());
            About::read(&mut Cursor::new([&element(HEADER, &[]), &segment, behind].concat())).is_cut
        };
        let void = element(0xec, &[0; 30]);
        for parts in [&[&cluster[..], &cluster, &void][..], &[&cluster], &[&open, &open, &void], &[&void]] {
            assert!(!is_cut(parts, &[]) && !is_cut(parts, &[0xff; 99]));
        }
        // What looks like an element of a megabyte, and like none.
        for other in [&[0xa3, 0x10, 0x10, 0, 0, 1, 2, 3][..], &[0; 9]] {
            assert!(
                is_cut(&[&cluster, other, &cluster], &[]) && is_cut(&[&open, &cluster, other, &void], &[])
            );
        }
    }

    #[test]
    fn a_file_is_read_to_its_end_once() {
        struct Counting(Cursor<Vec<u8>>, usize);
        impl Read for Counting {
            fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
                let count = self.0.read(target)?;
                self.1 += count;
                Ok(count)
            }
        }
        impl Seek for Counting {
            fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
                self.0.seek(to)
            }
        }
        let segments = [&SEGMENT.to_be_bytes()[..], &[0xff]].concat().repeat(9_000);
        let bytes = [element(HEADER, &[]), segments].concat();
        let length = bytes.len();
        let mut file = Counting(Cursor::new(bytes), 0);
        assert!(About::read(&mut file).is_open);
        assert!(file.1 <= 3 * length, "{} bytes of {length}", file.1);
    }

    /// A track without a mark is a default one (RFC 9559, section 5.1.4.1.6).
    #[test]
    fn the_default_audio_track_is_found() {
        let found = |tracks: &[(u8, Option<u8>)]| {
            let track = |(number, &(kind, mark)): (u8, &(u8, Option<u8>))| {
                let mark = mark.map(|mark| element(FLAG_DEFAULT, &[mark])).unwrap_or_default();
                element(
                    TRACK,
                    &[element(TRACK_NUMBER, &[number]), element(TRACK_TYPE, &[kind]), mark].concat(),
                )
            };
            let tracks: Vec<_> = (1_u8..).zip(tracks).map(track).collect();
            let whole = [element(HEADER, &[]), element(SEGMENT, &element(TRACKS, &tracks.concat()))].concat();
            About::read(&mut Cursor::new(&whole)).default_audio()
        };
        assert_eq!(found(&[(1, None), (2, None), (2, Some(1))]), Some(2));
        assert_eq!(found(&[(1, Some(1)), (2, Some(0)), (2, None)]), Some(3));
        assert_eq!(found(&[(2, Some(0)), (2, Some(1)), (2, Some(1))]), Some(2));
        assert_eq!(found(&[(1, None), (2, Some(0))]), None);
    }

    #[test]
    fn compressed_tracks_are_noticed() {
        let track = |number: u8, rest: &[u8]| {
            element(TRACK, &[&element(TRACK_NUMBER, &[number])[..], &element(0x83, &[2]), rest].concat())
        };
        let compression = element(CONTENT_ENCODINGS, &element(0x6240, &element(0x5034, &[])));
        let tracks = [track(1, &[]), track(2, &compression), track(3, &element(CONTENT_ENCODINGS, &[]))];
        let whole = [element(HEADER, &[]), element(SEGMENT, &element(TRACKS, &tracks.concat()))].concat();
        let about = About::read(&mut Cursor::new(&whole));
        assert_eq!([1, 2, 3, 4].map(|track| about.is_encoded(track)), [false, true, false, false]);
    }

    #[test]
    fn the_ends_of_tracks_are_found() {
        let track = |number: u8, uid: u8| {
            element(TRACK, &[element(TRACK_NUMBER, &[number]), element(TRACK_UID, &[0, uid])].concat())
        };
        let tag = |uid: u8, name: &[u8], text: &[u8]| {
            let simple = element(SIMPLE_TAG, &[element(TAG_NAME, name), element(TAG_TEXT, text)].concat());
            element(TAG, &[element(TARGETS, &element(TARGET_TRACK, &[uid])), simple].concat())
        };
        let tags = [tag(7, b"DURATION", b"00:01:04.250000000\0"), tag(9, b"ENCODER", b"00:00:01")];
        let parts = [element(TRACKS, &[track(1, 7), track(2, 9)].concat()), element(TAGS, &tags.concat())];
        let whole = [element(HEADER, &[]), element(SEGMENT, &parts.concat())].concat();
        let about = About::read(&mut Cursor::new(&whole));
        assert_eq!(
            (about.seconds_of(1), about.seconds_of(2), about.seconds_of(3)),
            (Some(64.25), None, None)
        );
        for length in 0..whole.len() {
            assert!(
                About::read(&mut Cursor::new(&whole[..length])).ends.is_empty() || length > whole.len() / 2
            );
        }
        assert_eq!((seconds("1:2"), seconds("1:2:x"), seconds("1:1:1e999")), (None, None, None));
    }
}
