//! Decoder of all formats that `pcm` does not decode, based on the symphonia crate.

mod clock;
mod open;
mod packets;
mod sbr;
mod track;

use super::chain::Chain;
use super::declared::MAX_LENGTH;
use super::error::ReadError;
use super::losses::Losses;
use super::matroska::About;
use super::metadata::Metadata;
use super::mpeg::Lost;
use super::ogg::Holes;
use alphamf_signal::{SampleFormat, counted};
use clock::PacketClock;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use symphonia::core::audio::GenericAudioBufferRef;
use symphonia::core::codecs::audio::AudioDecoder;
use symphonia::core::codecs::audio::well_known::{
    CODEC_ID_AAC, CODEC_ID_ALAC, CODEC_ID_FLAC, CODEC_ID_VORBIS,
};
use symphonia::core::errors::Error as SymphoniaError;
use symphonia::core::formats::well_known::{
    FORMAT_ID_AIFF, FORMAT_ID_CAF, FORMAT_ID_FLAC, FORMAT_ID_ISOMP4, FORMAT_ID_MKV, FORMAT_ID_MP3,
    FORMAT_ID_WAVE,
};
use symphonia::core::formats::{FormatId, FormatReader, Track};
use symphonia::core::io::ReadOnlySource;
use symphonia::core::packet::Packet;
use track::{AudioTrack, END_OF_MASK, PROBE, probed};

/// Limit on the samples that replace a damaged packet; real packets are shorter.
const MAX_PACKET: u64 = 1 << 16;

/// Limit on the silence that replaces missing packets: seconds, plus a multiple of the decoded length. A few bytes can
/// declare hours, but the track of one speaker of a call is mostly gaps.
const MAX_SILENCE: (u64, u64) = (600, 100);

/// Samples that may be missing at the end of a lossy recording without counting as a loss: encoders count their delay
/// and padding in various ways.
const LOSSY_SLACK: u64 = 1 << 13;

/// Like [`LOSSY_SLACK`], for MP3 without missing frames: two frames, as some encoders count the first, which has no
/// audio.
const MP3_SLACK: u64 = 2 * 1152;

/// How much earlier than declared a track may end, s, if the container counts its samples, as Ogg does.
const EXACT_END_SLACK_SECONDS: f64 = 0.005;
/// Like [`EXACT_END_SLACK_SECONDS`], for the only track of a file.
const END_SLACK_SECONDS: f64 = 0.15;
/// Like [`EXACT_END_SLACK_SECONDS`], for a declared length that other tracks may affect.
const LOOSE_END_SLACK_SECONDS: f64 = 0.5;

/// AAC packets that are searched for spectral band replication, and the minimum number required. About one in a hundred
/// packets without it matches by chance.
const SBR_PACKETS: (usize, usize) = (8, 3);

/// Decodes one audio track of a file or stream.
pub(super) struct CompressedDecoder {
    reader: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    /// Start of the padding, in units of the time base, if separate packets hold it.
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
    /// Bits of the packets decoded so far, and samples per channel in them.
    coded_bits: u64,
    coded_samples: u64,
    /// Bytes per frame (one sample of every channel), if the samples are uncompressed.
    frame_bytes: Option<u64>,
    /// Whether the samples extend to the end of the file, regardless of the declared length.
    is_open: bool,
    /// Whether packets are cut to the duration in the container if they decode to more samples.
    trust_durations: bool,
    /// Samples per channel still to be dropped at the start.
    skip: u64,
    /// Samples per channel after which the container discards the rest.
    limit: Option<u64>,
    /// Samples per channel returned so far.
    position: u64,
    clock: PacketClock,
    /// Declared end of the track, s, and how much earlier the track may end, s.
    declared_end: Option<(f64, f64)>,
    /// Samples per channel of silence before the next packet.
    gap: u64,
    /// Gaps that the demuxer omits: position in the demuxer's time and length, in units of the time base.
    gaps: VecDeque<(u64, u64)>,
    /// Sum of the omitted gaps before the current packet, in units of the time base.
    passed_gaps: u64,
    /// Holes in Ogg tracks.
    holes: Arc<Holes>,
    /// Hole whose following packets are being read ahead: its start and the end of the page after it, in units of the
    /// time base.
    hole: Option<(i64, i64)>,
    /// Whether another Ogg recording follows the packets read ahead.
    is_reset: bool,
    /// Packets read ahead.
    ahead: VecDeque<Packet>,
    /// Whether further recordings follow the first, so that its length is no limit.
    chained: bool,
    /// Whether the checksum of the present recording has been compared.
    is_verified: bool,
    losses: Losses,
    /// Losses of a stream, found before demuxing.
    lost: Arc<Lost>,
    /// Samples decoded on opening.
    pending: Vec<Vec<f32>>,
}

impl CompressedDecoder {
    /// Creates a decoder of a track. `about` describes the file if it is Matroska.
    fn new(reader: Box<dyn FormatReader>, track: Option<u32>, about: &About) -> Result<Self, ReadError> {
        Self::with_byte_order(reader, track, about, false)
    }

    /// Creates a decoder of a track. `little_endian` overrides a declared big-endian byte order of the samples.
    fn with_byte_order(
        reader: Box<dyn FormatReader>,
        track: Option<u32>,
        about: &About,
        little_endian: bool,
    ) -> Result<Self, ReadError> {
        let AudioTrack { id, decoder, time_base, length, end, bits, lossy, channel_mask, delay } =
            AudioTrack::of(reader.as_ref(), track, little_endian)?;
        let is_packed = [CODEC_ID_ALAC, CODEC_ID_FLAC].contains(&decoder.codec_params().codec);
        let mut this = Self {
            reader,
            decoder,
            track: id,
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
            coded_bits: 0,
            coded_samples: 0,
            frame_bytes: None,
            is_open: false,
            trust_durations: false,
            skip: delay,
            limit: None,
            position: 0,
            clock: PacketClock::new(time_base),
            declared_end: None,
            gap: 0,
            gaps: VecDeque::new(),
            passed_gaps: 0,
            holes: Arc::default(),
            hole: None,
            is_reset: false,
            ahead: VecDeque::new(),
            chained: false,
            is_verified: false,
            losses: Losses::default(),
            lost: Arc::default(),
            pending: Vec::new(),
        };
        this.refuse_sbr()?;
        // Some containers do not declare their format: the first packet does.
        let mut pending = Vec::new();
        this.next_packet(&mut pending)?;
        this.pending = pending;
        if this.channels == 0 {
            return Err(ReadError::NotAudio("no packet of it can be decoded".into()));
        }
        // The decoder inverts the coupling of more than two channels in the wrong order.
        if this.channels > 2 && this.decoder.codec_params().codec == CODEC_ID_VORBIS {
            return Err(ReadError::Unsupported("Vorbis with more than two channels".into()));
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
        this.metadata = Metadata::of_demuxer(this.reader.as_mut(), about.uid_of(this.track));
        // FLAC in Ogg stores the channel mask in a tag.
        if this.decoder.codec_params().codec == CODEC_ID_FLAC {
            let named = this.metadata.take_channel_mask().filter(|&mask| mask < END_OF_MASK);
            this.channel_mask = named.or(this.channel_mask);
        }
        if this.is(FORMAT_ID_MKV) && this.reader.tracks().len() == 1 {
            let about = this.reader.media_info();
            let seconds = about.time_base.zip(about.duration).and_then(|(base, n)| base.calc_duration(n));
            this.declared_end = seconds.map(|time| (time.as_secs_f64(), END_SLACK_SECONDS));
        }
        Ok(this)
    }

    /// Refuses AAC with spectral band replication that is not declared.
    fn refuse_sbr(&mut self) -> Result<(), ReadError> {
        if self.decoder.codec_params().codec != CODEC_ID_AAC {
            return Ok(());
        }
        let (most, least) = SBR_PACKETS;
        let mut packets = VecDeque::new();
        while packets.len() < most {
            match self.take_packet() {
                Ok(Some(packet)) => packets.push_back(packet),
                Ok(None) => break,
                Err(error) if packets.is_empty() => return Err(error),
                // Damage here does not discard the packets before it.
                Err(_) => {
                    self.losses.damaged_packets += 1;
                    break;
                }
            }
        }
        let has_sbr = packets.len() >= least && packets.iter().all(|packet| sbr::has_sbr(&packet.data));
        packets.append(&mut self.ahead);
        self.ahead = packets;
        if has_sbr { Err(ReadError::Unsupported("HE-AAC".into())) } else { Ok(()) }
    }

    /// Discards all samples of every channel after the first `limit`.
    fn end_at(&mut self, limit: u64) {
        self.limit = Some(limit);
        self.length = self.length.map(|length| length.min(limit));
    }

    /// Opens the next recording, if there is one.
    fn next_recording(&mut self) -> Result<bool, ReadError> {
        let Some(next) = self.chain.as_ref().and_then(Chain::next) else { return Ok(false) };
        self.reader = probed(&PROBE, Box::new(ReadOnlySource::new(next)))?;
        let before = self.length;
        self.switch_recording()?;
        self.length = before.zip(self.length).map(|(before, next)| before.saturating_add(next));
        Ok(true)
    }

    /// Replaces the track and its decoder with those of the next recording.
    fn switch_recording(&mut self) -> Result<(), ReadError> {
        let AudioTrack { id, decoder, time_base, length, delay, .. } =
            AudioTrack::of(self.reader.as_ref(), None, false)?;
        (self.track, self.decoder, self.length) = (id, decoder, length);
        (self.skip, self.clock, self.declared_end) = (delay, PacketClock::new(time_base), None);
        (self.chained, self.is_verified) = (true, false);
        Ok(())
    }

    /// Sets the sample format: 16 bits for lossy codecs, otherwise from the coded `bits` or the type of the decoded
    /// samples.
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

    /// Appends decoded samples to every channel; none at the end of the track.
    pub(super) fn decode(&mut self, channels: &mut [Vec<f32>]) -> Result<(), ReadError> {
        loop {
            let left = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.position));
            if left == 0 {
                self.declared_end = None;
                return self.at_end();
            }
            if self.gap > 0 {
                let count = self.gap.min(MAX_PACKET).min(left);
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
            let end = length.min(usize::try_from(left).unwrap_or(usize::MAX).saturating_add(skip));
            self.skip -= skip as u64;
            self.position += (end - skip) as u64;
            for (channel, samples) in channels.iter_mut().zip(&decoded) {
                channel.extend(&samples[skip..end]);
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

    /// Whether the demuxer is that of a format.
    fn is(&self, format: FormatId) -> bool {
        self.reader.format_info().format == format
    }

    /// Adds silence before a packet if the packet expected before it is missing.
    fn look_for_gap(&mut self, packet: &Packet) -> Result<(), ReadError> {
        if let Some(gap) = self.clock.gap_before(packet) {
            let count = (gap.seconds * f64::from(self.rate())).round() as u64;
            self.check_silence(count)?;
            self.gap += count;
            self.losses.damaged_packets += u64::from(!gap.is_counted);
        }
        Ok(())
    }

    /// Returns an error if `more` samples of silence would exceed [`MAX_SILENCE`].
    fn check_silence(&self, more: u64) -> Result<(), ReadError> {
        let limit = MAX_SILENCE.0 * u64::from(self.rate()) + MAX_SILENCE.1 * self.coded_samples;
        let silence = self.losses().silent_samples.saturating_add(self.gap).saturating_add(more);
        if silence > limit { Err(self.damaged(&"nearly all packets are missing")) } else { Ok(()) }
    }

    /// Sample rate in Hz: from the decoded packets, or from the header before the first packet.
    fn rate(&self) -> u32 {
        let of_header = || self.decoder.codec_params().sample_rate.unwrap_or(48_000);
        if self.sample_rate > 0 { self.sample_rate } else { of_header() }
    }

    /// Decodes a packet; returns its sample rate in Hz and its samples per channel, or `None` if it is damaged.
    ///
    /// A decoder that panics on a damaged packet is replaced.
    fn decode_packet(&mut self, packet: &Packet) -> Result<Option<(u32, usize)>, ReadError> {
        let parameters = self.decoder.codec_params();
        if parameters.codec == CODEC_ID_FLAC && is_too_wide(&packet.data, parameters.bits_per_sample) {
            return Err(ReadError::Unsupported("32-bit FLAC with channels coded by their difference".into()));
        }
        let (decoder, has_begun) = (&mut self.decoder, self.channels > 0);
        let decoded = panic::catch_unwind(AssertUnwindSafe(|| match decoder.decode(packet) {
            Ok(buffer) => Ok(Some((buffer.spec().rate(), buffer.frames()))),
            Err(SymphoniaError::DecodeError(_) | SymphoniaError::IoError(_)) => Ok(None),
            // Damage can appear as an unsupported feature.
            Err(SymphoniaError::Unsupported(_)) if has_begun => Ok(None),
            Err(error) => Err(error),
        }));
        match decoded {
            Ok(Ok(decoded)) => Ok(decoded),
            Ok(Err(error)) => Err(self.damaged(&error)),
            Err(_) => {
                self.decoder = AudioTrack::of(self.reader.as_ref(), Some(self.track), false)?.decoder;
                Ok(None)
            }
        }
    }

    /// Decodes the next packet that contains samples; leaves `planes` empty at the end of the track.
    fn next_packet(&mut self, planes: &mut Vec<Vec<f32>>) -> Result<(), ReadError> {
        let mut silence = 0_u64;
        loop {
            let Some(packet) = self.take_packet()? else { return Ok(()) };
            self.check_silence(silence)?;
            self.look_for_gap(&packet)?;
            let decoded = self.decode_packet(&packet)?;
            self.clock.pass(&packet, decoded.map(|(rate, frames)| frames as f64 / f64::from(rate.max(1))));
            let Some((sample_rate, frames)) = decoded.filter(|&(_, frames)| self.is_whole(&packet, frames))
            else {
                // Replaced with silence, so that the following packets stay in time.
                self.losses.damaged_packets += 1;
                let (duration, _) = self.clock.samples(packet.dur.get(), self.rate());
                silence = silence.saturating_add(duration.min(MAX_PACKET));
                if silence > 16 * MAX_PACKET {
                    return Err(self.damaged(&"no packet can be decoded any more"));
                }
                continue;
            };
            self.coded_bits += 8 * packet.data.len() as u64;
            self.coded_samples += frames as u64;
            let buffer = self.decoder.last_decoded();
            let count = buffer.spec().channels().count();
            if self.channels == 0 {
                (self.sample_rate, self.channels) = (sample_rate, count);
            } else if (sample_rate, count) != (self.sample_rate, self.channels) {
                return Err(ReadError::Unsupported(format!(
                    "a change from {} at {} Hz to {count} at {sample_rate} Hz midway",
                    counted(self.channels as u64, "channel"),
                    self.sample_rate
                )));
            }
            if frames == 0 && silence == 0 {
                continue;
            }
            buffer.copy_to_vecs_planar(planes);
            if self.decoder.codec_params().codec == CODEC_ID_ALAC {
                sort_alac(planes);
            }
            let length = self.declared_samples(&packet, frames);
            for plane in planes.iter_mut() {
                plane.truncate(length);
                plane.splice(..0, std::iter::repeat_n(0.0, silence as usize));
            }
            self.losses.silent_samples += silence;
            return Ok(());
        }
    }

    /// Number of decoded samples per channel of a packet, without the padding.
    fn declared_samples(&self, packet: &Packet, decoded: usize) -> usize {
        let (declared, error) = self.clock.samples(packet.dur.get(), self.rate());
        // A duration is rounded to its unit.
        let is_padded = (decoded as u64).saturating_sub(declared) > error;
        if self.trust_durations && packet.dur.get() > 0 && is_padded { declared as usize } else { decoded }
    }

    /// Whether a packet is undamaged, as far as its codec permits a check. ALAC has no checksums, but ends with a
    /// marker and zero bits, and MP4 declares the number of samples.
    fn is_whole(&self, packet: &Packet, frames: usize) -> bool {
        const END: u16 = 7;
        if self.decoder.codec_params().codec != CODEC_ID_ALAC {
            return true;
        }
        let end = packet.data.last_chunk::<2>().map_or(0, |end| u16::from_be_bytes(*end));
        let ends_with_marker = end.trailing_zeros() < 8 && end >> end.trailing_zeros() & END == END;
        let (declared, error) = self.clock.samples(packet.dur.get(), self.rate());
        ends_with_marker && (!self.is(FORMAT_ID_ISOMP4) || declared.abs_diff(frames as u64) <= error)
    }

    /// Mean bit rate of a lossy codec so far, bit/s per channel.
    pub(super) fn lossy_bit_rate(&self) -> Option<f64> {
        let seconds = self.coded_samples as f64 / f64::from(self.sample_rate);
        (!self.lossless && seconds > 0.0).then(|| self.coded_bits as f64 / seconds / self.channels as f64)
    }

    /// Losses so far.
    pub(super) fn losses(&self) -> Losses {
        let mut losses = self.losses;
        losses += Losses {
            damaged_packets: self.lost.gaps.load(Relaxed),
            silent_samples: self.lost.samples.load(Relaxed),
            ends_early: self.lost.ends_early.load(Relaxed),
            other_recording: self.lost.other_recording.load(Relaxed),
            ..Losses::default()
        };
        losses
    }

    /// Compares the decoded length with the declared one at the end of the track.
    fn at_end(&mut self) -> Result<(), ReadError> {
        // A WAV file without a declared length also extends to the end of the file.
        let is_whole =
            self.is(FORMAT_ID_WAVE) && self.length.is_none_or(|expected| self.position >= expected);
        if self.is_open || is_whole {
            self.losses.ends_early = false;
        }
        // WAV and MP3 declare their length with the delay and the padding of the encoder.
        let is_exact = [FORMAT_ID_WAVE, FORMAT_ID_MP3].iter().any(|&format| self.is(format));
        let is_cut = is_exact && self.losses().ends_early;
        // After a gap, the length is an estimate.
        let is_gapless = self.is(FORMAT_ID_MP3) && self.lost.gaps.load(Relaxed) == 0;
        let slack = if self.lossless || is_cut {
            0
        } else if is_gapless {
            MP3_SLACK
        } else {
            LOSSY_SLACK
        };
        if let Some(expected) = self.length.filter(|&expected| self.position.saturating_add(slack) < expected)
        {
            // Reported without an error: uncompressed samples may end anywhere, and MP4 stores the position of each
            // packet.
            if self.frame_bytes.is_none() && !self.is(FORMAT_ID_ISOMP4) {
                return Err(ReadError::Truncated { expected, found: self.position });
            }
            self.losses.missing_samples = expected - self.position;
            self.losses.ends_early = true;
        } else if let Some(((declared, slack), found)) = self.declared_end.take().zip(self.clock.seconds())
            && found + slack < declared
        {
            let missing = ((declared - found) * f64::from(self.sample_rate)) as u64;
            self.losses.missing_samples = Some(missing).filter(|&missing| missing <= MAX_LENGTH).unwrap_or(0);
        }
        // The demuxer drops an incomplete last frame.
        if let Some(chain) = self.chain.as_ref().filter(|_| self.length.is_none() && !self.losses.any()) {
            self.losses.ends_early = chain.ends_within_frame();
        }
        self.verify();
        Ok(())
    }

    /// Compares the samples of a complete FLAC recording with their checksum. In other containers, the checksum may be
    /// that of a longer recording from which the samples were cut.
    fn verify(&mut self) {
        let is_complete = self.losses.damaged_packets == 0
            && self.length.is_none_or(|expected| expected == self.position)
            && !std::mem::replace(&mut self.is_verified, true);
        if is_complete && self.is(FORMAT_ID_FLAC) {
            self.losses.checksum_mismatch |= self.decoder.finalize().verify_ok == Some(false);
        }
    }

    fn damaged(&self, reason: &dyn std::fmt::Display) -> ReadError {
        ReadError::Damaged { sample: self.position, reason: reason.to_string() }
    }
}

/// Whether a FLAC frame has a 33-bit side channel (RFC 9639, section 9.1), which the decoder turns into noise. `bits`
/// is the sample size of the stream, which applies if the frame header has none.
fn is_too_wide(frame: &[u8], bits: Option<u32>) -> bool {
    const OF_STREAM: u8 = 0;
    const IS_32: u8 = 7;
    let Some(byte) = frame.get(3) else { return false };
    let (channels, size) = (byte >> 4, byte >> 1 & 7);
    (8..=10).contains(&channels) && (size == IS_32 || size == OF_STREAM && bits == Some(32))
}

/// Sorts the channels of ALAC by speaker position. With seven or eight channels, the decoder puts the rear left and
/// right ones after channels that should follow them.
fn sort_alac(planes: &mut [Vec<f32>]) {
    match planes.len() {
        7 => planes[4..].rotate_left(1),
        8 => planes[4..].rotate_left(2),
        _ => {}
    }
}
