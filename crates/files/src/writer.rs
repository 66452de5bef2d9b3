//! Block-by-block writing of WAV, FLAC and raw samples.

use super::error::{Error, WriteError};
use super::flac::{self, FlacEncoder};
use super::metadata::Metadata;
use super::spec::{Container, OutputSpec};
use super::wav;
use crate::output::OutputFile;
use alphamf_samplers::random::SeededRng;
use alphamf_signal::{InvalidSignal, MAX_CHANNELS, SampleFormat, Signal, check_sample_rate};
use rand::RngExt;
use std::io::{self, BufWriter, Cursor, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Writes a recording block by block, in memory that does not grow with its length.
///
/// A file appears under its name when [`Writer::finish`] has succeeded. A writer dropped earlier leaves nothing, and an
/// existing file remains.
pub struct Writer {
    name: PathBuf,
    spec: OutputSpec,
    sink: Sink,
    encoder: Encoder,
    /// One random generator of dither per channel; empty without dither.
    dither: Vec<SeededRng>,
    bytes: Vec<u8>,
    length: u64,
    clipped: u64,
}

enum Sink {
    File(BufWriter<OutputFile>),
    Stream(Box<dyn Write + Send>),
    /// An open target of the caller, and the position of the recording in it.
    Seekable(Box<dyn WriteSeek>, u64),
}

/// A target that can be rewound.
trait WriteSeek: Write + Seek + Send {}
impl<T: Write + Seek + Send> WriteSeek for T {}

enum Encoder {
    Wav {
        channels: u16,
        reserve: bool,
        /// Chunks before the samples of a stream, and after those of a file: some programs find no samples after a long
        /// or malformed chunk.
        chunks: Vec<u8>,
    },
    Flac(Box<FlacEncoder>),
    Raw,
}

impl Writer {
    /// Begins a file.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be created or the specification does not fit its format.
    pub fn create(path: impl AsRef<Path>, spec: OutputSpec, metadata: &Metadata) -> Result<Self, Error> {
        let path = path.as_ref();
        let sink = || Ok(Sink::File(BufWriter::new(OutputFile::create(path).map_err(WriteError::Io)?)));
        Self::begin(path, spec, metadata, sink)
    }

    /// Begins a recording, with metadata, in an output file that is called `name` in errors.
    ///
    /// # Errors
    /// [`Error::Write`] if the specification does not fit its format.
    pub fn to_file(
        name: impl AsRef<Path>,
        spec: OutputSpec,
        metadata: &Metadata,
        file: OutputFile,
    ) -> Result<Self, Error> {
        Self::begin(name.as_ref(), spec, metadata, || Ok(Sink::File(BufWriter::new(file))))
    }

    /// Begins a recording at the present position of a seekable target, such as bytes in memory or a redirected standard
    /// output, called `name` in errors.
    ///
    /// Every block is written at once; the length in the header is filled in at the end.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be written or the specification does not fit its format.
    pub fn to_seekable(
        name: impl AsRef<Path>,
        spec: OutputSpec,
        metadata: &Metadata,
        mut target: impl Write + Seek + Send + 'static,
    ) -> Result<Self, Error> {
        let sink = || {
            let start = target.stream_position().map_err(WriteError::Io)?;
            Ok(Sink::Seekable(Box::new(target), start))
        };
        Self::begin(name.as_ref(), spec, metadata, sink)
    }

    /// Begins a stream such as standard output, called `name` in errors.
    ///
    /// Its header leaves the length open, as it cannot be filled in later. Every block is flushed.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be written or the specification does not fit its format.
    pub fn to_stream(
        name: impl AsRef<Path>,
        spec: OutputSpec,
        metadata: &Metadata,
        stream: impl Write + Send + 'static,
    ) -> Result<Self, Error> {
        Self::begin(name.as_ref(), spec, metadata, || Ok(Sink::Stream(Box::new(stream))))
    }

    fn begin(
        name: &Path,
        spec: OutputSpec,
        metadata: &Metadata,
        sink: impl FnOnce() -> Result<Sink, WriteError>,
    ) -> Result<Self, Error> {
        let begin = || {
            let encoder = Encoder::new(&spec, metadata)?;
            Self::begin_with(name, spec, sink()?, encoder)
        };
        begin().map_err(|reason| Error::Write { path: name.to_owned(), reason })
    }

    fn begin_with(name: &Path, spec: OutputSpec, sink: Sink, encoder: Encoder) -> Result<Self, WriteError> {
        let dither = match spec.dither {
            Some(dither) if spec.format.is_integer() => {
                (0..spec.channels as u64).map(|channel| dither.seeds.rng(channel)).collect()
            }
            _ => Vec::new(),
        };
        let mut this = Self {
            name: name.to_owned(),
            spec,
            sink,
            encoder,
            dither,
            bytes: Vec::new(),
            length: 0,
            clipped: 0,
        };
        let header = match &this.encoder {
            // The length is filled in at the end of a file and left open in a stream.
            Encoder::Wav { chunks, .. } => {
                let before = if this.is_stream() { &chunks[..] } else { &[] };
                wav::header(&spec, None, this.reserve(), before, 0)
            }
            Encoder::Flac(encoder) => encoder.header().map_err(WriteError::Io)?,
            Encoder::Raw => Vec::new(),
        };
        this.sink.write_all(&header).map_err(WriteError::Io)?;
        Ok(this)
    }

    /// Whether the header has room for lengths beyond 4 GiB.
    fn reserve(&self) -> bool {
        !self.is_stream() && matches!(self.encoder, Encoder::Wav { reserve: true, .. })
    }

    /// Whether the header cannot be filled in later.
    fn is_stream(&self) -> bool {
        matches!(self.sink, Sink::Stream(_))
    }

    /// Writes the next samples of every channel.
    ///
    /// # Errors
    /// [`Error::Write`] if they cannot be written or one is not finite.
    ///
    /// # Panics
    /// If there are more or fewer channels than announced, or of unequal length.
    pub fn write_block(&mut self, channels: &[Vec<f32>]) -> Result<(), Error> {
        assert_eq!(channels.len(), self.spec.channels, "channels of the block and of the file");
        let length = channels.first().map_or(0, Vec::len);
        assert!(channels.iter().all(|c| c.len() == length), "channels of equal length");
        self.encode(channels, length).map_err(|reason| Error::Write { path: self.name.clone(), reason })
    }

    fn encode(&mut self, channels: &[Vec<f32>], length: usize) -> Result<(), WriteError> {
        for (channel, samples) in channels.iter().enumerate() {
            if let Some(bad) = samples.iter().position(|x| !x.is_finite()) {
                let (sample, value) = (self.length as usize + bad, samples[bad]);
                return Err(InvalidSignal::NotFinite { channel, sample, value }.into());
            }
        }
        self.bytes.clear();
        let mut codes = Vec::new();
        for n in 0..length {
            for (channel, samples) in channels.iter().enumerate() {
                match (&self.encoder, self.spec.format) {
                    (Encoder::Wav { .. } | Encoder::Raw, SampleFormat::Float32) => {
                        self.bytes.extend(samples[n].to_le_bytes());
                    }
                    (Encoder::Wav { .. } | Encoder::Raw, SampleFormat::Float64) => {
                        self.bytes.extend(f64::from(samples[n]).to_le_bytes());
                    }
                    (Encoder::Wav { .. } | Encoder::Raw, SampleFormat::Int8) => {
                        let code = self.quantise(channel, samples[n], 8);
                        self.bytes.push((code as u8) ^ 0x80);
                    }
                    (Encoder::Wav { .. } | Encoder::Raw, format) => {
                        let bits = format.bits();
                        let code = self.quantise(channel, samples[n], bits);
                        self.bytes.extend(&code.to_le_bytes()[..usize::from(bits / 8)]);
                    }
                    (Encoder::Flac(_), format) => {
                        codes.push(self.quantise(channel, samples[n], format.bits().min(24)));
                    }
                }
            }
        }
        if let Encoder::Flac(encoder) = &mut self.encoder {
            encoder.encode(&codes, &mut self.bytes).map_err(WriteError::Io)?;
        }
        self.length += length as u64;
        self.sink.write_all(&self.bytes).map_err(WriteError::Io)?;
        if let Sink::Stream(stream) = &mut self.sink {
            stream.flush().map_err(WriteError::Io)?;
        }
        Ok(())
    }

    /// The code of a sample, dithered, rounded and clipped.
    fn quantise(&mut self, channel: usize, sample: f32, bits: u16) -> i32 {
        let full_scale = f64::from(1_u32 << (bits - 1));
        let mut code = f64::from(sample) * full_scale;
        // +1 is full scale and no clipping, though its code exceeds the largest by one.
        self.clipped += u64::from(code.round().abs() > full_scale);
        if let Some(random) = self.dither.get_mut(channel) {
            let triangular = random.random::<f64>() - random.random::<f64>();
            let negated = self.spec.dither.is_some_and(|dither| dither.negated);
            if sample != 0.0 {
                code += if negated { -triangular } else { triangular };
            }
        }
        code.round().clamp(-full_scale, full_scale - 1.0) as i32
    }

    /// Completes the recording and returns how many samples were clipped, all channels together.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be written, or a WAV file has become longer than announced
    /// and than 4 GiB.
    pub fn finish(self) -> Result<u64, Error> {
        let path = self.name.clone();
        let (clipped, file) = self.complete()?;
        file.map_or(Ok(()), OutputFile::persist)
            .map_err(|reason| Error::Write { path, reason: WriteError::Io(reason) })?;
        Ok(clipped)
    }

    /// Like [`Writer::finish`], but does not give a file its name yet: returns it with all its content.
    ///
    /// # Errors
    /// As for [`Writer::finish`].
    pub fn complete(mut self) -> Result<(u64, Option<OutputFile>), Error> {
        let path = std::mem::take(&mut self.name);
        self.end().map_err(|reason| Error::Write { path, reason })
    }

    fn end(mut self) -> Result<(u64, Option<OutputFile>), WriteError> {
        let format = self.spec.format;
        let (reserve, is_stream) = (self.reserve(), self.is_stream());
        self.bytes.clear();
        let header = match &mut self.encoder {
            Encoder::Wav { channels, chunks, .. } => {
                if !reserve && !is_stream && !wav::fits(self.length, *channels, format, chunks.len()) {
                    return Err(WriteError::TooLong { samples: self.length, format });
                }
                let behind = if is_stream { 0 } else { chunks.len() };
                let data = self.length * u64::from(*channels) * u64::from(format.bits() / 8);
                // Chunks have even lengths; in a stream of unknown length, the padding would be read as a sample.
                if !data.is_multiple_of(2) && !is_stream {
                    self.bytes.push(0);
                }
                if !is_stream {
                    self.bytes.append(chunks);
                }
                wav::header(&self.spec, Some(self.length), reserve, chunks, behind)
            }
            Encoder::Flac(encoder) => {
                encoder.finish(&mut self.bytes).map_err(WriteError::Io)?;
                encoder.header().map_err(WriteError::Io)?
            }
            Encoder::Raw => Vec::new(),
        };
        self.sink.write_all(&self.bytes).map_err(WriteError::Io)?;
        let file = match self.sink {
            Sink::Stream(mut stream) => {
                stream.flush().map_err(WriteError::Io)?;
                None
            }
            Sink::File(mut file) => {
                file.rewind().and_then(|()| file.write_all(&header)).map_err(WriteError::Io)?;
                Some(file.into_inner().map_err(|error| WriteError::Io(error.into_error()))?)
            }
            Sink::Seekable(mut target, start) => {
                let mut fill = || {
                    let end = target.stream_position()?;
                    target.seek(SeekFrom::Start(start))?;
                    target.write_all(&header)?;
                    // The caller may write more after the recording.
                    target.seek(SeekFrom::Start(end))?;
                    target.flush()
                };
                fill().map_err(WriteError::Io)?;
                None
            }
        };
        Ok((self.clipped, file))
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("name", &self.name)
            .field("spec", &self.spec)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Encoder {
    fn new(spec: &OutputSpec, metadata: &Metadata) -> Result<Self, WriteError> {
        let maximum = match spec.container {
            Container::Wav | Container::Raw => MAX_CHANNELS,
            Container::Flac => flac::MAX_CHANNELS,
        };
        if !(1..=maximum).contains(&spec.channels) {
            return Err(WriteError::Channels { found: spec.channels, maximum });
        }
        check_sample_rate(spec.sample_rate)?;
        Ok(match spec.container {
            Container::Wav => {
                let channels = spec.channels as u16;
                let chunks = metadata.to_chunks();
                let short = spec.length.is_some_and(|n| wav::fits(n, channels, spec.format, chunks.len()));
                Self::Wav { channels, reserve: !short, chunks }
            }
            Container::Raw => Self::Raw,
            Container::Flac if spec.sample_rate > flac::MAX_SAMPLE_RATE => {
                return Err(WriteError::SampleRate {
                    found: spec.sample_rate,
                    maximum: flac::MAX_SAMPLE_RATE,
                });
            }
            Container::Flac => {
                let bits = usize::from(spec.format.bits().min(24));
                let blocks = metadata.to_blocks(flac::mask_to_store(spec.channels, spec.channel_mask));
                Self::Flac(Box::new(
                    FlacEncoder::new(spec.sample_rate, spec.channels, bits, blocks)
                        .map_err(WriteError::Io)?,
                ))
            }
        })
    }
}

impl Sink {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.write_all(bytes),
            Self::Seekable(target, _) => target.write_all(bytes),
            Self::Stream(stream) => stream.write_all(bytes),
        }
    }
}

/// Writes a file in the signal's format, WAV or FLAC by its name, and returns how many samples
/// were clipped.
///
/// The file appears under its name when it is complete; on failure, an existing file remains. In integer formats,
/// samples are rounded to the nearest code and those beyond ±1 are clipped.
///
/// # Errors
/// [`Error::Write`] with the reason.
pub fn write(path: impl AsRef<Path>, signal: &Signal) -> Result<u64, Error> {
    let path = path.as_ref();
    let mut writer =
        Writer::create(path, OutputSpec::of(signal, Container::from_path(path)), &Metadata::default())?;
    writer.write_block(signal.channels())?;
    writer.finish()
}

/// Encodes a signal in its own format, as [`write()`] does, and returns the bytes of the file.
///
/// # Errors
/// [`Error::Write`] if the signal does not fit the file format.
pub fn encode(signal: &Signal, container: Container) -> Result<Vec<u8>, Error> {
    let memory = Memory::default();
    let spec = OutputSpec::of(signal, container);
    let mut writer = Writer::to_seekable("memory", spec, &Metadata::default(), memory.clone())?;
    writer.write_block(signal.channels())?;
    writer.finish()?;
    Ok(std::mem::take(&mut *memory.lock()).into_inner())
}

/// Bytes shared by a writer and its caller.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Cursor<Vec<u8>>>>);

impl Memory {
    fn lock(&self) -> MutexGuard<'_, Cursor<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Memory {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.lock().seek(to)
    }
}

/// Returns an error if an output would overwrite the input, even by another name or by a link.
///
/// # Errors
/// [`Error::Write`] with [`WriteError::SameAsInput`] if both are one file.
pub fn check_distinct(input: impl AsRef<Path>, output: impl AsRef<Path>) -> Result<(), Error> {
    let (input, output) = (input.as_ref(), output.as_ref());
    // Only regular files can be overwritten; opening a named pipe would disturb its other end.
    let are_files = [input, output].iter().all(|path| path.is_file());
    // Files that cannot be opened are reported on reading or writing.
    if are_files && same_file::is_same_file(input, output).is_ok_and(|same| same) {
        return Err(Error::Write {
            path: output.to_owned(),
            reason: WriteError::SameAsInput(input.to_owned()),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
