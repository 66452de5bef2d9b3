//! The quiet level of each band: a quantile of its levels so far.

use crate::kernels::vector;
use crate::presence::sizes::BANDS;

/// Time constant of the histogram, s.
const QUIET_SECONDS: f64 = 8.0;
/// Quantile of the levels that is the quiet level.
const QUIET: f32 = 0.1;

/// Histograms of the levels of all bands, with exponential decay.
#[derive(Debug, Clone)]
pub(super) struct QuietLevels {
    /// [`CELLS`](Self::CELLS) per band.
    counts: Vec<f32>,
    total: f32,
    keep: f32,
}

impl QuietLevels {
    /// Lowest natural log power.
    const MIN_LOG_POWER: f32 = -32.0;
    /// Width of a cell.
    const CELL: f32 = 0.4;
    const CELLS: usize = 96;

    pub(super) fn new(frame_seconds: f64) -> Self {
        let keep = libm::exp(-frame_seconds / QUIET_SECONDS) as f32;
        Self { counts: vec![0.0; BANDS * Self::CELLS], total: 0.0, keep }
    }

    /// Adds the level of a frame in each band to its histogram, and writes the quiet level of each band to `quiet`.
    pub(super) fn update(&mut self, level: &[f32], quiet: &mut [f32]) {
        /// Smaller counts are set to zero: subnormal numbers are slow.
        const NONE: f32 = 1e-20;
        let keep = self.keep;
        vector::dispatch(
            #[inline(always)]
            || {
                for count in &mut self.counts {
                    let kept = *count * keep;
                    *count = if kept < NONE { 0.0 } else { kept };
                }
            },
        );
        self.total = self.total * self.keep + 1.0;
        let goal = QUIET * self.total;
        let bands = self.counts.chunks_exact_mut(Self::CELLS).zip(level.iter().zip(quiet));
        for (counts, (level, quiet)) in bands {
            let cell = ((level - Self::MIN_LOG_POWER) / Self::CELL).clamp(0.0, Self::CELLS as f32 - 1.0);
            counts[cell as usize] += 1.0;
            let mut below = 0.0;
            *quiet = Self::MIN_LOG_POWER + Self::CELL * Self::CELLS as f32;
            for (cell, count) in counts.iter().enumerate() {
                if below + count >= goal {
                    *quiet = Self::MIN_LOG_POWER + Self::CELL * (cell as f32 + (goal - below) / count);
                    break;
                }
                below += count;
            }
        }
    }

    pub(super) fn reset(&mut self) {
        self.counts.fill(0.0);
        self.total = 0.0;
    }
}
