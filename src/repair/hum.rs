//! Removal of hum: steady tones such as the harmonics of the mains.
//!
//! A tone of constant frequency is found to a fraction of a hertz from its phase, so that it can be subtracted and the voice
//! around it stays. A gain can only attenuate the voice with it.

use super::{offset::sounding, quantile};
use crate::range::SettingsError;
use crate::transform::Stft;
use num_complex::Complex;
use std::f64::consts::{PI, TAU};
use std::ops::Range;

/// Window of the transform, s: it tells the harmonics of the mains from each other.
pub(super) const WINDOW_SECONDS: f64 = 0.128;
/// Highest frequency of a tone, Hz.
pub(super) const MAX_HERTZ: f64 = 4_000.0;
/// Samples before a block that are looked at as well, s.
const CONTEXT_SECONDS: f64 = 4.0;
/// Minimum number of frames.
const MIN_FRAMES: usize = 24;
/// The quantile of the levels of a bin that is not above that of a tone: the voice has pauses there.
pub(super) const QUIET: f64 = 0.3;
/// A frame has the tone alone if its level is that quantile within this factor.
pub(super) const NEAR: f64 = 2.0;
/// Minimum number of pairs of quiet frames.
const MIN_PAIRS: u32 = 8;
/// Minimum modulus of the mean phase factor between quiet frames.
const COHERENCE: f64 = 0.8;
/// Standard deviation of the weights over time by which the amplitude is averaged, s.
const AVERAGE_SECONDS: f64 = 0.4;
/// Length of the parts in which tones are looked for that begin or end, s.
const PART_SECONDS: f64 = 2.0;
/// Distance of these parts, s; such a tone may reach so far beyond them.
const PART_DISTANCE_SECONDS: f64 = 1.0;
/// Quiet level of a tone relative to the next bins but one, at least, in such a part: noise is hardly looked at.
const STANDING_OUT: f64 = 1.5;
/// Iterations of the robust mean.
const ITERATIONS: usize = 6;
/// Maximum distance from its mean, relative to the median amplitude, in the quiet frames of a tone: it is 12 dB above all else
/// there.
pub(super) const MAX_DISTANCE: f64 = 0.25;
/// Frames to either side whose quiet level tells whether the tone is there.
const NEIGHBOURS: usize = 8;
/// Minimum of that level relative to the amplitude.
pub(super) const PRESENT: f64 = 0.35;
/// Fade from the tones of a block to those of the next, s.
const FADE_SECONDS: f64 = 0.064;

/// Removal of the hum of a channel, block by block.
#[derive(Debug, Clone)]
pub(crate) struct Hum {
    stft: Stft,
    /// The last samples before the next block, at most [`CONTEXT_SECONDS`], with their hum.
    before: Vec<f32>,
    /// The tones of the last block, as they go on.
    last: Vec<Phasor>,
}

/// A tone of constant amplitude.
#[derive(Debug, Clone, Copy)]
struct Phasor {
    /// The tone at the first sample, whose real part is heard.
    start: Complex<f64>,
    /// Angle from sample to sample, rad.
    step: f64,
}

impl Phasor {
    fn at(&self, sample: usize) -> f64 {
        (self.start * unit(self.step * sample as f64)).re
    }
}

/// A tone whose amplitude and phase vary slowly.
struct Tone {
    /// Angle from sample to sample, rad.
    step: f64,
    /// Amplitude and phase relative to the step, by frame.
    amplitudes: Vec<Complex<f64>>,
}

/// Frequency and scale of a steady tone, from one bin.
pub(super) struct Steady {
    /// Angle from sample to sample, rad.
    pub step: f64,
    /// Factor from the bin to the tone at the centre of the frame.
    pub scale: f64,
}

impl Steady {
    /// From the values of a bin in pairs of quiet frames, one `hop` after the other; `None` if there are few or their phases
    /// disagree.
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
        // The phase of the tone at the centre of the frame, and what the window leaves of a tone beside the centre of the bin.
        let sign = if bin.is_multiple_of(2) { 2.0 } else { -2.0 };
        Some(Self { step, scale: sign / response(off, window) })
    }
}

impl Hum {
    /// For a sample rate in Hz.
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

/// The frames of some samples that hold no digital silence.
struct Frames<'a> {
    stft: &'a Stft,
    /// Values of the bins up to [`MAX_HERTZ`] in the whole frames: frames x bins, column-major.
    values: Vec<Complex<f32>>,
    /// Frames that are wholly inside the samples.
    whole: Range<usize>,
    /// Whether each of the whole frames holds no digital silence.
    is_used: Vec<bool>,
    /// Weights of the robust mean over time, from 0 frames on.
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

    /// All steady tones: those of most of the frames, then those that begin or end.
    fn tones(&self) -> Vec<Tone> {
        let all = 0..self.whole.len();
        let (lasting, mut tones): (Vec<usize>, Vec<Tone>) = self.tones_of(&all, 0.0, &[]).into_iter().unzip();
        let passing = self.passing(&lasting);
        let distance = self.frames_in(PART_DISTANCE_SECONDS);
        let mut ends = Vec::<(usize, usize)>::new();
        for (at, (bin, sure)) in passing.iter().enumerate() {
            // Some frames to either side, but for those of another tone of the bin.
            let before = ends.iter().filter(|(other, _)| is_beside(*bin, *other)).map(|(_, end)| *end).max();
            let next = passing[at + 1..].iter().find(|(other, _)| is_beside(*bin, *other));
            let start = sure.start.saturating_sub(distance).max(before.unwrap_or(0));
            let end = (sure.end + distance).min(next.map_or(all.end, |(_, next)| next.start));
            let quiet = self.quiet(sure, self.values(*bin, sure).map(modulus));
            tones.extend(self.tone(*bin, quiet, sure, &(start..end)));
            ends.push((*bin, end));
        }
        tones
    }

    /// Bins of tones that begin or end, and the frames in which each is sure to be, apart from those of bins whose tone lasts.
    fn passing(&self, lasting: &[usize]) -> Vec<(usize, Range<usize>)> {
        let [length, distance] = [PART_SECONDS, PART_DISTANCE_SECONDS].map(|seconds| self.frames_in(seconds));
        let mut passing = Vec::<(usize, Range<usize>)>::new();
        for start in (0..self.whole.len()).step_by(distance) {
            let part = start..(start + length).min(self.whole.len());
            for (bin, _) in self.tones_of(&part, STANDING_OUT, lasting) {
                let goes_on =
                    |(other, sure): &&mut (usize, Range<usize>)| is_beside(bin, *other) && start <= sure.end;
                match passing.iter_mut().find(goes_on) {
                    Some((_, sure)) => sure.end = part.end,
                    None => passing.push((bin, part.clone())),
                }
            }
        }
        passing
    }

    /// Number of frames in so many seconds.
    fn frames_in(&self, seconds: f64) -> usize {
        (seconds * f64::from(self.stft.sample_rate())) as usize / self.stft.hop()
    }

    /// The steady tones of some frames, and their bins, none of which is beside a `known` one. The quiet level of a tone is above that
    /// of the next bins but one by this factor at least.
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

    /// The quiet level among those of some frames.
    fn quiet(&self, frames: &Range<usize>, levels: impl Iterator<Item = f64>) -> f64 {
        let used = self.is_used[frames.clone()].iter().zip(levels).filter(|(is_used, _)| **is_used);
        let levels: Vec<f64> = used.map(|(_, level)| level).collect();
        quantile(&levels, QUIET).unwrap_or(0.0)
    }

    /// The tone at a bin in some frames, if there is one, with this quiet level where it is `sure` to be.
    fn tone(&self, bin: usize, quiet: f64, sure: &Range<usize>, frames: &Range<usize>) -> Option<Tone> {
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
        let means = self.robust_mean(&turned, scale.abs() * quiet, sure, frames)?;
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

    /// Local means of the values of some frames, in which those far from it count little: these hold voice. `None` if too few
    /// values are near where the tone is `sure` to be.
    fn robust_mean(
        &self,
        values: &[Complex<f64>],
        quiet: f64,
        sure: &Range<usize>,
        frames: &Range<usize>,
    ) -> Option<Vec<Complex<f64>>> {
        let is_used = &self.is_used[frames.clone()];
        let weight = |at: usize, distance: f64, scale: f64| {
            if is_used[at] { 1.0 / (distance * distance + scale * scale) } else { 0.0 }
        };
        let mut weights: Vec<f64> =
            values.iter().enumerate().map(|(at, x)| weight(at, modulus(*x) - quiet, 0.2 * quiet)).collect();
        let surely = sure.start - frames.start..sure.end - frames.start;
        let mut means = Vec::new();
        let mut nearest = 0.0;
        for _ in 0..ITERATIONS {
            means = averaged(values, &weights, &self.kernel);
            let distances: Vec<f64> = values.iter().zip(&means).map(|(x, mean)| modulus(x - mean)).collect();
            nearest = self.quiet(sure, distances[surely.clone()].iter().copied());
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

    /// A tone from a sample on, as it goes on behind the last frame.
    fn end(&self, tone: &Tone, sample: usize) -> Phasor {
        let start = self.amplitude(tone, sample as f64) * unit(tone.step * sample as f64);
        Phasor { start, step: tone.step }
    }
}

/// Whether a tone at one bin may be that at another.
fn is_beside(bin: usize, other: usize) -> bool {
    bin.abs_diff(other) <= 1
}

/// Weighted means of values around each, with weights over time from `kernel`.
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

/// Response of a periodic Hann window of `window` samples to a tone whose frequency is less than a bin above or below that of
/// the bin.
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

    /// A block of five seconds in which the hum is found, or not, one of nearly three, and a short one, at a peak of the hum.
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
        // In 3.5 s, the voice leaves few pauses to find each tone in.
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
