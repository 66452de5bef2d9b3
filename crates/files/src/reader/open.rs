//! Opening of files and streams: choice of the decoder by the first bytes.

use super::{Decoder, MAX_HELD_BYTES, Reader, guarded};
use crate::compressed::CompressedDecoder;
use crate::error::ReadError;
use crate::metadata::Metadata;
use crate::pcm::PcmDecoder;
use crate::source::{
    FileKind, MAX_START, Patched, ReadSeek, Recorded, TRANSPORT_BYTES, id3_bytes, start_of, transport_stream,
};
use crate::wav;
use alphamf_signal::{check_channels, check_sample_rate};
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

/// Start of a WAV file without a declared length, for a demuxer that rejects samples beyond a wrong length.
const OPEN_RIFF: [u8; 8] = *b"RIFF\xff\xff\xff\xff";

impl Reader {
    pub(super) fn from_source(name: &Path, mut source: Box<dyn ReadSeek>) -> Result<Self, ReadError> {
        let length = source.seek(SeekFrom::End(0)).map_err(ReadError::Io)?;
        source.rewind().map_err(ReadError::Io)?;
        let mut bytes = BufReader::new(source);
        let (start, tag) = skip_tag(&mut bytes)?;
        let kind = FileKind::of(&start);
        match kind {
            FileKind::Wav | FileKind::Wave64 | FileKind::Au => {
                Self::wav_from_source(name, kind, bytes, tag, length)
            }
            FileKind::Mp4 => {
                let source = bytes.into_inner();
                Self::from_compressed(name, || CompressedDecoder::open_mp4(source, length))
            }
            FileKind::Flac => {
                let place = bytes.stream_position().map_err(ReadError::Io)?;
                // Errors are ignored, as the decoder reports them.
                let (mut metadata, channel_mask) = Metadata::of_flac(&mut bytes).unwrap_or_default();
                tag.into_iter().for_each(|tag| metadata.push_id3(tag));
                bytes.seek(SeekFrom::Start(place)).map_err(ReadError::Io)?;
                let this = Self::from_compressed(name, || CompressedDecoder::open_flac(Box::new(bytes)))?;
                Ok(this.with_flac_metadata(metadata, channel_mask))
            }
            FileKind::Foreign(what) => Err(ReadError::NotAudio(what.into())),
            FileKind::Container(name) => Err(ReadError::Unsupported(name.into())),
            FileKind::Caf | FileKind::Other => {
                let mut more = Vec::new();
                bytes.by_ref().take(TRANSPORT_BYTES).read_to_end(&mut more).map_err(ReadError::Io)?;
                if let Some(name) = transport_stream(&more) {
                    return Err(ReadError::Unsupported(name.into()));
                }
                let mut source = bytes.into_inner();
                source.rewind().map_err(ReadError::Io)?;
                Self::from_compressed(name, || CompressedDecoder::open(source, length))
            }
        }
    }

    /// Opens a WAV, Wave64 or AU file, after an ID3 tag if there is one.
    fn wav_from_source(
        name: &Path,
        kind: FileKind,
        mut bytes: BufReader<Box<dyn ReadSeek>>,
        tag: Option<Vec<u8>>,
        length: u64,
    ) -> Result<Self, ReadError> {
        let start = bytes.stream_position().map_err(ReadError::Io)?;
        match read_header(kind, &mut bytes) {
            Ok(header) => {
                let (header, trailer) = complete_header(&mut bytes, header, tag)?;
                let mut this = Self::from_wav(name, &header, trailer.length, Box::new(bytes));
                this.metadata = trailer.metadata;
                if let Decoder::Pcm(decoder) = &mut this.decoder {
                    decoder.data_follow = trailer.data_follow;
                }
                Ok(this)
            }
            // ADPCM, for example.
            Err(ReadError::Unsupported(reason)) if kind == FileKind::Wav => {
                bytes.seek(SeekFrom::Start(start)).map_err(ReadError::Io)?;
                // Errors are ignored, as the decoder reports them.
                let header = wav::read_header_of_bytes(&mut bytes);
                let around = header.and_then(|header| complete_header(&mut bytes, header, tag));
                let source = Patched::new(bytes.into_inner(), start, OPEN_RIFF).map_err(ReadError::Io)?;
                let mut this =
                    Self::from_compressed(name, || CompressedDecoder::open(Box::new(source), length))
                        .map_err(|error| refused(reason, error))?;
                this.metadata = around.map(|(_, trailer)| trailer.metadata).unwrap_or_default();
                Ok(this)
            }
            Err(error) => Err(error),
        }
    }

    pub(super) fn from_bytes(
        name: &Path,
        mut stream: Box<dyn Read + Send + Sync>,
    ) -> Result<Self, ReadError> {
        let (mut start, tag) = take_tag(&mut stream)?;
        let kind = FileKind::of(&start);
        if kind == FileKind::Other {
            let rest = TRANSPORT_BYTES.saturating_sub(start.len() as u64);
            stream.by_ref().take(rest).read_to_end(&mut start).map_err(ReadError::Io)?;
            if let Some(name) = transport_stream(&start) {
                return Err(ReadError::Unsupported(name.into()));
            }
        }
        let bytes = Cursor::new(start).chain(stream);
        match kind {
            FileKind::Wav | FileKind::Wave64 | FileKind::Au => Self::wav_from_bytes(name, kind, bytes, tag),
            FileKind::Mp4 | FileKind::Caf => {
                // The index may follow the samples.
                let mut held = Vec::new();
                bytes.take(MAX_HELD_BYTES + 1).read_to_end(&mut held).map_err(ReadError::Io)?;
                let length = held.len() as u64;
                if length > MAX_HELD_BYTES {
                    return Err(ReadError::TooLongToHold { maximum: MAX_HELD_BYTES });
                }
                let held = Box::new(Cursor::new(held));
                Self::from_compressed(name, || match kind {
                    FileKind::Mp4 => CompressedDecoder::open_mp4(held, length),
                    _ => CompressedDecoder::open(held, length),
                })
            }
            FileKind::Flac => {
                let mut bytes = Recorded::new(bytes);
                let (mut metadata, channel_mask) = Metadata::of_flac(&mut bytes).unwrap_or_default();
                tag.into_iter().for_each(|tag| metadata.push_id3(tag));
                let again = Box::new(bytes.again());
                let this = Self::from_compressed(name, || CompressedDecoder::open_flac(again))?;
                Ok(this.with_flac_metadata(metadata, channel_mask))
            }
            FileKind::Foreign(what) => Err(ReadError::NotAudio(what.into())),
            FileKind::Container(name) => Err(ReadError::Unsupported(name.into())),
            FileKind::Other => Self::from_compressed(name, || CompressedDecoder::open_stream(bytes)),
        }
    }

    /// Like [`Reader::wav_from_source`], for a stream.
    fn wav_from_bytes(
        name: &Path,
        kind: FileKind,
        bytes: impl Read + Send + Sync + 'static,
        tag: Option<Vec<u8>>,
    ) -> Result<Self, ReadError> {
        let mut bytes = Recorded::new(bytes);
        match read_header(kind, &mut bytes) {
            Ok(mut header) => {
                if let Some(tag) = tag {
                    header.metadata.push_id3(tag);
                }
                Ok(Self::from_wav(name, &header, None, Box::new(bytes.source)))
            }
            Err(ReadError::Unsupported(reason)) if kind == FileKind::Wav => {
                let mut bytes = Recorded::new(bytes.again());
                let header = wav::read_header_of_bytes(&mut bytes);
                let mut metadata = header.map(|header| header.metadata).unwrap_or_default();
                tag.into_iter().for_each(|tag| metadata.push_id3(tag));
                let mut again = bytes.again();
                io::copy(&mut again.by_ref().take(OPEN_RIFF.len() as u64), &mut io::sink())
                    .map_err(ReadError::Io)?;
                let again = Box::new(Cursor::new(OPEN_RIFF).chain(again));
                let mut this = Self::from_compressed(name, || CompressedDecoder::open_stream(again))
                    .map_err(|error| refused(reason, error))?;
                this.metadata = metadata;
                Ok(this)
            }
            Err(error) => Err(error),
        }
    }

    fn with_flac_metadata(mut self, metadata: Metadata, channel_mask: Option<u32>) -> Self {
        self.metadata = metadata;
        self.channel_mask = channel_mask.or(self.channel_mask);
        self
    }

    fn from_wav(
        name: &Path,
        header: &wav::WavHeader,
        length: Option<u64>,
        bytes: Box<dyn Read + Send + Sync>,
    ) -> Self {
        let decoder = Decoder::Pcm(PcmDecoder::new(bytes, header, length));
        let mut this =
            Self::new(name, decoder, header.sample_rate, header.channels, header.encoding.format());
        this.channel_mask = header.channel_mask;
        this.metadata = header.metadata.clone();
        this
    }

    fn from_compressed(
        name: &Path,
        open: impl FnOnce() -> Result<CompressedDecoder, ReadError>,
    ) -> Result<Self, ReadError> {
        let mut decoder = guarded(open)?;
        check_sample_rate(decoder.sample_rate)?;
        check_channels(decoder.channels)?;
        let (sample_rate, channels, format) = (decoder.sample_rate, decoder.channels, decoder.format);
        let (channel_mask, metadata) = (decoder.channel_mask, std::mem::take(&mut decoder.metadata));
        let mut this = Self::new(name, Decoder::Compressed(Box::new(decoder)), sample_rate, channels, format);
        (this.channel_mask, this.metadata) = (channel_mask, metadata);
        Ok(this)
    }
}

/// Adds the preceding ID3 tag to a header, checks its length, and reads the part after the samples. The file must be at
/// its first sample.
fn complete_header(
    bytes: &mut (impl Read + Seek),
    mut header: wav::WavHeader,
    tag: Option<Vec<u8>>,
) -> Result<(wav::WavHeader, wav::Trailer), ReadError> {
    tag.into_iter().for_each(|tag| header.metadata.push_id3(tag));
    wav::confirm_length(bytes, &mut header).map_err(ReadError::Io)?;
    let trailer = wav::read_trailer(bytes, &header)?;
    Ok((header, trailer))
}

/// Whether these are the first bytes of a format that is read without a preceding ID3 tag.
fn is_tagged(start: &[u8]) -> bool {
    matches!(FileKind::of(start), FileKind::Wav | FileKind::Flac)
}

/// Reads the first bytes of a file, and a preceding ID3 tag if they are those of WAV or FLAC. Leaves the file at the
/// first bytes.
fn skip_tag(bytes: &mut (impl Read + Seek)) -> Result<(Vec<u8>, Option<Vec<u8>>), ReadError> {
    let start = start_of(bytes)?;
    if let Some(tag_bytes) = id3_bytes(&start) {
        bytes.seek(SeekFrom::Start(tag_bytes)).map_err(ReadError::Io)?;
        let behind = start_of(bytes).unwrap_or_default();
        if is_tagged(&behind) {
            bytes.rewind().map_err(ReadError::Io)?;
            let mut tag = Vec::new();
            if tag_bytes <= MAX_START {
                bytes.by_ref().take(tag_bytes).read_to_end(&mut tag).map_err(ReadError::Io)?;
            }
            bytes.seek(SeekFrom::Start(tag_bytes)).map_err(ReadError::Io)?;
            return Ok((behind, Some(tag).filter(|tag| !tag.is_empty())));
        }
    }
    bytes.rewind().map_err(ReadError::Io)?;
    Ok((start, None))
}

/// Like [`skip_tag`], for a stream: consumes the first bytes, which include the tag except before WAV and FLAC.
fn take_tag(stream: &mut impl Read) -> Result<(Vec<u8>, Option<Vec<u8>>), ReadError> {
    let mut start = start_of(stream)?;
    if let Some(tag_bytes) = id3_bytes(&start).filter(|&bytes| bytes <= MAX_START) {
        let rest = tag_bytes.saturating_sub(start.len() as u64);
        stream.by_ref().take(rest).read_to_end(&mut start).map_err(ReadError::Io)?;
        let behind = start_of(stream).unwrap_or_default();
        if is_tagged(&behind) {
            return Ok((behind, Some(start)));
        }
        start.extend(behind);
    }
    Ok((start, None))
}

/// Error of a WAV file that both decoders reject. ADPCM is supported, so that the second error is the reason.
fn refused(of_header: String, error: ReadError) -> ReadError {
    if of_header == wav::ADPCM { error } else { ReadError::Unsupported(of_header) }
}

fn read_header(kind: FileKind, bytes: &mut impl Read) -> Result<wav::WavHeader, ReadError> {
    match kind {
        FileKind::Wave64 => wav::read_wave64_header(bytes),
        FileKind::Au => wav::read_au_header(bytes),
        _ => wav::read_header(bytes),
    }
}
