//! The audio track of a file: its demuxer, its decoder and the contents of its header.

use crate::declared::MAX_LENGTH;
use crate::error::ReadError;
use crate::opus::{OpusDecoder, OpusHead};
use crate::source::ReadSeek;
use alphamf_signal::{check_channels, check_sample_rate};
use std::io::{self, Read, SeekFrom};
use std::sync::LazyLock;
use symphonia::core::audio::Channels;
use symphonia::core::codecs::audio::well_known::{
    CODEC_ID_AAC, CODEC_ID_AC3, CODEC_ID_AC4, CODEC_ID_ADPCM_G722, CODEC_ID_ADPCM_G726,
    CODEC_ID_ADPCM_G726LE, CODEC_ID_ADPCM_IMA_QT, CODEC_ID_ADPCM_IMA_WAV, CODEC_ID_ADPCM_MS, CODEC_ID_ALAC,
    CODEC_ID_ATRAC1, CODEC_ID_ATRAC3, CODEC_ID_ATRAC3PLUS, CODEC_ID_COOK, CODEC_ID_DCA, CODEC_ID_EAC3,
    CODEC_ID_MONKEYS_AUDIO, CODEC_ID_MP1, CODEC_ID_MP2, CODEC_ID_MP3, CODEC_ID_MUSEPACK, CODEC_ID_OPUS,
    CODEC_ID_PCM_S24BE, CODEC_ID_PCM_S24LE, CODEC_ID_PCM_S32LE, CODEC_ID_RA10, CODEC_ID_RA20, CODEC_ID_RALF,
    CODEC_ID_SIPR, CODEC_ID_SPEEX, CODEC_ID_TRUEHD, CODEC_ID_TTA, CODEC_ID_VORBIS, CODEC_ID_WAVPACK,
    CODEC_ID_WMA,
};
use symphonia::core::codecs::audio::{
    AudioCodecId, AudioCodecParameters, AudioDecoder, AudioDecoderOptions, CODEC_ID_NULL_AUDIO,
};
use symphonia::core::codecs::registry::CodecRegistry;
use symphonia::core::errors::Error as SymphoniaError;
use symphonia::core::formats::probe::{Hint, Probe};
use symphonia::core::formats::well_known::FORMAT_ID_FLAC;
use symphonia::core::formats::{FormatOptions, FormatReader, Track, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::units::TimeBase;
use symphonia::default::{formats, meta};

/// The bit above the last speaker position of `dwChannelMask`.
pub(super) const END_OF_MASK: u32 = 1 << 18;

/// Limit on the samples per channel of a packet, above that of any codec: decoders allocate memory for it.
const MAX_PACKET_SAMPLES: u64 = 1 << 17;

/// Lossy codecs.
pub(super) const LOSSY: [AudioCodecId; 9] = [
    CODEC_ID_AAC,
    CODEC_ID_ADPCM_IMA_QT,
    CODEC_ID_ADPCM_IMA_WAV,
    CODEC_ID_ADPCM_MS,
    CODEC_ID_MP1,
    CODEC_ID_MP2,
    CODEC_ID_MP3,
    CODEC_ID_OPUS,
    CODEC_ID_VORBIS,
];

/// Why an MP4 file without its index cannot be read.
const NO_INDEX: &str =
    "the recorder stopped before it wrote the index (moov): a repair tool such as untrunc is needed";

/// Codecs without a decoder, and their names.
const UNSUPPORTED: [(AudioCodecId, &str); 23] = [
    (CODEC_ID_AC3, "AC-3"),
    (CODEC_ID_AC4, "AC-4"),
    (CODEC_ID_ADPCM_G722, "G.722"),
    (CODEC_ID_ADPCM_G726, "G.726"),
    (CODEC_ID_ADPCM_G726LE, "G.726"),
    (CODEC_ID_ATRAC1, "ATRAC1"),
    (CODEC_ID_ATRAC3, "ATRAC3"),
    (CODEC_ID_ATRAC3PLUS, "ATRAC3+"),
    (CODEC_ID_COOK, "RealAudio Cook"),
    (CODEC_ID_DCA, "DTS"),
    (CODEC_ID_EAC3, "E-AC-3"),
    (CODEC_ID_MONKEYS_AUDIO, "Monkey's Audio"),
    (CODEC_ID_MUSEPACK, "Musepack"),
    (CODEC_ID_RA10, "RealAudio 14.4"),
    (CODEC_ID_RA20, "RealAudio 28.8"),
    (CODEC_ID_RALF, "RealAudio Lossless"),
    (CODEC_ID_SIPR, "RealAudio Sipro"),
    (CODEC_ID_SPEEX, "Speex"),
    (CODEC_ID_TRUEHD, "TrueHD"),
    (CODEC_ID_TTA, "TTA"),
    (CODEC_ID_WAVPACK, "WavPack"),
    (CODEC_ID_WMA, "WMA"),
    (CODEC_ID_NULL_AUDIO, "an unknown codec"),
];

/// Probe of every format except MP4 and CAF; skips other bytes before the start of the format.
pub(super) static PROBE: LazyLock<Probe> = LazyLock::new(|| {
    let mut probe = Probe::default();
    probe.register_format::<formats::AdtsReader>();
    probe.register_format::<formats::AiffReader>();
    probe.register_format::<formats::FlacReader>();
    probe.register_format::<formats::MkvReader>();
    probe.register_format::<formats::MpaReader>();
    probe.register_format::<formats::OggReader>();
    // For compressed WAV only.
    probe.register_format::<formats::WavReader>();
    probe.register_metadata::<meta::ApeReader>();
    probe.register_metadata::<meta::Id3v1Reader>();
    probe.register_metadata::<meta::Id3v2Reader>();
    probe
});

/// Probe of files that begin as MP4. It does not search for a later start, and so reads the part that was checked.
pub(super) static MP4_PROBE: LazyLock<Probe> = LazyLock::new(|| {
    let mut probe = Probe::default();
    probe.register_format::<formats::IsoMp4Reader>();
    probe
});

/// Like [`MP4_PROBE`], for files that begin as CAF.
pub(super) static CAF_PROBE: LazyLock<Probe> = LazyLock::new(|| {
    let mut probe = Probe::default();
    probe.register_format::<formats::CafReader>();
    probe
});

pub(super) static CODECS: LazyLock<CodecRegistry> = LazyLock::new(|| {
    let mut codecs = CodecRegistry::new();
    symphonia::default::register_enabled_codecs(&mut codecs);
    codecs.register_audio_decoder::<OpusDecoder>();
    codecs
});

/// A source that can be rewound, for the demuxers.
pub(super) struct Seekable {
    pub(super) source: Box<dyn ReadSeek>,
    pub(super) length: u64,
}

impl Read for Seekable {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        self.source.read(target)
    }
}

impl io::Seek for Seekable {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.source.seek(to)
    }
}

impl MediaSource for Seekable {
    fn is_seekable(&self) -> bool {
        true
    }

    fn byte_len(&self) -> Option<u64> {
        Some(self.length)
    }
}

/// The track of a source that is decoded.
pub(super) struct AudioTrack {
    pub(super) id: u32,
    pub(super) decoder: Box<dyn AudioDecoder>,
    pub(super) time_base: Option<TimeBase>,
    pub(super) length: Option<u64>,
    /// Start of the padding, in units of the time base, if separate packets hold it.
    pub(super) end: Option<i64>,
    pub(super) bits: Option<u32>,
    pub(super) lossy: bool,
    pub(super) channel_mask: Option<u32>,
    /// Delay of the codec, samples per channel.
    pub(super) delay: u64,
}

pub(super) fn probed(
    probe: &Probe,
    source: Box<dyn MediaSource>,
) -> Result<Box<dyn FormatReader>, ReadError> {
    let stream = MediaSourceStream::new(source, Default::default());
    probe.probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default()).map_err(in_header)
}

impl AudioTrack {
    /// Returns the track with a number, or the default one. `little_endian` overrides a declared big-endian byte order.
    pub(super) fn of(
        reader: &dyn FormatReader,
        number: Option<u32>,
        little_endian: bool,
    ) -> Result<Self, ReadError> {
        let is_meant = |track: &&Track| {
            number == Some(track.id)
                && track.codec_params.as_ref().is_some_and(|codec| codec.audio().is_some())
        };
        let track = (reader.tracks().iter().find(is_meant))
            .or_else(|| reader.default_track(TrackType::Audio))
            .ok_or_else(|| ReadError::Unsupported("no audio track of a known kind".into()))?;
        let parameters = track
            .codec_params
            .as_ref()
            .and_then(|parameters| parameters.audio())
            .ok_or_else(|| ReadError::Unsupported("an unknown codec".into()))?;
        // Checked before the decoder allocates memory for them.
        if let Some(channels) = &parameters.channels {
            check_channels(channels.count())?;
        }
        if parameters.max_frames_per_packet.is_some_and(|samples| samples > MAX_PACKET_SAMPLES) {
            return Err(ReadError::NotAudio("its packets are longer than any codec's".into()));
        }
        // MP4 cannot store high sample rates and declares zero.
        if let Some(rate) = parameters.sample_rate.filter(|&rate| rate > 0) {
            check_sample_rate(rate)?;
        }
        // Only a FLAC file has the checksum of its own samples.
        let options = AudioDecoderOptions::default().verify(reader.format_info().format == FORMAT_ID_FLAC);
        let reversed = little_endian.then(|| AudioCodecParameters {
            codec: if parameters.codec == CODEC_ID_PCM_S24BE {
                CODEC_ID_PCM_S24LE
            } else {
                CODEC_ID_PCM_S32LE
            },
            ..parameters.clone()
        });
        let parameters = reversed.as_ref().unwrap_or(parameters);
        let decoder = CODECS.make_audio_decoder(parameters, &options).map_err(|error| match error {
            SymphoniaError::Unsupported(what) if what.starts_with("core (codec)") => {
                ReadError::Unsupported(codec_name(parameters.codec))
            }
            SymphoniaError::Unsupported(what) => ReadError::Unsupported(what.into()),
            error => in_header(error),
        })?;
        let bits = match (parameters.codec, &parameters.extra_data) {
            (codec, _) if LOSSY.contains(&codec) => None,
            (CODEC_ID_ALAC, Some(cookie)) => alac_bits(cookie),
            _ => parameters.bits_per_sample,
        };
        let head = parameters.extra_data.as_deref().filter(|_| parameters.codec == CODEC_ID_OPUS);
        let delay: u64 = head.and_then(OpusHead::parse).map_or(0, |head| head.pre_skip.into());
        // AIFF has no speaker positions: the demuxer guesses them from the number of channels.
        let channel_mask = match &parameters.channels {
            Some(Channels::Positioned(places)) if reader.format_info().short_name != "aiff" => {
                let mask = u32::try_from(places.bits()).ok();
                mask.filter(|mask| mask.count_ones() > 2 && *mask < END_OF_MASK)
            }
            _ => None,
        };
        let (id, time_base) = (track.id, track.time_base);
        // Ogg granule positions count the samples skipped at the start, and those before it if the stream was cut.
        let ogg_start = match reader.format_info().short_name {
            "ogg" => delay.saturating_add_signed(track.start_ts.get().max(0)),
            _ => 0,
        };
        let length = track.num_frames.map(|frames| frames.saturating_sub(ogg_start));
        let length = length.filter(|length| (1..=MAX_LENGTH).contains(length));
        let lossy = LOSSY.contains(&parameters.codec);
        let is_mpeg = [CODEC_ID_MP1, CODEC_ID_MP2, CODEC_ID_MP3].contains(&parameters.codec);
        let end = track.num_frames.filter(|_| is_mpeg).and_then(|end| i64::try_from(end).ok());
        Ok(Self { id, decoder, time_base, length, end, bits, lossy, channel_mask, delay })
    }
}

/// Name of a codec without a decoder.
fn codec_name(codec: AudioCodecId) -> String {
    if let Some((_, name)) = UNSUPPORTED.iter().find(|(id, _)| *id == codec) {
        return (*name).into();
    }
    // The number of the codec, or the four-character code of its container with the highest bit set.
    let number = codec.to_string();
    let code = number.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let characters = code.map(|code| (code & 0x7fff_ffff).to_be_bytes());
    match characters {
        Some(name) if name.iter().all(|byte| (0x20..0x7f).contains(byte)) => {
            format!("codec {:?}", String::from_utf8_lossy(&name))
        }
        _ => format!("codec {number}"),
    }
}

/// Reads the bits per sample, the sixth byte of the ALAC configuration. In CAF files, the headers of two atoms may
/// precede it.
fn alac_bits(cookie: &[u8]) -> Option<u32> {
    let mut config = cookie;
    for atom in [b"frma", b"alac"] {
        if config.get(4..8) == Some(atom) {
            config = config.get(12..)?;
        }
    }
    config.get(5).map(|&bits| bits.into())
}

pub(super) fn in_header(error: SymphoniaError) -> ReadError {
    match error {
        SymphoniaError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            // The demuxer may have searched the whole file for a frame that matches its header.
            ReadError::NotAudio("no valid audio before its end".into())
        }
        SymphoniaError::IoError(error) => ReadError::Io(error),
        SymphoniaError::Unsupported(reason) | SymphoniaError::DecodeError(reason)
            if reason.contains("missing moov atom") =>
        {
            ReadError::Damaged { sample: 0, reason: NO_INDEX.into() }
        }
        // The message of the probe has no further details.
        SymphoniaError::Unsupported(reason) if reason.starts_with("core (probe)") => {
            ReadError::NotAudio("unrecognised format".into())
        }
        SymphoniaError::Unsupported(reason) => ReadError::NotAudio(format!("no supported format ({reason})")),
        error => ReadError::NotAudio(error.to_string()),
    }
}
