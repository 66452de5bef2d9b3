//! Reading audio of any format that is known, block by block.

use super::compressed::CompressedDecoder;
use super::error::{Error, ReadError};
use super::metadata::Metadata;
use super::mp4;
use super::pcm::{PcmDecoder, RawFormat};
use super::wav;
use alphamf_signal::{InvalidSignal, SampleFormat, Signal, check_channels, check_sample_rate};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

/// Extensions, in lower case, of the files in a folder that are taken for audio.
pub const EXTENSIONS: [&str; 21] = [
    "wav", "wave", "bwf", "rf64", "w64", "au", "snd", "flac", "ogg", "oga", "opus", "mp3", "m4a", "mp4",
    "aac", "aif", "aiff", "aifc", "caf", "mka", "webm",
];

/// The most of a stream that is held in memory, bytes: MP4 and CAF, whose index may follow their samples, cannot be read
/// otherwise.
pub const MAX_HELD_BYTES: u64 = 256 << 20;

/// The longest ID3 tag before a WAV file, or blocks before FLAC, that are looked into in a stream, bytes.
const LONGEST_START: u64 = 32 << 20;

/// Reads a recording block by block, in memory that does not grow with its length.
///
/// The formats are WAV (integers of 8 to 32 bits, floats of 32 and 64 bits, A-law, mu-law, ADPCM, RF64, RIFX, behind
/// an ID3 tag, lengths left open by a program that wrote to a pipe), Wave64, AU, FLAC, MP3, Ogg with Vorbis or Opus,
/// AAC, ALAC and Opus in MP4, AAC alone, AIFF, CAF, Matroska and WebM, and raw samples. What a file holds is told by
/// its contents, not by its name. Recordings of one rate and number of channels that follow one another in a file are
/// read as one.
pub struct Reader {
    name: PathBuf,
    decoder: Decoder,
    sample_rate: u32,
    format: SampleFormat,
    speakers: Option<u32>,
    metadata: Metadata,
    /// Decoded and not yet taken.
    decoded: Vec<Vec<f32>>,
    /// Samples per channel taken so far.
    position: u64,
    salvage: bool,
    /// What the decoder does not know of.
    losses: Losses,
    ended: bool,
}

/// What a recording lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Losses {
    /// Packets, or stretches of them, that could not be decoded.
    pub damaged_packets: u64,
    /// Samples per channel that were replaced with silence to keep the rest in time.
    pub silent_samples: u64,
    /// Samples per channel that the header announced beyond the end.
    pub missing_samples: u64,
    /// Samples that were infinite or not a number and became zero, all channels together.
    pub not_finite: u64,
    /// Whether the file ends in the midst of something, of unknown length.
    pub ends_early: bool,
}

impl Losses {
    /// Whether anything is lacking.
    #[must_use]
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

impl std::fmt::Display for Losses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts = [
            (self.damaged_packets, "damaged or missing packets"),
            (self.silent_samples, "samples replaced with silence"),
            (self.missing_samples, "samples missing at the end"),
            (self.not_finite, "samples not finite, now zero"),
        ];
        let mut parts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if self.ends_early {
            parts.push("the file ends early".to_owned());
        }
        f.write_str(&parts.join(", "))
    }
}

/// A source that can be rewound.
pub(super) trait ReadSeek: Read + Seek + Send + Sync {}
impl<T: Read + Seek + Send + Sync> ReadSeek for T {}

enum Decoder {
    Pcm(PcmDecoder),
    Compressed(Box<CompressedDecoder>),
}

/// What a file holds, as far as its first bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Wav,
    Wave64,
    Au,
    Mp4,
    Caf,
    Flac,
    Other,
}

impl Kind {
    fn of(start: &[u8]) -> Self {
        match start {
            start if wav::is_wav(start) => Self::Wav,
            start if wav::is_wave64(start) => Self::Wave64,
            start if wav::is_au(start) => Self::Au,
            start if mp4::is_mp4(start) => Self::Mp4,
            start if start.starts_with(b"caff") => Self::Caf,
            start if start.starts_with(b"fLaC") => Self::Flac,
            _ => Self::Other,
        }
    }
}

impl Reader {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Error::Read`] if it is missing, cannot be read, is empty, or its header is not that of a
    /// supported recording.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let open = || {
            let file = open_file(path)?;
            if file.metadata().map_err(ReadError::Io)?.is_file() {
                Self::from_source(path, Box::new(file))
            } else {
                Self::from_bytes(path, file)
            }
        };
        open().map_err(|reason| Error::Read { path: path.to_owned(), reason })
    }

    /// Reads from what can be rewound, such as a [`Cursor`] of bytes, called `name` in errors.
    ///
    /// ```
    /// # fn main() -> Result<(), alphamf_files::Error> {
    /// use alphamf_signal::{SampleFormat, Signal};
    /// use alphamf_files::{Container, Reader, encode};
    /// let signal = Signal::new(8_000, SampleFormat::Int16, vec![vec![0.5; 80]]).unwrap();
    /// let bytes = encode(&signal, Container::Wav)?;
    /// let again = Reader::from_seekable("bytes", std::io::Cursor::new(bytes))?.read_all()?;
    /// assert_eq!(again, signal);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`Reader::open`].
    pub fn from_seekable(
        name: impl AsRef<Path>,
        source: impl Read + Seek + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let name = name.as_ref();
        Self::from_source(name, Box::new(source))
            .map_err(|reason| Error::Read { path: name.to_owned(), reason })
    }

    /// Opens a file of raw samples.
    ///
    /// # Errors
    /// [`Error::Read`] if it is missing or cannot be read.
    pub fn open_raw(path: impl AsRef<Path>, raw: RawFormat) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = open_file(path).map_err(|reason| Error::Read { path: path.to_owned(), reason })?;
        Self::from_raw_stream(path, file, raw)
    }

    /// Reads from a stream such as standard input, called `name` in errors. Of MP4 and CAF no more than [`MAX_HELD_BYTES`]
    /// bytes are taken, as they are held in memory.
    ///
    /// # Errors
    /// As for [`Reader::open`].
    pub fn from_stream(
        name: impl AsRef<Path>,
        stream: impl Read + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let name = name.as_ref();
        Self::from_bytes(name, stream).map_err(|reason| Error::Read { path: name.to_owned(), reason })
    }

    /// Reads raw samples from a stream such as standard input, called `name` in errors.
    ///
    /// # Errors
    /// None so far: what is wrong with the stream shows when it is read.
    pub fn from_raw_stream(
        name: impl AsRef<Path>,
        stream: impl Read + Send + Sync + 'static,
        raw: RawFormat,
    ) -> Result<Self, Error> {
        let decoder = PcmDecoder::raw(Box::new(stream), raw);
        Ok(Self::new(
            name.as_ref(),
            Decoder::Pcm(decoder),
            raw.sample_rate,
            raw.channels,
            raw.encoding.format(),
        ))
    }

    /// Takes what is there of a damaged recording: one that is shorter than its header says, or cannot be decoded
    /// any further, ends there, and samples that are not finite become zeros. [`Reader::losses`] counts them.
    #[must_use]
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        self
    }

    fn from_source(name: &Path, mut source: Box<dyn ReadSeek>) -> Result<Self, ReadError> {
        let length = source.seek(SeekFrom::End(0)).map_err(ReadError::Io)?;
        source.rewind().map_err(ReadError::Io)?;
        let mut bytes = BufReader::new(source);
        let mut start = start_of(&mut bytes)?;
        let mut begin = 0;
        let mut tag = None;
        if let Some(tag_bytes) = id3_bytes(&start) {
            bytes.seek(SeekFrom::Start(tag_bytes)).map_err(ReadError::Io)?;
            let behind = start_of(&mut bytes).unwrap_or_default();
            if wav::is_wav(&behind) {
                bytes.rewind().map_err(ReadError::Io)?;
                if tag_bytes <= LONGEST_START {
                    let mut whole = Vec::new();
                    bytes.by_ref().take(tag_bytes).read_to_end(&mut whole).map_err(ReadError::Io)?;
                    tag = Some(whole);
                }
                (start, begin) = (behind, tag_bytes);
            }
        }
        bytes.seek(SeekFrom::Start(begin)).map_err(ReadError::Io)?;
        let kind = Kind::of(&start);
        match kind {
            Kind::Wav | Kind::Wave64 | Kind::Au => match read_header(kind, &mut bytes) {
                Ok(mut header) => {
                    if let Some(tag) = tag {
                        header.metadata.push_id3(tag);
                    }
                    let (length, metadata) = wav::look_behind(&mut bytes, &header)?;
                    let mut this = Self::from_wav(name, &header, length, Box::new(bytes));
                    this.metadata = metadata;
                    Ok(this)
                }
                // ADPCM, for example.
                Err(ReadError::Unsupported(reason)) if kind == Kind::Wav => {
                    let mut source = bytes.into_inner();
                    source.rewind().map_err(ReadError::Io)?;
                    Self::from_compressed(name, || CompressedDecoder::open(source, length))
                        .map_err(|_| ReadError::Unsupported(reason))
                }
                Err(error) => Err(error),
            },
            Kind::Mp4 => {
                let source = bytes.into_inner();
                Self::from_compressed(name, || CompressedDecoder::open_mp4(source, length))
            }
            Kind::Flac => {
                // What it says is said again by what cannot be read of it.
                let (metadata, speakers) = Metadata::of_flac(&mut bytes).unwrap_or_default();
                bytes.rewind().map_err(ReadError::Io)?;
                let this = Self::from_compressed(name, || CompressedDecoder::open_flac(Box::new(bytes)))?;
                Ok(this.with_flac_metadata(metadata, speakers))
            }
            Kind::Caf | Kind::Other => {
                let mut source = bytes.into_inner();
                source.rewind().map_err(ReadError::Io)?;
                Self::from_compressed(name, || CompressedDecoder::open(source, length))
            }
        }
    }

    fn from_bytes(name: &Path, mut stream: impl Read + Send + Sync + 'static) -> Result<Self, ReadError> {
        let mut start = start_of(&mut stream)?;
        let mut tag = None;
        if let Some(tag_bytes) = id3_bytes(&start).filter(|&bytes| bytes <= LONGEST_START) {
            stream
                .by_ref()
                .take(tag_bytes.saturating_sub(start.len() as u64))
                .read_to_end(&mut start)
                .map_err(ReadError::Io)?;
            let behind = start_of(&mut stream).unwrap_or_default();
            if wav::is_wav(&behind) {
                tag = Some(std::mem::replace(&mut start, behind));
            } else {
                start.extend(behind);
            }
        }
        let kind = Kind::of(&start);
        let bytes = Cursor::new(start).chain(stream);
        match kind {
            Kind::Wav | Kind::Wave64 | Kind::Au => {
                let mut bytes = Recorded::new(bytes);
                match read_header(kind, &mut bytes) {
                    Ok(mut header) => {
                        if let Some(tag) = tag {
                            header.metadata.push_id3(tag);
                        }
                        Ok(Self::from_wav(name, &header, None, Box::new(bytes.source)))
                    }
                    Err(ReadError::Unsupported(reason)) if kind == Kind::Wav => {
                        let again = Box::new(bytes.again());
                        Self::from_compressed(name, || CompressedDecoder::open_stream(again))
                            .map_err(|_| ReadError::Unsupported(reason))
                    }
                    Err(error) => Err(error),
                }
            }
            Kind::Mp4 | Kind::Caf => {
                // What tells of their samples may follow them.
                let mut held = Vec::new();
                bytes.take(MAX_HELD_BYTES + 1).read_to_end(&mut held).map_err(ReadError::Io)?;
                let length = held.len() as u64;
                if length > MAX_HELD_BYTES {
                    return Err(ReadError::TooLongToHold { maximum: MAX_HELD_BYTES });
                }
                let held = Box::new(Cursor::new(held));
                Self::from_compressed(name, || match kind {
                    Kind::Mp4 => CompressedDecoder::open_mp4(held, length),
                    _ => CompressedDecoder::open(held, length),
                })
            }
            Kind::Flac => {
                let mut bytes = Recorded::new(bytes);
                let (metadata, speakers) = Metadata::of_flac(&mut bytes).unwrap_or_default();
                let again = Box::new(bytes.again());
                let this = Self::from_compressed(name, || CompressedDecoder::open_flac(again))?;
                Ok(this.with_flac_metadata(metadata, speakers))
            }
            Kind::Other => Self::from_compressed(name, || CompressedDecoder::open_stream(bytes)),
        }
    }

    fn with_flac_metadata(mut self, metadata: Metadata, speakers: Option<u32>) -> Self {
        self.metadata = metadata;
        self.speakers = speakers.or(self.speakers);
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
        this.speakers = header.speakers;
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
        let (speakers, metadata) = (decoder.speakers, std::mem::take(&mut decoder.metadata));
        let mut this = Self::new(name, Decoder::Compressed(Box::new(decoder)), sample_rate, channels, format);
        (this.speakers, this.metadata) = (speakers, metadata);
        Ok(this)
    }

    fn new(name: &Path, decoder: Decoder, sample_rate: u32, channels: usize, format: SampleFormat) -> Self {
        Self {
            name: name.to_owned(),
            decoder,
            sample_rate,
            format,
            speakers: None,
            metadata: Metadata::default(),
            decoded: vec![Vec::new(); channels],
            position: 0,
            salvage: false,
            losses: Losses::default(),
            ended: false,
        }
    }

    /// Sample rate in Hz.
    #[must_use]
    pub fn sample_rate(&self) -> u32 {
        self.sample_rate
    }

    /// Number of channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.decoded.len()
    }

    /// The format that keeps the samples: their own, or 16-bit integers for a lossy recording.
    #[must_use]
    pub fn format(&self) -> SampleFormat {
        self.format
    }

    /// Samples per channel, if the header says.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match &self.decoder {
            Decoder::Pcm(decoder) => decoder.length(),
            Decoder::Compressed(decoder) => decoder.length,
        }
    }

    /// Where the channels are heard, as the bits of `dwChannelMask` (FL, FR, FC, LFE, BL, BR, ... from the lowest),
    /// if the file says; zero if it says that it does not matter.
    #[must_use]
    pub fn speakers(&self) -> Option<u32> {
        self.speakers
    }

    /// What the file says of the recording. Of a WAV stream, what stands before the samples.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// What the recording lacks so far.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let mut losses = self.losses;
        if let Decoder::Compressed(decoder) = &self.decoder {
            let decoded = decoder.losses();
            losses.damaged_packets += decoded.damaged_packets;
            losses.silent_samples += decoded.silent_samples;
            losses.ends_early |= decoded.ends_early;
        }
        losses
    }

    /// The next `samples` samples of every channel: fewer only at the end, and none after it.
    ///
    /// # Errors
    /// [`Error::Read`] if the file is truncated or damaged, holds a sample that is not finite
    /// (with its position in the file), or holds no sample at all; see [`Reader::salvage`].
    pub fn read_block(&mut self, samples: usize) -> Result<Vec<Vec<f32>>, Error> {
        self.fill(samples).map_err(|reason| Error::Read { path: self.name.clone(), reason })?;
        let count = samples.min(self.decoded[0].len());
        self.position += count as u64;
        Ok(self.decoded.iter_mut().map(|channel| channel.drain(..count).collect()).collect())
    }

    /// Decodes until there are so many samples, or no more.
    fn fill(&mut self, samples: usize) -> Result<(), ReadError> {
        while self.decoded[0].len() < samples && !self.ended {
            let before = self.decoded[0].len();
            let decoded = match &mut self.decoder {
                Decoder::Pcm(decoder) => decoder.decode(&mut self.decoded),
                Decoder::Compressed(decoder) => guarded(|| decoder.decode(&mut self.decoded)),
            };
            match decoded {
                Ok(()) => {}
                Err(ReadError::Truncated { expected, found }) if self.salvage => {
                    self.losses.missing_samples += expected.saturating_sub(found);
                    self.ended = true;
                }
                Err(ReadError::Damaged { .. } | ReadError::PartialSample { .. }) if self.salvage => {
                    let found = self.position + self.decoded[0].len() as u64;
                    self.losses.missing_samples +=
                        self.length().map_or(0, |expected| expected.saturating_sub(found));
                    self.losses.ends_early = true;
                    self.ended = true;
                }
                Err(error) => return Err(error),
            }
            if self.decoded[0].len() == before {
                break;
            }
            for (channel, samples) in self.decoded.iter_mut().enumerate() {
                for (index, value) in samples.iter_mut().enumerate().skip(before) {
                    if !value.is_finite() {
                        if !self.salvage {
                            let sample = self.position as usize + index;
                            return Err(InvalidSignal::NotFinite { channel, sample, value: *value }.into());
                        }
                        *value = 0.0;
                        self.losses.not_finite += 1;
                    }
                }
            }
        }
        if self.position == 0 && self.decoded[0].is_empty() && samples > 0 {
            return Err(InvalidSignal::NoSamples.into());
        }
        Ok(())
    }

    /// Everything that has not been read yet.
    ///
    /// # Errors
    /// As for [`Reader::read_block`].
    pub fn read_all(mut self) -> Result<Signal, Error> {
        self.read_rest()
    }

    fn read_rest(&mut self) -> Result<Signal, Error> {
        let mut channels = vec![Vec::new(); self.channels()];
        loop {
            let block = self.read_block(1 << 16)?;
            if block[0].is_empty() {
                break;
            }
            for (channel, samples) in channels.iter_mut().zip(block) {
                channel.extend(samples);
            }
        }
        Signal::new(self.sample_rate, self.format, channels)
            .map_err(|invalid| Error::Read { path: self.name.clone(), reason: invalid.into() })
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("name", &self.name)
            .field("sample_rate", &self.sample_rate)
            .field("channels", &self.channels())
            .field("format", &self.format)
            .field("length", &self.length())
            .finish_non_exhaustive()
    }
}

/// Reads a whole file in any of the formats of [`Reader`], with silence for what a stream has lost on the way.
///
/// # Errors
/// [`Error::Read`] with the reason: missing, empty, truncated, damaged, not audio, an unsupported
/// encoding, or samples that do not make a [`Signal`].
pub fn read(path: impl AsRef<Path>) -> Result<Signal, Error> {
    read_with_losses(path).map(|(signal, _)| signal)
}

/// The same, and what the file lacks.
///
/// # Errors
/// As for [`read()`].
pub fn read_with_losses(path: impl AsRef<Path>) -> Result<(Signal, Losses), Error> {
    let mut reader = Reader::open(path)?;
    Ok((reader.read_rest()?, reader.losses()))
}

/// Whether the name of a file ends in one of [`EXTENSIONS`].
#[must_use]
pub fn has_extension(path: impl AsRef<Path>) -> bool {
    let extension = path.as_ref().extension().unwrap_or_default();
    EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn open_file(path: &Path) -> Result<File, ReadError> {
    File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ReadError::Missing,
        _ => ReadError::Io(error),
    })
}

/// Runs a foreign decoder, of which some can be brought to panic by a damaged file.
fn guarded<T>(decode: impl FnOnce() -> Result<T, ReadError>) -> Result<T, ReadError> {
    // Whatever state a panic leaves is dropped with the reader, or gives other samples at worst.
    panic::catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(ReadError::NotAudio("its decoder failed".into())))
}

fn read_header(kind: Kind, bytes: &mut impl Read) -> Result<wav::WavHeader, ReadError> {
    match kind {
        Kind::Wave64 => wav::read_wave64_header(bytes),
        Kind::Au => wav::read_au_header(bytes),
        _ => wav::read_header(bytes),
    }
}

/// How long the ID3 tag is that a file begins with, if it does (ID3v2.4, section 3.1), bytes.
pub(super) fn id3_bytes(start: &[u8]) -> Option<u64> {
    let header = start.first_chunk::<10>().filter(|header| header.starts_with(b"ID3"))?;
    let body = header[6..].iter().fold(0, |size, byte| size << 7 | u64::from(byte & 0x7f));
    let footer = if header[5] & 0x10 != 0 { 10 } else { 0 };
    Some(10 + body + footer)
}

/// Keeps what is read, to be read again.
struct Recorded<R> {
    source: R,
    seen: Vec<u8>,
}

impl<R: Read> Recorded<R> {
    fn new(source: R) -> Self {
        Self { source, seen: Vec::new() }
    }

    /// From the beginning.
    fn again(self) -> impl Read + use<R> {
        Cursor::new(self.seen).chain(self.source)
    }
}

impl<R: Read> Read for Recorded<R> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        if self.seen.len() as u64 > LONGEST_START {
            return Err(io::Error::other("its header is too long"));
        }
        let count = self.source.read(target)?;
        self.seen.extend(&target[..count]);
        Ok(count)
    }
}

/// The first bytes of a stream, enough to tell its format.
fn start_of(stream: &mut impl Read) -> Result<Vec<u8>, ReadError> {
    let mut start = Vec::new();
    stream.take(12).read_to_end(&mut start).map_err(ReadError::Io)?;
    if start.is_empty() { Err(ReadError::Empty) } else { Ok(start) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Container, Layout, Writer, write};
    use alphamf_signal::MAX_CHANNELS;
    use std::fs;
    use tempfile::TempDir;

    fn reason<T: std::fmt::Debug>(path: &Path, result: Result<T, Error>) -> ReadError {
        match result {
            Err(Error::Read { path: named, reason }) => {
                assert_eq!(named, path);
                reason
            }
            other => panic!("{other:?}"),
        }
    }

    fn layout(channels: usize, format: SampleFormat) -> Layout {
        Layout {
            sample_rate: 8_000,
            channels,
            format,
            container: Container::Wav,
            length: None,
            speakers: None,
            dither: None,
        }
    }

    #[test]
    fn bad_input_is_named() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.wav");
        let read_error = || reason(&path, read(&path));
        assert!(matches!(read_error(), ReadError::Missing));
        assert_eq!(read(&path).unwrap_err().to_string(), format!("{}: no such file", path.display()));
        assert!(matches!(reason(folder.path(), read(folder.path())), ReadError::Io(_)));
        fs::write(&path, []).unwrap();
        assert!(matches!(read_error(), ReadError::Empty));
        fs::write(&path, "This is not audio, just text. ".repeat(1_000)).unwrap();
        assert!(matches!(read_error(), ReadError::NotAudio(_)));

        let signal = Signal::new(8_000, SampleFormat::Float32, vec![vec![0.5; 100]; 2]).unwrap();
        write(&path, &signal).unwrap();
        let bytes = fs::read(&path).unwrap();
        let header = bytes.len() - 800;
        let mut bad = bytes.clone();
        bad[header + 12..header + 16].copy_from_slice(&f32::NAN.to_le_bytes());
        fs::write(&path, &bad).unwrap();
        assert!(matches!(
            read_error(),
            ReadError::Signal(InvalidSignal::NotFinite { channel: 1, sample: 1, .. })
        ));

        let mut bad = bytes.clone();
        bad[24..28].copy_from_slice(&4_000_u32.to_le_bytes());
        fs::write(&path, &bad).unwrap();
        assert!(matches!(read_error(), ReadError::Signal(InvalidSignal::SampleRate { found: 4_000 })));

        let mut empty = bytes[..header].to_vec();
        empty[4..8].copy_from_slice(&1_000_u32.to_le_bytes());
        empty[header - 4..].copy_from_slice(&[0; 4]);
        fs::write(&path, &empty).unwrap();
        assert!(matches!(read_error(), ReadError::Signal(InvalidSignal::NoSamples)));
    }

    #[test]
    fn truncation_at_every_byte_is_noticed() {
        let folder = TempDir::new().unwrap();
        for name in ["a.wav", "a.flac"] {
            let path = folder.path().join(name);
            let samples = (0..300).map(|n| (n as f32 * 0.3).sin() * 0.5).collect();
            let signal = Signal::new(8_000, SampleFormat::Int16, vec![samples; 2]).unwrap();
            write(&path, &signal).unwrap();
            let bytes = fs::read(&path).unwrap();
            for length in 1..bytes.len() {
                fs::write(&path, &bytes[..length]).unwrap();
                match reason(&path, read(&path)) {
                    ReadError::NotAudio(_) => assert!(name == "a.flac" || length < 44),
                    ReadError::Truncated { expected: 300, found } => {
                        let expected = if name == "a.wav" { (length as u64 - 44) / 4 } else { 0 };
                        assert_eq!(found, expected);
                    }
                    other => panic!("{name}, {length} bytes: {other:?}"),
                }
            }
        }
    }

    /// A header may announce what it likes: what is allocated follows what is there.
    #[test]
    fn huge_announcements_cost_nothing() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.wav");
        for channels in [1, MAX_CHANNELS as u16] {
            let layout = layout(channels.into(), SampleFormat::Int8);
            let mut bytes = wav::header(&layout, Some(10_000), false, &[]);
            let end = bytes.len();
            bytes[end - 4..].copy_from_slice(&0xf000_0000_u32.to_le_bytes());
            bytes.extend(vec![0; usize::from(channels)]);
            fs::write(&path, &bytes).unwrap();
            assert!(matches!(reason(&path, read(&path)), ReadError::Truncated { found: 1, .. }));
        }
        let layout = layout(u16::MAX.into(), SampleFormat::Int8);
        fs::write(&path, wav::header(&layout, Some(1), false, &[])).unwrap();
        assert!(matches!(
            reason(&path, read(&path)),
            ReadError::Signal(InvalidSignal::TooManyChannels { found: 65_535 })
        ));
    }

    #[test]
    fn blocks_make_up_the_whole() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.flac");
        let samples: Vec<f32> = (0..70_000).map(|n| (n % 1_000) as f32 / 1_024.0).collect();
        let signal = Signal::new(44_100, SampleFormat::Int16, vec![samples.clone(), samples]).unwrap();
        write(&path, &signal).unwrap();
        let mut reader = Reader::open(&path).unwrap();
        assert_eq!(reader.length(), Some(70_000));
        let mut position = 0;
        for samples in [0, 1, 4_095, 30_000, 40_000, 5] {
            let block = reader.read_block(samples).unwrap();
            let end = (position + samples).min(70_000);
            assert_eq!(block[1], signal.channels()[1][position..end]);
            position = end;
        }
        assert_eq!(reader.read_block(5).unwrap(), vec![Vec::<f32>::new(); 2]);
    }

    #[test]
    fn a_live_stream_is_read_as_it_comes() {
        /// Gives three bytes at a time, and fails if asked for more than is needed.
        struct Trickle(Vec<u8>, usize);
        impl Read for Trickle {
            fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
                let count = bytes.len().min(3).min(self.0.len() - self.1);
                if count == 0 && !bytes.is_empty() {
                    return Err(io::Error::other("nothing yet"));
                }
                bytes[..count].copy_from_slice(&self.0[self.1..self.1 + count]);
                self.1 += count;
                Ok(count)
            }
        }
        let raw: RawFormat = "8000:2:s16".parse().unwrap();
        let bytes = (0..80).collect();
        let mut reader = Reader::from_raw_stream("stdin", Trickle(bytes, 0), raw).unwrap();
        assert_eq!(reader.read_block(20).unwrap()[0].len(), 20);
        assert!(matches!(reason(Path::new("stdin"), reader.read_block(1)), ReadError::Io(_)));
    }

    #[test]
    fn raw_samples_must_be_whole() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.raw");
        let raw: RawFormat = "8000:2:s16be".parse().unwrap();
        fs::write(&path, [0x40, 0, 0xc0, 0, 0, 1, 0, 0]).unwrap();
        let signal = Reader::open_raw(&path, raw).unwrap().read_all().unwrap();
        assert_eq!(signal.channels(), [[0.5, 1.0 / 32_768.0], [-0.5, 0.0]]);
        fs::write(&path, [0; 7]).unwrap();
        assert!(matches!(
            reason(&path, Reader::open_raw(&path, raw).unwrap().read_all()),
            ReadError::PartialSample { found: 3, expected: 4 }
        ));
        fs::write(&path, []).unwrap();
        assert!(matches!(
            reason(&path, Reader::open_raw(&path, raw).unwrap().read_all()),
            ReadError::Signal(InvalidSignal::NoSamples)
        ));
    }

    /// The samples beyond 4 GiB of an RF64 file; the file has holes and takes no space.
    #[test]
    #[cfg(target_os = "linux")]
    fn recordings_beyond_4_gib_keep_their_length() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("long.wav");
        let length = 3_u64 << 30;
        let header = wav::header(&layout(1, SampleFormat::Int16), Some(length), true, &[]);
        fs::write(&path, &header).unwrap();
        let file = fs::File::options().append(true).open(&path).unwrap();
        file.set_len(header.len() as u64 + 2 * length).unwrap();
        assert_eq!(Reader::open(&path).unwrap().length(), Some(length));
    }

    #[test]
    fn a_length_announced_too_short_is_no_harm() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.wav");
        let layout = Layout { length: Some(1), ..layout(1, SampleFormat::Int8) };
        let mut writer = Writer::create(&path, layout).unwrap();
        writer.write_block(&[vec![0.5; 7]]).unwrap();
        writer.finish().unwrap();
        assert_eq!(read(&path).unwrap().channels(), [[0.5; 7]]);
        assert_eq!(fs::metadata(&path).unwrap().len(), 44 + 8);
    }
}
