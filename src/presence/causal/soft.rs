//! Second estimate of a softer voice. After a louder voice, the network classifies the softer one as noise until its
//! mean level and its state have adapted. The second estimate starts from the state at the start of the soft passage,
//! with its own mean level.

use super::{MEAN_SECONDS, Memory, RecentMean};
use crate::kernels::vector;
use crate::presence::soft_passages::{MARGIN, SOFT};

/// Time constant of the present level, s.
const PRESENT_SECONDS: f64 = 0.2;
/// Time constant of the decay of the loudest level, s.
const LOUDEST_FALL_SECONDS: f64 = 5.0;
/// Minimum present level relative to the mean quiet level of all bands, as a ratio of powers: 8 dB. Noise in pauses is
/// below this level.
const ABOVE_QUIET: f64 = 6.309_573;

/// Detector of soft passages, with the state of their second estimate.
#[derive(Debug, Clone)]
pub(super) struct SoftPassage {
    present: RecentMean,
    loudest: f64,
    fall: f64,
    /// Mean power since the passage began.
    mean: RecentMean,
    /// States of the second estimate, one per interleaved sequence.
    memories: Vec<Memory>,
    is_soft: bool,
    /// Log odds of the first estimate.
    first: Vec<f32>,
}

impl SoftPassage {
    /// Creates a detector for evaluated frames `frame_seconds` apart, and a network with these states and `odds` log
    /// odds per frame.
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

    /// Adds the mean power of a frame. `memories` holds the states of the first estimate before that frame.
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

    /// Returns the state of the second estimate for the interleaved sequence `turn`.
    pub(super) fn memory(&mut self, turn: usize) -> &mut Memory {
        &mut self.memories[turn]
    }

    /// Stores the log odds of the first estimate.
    pub(super) fn keep(&mut self, odds: &[f32]) {
        self.first.copy_from_slice(odds);
    }

    /// Replaces the log odds of the second estimate by the maximum of the first estimate and the second less
    /// [`MARGIN`]. The first estimate alone counts if the present level is not above the quiet levels (natural
    /// logarithms of power, by band).
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
