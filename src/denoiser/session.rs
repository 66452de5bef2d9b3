//! Block-by-block denoising: speech, residual and statistics.

mod statistics;
#[cfg(test)]
mod tests;

use super::block::Snapshots;
use super::front_end::check_block;
use super::stream::{DenoiseStream, Summary};
use super::{DenoiseError, Denoiser, NoiseProfile, SpeechLevels, SpeechTrack, append};
use crate::array::Microphones;
use crate::random::SeedTree;
use crate::range::within;
use crate::repair::{Clipping, MAX_DECLIPPING_RATIO};
use crate::signal::progress::ProgressCallback;
use crate::signal::{SampleFormat, check_recording};
use serde::{Deserialize, Serialize};
pub use statistics::{MonteCarloError, Statistics};
use std::fmt;
use std::sync::Arc;

/// Settings of a [`Session`], beside those of its denoiser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// Fraction of the denoised signal in the output, 0 to 1; the rest is the input.
    pub mix: f32,
    /// Treatment of the channels.
    pub channels: ChannelMode,
    /// Whether to restore clipped samples. Speech, residual, mix and levels are then halved (6 dB softer). Restored
    /// peaks, up to twice the clipping level, thus stay within the range of the recording.
    pub declip: bool,
    /// Whether [`Session::dither`] returns seeds for integer output. Samples of a session are not dithered: the writer
    /// applies the dither. Without dither, pauses may become digital silence, and faint noise may gate.
    pub dither: bool,
    /// Whether to return the residual too.
    pub residual: bool,
    /// Whether to record the standard deviation of the gain, for [`Session::take_gain_std`].
    pub gain_std: bool,
    /// Whether to record the levels of speech, for [`Session::take_levels`].
    pub levels: bool,
    /// Whether to record the probability of speech and its sections, for [`Session::take_speech_track`].
    pub speech_track: bool,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            mix: 1.0,
            channels: ChannelMode::default(),
            declip: false,
            dither: true,
            residual: false,
            gain_std: false,
            levels: false,
            speech_track: false,
        }
    }
}

impl SessionSettings {
    /// Factor applied to all samples.
    fn scale(&self) -> f32 {
        if self.declip { MAX_DECLIPPING_RATIO.recip() } else { 1.0 }
    }
}

/// Treatment of the channels of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelMode {
    /// All channels share one gain until they hold different sounds, as with one microphone per speaker. From that
    /// block (7.7 s) on, each channel is denoised independently. Reports always cover all channels together.
    #[default]
    Auto,
    /// All channels share one gain throughout, which keeps the stereo image.
    Shared,
    /// Each channel is denoised independently.
    Separate,
    /// The channels are those of one array of 2 to 16 microphones. Speech is separated from noise by direction as well,
    /// and each output channel holds the speech of its input channel.
    Array,
}

/// Finished samples of a recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionOutput {
    /// Denoised samples by channel.
    pub speech: Vec<Vec<f32>>,
    /// Input minus denoised samples, by channel; without channels if not requested.
    pub residual: Vec<Vec<f32>>,
}

/// Denoises a recording of any length block by block, in bounded memory, with mix, residual, channel mode and statistics;
/// made by [`Denoiser::session`].
///
/// ```
/// use alphamf::{Denoiser, Dictionary, Settings};
/// use alphamf::denoiser::{ChannelMode, SessionSettings};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let denoiser = Denoiser::new(Dictionary::built_in()?, Settings::fast())?;
/// let settings = SessionSettings { mix: 0.8, channels: ChannelMode::Separate, ..SessionSettings::default() };
/// let mut session = denoiser.session(8_000, 2, settings)?;
/// let hum: Vec<f32> = (0..4_000).map(|n| 0.1 * (n as f32 * 0.04).sin()).collect();
/// let mut left = session.push(&[&hum, &hum])?.speech.remove(0);
/// left.extend(&session.finish()?.speech[0]);
/// assert_eq!((left.len(), session.statistics().channels), (4_000, 2));
/// # Ok(())
/// # }
/// ```
pub struct Session {
    settings: SessionSettings,
    sample_rate: u32,
    denoiser: Denoiser,
    /// One stream for all channels, or one per channel.
    streams: Vec<DenoiseStream>,
    /// Input samples of every channel whose output is not finished.
    waiting: Vec<Vec<f32>>,
    /// Clipped samples, by channel.
    clipping: Vec<Clipping>,
    /// Faults of the microphones of an array.
    microphones: Option<Microphones>,
    /// Finished samples per channel.
    samples: u64,
    /// Whether the session has ended, or a stream has failed.
    ended: bool,
}

impl fmt::Debug for Session {
    /// Formats settings and position: the state of the streams takes megabytes.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, sample_rate, samples, ended, .. } = self;
        formatter
            .debug_struct("Session")
            .field("settings", settings)
            .field("sample_rate", sample_rate)
            .field("samples", samples)
            .field("ended", ended)
            .finish_non_exhaustive()
    }
}

impl Session {
    pub(super) fn new(
        denoiser: &Denoiser,
        sample_rate: u32,
        channels: usize,
        settings: SessionSettings,
    ) -> Result<Self, DenoiseError> {
        within("mix", settings.mix, 0.0..=1.0)?;
        check_recording(sample_rate, channels)?;
        let (count, width) = match settings.channels {
            ChannelMode::Auto | ChannelMode::Shared | ChannelMode::Array => (1, channels),
            ChannelMode::Separate => (channels, 1),
        };
        let microphones =
            (settings.channels == ChannelMode::Array).then(|| Microphones::new(channels, sample_rate));
        let stream = |_| {
            let mut stream = DenoiseStream::new(Arc::clone(&denoiser.separator), sample_rate, width)?;
            if microphones.is_some() {
                stream.filter_as_array()?;
            }
            if settings.channels == ChannelMode::Auto && channels > 1 {
                stream.divide_different();
            }
            if settings.declip {
                stream.restore_clipped(settings.scale());
            }
            if settings.gain_std {
                stream.record_gain_std();
            }
            if settings.levels {
                stream.record_levels()?;
            }
            if settings.speech_track {
                stream.record_speech_track();
            }
            Ok(stream)
        };
        Ok(Self {
            streams: (0..count).map(stream).collect::<Result<_, DenoiseError>>()?,
            settings,
            sample_rate,
            denoiser: denoiser.clone(),
            waiting: vec![Vec::new(); channels],
            clipping: vec![Clipping::default(); channels],
            microphones,
            samples: 0,
            ended: false,
        })
    }

    /// Samples per channel of a block; a good size for [`push`](Self::push).
    #[must_use]
    pub fn block_samples(&self) -> usize {
        self.streams.first().map_or(1, DenoiseStream::block_samples)
    }

    /// Maximum number of samples per channel that have been pushed and not returned after a [`push`](Self::push).
    #[must_use]
    pub fn latency(&self) -> usize {
        self.streams.first().map_or(0, DenoiseStream::latency)
    }

    /// Starts the noise estimate from the profile of a noise section with all channels of the recording.
    ///
    /// # Errors
    /// [`DenoiseError::NoNoise`] if the section is silent or shorter than a window, [`DenoiseError::NoiseRate`] or
    /// [`DenoiseError::Channels`] if it has another sample rate or number of channels, [`DenoiseError::NoiseWindow`] if a denoiser
    /// whose dictionary has another window made it, and [`DenoiseError::Started`] after the first samples.
    pub fn set_noise_profile(&mut self, noise: &NoiseProfile) -> Result<(), DenoiseError> {
        if self.ended || self.received() > 0 {
            return Err(DenoiseError::Started);
        }
        let width = self.width();
        if let Some(stream) = self.streams.first() {
            noise.check(stream.stft(), self.waiting.len())?;
        }
        let scale = self.settings.scale().powi(2);
        let scaled = |mut powers: Vec<Option<Vec<f32>>>| {
            powers.iter_mut().flatten().flatten().for_each(|power| *power *= scale);
            powers
        };
        let powers = scaled(noise.powers(width).ok_or(DenoiseError::NoNoise)?);
        for (stream, power) in self.streams.iter_mut().zip(powers) {
            if let Some(power) = power {
                stream.set_noise_power(power);
            }
        }
        if let (Some(stream), Some(powers)) = (self.streams.first_mut(), noise.powers(1)) {
            stream.set_noise_powers(scaled(powers));
        }
        Ok(())
    }

    /// Denoises the next samples of every channel and returns the finished ones, which may be fewer or more. A session
    /// that was cancelled or failed has ended.
    ///
    /// # Errors
    /// [`DenoiseError::Channels`] or [`DenoiseError::Signal`] if the number of channels is wrong, their lengths differ,
    /// or a sample is not finite: the block is rejected. [`DenoiseError::Finished`] after its end.
    pub fn push(&mut self, block: &[&[f32]]) -> Result<SessionOutput, DenoiseError> {
        self.push_with_progress(block, &mut ())
    }

    /// Like [`push`](Self::push); `progress` receives the duration of the finished part of the recording, s.
    ///
    /// # Errors
    /// As [`push`](Self::push), and [`DenoiseError::Cancelled`] if `progress` cancels it.
    pub fn push_with_progress(
        &mut self,
        block: &[&[f32]],
        progress: &mut dyn ProgressCallback,
    ) -> Result<SessionOutput, DenoiseError> {
        if self.ended {
            return Err(DenoiseError::Finished);
        }
        check_block(block, self.waiting.len())?;
        self.clipping.iter_mut().zip(block).for_each(|(clipping, samples)| clipping.count(samples));
        if let Some(microphones) = &mut self.microphones {
            microphones.add(block);
        }
        // One part at a time: otherwise a whole recording would be in memory several times.
        let (samples, part) = (block[0].len(), self.block_samples());
        let mut whole = self.mixed(vec![Vec::new(); block.len()]);
        for start in (0..samples).step_by(part) {
            let part: Vec<&[f32]> =
                block.iter().map(|channel| &channel[start..samples.min(start + part)]).collect();
            let done = self.push_part(&part, progress)?;
            append(&mut whole.speech, done.speech);
            append(&mut whole.residual, done.residual);
        }
        Ok(whole)
    }

    fn push_part(
        &mut self,
        part: &[&[f32]],
        progress: &mut dyn ProgressCallback,
    ) -> Result<SessionOutput, DenoiseError> {
        let (scale, width) = (self.settings.scale(), self.width());
        for (waiting, samples) in self.waiting.iter_mut().zip(part) {
            waiting.extend(samples.iter().map(|x| scale * x));
        }
        self.advance(progress, |stream, index, progress| {
            stream.push(&part[index * width..(index + 1) * width], progress)
        })
    }

    /// Ends the recording and returns the remaining samples.
    ///
    /// # Errors
    /// [`DenoiseError::Finished`] if it has ended already.
    pub fn finish(&mut self) -> Result<SessionOutput, DenoiseError> {
        self.finish_with_progress(&mut ())
    }

    /// Like [`finish`](Self::finish); `progress` receives the duration of the finished part of the recording, s.
    ///
    /// # Errors
    /// As [`finish`](Self::finish), and [`DenoiseError::Cancelled`] if `progress` cancels it.
    pub fn finish_with_progress(
        &mut self,
        progress: &mut dyn ProgressCallback,
    ) -> Result<SessionOutput, DenoiseError> {
        self.finish_with_snapshots(progress, None)
    }

    /// Like [`finish_with_progress`](Self::finish_with_progress), with snapshots of a recording of one block and one stream.
    pub(super) fn finish_with_snapshots(
        &mut self,
        progress: &mut dyn ProgressCallback,
        mut snapshots: Option<Snapshots<Vec<Vec<f32>>>>,
    ) -> Result<SessionOutput, DenoiseError> {
        if std::mem::replace(&mut self.ended, true) {
            return Err(DenoiseError::Finished);
        }
        self.advance(progress, |stream, _, progress| stream.finish(progress, snapshots.take()))
    }

    /// Returns the standard deviation of the gain over the posterior draws (bins x frames, column-major, 0 to 0.5) of the frames
    /// finished since the last call: one matrix for all channels, or one each. It is the deviation of the model's gain,
    /// before fusion with speech presence; above the dictionary's band (8 kHz) it is 0.
    pub fn take_gain_std(&mut self) -> Vec<Vec<f32>> {
        self.streams.iter_mut().map(DenoiseStream::take_gain_std).collect()
    }

    /// Returns the levels of speech in the slots finished since the last call: for all channels, or for each. Levels
    /// exclude the input in the mix.
    pub fn take_levels(&mut self) -> Vec<SpeechLevels> {
        self.streams.iter_mut().map(DenoiseStream::take_levels).collect()
    }

    /// Returns the probability of speech in the slots finished since the last call, and the sections with speech that ended:
    /// one track for all channels, or one each.
    pub fn take_speech_track(&mut self) -> Vec<SpeechTrack> {
        self.streams.iter_mut().map(DenoiseStream::take_speech_track).collect()
    }

    /// Statistics of the samples so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let summaries: Vec<Summary> = self.streams.iter().map(DenoiseStream::summary).collect();
        Statistics {
            sample_rate: self.sample_rate,
            channels: self.waiting.len(),
            samples: self.samples,
            duration_seconds: self.seconds(self.samples),
            microphone_faults: self.microphones.as_ref().map(Microphones::faults).unwrap_or_default(),
            clipped_input_samples: self.clipping.iter().map(Clipping::samples).sum(),
            ..Statistics::of_streams(&summaries, self.settings.mix.into(), self.denoiser.settings().draws())
        }
    }

    /// Seeds of the dither for output stored in `to` from input in `from`; `None` if dither is off, or if the samples keep their
    /// codes. They differ from the seeds of all blocks.
    #[must_use]
    pub fn dither(&self, from: SampleFormat, to: SampleFormat) -> Option<SeedTree> {
        // Samples that are neither filtered nor reduced in depth keep their codes.
        let changed = self.settings.mix > 0.0 || self.settings.declip || to.bits() < from.bits();
        let seeds = || SeedTree::new(self.denoiser.settings().seed).child(u64::MAX);
        (self.settings.dither && changed && to.is_integer()).then(seeds)
    }

    /// Number of channels of a stream.
    fn width(&self) -> usize {
        self.waiting.len() / self.streams.len()
    }

    /// Number of input samples per channel so far.
    fn received(&self) -> u64 {
        self.samples + self.waiting.first().map_or(0, |waiting| waiting.len() as u64)
    }

    fn seconds(&self, samples: u64) -> f64 {
        samples as f64 / f64::from(self.sample_rate)
    }

    /// Runs every stream in turn.
    fn advance(
        &mut self,
        progress: &mut dyn ProgressCallback,
        mut work: impl FnMut(
            &mut DenoiseStream,
            usize,
            &mut dyn ProgressCallback,
        ) -> Result<Vec<Vec<f32>>, DenoiseError>,
    ) -> Result<SessionOutput, DenoiseError> {
        let before = self.seconds(self.samples);
        let span = self.seconds(self.received()) - before;
        let fraction = 1.0 / self.streams.len() as f64;
        let mut speech = Vec::with_capacity(self.waiting.len());
        for (index, stream) in self.streams.iter_mut().enumerate() {
            let mut progress = |seconds: f64| {
                let done = index as f64 * span + (seconds - before).clamp(0.0, span);
                progress.report(before + fraction * done)
            };
            let done = work(stream, index, &mut progress);
            // After an error, the channels would have different lengths.
            self.ended |= done.is_err();
            speech.extend(done?);
        }
        Ok(self.mixed(speech))
    }

    /// Mixes denoised samples with the input.
    fn mixed(&mut self, mut speech: Vec<Vec<f32>>) -> SessionOutput {
        let mix = self.settings.mix;
        let mut residual = Vec::new();
        self.samples += speech.first().map_or(0, |samples| samples.len() as u64);
        for (waiting, result) in self.waiting.iter_mut().zip(&mut speech) {
            let before: Vec<f32> = waiting.drain(..result.len()).collect();
            if mix < 1.0 {
                for (after, before) in result.iter_mut().zip(&before) {
                    *after = mix * *after + (1.0 - mix) * before;
                }
            }
            if self.settings.residual {
                residual.push(before.iter().zip(&*result).map(|(before, after)| before - after).collect());
            }
        }
        SessionOutput { speech, residual }
    }
}
