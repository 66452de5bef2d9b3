//! Simulated recordings: pairs of clean and noisy speech to train on, from clean speech alone.
//!
//! All noise is made up. It is babble, coloured noise, products of spectra and activations, hum, impacts, textures
//! and rumble, one to three of them at once, made of random numbers and of the clean speech itself. A recorded
//! noise is in none of them, so that recorded noise remains a fair test.
//!
//! ```
//! use alphamf::signal::{SampleFormat, Signal};
//! use alphamf::{learning::Simulator, random::SeedTree};
//! let voice = (0..16_000).map(|n| (n as f32 * 0.1).sin() * (n as f32 * 0.001).cos()).collect();
//! let mut simulator = Simulator::new(0.5);
//! simulator.add(&Signal::new(16_000, SampleFormat::Float32, vec![voice])?)?;
//! let example = simulator.draw(SeedTree::new(1).child(7))?;
//! assert_eq!(example.clean.len(), example.noisy.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod noise;
mod shaping;
#[cfg(test)]
mod tests;

use crate::random::{SeedTree, SeededRng};
use crate::samplers::distributed::{Communicator, pack, unpack};
use crate::signal::{LOWEST_VOICE_HERTZ, Signal};
use noise::Kind;
use rand::RngExt;
use shaping::{
    Bends, Fourier, Levels, RATE, SAMPLE_RATE, amplitude, choose, high_pass, low_pass, mix, normalised,
    power, smooth_curve, vary_level,
};
use std::ops::{Range, RangeInclusive};

/// The lengths of examples that are accepted, s.
pub const SECONDS: RangeInclusive<f64> = 0.1..=600.0;

/// The ratio of the mean power of speech to that of noise, dB. Rumble comes on top. Speech that is a mere
/// pause counts as 40 dB below its recording.
pub const SIGNAL_TO_NOISE_DB: RangeInclusive<f64> = -4.0..=25.0;

/// The ratio of the mean power of speech to that of rumble, where there is any, dB.
pub const SIGNAL_TO_RUMBLE_DB: RangeInclusive<f64> = -3.0..=20.0;

/// Order of the filter that removes it.
const LOWEST_VOICE_ORDER: i32 = 4;
/// Mean power, full scale being one, below which a recording counts as silence.
const SILENCE: f64 = 1e-10;
/// The least mean power that noise is scaled to, that of a whole clip being one: pauses have noise, too.
const QUIETEST_SPEECH: f64 = 1e-4;

/// How often the spectrum of speech is bent, as by a microphone; its knots, and their deviation, dB.
const MICROPHONE: (f64, Bends) = (0.5, (3..8, 0.0..5.0));
/// How often speech sounds in a room, and its direct sound relative to the rest.
const ROOM: (f64, Range<f64>) = (0.25, 3.0..12.0);
/// How often the level of speech varies; its deviation, dB, and new levels a second.
const WANDERING_LEVEL: (f64, Levels) = (0.25, (1.0..3.0, 0.4..0.6));
/// How many noises there are, with probabilities.
const NOISES: [(usize, f64); 3] = [(1, 0.5), (2, 0.35), (3, 0.15)];
/// Level of each of them, dB.
const NOISE_DB: Range<f64> = -8.0..0.0;
/// How often there is a background of coloured noise, and its amplitude relative to the rest.
const BACKGROUND: (f64, f64) = (0.15, 0.3);
/// Share of examples at half the sample rate.
const NARROW: f64 = 0.5;
/// Share of these that have passed through a telephone.
const TELEPHONE: f64 = 0.7;
/// Orders and corners, Hz, of the filters of a telephone.
const TELEPHONE_BAND: (Range<i32>, Range<f64>, Range<f64>) = (2..6, 80.0..350.0, 3_100.0..3_700.0);
/// How often the lowest frequencies are missing elsewhere; the order and the corners, Hz, of the filter.
const HIGH_PASS: (f64, i32, Range<f64>) = (0.3, 2, 50.0..200.0);
/// How often there is rumble at the whole sample rate.
const RUMBLE: f64 = 0.4;
/// How often noise starts late, and in what share of the example at most.
const LATE: (f64, f64) = (0.1, 1.0 / 3.0);
/// What must be left of the mean power of noise that starts late.
const LATE_REST: f64 = 0.01;
/// The highest peak, and levels below it, dB.
const PEAK: (f64, Range<f64>) = (0.95, -12.0..0.0);

/// Why an example could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// Clean speech has another sample rate.
    #[error("a sample rate of {found} Hz; clean speech needs {expected} Hz")]
    SampleRate {
        /// The recording's sample rate, Hz.
        found: u32,
        /// The sample rate that examples are made at, Hz.
        expected: u32,
    },
    /// There is no clean speech to make examples of.
    #[error("no clean speech to make examples of")]
    NoSpeech,
}

/// Makes pairs of clean and noisy speech.
#[derive(Clone)]
pub struct Simulator {
    /// Clips at a mean power of one.
    speech: Vec<Vec<f32>>,
    whole: Fourier,
    /// For half the sample rate.
    half: Fourier,
}

/// Speech with and without noise, of equal length and within ±1.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Sample rate, 16,000 or 8,000 Hz.
    pub sample_rate: u32,
    /// The speech alone.
    pub clean: Vec<f32>,
    /// The speech and the noise.
    pub noisy: Vec<f32>,
}

impl Simulator {
    /// A simulator without speech whose examples all last `seconds`, rounded to a multiple of 0.25 ms: four samples
    /// at 16 kHz, two at 8 kHz.
    ///
    /// # Panics
    /// If `seconds` is outside [`SECONDS`].
    #[must_use]
    pub fn new(seconds: f64) -> Self {
        assert!(SECONDS.contains(&seconds), "examples of {seconds} s: expected {SECONDS:?} s");
        let half = 2 * (seconds * RATE / 4.0).round() as usize;
        Self { speech: Vec::new(), whole: Fourier::new(2 * half), half: Fourier::new(half) }
    }

    /// Adds a recording of one speaker without noise, at 16 kHz, its channels mixed to one. Its level does not
    /// matter; what lies below the voice is removed. Silence, below -100 dB of full scale, is ignored.
    ///
    /// # Errors
    /// If its sample rate is not 16 kHz.
    pub fn add(&mut self, speech: &Signal) -> Result<(), SimulationError> {
        if speech.sample_rate() != SAMPLE_RATE {
            return Err(SimulationError::SampleRate { found: speech.sample_rate(), expected: SAMPLE_RATE });
        }
        let mut clip = vec![0.0; speech.len()];
        for channel in speech.channels() {
            let share = 1.0 / speech.channels().len() as f64;
            clip.iter_mut().zip(channel).for_each(|(sum, x)| *sum += share * f64::from(*x));
        }
        let voice = |hertz| high_pass(hertz, LOWEST_VOICE_HERTZ, LOWEST_VOICE_ORDER);
        let clip = Fourier::new(clip.len()).filter(clip, voice);
        if power(&clip) > SILENCE {
            self.speech.push(single(&clip, 1.0 / power(&clip).sqrt()));
        }
        Ok(())
    }

    /// Gives every rank the recordings of all ranks: those of the first come first, and so on.
    pub fn gather(&mut self, ranks: &mut dyn Communicator) {
        let lengths: Vec<u64> = self.speech.iter().map(|clip| clip.len() as u64).collect();
        let lengths: Vec<Vec<u64>> =
            ranks.all_gather(&pack(&lengths)).iter().map(|message| unpack(message)).collect();
        let own = std::mem::take(&mut self.speech).concat();
        let most = lengths.iter().map(|lengths| lengths.iter().sum::<u64>()).max().unwrap_or(0);
        // Messages of MPI have at most 2^31 bytes, those of all ranks together.
        let longest = (1_usize << 28).div_ceil(ranks.ranks());
        let mut speech: Vec<Vec<f32>> = vec![Vec::new(); lengths.len()];
        for start in (0..most as usize).step_by(longest) {
            let piece = &own[start.min(own.len())..(start + longest).min(own.len())];
            for (samples, message) in speech.iter_mut().zip(ranks.all_gather(&pack(piece))) {
                samples.extend(unpack::<f32>(&message));
            }
        }
        for (samples, lengths) in speech.iter().zip(lengths) {
            let mut rest = &samples[..];
            for length in lengths {
                let (clip, others) = rest.split_at(length as usize);
                self.speech.push(clip.to_vec());
                rest = others;
            }
        }
    }

    /// Recordings so far, silent ones not counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.speech.len()
    }

    /// Duration of these recordings together, s.
    #[must_use]
    pub fn speech_seconds(&self) -> f64 {
        self.speech.iter().map(Vec::len).sum::<usize>() as f64 / RATE
    }

    /// Whether there is no speech yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.speech.is_empty()
    }

    /// An example, the same for the same `streams` and speech. A recording shorter than the example is repeated.
    ///
    /// # Errors
    /// If there is no speech.
    pub fn draw(&self, streams: SeedTree) -> Result<Example, SimulationError> {
        if self.is_empty() {
            return Err(SimulationError::NoSpeech);
        }
        let stream = &mut streams.rng(0);
        let narrow = stream.random_bool(NARROW);
        let mut signals = [self.utterance(stream), self.noises(stream)];
        let band = if narrow && stream.random_bool(TELEPHONE) {
            let (order, lower, upper) = TELEPHONE_BAND;
            Some((stream.random_range(order), stream.random_range(lower), stream.random_range(upper)))
        } else if stream.random_bool(HIGH_PASS.0) {
            Some((HIGH_PASS.1, stream.random_range(HIGH_PASS.2), f64::INFINITY))
        } else {
            None
        };
        if let Some((order, lower, upper)) = band {
            let gain = |hertz| high_pass(hertz, lower, order) * low_pass(hertz, upper, order);
            signals = signals.map(|signal| self.whole.filter(signal, gain));
        }
        if narrow {
            signals = signals.map(|signal| self.whole.halve(signal, &self.half));
        }
        let [clean, mut noise] = signals;
        if stream.random_bool(LATE.0) {
            let start = (stream.random_range(0.0..LATE.1) * noise.len() as f64) as usize;
            // All impacts may lie before it.
            if power(&noise[start..]) > LATE_REST * power(&noise) {
                noise[..start].fill(0.0);
            }
        }

        // Levels come last: no filter changes the ratios any more.
        let level = power(&clean).max(QUIETEST_SPEECH).sqrt();
        let mut noisy = clean.clone();
        let ratio = stream.random_range(SIGNAL_TO_NOISE_DB);
        mix(&mut noisy, &normalised(noise), level * amplitude(-ratio));
        if !narrow && stream.random_bool(RUMBLE) {
            let ratio = stream.random_range(SIGNAL_TO_RUMBLE_DB);
            mix(&mut noisy, &self.rumble(stream), level * amplitude(-ratio));
        }
        let peak = clean.iter().chain(&noisy).fold(f64::MIN_POSITIVE, |peak, x| peak.max(x.abs()));
        let scale = PEAK.0 * amplitude(stream.random_range(PEAK.1)) / peak;
        let sample_rate = if narrow { SAMPLE_RATE / 2 } else { SAMPLE_RATE };
        Ok(Example { sample_rate, clean: single(&clean, scale), noisy: single(&noisy, scale) })
    }

    /// Speech through a random microphone.
    fn utterance(&self, stream: &mut SeededRng) -> Vec<f64> {
        let mut speech = self.excerpt(1.0, stream);
        if stream.random_bool(MICROPHONE.0) {
            speech = self.whole.shape(speech, &smooth_curve(MICROPHONE.1, stream));
        }
        if stream.random_bool(ROOM.0) {
            speech = self.whole.reverberate(speech, ROOM.1, stream);
        }
        if stream.random_bool(WANDERING_LEVEL.0) {
            vary_level(&mut speech, WANDERING_LEVEL.1, stream);
        }
        speech
    }

    /// Noises of one or several kinds at once.
    fn noises(&self, stream: &mut SeededRng) -> Vec<f64> {
        let mut sum = vec![0.0; self.samples()];
        for _ in 0..choose(NOISES, stream) {
            let kind = choose(Kind::ALL, stream);
            mix(&mut sum, &self.noise(kind, stream), amplitude(stream.random_range(NOISE_DB)));
        }
        if stream.random_bool(BACKGROUND.0) {
            sum = normalised(sum);
            mix(&mut sum, &self.noise(Kind::Coloured, stream), BACKGROUND.1);
        }
        sum
    }

    /// Length of an example, s.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.samples() as f64 / RATE
    }

    /// Length of an example at 16 kHz, samples.
    fn samples(&self) -> usize {
        self.whole.samples()
    }
}

impl std::fmt::Debug for Simulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulator")
            .field("samples", &self.samples())
            .field("clips", &self.len())
            .finish_non_exhaustive()
    }
}

/// The signal times `scale`, in single precision.
fn single(signal: &[f64], scale: f64) -> Vec<f32> {
    signal.iter().map(|x| (scale * x) as f32).collect()
}
