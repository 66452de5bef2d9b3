//! Removal of hum: steady tones such as the harmonics of the mains.
//!
//! The frequency of a steady tone is estimated from its phase, to a fraction of a hertz. The tone is therefore
//! subtracted without a change of the voice, which a gain would attenuate, too.

use super::{offset::sounding, quantile};
use crate::range::SettingsError;
use crate::transform::Stft;
use num_complex::Complex;
use std::f64::consts::{PI, TAU};
use std::ops::Range;

/// Window of the transform, s: long enough to resolve the harmonics of the mains.
pub(super) const WINDOW_SECONDS: f64 = 0.128;
/// Highest frequency of a tone, Hz.
pub(super) const MAX_HERTZ: f64 = 4_000.0;
/// Context before a block that is analysed with it, s.
const CONTEXT_SECONDS: f64 = 4.0;
/// Minimum number of frames.
const MIN_FRAMES: usize = 24;
/// Quantile of the levels of a bin that is its quiet level. It is at most the level of a tone there, as the voice has
/// pauses.
pub(super) const QUIET: f64 = 0.3;
/// A frame is quiet, with the tone alone, if its level is within this factor of the quiet level.
pub(super) const NEAR: f64 = 2.0;
/// Minimum number of pairs of quiet frames.
const MIN_PAIRS: u32 = 8;
/// Minimum modulus of the mean phase factor between quiet frames.
const COHERENCE: f64 = 0.8;
/// Standard deviation of the weights over time in the mean amplitude, s.
const AVERAGE_SECONDS: f64 = 0.4;
/// Length of the parts in which tones that begin or end are detected, s.
const PART_SECONDS: f64 = 2.0;
/// Distance between the starts of these parts, s. A tone that begins or ends may extend beyond them by this time.
const PART_DISTANCE_SECONDS: f64 = 1.0;
/// Minimum quiet level of a tone in these parts, relative to the bins two away: excludes most noise.
const MIN_PROMINENCE: f64 = 1.5;
/// Iterations of the robust mean.
const ITERATIONS: usize = 6;
/// Maximum distance of the quiet frames of a tone from their mean, relative to the median amplitude: the tone is 12 dB
/// above all other sound there.
pub(super) const MAX_DISTANCE: f64 = 0.25;
/// Frames on each side whose quiet level decides whether the tone is present.
const NEIGHBOURS: usize = 8;
/// Minimum quiet level of a present tone, relative to its amplitude.
pub(super) const PRESENT: f64 = 0.35;
/// Duration of the fade from the tones of a block to those of the next, s.
const FADE_SECONDS: f64 = 0.064;

/// Removal of the hum of a channel, block by block.
#[derive(Debug, Clone)]
pub(crate) struct Hum {
    stft: Stft,
    /// The last samples before the next block, at most [`CONTEXT_SECONDS`], including their hum.
    before: Vec<f32>,
    /// The tones of the last block, continued into the next.
    last: Vec<Phasor>,
}

/// A tone of constant amplitude.
#[derive(Debug, Clone, Copy)]
struct Phasor {
    /// Complex value at the first sample; the real part is the signal.
    start: Complex<f64>,
    /// Angular frequency, rad per sample.
    step: f64,
}

impl Phasor {
    fn at(&self, sample: usize) -> f64 {
        (self.start * unit(self.step * sample as f64)).re
    }
}

/// A tone whose amplitude and phase vary slowly.
struct Tone {
    /// Angular frequency, rad per sample.
    step: f64,
    /// Complex amplitude relative to a tone of this frequency, by frame.
    amplitudes: Vec<Complex<f64>>,
}

/// Frequency and scale of a steady tone, from one bin.
pub(super) struct Steady {
    /// Angular frequency, rad per sample.
    pub step: f64,
    /// Factor from the value of the bin to the complex amplitude at the centre of the frame.
    pub scale: f64,
}

impl Steady {
    /// Estimates a tone from the values of a bin in pairs of quiet frames, `hop` samples apart. `None` if there are too
    /// few pairs, their phases disagree, or the frequency is not in the bin.
    pub(super) fn of(
        bin: usize,
        pairs: impl Iterator<Item = [Complex<f64>; 2]>,
        hop: usize,
        window: usize,
    ) -> Option<Self> {
        let (mut sum, mut count) = (Complex::default(), 0);
        for [before, now] in pairs {
            let turn = now * before.conj();
            sum += turn / modulus(turn).max(f64::MIN_POSITIVE);
            count += 1;
        }
        let mean = sum / f64::from(count.max(1));
        if count < MIN_PAIRS || modulus(mean) < COHERENCE {
            return None;
        }
        let (hop, length) = (hop as f64, window as f64);
        let step_of_bin = TAU * bin as f64 / length;
        let turned = mean * unit(-step_of_bin * hop);
        let step = step_of_bin + libm::atan2(turned.im, turned.re) / hop;
        let off = (step - step_of_bin) * length / TAU;
        if off.abs() >= 1.0 {
            return None;
        }
        // The sign refers the phase to the centre of the frame; the response is that of the window off the centre of
        // the bin.
        let sign = if bin.is_multiple_of(2) { 2.0 } else { -2.0 };
        Some(Self { step, scale: sign / response(off, window) })
    }
}

impl Hum {
    /// Creates a repair for a sample rate in Hz.
    pub(crate) fn new(sample_rate: u32) -> Result<Self, SettingsError> {
        Ok(Self { stft: Stft::new(sample_rate, WINDOW_SECONDS)?, before: Vec::new(), last: Vec::new() })
    }

    /// Removes the hum from the next block and returns the number of its tones. Blocks without hum, and digital silence, stay
    /// unchanged.
    pub(crate) fn remove(&mut self, samples: &mut [f32]) -> usize {
        let rate = f64::from(self.stft.sample_rate());
        let known = self.before.len();
        let mut joined = std::mem::take(&mut self.before);
        joined.extend_from_slice(samples);
        let frames = Frames::new(&self.stft, &joined);
        let tones = frames.tones();
        let last = std::mem::take(&mut self.last);
        if !tones.is_empty() || !last.is_empty() {
            let mut hum = vec![0.0; samples.len()];
            for tone in &tones {
                frames.add(tone, known, &mut hum);
                self.last.push(frames.end(tone, joined.len()));
            }
            let fade = if known == 0 { 0 } else { (FADE_SECONDS * rate) as usize };
            for (n, hum) in hum.iter_mut().enumerate().take(fade) {
                let before: f64 = last.iter().map(|tone| tone.at(n)).sum();
                *hum = before + (*hum - before) * (n as f64 / fade as f64);
            }
            for n in sounding(samples, self.stft.sample_rate()).into_iter().flatten() {
                samples[n] -= hum[n] as f32;
            }
        }
        joined.drain(..joined.len().saturating_sub((CONTEXT_SECONDS * rate) as usize));
        self.before = joined;
        tones.len()
    }
}

/// Frames of a signal. Frames with digital silence are not used.
struct Frames<'a> {
    stft: &'a Stft,
    /// Values of the bins up to [`MAX_HERTZ`] in the whole frames: frames x bins, column-major.
    values: Vec<Complex<f32>>,
    /// Frames that are wholly inside the samples.
    whole: Range<usize>,
    /// Whether each of the whole frames contains no digital silence.
    is_used: Vec<bool>,
    /// Weights of the robust mean by distance in frames, from 0 on.
    kernel: Vec<f64>,
}

impl<'a> Frames<'a> {
    fn new(stft: &'a Stft, samples: &[f32]) -> Self {
        let (hop, window) = (stft.hop(), stft.window());
        let first = window.div_ceil(hop) - 1;
        let whole = first..(samples.len() / hop).max(first);
        let sounding = sounding(samples, stft.sample_rate());
        let is_used = |frame: usize| {
            let (start, end) = ((frame + 1) * hop - window, (frame + 1) * hop);
            sounding.iter().any(|part| part.start <= start && end <= part.end)
        };
        let is_used = whole.clone().map(is_used).collect();
        let deviation = AVERAGE_SECONDS * f64::from(stft.sample_rate()) / hop as f64;
        let weight = |lag: usize| libm::exp(-0.5 * (lag as f64 / deviation).powi(2));
        let kernel = (0..=(3.0 * deviation) as usize).map(weight).collect();
        let spectrogram = stft.analyse(samples);
        let frames: Vec<_> =
            spectrogram.as_slice().chunks_exact(stft.bins()).skip(whole.start).take(whole.len()).collect();
        let bins = ((MAX_HERTZ / stft.bin_spacing()) as usize + 1).min(stft.bins());
        let values = (0..bins).flat_map(|bin| frames.iter().map(move |frame| frame[bin])).collect();
        Self { stft, values, whole, is_used, kernel }
    }

    /// The sample at the centre of a whole frame.
    fn centre(&self, frame: usize) -> f64 {
        let end = (self.whole.start + frame + 1) * self.stft.hop();
        end as f64 - 0.5 * self.stft.window() as f64
    }

    /// Estimates all steady tones: first those of most frames, then those that begin or end.
    fn tones(&self) -> Vec<Tone> {
        let all = 0..self.whole.len();
        let (persistent, mut tones): (Vec<usize>, Vec<Tone>) =
            self.tones_of(&all, 0.0, &[]).into_iter().unzip();
        let transient = self.transient(&persistent);
        let distance = self.frames_in(PART_DISTANCE_SECONDS);
        let mut ends = Vec::<(usize, usize)>::new();
        for (at, (bin, certain_frames)) in transient.iter().enumerate() {
            // Extended by some frames on both sides, but not into those of another tone of the bin.
            let before = ends.iter().filter(|(other, _)| is_beside(*bin, *other)).map(|(_, end)| *end).max();
            let next = transient[at + 1..].iter().find(|(other, _)| is_beside(*bin, *other));
            let start = certain_frames.start.saturating_sub(distance).max(before.unwrap_or(0));
            let end = (certain_frames.end + distance).min(next.map_or(all.end, |(_, next)| next.start));
            let quiet = self.quiet(certain_frames, self.values(*bin, certain_frames).map(modulus));
            tones.extend(self.tone(*bin, quiet, certain_frames, &(start..end)));
            ends.push((*bin, end));
        }
        tones
    }

    /// Returns the bins of tones that begin or end, and the frames in which each is certainly present. Bins next to
    /// `persistent` ones are excluded.
    fn transient(&self, persistent: &[usize]) -> Vec<(usize, Range<usize>)> {
        let [length, distance] = [PART_SECONDS, PART_DISTANCE_SECONDS].map(|seconds| self.frames_in(seconds));
        let mut transient = Vec::<(usize, Range<usize>)>::new();
        for start in (0..self.whole.len()).step_by(distance) {
            let part = start..(start + length).min(self.whole.len());
            for (bin, _) in self.tones_of(&part, MIN_PROMINENCE, persistent) {
                let continues = |(other, certain_frames): &&mut (usize, Range<usize>)| {
                    is_beside(bin, *other) && start <= certain_frames.end
                };
                match transient.iter_mut().find(continues) {
                    Some((_, certain_frames)) => certain_frames.end = part.end,
                    None => transient.push((bin, part.clone())),
                }
            }
        }
        transient
    }

    /// Returns the number of frames in `seconds`.
    fn frames_in(&self, seconds: f64) -> usize {
        (seconds * f64::from(self.stft.sample_rate())) as usize / self.stft.hop()
    }

    /// Estimates the steady tones of some frames, with their bins, except at or next to `known` bins. The quiet level
    /// of a tone is at least `standing_out` times that of the bins two away.
    fn tones_of(&self, frames: &Range<usize>, standing_out: f64, known: &[usize]) -> Vec<(usize, Tone)> {
        if self.is_used[frames.clone()].iter().filter(|is_used| **is_used).count() < MIN_FRAMES {
            return Vec::new();
        }
        let bins = self.values.len() / self.whole.len();
        let quiet: Vec<f64> = (0..bins)
            .map(|bin| libm::sqrt(self.quiet(frames, self.values(bin, frames).map(|x| x.norm_sqr()))))
            .collect();
        (2..bins.saturating_sub(1))
            .filter(|&bin| quiet[bin] > 0.0 && quiet[bin] >= quiet[bin - 1] && quiet[bin] > quiet[bin + 1])
            .filter(|&bin| {
                quiet[bin] >= standing_out * quiet[bin - 2].max(quiet.get(bin + 2).copied().unwrap_or(0.0))
            })
            .filter(|&bin| !known.iter().any(|&other| is_beside(bin, other)))
            .filter_map(|bin| Some((bin, self.tone(bin, quiet[bin], frames, frames)?)))
            .collect()
    }

    /// The values of a bin in some of the whole frames.
    fn values(&self, bin: usize, frames: &Range<usize>) -> impl Iterator<Item = Complex<f64>> {
        let values = &self.values[bin * self.whole.len()..][frames.clone()];
        values.iter().map(|x| Complex::new(f64::from(x.re), f64::from(x.im)))
    }

    /// Returns the quiet level of `levels`, one for each of these frames.
    fn quiet(&self, frames: &Range<usize>, levels: impl Iterator<Item = f64>) -> f64 {
        let used = self.is_used[frames.clone()].iter().zip(levels).filter(|(is_used, _)| **is_used);
        let levels: Vec<f64> = used.map(|(_, level)| level).collect();
        quantile(&levels, QUIET).unwrap_or(0.0)
    }

    /// Estimates the tone at a bin in some frames, if any. `quiet` is its quiet level in the frames `certain_frames`, in which it
    /// is certainly present.
    fn tone(
        &self,
        bin: usize,
        quiet: f64,
        certain_frames: &Range<usize>,
        frames: &Range<usize>,
    ) -> Option<Tone> {
        let values: Vec<Complex<f64>> = self.values(bin, frames).collect();
        let near = quiet / NEAR..NEAR * quiet;
        let is_quiet = |at: usize| self.is_used[frames.start + at] && near.contains(&modulus(values[at]));
        let pairs = (1..values.len())
            .filter(|&at| is_quiet(at - 1) && is_quiet(at))
            .map(|at| [values[at - 1], values[at]]);
        let Steady { step, scale } = Steady::of(bin, pairs, self.stft.hop(), self.stft.window())?;
        let turned: Vec<Complex<f64>> = frames
            .clone()
            .zip(&values)
            .map(|(frame, x)| x * scale * unit(-step * self.centre(frame)))
            .collect();
        let means = self.robust_mean(&turned, scale.abs() * quiet, certain_frames, frames)?;
        let mut amplitudes = vec![Complex::default(); self.whole.len()];
        for (at, mean) in means.into_iter().enumerate() {
            let near = at.saturating_sub(NEIGHBOURS)..(at + NEIGHBOURS + 1).min(turned.len());
            let levels = turned[near.clone()].iter().copied().map(modulus);
            if self.quiet(&(frames.start + near.start..frames.start + near.end), levels)
                >= PRESENT * modulus(mean)
            {
                amplitudes[frames.start + at] = mean;
            }
        }
        Some(Tone { step, amplitudes })
    }

    /// Returns local means of the values of some frames, in which values far from the mean have low weights, as they
    /// contain voice. `None` if too few values are near the mean in the frames `certain_frames`, in which the tone is certainly
    /// present.
    fn robust_mean(
        &self,
        values: &[Complex<f64>],
        quiet: f64,
        certain_frames: &Range<usize>,
        frames: &Range<usize>,
    ) -> Option<Vec<Complex<f64>>> {
        let is_used = &self.is_used[frames.clone()];
        let weight = |at: usize, distance: f64, scale: f64| {
            if is_used[at] { 1.0 / (distance * distance + scale * scale) } else { 0.0 }
        };
        let mut weights: Vec<f64> =
            values.iter().enumerate().map(|(at, x)| weight(at, modulus(*x) - quiet, 0.2 * quiet)).collect();
        let surely = certain_frames.start - frames.start..certain_frames.end - frames.start;
        let mut means = Vec::new();
        let mut nearest = 0.0;
        for _ in 0..ITERATIONS {
            means = averaged(values, &weights, &self.kernel);
            let distances: Vec<f64> = values.iter().zip(&means).map(|(x, mean)| modulus(x - mean)).collect();
            nearest = self.quiet(certain_frames, distances[surely.clone()].iter().copied());
            let scale = nearest.max(1e-6 * quiet);
            for (at, (weight_of, distance)) in weights.iter_mut().zip(&distances).enumerate() {
                *weight_of = weight(at, *distance, scale);
            }
        }
        let amplitudes: Vec<f64> = means[surely].iter().map(|x| modulus(*x)).collect();
        (nearest <= MAX_DISTANCE * quantile(&amplitudes, 0.5)?).then_some(means)
    }

    /// Adds a tone to the samples from `start` on.
    fn add(&self, tone: &Tone, start: usize, sum: &mut [f64]) {
        let hop = self.stft.hop();
        let turn = unit(tone.step);
        for (piece, sum) in sum.chunks_mut(hop).enumerate() {
            let first = start + piece * hop;
            let mut phase = unit(tone.step * first as f64);
            for (n, sum) in sum.iter_mut().enumerate() {
                *sum += (self.amplitude(tone, (first + n) as f64) * phase).re;
                phase *= turn;
            }
        }
    }

    /// The amplitude at a sample, linear between the centres of the frames.
    fn amplitude(&self, tone: &Tone, sample: f64) -> Complex<f64> {
        let last = tone.amplitudes.len() - 1;
        let at = ((sample - self.centre(0)) / self.stft.hop() as f64).clamp(0.0, last as f64);
        let before = at as usize;
        let [a, b] = [before, (before + 1).min(last)].map(|frame| tone.amplitudes[frame]);
        a + (b - a) * (at - before as f64)
    }

    /// Returns the continuation of a tone beyond the last frame, from a sample on.
    fn end(&self, tone: &Tone, sample: usize) -> Phasor {
        let start = self.amplitude(tone, sample as f64) * unit(tone.step * sample as f64);
        Phasor { start, step: tone.step }
    }
}

/// Whether tones at these two bins may be one tone.
fn is_beside(bin: usize, other: usize) -> bool {
    bin.abs_diff(other) <= 1
}

/// Returns the weighted mean around each value, with weights over time from `kernel`.
fn averaged(values: &[Complex<f64>], weights: &[f64], kernel: &[f64]) -> Vec<Complex<f64>> {
    let reach = kernel.len() - 1;
    let mean = |at: usize| {
        let (mut sum, mut total) = (Complex::default(), f64::MIN_POSITIVE);
        for n in at.saturating_sub(reach)..(at + reach + 1).min(values.len()) {
            let weight = kernel[at.abs_diff(n)] * weights[n];
            sum += values[n] * weight;
            total += weight;
        }
        sum / total
    };
    (0..values.len()).map(mean).collect()
}

/// Response of a periodic Hann window of `window` samples to a tone `bins` bins above the centre of its bin, -1 to 1.
pub(super) fn response(bins: f64, window: usize) -> f64 {
    let angle = PI * bins;
    let sinc = if angle.abs() < 1e-4 { 1.0 } else { libm::sin(angle) / angle };
    0.5 * window as f64 * sinc / (1.0 - bins * bins)
}

pub(super) fn unit(angle: f64) -> Complex<f64> {
    Complex::new(libm::cos(angle), libm::sin(angle))
}

pub(super) fn modulus(x: Complex<f64>) -> f64 {
    libm::sqrt(x.norm_sqr())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{double, hum, power, single, snr, speech, sum};
    use super::*;

    const RATE: u32 = 16_000;

    fn hum_repair(rate: u32) -> Hum {
        Hum::new(rate).unwrap()
    }

    #[test]
    fn hum_is_subtracted_from_voices_of_any_rate() {
        for rate in [8_000, 11_025, 48_000] {
            let speech = speech(rate);
            let mut x = sum(&speech, &hum(rate, &speech));
            let tones = hum_repair(rate).remove(&mut x);
            assert!((17..=22).contains(&tones), "{rate} Hz: {tones} tones");
            let after = snr(&speech, &double(&x));
            assert!(after > 17.0, "{rate} Hz: 0 to {after} dB");
        }
    }

    #[test]
    fn voices_and_hiss_stay_bit_for_bit() {
        for rate in [8_000, 16_000, 44_100] {
            let before = single(&speech(rate));
            let mut x = before.clone();
            assert_eq!((hum_repair(rate).remove(&mut x), x), (0, before), "{rate} Hz");
        }
    }

    /// Blocks of 5.5, 2 and 0.5 s, divided at peaks of the hum, which begins at 0 or 4.5 s.
    #[test]
    fn blocks_join_without_a_step() {
        let speech = speech(RATE);
        for begins in [0, 9 * RATE as usize / 2] {
            let mut hum = hum(RATE, &speech);
            let peak = |hum: &[f64], from: usize| {
                (from..from + 400).max_by(|&a, &b| hum[a].total_cmp(&hum[b])).unwrap_or_default()
            };
            let ends = [5, 7].map(|seconds| peak(&hum, seconds * RATE as usize + RATE as usize / 2));
            hum[..begins].fill(0.0);
            let mut x = sum(&speech, &hum);
            let mut repair = hum_repair(RATE);
            let (first, rest) = x.split_at_mut(ends[0]);
            let (second, last) = rest.split_at_mut(ends[1] - ends[0]);
            let found = [first, second, last].map(|block| repair.remove(block));
            assert!((found[0] >= 17) == (begins == 0) && found[1] >= 17 && found[2] >= 17, "{found:?}");
            let left: Vec<f64> = x.iter().zip(&speech).map(|(x, s)| f64::from(*x) - s).collect();
            let step = |x: &[f64]| x.windows(2).map(|x| (x[1] - x[0]).abs()).fold(0.0, f64::max);
            let usual = step(&hum[6 * RATE as usize..]);
            for end in ends {
                let at = step(&left[end - 20..end + 20]);
                assert!(at < usual, "at {end}: {at}, {usual} of the hum");
                let behind = power(&left[end + 1_600..end + 2_600]) / power(&speech);
                assert!(behind < 0.05, "{behind} of the power is left behind {end}");
            }
        }
    }

    #[test]
    fn hum_that_begins_or_ends_leaves_the_rest() {
        let speech = speech(RATE);
        let seconds = |from: usize, to: usize| from * RATE as usize / 4..to * RATE as usize / 4;
        // In 3.5 s, the voice has few pauses in which each tone can be detected.
        for (on, inside, off, least) in [
            (seconds(0, 28), seconds(6, 26), seconds(30, 32), 18.0),
            (seconds(4, 32), seconds(6, 26), seconds(0, 2), 18.0),
            (seconds(0, 14), seconds(2, 12), seconds(20, 32), 12.0),
            (seconds(10, 24), seconds(12, 22), seconds(28, 32), 6.0),
        ] {
            let mut x = single(&speech);
            let hum = hum(RATE, &speech);
            on.clone().for_each(|n| x[n] += hum[n] as f32);
            assert!(hum_repair(RATE).remove(&mut x) >= 15, "{on:?}");
            let [during, without] = [inside, off].map(|part| snr(&speech[part.clone()], &double(&x[part])));
            assert!(during > least && without > 15.0, "{on:?}: {during} {without} dB");
        }
    }

    #[test]
    fn digital_silence_stays() {
        let speech = speech(RATE);
        let mut x = sum(&speech, &hum(RATE, &speech));
        let silent = 2 * RATE as usize..4 * RATE as usize;
        x[silent.clone()].fill(0.0);
        let mut repair = hum_repair(RATE);
        assert!(repair.remove(&mut x) >= 17);
        assert!(x[silent.clone()].iter().all(|&x| x == 0.0));
        assert!(snr(&speech[silent.end..], &double(&x[silent.end..])) > 15.0);
        // Silent and short blocks, and levels far from 1.
        let mut silence = [0.0; 5_000];
        repair.remove(&mut silence);
        assert_eq!(silence, [0.0; 5_000]);
        repair.remove(&mut []);
        assert_eq!(hum_repair(RATE).remove(&mut [0.5; 100]), 0);
        for level in [1e-20, 1e28] {
            let mut scaled: Vec<f32> = sum(&speech, &hum(RATE, &speech)).iter().map(|x| level * x).collect();
            assert!(hum_repair(RATE).remove(&mut scaled) >= 17, "{level}");
            assert!(scaled.iter().all(|x| x.is_finite()));
        }
    }
}
