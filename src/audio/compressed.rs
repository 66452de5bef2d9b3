//! Every format but WAV and raw samples, by way of the symphonia crate.

use super::error::ReadError;
use super::mp4::{self, EditStart};
use super::signal::SampleFormat;
use std::fs::File;
use std::io::{self, Seek};
use std::sync::LazyLock;
use symphonia::core::audio::GenericAudioBufferRef;
use symphonia::core::codecs::audio::well_known::{CODEC_ID_ALAC, CODEC_ID_OPUS};
use symphonia::core::codecs::audio::{AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error as SymphoniaError;
use symphonia::core::formats::probe::{Hint, Probe};
use symphonia::core::formats::{FormatOptions, FormatReader, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream};
use symphonia::core::meta::MetadataOptions;
use symphonia::default::{formats, meta};

/// The most samples a damaged packet is replaced with; real packets are shorter.
const LONGEST_PACKET: u64 = 1 << 16;

/// How many samples a lossy recording may lack at its end: encoders count their delay and padding
/// in various ways.
const LOSSY_SLACK: u64 = 1 << 13;

/// Tells every format but MP4, looking further for its start if a file begins with something else.
static PROBE: LazyLock<Probe> = LazyLock::new(|| {
    let mut probe = Probe::default();
    probe.register_format::<formats::AdtsReader>();
    probe.register_format::<formats::AiffReader>();
    probe.register_format::<formats::FlacReader>();
    probe.register_format::<formats::MpaReader>();
    probe.register_format::<formats::OggReader>();
    probe.register_metadata::<meta::ApeReader>();
    probe.register_metadata::<meta::Id3v1Reader>();
    probe.register_metadata::<meta::Id3v2Reader>();
    probe
});

/// For files that begin as MP4: nothing is looked for behind other bytes, so that what was checked is what is read.
static MP4_PROBE: LazyLock<Probe> = LazyLock::new(|| {
    let mut probe = Probe::default();
    probe.register_format::<formats::IsoMp4Reader>();
    probe
});

/// Decodes one audio track of a file or stream.
pub(super) struct CompressedDecoder {
    reader: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    pub(super) sample_rate: u32,
    pub(super) channels: usize,
    pub(super) format: SampleFormat,
    /// Samples per channel, if the file says.
    pub(super) length: Option<u64>,
    lossless: bool,
    /// Whether packets last as long as the container says, though they decode to more samples.
    trust_durations: bool,
    /// Samples per channel still to be left out at the start.
    skip: u64,
    /// Samples per channel given out so far.
    position: u64,
    /// Packets that could not be decoded and were replaced with silence.
    pub(super) damaged_packets: u64,
    /// What opening has decoded.
    pending: Vec<Vec<f32>>,
}

impl CompressedDecoder {
    /// Opens a file or stream of any format but MP4.
    pub(super) fn open(source: Box<dyn MediaSource>) -> Result<Self, ReadError> {
        Self::probed(&PROBE, source, None)
    }

    /// Opens an MP4 file.
    pub(super) fn open_mp4(mut file: File) -> Result<Self, ReadError> {
        let start = mp4::edit_start(&mut file)?;
        file.rewind().map_err(ReadError::Io)?;
        Self::probed(&MP4_PROBE, Box::new(file), start)
    }

    fn probed(
        probe: &Probe,
        source: Box<dyn MediaSource>,
        start: Option<EditStart>,
    ) -> Result<Self, ReadError> {
        let stream = MediaSourceStream::new(source, Default::default());
        let reader = probe
            .probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default())
            .map_err(in_header)?;
        let track = reader
            .default_track(TrackType::Audio)
            .ok_or_else(|| ReadError::Unsupported("no audio track of a known kind".into()))?;
        let parameters = track
            .codec_params
            .as_ref()
            .and_then(|parameters| parameters.audio())
            .ok_or_else(|| ReadError::Unsupported("an unknown codec".into()))?;
        let decoder = symphonia::default::get_codecs()
            .make_audio_decoder(parameters, &AudioDecoderOptions::default())
            .map_err(|error| match error {
                SymphoniaError::Unsupported(_) if parameters.codec == CODEC_ID_OPUS => {
                    ReadError::Unsupported("Opus".into())
                }
                SymphoniaError::Unsupported(what) if what.starts_with("core (codec)") => {
                    ReadError::Unsupported("a codec that is not read".into())
                }
                SymphoniaError::Unsupported(what) => ReadError::Unsupported(what.into()),
                error => in_header(error),
            })?;
        let bits = match (parameters.codec, &parameters.extra_data) {
            // The sixth byte of what configures the decoder.
            (CODEC_ID_ALAC, Some(cookie)) => cookie.get(5).map(|&bits| bits.into()),
            _ => parameters.bits_per_sample,
        };
        let (track, length) = (track.id, track.num_frames.filter(|&frames| frames > 0));
        let mut this = Self {
            reader,
            decoder,
            track,
            sample_rate: 0,
            channels: 0,
            format: SampleFormat::Int16,
            length,
            lossless: false,
            trust_durations: start.is_some(),
            skip: 0,
            position: 0,
            damaged_packets: 0,
            pending: Vec::new(),
        };
        // Some containers do not say what they hold: the first packet does.
        let mut pending = Vec::new();
        this.next_packet(&mut pending)?;
        this.pending = pending;
        if this.channels == 0 {
            return Err(ReadError::NotAudio("no packet of it can be decoded".into()));
        }
        this.settle_format(bits);
        if let Some(start) = start {
            this.skip = start.samples(this.sample_rate);
            this.length = this.length.map(|length| length.saturating_sub(this.skip));
        }
        Ok(this)
    }

    /// The format and the trust in the length that go with the codec.
    fn settle_format(&mut self, bits: Option<u32>) {
        let (float, decoded_bits) = match self.decoder.last_decoded() {
            GenericAudioBufferRef::F32(_) | GenericAudioBufferRef::F64(_) => (true, 32),
            GenericAudioBufferRef::U8(_) | GenericAudioBufferRef::S8(_) => (false, 8),
            GenericAudioBufferRef::U16(_) | GenericAudioBufferRef::S16(_) => (false, 16),
            GenericAudioBufferRef::U24(_) | GenericAudioBufferRef::S24(_) => (false, 24),
            GenericAudioBufferRef::U32(_) | GenericAudioBufferRef::S32(_) => (false, 32),
        };
        // Lossy codecs decode to floats and say nothing of bits.
        self.lossless = !float || bits.is_some();
        self.format = match bits.unwrap_or(decoded_bits) {
            _ if !self.lossless => SampleFormat::Int16,
            _ if float => SampleFormat::Float32,
            ..=8 => SampleFormat::Int8,
            9..=16 => SampleFormat::Int16,
            17..=24 => SampleFormat::Int24,
            _ => SampleFormat::Int32,
        };
    }

    /// Appends some samples to every channel, none at the end.
    pub(super) fn decode(&mut self, channels: &mut [Vec<f32>]) -> Result<(), ReadError> {
        loop {
            let mut decoded = std::mem::take(&mut self.pending);
            if decoded.is_empty() {
                self.next_packet(&mut decoded)?;
            }
            let length = decoded.first().map_or(0, Vec::len);
            let skip = usize::try_from(self.skip).unwrap_or(usize::MAX).min(length);
            self.skip -= skip as u64;
            self.position += (length - skip) as u64;
            for (channel, samples) in channels.iter_mut().zip(&decoded) {
                channel.extend(&samples[skip..]);
            }
            if length == 0 {
                return self.at_end();
            }
            if skip < length {
                return Ok(());
            }
        }
    }

    /// Decodes the next packet with any samples in it; leaves `planes` empty at the end.
    fn next_packet(&mut self, planes: &mut Vec<Vec<f32>>) -> Result<(), ReadError> {
        let mut silence = 0_u64;
        loop {
            let packet = match self.reader.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => return Ok(()),
                Err(SymphoniaError::IoError(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Ok(());
                }
                Err(SymphoniaError::IoError(error)) => return Err(ReadError::Io(error)),
                Err(SymphoniaError::ResetRequired) => {
                    return Err(ReadError::Unsupported("several recordings chained in one file".into()));
                }
                Err(error) => return Err(self.damaged(&error)),
            };
            if packet.track_id != self.track {
                continue;
            }
            let duration = packet.dur.get();
            match self.decoder.decode(&packet) {
                Ok(buffer) => {
                    let spec = buffer.spec();
                    let (sample_rate, count) = (spec.rate(), spec.channels().count());
                    if self.channels == 0 {
                        (self.sample_rate, self.channels) = (sample_rate, count);
                    } else if (sample_rate, count) != (self.sample_rate, self.channels) {
                        return Err(ReadError::Unsupported(format!(
                            "a change from {} channels at {} Hz to {count} at {sample_rate} Hz midway",
                            self.channels, self.sample_rate
                        )));
                    }
                    if buffer.frames() == 0 && silence == 0 {
                        continue;
                    }
                    buffer.copy_to_vecs_planar(planes);
                    for plane in planes.iter_mut() {
                        if self.trust_durations && duration > 0 {
                            plane.truncate(usize::try_from(duration).unwrap_or(usize::MAX));
                        }
                        plane.splice(..0, std::iter::repeat_n(0.0, silence as usize));
                    }
                    return Ok(());
                }
                // Kept in time by silence, as the packets after it are probably sound.
                Err(SymphoniaError::DecodeError(_) | SymphoniaError::IoError(_)) => {
                    self.damaged_packets += 1;
                    silence = silence.saturating_add(duration.min(LONGEST_PACKET));
                    if silence > 16 * LONGEST_PACKET {
                        return Err(self.damaged(&"no packet can be decoded any more"));
                    }
                }
                Err(error) => return Err(self.damaged(&error)),
            }
        }
    }

    fn at_end(&self) -> Result<(), ReadError> {
        let slack = if self.lossless { 0 } else { LOSSY_SLACK };
        match self.length {
            Some(expected) if self.position.saturating_add(slack) < expected => {
                Err(ReadError::Truncated { expected, found: self.position })
            }
            _ => Ok(()),
        }
    }

    fn damaged(&self, reason: &dyn std::fmt::Display) -> ReadError {
        ReadError::Damaged { sample: self.position, reason: reason.to_string() }
    }
}

fn in_header(error: SymphoniaError) -> ReadError {
    match error {
        SymphoniaError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            ReadError::NotAudio("it ends within its header".into())
        }
        SymphoniaError::IoError(error) => ReadError::Io(error),
        // The probe's own words say no more.
        SymphoniaError::Unsupported(reason) if reason.starts_with("core (probe)") => {
            ReadError::NotAudio("no format that is read".into())
        }
        SymphoniaError::Unsupported(reason) => ReadError::NotAudio(format!("no supported format ({reason})")),
        error => ReadError::NotAudio(error.to_string()),
    }
}
