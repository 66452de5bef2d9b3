//! FLAC streams, encoded block by block.

use flacenc::component::{BitRepr, StreamInfo};
use flacenc::config;
use flacenc::error::{Verified, Verify};
use flacenc::source::{Context, Fill, FrameBuf};
use std::io;

/// Samples per channel in a block, except the last.
const BLOCK: usize = 4096;

/// Maximum number of channels of a FLAC stream.
pub(super) const MAX_CHANNELS: usize = 8;

/// Upper bound on the headers of a frame and its subframes, bits.
const MAX_OVERHEAD_BITS: usize = 512;

/// Maximum sample rate of the encoder, Hz.
pub(super) const MAX_SAMPLE_RATE: u32 = 96_000;

/// Speaker positions to store, as the bits of `dwChannelMask`: only if they are not the default of this number of channels
/// (RFC 9639, section 9.1.3).
pub(super) fn mask_to_store(channels: usize, channel_mask: Option<u32>) -> Option<u32> {
    const USUAL: [u32; MAX_CHANNELS] = [0x4, 0x3, 0x7, 0x33, 0x37, 0x3f, 0x70f, 0x63f];
    channel_mask.filter(|channel_mask| USUAL.get(channels.wrapping_sub(1)) != Some(channel_mask))
}

/// Encodes interleaved integer samples as a FLAC stream.
pub(super) struct FlacEncoder {
    settings: Verified<config::Encoder>,
    /// Settings without prediction.
    verbatim: Verified<config::Encoder>,
    info: StreamInfo,
    /// Checksum of the samples.
    context: Context,
    frame: FrameBuf,
    channels: usize,
    waiting: Vec<i32>,
    frames: usize,
    /// Metadata blocks.
    blocks: Vec<u8>,
}

impl FlacEncoder {
    /// Creates an encoder. `blocks` are metadata, the last of them marked as the last.
    pub(super) fn new(sample_rate: u32, channels: usize, bits: usize, blocks: Vec<u8>) -> io::Result<Self> {
        let verified = |settings: config::Encoder| {
            settings.into_verified().map_err(|(_, error)| io::Error::other(error.to_string()))
        };
        let mut verbatim = config::Encoder::default();
        verbatim.subframe_coding.use_fixed = false;
        verbatim.subframe_coding.use_lpc = false;
        let mut info = StreamInfo::new(sample_rate as usize, channels, bits).map_err(io::Error::other)?;
        info.set_block_sizes(BLOCK, BLOCK).map_err(io::Error::other)?;
        Ok(Self {
            settings: verified(config::Encoder::default())?,
            verbatim: verified(verbatim)?,
            info,
            context: Context::new(bits, channels),
            frame: FrameBuf::with_size(channels, BLOCK).map_err(io::Error::other)?,
            channels,
            waiting: Vec::new(),
            frames: 0,
            blocks,
        })
    }

    /// Returns the bytes before the first block, of constant length. The length and checksum of the recording are unset
    /// until the end.
    pub(super) fn header(&self) -> io::Result<Vec<u8>> {
        let stream_info = [if self.blocks.is_empty() { 0x80 } else { 0 }, 0, 0, 34];
        let mut info = self.info.clone();
        info.set_block_sizes(BLOCK, BLOCK).map_err(io::Error::other)?;
        if self.frames > 0 {
            info.set_md5_digest(&self.context.md5_digest());
        } else {
            // Unknown. The initial values of the encoder declare frames of 16 MB or more.
            info.set_frame_sizes(0, 0).map_err(io::Error::other)?;
        }
        Ok([b"fLaC", &stream_info, &bytes_of(&info)?[..], &self.blocks].concat())
    }

    /// Takes interleaved samples and appends complete blocks to `bytes`.
    pub(super) fn encode(&mut self, interleaved: &[i32], bytes: &mut Vec<u8>) -> io::Result<()> {
        self.waiting.extend(interleaved);
        let block = BLOCK * self.channels;
        let mut waiting = std::mem::take(&mut self.waiting);
        let whole = waiting.len() / block * block;
        for samples in waiting[..whole].chunks_exact(block) {
            self.encode_block(samples, bytes)?;
        }
        waiting.drain(..whole);
        self.waiting = waiting;
        Ok(())
    }

    /// Appends the last block.
    pub(super) fn finish(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() { Ok(()) } else { self.encode_block(&waiting, bytes) }
    }

    fn encode_block(&mut self, samples: &[i32], bytes: &mut Vec<u8>) -> io::Result<()> {
        self.context.fill_interleaved(samples).map_err(|error| io::Error::other(error.to_string()))?;
        self.frame.fill_interleaved(samples).map_err(|error| io::Error::other(error.to_string()))?;
        let encode = |settings| {
            flacenc::encode_fixed_size_frame(settings, &self.frame, self.frames, &self.info)
                .map_err(|error| io::Error::other(error.to_string()))
        };
        let mut frame = encode(&self.settings)?;
        // For steps of full scale in 24 bits, the encoder may create a frame of megabytes, which no decoder reads.
        if frame.count_bits() > samples.len() * self.info.bits_per_sample() + MAX_OVERHEAD_BITS {
            frame = encode(&self.verbatim)?;
        }
        self.info.update_frame_info(&frame);
        self.frames += 1;
        bytes.extend(bytes_of(&frame)?);
        Ok(())
    }
}

fn bytes_of(part: &impl BitRepr) -> io::Result<Vec<u8>> {
    let mut sink = flacenc::bitsink::ByteSink::new();
    part.write(&mut sink).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(sink.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a stream, this header is never updated.
    #[test]
    fn sizes_of_frames_are_open_before_the_first() {
        let header = FlacEncoder::new(16_000, 1, 16, Vec::new()).unwrap().header().unwrap();
        assert_eq!(header[8..18], [0x10, 0, 0x10, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn frames_are_never_much_longer_than_their_samples() {
        for bits in [16, 24] {
            let top = 1 << (bits - 1);
            let samples: Vec<i32> = (0..146).map(|n| if n % 7 == 0 { -top } else { n % 3 * 5 }).collect();
            let mut encoder = FlacEncoder::new(44_100, 1, bits, Vec::new()).unwrap();
            let mut bytes = Vec::new();
            encoder.encode(&samples, &mut bytes).unwrap();
            encoder.finish(&mut bytes).unwrap();
            assert!(bytes.len() <= samples.len() * bits / 8 + MAX_OVERHEAD_BITS / 8, "{} bytes", bytes.len());
        }
    }
}
