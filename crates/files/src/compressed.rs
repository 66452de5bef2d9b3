//! Every format but WAV and raw samples, by way of the symphonia crate.

use super::caf;
use super::chain::Chain;
use super::declared::{self, Measured};
use super::error::ReadError;
use super::losses::Losses;
use super::matroska;
use super::metadata::Metadata;
use super::mp4;
use super::mpeg::{self, Lost, Mended};
use super::opus::{OpusDecoder, OpusHead};
use super::source::ReadSeek;
use alphamf_signal::{SampleFormat, check_channels, check_sample_rate};
use std::collections::VecDeque;
use std::io::{self, Read, SeekFrom};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};
use symphonia::core::audio::{Channels, GenericAudioBufferRef};
use symphonia::core::codecs::audio::well_known::{
    CODEC_ID_AAC, CODEC_ID_ADPCM_IMA_WAV, CODEC_ID_ADPCM_MS, CODEC_ID_ALAC, CODEC_ID_FLAC, CODEC_ID_MP1,
    CODEC_ID_MP2, CODEC_ID_MP3, CODEC_ID_OPUS, CODEC_ID_VORBIS,
};
use symphonia::core::codecs::audio::{AudioCodecId, AudioDecoder, AudioDecoderOptions};
use symphonia::core::codecs::registry::CodecRegistry;
use symphonia::core::errors::Error as SymphoniaError;
use symphonia::core::formats::probe::{Hint, Probe};
use symphonia::core::formats::well_known::{FORMAT_ID_AIFF, FORMAT_ID_CAF};
use symphonia::core::formats::{FormatOptions, FormatReader, Track, TrackType};
use symphonia::core::io::{MediaSource, MediaSourceStream, ReadOnlySource};
use symphonia::core::meta::MetadataOptions;
use symphonia::core::packet::Packet;
use symphonia::core::units::TimeBase;
use symphonia::default::{formats, meta};

/// The most samples a damaged packet is replaced with; real packets are shorter.
const LONGEST_PACKET: u64 = 1 << 16;

/// How many samples a lossy recording may lack at its end: encoders count their delay and padding
/// in various ways.
const LOSSY_SLACK: u64 = 1 << 13;

/// A pause between packets of more than this is a loss, s: containers round times to a millisecond.
const SHORTEST_GAP_SECONDS: f64 = 0.005;

/// A longer pause is not believed, s.
const LONGEST_GAP_SECONDS: f64 = 600.0;

/// Packets wholly behind the announced end that an encoder may have padded with. More of them are another recording.
const MOST_PADDING: usize = 4;

/// The bit behind the last loudspeaker that `dwChannelMask` knows.
const END_OF_MASK: u32 = 1 << 18;

/// Codecs whose samples are not those that were encoded.
const LOSSY: [AudioCodecId; 8] = [
    CODEC_ID_AAC,
    CODEC_ID_ADPCM_IMA_WAV,
    CODEC_ID_ADPCM_MS,
    CODEC_ID_MP1,
    CODEC_ID_MP2,
    CODEC_ID_MP3,
    CODEC_ID_OPUS,
    CODEC_ID_VORBIS,
];

/// Tells every format but MP4, looking further for its start if a file begins with something else.
static PROBE: LazyLock<Probe> = LazyLock::new(|| {
    let mut probe = Probe::default();
    probe.register_format::<formats::AdtsReader>();
    probe.register_format::<formats::AiffReader>();
    probe.register_format::<formats::CafReader>();
    probe.register_format::<formats::FlacReader>();
    probe.register_format::<formats::MkvReader>();
    probe.register_format::<formats::MpaReader>();
    probe.register_format::<formats::OggReader>();
    // For the compressed kinds only.
    probe.register_format::<formats::WavReader>();
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

static CODECS: LazyLock<CodecRegistry> = LazyLock::new(|| {
    let mut codecs = CodecRegistry::new();
    symphonia::default::register_enabled_codecs(&mut codecs);
    codecs.register_audio_decoder::<OpusDecoder>();
    codecs
});

/// Decodes one audio track of a file or stream.
pub(super) struct CompressedDecoder {
    reader: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    time_base: Option<TimeBase>,
    /// When padding begins, in units of the time base, if it comes in packets of its own.
    end: Option<i64>,
    /// What follows the recording that is being read.
    chain: Option<Chain>,
    pub(super) sample_rate: u32,
    pub(super) channels: usize,
    /// Where the channels are heard, as the bits of `dwChannelMask`, if the file says.
    pub(super) channel_mask: Option<u32>,
    pub(super) format: SampleFormat,
    /// Samples per channel, if the file says.
    pub(super) length: Option<u64>,
    pub(super) metadata: Metadata,
    /// Audio tracks besides this one.
    pub(super) other_tracks: usize,
    lossless: bool,
    /// Bytes of a sample of all channels, if they are stored as they are.
    frame_bytes: Option<u64>,
    /// Whether packets last as long as the container says, though they decode to more samples.
    trust_durations: bool,
    /// Samples per channel still to be left out at the start.
    skip: u64,
    /// Samples per channel given out so far.
    position: u64,
    /// When the next packet is due, in units of the time base.
    due: Option<i64>,
    /// Samples per channel of silence that come before the next packet.
    gap: u64,
    /// Packets read ahead.
    ahead: VecDeque<Packet>,
    /// Whether further recordings follow the first, whose length is no limit any more.
    chained: bool,
    losses: Losses,
    /// What the stream of frames has lost before it was taken apart.
    lost: Arc<Lost>,
    /// What opening has decoded.
    pending: Vec<Vec<f32>>,
}

/// A source that can be rewound, for the demuxers.
struct Seekable {
    source: Box<dyn ReadSeek>,
    length: u64,
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

/// The first audio track of a source.
struct AudioTrack {
    id: u32,
    decoder: Box<dyn AudioDecoder>,
    time_base: Option<TimeBase>,
    length: Option<u64>,
    /// When padding begins, in units of the time base, if it comes in packets of its own.
    end: Option<i64>,
    bits: Option<u32>,
    lossy: bool,
    channel_mask: Option<u32>,
    /// Samples per channel that the codec puts before the first.
    delay: u64,
}

fn probed(probe: &Probe, source: Box<dyn MediaSource>) -> Result<Box<dyn FormatReader>, ReadError> {
    let stream = MediaSourceStream::new(source, Default::default());
    probe.probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default()).map_err(in_header)
}

impl AudioTrack {
    fn of(reader: &dyn FormatReader) -> Result<Self, ReadError> {
        let track = reader
            .default_track(TrackType::Audio)
            .ok_or_else(|| ReadError::Unsupported("no audio track of a known kind".into()))?;
        let parameters = track
            .codec_params
            .as_ref()
            .and_then(|parameters| parameters.audio())
            .ok_or_else(|| ReadError::Unsupported("an unknown codec".into()))?;
        // Before the decoder allocates what they ask for.
        if let Some(channels) = &parameters.channels {
            check_channels(channels.count())?;
        }
        // MP4 has no room for high ones, and says zero.
        if let Some(rate) = parameters.sample_rate.filter(|&rate| rate > 0) {
            check_sample_rate(rate)?;
        }
        let decoder =
            CODECS.make_audio_decoder(parameters, &AudioDecoderOptions::default()).map_err(|error| {
                match error {
                    SymphoniaError::Unsupported(what) if what.starts_with("core (codec)") => {
                        ReadError::Unsupported("a codec that is not read".into())
                    }
                    SymphoniaError::Unsupported(what) => ReadError::Unsupported(what.into()),
                    error => in_header(error),
                }
            })?;
        let bits = match (parameters.codec, &parameters.extra_data) {
            (codec, _) if LOSSY.contains(&codec) => None,
            // The sixth byte of what configures the decoder.
            (CODEC_ID_ALAC, Some(cookie)) => cookie.get(5).map(|&bits| bits.into()),
            _ => parameters.bits_per_sample,
        };
        let head = parameters.extra_data.as_deref().filter(|_| parameters.codec == CODEC_ID_OPUS);
        let delay = head.and_then(OpusHead::parse).map_or(0, |head| head.pre_skip.into());
        // AIFF does not say: there they are guessed from the number of channels.
        let channel_mask = match &parameters.channels {
            Some(Channels::Positioned(places)) if reader.format_info().short_name != "aiff" => {
                let mask = u32::try_from(places.bits()).ok();
                mask.filter(|mask| mask.count_ones() > 2 && *mask < END_OF_MASK)
            }
            _ => None,
        };
        let (id, time_base) = (track.id, track.time_base);
        // The granules of Ogg count what is left out at the start.
        let ogg_delay = if reader.format_info().short_name == "ogg" { delay } else { 0 };
        let length = track.num_frames.map(|frames| frames.saturating_sub(ogg_delay)).filter(|&n| n > 0);
        let lossy = LOSSY.contains(&parameters.codec);
        let is_mpeg = [CODEC_ID_MP1, CODEC_ID_MP2, CODEC_ID_MP3].contains(&parameters.codec);
        let end = track.num_frames.filter(|_| is_mpeg).and_then(|end| i64::try_from(end).ok());
        Ok(Self { id, decoder, time_base, length, end, bits, lossy, channel_mask, delay })
    }
}

impl CompressedDecoder {
    /// Opens a file of any format but MP4.
    pub(super) fn open(mut source: Box<dyn ReadSeek>, length: u64) -> Result<Self, ReadError> {
        let is_damaged = mpeg::is_damaged(&mut source).map_err(ReadError::Io)?;
        source.rewind().map_err(ReadError::Io)?;
        if is_damaged {
            return Self::open_stream(source);
        }
        let title = matroska::title(&mut source);
        let (declared, tags) = declared(&mut source).map_err(ReadError::Io)?;
        let cut_bytes =
            declared.filter(|&declared| declared::is_cut(declared, length)).map_or(0, |end| end - length);
        source.rewind().map_err(ReadError::Io)?;
        // A demuxer that can seek looks for the end first, and refuses a file that has none.
        let source: Box<dyn MediaSource> = if cut_bytes > 0 {
            Box::new(ReadOnlySource::new(source))
        } else {
            Box::new(Seekable { source, length })
        };
        let mut this = Self::new(probed(&PROBE, source)?)?;
        if cut_bytes > 0 {
            this.losses.ends_early = true;
            this.losses.missing_samples = cut_bytes / this.frame_bytes.unwrap_or(u64::MAX);
        }
        if let Some(title) = title {
            this.metadata.set_title(&title);
        }
        tags.iter().for_each(|(name, value)| this.metadata.push_tag(name, value));
        Ok(this)
    }

    /// Opens a stream of any format but MP4.
    pub(super) fn open_stream(stream: impl Read + Send + Sync + 'static) -> Result<Self, ReadError> {
        let lost = Arc::<Lost>::default();
        let seen = Arc::clone(&lost);
        let stream = Measured::new(stream, move || seen.ends_early.store(true, Relaxed));
        let stream = Mended::counting(stream, Arc::clone(&lost));
        let mut this = Self::new(probed(&PROBE, Box::new(ReadOnlySource::new(stream)))?)?;
        this.lost = lost;
        Ok(this)
    }

    /// Opens FLAC, of which one stream may follow another.
    pub(super) fn open_flac(stream: Box<dyn Read + Send + Sync>) -> Result<Self, ReadError> {
        let chain = Chain::new(stream);
        let first = chain.next().ok_or(ReadError::Empty)?;
        let mut this = Self::new(probed(&PROBE, Box::new(ReadOnlySource::new(first)))?)?;
        this.chain = Some(chain);
        Ok(this)
    }

    /// Opens an MP4 file.
    pub(super) fn open_mp4(mut source: Box<dyn ReadSeek>, length: u64) -> Result<Self, ReadError> {
        let start = mp4::edit_start(&mut source)?;
        source.rewind().map_err(ReadError::Io)?;
        let mut this = Self::new(probed(&MP4_PROBE, Box::new(Seekable { source, length }))?)?;
        if let Some(start) = start {
            this.trust_durations = true;
            this.skip = start.samples(this.sample_rate);
            this.length = this.length.map(|length| length.saturating_sub(this.skip));
        }
        Ok(this)
    }

    fn new(reader: Box<dyn FormatReader>) -> Result<Self, ReadError> {
        let AudioTrack { id, decoder, time_base, length, end, bits, lossy, channel_mask, delay } =
            AudioTrack::of(reader.as_ref())?;
        let is_packed = [CODEC_ID_ALAC, CODEC_ID_FLAC].contains(&decoder.codec_params().codec);
        let mut this = Self {
            reader,
            decoder,
            track: id,
            time_base,
            end,
            chain: None,
            sample_rate: 0,
            channels: 0,
            channel_mask,
            format: SampleFormat::Int16,
            length,
            metadata: Metadata::default(),
            other_tracks: 0,
            lossless: !lossy,
            frame_bytes: None,
            trust_durations: false,
            skip: delay,
            position: 0,
            due: None,
            gap: 0,
            ahead: VecDeque::new(),
            chained: false,
            losses: Losses::default(),
            lost: Arc::default(),
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
        let is_plain =
            this.lossless && [FORMAT_ID_AIFF, FORMAT_ID_CAF].contains(&this.reader.format_info().format);
        this.frame_bytes = bits
            .filter(|_| is_plain && !is_packed)
            .map(|bits| u64::from(bits.div_ceil(8)) * this.channels as u64)
            .filter(|&bytes| bytes > 0);
        let is_audio =
            |track: &Track| track.codec_params.as_ref().is_some_and(|codec| codec.audio().is_some());
        this.other_tracks =
            this.reader.tracks().iter().filter(|track| is_audio(track)).count().saturating_sub(1);
        this.metadata = Metadata::of_demuxer(this.reader.as_mut());
        Ok(this)
    }

    /// Goes on with the recording that follows, if there is one.
    fn next_recording(&mut self) -> Result<bool, ReadError> {
        let Some(next) = self.chain.as_ref().and_then(Chain::next) else { return Ok(false) };
        self.reader = probed(&PROBE, Box::new(ReadOnlySource::new(next)))?;
        let before = self.length;
        self.go_on()?;
        self.length = before.zip(self.length).map(|(before, next)| before.saturating_add(next));
        Ok(true)
    }

    /// Decodes what the reader has come to.
    fn go_on(&mut self) -> Result<(), ReadError> {
        let AudioTrack { id, decoder, time_base, length, delay, .. } = AudioTrack::of(self.reader.as_ref())?;
        (self.track, self.decoder, self.time_base, self.length) = (id, decoder, time_base, length);
        (self.skip, self.due) = (delay, None);
        self.chained = true;
        Ok(())
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
            if self.gap > 0 {
                let count = self.gap.min(LONGEST_PACKET);
                self.gap -= count;
                self.position += count;
                self.losses.silent_samples += count;
                for channel in channels.iter_mut() {
                    channel.resize(channel.len() + count as usize, 0.0);
                }
                return Ok(());
            }
            let mut decoded = std::mem::take(&mut self.pending);
            if decoded.is_empty() {
                self.next_packet(&mut decoded)?;
                if self.gap > 0 {
                    // The packet comes after it.
                    self.pending = decoded;
                    continue;
                }
            }
            let length = decoded.first().map_or(0, Vec::len);
            let skip = usize::try_from(self.skip).unwrap_or(usize::MAX).min(length);
            self.skip -= skip as u64;
            self.position += (length - skip) as u64;
            for (channel, samples) in channels.iter_mut().zip(&decoded) {
                channel.extend(&samples[skip..]);
            }
            if length == 0 {
                self.at_end()?;
                if self.next_recording()? {
                    continue;
                }
                return Ok(());
            }
            if skip < length {
                return Ok(());
            }
        }
    }

    /// The next packet of the track; none at the end.
    fn take_packet(&mut self) -> Result<Option<Packet>, ReadError> {
        // Packets behind the announced end: padding if there are few of them, another recording otherwise.
        let end = self.end.unwrap_or(i64::MAX);
        loop {
            if let Some(packet) = self.ahead.front()
                && (self.chained || packet.pts.get() < end)
            {
                return Ok(self.ahead.pop_front());
            }
            match self.reader.next_packet() {
                Ok(Some(mut packet)) if packet.track_id == self.track => {
                    if packet.pts.get() >= end {
                        if self.ahead.len() >= MOST_PADDING && !self.chained {
                            self.chained = true;
                            self.length = None;
                            self.ahead.iter_mut().for_each(|packet| packet.trim_end = 0_u64.into());
                        }
                        if self.chained {
                            packet.trim_end = 0_u64.into();
                        }
                    }
                    self.ahead.push_back(packet);
                }
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                Err(SymphoniaError::IoError(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.losses.ends_early = true;
                    return Ok(None);
                }
                Err(SymphoniaError::IoError(error)) => return Err(ReadError::Io(error)),
                // Another Ogg recording, which does not say beforehand how long it is.
                Err(SymphoniaError::ResetRequired) => {
                    self.go_on()?;
                    self.length = None;
                }
                Err(error) => return Err(self.damaged(&error)),
            }
        }
    }

    /// Notes the silence before a packet, if the one due before it is missing.
    fn look_for_gap(&mut self, packet: &Packet) {
        let Some(time_base) = self.time_base else { return };
        if let Some(due) = self.due {
            let seconds = f64::from(time_base.numer.get()) / f64::from(time_base.denom.get())
                * packet.pts.get().saturating_sub(due) as f64;
            if (SHORTEST_GAP_SECONDS..LONGEST_GAP_SECONDS).contains(&seconds) {
                self.gap += (seconds * f64::from(self.sample_rate)).round() as u64;
                self.losses.damaged_packets += 1;
            }
        }
        let duration = packet.block_dur().get();
        // Without a duration there is nothing to expect.
        self.due =
            i64::try_from(duration).ok().filter(|&n| n > 0).map(|n| packet.pts.get().saturating_add(n));
    }

    /// Decodes the next packet with any samples in it; leaves `planes` empty at the end.
    fn next_packet(&mut self, planes: &mut Vec<Vec<f32>>) -> Result<(), ReadError> {
        let mut silence = 0_u64;
        loop {
            let Some(packet) = self.take_packet()? else { return Ok(()) };
            self.look_for_gap(&packet);
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
                    self.losses.silent_samples += silence;
                    return Ok(());
                }
                // Kept in time by silence, as the packets after it are probably sound.
                Err(SymphoniaError::DecodeError(_) | SymphoniaError::IoError(_)) => {
                    self.losses.damaged_packets += 1;
                    silence = silence.saturating_add(duration.min(LONGEST_PACKET));
                    if silence > 16 * LONGEST_PACKET {
                        return Err(self.damaged(&"no packet can be decoded any more"));
                    }
                }
                Err(error) => return Err(self.damaged(&error)),
            }
        }
    }

    /// What the recording lacks so far.
    pub(super) fn losses(&self) -> Losses {
        let mut losses = self.losses;
        losses.damaged_packets += self.lost.gaps.load(Relaxed);
        losses.silent_samples += self.lost.samples.load(Relaxed);
        losses.ends_early |= self.lost.ends_early.load(Relaxed);
        losses.other_recording |= self.lost.other_recording.load(Relaxed);
        losses
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

/// The length that a file declares, in bytes, and the tags that its demuxer leaves out.
fn declared(source: &mut Box<dyn ReadSeek>) -> io::Result<(Option<u64>, Vec<(String, String)>)> {
    source.rewind()?;
    let mut start = Vec::new();
    source.by_ref().take(declared::START_BYTES as u64).read_to_end(&mut start)?;
    if start.starts_with(b"caff") {
        let caf::Chunks { length, tags } = caf::chunks(source)?;
        return Ok((length, tags));
    }
    Ok((declared::length(&start), Vec::new()))
}

fn in_header(error: SymphoniaError) -> ReadError {
    match error {
        SymphoniaError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            ReadError::NotAudio("it ends within its header".into())
        }
        SymphoniaError::IoError(error) => ReadError::Io(error),
        // The probe's own words say no more.
        SymphoniaError::Unsupported(reason) if reason.starts_with("core (probe)") => {
            ReadError::NotAudio("unrecognised format".into())
        }
        SymphoniaError::Unsupported(reason) => ReadError::NotAudio(format!("no supported format ({reason})")),
        error => ReadError::NotAudio(error.to_string()),
    }
}
