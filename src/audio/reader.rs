use super::compressed::CompressedDecoder;
use super::error::{Error, InvalidSignal, ReadError};
use super::mp4;
use super::pcm::{PcmDecoder, RawFormat};
use super::signal::{SampleFormat, Signal, check_channels, check_sample_rate};
use super::wav;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use symphonia::core::io::ReadOnlySource;

/// Extensions, in lower case, of the files in a folder that are taken for audio.
pub const EXTENSIONS: [&str; 11] =
    ["wav", "flac", "ogg", "oga", "mp3", "m4a", "mp4", "aac", "aif", "aiff", "aifc"];

/// Reads a recording block by block, in memory that does not grow with its length.
///
/// The formats are WAV (integers of 8 to 32 bits, floats of 32 and 64 bits, A-law, mu-law, RF64,
/// lengths left open by a program that wrote to a pipe), FLAC, MP3, Ogg Vorbis, AAC and ALAC in
/// MP4 or alone, AIFF, and raw samples. What a file holds is told by its contents, not by its
/// name.
pub struct Reader {
    name: PathBuf,
    decoder: Decoder,
    sample_rate: u32,
    format: SampleFormat,
    /// Decoded and not yet taken.
    decoded: Vec<Vec<f32>>,
    /// Samples per channel taken so far.
    position: u64,
}

enum Decoder {
    Pcm(PcmDecoder),
    Compressed(Box<CompressedDecoder>),
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
            if !file.metadata().map_err(ReadError::Io)?.is_file() {
                return Self::from_bytes(path, file);
            }
            let mut bytes = BufReader::new(file);
            let start = start_of(&mut bytes)?;
            bytes.rewind().map_err(ReadError::Io)?;
            if mp4::is_mp4(&start) {
                return Self::from_compressed(path, || CompressedDecoder::open_mp4(bytes.into_inner()));
            }
            if !wav::is_wav(&start) {
                return Self::from_compressed(path, || CompressedDecoder::open(Box::new(bytes.into_inner())));
            }
            let header = wav::read_header(&mut bytes)?;
            Self::from_wav(path, &header, Box::new(bytes))
        };
        open().map_err(|reason| Error::Read { path: path.to_owned(), reason })
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

    /// Reads from a stream such as standard input, called `name` in errors.
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

    fn from_bytes(name: &Path, mut stream: impl Read + Send + Sync + 'static) -> Result<Self, ReadError> {
        let start = start_of(&mut stream)?;
        let (is_mp4, is_wav) = (mp4::is_mp4(&start), wav::is_wav(&start));
        let mut bytes = Cursor::new(start).chain(stream);
        if is_wav {
            let header = wav::read_header(&mut bytes)?;
            Self::from_wav(name, &header, Box::new(bytes))
        } else if is_mp4 {
            // Its index may follow its samples.
            let mut file = tempfile::tempfile().map_err(ReadError::Io)?;
            io::copy(&mut bytes, &mut file).map_err(ReadError::Io)?;
            file.rewind().map_err(ReadError::Io)?;
            Self::from_compressed(name, || CompressedDecoder::open_mp4(file))
        } else {
            Self::from_compressed(name, || CompressedDecoder::open(Box::new(ReadOnlySource::new(bytes))))
        }
    }

    fn from_wav(
        name: &Path,
        header: &wav::Header,
        bytes: Box<dyn Read + Send + Sync>,
    ) -> Result<Self, ReadError> {
        let decoder = PcmDecoder::new(bytes, header.encoding, header.channels, header.length);
        Ok(Self::new(
            name,
            Decoder::Pcm(decoder),
            header.sample_rate,
            header.channels,
            header.encoding.format(),
        ))
    }

    fn from_compressed(
        name: &Path,
        open: impl FnOnce() -> Result<CompressedDecoder, ReadError>,
    ) -> Result<Self, ReadError> {
        let decoder = guarded(open)?;
        check_sample_rate(decoder.sample_rate)?;
        check_channels(decoder.channels)?;
        let (sample_rate, channels, format) = (decoder.sample_rate, decoder.channels, decoder.format);
        Ok(Self::new(name, Decoder::Compressed(Box::new(decoder)), sample_rate, channels, format))
    }

    fn new(name: &Path, decoder: Decoder, sample_rate: u32, channels: usize, format: SampleFormat) -> Self {
        let decoded = vec![Vec::new(); channels];
        Self { name: name.to_owned(), decoder, sample_rate, format, decoded, position: 0 }
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

    /// Packets so far that were damaged and have been replaced with silence.
    #[must_use]
    pub fn damaged_packets(&self) -> u64 {
        match &self.decoder {
            Decoder::Pcm(_) => 0,
            Decoder::Compressed(decoder) => decoder.damaged_packets,
        }
    }

    /// The next `samples` samples of every channel: fewer only at the end, and none after it.
    ///
    /// # Errors
    /// [`Error::Read`] if the file is truncated or damaged, holds a sample that is not finite
    /// (with its position in the file), or holds no sample at all.
    pub fn read_block(&mut self, samples: usize) -> Result<Vec<Vec<f32>>, Error> {
        self.fill(samples).map_err(|reason| Error::Read { path: self.name.clone(), reason })?;
        let count = samples.min(self.decoded[0].len());
        self.position += count as u64;
        Ok(self.decoded.iter_mut().map(|channel| channel.drain(..count).collect()).collect())
    }

    /// Decodes until there are so many samples, or no more.
    fn fill(&mut self, samples: usize) -> Result<(), ReadError> {
        while self.decoded[0].len() < samples {
            let before = self.decoded[0].len();
            match &mut self.decoder {
                Decoder::Pcm(decoder) => decoder.decode(&mut self.decoded)?,
                Decoder::Compressed(decoder) => guarded(|| decoder.decode(&mut self.decoded))?,
            }
            if self.decoded[0].len() == before {
                break;
            }
            for (channel, samples) in self.decoded.iter().enumerate() {
                if let Some(bad) = samples[before..].iter().position(|x| !x.is_finite()) {
                    let (sample, value) = (self.position as usize + before + bad, samples[before + bad]);
                    return Err(InvalidSignal::NotFinite { channel, sample, value }.into());
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
            .map_err(|invalid| Error::Read { path: self.name, reason: invalid.into() })
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

/// Reads a whole file in any of the formats of [`Reader`].
///
/// # Errors
/// [`Error::Read`] with the reason: missing, empty, truncated, damaged, not audio, an unsupported
/// encoding, or samples that do not make a [`Signal`].
pub fn read(path: impl AsRef<Path>) -> Result<Signal, Error> {
    Reader::open(path)?.read_all()
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

/// The first bytes of a stream, enough to tell its format.
fn start_of(stream: &mut impl Read) -> Result<Vec<u8>, ReadError> {
    let mut start = Vec::new();
    stream.take(12).read_to_end(&mut start).map_err(ReadError::Io)?;
    if start.is_empty() { Err(ReadError::Empty) } else { Ok(start) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::{Container, Layout, MOST_CHANNELS, Writer, write};
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
        for channels in [1, MOST_CHANNELS as u16] {
            let mut bytes = wav::header(8_000, channels, SampleFormat::Int8, Some(10_000), false);
            let end = bytes.len();
            bytes[end - 4..].copy_from_slice(&0xf000_0000_u32.to_le_bytes());
            bytes.extend(vec![0; usize::from(channels)]);
            fs::write(&path, &bytes).unwrap();
            assert!(matches!(reason(&path, read(&path)), ReadError::Truncated { found: 1, .. }));
        }
        fs::write(&path, wav::header(8_000, u16::MAX, SampleFormat::Int8, Some(1), false)).unwrap();
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
        let header = wav::header(192_000, 1, SampleFormat::Int16, Some(length), true);
        fs::write(&path, &header).unwrap();
        let file = fs::File::options().append(true).open(&path).unwrap();
        file.set_len(header.len() as u64 + 2 * length).unwrap();
        assert_eq!(Reader::open(&path).unwrap().length(), Some(length));
    }

    #[test]
    fn a_length_announced_too_short_is_no_harm() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.wav");
        let layout = Layout {
            sample_rate: 8_000,
            channels: 1,
            format: SampleFormat::Int8,
            container: Container::Wav,
            length: Some(1),
            dither: None,
        };
        let mut writer = Writer::create(&path, layout).unwrap();
        writer.write_block(&[vec![0.5; 7]]).unwrap();
        writer.finish().unwrap();
        assert_eq!(read(&path).unwrap().channels(), [[0.5; 7]]);
        assert_eq!(fs::metadata(&path).unwrap().len(), 44 + 8);
    }
}
