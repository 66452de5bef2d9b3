//! Causal inference, frame by frame: the posterior of speech given the frames so far.
//!
//! The dictionary is fixed. The activations of a frame start from those of the last one and take a few multiplicative
//! steps on the posterior with the impulse variables integrated out. The power of the noise is a recursive mean weighted
//! by the probability of speech absence.

use super::em::MIN_TERM;
use super::high_band::HighBandSpectra;
use super::state::ENTRIES;
use crate::kernels::vector;
use crate::model::{Dictionary, MIN_POWER, MarginalTable};
use std::sync::Arc;

/// Multiplicative steps on the activations of a frame.
const STEPS: usize = 2;
/// Added to the activations before the steps, in units of the level of the frame: multiplicative steps cannot leave
/// zero.
const REVIVAL: f32 = 1.0;
/// Keeps dispersions away from zero.
const MIN_DISPERSION: f32 = 1e-12;

/// Time constant of the noise estimate, s.
const NOISE_SECONDS: f64 = 0.7;
/// Slope and offset of the network's log odds in the speech probability of the noise estimate.
const NOISE_SLOPE: f32 = 1.4;
const NOISE_OFFSET: f32 = 1.0;

/// Prior ratio of speech to noise at even odds, used without a network (Gerkmann and Hendriks 2012, "Unbiased MMSE-based
/// noise power estimation with low complexity and low tracking delay", equation 18).
const PRIOR_SNR: f32 = 31.6;
/// Smoothing factor of the speech probability, and its maximum where the smoothed probability exceeds that maximum.
/// Otherwise the noise estimate would stall.
const STALL_SMOOTHING: f32 = 0.9;
const MAX_PROBABILITY: f32 = 0.99;

/// Bins per chunk of the element-wise stages; rows are padded to whole chunks.
const CHUNK: usize = 64;
const LANES: usize = 16;

/// Separates frame by frame, without allocation.
#[derive(Debug, Clone)]
pub(crate) struct OnlineSeparation {
    table: Arc<MarginalTable>,
    /// `2 / alpha` of speech and of noise.
    exponents: (f32, f32),
    bins: usize,
    /// Bins in the dictionary's band, and their number padded to whole chunks.
    known: usize,
    padded: usize,
    /// Padded bins x rank.
    spectra: Vec<f32>,
    /// Sum of the entries of all spectra, per bin.
    total: f32,
    /// The spectra above the dictionary's band, and the dispersions of speech at their knots.
    high_band: HighBandSpectra,
    knots: Vec<f32>,
    activations: Vec<f32>,
    noise_step: f32,
    /// Mean power of the noise per bin, and whether it is initialised.
    noise: Vec<f32>,
    started: bool,
    /// Smoothed probability of speech, per bin.
    presence: Vec<f32>,
    power: Vec<f32>,
    log_power: Vec<f32>,
    log_noise: Vec<f32>,
    dispersion: Vec<f32>,
    numerator: Vec<f32>,
    denominator: Vec<f32>,
    gain: Vec<f32>,
}

impl OnlineSeparation {
    /// A separation of frames of `bins` bins with the spacing of the dictionary's, `frame_seconds` apart, by a table
    /// for both characteristic exponents.
    pub(crate) fn new(
        dictionary: &Dictionary,
        table: &Arc<MarginalTable>,
        (alpha_speech, alpha_noise): (f64, f64),
        bins: usize,
        frame_seconds: f64,
    ) -> Self {
        let rank = dictionary.header().rank;
        let rows = dictionary.rows(bins);
        let known = rows.len() / rank;
        let padded = known.next_multiple_of(CHUNK);
        let mut spectra = vec![0.0; padded * rank];
        for (padded, column) in spectra.chunks_exact_mut(padded).zip(rows.chunks_exact(known)) {
            padded[..known].copy_from_slice(column);
        }
        let bin_hertz = 1.0 / dictionary.header().window_seconds;
        let high_band =
            HighBandSpectra::new(bins - known, bin_hertz, &rows, known, dictionary.continuation());
        let whole = || vec![MIN_POWER as f32; bins.next_multiple_of(CHUNK)];
        Self {
            table: Arc::clone(table),
            exponents: ((2.0 / alpha_speech) as f32, (2.0 / alpha_noise) as f32),
            bins,
            known,
            padded,
            total: rows.iter().sum::<f32>() / known as f32,
            spectra,
            knots: vec![0.0; high_band.continuation.knots()],
            high_band,
            activations: vec![ENTRIES.0; rank],
            noise_step: (1.0 - libm::exp(-frame_seconds / NOISE_SECONDS)) as f32,
            noise: whole(),
            started: false,
            presence: vec![0.0; bins],
            power: whole(),
            log_power: whole(),
            log_noise: whole(),
            dispersion: whole(),
            numerator: whole(),
            denominator: whole(),
            gain: whole(),
        }
    }

    /// Mean power of the noise per bin.
    pub(crate) fn noise(&self) -> &[f32] {
        &self.noise[..self.bins]
    }

    /// Sets the power of the noise per bin.
    pub(crate) fn set_noise(&mut self, power: &[f32]) {
        self.noise.iter_mut().zip(power).for_each(|(noise, power)| *noise = power.max(MIN_POWER as f32));
        self.started = true;
    }

    /// Returns to the initial state.
    pub(crate) fn reset(&mut self) {
        self.started = false;
        self.noise.fill(MIN_POWER as f32);
        self.activations.fill(ENTRIES.0);
        self.presence.fill(0.0);
    }

    /// The posterior-mean Wiener gain per bin, for the powers `|X|^2` of the next frame (of mean 1 for white noise at full
    /// scale). Log odds of speech per bin, if given, steer the noise estimate; the gain is not fused with them.
    pub(crate) fn separate(&mut self, power: &[f32], log_odds: Option<&[f32]>) -> &mut [f32] {
        let least = MIN_POWER as f32;
        for (own, power) in self.power.iter_mut().zip(power) {
            *own = power.max(least);
        }
        let started = std::mem::replace(&mut self.started, true);
        vector::dispatch(
            #[inline(always)]
            || {
                self.log_power.iter_mut().zip(&self.power).for_each(|(log, power)| *log = vector::ln(*power));
                if !started {
                    self.start();
                }
                self.log_noise.iter_mut().zip(&self.noise).for_each(|(log, noise)| *log = vector::ln(*noise));
                let flat = REVIVAL * self.level();
                self.activations.iter_mut().for_each(|h| *h += flat);
                for _ in 0..STEPS {
                    self.disperse();
                    self.expect(self.padded);
                    self.step();
                }
                self.disperse();
                self.disperse_above();
                self.expect(self.gain.len());
            },
        );
        self.update_noise(log_odds);
        &mut self.gain[..self.bins]
    }

    /// Initialises the noise with the first frame, and speech with a flat spectrum of its level.
    #[inline(always)]
    fn start(&mut self) {
        self.noise.copy_from_slice(&self.power);
        let level = self.level().max(ENTRIES.0);
        self.activations.fill(level);
    }

    /// The common activation of all spectra at which speech has the level of the frame.
    #[inline(always)]
    fn level(&self) -> f32 {
        let half_alpha = 1.0 / self.exponents.0;
        let logs = &self.log_power[..self.known];
        logs.iter().map(|log| vector::exp(half_alpha * log)).sum::<f32>() / (self.known as f32 * self.total)
    }

    /// The dispersions of speech in the dictionary's band.
    #[inline(always)]
    fn disperse(&mut self) {
        for (chunk, out) in self.dispersion[..self.padded].chunks_exact_mut(CHUNK).enumerate() {
            let mut sums = [MIN_DISPERSION; CHUNK];
            let spectra = self.spectra.chunks_exact(self.padded);
            for (spectrum, &h) in spectra.zip(&self.activations) {
                let spectrum = &spectrum[chunk * CHUNK..][..CHUNK];
                for (sum, w) in sums.iter_mut().zip(spectrum) {
                    *sum += w * h;
                }
            }
            out.copy_from_slice(&sums);
        }
    }

    /// The dispersions of speech above the dictionary's band.
    #[inline(always)]
    fn disperse_above(&mut self) {
        self.knots.fill(MIN_DISPERSION);
        for (column, &h) in self.high_band.knots.chunks_exact(self.knots.len()).zip(&self.activations) {
            self.knots.iter_mut().zip(column).for_each(|(sum, knot)| *sum += knot * h);
        }
        self.high_band.continuation.fill(&self.knots, &mut self.dispersion[self.known..self.bins]);
    }

    /// Computes the expected gain of the lowest `bins`, and the update terms of their dispersions of speech.
    #[inline(always)]
    fn expect(&mut self, bins: usize) {
        let (speech, _) = self.exponents;
        let mut log_speech = [0.0; CHUNK];
        for first in (0..bins).step_by(CHUNK) {
            let range = first..first + CHUNK;
            let dispersion = &self.dispersion[range.clone()];
            log_speech.iter_mut().zip(dispersion).for_each(|(log, x)| *log = speech * vector::ln(*x));
            let (log_power, log_noise) = (&self.log_power[range.clone()], &self.log_noise[range.clone()]);
            let gain = &mut self.gain[range.clone()];
            let (numerator, denominator) = (&mut self.numerator[range.clone()], &mut self.denominator[range]);
            self.table.for_each::<CHUNK>(
                #[inline(always)]
                |i| (log_power[i] - log_speech[i], log_power[i] - log_noise[i]),
                #[inline(always)]
                |i, e| {
                    gain[i] = e.gain;
                    numerator[i] = e.speech_power;
                },
            );
            for i in 0..CHUNK {
                numerator[i] /= dispersion[i];
                denominator[i] = gain[i] / dispersion[i];
            }
        }
    }

    /// Updates the activations by one multiplicative step.
    #[inline(always)]
    fn step(&mut self) {
        let (numerator, denominator) = (&self.numerator[..self.padded], &self.denominator[..self.padded]);
        for (spectrum, h) in self.spectra.chunks_exact(self.padded).zip(&mut self.activations) {
            let (mut up, mut down) = ([0.0_f32; LANES], [0.0_f32; LANES]);
            let terms = numerator.chunks_exact(LANES).zip(denominator.chunks_exact(LANES));
            for (spectrum, (numerator, denominator)) in spectrum.chunks_exact(LANES).zip(terms) {
                for lane in 0..LANES {
                    up[lane] += spectrum[lane] * numerator[lane];
                    down[lane] += spectrum[lane] * denominator[lane];
                }
            }
            let (up, down) = (up.iter().sum::<f32>(), down.iter().sum::<f32>());
            *h = (*h * (up / down.max(MIN_TERM))).clamp(ENTRIES.0, ENTRIES.1);
        }
    }

    /// Moves the power of the noise towards that of the frame, weighted by the probability of speech absence.
    fn update_noise(&mut self, log_odds: Option<&[f32]>) {
        for bin in 0..self.bins {
            let power = self.power[bin];
            let speech = match log_odds {
                Some(log_odds) => vector::logistic(NOISE_SLOPE * log_odds[bin] + NOISE_OFFSET),
                None => {
                    let slope = PRIOR_SNR / (1.0 + PRIOR_SNR);
                    let ratio = (power / self.noise[bin]).min(80.0);
                    1.0 / (1.0 + (1.0 + PRIOR_SNR) * vector::exp(-slope * ratio))
                }
            };
            let presence = &mut self.presence[bin];
            *presence = STALL_SMOOTHING * *presence + (1.0 - STALL_SMOOTHING) * speech;
            let speech = if *presence > MAX_PROBABILITY { speech.min(MAX_PROBABILITY) } else { speech };
            let noise = &mut self.noise[bin];
            *noise = (*noise + self.noise_step * (1.0 - speech) * (power - *noise)).max(MIN_POWER as f32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames without speech are detected by the log odds if given, else by the power.
    #[test]
    fn noise_is_that_of_frames_without_speech() {
        let dictionary = Dictionary::built_in().unwrap();
        let alpha = (dictionary.header().alpha, 1.9);
        let table = Arc::new(MarginalTable::new(alpha.0, alpha.1));
        for has_odds in [true, false] {
            let mut online = OnlineSeparation::new(&dictionary, &table, alpha, 257, 0.008);
            online.set_noise(&[1.0; 257]);
            for frame in 0..200 {
                let (power, odds) = if frame % 4 == 0 { (1.0, -20.0) } else { (1000.0, 20.0) };
                online.separate(&[power; 257], has_odds.then_some(&[odds; 257]));
            }
            assert!(online.noise().iter().all(|noise| (0.9..1.1).contains(noise)), "{}", online.noise()[0]);
        }
    }
}
