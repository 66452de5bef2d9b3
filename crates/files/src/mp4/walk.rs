//! Traversal of the boxes of a file.

use super::tables::{
    Durations, Edits, FREE, cut_box, duration, durations, edits, header_times, is_big_endian,
    is_out_of_order, u32_at, within,
};
use super::{EditLength, EditStart, Index};
use crate::error::ReadError;
use crate::source::array;
use std::collections::BTreeMap;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// Names of top-level boxes (ISO/IEC 14496-12, table 1). Data with another name after the last of them are no part of
/// the file.
const TOP: [&[u8; 4]; 12] = [
    b"moov", b"mdat", b"moof", b"mfra", b"free", b"skip", b"meta", b"udta", b"uuid", b"sidx", b"styp",
    b"emsg",
];

/// Reason to reject a file that would be read from wrong positions: the demuxer ignores a position that is not after
/// the last packet.
const OUT_OF_ORDER: &str = "an MP4 file whose samples are out of order";

/// Nesting depth of the boxes that are read: moov, trak, mdia, minf, stbl.
const DEPTH: u32 = 5;

/// Limit on the number of boxes; hours of fragments of 1 s need fewer.
pub(super) const MAX_BOXES: u32 = 1_000_000;

/// Limit on the steps of the demuxer through its tables, per byte of a file. AAC in packets of 60 bytes reaches it in
/// three hours, if no two consecutive packets have equal durations.
const STEPS_PER_BYTE: u64 = 1 << 12;

/// Steps that a fragment without packets counts as.
const IDLE_STEPS: u64 = 4;

/// Rate of an edit at normal speed; some programs write zero.
const NORMAL_RATE: u32 = 1 << 16;

/// Limit on the description of a codec, bytes.
const MAX_DESCRIPTION: u64 = 1 << 16;

/// State of the traversal.
#[derive(Default)]
pub(super) struct Walk {
    /// Bytes of the file.
    length: u64,
    boxes: u32,
    /// Position and header of the current box.
    place: (u64, [u8; 8]),
    tracks: u32,
    audio_tracks: usize,
    track: Track,
    /// Audio track chosen so far: its identifier, and whether it is enabled.
    chosen: Option<(Option<u32>, bool)>,
    /// Position of the chosen track.
    chosen_at: u64,
    /// Positions and headers of all tracks.
    track_places: Vec<(u64, [u8; 8])>,
    /// Defaults of the fragments of each track: position and header of the box, identifier of the track, and packet
    /// duration.
    defaults: Vec<((u64, [u8; 8]), u32, u32)>,
    start: Option<EditStart>,
    /// Duration of the edit of the chosen track, in units of the file.
    edit_duration: Option<u64>,
    is_fragmented: bool,
    /// Packets of all fragments.
    packets: u64,
    /// Current part of a track in a fragment.
    fragment: Fragment,
    /// Position of the current fragment, and whether it contains packets of the chosen track.
    fragment_at: u64,
    is_present: bool,
    /// Position of the last run of packets.
    run_at: u64,
    /// Steps of the demuxer, and its steps through parts without packets since the last packet.
    steps: u64,
    idle_steps: u64,
    /// Duration of all packets so far, and expected time of the next one, in units of the track.
    elapsed: u64,
    due: Option<u64>,
    gaps: Vec<(u64, u64)>,
    /// Declared duration of the chosen track, and its units per second.
    declared: Option<(u64, u32)>,
    /// Units per second of the file, and declared duration of all fragments.
    time_scale: Option<u32>,
    fragments: Option<u64>,
    cut: Option<(u64, [u8; 8])>,
    excess: bool,
    /// Property of the chosen audio track that the demuxer would read wrongly.
    unsupported: Option<&'static str>,
}

/// Contents of the boxes of a track that have been read.
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

/// The part of a track in a fragment.
#[derive(Default)]
struct Fragment {
    track: Option<u32>,
    /// Base of the positions in it, if not the start of the fragment.
    base: Option<u64>,
    /// Duration of a packet without its own.
    default_duration: Option<u32>,
    /// Start time.
    time: Option<u64>,
    runs: u64,
    packets: u64,
    steps: u64,
    /// Duration of the packets that have their own, and number of packets without.
    duration: u64,
    without_duration: u64,
}

impl Walk {
    /// Walks over all boxes of a file.
    pub(super) fn over(file: &mut (impl Read + Seek)) -> Result<Self, ReadError> {
        let length = file.seek(SeekFrom::End(0)).map_err(ReadError::Io)?;
        let mut walk = Self { length, ..Self::default() };
        // The demuxer refuses a file that ends within its boxes.
        let _ = walk.boxes(file, 0, length, 0);
        Ok(walk)
    }

    /// Returns the index, from the boxes that were read.
    pub(super) fn index(self) -> Result<Index, ReadError> {
        if self.excess {
            return Err(ReadError::NotAudio("its index announces more than it can hold".into()));
        }
        if let Some(what) = self.unsupported {
            return Err(ReadError::Unsupported(what.into()));
        }
        let seconds =
            |(units, scale): (u64, u32)| (units > 0 && scale > 0).then(|| units as f64 / f64::from(scale));
        // With a single track, the duration of all fragments is its duration.
        let of_all = self.fragments.zip(self.time_scale).filter(|_| self.tracks == 1);
        let declared = self.declared.and_then(seconds).or_else(|| of_all.and_then(seconds));
        let edit = self.edit_duration.filter(|&duration| duration > 0 && !self.is_fragmented);
        let length =
            edit.zip(self.time_scale).map(|(duration, time_scale)| EditLength { duration, time_scale });
        if self.steps > self.length.saturating_mul(STEPS_PER_BYTE) {
            return Err(ReadError::Unsupported("an MP4 file with tables of this size".into()));
        }
        let track = self.chosen.and_then(|(id, _)| id);
        Ok(Index {
            track,
            start: self.start,
            length,
            seconds: declared,
            cut: self.cut,
            other_tracks: self.audio_tracks.saturating_sub(1),
            hidden: self.hidden(),
            gaps: self.gaps,
        })
    }

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

    /// Reads a box with a name. The current position is the start of its body.
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
            // QuickTime files have a second handler, for the data.
            b"hdlr" => self.track.is_audio |= &array::<12>(file)?[8..] == b"soun",
            b"stsd" => {
                let mut description = Vec::new();
                file.take(MAX_DESCRIPTION.min(body.end - body.start)).read_to_end(&mut description)?;
                self.track.is_big_endian = is_big_endian(&description);
            }
            b"elst" => self.track.edits = edits(&mut within(file, &body))?,
            b"stts" => self.track.durations = durations(&mut within(file, &body))?,
            b"stco" => self.track.is_out_of_order |= is_out_of_order::<4>(&mut within(file, &body))?,
            b"co64" => self.track.is_out_of_order |= is_out_of_order::<8>(&mut within(file, &body))?,
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
        /// Durations, sizes, flags and time offsets: four bytes each.
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
            // The demuxer sums the durations before a packet.
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

    /// Whether the current part of a fragment belongs to the chosen track.
    fn is_of_chosen(&self) -> bool {
        self.chosen.is_none_or(|(id, _)| id == self.fragment.track)
    }

    /// Ends a part of a track in a fragment: records a gap if its time is after the end of the previous part.
    fn end_fragment(&mut self) {
        if !self.is_of_chosen() {
            return;
        }
        let fragment = std::mem::take(&mut self.fragment);
        // The demuxer reads only the last part.
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

    /// Returns patches that turn the boxes of all tracks but the chosen one into free space; none without a chosen
    /// track.
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

    /// Chooses the current track if it is the best audio track so far, and keeps its start and duration.
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
