//! Opening of files and streams: choice of the demuxer, and declarations that demuxers ignore.

use super::track::{CAF_PROBE, END_OF_MASK, MP4_PROBE, PROBE, Seekable, probed};
use super::{CompressedDecoder, EXACT_END_SLACK_SECONDS, LOOSE_END_SLACK_SECONDS};
use crate::aiff;
use crate::caf;
use crate::chain::Chain;
use crate::declared::{self, MAX_LENGTH, Measured};
use crate::error::ReadError;
use crate::matroska::About;
use crate::metadata::Metadata;
use crate::mp4;
use crate::mpeg::{self, Lost, MendedFrames};
use crate::ogg::{self, Holes, Pages};
use crate::source::{Excluding, Patched, ReadSeek};
use std::io::{self, Cursor, Read, Seek};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use symphonia::core::codecs::audio::well_known::{CODEC_ID_AAC, CODEC_ID_ALAC};
use symphonia::core::formats::well_known::{FORMAT_ID_ADTS, FORMAT_ID_MP1, FORMAT_ID_MP2, FORMAT_ID_MP3};
use symphonia::core::formats::{FormatReader, TrackType};
use symphonia::core::io::{MediaSource, ReadOnlySource};

/// Whether a file with these first bytes is AIFF without a declared length.
fn is_open_aiff(start: &[u8]) -> bool {
    start.starts_with(b"FORM") && declared::length(start).is_none()
}

/// Reads the first bytes, until MPEG audio frames are found or as many as [`PROBE`] searches; returns them and whether
/// they contain frames.
fn read_start(source: &mut impl Read) -> io::Result<(Vec<u8>, bool)> {
    let mut start = Vec::new();
    let mut step = mpeg::FIRST_STEP;
    loop {
        let missing = step - start.len();
        let is_whole = source.by_ref().take(missing as u64).read_to_end(&mut start)? < missing;
        if mpeg::has_signature(&start) {
            return Ok((start, false));
        }
        let has_frames = mpeg::has_frames(&start, is_whole);
        if has_frames || is_whole || step >= mpeg::SEARCHED {
            return Ok((start, has_frames));
        }
        step *= 4;
    }
}

/// Reads the declarations that the demuxer ignores, and whether the file is CAF. Other formats have only a length.
fn declarations(source: &mut (impl Read + Seek)) -> Result<(caf::Declarations, bool), ReadError> {
    let mut start = Vec::new();
    source.rewind().map_err(ReadError::Io)?;
    source.by_ref().take(declared::START_BYTES as u64).read_to_end(&mut start).map_err(ReadError::Io)?;
    if !start.starts_with(b"caff") {
        return Ok((caf::Declarations { length: declared::length(&start), ..Default::default() }, false));
    }
    let declared = caf::declarations(source).map_err(ReadError::Io)?;
    if declared.excess {
        return Err(ReadError::NotAudio("its index announces more than it can hold".into()));
    }
    Ok((declared, true))
}

/// Rejects a stream that the probe identifies as MPEG audio by a single header, such as the data of a video.
fn without_stray_frames(
    reader: Box<dyn FormatReader>,
    has_frames: bool,
) -> Result<Box<dyn FormatReader>, ReadError> {
    let frames = [FORMAT_ID_ADTS, FORMAT_ID_MP1, FORMAT_ID_MP2, FORMAT_ID_MP3];
    if !has_frames && frames.contains(&reader.format_info().format) {
        return Err(ReadError::NotAudio("unrecognised format".into()));
    }
    Ok(reader)
}

impl CompressedDecoder {
    /// Opens a file of any format but MP4.
    pub(crate) fn open(mut source: Box<dyn ReadSeek>, mut length: u64) -> Result<Self, ReadError> {
        let frames = mpeg::survey(&mut source).map_err(ReadError::Io)?;
        source.rewind().map_err(ReadError::Io)?;
        if frames.is_damaged {
            return Self::open_stream(source);
        }
        let (start, has_frames) = read_start(&mut source).map_err(ReadError::Io)?;
        let about = About::read(&mut source);
        let end = ogg::end(&mut source).map_err(ReadError::Io)?;
        let (declared, is_caf) = declarations(&mut source)?;
        let is_cut = |&end: &u64| declared::is_cut(end, length);
        let cut_bytes = declared.length.filter(is_cut).map_or(0, |end| end - length);
        source.rewind().map_err(ReadError::Io)?;
        let holes = Arc::<Holes>::default();
        if let Some(zeros) = end.zeros_from {
            source = Box::new(Excluding::new(source, zeros..length).map_err(ReadError::Io)?);
            length = zeros;
        }
        if start.starts_with(ogg::CAPTURE) {
            source = Box::new(Pages::new(source, Arc::clone(&holes)));
        }
        // A demuxer that can seek reads the end first and rejects a truncated file; that of CAF always seeks.
        let size_at = declared.size_at.filter(|_| cut_bytes > 0 || declared.is_open);
        let is_open_aiff = is_open_aiff(&start);
        let is_stream =
            declared.size_at.is_none() && cut_bytes > 0 || is_open_aiff || about.is_open || end.is_lost;
        if let Some(size_at) = size_at {
            let size = caf::size_to_end(size_at, length);
            source = Box::new(Patched::new(source, size_at, size).map_err(ReadError::Io)?);
        }
        let little_endian = aiff::little_endian(&start);
        if let Some((at, big_endian)) = little_endian {
            source = Box::new(Patched::new(source, at, big_endian).map_err(ReadError::Io)?);
        }
        if let Some(padding) = declared.padding.clone() {
            length -= padding.end - padding.start;
            source = Box::new(Excluding::new(source, padding).map_err(ReadError::Io)?);
        }
        let source: Box<dyn MediaSource> = match is_stream {
            true => Box::new(ReadOnlySource::new(source)),
            false => Box::new(Seekable { source, length }),
        };
        let reader = probed(if is_caf { &CAF_PROBE } else { &PROBE }, source)?;
        let reader = without_stray_frames(reader, has_frames)?;
        let chosen = about.default_audio();
        refuse_encoded(reader.as_ref(), chosen, &about)?;
        let mut this = Self::with_byte_order(reader, chosen, &about, little_endian.is_some())?;
        this.holes = holes;
        if let Some(samples) = frames.samples {
            this.length = this.length.map(|length| length.min(samples));
        }
        if is_open_aiff {
            this.leave_open();
        }
        if declared.has_packet_table {
            // The packet table counts the last packet as complete, but it may be partial.
            this.length = None;
        }
        let codec = this.decoder.codec_params().codec;
        if is_caf && [CODEC_ID_AAC, CODEC_ID_ALAC].contains(&codec) {
            this.skip = declared.priming;
            declared.valid.into_iter().for_each(|valid| this.end_at(valid));
        }
        // The demuxer guesses speaker positions that the file does not declare. The ALAC decoder has its own channel
        // order.
        if is_caf && codec != CODEC_ID_ALAC {
            let is_usable = |mask: &u32| mask.count_ones() as usize == this.channels && *mask < END_OF_MASK;
            this.channel_mask = declared.channel_mask.filter(|mask| this.channels > 2 && is_usable(mask));
        }
        if cut_bytes > 0 {
            this.losses.ends_early = true;
            // A missing end is reported, but is no error.
            this.length = None;
            let missing = cut_bytes / this.frame_bytes.unwrap_or(u64::MAX);
            this.losses.missing_samples = Some(missing).filter(|&missing| missing <= MAX_LENGTH).unwrap_or(0);
        }
        this.losses.ends_early |= about.is_cut;
        if let Some(end) = end.granules.get(&this.track) {
            this.declared_end = Some((*end as f64 / f64::from(this.sample_rate), EXACT_END_SLACK_SECONDS));
        }
        if let Some(seconds) = about.seconds_of(this.track) {
            this.declared_end = Some((seconds, LOOSE_END_SLACK_SECONDS));
        }
        if let Some(title) = about.title {
            this.metadata.set_title(&title);
        }
        declared.tags.iter().for_each(|(name, value)| this.metadata.push_tag(name, value));
        Ok(this)
    }

    /// Opens a stream of any format but MP4.
    pub(crate) fn open_stream(mut stream: impl Read + Send + Sync + 'static) -> Result<Self, ReadError> {
        let (mut start, has_frames) = read_start(&mut stream).map_err(ReadError::Io)?;
        let little_endian = aiff::little_endian(&start);
        if let Some((at, big_endian)) = little_endian {
            start[at as usize..][..8].copy_from_slice(&big_endian);
        }
        let holes = Arc::<Holes>::default();
        let (is_ogg, is_open_aiff) = (start.starts_with(ogg::CAPTURE), is_open_aiff(&start));
        let stream = Cursor::new(start).chain(stream);
        let stream: Box<dyn Read + Send + Sync> = match is_ogg {
            true => Box::new(Pages::new(stream, Arc::clone(&holes))),
            false => Box::new(stream),
        };
        let lost = Arc::<Lost>::default();
        let seen = Arc::clone(&lost);
        let stream = Measured::new(stream, move || seen.ends_early.store(true, Relaxed));
        let stream = MendedFrames::counting(stream, Arc::clone(&lost));
        let start = Arc::new(Mutex::new(Some(Vec::new())));
        let stream = RecordedStart { source: stream, start: Arc::clone(&start) };
        let reader =
            without_stray_frames(probed(&PROBE, Box::new(ReadOnlySource::new(stream)))?, has_frames)?;
        // The demuxer has read up to the samples.
        let start = start.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        let about = About::read(&mut Cursor::new(start));
        refuse_encoded(reader.as_ref(), None, &about)?;
        let mut this = Self::with_byte_order(reader, None, &about, little_endian.is_some())?;
        (this.lost, this.holes) = (lost, holes);
        if is_open_aiff {
            this.leave_open();
        }
        Ok(this)
    }

    /// Ignores the declared length and reads to the end of the file, as the length of the samples is unknown.
    fn leave_open(&mut self) {
        (self.is_open, self.length) = (true, None);
    }

    /// Opens one or several concatenated FLAC streams.
    pub(crate) fn open_flac(stream: Box<dyn Read + Send + Sync>) -> Result<Self, ReadError> {
        let chain = Chain::new(stream);
        let first = chain.next().ok_or(ReadError::Empty)?;
        let mut this =
            Self::new(probed(&PROBE, Box::new(ReadOnlySource::new(first)))?, None, &About::default())?;
        this.chain = Some(chain);
        Ok(this)
    }

    /// Opens an MP4 file.
    pub(crate) fn open_mp4(mut source: Box<dyn ReadSeek>, length: u64) -> Result<Self, ReadError> {
        let mut index = mp4::Index::read(&mut source)?;
        let source = Box::new(Patched::several(source, index.patches()).map_err(ReadError::Io)?);
        let reader = probed(&MP4_PROBE, Box::new(Seekable { source, length }))?;
        let mut this = Self::new(reader, index.track, &About::default())?;
        this.other_tracks = index.other_tracks;
        this.gaps = index.gaps.into();
        this.losses.ends_early |= index.cut.is_some();
        this.declared_end = index.seconds.map(|seconds| (seconds, LOOSE_END_SLACK_SECONDS));
        if let Some(start) = index.start {
            this.trust_durations = true;
            this.skip = start.samples(this.sample_rate);
            this.length = this.length.map(|length| length.saturating_sub(this.skip));
        }
        if let Some(edit) = index.length {
            this.end_at(edit.samples(this.sample_rate));
        }
        let is_aac = this.decoder.codec_params().codec == CODEC_ID_AAC;
        let gapless = itunes_gapless(&this.metadata).filter(|_| is_aac && index.start.is_none());
        if let Some((delay, samples)) = gapless
            // A greater length is that of a file from which this one was cut.
            && this.length.is_none_or(|length| delay.saturating_add(samples) <= length)
        {
            this.skip = delay;
            this.length = this.length.map(|length| length - delay);
            this.end_at(samples);
        }
        Ok(this)
    }
}

/// Reads the encoder delay and the length of the recording, in samples per channel, from the tag of iTunes: its second
/// and fourth hexadecimal numbers.
fn itunes_gapless(metadata: &Metadata) -> Option<(u64, u64)> {
    let (_, value) = metadata.tags().find(|(name, _)| name.ends_with("ITUNSMPB"))?;
    let mut numbers = value.split_ascii_whitespace().map(|number| u64::from_str_radix(number, 16).ok());
    let (delay, samples) = (numbers.nth(1)??, numbers.nth(1)??);
    (samples > 0).then_some((delay, samples))
}

/// Rejects a Matroska track whose packets the demuxer does not decompress or decrypt.
fn refuse_encoded(reader: &dyn FormatReader, chosen: Option<u32>, about: &About) -> Result<(), ReadError> {
    let track = chosen.or_else(|| reader.default_track(TrackType::Audio).map(|track| track.id));
    match track.is_some_and(|track| about.is_encoded(track)) {
        true => Err(ReadError::Unsupported("a compressed or encrypted Matroska track".into())),
        false => Ok(()),
    }
}

/// Reader that keeps a copy of the first bytes it reads, until the copy is taken.
struct RecordedStart<R> {
    source: R,
    start: Arc<Mutex<Option<Vec<u8>>>>,
}

impl<R: Read> Read for RecordedStart<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        const MAX_NOTED_BYTES: usize = 1 << 20;
        let count = self.source.read(target)?;
        if let Some(start) = &mut *self.start.lock().unwrap_or_else(PoisonError::into_inner) {
            let missing = MAX_NOTED_BYTES.saturating_sub(start.len());
            start.extend(&target[..count.min(missing)]);
        }
        Ok(count)
    }
}
