//! Edit lists, declared lengths and limits of MP4 files, which the demuxer of symphonia lacks.
//!
//! The edit list holds the number of samples that an encoder put before the first. Without it, AAC recordings are late by
//! the delay of their encoder, 1024 samples or more. A fragment that announces millions of packets would keep the demuxer
//! busy for minutes.

use super::error::ReadError;
use super::source::{array, array_at};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// Boxes at the top of a file (ISO/IEC 14496-12, table 1): what begins with another name behind the last of them is no
/// part of it.
const TOP: [&[u8; 4]; 12] = [
    b"moov", b"mdat", b"moof", b"mfra", b"free", b"skip", b"meta", b"udta", b"uuid", b"sidx", b"styp",
    b"emsg",
];

/// Nesting depth of the boxes that are read: moov, trak, mdia, minf, stbl.
const DEPTH: u32 = 5;

/// Limit on boxes; hours in fragments of a second need fewer.
const MAX_BOXES: u32 = 1_000_000;

/// Limit on the packets of a fragment: an hour and a half of AAC. The demuxer's work grows with their square.
const MAX_PACKETS: u64 = 1 << 18;
/// The packets that a run of them counts as, at least: the demuxer goes through the runs, too.
const RUN_PACKETS: u64 = 16;

/// Limit on the durations in the table of a track: ten hours of video of which no two frames are as long. The demuxer goes through
/// them for every packet.
const MAX_DURATIONS: u32 = 1 << 20;

/// Codecs of QuickTime whose samples are big-endian unless a box of this name and content says otherwise (QuickTime File Format,
/// sound sample descriptions); the demuxer takes all of them for little-endian.
const BIG_ENDIAN: [&[u8; 4]; 4] = [b"in24", b"in32", b"fl32", b"fl64"];
const LITTLE_ENDIAN: &[u8; 6] = b"enda\0\x01";

/// The rate of an edit that plays as fast as it was recorded; some programs leave it out.
const NORMAL_RATE: u32 = 1 << 16;

/// Limit on the description of a codec, bytes.
const MAX_DESCRIPTION: u64 = 1 << 16;

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

/// The length of the audio track by its edit list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EditLength {
    duration: u64,
    /// Units a second.
    time_scale: u32,
}

impl EditLength {
    /// Samples at a sample rate in Hz: up to a unit more, as the duration is rounded.
    pub(super) fn samples(self, sample_rate: u32) -> u64 {
        let units = u128::from(self.duration) + 1;
        let samples = (units * u128::from(sample_rate)).div_ceil(u128::from(self.time_scale.max(1)));
        u64::try_from(samples).unwrap_or(u64::MAX)
    }
}

/// Whether the first bytes of a file are those of MP4.
pub(super) fn is_mp4(start: &[u8]) -> bool {
    start.get(4..8) == Some(b"ftyp")
}

/// What the boxes of a file declare of its audio track: the first that is enabled, as players take it, or the first.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Index {
    /// Its identity.
    pub(super) track: Option<u32>,
    /// If it has a readable edit list.
    pub(super) start: Option<EditStart>,
    /// If its edit list declares one, and no fragments follow.
    pub(super) length: Option<EditLength>,
    /// When it ends, s, if that is declared.
    pub(super) seconds: Option<f64>,
    /// If the file ends within a box: where its size stands, and the size of what is there of it.
    pub(super) cut: Option<(u64, [u8; 8])>,
}

impl Index {
    /// # Errors
    /// If the file holds more boxes or announces more packets than it can or needs, or if its audio would be read as something
    /// else.
    pub(super) fn read(file: &mut (impl Read + Seek)) -> Result<Self, ReadError> {
        let length = file.seek(SeekFrom::End(0)).map_err(ReadError::Io)?;
        let mut walk = Walk { length, ..Walk::default() };
        // The demuxer refuses a file that ends within its boxes.
        let _ = walk.boxes(file, 0, length, 0);
        if walk.excess {
            return Err(ReadError::NotAudio("its index announces more than it can hold".into()));
        }
        if let Some(what) = walk.unsupported {
            return Err(ReadError::Unsupported(what.into()));
        }
        let seconds =
            |(units, scale): (u64, u32)| (units > 0 && scale > 0).then(|| units as f64 / f64::from(scale));
        // The length of the whole is that of the only track.
        let of_all = walk.fragments.zip(walk.time_scale).filter(|_| walk.tracks == 1);
        let declared = walk.declared.and_then(seconds).or_else(|| of_all.and_then(seconds));
        let edit = walk.edit_duration.filter(|&duration| duration > 0 && !walk.is_fragmented);
        let length =
            edit.zip(walk.time_scale).map(|(duration, time_scale)| EditLength { duration, time_scale });
        let track = walk.chosen.and_then(|(id, _)| id);
        Ok(Self { track, start: walk.start, length, seconds: declared, cut: walk.cut })
    }
}

#[derive(Default)]
struct Walk {
    /// Bytes of the file.
    length: u64,
    boxes: u32,
    tracks: u32,
    track: Track,
    /// The audio track so far: its identity, and whether it is enabled.
    chosen: Option<(Option<u32>, bool)>,
    start: Option<EditStart>,
    /// Duration of its edit, in units of the whole.
    edit_duration: Option<u64>,
    is_fragmented: bool,
    /// Packets of all fragments, and what counts as such in the present one.
    packets: u64,
    of_fragment: u64,
    /// Duration of that track and units a second.
    declared: Option<(u64, u32)>,
    /// Units a second, and duration of all fragments.
    time_scale: Option<u32>,
    fragments: Option<u64>,
    cut: Option<(u64, [u8; 8])>,
    excess: bool,
    /// What of the first audio track would be read as something else.
    unsupported: Option<&'static str>,
}

/// Boxes of a track, as far as they were read.
#[derive(Default)]
struct Track {
    is_audio: bool,
    id: Option<u32>,
    is_enabled: bool,
    time_scale: Option<u32>,
    duration: Option<u64>,
    edits: Edits,
    is_big_endian: bool,
}

/// Edits that are not empty.
#[derive(Default)]
struct Edits {
    count: u32,
    /// Of the first: its start in units of the track, its duration in those of the whole, and its rate.
    media_time: Option<u64>,
    duration: u64,
    rate: u32,
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
                if size > end - start && depth == 0 && TOP.iter().any(|name| header[4..] == name[..]) {
                    self.cut = Some(cut_box(&header, start, header_bytes, end - start));
                }
                return Ok(());
            }
            let (body, next) = (start + header_bytes, start + size);
            self.read_box(file, &header[4..], body..next, depth)?;
            start = next;
        }
        Ok(())
    }

    /// Reads a box of this name, from the start of its body, which is the present position.
    fn read_box(
        &mut self,
        file: &mut (impl Read + Seek),
        name: &[u8],
        body: Range<u64>,
        depth: u32,
    ) -> io::Result<()> {
        self.is_fragmented |= matches!(name, b"mvex" | b"moof");
        self.of_fragment = if name == b"traf" { 0 } else { self.of_fragment };
        match name {
            b"trak" if depth < DEPTH => {
                self.track = Track::default();
                self.tracks += 1;
                self.boxes(file, body.start, body.end, depth + 1)?;
                self.end_track();
            }
            b"moov" | b"mdia" | b"minf" | b"stbl" | b"edts" | b"mvex" | b"moof" | b"traf"
                if depth < DEPTH =>
            {
                self.boxes(file, body.start, body.end, depth + 1)?;
            }
            b"mvhd" => self.time_scale = Some(header_times(file)?.0),
            b"tkhd" => {
                let [version, .., flags] = array::<4>(file)?;
                file.seek(SeekFrom::Current(if version == 1 { 16 } else { 8 }))?;
                self.track.id = Some(u32::from_be_bytes(array(file)?));
                self.track.is_enabled = flags & 1 != 0;
            }
            b"mdhd" => {
                let (time_scale, duration) = header_times(file)?;
                (self.track.time_scale, self.track.duration) = (Some(time_scale), duration);
            }
            b"mehd" => {
                let version = array::<4>(file)?[0];
                self.fragments = duration(file, version)?;
            }
            // That of the data in QuickTime is of another kind.
            b"hdlr" => self.track.is_audio |= &array::<12>(file)?[8..] == b"soun",
            b"stsd" => {
                let mut description = Vec::new();
                file.take(MAX_DESCRIPTION.min(body.end - body.start)).read_to_end(&mut description)?;
                self.track.is_big_endian = is_big_endian(&description);
            }
            b"elst" => self.track.edits = edits(file)?,
            b"trun" => {
                let count = u64::from(u32_at(&array::<8>(file)?, 4));
                self.packets += count;
                self.of_fragment += count.max(RUN_PACKETS);
                self.excess |= self.packets > self.length || self.of_fragment > MAX_PACKETS;
            }
            b"stts" => self.excess |= u32_at(&array::<8>(file)?, 4) > MAX_DURATIONS,
            _ => {}
        }
        Ok(())
    }

    /// Keeps the duration and the start of the track if it is the one to read.
    fn end_track(&mut self) {
        let Track { is_audio: true, id, is_enabled, time_scale, duration, edits, is_big_endian } =
            &self.track
        else {
            return;
        };
        if !self.chosen.is_none_or(|(_, enabled)| *is_enabled && !enabled) {
            return;
        }
        self.chosen = Some((*id, *is_enabled));
        self.declared = Some((duration.unwrap_or(0), time_scale.unwrap_or(0)));
        let start = edits.media_time.zip(*time_scale);
        self.start = start.map(|(media_time, time_scale)| EditStart { media_time, time_scale });
        self.edit_duration = edits.media_time.map(|_| edits.duration);
        self.unsupported = if *is_big_endian {
            Some("big-endian samples in QuickTime")
        } else if edits.count > 1 || ![0, NORMAL_RATE].contains(&edits.rate) {
            Some("an MP4 edit list of several parts")
        } else {
            None
        };
    }
}

/// The place and the bytes that make a box as long as what is there of it: samples stay what they are, a part of an index
/// is skipped.
fn cut_box(header: &[u8; 8], start: u64, header_bytes: u64, length: u64) -> (u64, [u8; 8]) {
    if header_bytes == 16 {
        return (start + 8, length.to_be_bytes());
    }
    let name =
        if header[4..] == *b"mdat" { u32::from_be_bytes(*b"mdat") } else { u32::from_be_bytes(*b"free") };
    (start, (length << 32 | u64::from(name)).to_be_bytes())
}

/// Units a second and duration in the header of a file or a track.
fn header_times(file: &mut (impl Read + Seek)) -> io::Result<(u32, Option<u64>)> {
    let version = array::<4>(file)?[0];
    file.seek(SeekFrom::Current(if version == 1 { 16 } else { 8 }))?;
    Ok((u32::from_be_bytes(array(file)?), duration(file, version)?))
}

/// A duration in a box of this version, if it is known.
fn duration(file: &mut impl Read, version: u8) -> io::Result<Option<u64>> {
    let (units, unknown) = match version {
        1 => (u64::from_be_bytes(array(file)?), u64::MAX),
        _ => (u32::from_be_bytes(array(file)?).into(), u32::MAX.into()),
    };
    Ok(Some(units).filter(|&units| units != unknown))
}

/// Whether the samples of the first codec of a description are big-endian and not taken for such.
fn is_big_endian(description: &[u8]) -> bool {
    let Some(entry) = description.get(8..) else { return false };
    BIG_ENDIAN.iter().any(|name| entry.get(4..8) == Some(&name[..]))
        && !entry.windows(LITTLE_ENDIAN.len()).any(|window| window == LITTLE_ENDIAN)
}

/// The edits that are not empty.
fn edits(file: &mut impl Read) -> io::Result<Edits> {
    let version = array::<4>(file)?[0];
    let entries = u32::from_be_bytes(array(file)?);
    let mut edits = Edits::default();
    for _ in 0..entries.min(16) {
        let (duration, media_time) = if version == 1 {
            let entry: [u8; 16] = array(file)?;
            (u64::from_be_bytes(array_at(&entry, 0)), i64::from_be_bytes(array_at(&entry, 8)))
        } else {
            let entry: [u8; 8] = array(file)?;
            (u32_at(&entry, 0).into(), u32_at(&entry, 4).cast_signed().into())
        };
        let rate = u32::from_be_bytes(array(file)?);
        // An empty edit has -1.
        let Ok(media_time) = u64::try_from(media_time) else { continue };
        edits.count += 1;
        if edits.count == 1 {
            (edits.media_time, edits.duration, edits.rate) = (Some(media_time), duration, rate);
        }
    }
    Ok(edits)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array_at(bytes, at))
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

    fn read(file: Vec<u8>) -> Result<Index, ReadError> {
        Index::read(&mut Cursor::new(file))
    }

    fn start(file: Vec<u8>) -> Option<EditStart> {
        read(file).unwrap().start
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
    fn the_enabled_track_is_the_one_to_read() {
        let tracks = |enabled: [u8; 3]| {
            let tracks = (1_u8..).zip(enabled).map(|(id, enabled)| {
                let tkhd = boxed(b"tkhd", &[&[0, 0, 0, enabled], &[0; 8][..], &[0, 0, 0, id]].concat());
                let whole = track(if id == 1 { b"vide" } else { b"soun" }, 100, &[id.into()]);
                boxed(b"trak", &[&tkhd, &whole[8..]].concat())
            });
            read(boxed(b"moov", &tracks.collect::<Vec<_>>().concat())).unwrap()
        };
        for (enabled, chosen) in [([3, 2, 3], 3), ([1, 1, 1], 2), ([0, 0, 0], 2), ([1, 7, 0], 2)] {
            let found = tracks(enabled);
            assert_eq!(found.track, Some(chosen), "{enabled:?}");
            assert_eq!(found.start.map(|start| start.media_time), Some(chosen.into()), "{enabled:?}");
        }
    }

    #[test]
    fn edits_count_up_to_one() {
        let file = |media_times: &[i32], rate: u8, fragments: &[u8]| {
            let mut track = track(b"soun", 48_000, media_times);
            if let Some(at) = track.windows(4).rposition(|bytes| bytes == [0, 1, 0, 0]) {
                track[at + 1] = rate;
            }
            let mvhd = boxed(b"mvhd", &[&[0; 12][..], &600_u32.to_be_bytes(), &[0; 8]].concat());
            boxed(b"moov", &[&mvhd[..], &track, fragments].concat())
        };
        let one = read(file(&[-1, 1_024], 1, &[])).unwrap().length.unwrap();
        assert_eq!(one, EditLength { duration: 256, time_scale: 600 });
        assert_eq!(one.samples(48_000), 257 * 80);
        assert_eq!(read(file(&[1_024], 1, &boxed(b"mvex", &[]))).unwrap().length, None);
        assert_eq!(read(file(&[-1], 1, &[])).unwrap().length, None);
        for (media_times, rate) in [(&[0, 9][..], 1), (&[7, -1, 9], 1), (&[7], 2)] {
            let refused = read(file(media_times, rate, &[]));
            assert!(matches!(refused, Err(ReadError::Unsupported(_))), "{media_times:?}");
        }
    }

    #[test]
    fn big_endian_samples_are_refused() {
        let description = |codec: &[u8; 4], rest: &[u8]| {
            let entry = boxed(codec, &[&[0; 44][..], rest].concat());
            boxed(b"stsd", &[&[0, 0, 0, 0, 0, 0, 0, 1][..], &entry].concat())
        };
        let order = |value: u8| boxed(b"wave", &boxed(b"enda", &[0, value]));
        let file = |kind: &[u8; 4], description: Vec<u8>| {
            let hdlr = |of: &[u8; 4], kind| boxed(b"hdlr", &[&[0; 4][..], of, kind, &[0; 12]].concat());
            // QuickTime names the handler of the data, too.
            let minf = boxed(b"minf", &[hdlr(b"dhlr", b"alis"), boxed(b"stbl", &description)].concat());
            let mdhd = boxed(b"mdhd", &[&[0; 12][..], &48_000_u32.to_be_bytes(), &[0; 8]].concat());
            let mdia = boxed(b"mdia", &[mdhd, hdlr(b"mhlr", kind), minf].concat());
            boxed(b"moov", &[boxed(b"trak", &mdia), track(b"soun", 48_000, &[0])].concat())
        };
        for codec in BIG_ENDIAN {
            for rest in [&[][..], &order(0)] {
                let refused = read(file(b"soun", description(codec, rest)));
                assert!(matches!(refused, Err(ReadError::Unsupported(_))), "{codec:?}");
                assert!(read(file(b"vide", description(codec, rest))).is_ok());
            }
            assert!(read(file(b"soun", description(codec, &order(1)))).is_ok());
        }
        assert!(read(file(b"soun", description(b"twos", &[]))).is_ok());
    }

    #[test]
    fn fragments_cannot_hold_more_packets_than_the_file_has_bytes() {
        let run = |count: u64| boxed(b"trun", &[[0; 4], (count as u32).to_be_bytes()].concat());
        let fragment = |counts: &[u64]| {
            let runs: Vec<_> = counts.iter().flat_map(|&count| run(count)).collect();
            boxed(b"moof", &boxed(b"traf", &runs))
        };
        assert_eq!(start(fragment(&[32])), None);
        assert!(read(fragment(&[33])).is_err());
        // All of them together.
        assert_eq!(start(fragment(&[24, 24])), None);
        assert!(read(fragment(&[24, 25])).is_err());
        assert_eq!(start([fragment(&[40]), fragment(&[24])].concat()), None);
        assert!(read([fragment(&[40]), fragment(&[25])].concat()).is_err());
        let behind = |file: Vec<u8>| [file, boxed(b"mdat", &vec![0; 2 * MAX_PACKETS as usize])].concat();
        assert_eq!(start(behind([fragment(&[MAX_PACKETS]), fragment(&[MAX_PACKETS])].concat())), None);
        assert!(read(behind(fragment(&[MAX_PACKETS + 1]))).is_err());
        assert!(read(behind(fragment(&[MAX_PACKETS, 1]))).is_err());
        let runs = (MAX_PACKETS / RUN_PACKETS) as usize;
        assert_eq!(start(behind(fragment(&vec![1; runs]))), None);
        assert!(read(behind(fragment(&vec![0; runs + 1]))).is_err(), "nor as many runs without any");
    }

    #[test]
    fn tables_of_durations_that_no_recording_needs_are_refused() {
        let table = |count: u32| boxed(b"stbl", &boxed(b"stts", &[[0; 4], count.to_be_bytes()].concat()));
        assert_eq!(start(table(MAX_DURATIONS)), None);
        assert!(read(table(MAX_DURATIONS + 1)).is_err());
    }

    #[test]
    fn the_declared_end_of_the_audio_is_found_and_a_cut_is_noticed() {
        let mdhd = |version: u8, duration: &[u8]| {
            let times = vec![0; if version == 1 { 16 } else { 8 }];
            boxed(b"mdhd", &[&[version, 0, 0, 0][..], &times, &1_000_u32.to_be_bytes(), duration].concat())
        };
        let hdlr = boxed(b"hdlr", &[&[0; 8][..], b"soun", &[0; 12]].concat());
        let track = |mdhd: Vec<u8>| boxed(b"trak", &boxed(b"mdia", &[mdhd, hdlr.clone()].concat()));
        let seconds = |tracks: &[Vec<u8>], rest: &[u8]| {
            read([boxed(b"ftyp", b"M4A "), boxed(b"moov", &[&tracks.concat(), rest].concat())].concat())
                .unwrap()
                .seconds
        };
        assert_eq!(seconds(&[track(mdhd(0, &[0, 0, 0x13, 0x88]))], &[]), Some(5.0));
        assert_eq!(seconds(&[track(mdhd(1, &[0, 0, 0, 0, 0, 0, 0x13, 0x88]))], &[]), Some(5.0));
        assert_eq!(seconds(&[track(mdhd(0, &[0xff; 4]))], &[]), None, "unknown");
        // A file in fragments declares how long all of them are, which is no one's length among several tracks.
        let mvhd = boxed(b"mvhd", &[&[0; 12][..], &500_u32.to_be_bytes(), &[0; 8]].concat());
        let mehd = boxed(b"mvex", &boxed(b"mehd", &[[0; 4], 2_000_u32.to_be_bytes()].concat()));
        let all = [mvhd, mehd].concat();
        let open = track(mdhd(0, &[0; 4]));
        assert_eq!(seconds(std::slice::from_ref(&open), &all), Some(4.0));
        assert_eq!(seconds(&[open.clone(), open], &all), None);

        let whole = [boxed(b"ftyp", b"M4A "), boxed(b"mdat", &[7; 99])].concat();
        let cut = |file: &[u8]| read(file.to_vec()).unwrap().cut;
        assert_eq!(cut(&whole), None);
        assert_eq!(cut(&whole[..whole.len() - 1]), Some((12, *b"\0\0\0\x6amdat")));
        let long = [&b"\0\0\0\x01moof\0\0\0\0\0\0\x01\0"[..], &[0; 4]].concat();
        assert_eq!(cut(&long), Some((8, [0, 0, 0, 0, 0, 0, 0, 20])));
        assert_eq!(cut(&[&whole[..], b"\0\0\x01\0moof"].concat()), Some((119, *b"\0\0\0\x08free")));
        assert_eq!(
            None,
            cut(&[&whole[..], b"\0\0\x09\0junk"].concat()),
            "what is behind it is no part of it"
        );
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
        assert!(read(many).is_err());
    }
}
