//! What signals are shaped by: random curves and levels, filters, rooms.
//!
//! Filters act on the Fourier series of the whole signal and are therefore circular: what rings beyond the end
//! comes in at the start, as if the sound had been there before.

use crate::random::SeededRng;
use alphamf_fourier::{ComplexToReal, RealToComplex};
use num_complex::Complex;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::ops::Range;
use std::sync::Arc;

/// The sample rate that everything is made at, Hz.
pub(super) const SAMPLE_RATE: u32 = 16_000;
/// The same, for arithmetic.
pub(super) const RATE: f64 = SAMPLE_RATE as f64;

/// Points of a random spectrum, from 0 Hz to half the sample rate.
const SPECTRUM_POINTS: usize = 513;
/// Where the slope of a random spectrum passes through 0 dB, Hz.
const PIVOT_HERTZ: f64 = 1_000.0;
/// Below this, Hz, a random spectrum slopes no further.
const LOWEST_SLOPE_HERTZ: f64 = 40.0;
/// Knots of the bends of a random spectrum, and how far they deviate, dB.
const BENDS: Bends = (4..40, 0.0..8.0);
/// Time in which the sound of a room falls by 60 dB, s.
const REVERBERATION_SECONDS: Range<f64> = 0.15..1.0;
/// Added to a mean power before anything is divided by it: silence stays silence.
const SMALLEST_POWER: f64 = 1e-12;

/// How a random curve bends: number of its knots, and its standard deviation.
pub(super) type Bends = (Range<usize>, Range<f64>);
/// How a level varies: standard deviation, dB, and new levels a second.
pub(super) type Levels = (Range<f64>, Range<f64>);

/// The Fourier series of signals of one length.
#[derive(Clone)]
pub(super) struct Fourier {
    forward: Arc<dyn RealToComplex<f64>>,
    inverse: Arc<dyn ComplexToReal<f64>>,
}

impl Fourier {
    /// For signals of `samples` samples, at least one.
    pub fn new(samples: usize) -> Self {
        Self { forward: alphamf_fourier::forward(samples), inverse: alphamf_fourier::inverse(samples) }
    }

    /// Length of the signals, samples.
    pub fn samples(&self) -> usize {
        self.forward.len()
    }

    /// The coefficients, scaled such that [`Self::synthesise`] is the inverse.
    fn analyse(&self, mut signal: Vec<f64>) -> Vec<Complex<f64>> {
        let mut coefficients = self.forward.make_output_vec();
        let transformed = self.forward.process(&mut signal, &mut coefficients);
        debug_assert!(transformed.is_ok(), "all signals have the length of the plan");
        let scale = 1.0 / self.samples() as f64;
        coefficients.iter_mut().for_each(|x| *x *= scale);
        coefficients
    }

    fn synthesise(&self, mut coefficients: Vec<Complex<f64>>) -> Vec<f64> {
        let mut signal = self.inverse.make_output_vec();
        let transformed = self.inverse.process(&mut coefficients, &mut signal);
        debug_assert!(
            transformed.is_ok(),
            "real at 0 Hz and half the sample rate, of the length of the plan"
        );
        signal
    }

    /// Multiplies every frequency (Hz) by `gain` of it, an amplitude. The phase stays.
    pub fn filter(&self, signal: Vec<f64>, gain: impl Fn(f64) -> f64) -> Vec<f64> {
        let spacing = RATE / self.samples() as f64;
        let mut coefficients = self.analyse(signal);
        coefficients.iter_mut().enumerate().for_each(|(k, x)| *x *= gain(k as f64 * spacing));
        self.synthesise(coefficients)
    }

    /// Raises every frequency by a curve in dB, from 0 Hz to half the sample rate.
    pub fn shape(&self, signal: Vec<f64>, curve: &[f64]) -> Vec<f64> {
        self.filter(signal, |hertz| amplitude(at(curve, 2.0 * hertz / RATE)))
    }

    /// The sound of a random room: noise that decays exponentially behind the direct sound, whose amplitude relative
    /// to that of the noise is drawn from `direct`. The mean power of white noise stays.
    pub fn reverberate(&self, signal: Vec<f64>, direct: Range<f64>, stream: &mut SeededRng) -> Vec<f64> {
        let length = (stream.random_range(REVERBERATION_SECONDS) * RATE) as usize;
        let mut room: Vec<f64> =
            (0..length).map(|n| normal(stream) * amplitude(-60.0 * n as f64 / length as f64)).collect();
        let norm = |room: &[f64]| room.iter().map(|x| x * x).sum::<f64>().sqrt();
        room[0] += stream.random_range(direct) * norm(&room);
        let scale = self.samples() as f64 / norm(&room);
        // A room that rings for longer than the signal lasts goes round more than once.
        let mut response = vec![0.0; self.samples()];
        room.iter().enumerate().for_each(|(n, x)| response[n % self.samples()] += scale * x);
        let mut coefficients = self.analyse(signal);
        coefficients.iter_mut().zip(self.analyse(response)).for_each(|(x, y)| *x *= y);
        self.synthesise(coefficients)
    }

    /// The signal at half the sample rate, without the upper half of its band; `half` is for signals of half the
    /// length.
    pub fn halve(&self, signal: Vec<f64>, half: &Self) -> Vec<f64> {
        let mut coefficients = self.analyse(signal);
        coefficients.truncate(half.samples() / 2 + 1);
        // Half the new sample rate has no phase.
        if let Some(last) = coefficients.last_mut() {
            last.im = 0.0;
        }
        half.synthesise(coefficients)
    }
}

/// The gain at `hertz` of a Butterworth high-pass filter of `order` with a corner (-3 dB) at `corner`, Hz.
pub(super) fn high_pass(hertz: f64, corner: f64, order: i32) -> f64 {
    low_pass(corner, hertz, order)
}

/// The gain at `hertz` of a Butterworth low-pass filter of `order` with a corner (-3 dB) at `corner`, Hz.
pub(super) fn low_pass(hertz: f64, corner: f64, order: i32) -> f64 {
    1.0 / (1.0 + libm::pow(hertz / corner, f64::from(2 * order))).sqrt()
}

/// The amplitude of a level in dB.
pub(super) fn amplitude(decibels: f64) -> f64 {
    libm::exp10(decibels / 20.0)
}

/// A standard normal variable.
pub(super) fn normal(stream: &mut SeededRng) -> f64 {
    StandardNormal.sample(stream)
}

/// White noise of mean power one.
pub(super) fn white(samples: usize, stream: &mut SeededRng) -> Vec<f64> {
    (0..samples).map(|_| normal(stream)).collect()
}

/// One of `options`, each with its probability; they sum to one.
pub(super) fn choose<T: Copy, const N: usize>(options: [(T, f64); N], stream: &mut SeededRng) -> T {
    let mut left: f64 = stream.random();
    let passed = options[..N - 1].iter().take_while(|(_, probability)| {
        left -= probability;
        left >= 0.0
    });
    options[passed.count()].0
}

/// A curve at `position`, 0 (its first point) to 1 (its last), linear between points.
pub(super) fn at(curve: &[f64], position: f64) -> f64 {
    let last = curve.len() - 1;
    let place = position.clamp(0.0, 1.0) * last as f64;
    let (point, share) = (place as usize, place.fract());
    curve[point] + share * (curve[last.min(point + 1)] - curve[point])
}

/// A smooth random curve of mean zero: a random walk through some knots, at least two, with some standard deviation.
pub(super) fn smooth_curve((knots, deviation): Bends, stream: &mut SeededRng) -> Vec<f64> {
    let mut curve = white(stream.random_range(knots), stream);
    for knot in 1..curve.len() {
        curve[knot] += curve[knot - 1];
    }
    let mean = curve.iter().sum::<f64>() / curve.len() as f64;
    curve.iter_mut().for_each(|x| *x -= mean);
    curve = normalised(curve);
    let deviation = stream.random_range(deviation);
    curve.iter_mut().for_each(|x| *x *= deviation);
    curve
}

/// A random spectrum, dB: a slope from the range `slopes`, dB per octave, and bends.
pub(super) fn random_spectrum(slopes: Range<f64>, stream: &mut SeededRng) -> Vec<f64> {
    let slope = stream.random_range(slopes);
    let bends = smooth_curve(BENDS, stream);
    let point = |k: usize| {
        let position = k as f64 / (SPECTRUM_POINTS - 1) as f64;
        let hertz = (position * RATE / 2.0).max(LOWEST_SLOPE_HERTZ);
        slope * libm::log2(hertz / PIVOT_HERTZ) + at(&bends, position)
    };
    (0..SPECTRUM_POINTS).map(point).collect()
}

/// Lets the level vary.
pub(super) fn vary_level(signal: &mut [f64], (deviation, per_second): Levels, stream: &mut SeededRng) {
    let deviation = stream.random_range(deviation);
    let knots = (signal.len() as f64 / RATE * stream.random_range(per_second)) as usize + 2;
    let levels: Vec<f64> = (0..knots).map(|_| deviation * normal(stream)).collect();
    modulate(signal, |position| amplitude(at(&levels, position)));
}

/// Multiplies a signal by `gain` of the position in it, 0 to 1.
pub(super) fn modulate(signal: &mut [f64], gain: impl Fn(f64) -> f64) {
    let step = 1.0 / signal.len() as f64;
    signal.iter_mut().enumerate().for_each(|(n, x)| *x *= gain(n as f64 * step));
}

/// The mean power.
pub(super) fn power(signal: &[f64]) -> f64 {
    signal.iter().map(|x| x * x).sum::<f64>() / signal.len() as f64
}

/// The signal at a mean power of one; silence stays silence.
pub(super) fn normalised(mut signal: Vec<f64>) -> Vec<f64> {
    let scale = 1.0 / (power(&signal) + SMALLEST_POWER).sqrt();
    signal.iter_mut().for_each(|x| *x *= scale);
    signal
}

/// Adds `signal` times `gain` to `sum`.
pub(super) fn mix(sum: &mut [f64], signal: &[f64], gain: f64) {
    sum.iter_mut().zip(signal).for_each(|(sum, x)| *sum += gain * x);
}
