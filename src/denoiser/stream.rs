//! Denoising block by block.

use super::front_end::{BLOCK_FRAMES, FrontEnd};
use super::levels::{LevelMeter, SpeechLevels};
use super::{DenoiseError, NoiseProfile, Summary};
use crate::denoiser::block::{BlockState, Observation, Request, Separator, apply_floor};
use crate::inference::{MonteCarloAccumulator, SamplerCounters};
use crate::random::SeedTree;
use crate::signal::progress::{self, ProgressCallback};
use crate::transform::{Spectrogram, Synthesiser};
use crate::wiener::floor::amplitude;
use num_complex::Complex;
use std::sync::Arc;

/// A last block with fewer frames is separated together with frames before it, of which the result stays.
const MIN_FRAMES: usize = BLOCK_FRAMES / 2;
/// Frames at the end of a block that the next block separates again; their gains are cross-faded.
const OVERLAP_FRAMES: usize = 32;
/// Frames with a mean power below this share of that of their block count as digital silence.
const SILENCE: f32 = 1e-9;

/// Amplitudes beyond this, 300 dB above full scale, are held in a larger unit: their powers would overflow.
const MAX_AMPLITUDE: f32 = 1e15;

/// A recording that is being denoised as it comes; made by [`Denoiser::stream`](super::Denoiser::stream).
///
/// Blocks overlap, and hand on what they learned of the noise and the channel. The result does not depend on
/// how the samples are divided into calls of [`push`](Self::push).
pub struct DenoiseStream {
    separator: Arc<Separator>,
    front_end: FrontEnd,
    streams: SeedTree,
    channels: Vec<OutputChannel>,
    /// The unit of amplitude in which powers are held.
    unit: f32,
    /// Inverse of the mean power of the last block that was not silent.
    scale: f32,
    carried: Option<BlockState>,
    /// Gains (bins x overlap) that the last block gave to the first pending frames.
    overlap: Vec<f32>,
    /// The same, not below the floor.
    applied_overlap: Vec<f32>,
    /// Powers (bins x frames) of the last frames that are done, as many as a last block may look back to.
    done_power: Vec<f32>,
    blocks: u64,
    frames_done: u64,
    energy: Energy,
    pauses: Pauses,
    monte_carlo: MonteCarloAccumulator,
    divergences: usize,
    moves: SamplerCounters,
    /// Mean power per bin that the noise starts from.
    noise_profile: Option<Vec<f32>>,
    deviation: Option<Deviation>,
    levels: Option<Levels>,
}

/// Standard deviations of the gain, bins x frames.
#[derive(Default)]
struct Deviation {
    values: OverlapBuffer,
    /// Of the frames that are done, and were not taken yet.
    done: Vec<f32>,
}

/// What the levels of the voice are gathered from.
struct Levels {
    meter: LevelMeter,
    /// The gain by the model, before it is pooled_gain with the listener.
    model: OverlapBuffer,
}

/// Values that go along with the gain, bins x frames.
#[derive(Default)]
struct OverlapBuffer {
    /// Of the block that was separated last.
    block: Vec<f32>,
    /// Of the first pending frames, by the last block.
    overlap: Vec<f32>,
}

impl OverlapBuffer {
    /// Those of the frames that are done by the last block, which began with frames that were done before.
    fn finish(&mut self, context: usize, done: usize, bins: usize) -> Vec<f32> {
        let mut values = std::mem::take(&mut self.block);
        if !values.is_empty() {
            values.drain(..context * bins);
            cross_fade(&self.overlap, &mut values, bins);
            self.overlap = values.split_off(done * bins);
        }
        values
    }
}

/// How often, and to whom, the development of a block is shown.
type BlockObserver<'a> = (usize, &'a mut dyn FnMut(usize, Vec<Vec<f32>>));

struct OutputChannel {
    synthesiser: Synthesiser,
    output: Vec<f32>,
}

/// Sums over all bins.
#[derive(Default)]
struct Energy {
    input: f64,
    speech: f64,
    /// In the output.
    speech_left: f64,
    noise_left: f64,
    /// Expected square of the difference from the speech.
    error: f64,
}

/// Mean squares of the samples in the pauses of the voice, before and after.
#[derive(Default)]
struct Pauses {
    sums: [f64; 2],
    frames: usize,
}

/// Of one frame: the estimated power of speech, and the power before and after.
#[derive(Clone, Copy, Default)]
struct FrameLevel {
    speech: f64,
    powers: [f64; 2],
}

impl Pauses {
    /// The share of the frames that count as pauses.
    const SHARE: usize = 5;

    /// Adds those of some frames.
    fn add(&mut self, frames: &[FrameLevel]) {
        let mut sounding: Vec<&FrameLevel> = frames.iter().filter(|frame| frame.powers[0] > 0.0).collect();
        sounding.sort_by(|a, b| a.speech.total_cmp(&b.speech));
        let count = sounding.len().div_ceil(Self::SHARE);
        for frame in &sounding[..count] {
            self.sums.iter_mut().zip(frame.powers).for_each(|(sum, power)| *sum += power);
        }
        self.frames += count;
    }

    fn levels(&self) -> [f64; 2] {
        self.sums.map(|sum| sum / self.frames as f64)
    }
}

impl DenoiseStream {
    pub(super) fn new(
        separator: Arc<Separator>,
        sample_rate: u32,
        channels: usize,
    ) -> Result<Self, DenoiseError> {
        let window_seconds = separator.dictionary.header().window_seconds;
        let front_end = FrontEnd::new(sample_rate, channels, window_seconds)?;
        let channel = |_| OutputChannel { synthesiser: front_end.stft().synthesiser(), output: Vec::new() };
        Ok(Self {
            streams: SeedTree::new(separator.settings.seed),
            separator,
            channels: (0..channels).map(channel).collect(),
            unit: 1.0,
            scale: 1.0,
            carried: None,
            overlap: Vec::new(),
            applied_overlap: Vec::new(),
            done_power: Vec::new(),
            blocks: 0,
            frames_done: 0,
            energy: Energy::default(),
            pauses: Pauses::default(),
            monte_carlo: MonteCarloAccumulator::default(),
            divergences: 0,
            moves: SamplerCounters::default(),
            noise_profile: None,
            deviation: None,
            levels: None,
            front_end,
        })
    }

    /// Samples per channel that are worked on together, a good size for [`push`](Self::push).
    #[must_use]
    pub fn block_samples(&self) -> usize {
        self.front_end.block_samples()
    }

    /// The most samples per channel that may have gone in and not come out yet after a [`push`](Self::push): about
    /// two blocks.
    #[must_use]
    pub fn latency(&self) -> usize {
        let stft = self.front_end.stft();
        // Less than a block of samples, of frames less than a block, and what later frames overlap. Blocks take
        // multiples of the overlap, so the most frames to wait are a block without it.
        let frames = BLOCK_FRAMES - OVERLAP_FRAMES;
        self.block_samples() - 1 + frames * stft.hop() + stft.window() - stft.hop()
    }

    /// Lets the noise start from what a stretch of the recording says of it.
    ///
    /// # Errors
    /// [`DenoiseError::NoNoise`] if the stretch is silent or shorter than a window, [`DenoiseError::NoiseRate`] or
    /// [`DenoiseError::Channels`] if it has another sample rate or number of channels.
    pub fn set_noise_profile(&mut self, noise: &NoiseProfile) -> Result<(), DenoiseError> {
        noise.check(self.front_end.stft().sample_rate(), self.channels.len())?;
        self.use_noise_power(noise.power(0..self.channels.len()).ok_or(DenoiseError::NoNoise)?);
        Ok(())
    }

    /// The same, from the mean power per bin, all channels together.
    pub(super) fn use_noise_power(&mut self, power: Vec<f32>) {
        self.noise_profile = Some(power);
    }

    /// Keeps the standard deviation of the expected gain over the posterior draws from now on, for
    /// [`take_gain_std`](Self::take_gain_std).
    pub fn record_gain_std(&mut self) {
        self.deviation.get_or_insert_default();
    }

    /// The standard deviation of the expected gain over the posterior draws (bins x frames, 0 to 0.5) of the frames
    /// that were done since it was last asked for; nothing if it is not kept or the settings draw nothing.
    pub fn take_gain_std(&mut self) -> Vec<f32> {
        self.deviation.as_mut().map_or_else(Vec::new, |deviation| std::mem::take(&mut deviation.done))
    }

    /// Gathers the levels of the voice from now on, which should be the start, for [`take_levels`](Self::take_levels).
    pub fn record_levels(&mut self) {
        let stft = self.front_end.stft();
        let window_seconds = stft.window() as f64 / f64::from(stft.sample_rate());
        let meter = LevelMeter::new(stft.grid(), window_seconds);
        self.levels.get_or_insert(Levels { meter, model: OverlapBuffer::default() });
    }

    /// The levels of the voice, all channels together, in the slots that were done since they were last asked for;
    /// without any if they are not kept.
    pub fn take_levels(&mut self) -> SpeechLevels {
        self.levels.as_mut().map_or_else(SpeechLevels::default, |levels| levels.meter.take())
    }

    /// What was found so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let decibels = |ratio: f64| 10.0 * libm::log10(ratio);
        let Energy { input, speech, speech_left, noise_left, error } = self.energy;
        let [before, after] = self.pauses.levels().map(decibels);
        Summary {
            snr_before_db: decibels(speech / (input - speech)),
            snr_after_db: decibels(speech_left / noise_left),
            expected_sdr_db: decibels(speech / error),
            noise_before_dbfs: before,
            noise_after_dbfs: after,
            monte_carlo: self.monte_carlo,
            divergences: self.divergences,
            moves: self.moves,
            reverberation_seconds: self
                .carried
                .as_ref()
                .map_or([None; 6], |carried| carried.decays.seconds()),
            clicks: self.front_end.clicks,
            heavy_tailed_blocks: self.front_end.heavy_tailed_blocks,
        }
    }

    /// Takes the next samples of every channel and returns those that are done, fewer or more.
    ///
    /// # Errors
    /// If there are more or fewer channels than announced, of unequal length, or with samples that are not finite: then
    /// nothing is taken. Otherwise as for [`Denoiser::denoise`](super::Denoiser::denoise).
    pub fn push(&mut self, block: &[&[f32]]) -> Result<Vec<Vec<f32>>, DenoiseError> {
        self.push_with_progress(block, &mut ())
    }

    /// The same; `watch` is told how much of the recording is done, s.
    ///
    /// # Errors
    /// As [`push`](Self::push), and [`DenoiseError::Cancelled`] if `watch` ended it.
    pub fn push_with_progress(
        &mut self,
        block: &[&[f32]],
        watch: &mut dyn ProgressCallback,
    ) -> Result<Vec<Vec<f32>>, DenoiseError> {
        self.front_end.push(block)?;
        while self.front_end.next_block() {
            while self.front_end.frames() >= BLOCK_FRAMES {
                self.separate(BLOCK_FRAMES, false, watch, None)?;
            }
        }
        Ok(self.take_output())
    }

    /// Ends the recording: the samples still to come.
    ///
    /// # Errors
    /// [`DenoiseError::Finished`] if it has ended; otherwise as for [`Denoiser::denoise`](super::Denoiser::denoise).
    pub fn finish(&mut self) -> Result<Vec<Vec<f32>>, DenoiseError> {
        self.finish_with_progress(&mut ())
    }

    /// The same; `watch` is told how much of the recording is done, s.
    ///
    /// # Errors
    /// As [`finish`](Self::finish), and [`DenoiseError::Cancelled`] if `watch` ended it.
    pub fn finish_with_progress(
        &mut self,
        watch: &mut dyn ProgressCallback,
    ) -> Result<Vec<Vec<f32>>, DenoiseError> {
        self.finish_observed(0, &mut |_, _| (), watch)
    }

    /// The same, showing every `every` Gibbs sweeps (0 for never) how a recording of a single block develops.
    pub(super) fn finish_observed(
        &mut self,
        every: usize,
        observer: &mut dyn FnMut(usize, Vec<Vec<f32>>),
        watch: &mut dyn ProgressCallback,
    ) -> Result<Vec<Vec<f32>>, DenoiseError> {
        self.front_end.finish()?;
        // More frames than in a block are no worse; a last block of few is.
        while self.front_end.frames() > BLOCK_FRAMES * 3 / 2 {
            self.separate(BLOCK_FRAMES, false, watch, None)?;
        }
        let pending = self.front_end.frames();
        if pending > 0 {
            let observer = (every > 0 && self.frames_done == 0).then_some((every, observer));
            self.separate(pending, true, watch, observer)?;
        }
        let samples = self.front_end.samples();
        for channel in &mut self.channels {
            let next = self.front_end.stft().synthesiser();
            std::mem::replace(&mut channel.synthesiser, next).finish(samples, &mut channel.output);
        }
        Ok(self.take_output())
    }

    fn take_output(&mut self) -> Vec<Vec<f32>> {
        self.channels.iter_mut().map(|channel| std::mem::take(&mut channel.output)).collect()
    }

    /// Holds powers in a unit in which those of the frames that wait are within the range of single precision.
    fn choose_unit(&mut self) {
        let waiting = self.front_end.spectrograms().flat_map(Spectrogram::as_slice);
        let peak = waiting.fold(0.0_f32, |peak, x| peak.max(x.re.abs()).max(x.im.abs()));
        let unit = if peak > MAX_AMPLITUDE { MAX_AMPLITUDE / peak } else { 1.0 };
        if unit != self.unit {
            let ratio = (f64::from(unit) / f64::from(self.unit)).powi(2);
            let rescale =
                |x: f32, ratio: f64| (f64::from(x) * ratio).min(f64::from(MAX_AMPLITUDE).powi(2)) as f32;
            self.done_power.iter_mut().for_each(|x| *x = rescale(*x, ratio));
            self.scale = rescale(self.scale, 1.0 / ratio).max(f32::MIN_POSITIVE);
            self.unit = unit;
        }
    }

    /// Separates the first `frames` that wait, and synthesises them up to the overlap with the next block.
    fn separate(
        &mut self,
        frames: usize,
        last: bool,
        watch: &mut dyn ProgressCallback,
        observer: Option<BlockObserver>,
    ) -> Result<(), DenoiseError> {
        let bins = self.front_end.stft().bins();
        let (done, context) = if last {
            (frames, MIN_FRAMES.saturating_sub(frames).min(self.done_power.len() / bins))
        } else {
            (frames - OVERLAP_FRAMES, 0)
        };
        self.choose_unit();
        let mut power = self.done_power.split_off(self.done_power.len() - context * bins);
        power.resize((context + frames) * bins, 0.0);
        for waiting in self.front_end.spectrograms() {
            let values = power[context * bins..].iter_mut().zip(waiting.as_slice());
            values.for_each(|(sum, x)| *sum += (x * self.unit).norm_sqr());
        }
        if !last {
            self.done_power = power[done.saturating_sub(MIN_FRAMES) * bins..done * bins].to_vec();
        }
        let (mut gain, floor) = self.gain(power, frames, watch, observer)?;
        gain.drain(..context * bins);
        let mut applied = gain.clone();
        apply_floor(&mut applied, &floor);
        for (values, overlap) in [(&mut gain, &mut self.overlap), (&mut applied, &mut self.applied_overlap)] {
            cross_fade(overlap, values, bins);
            *overlap = values.split_off(done * bins);
        }
        if let Some(Deviation { values, done: shown }) = &mut self.deviation {
            shown.append(&mut values.finish(context, done, bins));
        }
        let mut levels = vec![FrameLevel::default(); done];
        let stft = self.front_end.stft();
        let window = stft.window() as f64;
        let edge = (stft.window() - 1) / stft.hop();
        // By the mean square of the Hann window, and the bins of negative frequencies, which are not held.
        let to_mean_square = 1.0 / (0.375 * window * window * self.channels.len() as f64);
        let sides = |bin: usize| if bin == 0 || bin == bins - 1 { 1.0 } else { 2.0 };
        if let Some(Levels { meter, model }) = &mut self.levels {
            let model = model.finish(context, done, bins);
            let frames = gain.chunks_exact(bins).zip(model.chunks_exact(bins)).enumerate();
            for (t, (gain, model)) in frames {
                let square = |bin: usize| -> f64 {
                    let powers =
                        self.front_end.spectrograms().map(|waiting| bin_power(&waiting.frame(t)[bin]));
                    sides(bin) * to_mean_square * powers.sum::<f64>()
                };
                meter.push(&(0..bins).map(square).collect::<Vec<f64>>(), gain, model);
            }
            if last {
                meter.finish(self.front_end.samples() as f64 / f64::from(stft.sample_rate()));
            }
        }
        for (channel, mut finished) in self.channels.iter_mut().zip(self.front_end.take(done)) {
            for (i, ((value, &gain), &applied)) in
                finished.as_mut_slice().iter_mut().zip(&gain).zip(&applied).enumerate()
            {
                let (power, gain) = (bin_power(value), f64::from(gain));
                *value *= applied;
                let left = bin_power(value);
                self.energy.input += power;
                self.energy.speech += gain * power;
                self.energy.speech_left += gain * left;
                self.energy.noise_left += (1.0 - gain) * left;
                // The posterior of a bin has the mean `gain` and the variance `gain (1 - gain)`, in units of its power.
                let off = f64::from(applied) - gain;
                self.energy.error += (off * off + gain * (1.0 - gain)) * power;
                let level = &mut levels[i / bins];
                level.speech += gain * power;
                level.powers[0] += sides(i % bins) * to_mean_square * power;
                level.powers[1] += sides(i % bins) * to_mean_square * left;
            }
            channel.synthesiser.push(&finished, &mut channel.output);
        }
        // Frames that reach beyond the ends of the recording are no pauses.
        let first = if self.frames_done == 0 { edge.min(done) } else { 0 };
        let end = if last { done.saturating_sub(edge).max(first) } else { done };
        self.pauses.add(&levels[first..end]);
        self.frames_done += done as u64;
        Ok(())
    }

    /// The posterior-mean gains (bins x frames) for these powers, and the least gain per bin. The last `waiting`
    /// frames are the first that wait; those before them are done.
    fn gain(
        &mut self,
        mut power: Vec<f32>,
        waiting: usize,
        watch: &mut dyn ProgressCallback,
        observer: Option<BlockObserver>,
    ) -> Result<(Vec<f32>, Vec<f32>), DenoiseError> {
        let grid = self.front_end.stft().grid();
        let bins = grid.bins;
        let before = self.frames_done as f64 * grid.frame_seconds;
        // Silence takes no sweeps, and is to be interrupted, too.
        progress::report(watch, before)?;
        let silent_floor = || vec![amplitude(self.separator.settings.gain.floor_db); bins];
        let frames = power.len() / bins;
        let mut gain = vec![0.0; power.len()];
        if let Some(deviation) = &mut self.deviation {
            deviation.values.block =
                if self.separator.settings.sampling.is_some() { gain.clone() } else { Vec::new() };
        }
        if let Some(levels) = &mut self.levels {
            levels.model.block = gain.clone();
        }
        let mean = (power.iter().map(|&x| f64::from(x)).sum::<f64>() / power.len() as f64) as f32;
        if mean == 0.0 {
            return Ok((gain, silent_floor()));
        }
        let scale = 1.0 / mean.max(f32::MIN_POSITIVE);
        if let Some(carried) = &mut self.carried {
            carried.scale_power(scale / self.scale, self.separator.settings.model.alpha_noise);
        }
        self.scale = scale;
        power.iter_mut().for_each(|x| *x *= scale);
        // Digital silence says nothing of the noise elsewhere, and needs no gain.
        let sounding = |frame: &[f32]| frame.iter().sum::<f32>() > SILENCE * bins as f32;
        let places: Vec<usize> = (0..frames).filter(|t| sounding(&power[t * bins..(t + 1) * bins])).collect();
        if places.is_empty() {
            return Ok((gain, silent_floor()));
        }
        let power: Vec<f32> =
            places.iter().flat_map(|t| power[t * bins..(t + 1) * bins].iter().copied()).collect();
        let streams = self.streams.child(self.blocks);
        self.blocks += 1;
        let (every, show) = observer.unzip();
        let mut show = show.map(|show| {
            |sweep: usize, partial: &[f32]| {
                let mut gain = vec![0.0; bins * frames];
                place(&places, partial, &mut gain, bins);
                show(sweep, self.filtered(&gain));
            }
        });
        let observation = match (every, &mut show) {
            (Some(every), Some(show)) => Some(Observation { every, show }),
            _ => None,
        };
        let noise_profile: Option<Vec<f32>> = self
            .noise_profile
            .as_ref()
            .map(|power| power.iter().map(|x| x * self.unit * self.unit * scale).collect());
        let request = Request {
            carried: self.carried.as_ref(),
            noise_profile: noise_profile.as_deref(),
            deviation: self.deviation.is_some(),
            model_gain: self.levels.is_some(),
        };
        let duration = waiting as f64 * grid.frame_seconds;
        let watch: &mut dyn ProgressCallback = &mut |share: f64| watch.report(before + share * duration);
        let separated = self.separator.separate(grid, &power, request, streams, watch, observation)?;
        self.monte_carlo.add(&separated.monte_carlo);
        self.divergences += separated.divergences;
        self.moves.add(&separated.moves);
        self.carried = Some(separated.carried);
        place(&places, &separated.gain, &mut gain, bins);
        if let Some(deviation) = &mut self.deviation {
            place(&places, &separated.deviation, &mut deviation.values.block, bins);
        }
        if let Some(levels) = &mut self.levels {
            place(&places, &separated.model_gain, &mut levels.model.block, bins);
        }
        Ok((gain, separated.floor))
    }

    /// The whole recording by the given gains, with their floor, if all of it still waits.
    fn filtered(&self, gain: &[f32]) -> Vec<Vec<f32>> {
        let filtered = |waiting: &Spectrogram| {
            let mut frames = waiting.clone();
            frames.as_mut_slice().iter_mut().zip(gain).for_each(|(value, &gain)| *value *= gain);
            self.front_end.stft().synthesise(&frames, self.front_end.samples() as usize)
        };
        self.front_end.spectrograms().map(filtered).collect()
    }
}

/// Leads from the values of the last block (bins x overlap) to those of this one (bins x frames).
fn cross_fade(before: &[f32], values: &mut [f32], bins: usize) {
    for (i, (value, &before)) in values.iter_mut().zip(before).enumerate() {
        let weight = (i / bins + 1) as f32 / (OVERLAP_FRAMES + 1) as f32;
        *value = before + weight * (*value - before);
    }
}

/// The power of a bin, in a precision that has room for all.
fn bin_power(value: &Complex<f32>) -> f64 {
    f64::from(value.re).powi(2) + f64::from(value.im).powi(2)
}

/// Copies the frames of `partial` to their `places` in `gain`, bins each.
fn place(places: &[usize], partial: &[f32], gain: &mut [f32], bins: usize) {
    for (&t, frame) in places.iter().zip(partial.chunks_exact(bins)) {
        gain[t * bins..(t + 1) * bins].copy_from_slice(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Denoiser, EmSettings, GainSettings, SamplingSettings, Settings, SpeechLevel};
    use super::*;
    use crate::model::Dictionary;
    use crate::transform::Stft;
    use rand::RngExt;
    use std::f32::consts::TAU;

    const RATE: usize = 8_000;

    fn one_sweep() -> Settings {
        Settings { em: EmSettings { iterations: 1, ..EmSettings::default() }, ..Settings::fast() }
    }

    /// The model alone: what has learned from voices takes the syllables below for noise at times.
    fn denoiser() -> Denoiser {
        let gain = GainSettings { speech_presence: false, ..GainSettings::default() };
        Denoiser::new(Dictionary::built_in().unwrap(), Settings { gain, ..Settings::fast() }).unwrap()
    }

    /// Syllables of a gliding voice for 0.6 s of every second, and white noise of the given level.
    fn recording(seconds: usize, level: impl Fn(f32) -> f32) -> (Vec<f32>, Vec<f32>) {
        let mut stream = SeedTree::new(1).rng(0);
        (0..seconds * RATE)
            .map(|n| {
                let t = n as f32 / RATE as f32;
                let envelope = (TAU * 5.0 / 6.0 * (t % 1.0)).sin().max(0.0);
                let pitch = TAU * (120.0 * t + 4.0 * (0.7 * t).sin());
                let voice: f32 = (1..=20).map(|h| (h as f32 * pitch).sin() / h as f32).sum();
                (0.1 * envelope * voice, level(t) * stream.random_range(-1.0..1.0_f32))
            })
            .unzip()
    }

    fn denoise(samples: &[f32]) -> Vec<f32> {
        let denoiser = denoiser();
        let mut stream = denoiser.stream(RATE as u32, 1).unwrap();
        let mut output = stream.push(&[samples]).unwrap().remove(0);
        output.extend(&stream.finish().unwrap()[0]);
        output
    }

    /// The same in one block of any length.
    fn denoise_at_once(samples: &[f32]) -> Vec<f32> {
        let denoiser = denoiser();
        let stft = Stft::new(RATE as u32, denoiser.dictionary().header().window_seconds).unwrap();
        let mut frames = stft.analyse(samples);
        let power: Vec<f32> = frames.as_slice().iter().map(|x| x.norm_sqr()).collect();
        let scale = power.len() as f32 / power.iter().sum::<f32>();
        let power: Vec<f32> = power.iter().map(|x| x * scale).collect();
        let streams = SeedTree::new(0);
        let request = Request::default();
        let separator = &denoiser.separator;
        let separated = separator.separate(stft.grid(), &power, request, streams, &mut (), None).unwrap();
        let mut gain = separated.gain;
        apply_floor(&mut gain, &separated.floor);
        frames.as_mut_slice().iter_mut().zip(&gain).for_each(|(x, gain)| *x *= gain);
        stft.synthesise(&frames, samples.len())
    }

    fn power(samples: &[f32]) -> f32 {
        samples.iter().map(|x| x * x).sum::<f32>() / samples.len() as f32
    }

    fn decibels(ratio: f32) -> f32 {
        10.0 * libm::log10f(ratio)
    }

    /// By how much the noise between the syllables is lowered in every second, dB.
    fn attenuations(noise: &[f32], output: &[f32]) -> Vec<f32> {
        let pauses = |x: &'_ [f32]| -> Vec<f32> {
            x.chunks_exact(RATE).map(|second| power(&second[RATE * 7 / 10..RATE * 9 / 10])).collect()
        };
        pauses(noise).iter().zip(pauses(output)).map(|(before, after)| decibels(before / after)).collect()
    }

    /// By how much the gains (dB, RMS over bins) of one result change against those of another within a window, from
    /// every frame to the fourth after it.
    fn relative_jumps(noisy: &[f32], one: &[f32], other: &[f32]) -> Vec<f32> {
        let stft = Stft::new(RATE as u32, 0.064).unwrap();
        let [noisy, one, other] = [noisy, one, other].map(|x| stft.analyse(x));
        let ratios: Vec<f32> = noisy
            .as_slice()
            .iter()
            .zip(one.as_slice().iter().zip(other.as_slice()))
            .map(|(x, (one, other))| {
                let gain = |y: f32| decibels((y / x.norm_sqr()).clamp(1e-4, 1.0));
                gain(one.norm_sqr()) - gain(other.norm_sqr())
            })
            .collect();
        let frames: Vec<&[f32]> = ratios.chunks_exact(stft.bins()).collect();
        let change = |a: &[f32], b: &[f32]| {
            (a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f32>() / a.len() as f32).sqrt()
        };
        frames.windows(5).map(|window| change(window[0], window[4])).collect()
    }

    #[test]
    fn blocks_join_without_a_seam() {
        // The last block is so short that it looks back.
        let (voice, noise) = recording(34, |_| 0.03);
        let noisy: Vec<f32> = voice.iter().zip(&noise).map(|(x, n)| x + n).collect();
        let (blocked, whole) = (denoise(&noisy), denoise_at_once(&noisy));
        let difference: Vec<f32> = blocked.iter().zip(&whole).map(|(a, b)| a - b).collect();
        // In stretches of 50 ms, against what both take away.
        let length = RATE / 20;
        let removed: Vec<f32> = noisy.iter().zip(&whole).map(|(x, y)| x - y).collect();
        let ratios: Vec<f32> = difference
            .chunks_exact(length)
            .zip(removed.chunks_exact(length))
            .map(|(difference, removed)| decibels(power(difference) / power(removed)))
            .collect();
        let largest = ratios.iter().copied().fold(f32::MIN, f32::max);
        assert!(largest < -15.0, "{largest} dB");
        // Where one block follows another, the gains change no more than they do within a block.
        let (mut joins, mut elsewhere) = (Vec::new(), Vec::new());
        let jumps = relative_jumps(&noisy, &blocked, &whole);
        for (index, &jump) in jumps.iter().enumerate() {
            let beyond = (index + 4) % (BLOCK_FRAMES - OVERLAP_FRAMES);
            if beyond < 4 && index > 4 {
                joins.push(jump);
            } else if beyond > 2 * OVERLAP_FRAMES {
                elsewhere.push(jump);
            }
        }
        assert_eq!(joins.len(), 4 * 4);
        let largest = joins.iter().copied().fold(0.0, f32::max);
        elsewhere.sort_by(f32::total_cmp);
        let (median, high) = (elsewhere[elsewhere.len() / 2], elsewhere[elsewhere.len() * 98 / 100]);
        assert!(
            largest < high,
            "{largest} dB where blocks join; elsewhere median {median}, 98% below {high}"
        );
    }

    /// Of one block of samples all but the overlap with the next comes back, however few come at a time.
    #[test]
    fn the_first_output_comes_after_one_block() {
        let settings = one_sweep();
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), settings).unwrap();
        // The last block looks back.
        let (_, noise) = recording(17, |_| 0.1);
        let in_chunks = |size: usize| {
            let mut stream = denoiser.stream(RATE as u32, 1).unwrap();
            let (block, hop) = (stream.block_samples(), stream.front_end.stft().hop());
            let (mut given, mut output) = (0, Vec::new());
            for chunk in noise.chunks(size) {
                let mut new = stream.push(&[chunk]).unwrap().remove(0);
                given += chunk.len();
                if given < block {
                    assert!(new.is_empty(), "{} samples after {given}", new.len());
                } else if given < block + size && given < 2 * block {
                    // The first frames reach to before the start.
                    let lead = stream.front_end.stft().window() - hop;
                    assert_eq!(new.len(), block - OVERLAP_FRAMES * hop - lead);
                }
                output.append(&mut new);
            }
            output.append(&mut stream.finish().unwrap()[0]);
            output
        };
        let whole = in_chunks(noise.len());
        assert_eq!(whole.len(), noise.len());
        for size in [1, 777] {
            assert!(in_chunks(size) == whole, "in chunks of {size}");
        }
    }

    #[test]
    fn what_waits_does_not_grow_with_the_recording() {
        let settings = one_sweep();
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), settings).unwrap();
        let mut stream = denoiser.stream(RATE as u32, 1).unwrap();
        let (_, noise) = recording(20, |_| 0.1);
        let (mut given, mut taken) = (0, 0);
        for _ in 0..8 {
            given += noise.len();
            taken += stream.push(&[&noise]).unwrap()[0].len();
            assert!(given - taken <= stream.latency(), "{} samples after {} s", given - taken, given / RATE);
        }
    }

    #[test]
    fn the_summary_says_what_a_listener_would_ask() {
        // White noise of -40 dBFS in the pauses of a voice.
        let (voice, noise) = recording(20, |_| 0.01 * 3.0_f32.sqrt());
        let noisy: Vec<f32> = voice.iter().zip(&noise).map(|(x, n)| x + n).collect();
        let denoiser = denoiser();
        let mut stream = denoiser.stream(RATE as u32, 1).unwrap();
        let mut output = stream.push(&[&noisy]).unwrap().remove(0);
        output.extend(&stream.finish().unwrap()[0]);
        let summary = stream.summary();
        let pause = |x: &[f32]| -> f64 {
            let pauses: Vec<f32> =
                x.chunks_exact(RATE).flat_map(|x| &x[RATE * 7 / 10..RATE * 9 / 10]).copied().collect();
            decibels(power(&pauses)).into()
        };
        let snr = f64::from(decibels(power(&voice) / power(&noise)));
        assert!((summary.noise_before_dbfs - pause(&noisy)).abs() < 0.5, "{summary:?} {}", pause(&noisy));
        assert!((summary.noise_after_dbfs - pause(&output)).abs() < 3.0, "{summary:?} {}", pause(&output));
        assert!((summary.snr_before_db - snr).abs() < 2.0, "{summary:?} {snr}");
        assert!(summary.snr_after_db > summary.snr_before_db + 6.0, "{summary:?}");
        let error: Vec<f32> = output.iter().zip(&voice).map(|(found, voice)| found - voice).collect();
        let sdr = f64::from(decibels(power(&voice) / power(&error)));
        assert!((summary.expected_sdr_db - sdr).abs() < 3.0, "{summary:?} {sdr}");
    }

    #[test]
    fn noise_that_changes_is_followed() {
        type Level = fn(f32) -> f32;
        // Slowly over a minute, suddenly in a later block, and away again.
        let levels: [Level; 3] = [
            |t| 0.02 * libm::powf(10.0, 0.5 * (TAU * t / 60.0).sin()),
            |t| if t < 25.0 { 0.005 } else { 0.05 },
            |t| if t < 25.0 { 0.05 } else { 0.005 },
        ];
        for (case, level) in levels.into_iter().enumerate() {
            let (voice, noise) = recording(60, level);
            let noisy: Vec<f32> = voice.iter().zip(&noise).map(|(x, n)| x + n).collect();
            let output = denoise(&noisy);
            let found = attenuations(&noise, &output);
            // The noise of a block is that of its greater part: what is left of louder noise just before is not.
            let missed = found.iter().filter(|&&x| x < 15.0).count();
            assert!(missed <= if case == 2 { 2 } else { 0 }, "case {case}: {found:?}");
        }
    }

    /// Of a voice in white noise, whose own levels are known.
    #[test]
    fn intervals_hold_the_levels_of_the_voice() {
        let (voice, noise) = recording(20, |_| 0.03);
        let noisy: Vec<f32> = voice.iter().zip(&noise).map(|(x, n)| x + n).collect();
        let gather = |samples: &[f32], size: usize| {
            let denoiser = denoiser();
            let mut stream = denoiser.stream(RATE as u32, 1).unwrap();
            stream.record_levels();
            let mut cells = Vec::new();
            for chunk in samples.chunks(size) {
                stream.push(&[chunk]).unwrap();
                let levels = stream.take_levels();
                assert_eq!(levels.first_slot * 15, cells.len() as u64);
                cells.extend(levels.cells);
            }
            stream.finish().unwrap();
            cells.extend(stream.take_levels().cells);
            cells
        };
        let cells = gather(&noisy, 5_000);
        assert!(cells == gather(&noisy, noisy.len()));
        assert_eq!(cells.len(), 15 * 200);
        let stft = Stft::new(RATE as u32, 0.064).unwrap();
        let (bins, scale) = (stft.bins(), 2.0 / (0.375 * (stft.window() as f64).powi(2)));
        let mut truth = LevelMeter::new(stft.grid(), 0.064);
        for frame in stft.analyse(&voice).as_slice().chunks_exact(bins) {
            let squares: Vec<f64> = frame.iter().map(|x| scale * bin_power(x)).collect();
            truth.push(&squares, &vec![1.0; bins], &vec![1.0; bins]);
        }
        truth.finish(20.0);
        let pairs: Vec<(SpeechLevel, f64)> = cells
            .into_iter()
            .zip(truth.take().cells)
            .filter_map(|(found, truth)| Some((found?, truth?.level_dbfs)))
            .filter(|(found, _)| found.level_dbfs > -60.0)
            .collect();
        let held = |width: f64| {
            let is_held =
                |&&(SpeechLevel { level_dbfs: level, lower_dbfs, upper_dbfs }, truth): &&(_, f64)| {
                    (level - width * (level - lower_dbfs)..=level + width * (upper_dbfs - level))
                        .contains(&truth)
                };
            pairs.iter().filter(is_held).count() as f64 / pairs.len() as f64
        };
        assert!(pairs.len() > 500, "{}", pairs.len());
        // They are learned from real voices, whose gains were listened to.
        assert!((0.7..=1.0).contains(&held(1.0)), "{}", held(1.0));
        assert!(held(0.1) < 0.7, "{}", held(0.1));
    }

    #[test]
    fn every_frame_has_a_deviation_if_there_are_draws() {
        let samples: Vec<f32> =
            (0..16_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 8) as f32 / 2e8).collect();
        let deviations = |iterations| {
            let em = EmSettings { iterations: 4, ..EmSettings::default() };
            let burn_in = iterations / 2;
            let sampling = SamplingSettings { iterations, burn_in, ..SamplingSettings::default() };
            let sampling = (iterations > 0).then_some(sampling);
            let settings = Settings { em, sampling, ..Settings::default() };
            let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), settings).unwrap();
            let mut stream = denoiser.stream(16_000, 1).unwrap();
            stream.record_gain_std();
            stream.push(&[&samples]).unwrap();
            stream.finish().unwrap();
            stream.take_gain_std()
        };
        let stft = Stft::new(16_000, 0.064).unwrap();
        let drawn = deviations(8);
        assert_eq!(drawn.len(), stft.bins() * stft.frames(samples.len()));
        assert!(drawn.iter().all(|x| (0.0..=0.5).contains(x)) && drawn.iter().any(|&x| x > 0.001));
        // One draw does not vary, and the maximum is no draw.
        assert!(deviations(1).iter().all(|&x| x < 1e-3));
        assert!(deviations(0).is_empty());
    }
}
