//! Causal removal of hum for real-time audio.

use super::hum::{
    MAX_DISTANCE, MAX_HERTZ, NEAR, PRESENT, QUIET, Steady, WINDOW_SECONDS, modulus, response, unit,
};
use super::offset::SILENCE_SECONDS;
use crate::range::SettingsError;
use crate::transform::{hann, window_samples};
use alphamf_fourier::RealToComplex;
use num_complex::Complex;
use std::f64::consts::TAU;
use std::ops::Range;
use std::sync::Arc;

/// Number of analysed frames, half a window apart: 4 s.
const FRAMES: usize = 62;
/// Minimum number of frames: 1.5 s.
const MIN_FRAMES: usize = 24;
/// Parts of the spectrum, one of which is analysed in each frame.
const PARTS: usize = 8;
/// Maximum number of tones.
const MAX_TONES: usize = 96;
/// Standard deviation of the weights over time in the fit of amplitude and frequency, s.
const DEVIATION_SECONDS: f64 = 0.8;
/// Iterations of the robust fit.
const ITERATIONS: usize = 5;
/// Number of latest frames whose distance from the fit is tested: 1.7 s.
const NEAR_FRAMES: usize = 27;
/// Number of latest frames whose quiet level decides whether the tone is still present.
const LAST_FRAMES: usize = 16;
/// Number of latest frames without the tone after which it has ended.
const END_FRAMES: usize = 2;
/// Steps in a hop. After each step, the power of the hum is compared with that of the samples.
const STEPS: usize = 8;
/// Number of steps of low power after which all hum has ended: 24 ms, more than a period of the mains.
const END_STEPS: usize = 3;
/// Maximum power of the samples relative to the hum in these steps.
const END_POWER: f64 = 0.1;

/// Causal subtraction of hum from a channel, without latency. Allocates nothing.
///
/// Tones are detected as in [`Hum`](super::Hum), in the last four seconds, and extrapolated with the amplitude, phase
/// and frequency of a robust fit. Each tone is estimated again every half second. A tone ends if
/// the last frames lack it. All tones end as soon as the power of the samples is too low to contain them.
#[derive(Clone)]
pub(crate) struct LiveHum {
    /// Samples per second.
    rate: f64,
    /// Samples from frame to frame.
    hop: usize,
    window: Arc<[f32]>,
    forward: Arc<dyn RealToComplex<f32>>,
    /// The last frame without its first hop, followed by the next `filled` samples.
    samples: Vec<f32>,
    filled: usize,
    /// Energies of the samples and of the hum in the last steps, the latest first.
    energies: [[f64; 2]; END_STEPS],
    /// Number of zeros at the end of the samples so far, and minimum number that is digital silence.
    zeros: usize,
    silence: usize,
    /// Number of bins up to the highest frequency of a tone, plus one.
    bins: usize,
    /// The last frames (frames x bins, column-major), a ring buffer in which `last` is the index of the latest frame.
    frames: Vec<Complex<f32>>,
    last: usize,
    /// Number of frames so far, at most [`FRAMES`].
    count: usize,
    /// Index of the part of the spectrum that is analysed next.
    part: usize,
    /// Tones; unused entries are `None`.
    tones: [Option<Tone>; MAX_TONES],
    scratch: Scratch,
    /// Weights of the fit by age.
    kernel: [f64; FRAMES],
}

/// A tone that is extrapolated.
#[derive(Clone, Copy)]
struct Tone {
    /// Complex value at the next sample; the real part is the signal.
    now: Complex<f64>,
    /// Rotation per sample, a complex factor.
    turn: Complex<f64>,
    /// Frequency in bins.
    place: f64,
    /// Gain of the fade, 0 to 1, and its change per sample, negative in a fade-out.
    level: f64,
    slope: f64,
}

#[derive(Clone)]
struct Scratch {
    windowed: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    fourier: Vec<Complex<f32>>,
    /// Quiet levels of the bins, valid in the present part and in the adjacent bins.
    quiet: Vec<f64>,
}

impl LiveHum {
    /// Creates a repair for a sample rate in Hz.
    pub(crate) fn new(sample_rate: u32) -> Result<Self, SettingsError> {
        let rate = f64::from(sample_rate);
        let window = window_samples(sample_rate, WINDOW_SECONDS)?;
        let hop = window / 2;
        let forward = alphamf_fourier::forward::<f32>(window);
        let bins = ((MAX_HERTZ * window as f64 / rate) as usize + 2).min(window / 2 + 1);
        let weight = |age: usize| {
            let seconds = (age * hop) as f64 / rate;
            libm::exp(-0.5 * (seconds / DEVIATION_SECONDS).powi(2))
        };
        Ok(Self {
            rate,
            hop,
            window: hann(window).map(|weight| weight as f32).collect(),
            samples: vec![0.0; window],
            filled: 0,
            energies: Default::default(),
            zeros: 0,
            silence: ((SILENCE_SECONDS * rate) as usize).max(1),
            bins,
            frames: vec![Complex::default(); FRAMES * bins],
            last: 0,
            count: 0,
            part: 0,
            tones: [None; MAX_TONES],
            scratch: Scratch {
                windowed: vec![0.0; window],
                spectrum: forward.make_output_vec(),
                fourier: forward.make_scratch_vec(),
                quiet: vec![0.0; bins],
            },
            kernel: std::array::from_fn(weight),
            forward,
        })
    }

    /// Returns to the initial state.
    pub(crate) fn reset(&mut self) {
        self.samples.fill(0.0);
        (self.filled, self.zeros, self.last, self.count, self.part) = (0, 0, 0, 0, 0);
        self.energies = Default::default();
        self.tones.fill(None);
    }

    /// Subtracts the hum from the next samples, and writes it to `hum`.
    pub(crate) fn remove(&mut self, samples: &mut [f32], hum: &mut [f32]) {
        let start = self.samples.len() - self.hop;
        let step = self.hop.div_ceil(STEPS);
        let mut done = 0;
        while done < samples.len() {
            let end = (self.filled + step - self.filled % step).min(self.hop);
            let count = (end - self.filled).min(samples.len() - done);
            let (samples, hum) = (&mut samples[done..done + count], &mut hum[done..done + count]);
            self.samples[start + self.filled..][..count].copy_from_slice(samples);
            self.count_zeros(samples);
            hum.fill(0.0);
            for tone in self.tones.iter_mut().flatten() {
                tone.add(hum);
            }
            for (sample, hum) in samples.iter_mut().zip(&*hum) {
                let squares = [*sample, *hum].map(|x| f64::from(x).powi(2));
                self.energies[0].iter_mut().zip(squares).for_each(|(sum, square)| *sum += square);
                *sample -= hum;
            }
            self.filled += count;
            done += count;
            if self.filled == end {
                self.end_step(step);
            }
            if self.filled == self.hop {
                self.filled = 0;
                self.add_frame();
                self.samples.copy_within(self.hop.., 0);
            }
        }
    }

    /// Ends all tones and discards the frames, if the power of the last samples is too low for the hum.
    fn end_step(&mut self, step: usize) {
        let [samples, hum] = [0, 1].map(|of| self.energies.iter().map(|energies| energies[of]).sum::<f64>());
        if samples < END_POWER * hum {
            self.count = 0;
            self.tones.iter_mut().flatten().for_each(|tone| tone.slope = -1.0 / step as f64);
        }
        self.energies.rotate_right(1);
        self.energies[0] = [0.0; 2];
    }

    /// Counts zeros; discards frames and tones in digital silence.
    fn count_zeros(&mut self, samples: &[f32]) {
        let mut is_silent = false;
        for &sample in samples {
            self.zeros = if sample == 0.0 { self.zeros + 1 } else { 0 };
            is_silent |= self.zeros >= self.silence;
        }
        if is_silent {
            self.count = 0;
            self.tones.fill(None);
        }
    }

    /// Transforms the complete frame, ends tones that it lacks, and analyses the next part of the spectrum.
    fn add_frame(&mut self) {
        let Scratch { windowed, spectrum, fourier, .. } = &mut self.scratch;
        let weighted = self.samples.iter().zip(&*self.window).map(|(x, weight)| x * weight);
        windowed.iter_mut().zip(weighted).for_each(|(windowed, x)| *windowed = x);
        // The buffers have the lengths of the plan, so the transform does not fail.
        if self.forward.process_with_scratch(windowed, spectrum, fourier).is_err() {
            return;
        }
        self.last = (self.last + 1) % FRAMES;
        self.count = (self.count + 1).min(FRAMES);
        for (frames, value) in self.frames.chunks_exact_mut(FRAMES).zip(&*spectrum) {
            frames[self.last] = *value;
        }
        for tone in &mut self.tones {
            *tone = tone.filter(|tone| tone.slope >= 0.0);
        }
        let has_ended =
            self.tones.map(|tone| tone.is_some_and(|tone| self.has_ended(tone.place, modulus(tone.now))));
        for (tone, _) in self.tones.iter_mut().zip(has_ended).filter(|(_, has_ended)| *has_ended) {
            *tone = tone.map(|tone| Tone { slope: -tone.slope, ..tone });
        }
        if self.count < MIN_FRAMES {
            return;
        }
        let size = (self.bins - 1).div_ceil(PARTS);
        let part = 1 + self.part * size..(1 + (self.part + 1) * size).min(self.bins - 1);
        self.part = (self.part + 1) % PARTS;
        self.find(part);
    }

    /// Estimates the tones of some bins again: the old ones fade out, the new ones fade in.
    fn find(&mut self, bins: Range<usize>) {
        let is_of_part = |place: f64| bins.contains(&(place.round() as usize));
        for tone in self.tones.iter_mut().flatten() {
            if is_of_part(tone.place) {
                tone.slope = -tone.slope.abs();
            }
        }
        // A tone between two bins may be loudest in a bin of an adjacent part.
        let analysed_bins = bins.start.saturating_sub(1).max(2)..(bins.end + 1).min(self.bins - 1);
        for bin in analysed_bins.start - 1..analysed_bins.end + 1 {
            self.scratch.quiet[bin] = self.quiet(bin);
        }
        for bin in analysed_bins {
            let [before, quiet, after] = [bin - 1, bin, bin + 1].map(|bin| self.scratch.quiet[bin]);
            if quiet > 0.0
                && quiet >= before
                && quiet > after
                && let Some(tone) = self.tone(bin, quiet)
                && is_of_part(tone.place)
                && let Some(room) = self.tones.iter_mut().find(|room| room.is_none())
            {
                *room = Some(tone);
            }
        }
    }

    /// The values of a bin, the latest first.
    fn values(&self, bin: usize) -> impl Iterator<Item = Complex<f64>> {
        let frames = &self.frames[bin * FRAMES..(bin + 1) * FRAMES];
        let double = |x: Complex<f32>| Complex::new(f64::from(x.re), f64::from(x.im));
        (0..self.count).map(move |age| double(frames[(self.last + FRAMES - age) % FRAMES]))
    }

    /// The quiet level of a bin.
    fn quiet(&self, bin: usize) -> f64 {
        let mut squares = [0.0; FRAMES];
        squares.iter_mut().zip(self.values(bin)).for_each(|(square, x)| *square = x.norm_sqr());
        libm::sqrt(quiet(&mut squares[..self.count]))
    }

    /// Whether the last frames lack a tone of this frequency, in bins, and amplitude.
    fn has_ended(&self, place: f64, amplitude: f64) -> bool {
        let bin = place.round();
        let least = PRESENT * amplitude * 0.5 * response(place - bin, self.window.len());
        self.values(bin as usize).take(END_FRAMES).all(|x| modulus(x) < least)
    }

    /// Estimates the tone at a bin with this quiet level, if any. It fades in from the next sample on.
    fn tone(&self, bin: usize, quiet_level: f64) -> Option<Tone> {
        let mut values = [Complex::default(); FRAMES];
        values.iter_mut().zip(self.values(bin)).for_each(|(value, x)| *value = x);
        let values = &mut values[..self.count];
        let near = quiet_level / NEAR..NEAR * quiet_level;
        let is_quiet = |x: &Complex<f64>| near.contains(&modulus(*x));
        let pairs = values.windows(2).filter(|pair| pair.iter().all(is_quiet)).map(|pair| [pair[1], pair[0]]);
        let Steady { step, scale } = Steady::of(bin, pairs, self.hop, self.window.len())?;
        let (hop, window) = (self.hop as f64, self.window.len() as f64);
        // The phases refer to the centre of the latest frame.
        let to_last = unit(step * hop);
        let mut phase = Complex::new(scale, 0.0);
        for value in values.iter_mut() {
            *value *= phase;
            phase *= to_last;
        }
        let (amplitude, change) = self.fit(values, scale.abs() * quiet_level)?;
        let mut last = [0.0; LAST_FRAMES];
        last.iter_mut().zip(&*values).for_each(|(square, x)| *square = x.norm_sqr());
        if quiet(&mut last) < (PRESENT * modulus(amplitude)).powi(2) {
            return None;
        }
        let step = step + (change / amplitude).im / self.rate;
        if self.has_ended(step * window / TAU, modulus(amplitude)) {
            return None;
        }
        Some(Tone {
            now: amplitude * unit(step * 0.5 * window),
            turn: unit(step),
            place: step * window / TAU,
            level: 0.0,
            slope: 1.0 / hop,
        })
    }

    /// Fits complex amplitudes, the latest first, by a robust linear function of time. Returns the amplitude at the
    /// centre of the latest frame, and its change per second. `None` if too few of the latest amplitudes are near the
    /// fit.
    fn fit(&self, amplitudes: &[Complex<f64>], quiet_level: f64) -> Option<(Complex<f64>, Complex<f64>)> {
        let mut weights = [0.0; FRAMES];
        let square = |distance: f64, scale: f64| distance * distance + scale * scale;
        for ((weight, kernel), x) in weights.iter_mut().zip(self.kernel).zip(amplitudes) {
            *weight = kernel / square(modulus(*x) - quiet_level, 0.2 * quiet_level);
        }
        let seconds = |age: usize| -((age * self.hop) as f64) / self.rate;
        let (mut amplitude, mut change, mut nearest) = (Complex::default(), Complex::default(), 0.0);
        for _ in 0..ITERATIONS {
            let (mut sums, mut products) = ([0.0; 3], [Complex::<f64>::default(); 2]);
            for (age, (x, &weight)) in amplitudes.iter().zip(&weights).enumerate() {
                let at = seconds(age);
                sums.iter_mut().zip([1.0, at, at * at]).for_each(|(sum, power)| *sum += weight * power);
                products.iter_mut().zip([1.0, at]).for_each(|(sum, power)| *sum += x * (weight * power));
            }
            let determinant = sums[0] * sums[2] - sums[1] * sums[1];
            amplitude = (products[0] * sums[2] - products[1] * sums[1]) / determinant;
            change = (products[1] * sums[0] - products[0] * sums[1]) / determinant;
            let mut distances = [0.0; FRAMES];
            for (age, (distance, x)) in distances.iter_mut().zip(amplitudes).enumerate() {
                *distance = modulus(x - (amplitude + change * seconds(age)));
            }
            let mut near = distances;
            nearest = quiet(&mut near[..NEAR_FRAMES.min(amplitudes.len())]);
            let scale = nearest.max(1e-6 * quiet_level);
            for ((weight, kernel), distance) in weights.iter_mut().zip(self.kernel).zip(distances) {
                *weight = kernel / square(distance, scale);
            }
        }
        (nearest <= MAX_DISTANCE * modulus(amplitude)).then_some((amplitude, change))
    }
}

impl Tone {
    /// Adds the next samples of the tone to `sum`.
    fn add(&mut self, sum: &mut [f32]) {
        for sum in sum {
            self.level = (self.level + self.slope).clamp(0.0, 1.0);
            *sum += (self.level * self.now.re) as f32;
            self.now *= self.turn;
        }
    }
}

/// Returns the quiet level of `levels`, and reorders them.
fn quiet(levels: &mut [f64]) -> f64 {
    let at = ((levels.len().max(1) - 1) as f64 * QUIET) as usize;
    *levels.select_nth_unstable_by(at, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::super::tests::{double, hum, power, single, snr, speech, sum};
    use super::*;

    const RATE: u32 = 16_000;

    /// The output, and the hum that was removed, in pieces of `size` samples.
    fn removed(samples: &[f32], rate: u32, size: usize) -> (Vec<f32>, Vec<f32>) {
        let (mut repair, mut output) = (LiveHum::new(rate).unwrap(), samples.to_vec());
        let mut hum = vec![0.0; samples.len()];
        output.chunks_mut(size).zip(hum.chunks_mut(size)).for_each(|(x, hum)| repair.remove(x, hum));
        (output, hum)
    }

    #[test]
    fn hum_is_subtracted_after_three_seconds() {
        for rate in [8_000, 11_025, 48_000] {
            let speech = speech(rate);
            let x = sum(&speech, &hum(rate, &speech));
            let (output, hum) = removed(&x, rate, 64);
            assert!(x.iter().zip(&output).zip(&hum).all(|((x, y), hum)| x - hum == *y));
            let late = 3 * rate as usize..;
            let after = snr(&speech[late.clone()], &double(&output[late]));
            assert!(after > 13.0, "{rate} Hz: 0 to {after} dB");
            assert!(removed(&x, rate, 1_777).0 == output, "{rate} Hz: pieces of another size");
        }
    }

    #[test]
    fn voices_and_hiss_stay_bit_for_bit() {
        for rate in [8_000, 16_000, 44_100] {
            let x = single(&speech(rate));
            assert!(removed(&x, rate, 128).0 == x, "{rate} Hz");
        }
    }

    #[test]
    fn hum_that_ends_is_subtracted_no_longer() {
        let speech = [speech(RATE), speech(RATE)].concat();
        let end = 6 * RATE as usize;
        let mut hum = hum(RATE, &speech);
        hum[end..].fill(0.0);
        // Below a voice, and in its pause.
        for (pause, seconds) in [(0.0, 0.3), (0.5, 0.05)] {
            let mut x = speech.clone();
            x[end..][..(pause * f64::from(RATE)) as usize].iter_mut().for_each(|x| *x *= 1e-3);
            let (_, found) = removed(&sum(&x, &hum), RATE, 256);
            assert!(found[end - 5_000..end].iter().any(|x| *x != 0.0));
            let left = power(&double(&found[end + (seconds * f64::from(RATE)) as usize..])) / power(&speech);
            assert!(left < 1e-3, "{seconds} s behind the end: {left} of the power of the voice");
        }
    }

    #[test]
    fn digital_silence_stays_and_levels_may_be_far_from_one() {
        let speech = [speech(RATE), speech(RATE)].concat();
        let mut x = sum(&speech, &hum(RATE, &speech));
        let silent = 5 * RATE as usize..8 * RATE as usize;
        x[silent.clone()].fill(0.0);
        let (output, _) = removed(&x, RATE, 100);
        assert!(output[silent.start + 160..silent.end].iter().all(|&y| y == 0.0));
        let late = 12 * RATE as usize..;
        assert!(snr(&speech[late.clone()], &double(&output[late])) > 9.0);
        for level in [1e-20, 1e28] {
            let scaled: Vec<f32> = x.iter().map(|x| level * x).collect();
            let (output, hum) = removed(&scaled, RATE, 100);
            assert!(
                output.iter().all(|x| x.is_finite()) && hum[..silent.start].iter().any(|x| *x != 0.0),
                "{level}"
            );
        }
    }

    #[test]
    fn a_reset_forgets_everything() {
        let x = sum(&speech(RATE), &hum(RATE, &speech(RATE)));
        let mut repair = LiveHum::new(RATE).unwrap();
        let [first, second] = [(); 2].map(|()| {
            let (mut output, mut hum) = (x.clone(), vec![0.0; x.len()]);
            repair.remove(&mut output, &mut hum);
            repair.reset();
            output
        });
        assert!(first == second && first != x);
    }
}
