//! Causal speech-presence network, frame by frame.

mod network;
mod quiet;
mod soft;
#[cfg(test)]
mod tests;

use super::bands::{Interpolation, MIN_RELATIVE_POWER, band_means, edges, features_of, present_bands};
use super::sizes::{BANDS, GROUP};
use crate::kernels::vector;
pub(crate) use network::CausalNetwork;
use network::{INPUTS, Memory, Rows};
use quiet::QuietLevels;
use soft::SoftPassage;
use std::sync::Arc;

/// Distance between frames in training, s.
const FRAME_SECONDS: f64 = 0.016;
/// Minimum distance between evaluated frames, s.
const MIN_SECONDS: f64 = 0.008;
/// Time constant of the mean power, s. With the 3 s of training, the network misses a voice 20 dB softer than the
/// preceding one for ten seconds. With 0.5 s, ordinary mixtures lose 0.02 dB.
const MEAN_SECONDS: f64 = 0.7;

/// Causal speech-presence network, evaluated frame by frame.
///
/// The network processes frames 16 ms apart. Frames that are closer form interleaved sequences, each with its own
/// state.
#[derive(Debug, Clone)]
pub(crate) struct CausalPresenceNet {
    network: Arc<CausalNetwork>,
    rows: Rows,
    /// States of the network, one per interleaved sequence.
    memories: Vec<Memory>,
    interpolation: Interpolation,
    edges: [usize; BANDS + 1],
    /// Number of bands that lie completely within the bins.
    present: usize,
    /// Frames from one evaluated frame to the next.
    stride: usize,
    quiet_levels: QuietLevels,
    mean: RecentMean,
    soft_passage: SoftPassage,
    level: Vec<f32>,
    quiet: Vec<f32>,
    /// Frames so far, modulo the stride.
    frames: usize,
    /// Index of the state for the next evaluated frame.
    turn: usize,
    log_odds: Vec<f32>,
}

impl CausalPresenceNet {
    /// Creates a network for frames `frame_seconds` apart, of `bins` bins 15.625 Hz apart.
    pub(crate) fn new(network: Arc<CausalNetwork>, bins: usize, frame_seconds: f64) -> Self {
        let stride = ((MIN_SECONDS / frame_seconds).round() as usize).max(1);
        let evaluated_seconds = stride as f64 * frame_seconds;
        let spacing = ((FRAME_SECONDS / evaluated_seconds).round() as usize).max(1);
        let edges = edges();
        let (rows, memories) = (network.rows(), vec![network.memory(); spacing]);
        Self {
            network,
            interpolation: Interpolation::new(&edges, bins),
            present: present_bands(&edges, bins),
            edges,
            stride,
            quiet_levels: QuietLevels::new(evaluated_seconds),
            mean: RecentMean::new(evaluated_seconds, MEAN_SECONDS),
            soft_passage: SoftPassage::new(evaluated_seconds, memories.clone(), rows.output.len()),
            memories,
            rows,
            level: vec![0.0; BANDS],
            quiet: vec![0.0; BANDS],
            frames: 0,
            turn: 0,
            log_odds: vec![0.0; bins],
        }
    }

    /// Returns the natural log odds of speech per bin, from the powers `|X|^2` of the next frame, which are not all
    /// zero.
    pub(crate) fn log_odds(&mut self, power: &[f32]) -> &[f32] {
        let is_evaluated = self.frames.is_multiple_of(self.stride);
        self.frames = (self.frames + 1) % self.stride;
        if is_evaluated {
            self.measure(power);
            self.write_input(self.mean.value() as f32);
            self.network.forward(&mut self.memories[self.turn], &mut self.rows);
            self.estimate_soft_passage();
            self.turn = (self.turn + 1) % self.memories.len();
            // The output is in the order of bands: places in order, and the bands in each place.
            self.log_odds.clear();
            self.interpolation.extend(&self.rows.output, &mut self.log_odds);
        }
        &self.log_odds
    }

    /// Measures level and quiet level of every band.
    fn measure(&mut self, power: &[f32]) {
        let mut total = 0.0;
        for (level, mean) in self.level.iter_mut().zip(band_means(power, &self.edges[..=self.present])) {
            *level = mean;
            total += f64::from(mean);
        }
        let power = total / self.present as f64;
        self.mean.add(power);
        self.soft_passage.update(power, &self.memories);
        let least = self.mean.value() as f32 * MIN_RELATIVE_POWER;
        let present = &mut self.level[..self.present];
        present.iter_mut().for_each(|level| *level = vector::ln(*level + least));
        self.quiet_levels.update(present, &mut self.quiet);
    }

    /// Raises the log odds in `rows.output` to those of a second estimate, in a soft passage.
    fn estimate_soft_passage(&mut self) {
        let Some(mean) = self.soft_passage.mean() else { return };
        self.soft_passage.keep(&self.rows.output);
        self.write_input(mean);
        self.network.forward(self.soft_passage.memory(self.turn), &mut self.rows);
        self.soft_passage.pool(&mut self.rows.output, &self.quiet[..self.present]);
    }

    /// Writes the input of the network: the features of the measured frame relative to this mean power.
    fn write_input(&mut self, mean: f32) {
        let whole = vector::ln(mean);
        for band in 0..self.present {
            let (level, quiet) = (self.level[band], self.quiet[band]);
            let features = features_of(level, quiet, whole);
            let place = (band / GROUP + 1) * INPUTS + band % GROUP;
            for (feature, value) in features.into_iter().enumerate() {
                self.rows.input[place + feature * GROUP] = value;
            }
        }
    }

    /// Returns to the initial state.
    pub(crate) fn reset(&mut self) {
        self.memories.iter_mut().for_each(Memory::reset);
        self.quiet_levels.reset();
        self.soft_passage.reset();
        self.mean.reset();
        (self.frames, self.turn) = (0, 0);
    }
}

/// Running mean with exponential decay.
#[derive(Debug, Clone)]
struct RecentMean {
    /// Sum of values, and of their weights; both decay by `keep`.
    sum: f64,
    weight: f64,
    keep: f64,
}

impl RecentMean {
    /// Creates a mean of values `distance` apart, with this time constant, both in s.
    fn new(distance: f64, time_constant: f64) -> Self {
        Self { sum: 0.0, weight: 0.0, keep: libm::exp(-distance / time_constant) }
    }

    fn add(&mut self, value: f64) {
        self.sum = self.keep * self.sum + value;
        self.weight = self.keep * self.weight + 1.0;
    }

    /// Returns the mean; at least one value must have been added.
    fn value(&self) -> f64 {
        self.sum / self.weight
    }

    fn reset(&mut self) {
        (self.sum, self.weight) = (0.0, 0.0);
    }
}
