//! Writing audio block by block, in the formats that are offered.

use super::error::{Error, WriteError};
use super::flac::{self, FlacEncoder};
use super::metadata::Metadata;
use super::wav;
use crate::output::OutputFile;
use alphamf_samplers::random::{SeedTree, SeededRng};
use alphamf_signal::{InvalidSignal, MAX_CHANNELS, SampleFormat, Signal, check_sample_rate};
use rand::RngExt;
use std::io::{self, BufWriter, Cursor, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The file formats that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Container {
    /// WAV, and RF64 from 4 GiB on.
    #[default]
    Wav,
    /// FLAC, at most 24 bits, 8 channels and 96 kHz.
    Flac,
    /// Samples alone, little-endian, the channels in turn.
    Raw,
}

impl Container {
    /// The format that goes with a file's name: FLAC for `.flac`, otherwise WAV.
    #[must_use]
    pub fn from_path(path: impl AsRef<Path>) -> Self {
        let extension = path.as_ref().extension().unwrap_or_default();
        if extension.eq_ignore_ascii_case("flac") { Self::Flac } else { Self::Wav }
    }
}

/// What a [`Writer`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Sample rate in Hz.
    pub sample_rate: u32,
    /// Number of channels.
    pub channels: usize,
    /// How samples are stored. FLAC has 24-bit integers in place of 32 bits.
    pub format: SampleFormat,
    /// The kind of file.
    pub container: Container,
    /// Samples per channel, if known beforehand. This saves a WAV file a header with room for
    /// lengths beyond 4 GiB; another number may be written in the end.
    pub length: Option<u64>,
    /// Where the channels are heard, as the bits of `dwChannelMask`; `None` if that is not known, and never guessed
    /// from their number. FLAC knows the usual arrangements of up to eight channels and names any other.
    pub speakers: Option<u32>,
    /// Where the triangular dither of ±1 step comes from that is added before rounding to
    /// integers; without it samples are rounded as they are. Digital silence stays silent.
    pub dither: Option<SeedTree>,
}

impl Layout {
    /// A signal as it is, in a file of this kind.
    fn of(signal: &Signal, container: Container) -> Self {
        Self {
            sample_rate: signal.sample_rate(),
            channels: signal.channels().len(),
            format: signal.format(),
            container,
            length: Some(signal.len() as u64),
            speakers: None,
            dither: None,
        }
    }
}

/// Writes a recording block by block, in memory that does not grow with its length.
///
/// A file appears under its name when [`Writer::finish`] has succeeded; dropped before that, the
/// writer leaves nothing, and whatever was there before remains.
pub struct Writer {
    name: PathBuf,
    layout: Layout,
    sink: Sink,
    encoder: Encoder,
    /// What stands before the samples of a WAV file.
    chunks: Vec<u8>,
    /// One stream of dither per channel, or none.
    dither: Vec<SeededRng>,
    bytes: Vec<u8>,
    length: u64,
    clipped: u64,
}

enum Sink {
    File(BufWriter<OutputFile>),
    Stream(Box<dyn Write + Send>),
    /// What someone else has opened, and where the recording starts in it.
    Seekable(Box<dyn WriteSeek>, u64),
}

/// A target that can be rewound.
trait WriteSeek: Write + Seek + Send {}
impl<T: Write + Seek + Send> WriteSeek for T {}

enum Encoder {
    Wav { channels: u16, reserve: bool },
    Flac(Box<FlacEncoder>),
    Raw,
}

impl Writer {
    /// Begins a file.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be created or the layout does not fit its format.
    pub fn create(path: impl AsRef<Path>, layout: Layout) -> Result<Self, Error> {
        Self::create_with(path, layout, &Metadata::default())
    }

    /// Begins a file that says so much of its recording.
    ///
    /// # Errors
    /// As for [`Writer::create`].
    pub fn create_with(path: impl AsRef<Path>, layout: Layout, metadata: &Metadata) -> Result<Self, Error> {
        let path = path.as_ref();
        let sink = || Ok(Sink::File(BufWriter::new(OutputFile::create(path).map_err(WriteError::Io)?)));
        Self::begin(path, layout, metadata, sink)
    }

    /// Begins a recording in what can be rewound, such as bytes in memory or the file that standard output is
    /// redirected to, called `name` in errors, from the place where it stands.
    ///
    /// Every block is written at once; the length in the header is filled in at the end.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be written or the layout does not fit its format.
    pub fn to_seekable(
        name: impl AsRef<Path>,
        layout: Layout,
        target: impl Write + Seek + Send + 'static,
    ) -> Result<Self, Error> {
        Self::to_seekable_with(name, layout, &Metadata::default(), target)
    }

    /// Begins a recording in what can be rewound, with so much said of it.
    ///
    /// # Errors
    /// As for [`Writer::to_seekable`].
    pub fn to_seekable_with(
        name: impl AsRef<Path>,
        layout: Layout,
        metadata: &Metadata,
        mut target: impl Write + Seek + Send + 'static,
    ) -> Result<Self, Error> {
        let sink = || {
            let start = target.stream_position().map_err(WriteError::Io)?;
            Ok(Sink::Seekable(Box::new(target), start))
        };
        Self::begin(name.as_ref(), layout, metadata, sink)
    }

    /// Begins a stream such as standard output, called `name` in errors.
    ///
    /// Its header leaves the length open, as it cannot be filled in later. Every block is flushed.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be written or the layout does not fit its format.
    pub fn to_stream(
        name: impl AsRef<Path>,
        layout: Layout,
        stream: impl Write + Send + 'static,
    ) -> Result<Self, Error> {
        Self::to_stream_with(name, layout, &Metadata::default(), stream)
    }

    /// Begins a stream that says so much of its recording.
    ///
    /// # Errors
    /// As for [`Writer::to_stream`].
    pub fn to_stream_with(
        name: impl AsRef<Path>,
        layout: Layout,
        metadata: &Metadata,
        stream: impl Write + Send + 'static,
    ) -> Result<Self, Error> {
        Self::begin(name.as_ref(), layout, metadata, || Ok(Sink::Stream(Box::new(stream))))
    }

    fn begin(
        name: &Path,
        layout: Layout,
        metadata: &Metadata,
        sink: impl FnOnce() -> Result<Sink, WriteError>,
    ) -> Result<Self, Error> {
        let begin = || {
            let encoder = Encoder::new(&layout, metadata)?;
            Self::begin_with(name, layout, metadata, sink()?, encoder)
        };
        begin().map_err(|reason| Error::Write { path: name.to_owned(), reason })
    }

    fn begin_with(
        name: &Path,
        layout: Layout,
        metadata: &Metadata,
        sink: Sink,
        encoder: Encoder,
    ) -> Result<Self, WriteError> {
        let dither = match layout.dither {
            Some(streams) if layout.format.is_integer() => {
                (0..layout.channels as u64).map(|channel| streams.rng(channel)).collect()
            }
            _ => Vec::new(),
        };
        let mut this = Self {
            name: name.to_owned(),
            layout,
            sink,
            chunks: if let Encoder::Wav { .. } = encoder { metadata.to_chunks() } else { Vec::new() },
            encoder,
            dither,
            bytes: Vec::new(),
            length: 0,
            clipped: 0,
        };
        let header = match &this.encoder {
            // Filled in at the end of a file, open in a stream.
            Encoder::Wav { .. } => wav::header(&layout, None, this.reserve(), &this.chunks),
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
        assert_eq!(channels.len(), self.layout.channels, "channels of the block and of the file");
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
                match (&self.encoder, self.layout.format) {
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
        // +1 is full scale, though its code is one more than there is.
        self.clipped += u64::from(code.round().abs() > full_scale);
        if let Some(random) = self.dither.get_mut(channel) {
            let triangular = random.random::<f64>() - random.random::<f64>();
            if sample != 0.0 {
                code += triangular;
            }
        }
        code.round().clamp(-full_scale, full_scale - 1.0) as i32
    }

    /// Completes the recording and returns how many samples were clipped, all channels together.
    ///
    /// # Errors
    /// [`Error::Write`] if it cannot be written, or a WAV file has become longer than announced
    /// and than 4 GiB.
    pub fn finish(mut self) -> Result<u64, Error> {
        let name = std::mem::take(&mut self.name);
        self.complete().map_err(|reason| Error::Write { path: name, reason })
    }

    fn complete(mut self) -> Result<u64, WriteError> {
        let format = self.layout.format;
        let (reserve, is_stream) = (self.reserve(), self.is_stream());
        self.bytes.clear();
        let header = match &mut self.encoder {
            Encoder::Wav { channels, .. } => {
                if !reserve && !is_stream && !wav::fits(self.length, *channels, format, self.chunks.len()) {
                    return Err(WriteError::TooLong { samples: self.length, format });
                }
                let data = self.length * u64::from(*channels) * u64::from(format.bits() / 8);
                // Chunks have even lengths; a stream without a length would gain a sample by it.
                if !data.is_multiple_of(2) && !is_stream {
                    self.bytes.push(0);
                }
                wav::header(&self.layout, Some(self.length), reserve, &self.chunks)
            }
            Encoder::Flac(encoder) => {
                encoder.finish(&mut self.bytes).map_err(WriteError::Io)?;
                encoder.header().map_err(WriteError::Io)?
            }
            Encoder::Raw => Vec::new(),
        };
        self.sink.write_all(&self.bytes).map_err(WriteError::Io)?;
        match self.sink {
            Sink::Stream(mut stream) => stream.flush().map_err(WriteError::Io)?,
            Sink::File(mut file) => {
                file.rewind().and_then(|()| file.write_all(&header)).map_err(WriteError::Io)?;
                let file = file.into_inner().map_err(|error| WriteError::Io(error.into_error()))?;
                file.persist().map_err(WriteError::Io)?;
            }
            Sink::Seekable(mut target, start) => {
                let mut fill = || {
                    let end = target.stream_position()?;
                    target.seek(SeekFrom::Start(start))?;
                    target.write_all(&header)?;
                    // Whoever has opened it may go on behind the recording.
                    target.seek(SeekFrom::Start(end))?;
                    target.flush()
                };
                fill().map_err(WriteError::Io)?;
            }
        }
        Ok(self.clipped)
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("name", &self.name)
            .field("layout", &self.layout)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Encoder {
    fn new(layout: &Layout, metadata: &Metadata) -> Result<Self, WriteError> {
        let maximum = match layout.container {
            Container::Wav | Container::Raw => MAX_CHANNELS,
            Container::Flac => flac::MAX_CHANNELS,
        };
        if !(1..=maximum).contains(&layout.channels) {
            return Err(WriteError::Channels { found: layout.channels, maximum });
        }
        check_sample_rate(layout.sample_rate)?;
        Ok(match layout.container {
            Container::Wav => {
                let channels = layout.channels as u16;
                let chunks = metadata.to_chunks().len();
                let short = layout.length.is_some_and(|n| wav::fits(n, channels, layout.format, chunks));
                Self::Wav { channels, reserve: !short }
            }
            Container::Raw => Self::Raw,
            Container::Flac if layout.sample_rate > flac::HIGHEST_SAMPLE_RATE => {
                return Err(WriteError::SampleRate {
                    found: layout.sample_rate,
                    maximum: flac::HIGHEST_SAMPLE_RATE,
                });
            }
            Container::Flac => {
                let bits = usize::from(layout.format.bits().min(24));
                let blocks = metadata.to_blocks(flac::to_name(layout.channels, layout.speakers));
                Self::Flac(Box::new(
                    FlacEncoder::new(layout.sample_rate, layout.channels, bits, blocks)
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
/// The file appears under its name when it is complete; on failure whatever was there before
/// remains. In integer formats, samples are rounded to the nearest code and those beyond ±1 are
/// clipped.
///
/// # Errors
/// [`Error::Write`] with the reason.
pub fn write(path: impl AsRef<Path>, signal: &Signal) -> Result<u64, Error> {
    let path = path.as_ref();
    let mut writer = Writer::create(path, Layout::of(signal, Container::from_path(path)))?;
    writer.write_block(signal.channels())?;
    writer.finish()
}

/// The bytes of a file in the signal's format, as [`write()`] makes it.
///
/// # Errors
/// [`Error::Write`] if the signal does not fit the file format.
pub fn encode(signal: &Signal, container: Container) -> Result<Vec<u8>, Error> {
    let memory = Memory::default();
    let layout = Layout::of(signal, container);
    let mut writer = Writer::to_seekable("memory", layout, memory.clone())?;
    writer.write_block(signal.channels())?;
    writer.finish()?;
    Ok(std::mem::take(&mut *memory.lock()).into_inner())
}

/// Bytes that a writer and its maker share.
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

/// Refuses an output that would overwrite the input, under whatever name or link.
///
/// # Errors
/// [`Error::Write`] with [`WriteError::SameAsInput`] if both are one file.
pub fn check_distinct(input: impl AsRef<Path>, output: impl AsRef<Path>) -> Result<(), Error> {
    let (input, output) = (input.as_ref(), output.as_ref());
    // Nothing else is overwritten, and to open a named pipe would take it away from who writes to it.
    let are_files = [input, output].iter().all(|path| path.is_file());
    // Files that cannot be opened are not the same; reading or writing them says what is wrong.
    if are_files && same_file::is_same_file(input, output).is_ok_and(|same| same) {
        return Err(Error::Write {
            path: output.to_owned(),
            reason: WriteError::SameAsInput(input.to_owned()),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reader, read};
    use std::fs;
    use tempfile::TempDir;

    const FORMATS: [SampleFormat; 6] = [
        SampleFormat::Int8,
        SampleFormat::Int16,
        SampleFormat::Int24,
        SampleFormat::Int32,
        SampleFormat::Float32,
        SampleFormat::Float64,
    ];

    /// Channels of distinct samples that every format can hold, the extremes included.
    fn channels(count: usize, length: usize) -> Vec<Vec<f32>> {
        (0..count)
            .map(|c| (0..length).map(|n| ((n * 7 + c * 31) % 256) as f32 / 128.0 - 1.0).collect())
            .collect()
    }

    fn layout(sample_rate: u32, channels: usize, format: SampleFormat, container: Container) -> Layout {
        Layout { sample_rate, channels, format, container, length: None, speakers: None, dither: None }
    }

    /// A stream whose bytes can be looked at.
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = TempDir::new().unwrap();
        for name in ["a.wav", "a.flac"] {
            let path = folder.path().join(name);
            for format in FORMATS {
                for (rate, count, length) in
                    [(8_000, 1, 1), (11_025, 2, 255), (44_100, 6, 5_000), (96_000, 8, 4_096)]
                {
                    let signal = Signal::new(rate, format, channels(count, length)).unwrap();
                    assert_eq!(write(&path, &signal).unwrap(), 0);
                    let again = read(&path).unwrap();
                    if name == "a.wav" {
                        assert_eq!(again, signal);
                    } else {
                        // FLAC has no +1 and at most 24 bits.
                        assert_eq!(again.channels(), signal.channels());
                        assert_eq!(again.sample_rate(), rate);
                        assert_eq!(again.format().bits(), format.bits().min(24));
                    }
                }
            }
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file stays");
    }

    #[test]
    fn another_library_reads_our_files_and_we_its() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.wav");
        // It knows no floats of 64 bits.
        for format in FORMATS.into_iter().filter(|format| format.bits() <= 32) {
            for count in [1, 2, 3] {
                let signal = Signal::new(16_000, format, channels(count, 301)).unwrap();
                write(&path, &signal).unwrap();
                let mut reader = hound::WavReader::open(&path).unwrap();
                let spec = reader.spec();
                assert_eq!((spec.sample_rate, spec.channels), (16_000, count as u16));
                assert_eq!(spec.bits_per_sample, format.bits());
                let samples: Vec<f32> = if format.is_integer() {
                    let scale = 2_f64.powi(1 - i32::from(format.bits()));
                    let value = |code: hound::Result<i32>| (f64::from(code.unwrap()) * scale) as f32;
                    reader.samples().map(value).collect()
                } else {
                    reader.samples().map(Result::unwrap).collect()
                };
                let interleaved: Vec<f32> = (0..signal.len())
                    .flat_map(|n| signal.channels().iter().map(move |channel| channel[n]))
                    .collect();
                assert_eq!(samples, interleaved);

                let mut writer = hound::WavWriter::create(&path, spec).unwrap();
                for &x in &samples {
                    if format.is_integer() {
                        let code = f64::from(x) * 2_f64.powi(i32::from(format.bits()) - 1);
                        writer.write_sample(code as i32).unwrap();
                    } else {
                        writer.write_sample(x).unwrap();
                    }
                }
                writer.finalize().unwrap();
                assert_eq!(read(&path).unwrap(), signal);
            }
        }
    }

    #[test]
    fn integer_samples_survive_bit_for_bit() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.wav");
        for (format, step) in [(SampleFormat::Int8, 1), (SampleFormat::Int16, 1), (SampleFormat::Int24, 61)] {
            let bits = format.bits();
            let top = (1 << (bits - 1)) - 1;
            let codes: Vec<i32> = (-top - 1..=top).step_by(step).chain([top]).collect();
            let scale = (top + 1) as f32;
            let samples = codes.iter().map(|&code| code as f32 / scale).collect();
            let signal = Signal::new(8_000, format, vec![samples]).unwrap();
            assert_eq!(write(&path, &signal).unwrap(), 0);
            let mut reader = hound::WavReader::open(&path).unwrap();
            assert!(reader.samples::<i32>().map(Result::unwrap).eq(codes));
            assert!(read(&path).unwrap() == signal);
        }
    }

    #[test]
    fn samples_are_rounded_and_clipping_is_counted() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.wav");
        let step = 1.0 / 32_768.0;
        let samples = vec![1.0, -1.0, 1.1, -1.1, 1e30, 0.4 * step, 0.6 * step, -0.6 * step];
        let signal = Signal::new(8_000, SampleFormat::Int16, vec![samples]).unwrap();
        assert_eq!(write(&path, &signal).unwrap(), 3);
        let top = 1.0 - step;
        assert_eq!(read(&path).unwrap().channels()[0], [top, -1.0, top, -1.0, top, 0.0, step, -step]);
        assert_eq!(write(&path, &signal.with_format(SampleFormat::Float32)).unwrap(), 0);
        assert_eq!(read(&path).unwrap().channels()[0][4], 1e30);
    }

    /// Triangular dither of ±1 step makes the mean and the power of the error (a quarter of a
    /// squared step) independent of the signal; plain rounding gives 0.25 and 0.0625 here.
    #[test]
    fn dither_decouples_the_error_from_the_signal() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.wav");
        let step = 1.0 / 128.0;
        let value = 10.25 * step;
        let samples = vec![vec![value; 100_000]; 2];
        let layout =
            Layout { dither: Some(SeedTree::new(1)), ..layout(8_000, 2, SampleFormat::Int8, Container::Wav) };
        let mut writer = Writer::create(&path, layout).unwrap();
        for block in [0..17, 17..40_000, 40_000..100_000] {
            let block: Vec<Vec<f32>> = samples.iter().map(|c| c[block.clone()].to_vec()).collect();
            writer.write_block(&block).unwrap();
        }
        writer.finish().unwrap();
        let dithered = read(&path).unwrap();
        for channel in dithered.channels() {
            let errors: Vec<f64> = channel.iter().map(|x| f64::from((x - value) / step)).collect();
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            let power = errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64;
            // Standard errors: 0.0016 and about 0.002.
            assert!(mean.abs() < 0.008 && (power - 0.25).abs() < 0.01, "{mean} {power}");
        }
        assert_ne!(dithered.channels()[0], dithered.channels()[1]);

        let whole = folder.path().join("b.wav");
        let mut writer = Writer::create(&whole, layout).unwrap();
        writer.write_block(&samples).unwrap();
        writer.finish().unwrap();
        assert!(fs::read(&path).unwrap() == fs::read(&whole).unwrap(), "blocks change nothing");

        let mut writer = Writer::create(&path, layout).unwrap();
        writer.write_block(&vec![vec![0.0; 1_000]; 2]).unwrap();
        writer.finish().unwrap();
        assert!(read(&path).unwrap().channels()[0].iter().all(|&x| x == 0.0), "silence stays silent");
    }

    #[test]
    fn streams_are_read_again_though_their_length_is_open() {
        for container in [Container::Wav, Container::Flac] {
            for format in [SampleFormat::Int8, SampleFormat::Int16, SampleFormat::Int24] {
                // An odd number of bytes at 8 bits.
                let samples = channels(3, 9_001);
                let stream = Shared::default();
                let layout = layout(16_000, 3, format, container);
                let mut writer = Writer::to_stream("stdout", layout, stream.clone()).unwrap();
                for block in [0..0, 0..5_000, 5_000..9_001] {
                    let block: Vec<Vec<f32>> = samples.iter().map(|c| c[block.clone()].to_vec()).collect();
                    writer.write_block(&block).unwrap();
                }
                assert_eq!(writer.finish().unwrap(), 0);
                let bytes = stream.0.lock().unwrap().clone();
                let reader = Reader::from_stream("stdin", io::Cursor::new(bytes)).unwrap();
                assert_eq!(reader.length(), None);
                let again = reader.read_all().unwrap();
                assert_eq!(again.format(), format);
                assert!(again.channels() == samples);
            }
        }
    }

    #[test]
    fn a_closed_pipe_is_an_error_and_no_panic() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let layout = layout(16_000, 1, SampleFormat::Int16, Container::Wav);
        let error = Writer::to_stream("stdout", layout, Closed).unwrap_err();
        assert!(matches!(error, Error::Write { reason: WriteError::Io(_), .. }));
        assert_eq!(error.to_string(), "stdout: cannot be written: broken pipe");
    }

    #[test]
    fn a_file_appears_when_it_is_finished() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.wav");
        let layout = layout(8_000, 1, SampleFormat::Int16, Container::Wav);
        let mut writer = Writer::create(&path, layout).unwrap();
        writer.write_block(&[vec![0.5; 100_000]]).unwrap();
        assert!(!path.exists());
        drop(writer);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

        fs::write(&path, b"before").unwrap();
        let mut writer = Writer::create(&path, layout).unwrap();
        let error = writer.write_block(&[vec![0.0, f32::NAN]]).unwrap_err();
        assert!(error.to_string().ends_with("sample 1 of channel 0 is NaN: expected a finite value"));
        drop(writer);
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_everything_as_it_was() {
        let folder = TempDir::new().unwrap();
        let signal = Signal::new(8_000, SampleFormat::Int16, vec![vec![0.0]; 9]).unwrap();
        let inner = folder.path().join("missing").join("a.wav");
        let fast = Signal::new(192_000, SampleFormat::Int16, vec![vec![0.0]]).unwrap();
        let flac = folder.path().join("a.flac");
        for (path, signal) in [(folder.path(), &signal), (&inner, &signal), (&flac, &signal), (&flac, &fast)]
        {
            assert!(matches!(write(path, signal), Err(Error::Write { path: p, .. }) if p == path));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    #[cfg(unix)]
    fn output_may_be_a_link_but_not_the_input() {
        let folder = TempDir::new().unwrap();
        let [input, soft, hard, other, link] =
            ["in.wav", "soft.wav", "hard.wav", "other.wav", "link.wav"].map(|n| folder.path().join(n));
        let signal = Signal::new(8_000, SampleFormat::Int16, vec![vec![0.0]]).unwrap();
        write(&input, &signal).unwrap();
        std::os::unix::fs::symlink(&input, &soft).unwrap();
        fs::hard_link(&input, &hard).unwrap();
        for output in [&input, &soft, &hard, &folder.path().join(".").join("in.wav")] {
            assert!(matches!(
                check_distinct(&input, output),
                Err(Error::Write { reason: WriteError::SameAsInput(_), .. })
            ));
        }
        assert!(check_distinct(&input, &other).is_ok());

        write(&other, &signal).unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let longer = signal.with_channels(vec![vec![0.5; 2]]).unwrap();
        write(&link, &longer).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(read(&other).unwrap(), longer);
    }
}
