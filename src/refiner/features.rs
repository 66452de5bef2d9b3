//! What the network sees of a posterior, and what its output does to the gain.

use crate::kernels::convolution::Grid;
use crate::kernels::vector;

/// Bins of a frame that share a cell of the grid.
const CELL: usize = 4;
/// Values that describe a bin of a frame.
const FEATURES: usize = 6;
/// Channels of the network's input: those of all bins of a cell, and its frequency.
pub(super) const INPUTS: usize = FEATURES * CELL + 1;
/// Channels of its output: for every bin of a cell, what is added to the logarithm of the odds of speech, as such
/// and as a multiple of it.
pub(super) const OUTPUTS: usize = 2 * CELL;
/// The frequency that counts as zero, Hz; 0 Hz counts as minus one.
const HERTZ: f64 = 4_000.0;

/// What is known of every bin of a block after the separation; all matrices are bins x frames, slices or vectors.
#[derive(Debug, Clone)]
pub struct Posterior<M> {
    /// Number of bins.
    pub bins: usize,
    /// Their distance, Hz.
    pub bin_hertz: f64,
    /// Characteristic exponents of speech and of noise.
    pub alpha: [f64; 2],
    /// The posterior-mean gain.
    pub gain: M,
    /// `|X|^2`, of mean about one.
    pub power: M,
    /// Dispersions of speech and of noise, in their last draw.
    pub dispersion: [M; 2],
}

/// Cells of a frame.
pub(super) fn bands(bins: usize) -> usize {
    bins.div_ceil(CELL)
}

impl<M: AsRef<[f32]>> Posterior<M> {
    pub(super) fn frames(&self) -> usize {
        self.gain.as_ref().len() / self.bins
    }

    /// The input of the network.
    pub(super) fn grid(&self) -> Grid {
        let (bins, frames) = (self.bins, self.frames());
        let (gain, power) = (self.gain.as_ref(), self.power.as_ref());
        let [speech, noise] = self.dispersion.each_ref().map(AsRef::as_ref);
        let mut mean = vec![0.0_f32; bins];
        for power in power.chunks_exact(bins) {
            mean.iter_mut().zip(power).for_each(|(sum, power)| *sum += power);
        }
        let mean: Vec<f32> = mean.iter().map(|sum| vector::ln(sum / frames as f32 + 1e-6)).collect();
        let overall = mean.iter().sum::<f32>() / bins as f32;
        // Dispersions to the power of 2 / alpha are powers.
        let [of_speech, of_noise] = self.alpha.map(|alpha| (2.0 / alpha) as f32);
        let mut grid = Grid::new(INPUTS, bands(bins), frames);
        let row = grid.row();
        vector::dispatch(
            #[inline(always)]
            || {
                for (t, cells) in grid.values.chunks_exact_mut(row).enumerate() {
                    for bin in 0..bins {
                        let at = t * bins + bin;
                        let power = vector::ln(power[at]);
                        let speech = of_speech * vector::ln(speech[at]);
                        let noise = of_noise * vector::ln(noise[at]);
                        let features: [f32; FEATURES] = [
                            vector::log_odds(gain[at]).clamp(-9.0, 9.0) / 4.0,
                            (power - noise).clamp(-8.0, 10.0) / 4.0,
                            (speech - noise).clamp(-12.0, 12.0) / 6.0,
                            ((power - mean[bin]).clamp(-10.0, 5.0) + 2.0) / 4.0,
                            (mean[bin] - overall).clamp(-8.0, 8.0) / 4.0,
                            1.0,
                        ];
                        for (feature, value) in features.into_iter().enumerate() {
                            cells[bin / CELL * INPUTS + feature * CELL + bin % CELL] = value;
                        }
                    }
                }
            },
        );
        let cell_hertz = CELL as f64 * self.bin_hertz;
        for cells in grid.values.chunks_exact_mut(row) {
            for (band, cell) in cells.chunks_exact_mut(INPUTS).enumerate() {
                cell[INPUTS - 1] = (band as f64 * cell_hertz / HERTZ - 1.0) as f32;
            }
        }
        grid
    }
}

/// Where a bin of a frame is in the output of the network: its offset, and that of its multiple.
fn place(grid: &Grid, frame: usize, bin: usize) -> [usize; 2] {
    let offset = frame * grid.row() + bin / CELL * OUTPUTS + bin % CELL;
    [offset, offset + CELL]
}

/// What the output of the network adds to the logarithm of the odds in a bin: as such, and as a multiple of it.
pub(super) fn correction(output: &Grid, frame: usize, bin: usize) -> [f32; 2] {
    place(output, frame, bin).map(|at| output.values[at])
}

/// Sets the slopes of the output, given the slope of the corrected logarithm of the odds.
pub(super) fn set_slopes(slopes: &mut Grid, frame: usize, bin: usize, log_odds: f32, slope: f32) {
    let [offset, multiple] = place(slopes, frame, bin);
    slopes.values[offset] = slope;
    slopes.values[multiple] = slope * log_odds;
}
