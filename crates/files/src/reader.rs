//! Block-by-block reading of audio in any supported format.

mod open;

use super::compressed::CompressedDecoder;
use super::error::{Error, ReadError};
use super::losses::Losses;
use super::metadata::Metadata;
use super::pcm::PcmDecoder;
use super::raw::RawFormat;
use super::source::open_file;
use alphamf_signal::{InvalidSignal, SampleFormat, Signal};
use std::io::{Read, Seek};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

/// Extensions, in lower case, of audio files in a folder.
pub const EXTENSIONS: [&str; 23] = [
    "wav", "wave", "bwf", "rf64", "w64", "au", "snd", "flac", "ogg", "oga", "opus", "mp2", "mp3", "m4a",
    "m4b", "mp4", "aac", "aif", "aiff", "aifc", "caf", "mka", "webm",
];

/// Limit on a stream of MP4 or CAF, bytes: their index may follow the samples, so they are held in memory.
pub const MAX_HELD_BYTES: u64 = 256 << 20;

/// Reads a recording block by block, in memory that does not grow with its length.
///
/// The formats are WAV (integers of 8 to 32 bits, floats of 32 and 64 bits, A-law, mu-law, ADPCM, RF64, RIFX, after an
/// ID3 tag, without a declared length as written to a pipe), Wave64, AU, FLAC, MP3, Ogg with Vorbis or Opus, AAC, ALAC
/// and Opus in MP4, AAC alone, AIFF, CAF, Matroska and WebM, and raw samples. The format is determined by the contents,
/// not by the name. Concatenated recordings of one rate and number of channels are read as one.
pub struct Reader {
    name: PathBuf,
    decoder: Decoder,
    sample_rate: u32,
    format: SampleFormat,
    channel_mask: Option<u32>,
    metadata: Metadata,
    /// Decoded samples that have not been returned.
    decoded: Vec<Vec<f32>>,
    /// Samples per channel returned so far.
    position: u64,
    salvage: bool,
    /// Losses that the decoder does not count.
    losses: Losses,
    ended: bool,
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
            if file.metadata().map_err(ReadError::Io)?.is_file() {
                Self::from_source(path, Box::new(file))
            } else {
                Self::from_bytes(path, Box::new(file))
            }
        };
        open().map_err(|reason| Error::Read { path: path.to_owned(), reason })
    }

    /// Reads from a seekable source, such as a [`Cursor`](std::io::Cursor) of bytes, called `name` in errors.
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
        Ok(Self::from_raw_stream(path, file, raw))
    }

    /// Reads from a stream such as standard input, called `name` in errors. MP4 and CAF streams are held in memory and
    /// rejected above [`MAX_HELD_BYTES`] bytes.
    ///
    /// # Errors
    /// As for [`Reader::open`].
    pub fn from_stream(
        name: impl AsRef<Path>,
        stream: impl Read + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let name = name.as_ref();
        Self::from_bytes(name, Box::new(stream))
            .map_err(|reason| Error::Read { path: name.to_owned(), reason })
    }

    /// Reads raw samples from a stream such as standard input, called `name` in errors, which are returned on reading.
    #[must_use]
    pub fn from_raw_stream(
        name: impl AsRef<Path>,
        stream: impl Read + Send + Sync + 'static,
        raw: RawFormat,
    ) -> Self {
        let decoder = Decoder::Pcm(PcmDecoder::raw(Box::new(stream), raw));
        Self::new(name.as_ref(), decoder, raw.sample_rate, raw.channels, raw.encoding.format())
    }

    /// Reads a damaged recording as far as possible: it ends where it is truncated or undecodable, samples after its
    /// declared end are read, and non-finite samples become zeros. [`Reader::losses`] counts them. Call it before
    /// reading.
    #[must_use]
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        if let (true, Decoder::Pcm(decoder)) = (salvage, &mut self.decoder)
            && decoder.data_follow
        {
            decoder.read_to_end();
            self.losses.data_follow = true;
        }
        self
    }

    fn new(name: &Path, decoder: Decoder, sample_rate: u32, channels: usize, format: SampleFormat) -> Self {
        Self {
            name: name.to_owned(),
            decoder,
            sample_rate,
            format,
            channel_mask: None,
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

    /// Sample format that preserves the samples: their own, or 16-bit integers for a lossy recording.
    #[must_use]
    pub fn format(&self) -> SampleFormat {
        self.format
    }

    /// Samples per channel, if the header declares them.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        match &self.decoder {
            Decoder::Pcm(decoder) => decoder.length(),
            Decoder::Compressed(decoder) => decoder.length,
        }
    }

    /// Speaker positions, as the bits of `dwChannelMask` (FL, FR, FC, LFE, BL, BR, ... from the lowest), if the file has
    /// them; zero if it declares none.
    #[must_use]
    pub fn channel_mask(&self) -> Option<u32> {
        self.channel_mask
    }

    /// Metadata of the recording; from a WAV stream, only those before the samples.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Mean bit rate of the samples decoded so far, bit/s per channel, if the codec is lossy.
    #[must_use]
    pub fn lossy_bit_rate(&self) -> Option<f64> {
        match &self.decoder {
            Decoder::Pcm(_) => None,
            Decoder::Compressed(decoder) => decoder.lossy_bit_rate(),
        }
    }

    /// Audio tracks besides the one that is read.
    #[must_use]
    pub fn other_tracks(&self) -> usize {
        match &self.decoder {
            Decoder::Pcm(_) => 0,
            Decoder::Compressed(decoder) => decoder.other_tracks,
        }
    }

    /// Losses so far.
    #[must_use]
    pub fn losses(&self) -> Losses {
        let mut losses = self.losses;
        match &self.decoder {
            Decoder::Pcm(decoder) => losses.data_follow |= decoder.data_follow,
            Decoder::Compressed(decoder) => losses += decoder.losses(),
        }
        losses
    }

    /// Reads the next `samples` samples of every channel: fewer only at the end, and none after it.
    ///
    /// # Errors
    /// [`Error::Read`] if the file is truncated or damaged, holds a sample that is not finite
    /// (with its position in the file), or holds no sample at all; see [`Reader::salvage`].
    pub fn read_block(&mut self, samples: usize) -> Result<Vec<Vec<f32>>, Error> {
        self.take(samples, samples)
    }

    /// Reads the samples available, at most `samples` of every channel: waits only for the first. None at the end.
    ///
    /// # Errors
    /// As for [`Reader::read_block`].
    pub fn read_available(&mut self, samples: usize) -> Result<Vec<Vec<f32>>, Error> {
        self.take(samples.min(1), samples)
    }

    /// Decodes at least `least` samples of every channel, and returns those decoded, at most `most`.
    fn take(&mut self, least: usize, most: usize) -> Result<Vec<Vec<f32>>, Error> {
        self.fill(least).map_err(|reason| Error::Read { path: self.name.clone(), reason })?;
        let count = most.min(self.decoded[0].len());
        self.position += count as u64;
        Ok(self.decoded.iter_mut().map(|channel| channel.drain(..count).collect()).collect())
    }

    /// Decodes until `samples` samples of every channel are available, or to the end.
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
                Err(
                    ReadError::Damaged { .. }
                    | ReadError::PartialSample { .. }
                    | ReadError::Unsupported(_)
                    | ReadError::NotAudio(_),
                ) if self.salvage => {
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

    /// Reads all remaining samples.
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

/// Reads a whole file in any format of [`Reader`], with silence for lost packets.
///
/// # Errors
/// [`Error::Read`] with the reason: missing, empty, truncated, damaged, not audio, an unsupported
/// encoding, or samples that do not make a [`Signal`].
pub fn read(path: impl AsRef<Path>) -> Result<Signal, Error> {
    read_with_losses(path).map(|(signal, _)| signal)
}

/// Like [`read()`]; also returns the losses.
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

/// Runs a decoder of another crate, which may panic on a damaged file.
fn guarded<T>(decode: impl FnOnce() -> Result<T, ReadError>) -> Result<T, ReadError> {
    // The state after a panic is dropped with the reader, or yields wrong samples at worst.
    panic::catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(ReadError::NotAudio("its decoder failed".into())))
}

#[cfg(test)]
mod tests;
