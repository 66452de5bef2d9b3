//! Edit lists, declared lengths, times of fragments and limits of MP4 files, which the demuxer of symphonia lacks.
//!
//! The edit list holds the number of samples that an encoder put before the first. Without it, AAC recordings are late by
//! the delay of their encoder, 1024 samples or more. For every packet, the demuxer goes through the tables of all tracks: the
//! others are hidden from it, and a table that would keep it busy for minutes is left to other programs.

use super::error::ReadError;
use super::source::{array, array_at};
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

/// Boxes at the top of a file (ISO/IEC 14496-12, table 1): what begins with another name behind the last of them is no
/// part of it.
const TOP: [&[u8; 4]; 12] = [
    b"moov", b"mdat", b"moof", b"mfra", b"free", b"skip", b"meta", b"udta", b"uuid", b"sidx", b"styp",
    b"emsg",
];

/// The name of free space, and what of a file is read from the wrong places: the demuxer takes a place into account only if it
/// lies behind the last packet.
const FREE: u64 = u32::from_be_bytes(*b"free") as u64;
const OUT_OF_ORDER: &str = "an MP4 file whose samples are out of order";

/// Nesting depth of the boxes that are read: moov, trak, mdia, minf, stbl.
const DEPTH: u32 = 5;

/// Limit on boxes; hours in fragments of a second need fewer.
const MAX_BOXES: u32 = 1_000_000;

/// Limit on the steps of the demuxer through its tables, for each byte of a file. AAC in packets of 60 bytes, of which no two are
/// as long, needs as many in three hours.
const STEPS_PER_BYTE: u64 = 1 << 12;

/// Steps that a fragment without packets counts as.
const IDLE_STEPS: u64 = 4;

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
#[derive(Debug, Default, Clone, PartialEq)]
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
    /// Audio tracks besides this one.
    pub(super) other_tracks: usize,
    /// The starts of boxes of other tracks as those of free space.
    hidden: BTreeMap<u64, [u8; 8]>,
    /// Missing fragments, in units of the track: where they are if nothing is missing before them, and how long.
    pub(super) gaps: Vec<(u64, u64)>,
}

impl Index {
    /// # Errors
    /// If the file holds more boxes or announces more packets than it can or needs, or if its audio would be read as something
    /// else, or too slowly.
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
        if walk.steps > walk.length.saturating_mul(STEPS_PER_BYTE) {
            return Err(ReadError::Unsupported("an MP4 file with tables of this size".into()));
        }
        let track = walk.chosen.and_then(|(id, _)| id);
        Ok(Self {
            track,
            start: walk.start,
            length,
            seconds: declared,
            cut: walk.cut,
            other_tracks: walk.audio_tracks.saturating_sub(1),
            hidden: walk.hidden(),
            gaps: walk.gaps,
        })
    }

    /// Bytes of the file to be replaced for the demuxer, by where they stand.
    pub(super) fn patches(&mut self) -> BTreeMap<u64, [u8; 8]> {
        let mut patches = std::mem::take(&mut self.hidden);
        patches.extend(self.cut);
        patches
    }
}

#[derive(Default)]
struct Walk {
    /// Bytes of the file.
    length: u64,
    boxes: u32,
    /// The present box: where it begins, and how.
    place: (u64, [u8; 8]),
    tracks: u32,
    audio_tracks: usize,
    track: Track,
    /// The audio track so far: its identity, and whether it is enabled.
    chosen: Option<(Option<u32>, bool)>,
    /// Where it begins.
    chosen_at: u64,
    /// Where tracks begin, and how.
    track_places: Vec<(u64, [u8; 8])>,
    /// What fragments have in common, for each track: where it begins and how, its identity, and the duration of its packets.
    defaults: Vec<((u64, [u8; 8]), u32, u32)>,
    start: Option<EditStart>,
    /// Duration of its edit, in units of the whole.
    edit_duration: Option<u64>,
    is_fragmented: bool,
    /// Packets of all fragments.
    packets: u64,
    /// The fragments of that track.
    fragment: Fragment,
    /// Where the box of the present one begins, and whether it has had one of that track.
    fragment_at: u64,
    is_present: bool,
    /// Where the last run of packets begins.
    run_at: u64,
    /// Steps of the demuxer, and how many it takes through what has no packet since the last one.
    steps: u64,
    idle_steps: u64,
    /// Duration of all packets so far, and when the next one is due.
    elapsed: u64,
    due: Option<u64>,
    gaps: Vec<(u64, u64)>,
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
    durations: Durations,
    is_out_of_order: bool,
}

/// A table of the durations of packets: how many entries it has, the steps of the demuxer, which begins anew for every packet,
/// and the sum of all.
#[derive(Default)]
struct Durations {
    entries: u64,
    steps: u64,
    total: u64,
}

/// The part of a track in a fragment.
#[derive(Default)]
struct Fragment {
    track: Option<u32>,
    /// Where places in it count from, if that is not its start.
    base: Option<u64>,
    /// Duration of a packet without its own.
    default_duration: Option<u32>,
    /// When it begins.
    time: Option<u64>,
    runs: u64,
    packets: u64,
    steps: u64,
    /// Duration of the packets that have their own, and how many have not.
    duration: u64,
    without_duration: u64,
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
            self.place = (start, header);
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
        match name {
            b"trak" if depth < DEPTH => {
                let place = self.place;
                self.track = Track::default();
                self.tracks += 1;
                self.track_places.push(place);
                self.boxes(file, body.start, body.end, depth + 1)?;
                self.end_track(place.0);
            }
            b"moof" if depth < DEPTH => {
                (self.fragment_at, self.is_present) = (self.place.0, false);
                self.boxes(file, body.start, body.end, depth + 1)?;
                self.steps = self.steps.saturating_add(self.idle_steps);
                self.idle_steps = if self.is_present { 0 } else { self.idle_steps + IDLE_STEPS };
            }
            b"traf" if depth < DEPTH => {
                self.fragment = Fragment::default();
                self.boxes(file, body.start, body.end, depth + 1)?;
                self.end_fragment();
            }
            b"moov" | b"mdia" | b"minf" | b"stbl" | b"edts" | b"mvex" if depth < DEPTH => {
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
            b"elst" => self.track.edits = edits(&mut within(file, &body))?,
            b"stts" => self.track.durations = durations(&mut within(file, &body))?,
            b"stco" => self.track.is_out_of_order |= falls_back::<4>(&mut within(file, &body))?,
            b"co64" => self.track.is_out_of_order |= falls_back::<8>(&mut within(file, &body))?,
            b"trex" => {
                let header: [u8; 16] = array(file)?;
                self.defaults.push((self.place, u32_at(&header, 4), u32_at(&header, 12)));
            }
            b"tfhd" => self.fragment_header(&mut within(file, &body))?,
            b"tfdt" => {
                let version = array::<4>(file)?[0];
                self.fragment.time = duration(file, version)?;
            }
            b"trun" => self.run(&mut within(file, &body))?,
            _ => {}
        }
        Ok(())
    }

    /// Reads the header of the part of a track in a fragment.
    fn fragment_header(&mut self, file: &mut impl Read) -> io::Result<()> {
        const BASE: u32 = 1;
        const DESCRIPTION: u32 = 2;
        const DURATION: u32 = 8;
        let header: [u8; 8] = array(file)?;
        let flags = u32_at(&header, 0);
        self.fragment.track = Some(u32_at(&header, 4));
        if flags & BASE != 0 {
            self.fragment.base = Some(u64::from_be_bytes(array(file)?));
        }
        if flags & DESCRIPTION != 0 {
            array::<4>(file)?;
        }
        if flags & DURATION != 0 {
            self.fragment.default_duration = Some(u32::from_be_bytes(array(file)?));
        }
        Ok(())
    }

    /// Reads a run of packets.
    fn run(&mut self, file: &mut impl Read) -> io::Result<()> {
        const PLACE: u32 = 1;
        const FIRST_FLAGS: u32 = 4;
        const DURATIONS: u32 = 0x100;
        /// Durations, sizes, flags and offsets of time: four bytes each.
        const FIELDS: u32 = 0xf00;
        let header: [u8; 8] = array(file)?;
        let (flags, count) = (u32_at(&header, 0), u64::from(u32_at(&header, 4)));
        self.packets += count;
        self.excess |= self.packets > self.length;
        if self.excess || !self.is_of_chosen() {
            return Ok(());
        }
        if flags & PLACE != 0 {
            let place = i64::from(i32::from_be_bytes(array(file)?));
            let at = self.fragment.base.unwrap_or(self.fragment_at).saturating_add_signed(place);
            if at < self.run_at {
                self.unsupported.get_or_insert(OUT_OF_ORDER);
            }
            self.run_at = at;
        }
        if flags & FIRST_FLAGS != 0 {
            array::<4>(file)?;
        }
        let mut of_each = 2 * self.fragment.runs + 1;
        if flags & DURATIONS == 0 {
            self.fragment.without_duration += count;
        } else {
            // It sums those before a packet.
            of_each += count / 2;
            let others = 4 * (u64::from((flags & FIELDS).count_ones()) - 1);
            for _ in 0..count {
                let duration: [u8; 4] = array(file)?;
                io::copy(&mut file.take(others), &mut io::sink())?;
                self.fragment.duration += u64::from(u32::from_be_bytes(duration));
            }
        }
        self.fragment.steps = self.fragment.steps.saturating_add(count.saturating_mul(of_each));
        self.fragment.packets += count;
        self.fragment.runs += 1;
        Ok(())
    }

    /// Whether the present part of a fragment is of the track to read.
    fn is_of_chosen(&self) -> bool {
        self.chosen.is_none_or(|(id, _)| id == self.fragment.track)
    }

    /// Compares the time of a part of a fragment with the end of the one before it.
    fn end_fragment(&mut self) {
        if !self.is_of_chosen() {
            return;
        }
        let fragment = std::mem::take(&mut self.fragment);
        // The demuxer reads the last of them.
        if self.is_present {
            self.unsupported.get_or_insert("an MP4 fragment with several parts of a track");
        }
        self.steps = self.steps.saturating_add(fragment.steps);
        self.is_present |= fragment.packets > 0;
        self.idle_steps += fragment.runs;
        let default = || {
            let of_all = self.defaults.iter().find(|(_, id, _)| Some(*id) == fragment.track);
            of_all.map_or(0, |(.., duration)| *duration)
        };
        let of_each = if fragment.without_duration == 0 {
            0
        } else {
            fragment.default_duration.unwrap_or_else(default)
        };
        let duration =
            fragment.duration.saturating_add(fragment.without_duration.saturating_mul(of_each.into()));
        if let Some((time, due)) = fragment.time.zip(self.due)
            && time > due
        {
            self.gaps.push((self.elapsed, time - due));
        }
        self.due = fragment.time.or(self.due).map(|time| time.saturating_add(duration));
        self.elapsed = self.elapsed.saturating_add(duration);
    }

    /// The starts of the boxes of all tracks but the one to read, if there is one, as those of free space.
    fn hidden(&self) -> BTreeMap<u64, [u8; 8]> {
        let Some((id, _)) = self.chosen else { return BTreeMap::new() };
        let mut is_first = true;
        let others = self
            .defaults
            .iter()
            .filter(|(_, of, _)| Some(*of) != id || !std::mem::replace(&mut is_first, false));
        let tracks = self.track_places.iter().filter(|(at, _)| *at != self.chosen_at);
        tracks
            .chain(others.map(|(place, ..)| place))
            .map(|(at, header)| (*at, (u64::from_be_bytes(*header) >> 32 << 32 | FREE).to_be_bytes()))
            .collect()
    }

    /// Keeps the duration and the start of the track if it is the one to read.
    fn end_track(&mut self, at: u64) {
        let Track { is_audio: true, id, is_enabled, time_scale, duration, edits, durations, .. } =
            &self.track
        else {
            return;
        };
        self.audio_tracks += 1;
        if !self.chosen.is_none_or(|(_, enabled)| *is_enabled && !enabled) {
            return;
        }
        (self.chosen, self.chosen_at) = (Some((*id, *is_enabled)), at);
        (self.steps, self.idle_steps) = (durations.steps, durations.entries);
        (self.elapsed, self.due) = (durations.total, Some(durations.total).filter(|&total| total > 0));
        self.declared = Some((duration.unwrap_or(0), time_scale.unwrap_or(0)));
        let start = edits.media_time.zip(*time_scale);
        self.start = start.map(|(media_time, time_scale)| EditStart { media_time, time_scale });
        self.edit_duration = edits.media_time.map(|_| edits.duration);
        self.unsupported = if self.track.is_big_endian {
            Some("big-endian samples in QuickTime")
        } else if self.track.is_out_of_order {
            Some(OUT_OF_ORDER)
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
    let name = if header[4..] == *b"mdat" { u32::from_be_bytes(*b"mdat").into() } else { FREE };
    (start, (length << 32 | name).to_be_bytes())
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

/// The body of a box, whose start is the present position.
fn within(file: &mut impl Read, body: &Range<u64>) -> impl Read {
    BufReader::new(file.take(body.end - body.start))
}

/// The edits that are not empty.
fn edits(file: &mut impl Read) -> io::Result<Edits> {
    let version = array::<4>(file)?[0];
    let entries = u32::from_be_bytes(array(file)?);
    let mut edits = Edits::default();
    for _ in 0..entries {
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

/// A table of durations.
fn durations(file: &mut impl Read) -> io::Result<Durations> {
    let entries = u64::from(u32_at(&array::<8>(file)?, 4));
    let mut durations = Durations { entries, ..Durations::default() };
    for entry in 1..=entries {
        let numbers: [u8; 8] = array(file)?;
        let (packets, of_each) = (u64::from(u32_at(&numbers, 0)), u64::from(u32_at(&numbers, 4)));
        durations.steps = durations.steps.saturating_add(packets * entry);
        durations.total = durations.total.saturating_add(packets * of_each);
    }
    Ok(durations)
}

/// Whether one of the places in a table, of so many bytes each, is not behind the one before it.
fn falls_back<const BYTES: usize>(file: &mut impl Read) -> io::Result<bool> {
    let count = u32_at(&array::<8>(file)?, 4);
    let mut last = None;
    for _ in 0..count {
        let place: [u8; BYTES] = array(file)?;
        if last.replace(place) >= Some(place) {
            return Ok(true);
        }
    }
    Ok(false)
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
        let late = [&[-1; 16][..], &[7, 9]].concat();
        for (media_times, rate) in [(&[0, 9][..], 1), (&[7, -1, 9], 1), (&[7], 2), (&late, 1)] {
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
    }

    fn full(name: &[u8; 4], flags: u32, numbers: &[u32]) -> Vec<u8> {
        let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        boxed(name, &[&flags.to_be_bytes()[..], &numbers].concat())
    }

    /// A track with these boxes in its table.
    fn track_of(kind: &[u8; 4], id: u8, table: &[u8]) -> Vec<u8> {
        let tkhd = boxed(b"tkhd", &[&[0, 0, 0, 1], &[0; 8][..], &[0, 0, 0, id]].concat());
        let hdlr = boxed(b"hdlr", &[&[0; 8][..], kind, &[0; 12]].concat());
        let mdia = [hdlr, boxed(b"minf", &boxed(b"stbl", table))].concat();
        boxed(b"trak", &[tkhd, boxed(b"mdia", &mdia)].concat())
    }

    fn is_unsupported(file: Vec<u8>) -> bool {
        match read(file) {
            Ok(_) => false,
            Err(ReadError::Unsupported(_)) => true,
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn tables_that_keep_the_demuxer_busy_are_refused() {
        let behind = |file: Vec<u8>, bytes: usize| [file, boxed(b"mdat", &vec![0; bytes])].concat();
        let table = |kind, entries: &[[u32; 2]]| {
            let stts = full(b"stts", 0, &[&[entries.len() as u32], &entries.concat()[..]].concat());
            boxed(b"moov", &track_of(kind, 1, &stts))
        };
        let many = [&[[0, 1]; 60_000][..], &[[400_000, 1]]].concat();
        assert!(is_unsupported(behind(table(b"soun", &many), 400_000)));
        assert!(!is_unsupported(behind(table(b"vide", &many), 400_000)), "hidden from the demuxer");
        // Ten hours of packets of 21 ms that are as long, and an hour of which no two are.
        assert!(!is_unsupported(behind(table(b"soun", &[[1_700_000, 1_024]]), 1_000_000)));
        let unlike: Vec<_> = (0..169_000).map(|n| [1, 1_023 + n % 2]).collect();
        assert!(!is_unsupported(behind(table(b"soun", &unlike), 169_000 * 60)));

        let fragment = |runs: &[Vec<u8>]| {
            let tfhd = full(b"tfhd", 0, &[1]);
            boxed(b"moof", &boxed(b"traf", &[tfhd, runs.concat()].concat()))
        };
        let start = boxed(b"moov", &track_of(b"soun", 1, &[]));
        let whole = |fragments: &[Vec<u8>]| behind([start.clone(), fragments.concat()].concat(), 1 << 18);
        let with_durations =
            |count: u32| full(b"trun", 0x100, &[&[count], &vec![1; count as usize][..]].concat());
        assert!(is_unsupported(whole(&[fragment(&[with_durations(190_000)])])));
        assert!(!is_unsupported(whole(&vec![fragment(&[with_durations(1_000)]); 190])));
        assert!(!is_unsupported(whole(&[fragment(&[full(b"trun", 0, &[190_000])])])));
        let run = full(b"trun", 0, &[8]);
        assert!(is_unsupported(whole(&[fragment(&vec![run.clone(); 30_000])])));
        assert!(!is_unsupported(whole(&vec![fragment(&vec![run; 3]); 10_000])));
        // Fragments of another track.
        let empty = boxed(b"moof", &boxed(b"traf", &full(b"tfhd", 0, &[2])));
        assert!(is_unsupported(whole(&vec![empty.clone(); 90_000])));
        assert!(!is_unsupported(whole(&vec![empty; 9_000])));
    }

    #[test]
    fn other_tracks_are_hidden_from_the_demuxer() {
        let defaults = [full(b"trex", 0, &[1, 1, 0, 0, 0]), full(b"trex", 0, &[2, 1, 0, 0, 0])].concat();
        let tracks = [track_of(b"vide", 1, &[]), track_of(b"soun", 2, &[]), track_of(b"soun", 2, &[])];
        let file = boxed(b"moov", &[tracks.concat(), boxed(b"mvex", &defaults)].concat());
        let mut index = read(file.clone()).unwrap();
        assert_eq!((index.track, index.other_tracks), (Some(2), 1));
        let mut shown = file.clone();
        for (at, bytes) in index.patches() {
            shown[at as usize..][..8].copy_from_slice(&bytes);
        }
        let places = |name: &[u8]| -> Vec<usize> {
            (0..file.len() - 4).filter(|&at| shown[at..].starts_with(name)).collect()
        };
        let [length, free] = [tracks[0].len(), file.len() - 2 * full(b"trex", 0, &[0; 5]).len()];
        assert_eq!(places(b"trak"), [12 + length]);
        assert_eq!(places(b"trex").len(), 1);
        assert_eq!(places(b"free"), [12, 12 + 2 * length, free + 4]);
        // Sizes stay.
        assert!(places(b"free").iter().all(|&at| shown[at - 4..at] == file[at - 4..at]));
        let mut silent = read(boxed(b"moov", &tracks[0])).unwrap();
        assert!(silent.patches().is_empty());
    }

    #[test]
    fn samples_out_of_order_are_refused() {
        let places = |kind, table: Vec<u8>| {
            [boxed(b"moov", &[track_of(kind, 1, &table)].concat()), boxed(b"mdat", &[0; 99])].concat()
        };
        for (offsets, is_refused) in
            [(&[9][..], false), (&[1, 2, 9], false), (&[1, 9, 2], true), (&[9, 1], true), (&[7, 7], true)]
        {
            let count = [offsets.len() as u32];
            let short = full(b"stco", 0, &[&count[..], offsets].concat());
            let long: Vec<u32> = offsets.iter().flat_map(|&offset| [offset, 0]).collect();
            let long = full(b"co64", 0, &[&count[..], &long].concat());
            for table in [short, long] {
                assert_eq!(is_unsupported(places(b"soun", table.clone())), is_refused, "{offsets:?}");
                assert!(!is_unsupported(places(b"vide", table)));
            }
        }
        let run = |at: u32| full(b"trun", 1, &[2, at]);
        let part = |id: u32, runs: Vec<u8>| boxed(b"traf", &[full(b"tfhd", 0, &[id]), runs].concat());
        let file = |parts: &[Vec<u8>]| {
            let fragment = boxed(b"moof", &parts.concat());
            [boxed(b"moov", &track_of(b"soun", 1, &[])), fragment.clone(), fragment].concat()
        };
        assert!(!is_unsupported(file(&[part(1, [run(5), run(9)].concat()), part(2, run(2))])));
        assert!(is_unsupported(file(&[part(1, [run(9), run(5)].concat())])));
        // Of the second fragment, before the first.
        let back = |at: u64| boxed(b"traf", &[full(b"tfhd", 1, &[1, 0, at as u32]), run(0)].concat());
        let start = boxed(b"moov", &track_of(b"soun", 1, &[]));
        let both = |first, second| {
            [start.clone(), boxed(b"moof", &back(first)), boxed(b"moof", &back(second))].concat()
        };
        assert!(!is_unsupported(both(100, 200)) && is_unsupported(both(200, 100)));
        // The demuxer reads the last part.
        assert!(is_unsupported(file(&[part(1, run(5)), part(1, run(9))])));
    }

    #[test]
    fn missing_fragments_are_found_by_their_times() {
        let fragment = |id: u32, time: u32, count: u32, own: Option<u32>, default: Option<u32>| {
            let header = match default {
                Some(duration) => full(b"tfhd", 8, &[id, duration]),
                None => full(b"tfhd", 0, &[id]),
            };
            let run = match own {
                Some(duration) => {
                    full(b"trun", 0x300, &[&[count], &[duration, 77].repeat(count as usize)[..]].concat())
                }
                None => full(b"trun", 0, &[count]),
            };
            boxed(b"moof", &boxed(b"traf", &[header, full(b"tfdt", 0, &[time]), run].concat()))
        };
        let defaults = [full(b"trex", 0, &[2, 1, 9, 0, 0]), full(b"trex", 0, &[1, 1, 20, 0, 0])].concat();
        let start = boxed(b"moov", &[track_of(b"soun", 1, &[]), boxed(b"mvex", &defaults)].concat());
        let gaps = |fragments: &[Vec<u8>]| {
            let file = [start.clone(), fragments.concat(), boxed(b"mdat", &[0; 99])].concat();
            read(file).unwrap().gaps
        };
        let whole = [
            fragment(1, 1_000, 2, None, None),
            fragment(2, 0, 5, None, None),
            fragment(1, 1_040, 3, Some(7), None),
            fragment(1, 1_061, 4, None, Some(10)),
            fragment(1, 1_101, 1, None, None),
            fragment(1, 1_121, 1, None, None),
        ];
        assert_eq!(gaps(&whole), []);
        let without = |number: usize| gaps(&[&whole[..number], &whole[number + 1..]].concat());
        assert_eq!(without(0), []);
        assert_eq!(without(2), [(40, 21)]);
        assert_eq!(without(3), [(61, 40)]);
        assert_eq!(gaps(&[&whole[..2], &whole[3..4], &whole[5..]].concat()), [(40, 21), (80, 20)]);
        // One that comes again is no gap.
        assert_eq!(gaps(&[&whole[..1], &whole].concat()), []);
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
