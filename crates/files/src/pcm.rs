//! Decoder of uncompressed samples, with or without a header.

use super::error::ReadError;
use super::metadata::Metadata;
use super::raw::RawFormat;
use super::sample::Encoding;
use super::wav::{Next, Rest, WavHeader};
use std::io::{self, Read};

/// Decodes interleaved samples from a stream of bytes.
pub(super) struct PcmDecoder {
    bytes: Box<dyn Read + Send + Sync>,
    encoding: Encoding,
    channels: usize,
    /// Remaining samples per channel in this chunk, if known.
    remaining: Option<u64>,
    /// Expected samples per channel, if known.
    length: Option<u64>,
    /// Samples per channel so far.
    position: u64,
    /// The part of the file after this chunk.
    rest: Option<Rest>,
    /// Whether the length counts all chunks.
    length_of_all: bool,
    /// Whether a fraction of a sample at the end of a stream of unknown length is an error.
    whole_samples: bool,
    /// Bytes of an incomplete frame at the end.
    fraction: usize,
    /// Whether more data follow the declared end.
    pub(super) data_follow: bool,
    buffer: Vec<u8>,
}

impl PcmDecoder {
    /// Creates a decoder of the samples after a header. `length` is that of all chunks, in samples per channel, if
    /// known.
    pub(super) fn new(bytes: Box<dyn Read + Send + Sync>, header: &WavHeader, length: Option<u64>) -> Self {
        Self {
            bytes,
            encoding: header.encoding,
            channels: header.channels,
            remaining: header.length,
            length: length.or(header.length),
            position: 0,
            rest: header.rest,
            length_of_all: length.is_some(),
            whole_samples: false,
            fraction: 0,
            data_follow: false,
            buffer: Vec::new(),
        }
    }

    /// Creates a decoder of bytes without a header.
    pub(super) fn raw(bytes: Box<dyn Read + Send + Sync>, raw: RawFormat) -> Self {
        Self {
            bytes,
            encoding: raw.encoding,
            channels: raw.channels,
            remaining: None,
            length: None,
            position: 0,
            rest: None,
            length_of_all: false,
            whole_samples: true,
            fraction: 0,
            data_follow: false,
            buffer: Vec::new(),
        }
    }

    pub(super) fn length(&self) -> Option<u64> {
        self.length
    }

    /// Reads all remaining bytes as samples, regardless of the declared length.
    pub(super) fn read_to_end(&mut self) {
        (self.remaining, self.length, self.rest, self.data_follow) = (None, None, None, false);
    }

    /// Advances to the next chunk of samples.
    fn next_chunk(&mut self) -> Result<(), ReadError> {
        let Some(rest) = self.rest.take() else { return Ok(()) };
        let frame_bytes = (self.encoding.bytes() * self.channels) as u64;
        // Metadata after the first samples of a stream come too late for its output.
        match rest.next(&mut self.bytes, frame_bytes, &mut Metadata::default())? {
            Next::Samples(further) => {
                (self.remaining, self.rest) = (Some(further.length), Some(further.rest));
                if let (false, Some(length)) = (self.length_of_all, &mut self.length) {
                    *length = length.saturating_add(further.length);
                }
            }
            Next::Unknown => self.data_follow = true,
            Next::End => {}
        }
        Ok(())
    }

    /// Appends some samples to every channel, none at the end.
    pub(super) fn decode(&mut self, channels: &mut [Vec<f32>]) -> Result<(), ReadError> {
        const CHUNK: usize = 1 << 16;
        while self.remaining == Some(0) && self.rest.is_some() {
            self.next_chunk()?;
        }
        let sample_bytes = self.encoding.bytes();
        let frame_bytes = sample_bytes * self.channels;
        let frames = self.remaining.unwrap_or(u64::MAX).min((CHUNK / frame_bytes).max(1) as u64);
        self.buffer.resize(frames as usize * frame_bytes, 0);
        let mut filled = 0;
        while filled < self.buffer.len() {
            match self.bytes.read(&mut self.buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadError::Io(error)),
            }
            // Samples of a live stream must not wait for more, whether or not its header declares a length.
            if filled.is_multiple_of(frame_bytes) {
                break;
            }
        }
        let found = filled / frame_bytes;
        for frame in self.buffer[..found * frame_bytes].chunks_exact(frame_bytes) {
            for (channel, sample) in channels.iter_mut().zip(frame.chunks_exact(sample_bytes)) {
                channel.push(self.encoding.value(sample));
            }
        }
        self.position += found as u64;
        if let Some(remaining) = &mut self.remaining {
            *remaining -= found as u64;
        }
        if filled > 0 {
            self.fraction = filled % frame_bytes;
        }
        // Samples are returned before an error.
        if found > 0 {
            return Ok(());
        }
        if self.remaining.is_some_and(|remaining| remaining > 0) {
            let expected = self.length.unwrap_or_default();
            return Err(ReadError::Truncated { expected, found: self.position });
        }
        if self.whole_samples && self.fraction > 0 {
            return Err(ReadError::PartialSample { found: self.fraction, expected: frame_bytes });
        }
        Ok(())
    }
}
