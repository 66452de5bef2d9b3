//! Convolutions over a grid of frames and bands.

use super::packed_matrix::PackedMatrix;
use crate::parallel::*;
use std::borrow::Cow;

/// Number of frames computed together.
pub(crate) const FRAMES_AT_ONCE: usize = 8;

/// Values on a grid, channels x bands x frames; the channels of a cell are contiguous.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grid {
    pub channels: usize,
    pub bands: usize,
    pub values: Vec<f32>,
}

impl Grid {
    /// A grid of zeros.
    pub(crate) fn new(channels: usize, bands: usize, frames: usize) -> Self {
        Self { channels, bands, values: vec![0.0; channels * bands * frames] }
    }

    /// Number of values of a frame.
    pub(crate) fn row(&self) -> usize {
        self.channels * self.bands
    }

    pub(crate) fn frames(&self) -> usize {
        self.values.len() / self.row()
    }

    /// The grid with `side` bands of zeros on each side.
    fn padded(&self, side: usize) -> Cow<'_, Self> {
        if side == 0 {
            return Cow::Borrowed(self);
        }
        let mut padded = Self::new(self.channels, self.bands + 2 * side, self.frames());
        let row = padded.row();
        for (padded, own) in padded.values.chunks_exact_mut(row).zip(self.values.chunks_exact(self.row())) {
            padded[side * self.channels..][..own.len()].copy_from_slice(own);
        }
        Cow::Owned(padded)
    }
}

/// Taps of a convolution around its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Past and future taps over frames.
    pub frames: (usize, usize),
    /// Taps over bands on each side.
    pub bands: usize,
}

impl Reach {
    /// Only the tap at the output.
    pub(crate) const NONE: Self = Self { frames: (0, 0), bands: 0 };

    /// Number of taps over frames.
    pub(crate) fn frame_taps(self) -> usize {
        self.frames.0 + 1 + self.frames.1
    }

    /// Number of taps over bands.
    pub(crate) fn band_taps(self) -> usize {
        2 * self.bands + 1
    }
}

/// A convolution with a rectangle of taps; cells beyond the grid are zero.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Convolution {
    pub inputs: usize,
    pub outputs: usize,
    reach: Reach,
    /// Frames from one tap to the next.
    dilation: usize,
    /// Per tap over frames, the first one first: outputs x (inputs x taps over bands).
    taps: Vec<PackedMatrix>,
    biases: Vec<f32>,
}

impl Convolution {
    /// Creates a convolution from weights (outputs x inputs x taps over bands x taps over frames) and biases of the
    /// outputs.
    pub(crate) fn new(reach: Reach, dilation: usize, weights: &[f32], biases: Vec<f32>) -> Self {
        let outputs = biases.len();
        let of_frame = weights.len() / reach.frame_taps();
        let taps: Vec<PackedMatrix> =
            weights.chunks_exact(of_frame).map(|weights| PackedMatrix::new(weights, outputs)).collect();
        Self { inputs: taps[0].inputs / reach.band_taps(), outputs, reach, dilation, taps, biases }
    }

    /// Convolves `input`.
    pub(crate) fn forward(&self, input: &Grid) -> Grid {
        let mut output = Grid::new(self.outputs, input.bands, input.frames());
        let (frames, row) = (input.frames(), output.row());
        let padded = input.padded(self.reach.bands);
        output.values.par_chunks_mut(FRAMES_AT_ONCE * row).enumerate().for_each(|(index, rows)| {
            let first = index * FRAMES_AT_ONCE;
            self.fill_with_biases(rows);
            for (tap, matrix) in self.taps.iter().enumerate() {
                // The tap weights frame t + after - before.
                let (after, before) = (tap * self.dilation, self.reach.frames.0 * self.dilation);
                let begin = before.saturating_sub(first + after).min(rows.len() / row);
                let end = (frames + before).saturating_sub(first + after).min(rows.len() / row).max(begin);
                let rows = &mut rows[begin * row..end * row];
                // Without padding between them, frames are contiguous and multiplied together.
                let together = if self.reach.bands == 0 { rows.len().max(1) } else { row };
                for (own, rows) in rows.chunks_mut(together).enumerate() {
                    let seen = (first + begin + own + after - before) * padded.row();
                    matrix.add_products(&padded.values[seen..], self.inputs, rows);
                }
            }
        });
        output
    }

    /// Computes a frame from its row and the row of the past frame, both with `reach.bands` bands of zeros on each
    /// side.
    pub(crate) fn next_frame(&self, past: &[f32], now: &[f32], out: &mut [f32]) {
        self.fill_with_biases(out);
        let rows = if self.taps.len() == 1 { &[now][..] } else { &[past, now] };
        for (matrix, row) in self.taps.iter().zip(rows) {
            matrix.add_products(row, self.inputs, out);
        }
    }

    /// Distance of the past frame of [`next_frame`](Self::next_frame), in frames.
    pub(crate) fn past_frames(&self) -> usize {
        self.reach.frames.0 * self.dilation
    }

    fn fill_with_biases(&self, cells: &mut [f32]) {
        cells.chunks_exact_mut(self.outputs).for_each(|cell| cell.copy_from_slice(&self.biases));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_convolution_sums_over_its_taps_inside_the_grid() {
        let value = |n: usize| ((n * n * 7 + n * 3) % 101) as f32 / 50.0 - 1.0;
        let (inputs, outputs, frames) = (3, 5, 19);
        for (past, future, side, bands, dilation) in
            [(1, 1, 1, 4, 2), (1, 0, 1, 8, 3), (0, 0, 0, 6, 1), (1, 1, 0, 1, 8), (1, 1, 0, 1, 32)]
        {
            let reach = Reach { frames: (past, future), bands: side };
            let count = reach.frame_taps() * reach.band_taps() * inputs * outputs;
            let weights: Vec<f32> = (0..count).map(value).collect();
            let biases: Vec<f32> = (0..outputs).map(|n| value(n + 3)).collect();
            let mut input = Grid::new(inputs, bands, frames);
            input.values.iter_mut().enumerate().for_each(|(n, x)| *x = value(n + 5));
            let convolution = Convolution::new(reach, dilation, &weights, biases.clone());
            let found = convolution.forward(&input);
            let expected = |frame: usize, band: usize, output: usize| {
                let mut sum = biases[output];
                for (i, j) in
                    (0..reach.frame_taps()).flat_map(|i| (0..reach.band_taps()).map(move |j| (i, j)))
                {
                    let (Some(t), Some(b)) =
                        ((frame + i * dilation).checked_sub(past * dilation), (band + j).checked_sub(side))
                    else {
                        continue;
                    };
                    if t < frames && b < bands {
                        for k in 0..inputs {
                            let weight =
                                weights[((i * reach.band_taps() + j) * inputs + k) * outputs + output];
                            sum += weight * input.values[(t * bands + b) * inputs + k];
                        }
                    }
                }
                sum
            };
            for (at, found) in found.values.iter().enumerate() {
                let expected = expected(at / outputs / bands, at / outputs % bands, at % outputs);
                assert!((found - expected).abs() < 1e-4, "{reach:?}, {at}: {found}, {expected}");
            }
        }
    }
}
