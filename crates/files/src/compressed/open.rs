//! Opening: demuxers, and declarations that demuxers leave out.

use super::track::{CAF_PROBE, Declared, MP4_PROBE, PROBE, Seekable, probed};
use super::{CompressedDecoder, LOOSE_END_SLACK_SECONDS};
use crate::caf;
use crate::chain::Chain;
use crate::declared::{self, Measured};
use crate::error::ReadError;
use crate::matroska;
use crate::mp4;
use crate::mpeg::{self, Lost, MendedFrames};
use crate::ogg;
use crate::source::{Patched, ReadSeek};
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use symphonia::core::formats::FormatReader;
use symphonia::core::formats::well_known::{FORMAT_ID_ADTS, FORMAT_ID_MP1, FORMAT_ID_MP2, FORMAT_ID_MP3};
use symphonia::core::io::{MediaSource, ReadOnlySource};

/// The first bytes, as many as it takes to find frames of MPEG audio or as [`PROBE`] searches, and whether they hold any.
fn looked_ahead(source: &mut impl Read) -> io::Result<(Vec<u8>, bool)> {
    /// What symphonia searches by default.
    const PROBED: usize = 1 << 20;
    /// Starts of formats with a mark of their own: the frames of others within them are no stream.
    const MARKS: [&[u8]; 5] = [b"OggS", b"\x1a\x45\xdf\xa3", b"FORM", b"caff", b"fLaC"];
    let mut start = Vec::new();
    let mut step = 1 << 14;
    loop {
        let missing = step - start.len();
        let is_whole = source.by_ref().take(missing as u64).read_to_end(&mut start)? < missing;
        if MARKS.iter().any(|mark| start.starts_with(mark)) {
            return Ok((start, false));
        }
        let has_frames = mpeg::has_frames(&start, is_whole);
        if has_frames || is_whole || step >= PROBED {
            return Ok((start, has_frames));
        }
        step *= 4;
    }
}

/// Refuses what the probe takes for frames of MPEG audio by a header alone, such as the data of a video.
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
    pub(crate) fn open(mut source: Box<dyn ReadSeek>, length: u64) -> Result<Self, ReadError> {
        let is_damaged = mpeg::is_damaged(&mut source).map_err(ReadError::Io)?;
        source.rewind().map_err(ReadError::Io)?;
        if is_damaged {
            return Self::open_stream(source);
        }
        let has_frames = looked_ahead(&mut source).map_err(ReadError::Io)?.1;
        let about = matroska::About::read(&mut source);
        let granules = ogg::last_granules(&mut source).map_err(ReadError::Io)?;
        let Declared { length: declared, tags, size_at, has_packet_table, is_caf } =
            Declared::of(&mut source)?;
        let cut_bytes =
            declared.filter(|&declared| declared::is_cut(declared, length)).map_or(0, |end| end - length);
        source.rewind().map_err(ReadError::Io)?;
        // Demuxers that can seek read the end first and refuse a file without one; that of CAF always does.
        let source: Box<dyn MediaSource> = match size_at {
            Some(size_at) if cut_bytes > 0 => {
                let size = caf::size_to_end(size_at, length);
                let patched = Patched::new(source, size_at, size).map_err(ReadError::Io)?;
                Box::new(Seekable { source: Box::new(patched), length })
            }
            None if cut_bytes > 0 || about.is_open => Box::new(ReadOnlySource::new(source)),
            _ => Box::new(Seekable { source, length }),
        };
        let reader = probed(if is_caf { &CAF_PROBE } else { &PROBE }, source)?;
        let mut this = Self::new(without_stray_frames(reader, has_frames)?, about.default_audio())?;
        if has_packet_table {
            // It counts the last packet as whole, which it may not be.
            this.length = None;
        }
        if cut_bytes > 0 {
            this.losses.ends_early = true;
            // Reported, but no error.
            this.length = None;
            this.losses.missing_samples = cut_bytes / this.frame_bytes.unwrap_or(u64::MAX);
        }
        this.losses.ends_early |= about.is_cut;
        if let Some((_, end)) = granules.iter().find(|(track, _)| *track == this.track) {
            this.declared_end = Some((*end as f64 / f64::from(this.sample_rate), LOOSE_END_SLACK_SECONDS));
        }
        if let Some(seconds) = about.seconds_of(this.track) {
            this.declared_end = Some((seconds, LOOSE_END_SLACK_SECONDS));
        }
        if let Some(title) = about.title {
            this.metadata.set_title(&title);
        }
        tags.iter().for_each(|(name, value)| this.metadata.push_tag(name, value));
        Ok(this)
    }

    /// Opens a stream of any format but MP4.
    pub(crate) fn open_stream(mut stream: impl Read + Send + Sync + 'static) -> Result<Self, ReadError> {
        let (start, has_frames) = looked_ahead(&mut stream).map_err(ReadError::Io)?;
        let stream = Cursor::new(start).chain(stream);
        let lost = Arc::<Lost>::default();
        let seen = Arc::clone(&lost);
        let stream = Measured::new(stream, move || seen.ends_early.store(true, Relaxed));
        let stream = MendedFrames::counting(stream, Arc::clone(&lost));
        let reader = probed(&PROBE, Box::new(ReadOnlySource::new(stream)))?;
        let mut this = Self::new(without_stray_frames(reader, has_frames)?, None)?;
        this.lost = lost;
        Ok(this)
    }

    /// Opens FLAC, of which one stream may follow another.
    pub(crate) fn open_flac(stream: Box<dyn Read + Send + Sync>) -> Result<Self, ReadError> {
        let chain = Chain::new(stream);
        let first = chain.next().ok_or(ReadError::Empty)?;
        let mut this = Self::new(probed(&PROBE, Box::new(ReadOnlySource::new(first)))?, None)?;
        this.chain = Some(chain);
        Ok(this)
    }

    /// Opens an MP4 file.
    pub(crate) fn open_mp4(mut source: Box<dyn ReadSeek>, length: u64) -> Result<Self, ReadError> {
        let index = mp4::Index::read(&mut source)?;
        source.rewind().map_err(ReadError::Io)?;
        if let Some((place, size)) = index.cut {
            source = Box::new(Patched::new(source, place, size).map_err(ReadError::Io)?);
        }
        let mut this = Self::new(probed(&MP4_PROBE, Box::new(Seekable { source, length }))?, index.track)?;
        this.losses.ends_early |= index.cut.is_some();
        this.declared_end = index.seconds.map(|seconds| (seconds, LOOSE_END_SLACK_SECONDS));
        if let Some(start) = index.start {
            this.trust_durations = true;
            this.skip = start.samples(this.sample_rate);
            this.length = this.length.map(|length| length.saturating_sub(this.skip));
        }
        Ok(this)
    }
}
