//! Decoder of Opus packets (RFC 6716) for the symphonia crate, which has none.

use opus_pure::{ChannelLayout, OpusDecoder as Decoder, OpusMSDecoder as MultistreamDecoder};
use symphonia::core::audio::{
    AsGenericAudioBufferRef, AudioBuffer, AudioMut, AudioSpec, Channels, GenericAudioBufferRef, Position,
};
use symphonia::core::codecs::CodecInfo;
use symphonia::core::codecs::audio::well_known::CODEC_ID_OPUS;
use symphonia::core::codecs::audio::{
    AudioCodecParameters, AudioDecoder, AudioDecoderOptions, FinalizeResult,
};
use symphonia::core::codecs::registry::{RegisterableAudioDecoder, SupportedAudioCodec};
use symphonia::core::errors::{Error, Result};
use symphonia::core::packet::PacketRef;

/// Sample rate of decoded Opus, Hz, regardless of the encoded rate.
const SAMPLE_RATE: u32 = 48_000;

/// The longest packet, 120 ms (RFC 6716, section 3.2.5), in samples per channel.
const MAX_PACKET: usize = 5_760;

/// Limit on the channels with speaker positions.
const MAX_CHANNELS: usize = 8;

/// Mapping entry of a silent channel.
const SILENT: u8 = 255;

const CODECS: [SupportedAudioCodec; 1] = [SupportedAudioCodec {
    id: CODEC_ID_OPUS,
    info: CodecInfo { short_name: "opus", long_name: "Opus", profiles: &[] },
}];

/// Contents of the identification header (RFC 7845, section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpusHead {
    channels: usize,
    /// Samples at 48 kHz to drop at the start.
    pub(super) pre_skip: u16,
    /// Gain of the output, dB times 256.
    gain: i16,
    mapping_family: u8,
    /// Channel mapping table of a family other than 0.
    mapping: Option<Mapping>,
}

/// Assignment of decoded streams to channels (RFC 7845, section 5.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mapping {
    streams: u8,
    coupled_streams: u8,
    /// For every channel in Vorbis order, its source channel in the streams, or [`SILENT`].
    channels: [u8; MAX_CHANNELS],
}

impl OpusHead {
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let head = bytes.strip_prefix(b"OpusHead").filter(|head| head.len() >= 11)?;
        // MP4 has version 0 and big-endian numbers.
        let number = |at: usize| {
            let bytes = [head[at], head[at + 1]];
            if head[0] == 0 { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
        };
        Some(Self {
            channels: head[1].into(),
            pre_skip: number(2),
            gain: number(8).cast_signed(),
            mapping_family: head[10],
            mapping: (head[10] != 0).then(|| Mapping::parse(&head[11..], head[1].into())).flatten(),
        })
    }

    /// Speaker positions and, for every channel in Vorbis order, its index among these positions.
    fn layout(self) -> Option<(Position, &'static [usize])> {
        // RFC 7845, section 5.1.1.2: the order of Vorbis.
        let stereo = Position::FRONT_LEFT | Position::FRONT_RIGHT;
        let front = stereo | Position::FRONT_CENTER;
        let rear = Position::REAR_LEFT | Position::REAR_RIGHT;
        let side = Position::SIDE_LEFT | Position::SIDE_RIGHT;
        Some(match self.channels {
            1 => (Position::FRONT_CENTER, &[0]),
            2 => (stereo, &[0, 1]),
            3 => (front, &[0, 2, 1]),
            4 => (stereo | rear, &[0, 1, 2, 3]),
            5 => (front | rear, &[0, 2, 1, 3, 4]),
            6 => (front | Position::LFE1 | rear, &[0, 2, 1, 4, 5, 3]),
            7 => (front | Position::LFE1 | Position::REAR_CENTER | side, &[0, 2, 1, 5, 6, 4, 3]),
            8 => (front | Position::LFE1 | rear | side, &[0, 2, 1, 6, 7, 4, 5, 3]),
            _ => return None,
        })
    }
}

impl Mapping {
    fn parse(table: &[u8], channels: usize) -> Option<Self> {
        let (&[streams, coupled_streams], rest) = table.split_first_chunk()?;
        let mut this = Self { streams, coupled_streams, channels: [SILENT; MAX_CHANNELS] };
        this.channels.get_mut(..channels)?.copy_from_slice(rest.get(..channels)?);
        Some(this)
    }

    /// Returns, for every channel, the index of its samples in a decoder with the standard mapping, or `None` for
    /// silence.
    fn sources(&self, standard: &ChannelLayout) -> Option<Vec<Option<usize>>> {
        let streams = (usize::from(self.streams), usize::from(self.coupled_streams));
        if streams != (standard.nb_streams, standard.nb_coupled_streams) {
            return None;
        }
        let source = |&channel: &u8| match channel {
            SILENT => Some(None),
            channel => standard.mapping.iter().position(|other| *other == channel).map(Some),
        };
        self.channels[..standard.nb_channels].iter().map(source).collect()
    }
}

enum Streams {
    One(Box<Decoder>),
    Several(Box<MultistreamDecoder>),
}

/// Decodes Opus packets to floats at 48 kHz.
pub(super) struct OpusDecoder {
    parameters: AudioCodecParameters,
    streams: Streams,
    /// For every channel in Vorbis order, its index in the buffer.
    order: &'static [usize],
    /// For every channel in Vorbis order, its index in the decoded frames, or `None` for silence.
    sources: Vec<Option<usize>>,
    gain: f32,
    interleaved: Vec<f32>,
    buffer: AudioBuffer<f32>,
}

impl OpusDecoder {
    fn fill(&mut self, packet: &PacketRef<'_>) -> Result<()> {
        self.buffer.clear();
        if packet.data.is_empty() {
            return Err(Error::DecodeError("opus: empty packet"));
        }
        let decoded = match &mut self.streams {
            Streams::One(decoder) => decoder.decode(packet.data, MAX_PACKET, &mut self.interleaved),
            Streams::Several(decoder) => decoder.decode(packet.data, MAX_PACKET, &mut self.interleaved),
        };
        let count = decoded.map_err(|_| Error::DecodeError("opus: damaged packet"))?;
        let channels = self.order.len();
        self.buffer.resize_with_silence(count);
        for (source, &target) in self.sources.iter().zip(self.order) {
            let Some(source) = *source else { continue };
            let plane = self.buffer.plane_mut(target).ok_or(Error::DecodeError("opus: missing channel"))?;
            for (sample, frame) in plane.iter_mut().zip(self.interleaved.chunks_exact(channels)) {
                *sample = self.gain * frame[source];
            }
        }
        self.buffer.trim(0, packet.trim_end.get() as usize);
        Ok(())
    }
}

impl AudioDecoder for OpusDecoder {
    fn reset(&mut self) {
        // The states were valid before, so this cannot fail.
        let _ = match &mut self.streams {
            Streams::One(decoder) => decoder.reset_state(),
            Streams::Several(decoder) => decoder.reset_state(),
        };
    }

    fn codec_info(&self) -> &CodecInfo {
        &CODECS[0].info
    }

    fn codec_params(&self) -> &AudioCodecParameters {
        &self.parameters
    }

    fn decode_ref(&mut self, packet: &PacketRef<'_>) -> Result<GenericAudioBufferRef<'_>> {
        if let Err(error) = self.fill(packet) {
            self.buffer.clear();
            return Err(error);
        }
        Ok(self.buffer.as_generic_audio_buffer_ref())
    }

    fn finalize(&mut self) -> FinalizeResult {
        FinalizeResult::default()
    }

    fn last_decoded(&self) -> GenericAudioBufferRef<'_> {
        self.buffer.as_generic_audio_buffer_ref()
    }
}

impl RegisterableAudioDecoder for OpusDecoder {
    fn try_registry_new(
        parameters: &AudioCodecParameters,
        _: &AudioDecoderOptions,
    ) -> Result<Box<dyn AudioDecoder>> {
        let head = parameters
            .extra_data
            .as_deref()
            .and_then(OpusHead::parse)
            .ok_or(Error::Unsupported("Opus without its header"))?;
        let (position, order) =
            head.layout().ok_or(Error::Unsupported("Opus with other than 1 to 8 channels"))?;
        let unsupported = |_| Error::Unsupported("this arrangement of Opus channels");
        let rate = SAMPLE_RATE as i32;
        let (streams, sources) = if head.mapping_family == 0 {
            let decoder = Decoder::new(rate, head.channels).map_err(unsupported)?;
            (Streams::One(Box::new(decoder)), (0..head.channels).map(Some).collect())
        } else {
            let decoder = MultistreamDecoder::new(rate, head.channels, head.mapping_family);
            let decoder = decoder.map_err(unsupported)?;
            let sources = head.mapping.and_then(|mapping| mapping.sources(decoder.layout()));
            let sources = sources.ok_or(Error::Unsupported("this mapping of Opus channels"))?;
            (Streams::Several(Box::new(decoder)), sources)
        };
        let spec = AudioSpec::new(SAMPLE_RATE, Channels::Positioned(position));
        Ok(Box::new(Self {
            parameters: parameters.clone(),
            streams,
            order,
            sources,
            gain: 10_f32.powf(f32::from(head.gain) / (20.0 * 256.0)),
            interleaved: vec![0.0; MAX_PACKET * head.channels],
            buffer: AudioBuffer::new(spec, MAX_PACKET),
        }))
    }

    fn supported_codecs() -> &'static [SupportedAudioCodec] {
        &CODECS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opus_pure::{Application, OpusMSEncoder};
    use symphonia::core::units::{Duration, Timestamp};

    #[test]
    fn headers_are_parsed_or_refused() {
        let mut bytes = b"OpusHead\x01\x02\x38\x01\x80\xbb\x00\x00\x00\xff\x00".to_vec();
        let head = OpusHead { channels: 2, pre_skip: 312, gain: -256, mapping_family: 0, mapping: None };
        assert_eq!(OpusHead::parse(&bytes), Some(head));
        for length in 0..bytes.len() {
            assert_eq!(OpusHead::parse(&bytes[..length]), None);
        }
        let in_mp4 = b"OpusHead\x00\x02\x01\x38\x00\x00\xbb\x80\xff\x00\x00";
        assert_eq!(OpusHead::parse(in_mp4), Some(head));
        bytes[0] = b'o';
        assert_eq!(OpusHead::parse(&bytes), None);
    }

    /// Decodes a packet with three channels and this mapping table: left, right, centre.
    fn decoded(table: &[u8], packet: &[u8]) -> Result<Vec<Vec<f32>>> {
        let head = [b"OpusHead\x01\x03\0\0\x80\xbb\0\0\0\0\x01", table].concat();
        let mut parameters = AudioCodecParameters::new();
        parameters.for_codec(CODEC_ID_OPUS).with_extra_data(head.into());
        let mut decoder = OpusDecoder::try_registry_new(&parameters, &AudioDecoderOptions::default())?;
        let packet = PacketRef::new(0, Timestamp::new(0), Duration::new(960), packet);
        let mut planes = Vec::new();
        decoder.decode_ref(&packet)?.copy_to_vecs_planar(&mut planes);
        Ok(planes)
    }

    #[test]
    fn channels_follow_their_mapping() {
        let mut encoder = OpusMSEncoder::new(48_000, 3, 1, Application::Audio).unwrap();
        // Left, centre and right differ in frequency.
        let sound: Vec<f32> = (0..960)
            .flat_map(|n| [200.0, 900.0, 3_000.0].map(|f| 0.3 * (n as f32 * f / 7_639.4).sin()))
            .collect();
        let mut packet = vec![0; 4_000];
        let length = encoder.encode(&sound, 960, &mut packet).unwrap();
        packet.truncate(length);
        // One stream of two channels, left and right, and one of the centre.
        let standard = decoded(&[2, 1, 0, 2, 1], &packet).unwrap();
        assert!(
            (0..3)
                .all(|n| standard[n].iter().any(|x| x.abs() > 0.01) && standard[n] != standard[(n + 1) % 3])
        );
        let [left, right, centre] = [0, 1, 2].map(|n| standard[n].clone());
        let mapped = decoded(&[2, 1, 2, 0, 1], &packet).unwrap();
        assert!(mapped == [centre.clone(), right.clone(), left.clone()]);
        let silent = decoded(&[2, 1, 0, 255, 0], &packet).unwrap();
        assert!(silent == [left.clone(), left, vec![0.0; silent[0].len()]]);
        for other in [&[3, 0, 0, 1, 2][..], &[2, 1, 0, 3, 1], &[2, 1, 0, 2], &[]] {
            assert!(matches!(decoded(other, &packet), Err(Error::Unsupported(_))), "{other:?}");
        }
    }

    #[test]
    fn every_arrangement_gives_each_loudspeaker_one_channel() {
        for channels in 1..=8 {
            let head = OpusHead { channels, pre_skip: 0, gain: 0, mapping_family: 1, mapping: None };
            let (position, order) = head.layout().unwrap();
            assert_eq!(position.bits().count_ones() as usize, channels);
            let mut places = order.to_vec();
            places.sort_unstable();
            assert!(places.into_iter().eq(0..channels));
        }
    }
}
