//! A second estimate of a softer voice: after a louder one, the network takes it for noise until its mean level and its
//! memory have followed. The second estimate starts with its memory of then, and with a mean level of its own.

use super::{MEAN_SECONDS, Memory, RecentMean};
use crate::kernels::vector;
use crate::presence::soft_passages::{MARGIN, SOFT};

/// Time constant of the present level, s.
const PRESENT_SECONDS: f64 = 0.2;
/// Time constant by which the level of the loudest voice falls, s.
const LOUDEST_FALL_SECONDS: f64 = 5.0;
/// The present level relative to the quiet level of all bands, at least, as a factor of power: 8 dB. Below it lies noise in
/// pauses.
const ABOVE_QUIET: f64 = 6.309_573;

/// Finds soft passages, and keeps what their estimate needs.
#[derive(Debug, Clone)]
pub(super) struct SoftPassage {
    present: RecentMean,
    loudest: f64,
    fall: f64,
    /// Mean power since the passage began.
    mean: RecentMean,
    /// One per turn.
    memories: Vec<Memory>,
    is_soft: bool,
    /// Log odds of the first estimate.
    first: Vec<f32>,
}

impl SoftPassage {
    /// For evaluated frames this far apart, s, and a network with these memories that finds `odds` log odds.
    pub(super) fn new(frame_seconds: f64, memories: Vec<Memory>, odds: usize) -> Self {
        Self {
            present: RecentMean::new(frame_seconds, PRESENT_SECONDS),
            loudest: 0.0,
            fall: libm::exp(-frame_seconds / LOUDEST_FALL_SECONDS),
            mean: RecentMean::new(frame_seconds, MEAN_SECONDS),
            memories,
            is_soft: false,
            first: vec![0.0; odds],
        }
    }

    /// Takes the mean power of a frame, and the memories of the first estimate before that frame.
    pub(super) fn update(&mut self, power: f64, memories: &[Memory]) {
        self.present.add(power);
        self.loudest = (self.fall * self.loudest).max(self.present.value());
        let is_soft = self.present.value() < SOFT * self.loudest;
        if is_soft && !self.is_soft {
            self.mean.reset();
            self.memories.iter_mut().zip(memories).for_each(|(own, memory)| own.copy_from(memory));
        }
        self.is_soft = is_soft;
        if is_soft {
            self.mean.add(power);
        }
    }

    /// The mean power since the passage began; `None` outside of soft passages.
    pub(super) fn mean(&self) -> Option<f32> {
        self.is_soft.then(|| self.mean.value() as f32)
    }

    /// The second estimate's memory of this turn.
    pub(super) fn memory(&mut self, turn: usize) -> &mut Memory {
        &mut self.memories[turn]
    }

    /// Keeps the log odds of the first estimate.
    pub(super) fn keep(&mut self, odds: &[f32]) {
        self.first.copy_from_slice(odds);
    }

    /// Replaces the log odds of the second estimate by the higher of both, or by the first, where the present level is not
    /// above the quiet levels (natural logarithms of power, by band).
    pub(super) fn pool(&self, odds: &mut [f32], quiet: &[f32]) {
        let sum: f64 = quiet.iter().map(|&level| f64::from(vector::exp(level))).sum();
        let is_above = self.present.value() * quiet.len() as f64 > ABOVE_QUIET * sum;
        let margin = if is_above { MARGIN } else { f32::INFINITY };
        odds.iter_mut().zip(&self.first).for_each(|(odds, first)| *odds = first.max(*odds - margin));
    }

    pub(super) fn reset(&mut self) {
        self.present.reset();
        (self.loudest, self.is_soft) = (0.0, false);
    }
}
