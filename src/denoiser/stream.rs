//! Denoising block by block: input frames, inference per block, output samples.

mod array_floor;
mod difference;
mod memory;
mod output;
mod record;
mod removed_hum;
mod second_pass;
mod sounding;
#[cfg(test)]
mod tests;

use super::front_end::{BLOCK_FRAMES, FrontEnd};
use super::levels::{LevelMeter, QuantileNet, SpeechLevels};
use super::speech_track::{SpeechTrack, TrackMeter};
use super::{DenoiseError, append};
use crate::array::{ARRAY_CHANNELS, SpatialFilter};
use crate::decibels::amplitude;
use crate::denoiser::block::{BlockResult, Request, Separator, Snapshots};
use crate::model::NoiseModel;
use crate::random::SeedTree;
use crate::signal::progress::{self, ProgressCallback};
use crate::transform::{Spectrogram, Stft};
use crate::wiener::{GainSettings, Strength, sparing};
use array_floor::ArrayFloor;
use difference::ChannelDifference;
use memory::{BlockGains, BlockMemory, FrameGains, OVERLAP_FRAMES, Span, of_channel};
use output::Output;
use record::Record;
pub(super) use record::Summary;
use removed_hum::RemovedHum;
use second_pass::SecondPass;
use sounding::Sounding;
use std::sync::Arc;

/// Denoises channels in blocks as their samples arrive, in bounded memory. All channels share one gain; optionally each
/// has its own gain from the first block on in which they hold different sounds.
///
/// Blocks overlap, and carry over the state of the noise and the channel. The result does not depend on how the samples
/// are divided into calls of [`push`](Self::push).
pub(super) struct DenoiseStream {
    separator: Arc<Separator>,
    /// Front end from samples to frames.
    front_end: FrontEnd,
    /// State between blocks: one for all channels, or one for each.
    memories: Vec<BlockMemory>,
    /// Detection of channels that hold different sounds, until they are divided.
    division: Option<Division>,
    /// Synthesis from frames to samples.
    output: Output,
    /// Hum that was removed from the input.
    hum: RemovedHum,
    /// `None` unless the channels are those of one microphone array.
    array: Option<Array>,
    /// Minimum gain of both passes of an array together; `None` outside the second pass, or if each pass has its own.
    array_floor: Option<ArrayFloor>,
    /// Whether blocks with little noise are passed unchanged; false for arrays.
    passes_clean_blocks: bool,
    /// Statistics, levels, speech track and standard deviations.
    record: Record,
}

/// Detects channels that hold different sounds.
struct Division {
    difference: ChannelDifference,
    /// Mean power of the noise per bin of each channel, if given. The channels' noise estimates start from it after the
    /// division.
    noise_profiles: Vec<Option<Vec<f32>>>,
}

/// The spatial filter of a microphone array, and the second pass over its output.
struct Array {
    filter: SpatialFilter,
    /// The input without offset and impulses, aligned with the output of the filter.
    inputs: Output,
    second_pass: SecondPass,
}

impl DenoiseStream {
    pub(super) fn new(
        separator: Arc<Separator>,
        sample_rate: u32,
        channels: usize,
    ) -> Result<Self, DenoiseError> {
        let window_seconds = separator.dictionary.header().window_seconds;
        let front_end = FrontEnd::new(sample_rate, channels, window_seconds)?;
        Ok(Self {
            memories: vec![BlockMemory::new(SeedTree::new(separator.settings.seed))],
            division: None,
            output: Output::new(front_end.stft(), channels),
            hum: RemovedHum::new(channels, amplitude(separator.settings.gain.floor_db)),
            array: None,
            array_floor: None,
            passes_clean_blocks: separator.settings.gain.spare,
            record: Record::default(),
            separator,
            front_end,
        })
    }

    /// The transform from samples to frames.
    pub(super) fn stft(&self) -> &Stft {
        self.front_end.stft()
    }

    /// Samples per channel of a block; a good size for [`push`](Self::push).
    pub(super) fn block_samples(&self) -> usize {
        self.front_end.block_samples()
    }

    /// Maximum number of samples per channel that have been pushed and not returned after a [`push`](Self::push): about
    /// two blocks, or six for an array.
    pub(super) fn latency(&self) -> usize {
        let stft = self.front_end.stft();
        // Less than a block of samples, less than a block of frames, and the overlap with later frames. Blocks advance
        // by a block without its overlap, so at most `frames` frames wait.
        let frames = BLOCK_FRAMES - OVERLAP_FRAMES;
        let latency = self.block_samples() - 1 + frames * stft.hop() + stft.window() - stft.hop();
        latency + self.array.as_ref().map_or(0, |array| array.second_pass.latency())
    }

    /// Starts the noise estimate from the mean power per bin, summed over channels.
    pub(super) fn set_noise_power(&mut self, power: Vec<f32>) {
        self.memories[0].noise_profile = Some(power);
    }

    /// Denoises each channel alone from the first block on in which they hold different sounds.
    pub(super) fn divide_different(&mut self) {
        let difference = ChannelDifference::new(self.front_end.stft().grid());
        let noise_profiles = vec![None; self.output.channels()];
        self.division = Some(Division { difference, noise_profiles });
    }

    /// Starts the noise estimate of channels that are divided from the mean power per bin of each.
    pub(super) fn set_noise_powers(&mut self, powers: Vec<Option<Vec<f32>>>) {
        if let Some(division) = &mut self.division {
            division.noise_profiles = powers;
        }
    }

    /// Restores clipped samples from now on, at `scale` times the level of the input.
    pub(super) fn restore_clipped(&mut self, scale: f32) {
        self.front_end.restore_clipped(scale);
    }

    /// Enables the filters for one microphone array. In the first pass, a multichannel Wiener filter, with the gain of
    /// all channels as prior, estimates the speech in each channel. In the second pass, a linear filter fitted to that
    /// estimate is applied to the channels, and its output is denoised. Levels, speech track and standard deviations
    /// are those of the second pass.
    ///
    /// # Errors
    /// [`DenoiseError::ArrayChannels`] unless there are 2 to 16 channels.
    pub(super) fn filter_as_array(&mut self) -> Result<(), DenoiseError> {
        let found = self.output.channels();
        if !ARRAY_CHANNELS.contains(&found) {
            return Err(DenoiseError::ArrayChannels { found });
        }
        let stft = self.front_end.stft();
        self.array = Some(Array {
            filter: SpatialFilter::new(found, stft.grid()),
            inputs: Output::new(stft, found),
            second_pass: SecondPass::new(Arc::clone(&self.separator), stft.sample_rate(), found)?,
        });
        self.passes_clean_blocks = false;
        // The second pass applies the strength in the settings; the first estimates the voice for the filters.
        let gain = self.separator.settings.gain.clone().with_strength(Strength::Normal);
        self.separator = self.separator.with_gain(GainSettings { dereverb: 0.0, ..gain });
        Ok(())
    }

    /// The stream whose gains are applied to the output; for an array, the stream of the second pass.
    fn output_stream(&mut self) -> &mut Self {
        match self.array {
            Some(ref mut array) => &mut array.second_pass.stream,
            None => self,
        }
    }

    /// Records the standard deviation of the gain from now on, for [`take_gain_std`](Self::take_gain_std).
    pub(super) fn record_gain_std(&mut self) {
        self.output_stream().record.gain_std.get_or_insert_default();
    }

    /// Returns the standard deviation of the gain over the posterior draws (bins x frames, column-major, 0 to 0.5) of the
    /// frames finished since the last call; empty without recording or sampling.
    pub(super) fn take_gain_std(&mut self) -> Vec<f32> {
        self.output_stream().record.gain_std.as_mut().map_or_else(Vec::new, std::mem::take)
    }

    /// Records the levels of speech for [`take_levels`](Self::take_levels), from the first samples on.
    ///
    /// # Errors
    /// [`DenoiseError::LevelNet`] if the built-in network of levels is damaged.
    pub(super) fn record_levels(&mut self) -> Result<(), DenoiseError> {
        let of = self.output_stream();
        let meter = LevelMeter::new(of.front_end.stft(), of.output.channels(), QuantileNet::built_in()?);
        of.record.levels.get_or_insert(meter);
        Ok(())
    }

    /// Returns the levels of speech, the mean over channels, in the slots finished since the last call; without cells if
    /// they are not recorded.
    pub(super) fn take_levels(&mut self) -> SpeechLevels {
        self.output_stream().record.levels.as_mut().map_or_else(SpeechLevels::default, LevelMeter::take)
    }

    /// Records the probability of speech and its sections for [`take_speech_track`](Self::take_speech_track), from the first
    /// samples on.
    pub(super) fn record_speech_track(&mut self) {
        let Self { front_end, record, .. } = self.output_stream();
        record.speech.get_or_insert_with(|| TrackMeter::new(front_end.stft()));
    }

    /// Returns the probability of speech in all channels together, in the slots finished since the last call, and the
    /// sections with speech that ended; empty if it is not recorded. The slots lag behind the samples by 2 s.
    pub(super) fn take_speech_track(&mut self) -> SpeechTrack {
        self.output_stream().record.speech.as_mut().map_or_else(SpeechTrack::default, TrackMeter::take)
    }

    /// Statistics of the blocks so far.
    pub(super) fn summary(&self) -> Summary {
        let mut summary =
            self.record.summary(&self.front_end, &self.memories[0], self.hum.kept_power_fraction());
        if let Some(array) = &self.array {
            let second = array.second_pass.stream.summary();
            summary.snr_after_db = second.snr_after_db;
            summary.expected_sdr_db = second.expected_sdr_db;
            summary.noise_after_dbfs = second.noise_after_dbfs;
            summary.chain.add(&second.chain);
        }
        summary
    }

    /// Denoises the next samples of every channel and returns the finished ones, which may be fewer or more; `progress`
    /// receives the duration of the finished part of the recording, s.
    ///
    /// # Errors
    /// [`DenoiseError::Channels`] or [`DenoiseError::Signal`] if the number of channels is wrong, their lengths differ,
    /// or a sample is not finite: the block is rejected. [`DenoiseError::Finished`] after [`finish`](Self::finish), and
    /// [`DenoiseError::Cancelled`] if `progress` cancels it.
    pub(super) fn push(
        &mut self,
        block: &[&[f32]],
        progress: &mut dyn ProgressCallback,
    ) -> Result<Vec<Vec<f32>>, DenoiseError> {
        self.front_end.push(block)?;
        while self.front_end.next_block() {
            self.take_hum();
            while self.front_end.frames() >= BLOCK_FRAMES {
                self.separate(BLOCK_FRAMES, false, progress, None)?;
            }
        }
        self.finished(false, progress)
    }

    /// Ends the recording and returns the remaining samples, with snapshots if it is a single block.
    ///
    /// # Errors
    /// [`DenoiseError::Finished`] if it has ended already, and [`DenoiseError::Cancelled`] if `progress` cancels it.
    pub(super) fn finish(
        &mut self,
        progress: &mut dyn ProgressCallback,
        snapshots: Option<Snapshots<Vec<Vec<f32>>>>,
    ) -> Result<Vec<Vec<f32>>, DenoiseError> {
        self.front_end.finish()?;
        self.take_hum();
        // The last block may be longer than the others, to avoid a short one.
        while self.front_end.frames() > BLOCK_FRAMES * 3 / 2 {
            self.separate(BLOCK_FRAMES, false, progress, None)?;
        }
        let pending = self.front_end.frames();
        if pending > 0 {
            let snapshots = snapshots.filter(|_| self.record.frames == 0);
            self.separate(pending, true, progress, snapshots)?;
        }
        let (stft, samples) = (self.front_end.stft(), self.front_end.samples());
        self.output.finish(stft, samples);
        if let Some(array) = &mut self.array {
            array.inputs.finish(stft, samples);
        }
        self.finished(true, progress)
    }

    /// Collects the hum removed from the input.
    fn take_hum(&mut self) {
        let hum = self.front_end.take_hum();
        if let Some(array) = &mut self.array {
            array.second_pass.stream.hum.push(hum.clone());
        }
        self.hum.push(hum);
    }

    /// Returns the finished samples; for an array, after the second pass.
    fn finished(
        &mut self,
        last: bool,
        progress: &mut dyn ProgressCallback,
    ) -> Result<Vec<Vec<f32>>, DenoiseError> {
        let mut found = self.output.take();
        if self.array.is_none() {
            self.hum.add(&mut found);
        }
        self.hum.skip(found[0].len());
        let done = self.seconds_done();
        let Some(Array { inputs, second_pass, .. }) = &mut self.array else {
            return Ok(found);
        };
        let progress = &mut |seconds: f64| progress.report((done + seconds) / 2.0);
        let mut speech = second_pass.push(&inputs.take(), &found, progress)?;
        if last {
            append(&mut speech, second_pass.finish(progress)?);
        }
        Ok(speech)
    }

    /// Duration of the finished part, s.
    fn seconds_done(&self) -> f64 {
        self.record.frames as f64 * self.front_end.stft().grid().frame_seconds
    }

    /// Separates the first `frames` waiting frames, and synthesises them up to the overlap with the next block.
    fn separate(
        &mut self,
        frames: usize,
        last: bool,
        progress: &mut dyn ProgressCallback,
        snapshots: Option<Snapshots<Vec<Vec<f32>>>>,
    ) -> Result<(), DenoiseError> {
        let bins = self.front_end.stft().bins();
        let span = self.memories[0].span(frames, last, bins);
        if span.context == 0 {
            self.divide(span.done());
        }
        let second_pass = self.array.as_ref().map(|array| array.second_pass.stream.seconds_done());
        let progress =
            &mut |seconds: f64| progress.report(second_pass.map_or(seconds, |done| (seconds + done) / 2.0));
        let mut gains = self.all_gains(span, progress, snapshots)?;
        self.record.add_gains(&self.front_end, &gains, last);
        let mut spectra = self.front_end.take(span.done());
        let held = self.array_floor.as_mut().map(|floor| floor.hold(&mut gains[0].applied, &spectra));
        self.record.add_frames(self.front_end.stft(), &spectra, &gains, &self.hum, last);
        match &mut self.array {
            Some(array) => {
                array.inputs.push(&spectra);
                array.second_pass.push_frames(&spectra);
                array.filter.filter(&mut spectra, &gains[0].gain, &gains[0].applied, OVERLAP_FRAMES);
            }
            None => {
                for (index, channel) in spectra.iter_mut().enumerate() {
                    channel.apply_gain(&of_channel(&gains, index).applied);
                }
            }
        }
        if let Some(held) = held {
            held.replace(&mut spectra);
        }
        self.output.push(&spectra);
        Ok(())
    }

    /// Divides the channels if they hold different sounds in the first `frames` waiting frames.
    fn divide(&mut self, frames: usize) {
        let channels = self.front_end.spectrograms();
        let is_found = |division: &mut Division| division.difference.is_found(channels, frames);
        if !self.division.as_mut().is_some_and(is_found) {
            return;
        }
        tracing::info!(
            seconds = self.seconds_done(),
            "channels hold different sounds: each is denoised alone"
        );
        let profiles = self.division.take().map_or_else(Vec::new, |division| division.noise_profiles);
        self.memories =
            profiles.into_iter().map(|profile| self.memories[0].of_one_channel(profile)).collect();
    }

    /// The gains of the finished frames of a block: one for all channels, or one per channel.
    fn all_gains(
        &mut self,
        span: Span,
        progress: &mut dyn ProgressCallback,
        mut snapshots: Option<Snapshots<Vec<Vec<f32>>>>,
    ) -> Result<Vec<FrameGains>, DenoiseError> {
        let bins = self.front_end.stft().bins();
        let (count, before) = (self.memories.len(), self.seconds_done());
        let width = self.output.channels() / count;
        // Snapshots of one channel would be incomplete.
        snapshots = snapshots.filter(|_| count == 1);
        let mut gains = Vec::with_capacity(count);
        for index in 0..count {
            let memory = &mut self.memories[index];
            let channels = index * width..(index + 1) * width;
            memory.choose_unit(&self.front_end, channels.clone());
            let power = memory.power(&self.front_end, channels, span);
            let duration = span.done() as f64 * self.front_end.stft().grid().frame_seconds;
            let progress = &mut |fraction: f64| {
                progress.report(before + (index as f64 + fraction) / count as f64 * duration)
            };
            let block = self.gains(index, power, span.last, progress, snapshots.take())?;
            gains.push(self.memories[index].join(block, span, bins));
        }
        Ok(gains)
    }

    /// The gains for powers of a block (bins x frames), with the memory at `index`. `last` marks the last block;
    /// `progress` receives the completed fraction.
    fn gains(
        &mut self,
        index: usize,
        mut power: Vec<f32>,
        last: bool,
        progress: &mut dyn ProgressCallback,
        snapshots: Option<Snapshots<Vec<Vec<f32>>>>,
    ) -> Result<BlockGains, DenoiseError> {
        // Silence needs no sweeps, but can be cancelled too.
        progress::report(progress, 0.0)?;
        let grid = self.front_end.stft().grid();
        let mut gains = self.silent_gains(power.len());
        let memory = &mut self.memories[index];
        if !memory.rescale(&mut power, self.separator.settings.model.alpha_noise) {
            return Ok(gains);
        }
        let mut sounding = Sounding::new(&power, grid.bins);
        if sounding.is_empty() {
            return Ok(gains);
        }
        let seeds = memory.next_seeds();
        let result = self.separate_sounding(index, last, &mut sounding, seeds, progress, snapshots)?;
        self.record.chain.add(&result.chain);
        sounding.place(&result.gain, &mut gains.gain);
        sounding.place(&result.gain_std, &mut gains.gain_std);
        sounding.place(&result.model_gain, &mut gains.model_gain);
        gains.floor = result.floor;
        if self.passes_clean_blocks {
            gains.weight = sparing::weight(&result.gain, &sounding.power, grid);
        }
        self.memories[index].previous = Some(result.state);
        Ok(gains)
    }

    /// Separates the sounding frames of a block, with the memory at `index`. `last` marks the last block. A recording
    /// too short for a pause is surrounded by noise.
    fn separate_sounding(
        &self,
        index: usize,
        last: bool,
        sounding: &mut Sounding,
        seeds: SeedTree,
        progress: &mut dyn ProgressCallback,
        snapshots: Option<Snapshots<Vec<Vec<f32>>>>,
    ) -> Result<BlockResult, DenoiseError> {
        let (grid, separator, memory) =
            (self.front_end.stft().grid(), &self.separator, &self.memories[index]);
        let noise_profile = memory.scaled_noise_profile();
        let noise_profile = noise_profile.as_deref();
        let is_whole = last && memory.is_first();
        let is_short = memory.previous.is_none()
            && sounding.is_short()
            && matches!(separator.settings.model.noise, NoiseModel::Drifting(_));
        let mut alone = Vec::new();
        if is_short {
            let request = Request { noise_profile, is_whole, is_short, ..Request::default() };
            let progress = &mut |_: f64| progress.report(0.0);
            alone = separator.separate(grid, &sounding.power, request, seeds, progress, None)?.gain;
            sounding.surround(noise_profile, seeds.child(u64::MAX));
        }
        let sounding = &*sounding;
        let mut show_whole = None;
        let snapshots = snapshots.map(|Snapshots { every, show }| {
            let show = show_whole.insert(move |sweep: usize, partial: Vec<f32>| {
                let mut gain = vec![0.0; sounding.block.len()];
                sounding.place(&partial, &mut gain);
                show(sweep, self.filtered(&gain));
            });
            Snapshots { every, show }
        });
        let request = Request {
            previous: memory.previous.as_ref(),
            noise_profile,
            gain_std: self.record.gain_std.is_some(),
            model_gain: self.record.levels.is_some(),
            is_whole,
            is_short,
            ..Request::default()
        };
        let mut result = separator.separate(grid, &sounding.power, request, seeds, progress, snapshots)?;
        if is_short {
            // Either estimate may classify the voice as noise.
            sounding.raise_to_isolated(&mut result.gain, &alone);
        } else if separator.networks.is_some()
            && let Some(filled) = sounding.filled(seeds.child(u64::MAX))
        {
            let request = Request { noise_profile, is_whole, ..Request::default() };
            let progress = &mut |_: f64| progress.report(1.0);
            let filled = separator.separate(grid, &filled, request, seeds, progress, None)?;
            sounding.raise_clean(&mut result.gain, &filled.gain, grid);
        }
        Ok(result)
    }

    /// The gains of a silent block of `size` values (bins x frames).
    fn silent_gains(&self, size: usize) -> BlockGains {
        let Separator { settings, .. } = &*self.separator;
        let zeros = |wanted: bool| vec![0.0; if wanted { size } else { 0 }];
        BlockGains {
            gain: zeros(true),
            floor: vec![amplitude(settings.gain.floor_db); self.front_end.stft().bins()],
            weight: 1.0,
            gain_std: zeros(self.record.gain_std.is_some() && settings.sampling.is_some()),
            model_gain: zeros(self.record.levels.is_some()),
        }
    }

    /// The whole recording filtered by a gain (bins x frames), while all of its frames are waiting.
    fn filtered(&self, gain: &[f32]) -> Vec<Vec<f32>> {
        let filtered = |waiting: &Spectrogram| {
            let mut frames = waiting.clone();
            frames.apply_gain(gain);
            self.front_end.stft().synthesise(&frames, self.front_end.samples() as usize)
        };
        let mut speech: Vec<Vec<f32>> = self.front_end.spectrograms().map(filtered).collect();
        self.hum.add(&mut speech);
        speech
    }
}
