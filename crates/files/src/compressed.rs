//! Every format but WAV and raw samples, by the symphonia crate.

mod track;

use super::caf;
use super::chain::Chain;
use super::declared::{self, Measured};
use super::error::ReadError;
use super::losses::Losses;
use super::matroska;
use super::metadata::Metadata;
use super::mp4;
use super::mpeg::{self, Lost, Mended};
use super::source::ReadSeek;
use alphamf_signal::SampleFormat;
use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use symphonia::core::audio::GenericAudioBufferRef;
use symphonia::core::codecs::audio::AudioDecoder;
use symphonia::core::codecs::audio::well_known::{CODEC_ID_ALAC, CODEC_ID_FLAC};
use symphonia::core::errors::Error as SymphoniaError;
use symphonia::core::formats::well_known::{FORMAT_ID_AIFF, FORMAT_ID_CAF};
use symphonia::core::formats::{FormatReader, Track};
use symphonia::core::io::{MediaSource, ReadOnlySource};
use symphonia::core::packet::Packet;
use symphonia::core::units::TimeBase;
use track::{AudioTrack, Declared, MP4_PROBE, PROBE, Seekable, probed};

/// Limit on the samples that replace a damaged packet; real packets are shorter.
const LONGEST_PACKET: u64 = 1 << 16;

/// Samples that a lossy recording may lack at its end without loss: encoders count their delay and padding in various
/// ways.
const LOSSY_SLACK: u64 = 1 << 13;

/// Shortest gap between packets that counts as a loss, s; containers round times to a millisecond.
const SHORTEST_GAP_SECONDS: f64 = 0.005;

/// Longest gap that counts as a loss, s; a longer one is an error of the time stamps.
const LONGEST_GAP_SECONDS: f64 = 600.0;

/// Packets behind the announced end that may be padding; more of them are another recording.
const MAX_PADDING: usize = 4;

/// Decodes one audio track of a file or stream.
pub(super) struct CompressedDecoder {
    reader: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    time_base: Option<TimeBase>,
    /// Start of the padding, in units of the time base, if it has packets of its own.
    end: Option<i64>,
    /// Recordings that follow the present one.
    chain: Option<Chain>,
    pub(super) sample_rate: u32,
    pub(super) channels: usize,
    /// Speaker positions, as the bits of `dwChannelMask`, if the file has them.
    pub(super) channel_mask: Option<u32>,
    pub(super) format: SampleFormat,
    /// Samples per channel, if the file declares them.
    pub(super) length: Option<u64>,
    pub(super) metadata: Metadata,
    /// Audio tracks besides this one.
    pub(super) other_tracks: usize,
    lossless: bool,
    /// Bytes of one sample of all channels, if they are uncompressed.
    frame_bytes: Option<u64>,
    /// Whether packets are cut to the duration in the container if they decode to more samples.
    trust_durations: bool,
    /// Samples per channel still to be dropped at the start.
    skip: u64,
    /// Samples per channel passed on so far.
    position: u64,
    /// Expected time of the next packet, in units of the time base.
    due: Option<i64>,
    /// Samples per channel of silence before the next packet.
    gap: u64,
    /// Packets read ahead.
    ahead: VecDeque<Packet>,
    /// Whether further recordings follow the first, so that its length is no limit.
    chained: bool,
    losses: Losses,
    /// Losses of the stream of frames, found before it was demuxed.
    lost: Arc<Lost>,
    /// Samples decoded by opening.
    pending: Vec<Vec<f32>>,
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
        let Declared { length: declared, tags, size_at } =
            Declared::of(&mut source).map_err(ReadError::Io)?;
        let cut_bytes =
            declared.filter(|&declared| declared::is_cut(declared, length)).map_or(0, |end| end - length);
        source.rewind().map_err(ReadError::Io)?;
        // Demuxers that can seek read the end first and refuse a file without one; that of CAF always does.
        let source: Box<dyn MediaSource> = match size_at {
            Some(size_at) if cut_bytes > 0 => {
                let mended = caf::Mended::new(source, size_at, length).map_err(ReadError::Io)?;
                Box::new(Seekable { source: Box::new(mended), length })
            }
            None if cut_bytes > 0 => Box::new(ReadOnlySource::new(source)),
            _ => Box::new(Seekable { source, length }),
        };
        let mut this = Self::new(probed(&PROBE, source)?)?;
        if cut_bytes > 0 {
            this.losses.ends_early = true;
            // Reported, but no error.
            this.length = None;
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
        // Some containers do not declare their format: the first packet does.
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

    /// Opens the next recording, if there is one.
    fn next_recording(&mut self) -> Result<bool, ReadError> {
        let Some(next) = self.chain.as_ref().and_then(Chain::next) else { return Ok(false) };
        self.reader = probed(&PROBE, Box::new(ReadOnlySource::new(next)))?;
        let before = self.length;
        self.go_on()?;
        self.length = before.zip(self.length).map(|(before, next)| before.saturating_add(next));
        Ok(true)
    }

    /// Makes a decoder for the present track.
    fn go_on(&mut self) -> Result<(), ReadError> {
        let AudioTrack { id, decoder, time_base, length, delay, .. } = AudioTrack::of(self.reader.as_ref())?;
        (self.track, self.decoder, self.time_base, self.length) = (id, decoder, time_base, length);
        (self.skip, self.due) = (delay, None);
        self.chained = true;
        Ok(())
    }

    /// The sample format for the codec, and whether the declared length is exact.
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
                    // The packet follows the silence.
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
                        if self.ahead.len() >= MAX_PADDING && !self.chained {
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
                // Another Ogg recording, whose length is unknown before its end.
                Err(SymphoniaError::ResetRequired) => {
                    self.go_on()?;
                    self.length = None;
                }
                Err(error) => return Err(self.damaged(&error)),
            }
        }
    }

    /// Adds silence before a packet if the expected one before it is missing.
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
        // Without a duration, the time of the next packet is unknown.
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
                // Replaced with silence, so that the following packets stay in time.
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

    /// Losses so far.
    pub(super) fn losses(&self) -> Losses {
        let mut losses = self.losses;
        losses.damaged_packets += self.lost.gaps.load(Relaxed);
        losses.silent_samples += self.lost.samples.load(Relaxed);
        losses.ends_early |= self.lost.ends_early.load(Relaxed);
        losses.other_recording |= self.lost.other_recording.load(Relaxed);
        losses
    }

    fn at_end(&mut self) -> Result<(), ReadError> {
        let slack = if self.lossless { 0 } else { LOSSY_SLACK };
        match self.length {
            // Uncompressed samples may end anywhere: reported, but no error.
            Some(expected) if self.position < expected && self.frame_bytes.is_some() => {
                self.losses.missing_samples = expected - self.position;
                self.losses.ends_early = true;
                Ok(())
            }
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
