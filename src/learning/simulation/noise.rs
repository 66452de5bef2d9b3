//! The kinds of noise, each made of random numbers or of the clean speech itself.

use super::Simulator;
use super::shaping::{
    Bends, Levels, RATE, amplitude, at, choose, low_pass, mix, modulate, normal, normalised, random_spectrum,
    smooth_curve, vary_level, white,
};
use crate::random::SeededRng;
use num_complex::Complex;
use rand::RngExt;
use rand_distr::{Distribution, Exp1};
use std::f64::consts::TAU;
use std::ops::{Range, RangeInclusive};

/// Standard deviation of the levels of voices, layers and harmonics, dB.
const LEVEL_SPREAD_DB: f64 = 4.0;
/// Share of babble, and of layers of a texture, that sounds in a room.
const REVERBERANT: f64 = 0.7;

/// The direct sound of noise in a room relative to the rest.
const DIRECT_SOUND: Range<f64> = 0.0..2.7;

/// Voices of a babble, with probabilities.
const VOICES: [(usize, f64); 8] =
    [(1, 0.06), (2, 0.08), (3, 0.14), (4, 0.17), (6, 0.18), (8, 0.15), (12, 0.12), (20, 0.10)];
/// Knots of the spectrum that a babble is shaped by, and their deviation, dB.
const BABBLE_BENDS: Bends = (3..10, 0.0..5.0);

/// Slopes of coloured noise and of products, dB per octave.
const COLOURS: Range<f64> = -9.0..2.0;
/// Deviation of the level of coloured noise, dB, and new levels a second.
const COLOURED_LEVELS: Levels = (0.0..4.0, 0.2..6.0);

/// Spectra of products.
const RANKS: RangeInclusive<usize> = 2..=7;
/// Knots of the fine structure of these spectra, and their deviation, dB.
const FINE_STRUCTURE: Bends = (8..80, 0.0..10.0);
/// Values of an activation a second.
const ACTIVATION_RATE: f64 = 125.0;
/// Share of activations that wander; the others are events that decay.
const WANDERING: f64 = 0.5;
/// Knots of a wandering activation, and their deviation, dB.
const WANDERINGS: Bends = (6..200, 2.0..8.0);
/// Probability of an event at any one value of an activation.
const EVENTS: Range<f64> = 0.005..0.1;
/// The share of an event that is left at the next value.
const EVENT_DECAY: Range<f64> = 0.3..0.97;
/// Scale of events and exponent of their exponential variables: heavier than exponential.
const EVENT_POWER: (f64, f64) = (6.4, 1.2);
/// Activation between events.
const EVENT_FLOOR: f64 = 0.003;

/// Fundamental frequencies of hum, Hz, evenly on a logarithmic scale.
const FUNDAMENTAL_HERTZ: Range<f64> = 25.0..500.0;
/// Knots of the fundamental's course, and their deviation, octaves.
const VIBRATO: Bends = (3..30, 0.0..0.15);
/// Most harmonics, and the frequency that they end at, Hz.
const HARMONICS: (f64, f64) = (60.0, 7_500.0);
/// The amplitude of harmonic `h` falls as `h` to minus this.
const HARMONIC_DECAY: Range<f64> = 0.5..2.0;
/// Deviation of the level of hum, dB, and new levels a second.
const HUM_LEVELS: Levels = (0.0..3.0, 0.3..8.0);

/// Impacts a second.
const IMPACT_RATE: Range<f64> = 0.5..12.0;
/// Standard deviation of the levels of impacts beside that of a normal amplitude, dB.
const IMPACT_SPREAD_DB: f64 = 5.0;
/// Bodies that are struck, the share of impacts that each is struck by, and the share of them that ring at a pitch.
const BODIES: (RangeInclusive<usize>, f64, f64) = (1..=4, 0.6, 0.5);
/// How long a body sounds, s; by then its amplitude has fallen by a factor `exp(BODY_DECAY)`.
const BODY_SECONDS: Range<f64> = 0.005..0.15;
const BODY_DECAY: f64 = 5.0;
/// Pitch of a body that rings, Hz.
const BODY_HERTZ: Range<f64> = 300.0..6_000.0;
/// Slopes of the spectrum of impacts, dB per octave.
const IMPACT_COLOURS: Range<f64> = -5.0..4.0;

/// Layers of a texture.
const LAYERS: RangeInclusive<usize> = 1..=6;
/// How fast a layer is played, evenly on a logarithmic scale; 1 is the original.
const SPEEDS: Range<f64> = 0.3..3.0;
/// Share of layers that are played backwards.
const REVERSED: f64 = 0.5;
/// Slopes of the spectrum of textures, dB per octave.
const TEXTURE_COLOURS: Range<f64> = -5.0..3.0;

/// Corners of the spectrum of rumble, Hz, and the order of its fall.
const RUMBLE: (Range<f64>, i32) = (50.0..110.0, 3);
/// Deviation of the level of rumble, dB, and new levels a second.
const RUMBLE_LEVELS: Levels = (0.0..3.0, 1.5..2.5);

/// The kinds of noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Voices that speak at once, mostly in a room.
    Babble,
    /// Gaussian noise of a random spectrum, its level varying.
    Coloured,
    /// Gaussian noise whose power is a product of spectra and activations: things that come and go.
    Products,
    /// Harmonics of a fundamental that varies a little: mains, engines, fans.
    Hum,
    /// Bodies that are struck.
    Impacts,
    /// Speech at another speed, perhaps backwards, in layers: animals, machines, music of a kind.
    Texture,
}

impl Kind {
    /// The kinds with their probabilities.
    pub const ALL: [(Self, f64); 6] = [
        (Self::Babble, 0.30),
        (Self::Coloured, 0.22),
        (Self::Products, 0.25),
        (Self::Hum, 0.06),
        (Self::Impacts, 0.08),
        (Self::Texture, 0.09),
    ];
}

impl Simulator {
    /// Noise of a kind, of mean power one.
    pub(super) fn noise(&self, kind: Kind, stream: &mut SeededRng) -> Vec<f64> {
        normalised(match kind {
            Kind::Babble => self.babble(stream),
            Kind::Coloured => self.coloured(stream),
            Kind::Products => self.products(stream),
            Kind::Hum => self.hum(stream),
            Kind::Impacts => self.impacts(stream),
            Kind::Texture => self.texture(stream),
        })
    }

    /// Rumble of mean power one: noise of the lowest frequencies.
    pub(super) fn rumble(&self, stream: &mut SeededRng) -> Vec<f64> {
        let corner = stream.random_range(RUMBLE.0);
        let noise = white(self.samples(), stream);
        let mut rumble = self.whole.filter(noise, |hertz| low_pass(hertz, corner, RUMBLE.1));
        vary_level(&mut rumble, RUMBLE_LEVELS, stream);
        normalised(rumble)
    }

    /// A random clip from a random place on, over and over, played at `speed`.
    pub(super) fn excerpt(&self, speed: f64, stream: &mut SeededRng) -> Vec<f64> {
        let clip = &self.speech[stream.random_range(0..self.speech.len())];
        let start = stream.random_range(0..clip.len());
        let sample = |n: usize| {
            let place = n as f64 * speed;
            let near = |step| f64::from(clip[(start + place as usize + step) % clip.len()]);
            near(0) + place.fract() * (near(1) - near(0))
        };
        (0..self.samples()).map(sample).collect()
    }

    fn babble(&self, stream: &mut SeededRng) -> Vec<f64> {
        let mut babble = vec![0.0; self.samples()];
        for _ in 0..choose(VOICES, stream) {
            mix(&mut babble, &self.excerpt(1.0, stream), random_level(LEVEL_SPREAD_DB, stream));
        }
        if stream.random_bool(REVERBERANT) {
            babble = self.whole.reverberate(babble, DIRECT_SOUND, stream);
        }
        self.whole.shape(babble, &smooth_curve(BABBLE_BENDS, stream))
    }

    fn coloured(&self, stream: &mut SeededRng) -> Vec<f64> {
        let mut noise = self.whole.shape(white(self.samples(), stream), &random_spectrum(COLOURS, stream));
        vary_level(&mut noise, COLOURED_LEVELS, stream);
        noise
    }

    /// Powers of independent noises add, so that each spectrum may be given a noise of its own.
    fn products(&self, stream: &mut SeededRng) -> Vec<f64> {
        let mut sum = vec![0.0; self.samples()];
        for _ in 0..stream.random_range(RANKS) {
            let fine = smooth_curve(FINE_STRUCTURE, stream);
            let noise = self.whole.shape(white(self.samples(), stream), &fine);
            let mut noise = self.whole.shape(noise, &random_spectrum(COLOURS, stream));
            let envelope: Vec<f64> = self.activation(stream).into_iter().map(f64::sqrt).collect();
            modulate(&mut noise, |position| at(&envelope, position));
            mix(&mut sum, &noise, 1.0);
        }
        sum
    }

    /// A random course of power in time.
    fn activation(&self, stream: &mut SeededRng) -> Vec<f64> {
        let length = (self.samples() as f64 / RATE * ACTIVATION_RATE) as usize + 2;
        let mut activation: Vec<f64> = if stream.random_bool(WANDERING) {
            let curve = smooth_curve(WANDERINGS, stream);
            let level = |n| at(&curve, n as f64 / (length - 1) as f64);
            (0..length).map(|n| libm::exp10(level(n) / 10.0)).collect()
        } else {
            let (probability, decay) = (stream.random_range(EVENTS), stream.random_range(EVENT_DECAY));
            let mut left = 0.0;
            let step = |_| {
                left *= decay;
                if stream.random_bool(probability) {
                    left += EVENT_POWER.0 * libm::pow(Exp1.sample(stream), EVENT_POWER.1);
                }
                left + EVENT_FLOOR
            };
            (0..length).map(step).collect()
        };
        let mean = activation.iter().sum::<f64>() / length as f64;
        let weight: f64 = Exp1.sample(stream);
        activation.iter_mut().for_each(|x| *x *= weight / mean);
        activation
    }

    fn hum(&self, stream: &mut SeededRng) -> Vec<f64> {
        let fundamental = log_uniform(FUNDAMENTAL_HERTZ, stream);
        let vibrato = smooth_curve(VIBRATO, stream);
        let decay = stream.random_range(HARMONIC_DECAY);
        let harmonics: Vec<Complex<f64>> = (1..=HARMONICS.0.min(HARMONICS.1 / fundamental) as usize)
            .map(|h| {
                let fall = libm::pow(h as f64, -decay);
                rotation(stream.random()) * (fall * random_level(LEVEL_SPREAD_DB, stream))
            })
            .collect();
        let mut turns = 0.0;
        let sample = |n: usize| {
            let octaves = at(&vibrato, n as f64 / self.samples() as f64);
            turns = (turns + fundamental * libm::exp2(octaves) / RATE).fract();
            let turned = rotation(turns);
            // A polynomial in the rotation of the fundamental, by Horner's rule.
            harmonics.iter().rev().fold(Complex::ZERO, |sum, harmonic| (sum + harmonic) * turned).re
        };
        let mut hum: Vec<f64> = (0..self.samples()).map(sample).collect();
        vary_level(&mut hum, HUM_LEVELS, stream);
        hum
    }

    fn impacts(&self, stream: &mut SeededRng) -> Vec<f64> {
        let samples = self.samples();
        let probability = stream.random_range(IMPACT_RATE) / RATE;
        // One for certain, so that there always is a noise.
        let mut places = vec![stream.random_range(0..samples)];
        places.extend((0..samples).filter(|_| stream.random_bool(probability)));
        let strengths: Vec<f64> =
            places.iter().map(|_| normal(stream) * random_level(IMPACT_SPREAD_DB, stream)).collect();
        let mut sound = vec![0.0; samples];
        for _ in 0..stream.random_range(BODIES.0) {
            let body = body(stream);
            for (number, (&place, strength)) in places.iter().zip(&strengths).enumerate() {
                if number == 0 || stream.random_bool(BODIES.1) {
                    let (end, start) = sound.split_at_mut(place);
                    // What rings beyond the end comes in at the start, as with filters.
                    let ring = start.iter_mut().chain(end);
                    ring.zip(&body).for_each(|(sound, x)| *sound += strength * x);
                }
            }
        }
        self.whole.shape(sound, &random_spectrum(IMPACT_COLOURS, stream))
    }

    fn texture(&self, stream: &mut SeededRng) -> Vec<f64> {
        let mut texture = vec![0.0; self.samples()];
        for _ in 0..stream.random_range(LAYERS) {
            let mut layer = self.excerpt(log_uniform(SPEEDS, stream), stream);
            if stream.random_bool(REVERSED) {
                layer.reverse();
            }
            if stream.random_bool(REVERBERANT) {
                layer = self.whole.reverberate(layer, DIRECT_SOUND, stream);
            }
            mix(&mut texture, &normalised(layer), random_level(LEVEL_SPREAD_DB, stream));
        }
        self.whole.shape(texture, &random_spectrum(TEXTURE_COLOURS, stream))
    }
}

/// The sound of something struck: noise that decays, perhaps at a pitch.
fn body(stream: &mut SeededRng) -> Vec<f64> {
    let length = (stream.random_range(BODY_SECONDS) * RATE) as usize;
    let pitch = if stream.random_bool(BODIES.2) { stream.random_range(BODY_HERTZ) } else { 0.0 };
    let sample = |n: usize| {
        let decay = libm::exp(-BODY_DECAY * n as f64 / length as f64);
        normal(stream) * decay * libm::cos(TAU * pitch * n as f64 / RATE)
    };
    (0..length).map(sample).collect()
}

/// An amplitude whose level is normal with a standard deviation of `spread` dB.
fn random_level(spread: f64, stream: &mut SeededRng) -> f64 {
    amplitude(spread * normal(stream))
}

/// Uniform on a logarithmic scale.
fn log_uniform(range: Range<f64>, stream: &mut SeededRng) -> f64 {
    range.start * libm::pow(range.end / range.start, stream.random())
}

/// The complex number of modulus one at an angle in turns.
fn rotation(turns: f64) -> Complex<f64> {
    let (sine, cosine) = libm::sincos(TAU * turns);
    Complex::new(cosine, sine)
}
