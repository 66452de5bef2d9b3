//! Denoising block by block.

use super::block::{Handover, Known, Observation, apply_floor};
use super::denoiser::{DenoiseError, Denoiser, Progress, Summary};
use super::gain::amplitude;
use super::impulses::{self, Impulses};
use super::monte_carlo::MonteCarlo;
use super::profile::NoiseProfile;
use crate::audio::{Analyser, Spectrogram, Stft, Synthesiser};
use crate::random::Streams;

/// Frames that are separated together.
const BLOCK_FRAMES: usize = 512;
/// A last block with fewer frames is separated together with frames before it, of which the result stays.
const LEAST_FRAMES: usize = BLOCK_FRAMES / 2;
/// Frames at the end of a block that the next block separates again; their gains are cross-faded.
const OVERLAP_FRAMES: usize = 32;
/// Frames with a mean power below this share of that of their block count as digital silence.
const SILENCE: f32 = 1e-9;

/// A recording that is being denoised as it comes; made by [`Denoiser::stream`].
///
/// Blocks overlap, and hand on what they learned of the noise and the channel. The result does not depend on
/// how the samples are divided into calls of [`push`](Self::push).
pub struct DenoiseStream<'a> {
    denoiser: &'a Denoiser,
    stft: Stft,
    streams: Streams,
    channels: Vec<Channel>,
    /// Samples per channel so far.
    samples: u64,
    /// Inverse of the mean power of the last block that was not silent.
    scale: f32,
    carried: Option<Handover>,
    /// Gains (bins x overlap) that the last block gave to the first pending frames.
    overlap: Vec<f32>,
    /// The same, not below the floor.
    applied_overlap: Vec<f32>,
    /// Powers (bins x frames) of the last frames that are done, as many as a last block may look back to.
    done_power: Vec<f32>,
    blocks: u64,
    frames_done: u64,
    energy: Energy,
    monte_carlo: MonteCarlo,
    divergences: usize,
    clicks: usize,
    heavy_tailed_blocks: usize,
    /// Mean power per bin that the noise starts from.
    noise_power: Option<Vec<f32>>,
    deviation: Option<Deviation<'a>>,
}

/// Is given standard deviations of the gain, bins x frames.
type ShowDeviation<'a> = dyn FnMut(&[f32]) + Send + 'a;

/// Standard deviations of the gain, bins x frames.
struct Deviation<'a> {
    /// Of the block that was separated last.
    block: Vec<f32>,
    /// Of the first pending frames, by the last block.
    overlap: Vec<f32>,
    show: Box<ShowDeviation<'a>>,
}

/// How often, and to whom, the development of a block is shown.
type BlockObserver<'a> = (usize, &'a mut dyn FnMut(usize, Vec<Vec<f32>>));

struct Channel {
    /// Samples that wait for a whole block before impulses are looked for.
    waiting: Vec<f32>,
    analyser: Analyser,
    /// Frames that wait for a whole block.
    pending: Spectrogram,
    synthesiser: Synthesiser,
    output: Vec<f32>,
}

/// Sums over all bins.
#[derive(Default)]
struct Energy {
    input: f64,
    speech: f64,
    output: f64,
}

impl<'a> DenoiseStream<'a> {
    pub(super) fn new(
        denoiser: &'a Denoiser,
        sample_rate: u32,
        channels: usize,
    ) -> Result<Self, DenoiseError> {
        let stft = Stft::new(sample_rate, denoiser.dictionary().header().window_seconds)?;
        let channel = || Channel {
            waiting: Vec::new(),
            analyser: stft.analyser(),
            pending: Spectrogram::new(stft.bins(), 0),
            synthesiser: stft.synthesiser(),
            output: Vec::new(),
        };
        Ok(Self {
            denoiser,
            streams: Streams::new(denoiser.settings().seed),
            channels: (0..channels).map(|_| channel()).collect(),
            samples: 0,
            scale: 1.0,
            carried: None,
            overlap: Vec::new(),
            applied_overlap: Vec::new(),
            done_power: Vec::new(),
            blocks: 0,
            frames_done: 0,
            energy: Energy::default(),
            monte_carlo: MonteCarlo::default(),
            divergences: 0,
            clicks: 0,
            heavy_tailed_blocks: 0,
            noise_power: None,
            deviation: None,
            stft,
        })
    }

    /// Samples per channel that are worked on together, a good size for [`push`](Self::push).
    #[must_use]
    pub fn block_samples(&self) -> usize {
        BLOCK_FRAMES * self.stft.hop()
    }

    /// Lets the noise start from what a stretch of the recording says of it.
    ///
    /// # Errors
    /// [`DenoiseError::NoNoise`] if the stretch is silent or shorter than a window.
    ///
    /// # Panics
    /// If the stretch has another sample rate.
    pub fn start_from(&mut self, noise: &NoiseProfile) -> Result<(), DenoiseError> {
        let power = noise.power().ok_or(DenoiseError::NoNoise)?;
        assert_eq!(power.len(), self.stft.bins(), "bins of the stretch and of the recording");
        self.noise_power = Some(power);
        Ok(())
    }

    /// Shows the standard deviation of the expected gain over the posterior draws (bins x frames, 0 to 0.5),
    /// stretch after stretch; nothing if the settings draw nothing.
    pub fn show_deviation(&mut self, show: impl FnMut(&[f32]) + Send + 'a) {
        self.deviation = Some(Deviation { block: Vec::new(), overlap: Vec::new(), show: Box::new(show) });
    }

    /// Takes the next samples of every channel and returns those that are done, fewer or more. `progress` is
    /// told how much of the recording is done, s.
    ///
    /// # Errors
    /// As for [`Denoiser::denoise`].
    ///
    /// # Panics
    /// If there are more or fewer channels than announced, or of unequal length.
    pub fn push(&mut self, block: &[&[f32]], progress: Progress) -> Result<Vec<Vec<f32>>, DenoiseError> {
        let length = block.first().map_or(0, |samples| samples.len());
        assert_eq!(block.len(), self.channels.len(), "channels of the block and of the stream");
        assert!(block.iter().all(|samples| samples.len() == length), "channels of equal length");
        self.samples += length as u64;
        for (channel, samples) in self.channels.iter_mut().zip(block) {
            channel.waiting.extend(*samples);
        }
        let size = self.block_samples();
        while self.channels.first().is_some_and(|channel| channel.waiting.len() >= size) {
            self.analyse(size);
            while self.pending() >= BLOCK_FRAMES {
                self.separate(BLOCK_FRAMES, false, progress, None)?;
            }
        }
        Ok(self.take_output())
    }

    /// Ends the recording: the samples still to come, and the summary.
    ///
    /// # Errors
    /// As for [`Denoiser::denoise`].
    pub fn finish(self, progress: Progress) -> Result<(Vec<Vec<f32>>, Summary), DenoiseError> {
        self.finish_observed(0, &mut |_, _| (), progress)
    }

    /// The same, showing every `every` Gibbs sweeps (0 for never) how a recording of a single block develops.
    pub(super) fn finish_observed(
        mut self,
        every: usize,
        observer: &mut dyn FnMut(usize, Vec<Vec<f32>>),
        progress: Progress,
    ) -> Result<(Vec<Vec<f32>>, Summary), DenoiseError> {
        let rest = self.channels.first().map_or(0, |channel| channel.waiting.len());
        self.analyse(rest);
        for channel in &mut self.channels {
            let analyser = std::mem::replace(&mut channel.analyser, self.stft.analyser());
            analyser.finish(&mut channel.pending);
        }
        // More frames than in a block are no worse; a last block of few is.
        while self.pending() > BLOCK_FRAMES * 3 / 2 {
            self.separate(BLOCK_FRAMES, false, progress, None)?;
        }
        let pending = self.pending();
        if pending > 0 {
            let observer = (every > 0 && self.frames_done == 0).then_some((every, observer));
            self.separate(pending, true, progress, observer)?;
        }
        for channel in &mut self.channels {
            let synthesiser = std::mem::replace(&mut channel.synthesiser, self.stft.synthesiser());
            synthesiser.finish(self.samples, &mut channel.output);
        }
        let decibels = |ratio: f64| 10.0 * libm::log10(ratio);
        let Energy { input, speech, output } = self.energy;
        let summary = Summary {
            input_snr_db: decibels(speech / (input - speech)),
            attenuation_db: decibels(input / output),
            monte_carlo: self.monte_carlo,
            divergences: self.divergences,
            clicks: self.clicks,
            heavy_tailed_blocks: self.heavy_tailed_blocks,
        };
        Ok((self.take_output(), summary))
    }

    /// Frames that wait to be separated.
    fn pending(&self) -> usize {
        self.channels.first().map_or(0, |channel| channel.pending.frames())
    }

    fn take_output(&mut self) -> Vec<Vec<f32>> {
        self.channels.iter_mut().map(|channel| std::mem::take(&mut channel.output)).collect()
    }

    /// Turns the first `samples` that wait into frames, without the impulses that the spectral model cannot see.
    fn analyse(&mut self, samples: usize) {
        for channel in &mut self.channels {
            let (repaired, found) = impulses::repair(&channel.waiting[..samples], self.stft.sample_rate());
            match found {
                Impulses::None => {}
                Impulses::Clicks { count, .. } => self.clicks += count,
                Impulses::HeavyTails { .. } => self.heavy_tailed_blocks += 1,
            }
            if found != Impulses::None {
                tracing::info!(?found, "impulses were removed in time");
            }
            channel.analyser.push(&repaired, &mut channel.pending);
            channel.waiting.drain(..samples);
        }
    }

    /// Separates the first `frames` that wait, and synthesises them up to the overlap with the next block.
    fn separate(
        &mut self,
        frames: usize,
        last: bool,
        progress: Progress,
        observer: Option<BlockObserver>,
    ) -> Result<(), DenoiseError> {
        let bins = self.stft.bins();
        let (done, context) = if last {
            (frames, LEAST_FRAMES.saturating_sub(frames).min(self.done_power.len() / bins))
        } else {
            (frames - OVERLAP_FRAMES, 0)
        };
        let mut power = self.done_power.split_off(self.done_power.len() - context * bins);
        power.resize((context + frames) * bins, 0.0);
        for channel in &self.channels {
            let waiting = channel.pending.as_slice();
            power[context * bins..].iter_mut().zip(waiting).for_each(|(sum, x)| *sum += x.norm_sqr());
        }
        if !last {
            self.done_power = power[done.saturating_sub(LEAST_FRAMES) * bins..done * bins].to_vec();
        }
        let (mut gain, floor) = self.gain(power, frames, progress, observer)?;
        gain.drain(..context * bins);
        if let Some(Deviation { block, .. }) = &mut self.deviation {
            block.drain(..(context * bins).min(block.len()));
        }
        let mut applied = gain.clone();
        apply_floor(&mut applied, &floor);
        for (values, overlap) in [(&mut gain, &mut self.overlap), (&mut applied, &mut self.applied_overlap)] {
            cross_fade(overlap, values, bins);
            *overlap = values.split_off(done * bins);
        }
        if let Some(Deviation { block, overlap, show }) = &mut self.deviation
            && !block.is_empty()
        {
            cross_fade(overlap, block, bins);
            *overlap = block.split_off(done * bins);
            show(block);
        }
        self.frames_done += done as u64;
        for channel in &mut self.channels {
            let mut finished = channel.pending.split_front(done);
            for ((value, &gain), applied) in finished.as_mut_slice().iter_mut().zip(&gain).zip(&applied) {
                let power = f64::from(value.norm_sqr());
                *value *= applied;
                self.energy.input += power;
                self.energy.speech += f64::from(gain) * power;
                self.energy.output += f64::from(value.norm_sqr());
            }
            channel.synthesiser.push(&finished, &mut channel.output);
        }
        Ok(())
    }

    /// The posterior-mean gains (bins x frames) for these powers, and the least gain per bin. The last `waiting`
    /// frames are the first that wait; those before them are done.
    fn gain(
        &mut self,
        mut power: Vec<f32>,
        waiting: usize,
        progress: Progress,
        observer: Option<BlockObserver>,
    ) -> Result<(Vec<f32>, Vec<f32>), DenoiseError> {
        let bins = self.stft.bins();
        let silent_floor = || vec![amplitude(self.denoiser.settings().floor_db); bins];
        let frames = power.len() / bins;
        let mut gain = vec![0.0; power.len()];
        if let Some(deviation) = &mut self.deviation {
            deviation.block = if self.denoiser.settings().iterations > 0 { gain.clone() } else { Vec::new() };
        }
        let mean = (power.iter().map(|&x| f64::from(x)).sum::<f64>() / power.len() as f64) as f32;
        if mean == 0.0 {
            return Ok((gain, silent_floor()));
        }
        let scale = 1.0 / mean.max(f32::MIN_POSITIVE);
        if let Some(carried) = &mut self.carried {
            carried.scale_power(scale / self.scale, self.denoiser.settings().alpha_noise);
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
        let noise_power: Option<Vec<f32>> =
            self.noise_power.as_ref().map(|power| power.iter().map(|x| x * scale).collect());
        let known = Known {
            carried: self.carried.as_ref(),
            noise_power: noise_power.as_deref(),
            deviation: self.deviation.is_some(),
            dispersion: false,
        };
        let hop = self.stft.hop() as f64 / f64::from(self.stft.sample_rate());
        let (before, duration) = (self.frames_done as f64 * hop, waiting as f64 * hop);
        let progress: Progress = &mut |share| progress(before + share * duration);
        let separated = self.denoiser.separate(bins, &power, known, streams, progress, observation)?;
        self.monte_carlo.add(&separated.monte_carlo);
        self.divergences += separated.divergences;
        self.carried = Some(separated.carried);
        place(&places, &separated.gain, &mut gain, bins);
        if let Some(deviation) = &mut self.deviation {
            place(&places, &separated.deviation, &mut deviation.block, bins);
        }
        Ok((gain, separated.floor))
    }

    /// The whole recording by the given gains, with their floor, if all of it still waits.
    fn filtered(&self, gain: &[f32]) -> Vec<Vec<f32>> {
        let filtered = |channel: &Channel| {
            let mut frames = channel.pending.clone();
            frames.as_mut_slice().iter_mut().zip(gain).for_each(|(value, &gain)| *value *= gain);
            self.stft.synthesise(&frames, self.samples as usize)
        };
        self.channels.iter().map(filtered).collect()
    }
}

/// Leads from the values of the last block (bins x overlap) to those of this one (bins x frames).
fn cross_fade(before: &[f32], values: &mut [f32], bins: usize) {
    for (i, (value, &before)) in values.iter_mut().zip(before).enumerate() {
        let weight = (i / bins + 1) as f32 / (OVERLAP_FRAMES + 1) as f32;
        *value = before + weight * (*value - before);
    }
}

/// Copies the frames of `partial` to their `places` in `gain`, bins each.
fn place(places: &[usize], partial: &[f32], gain: &mut [f32], bins: usize) {
    for (&t, frame) in places.iter().zip(partial.chunks_exact(bins)) {
        gain[t * bins..(t + 1) * bins].copy_from_slice(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;
    use crate::model::Dictionary;
    use rand::RngExt;
    use std::f32::consts::TAU;
    use std::ops::ControlFlow;

    const RATE: usize = 8_000;

    fn denoiser() -> Denoiser {
        Denoiser::new(Dictionary::shipped().unwrap(), Settings::fast()).unwrap()
    }

    /// Syllables of a gliding voice for 0.6 s of every second, and white noise of the given level.
    fn recording(seconds: usize, level: impl Fn(f32) -> f32) -> (Vec<f32>, Vec<f32>) {
        let mut stream = Streams::new(1).stream(0);
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
        let mut output = stream.push(&[samples], &mut |_| ControlFlow::Continue(())).unwrap().remove(0);
        let (rest, _) = stream.finish(&mut |_| ControlFlow::Continue(())).unwrap();
        output.extend(&rest[0]);
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
        let streams = Streams::new(0);
        let known = Known::default();
        let advance: Progress = &mut |_| ControlFlow::Continue(());
        let separated = denoiser.separate(stft.bins(), &power, known, streams, advance, None).unwrap();
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
        let settings = Settings { warm_start: 1, iterations: 0, burn_in: 0, ..Settings::default() };
        let denoiser = Denoiser::new(Dictionary::shipped().unwrap(), settings).unwrap();
        // The last block looks back.
        let (_, noise) = recording(17, |_| 0.1);
        let in_chunks = |size: usize| {
            let mut stream = denoiser.stream(RATE as u32, 1).unwrap();
            let (block, hop) = (stream.block_samples(), stream.stft.hop());
            let (mut given, mut output) = (0, Vec::new());
            for chunk in noise.chunks(size) {
                let mut new = stream.push(&[chunk], &mut |_| ControlFlow::Continue(())).unwrap().remove(0);
                given += chunk.len();
                if given < block {
                    assert!(new.is_empty(), "{} samples after {given}", new.len());
                } else if given < block + size && given < 2 * block {
                    // The first frames reach to before the start.
                    let lead = stream.stft.window() - hop;
                    assert_eq!(new.len(), block - OVERLAP_FRAMES * hop - lead);
                }
                output.append(&mut new);
            }
            let (mut rest, _) = stream.finish(&mut |_| ControlFlow::Continue(())).unwrap();
            output.append(&mut rest[0]);
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
        let settings = Settings { warm_start: 1, iterations: 0, burn_in: 0, ..Settings::default() };
        let denoiser = Denoiser::new(Dictionary::shipped().unwrap(), settings).unwrap();
        let mut stream = denoiser.stream(RATE as u32, 1).unwrap();
        let (_, noise) = recording(20, |_| 0.1);
        let (mut given, mut taken) = (0, 0);
        for _ in 0..30 {
            given += noise.len();
            taken += stream.push(&[&noise], &mut |_| ControlFlow::Continue(())).unwrap()[0].len();
            let waiting = (given - taken) as f64 / stream.block_samples() as f64;
            assert!(waiting < 2.1, "{waiting} blocks after {} s", given / RATE);
        }
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

    #[test]
    fn every_frame_has_a_deviation_if_there_are_draws() {
        let samples: Vec<f32> =
            (0..16_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 8) as f32 / 2e8).collect();
        let deviations = |iterations| {
            let settings =
                Settings { warm_start: 4, iterations, burn_in: iterations / 2, ..Settings::default() };
            let denoiser = Denoiser::new(Dictionary::shipped().unwrap(), settings).unwrap();
            let mut deviations = Vec::new();
            let mut stream = denoiser.stream(16_000, 1).unwrap();
            stream.show_deviation(|values| deviations.extend_from_slice(values));
            let progress: Progress = &mut |_| ControlFlow::Continue(());
            stream.push(&[&samples], progress).unwrap();
            stream.finish(progress).unwrap();
            deviations
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
