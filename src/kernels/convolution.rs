//! Convolutions over a grid of frames and bands.

use crate::kernels::products::{Columns, product};
use crate::parallel::*;

/// Frames whose patches are multiplied at once: a product reorders the weights first, which costs as much as the product of a
/// single frame.
const FRAMES_AT_ONCE: usize = 8;

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

    fn zeros_like(&self, channels: usize) -> Self {
        Self::new(channels, self.bands, self.frames())
    }
}

/// A convolution with a rectangle of taps; cells beyond the grid are zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Convolution {
    pub inputs: usize,
    pub outputs: usize,
    /// Taps on either side of the middle one, in frames and in bands.
    pub reach: (usize, usize),
    /// Dilation of the taps, in frames and in bands.
    pub dilation: (usize, usize),
    /// Offset of its parameters among those of a network: weights (outputs x inputs x taps), then biases.
    pub offset: usize,
}

/// Input range of a tap: for outputs from `band` on, bands of a frame from `seen_band` on.
struct Tap {
    index: usize,
    seen_frame: usize,
    seen_band: usize,
    band: usize,
    count: usize,
}

impl Convolution {
    fn patch(&self) -> usize {
        (2 * self.reach.0 + 1) * (2 * self.reach.1 + 1) * self.inputs
    }

    /// Number of parameters.
    pub(crate) fn size(&self) -> usize {
        self.outputs * (self.patch() + 1)
    }

    /// Its weights (outputs x (inputs x taps)) and biases.
    pub(crate) fn weights<'a>(&self, parameters: &'a [f32]) -> (Columns<'a, f32>, &'a [f32]) {
        let (weights, biases) =
            parameters[self.offset..self.offset + self.size()].split_at(self.outputs * self.patch());
        (Columns::new(weights, self.outputs), biases)
    }

    /// The taps with inputs inside the grid, for outputs of `frame`.
    fn taps(&self, frame: usize, frames: usize, bands: usize) -> impl Iterator<Item = Tap> {
        let (frames_reached, bands_reached) = self.reach;
        let (over_frames, over_bands) = self.dilation;
        let side = 2 * bands_reached + 1;
        (0..(2 * frames_reached + 1) * side).filter_map(move |index| {
            let (i, j) = (index / side, index % side);
            let seen_frame = (frame + i * over_frames)
                .checked_sub(frames_reached * over_frames)
                .filter(|&at| at < frames)?;
            let (right, left) = (j * over_bands, bands_reached * over_bands);
            let (band, seen_band) = (left.saturating_sub(right), right.saturating_sub(left));
            let count = bands.checked_sub(band.max(seen_band)).filter(|&count| count > 0)?;
            Some(Tap { index, seen_frame, seen_band, band, count })
        })
    }

    /// The inputs of all taps for a frame, (inputs x taps) x bands.
    fn gather(&self, input: &Grid, frame: usize, patches: &mut [f32]) {
        patches.fill(0.0);
        let (inputs, patch) = (self.inputs, self.patch());
        for tap in self.taps(frame, input.frames(), input.bands) {
            let first = tap.seen_frame * input.row() + tap.seen_band * inputs;
            let seen = input.values[first..][..tap.count * inputs].chunks_exact(inputs);
            let places = patches[tap.band * patch..].chunks_exact_mut(patch);
            for (place, seen) in places.zip(seen) {
                place[tap.index * inputs..][..inputs].copy_from_slice(seen);
            }
        }
    }

    /// The convolution of `input`.
    pub(crate) fn forward(&self, parameters: &[f32], input: &Grid) -> Grid {
        let (weights, biases) = self.weights(parameters);
        let mut output = input.zeros_like(self.outputs);
        let row = output.row();
        // The patches of a single tap are the input itself.
        let is_single = self.reach == (0, 0);
        let size = if is_single { 0 } else { self.patch() * input.bands };
        output.values.par_chunks_mut(FRAMES_AT_ONCE * row).enumerate().for_each_init(
            || vec![0.0; FRAMES_AT_ONCE * size],
            |patches, (index, rows)| {
                let (first, frames) = (index * FRAMES_AT_ONCE, rows.len() / row);
                let patches = if is_single {
                    &input.values[first * input.row()..][..frames * input.row()]
                } else {
                    let patches = &mut patches[..frames * size];
                    for (frame, patches) in patches.chunks_exact_mut(size).enumerate() {
                        self.gather(input, first + frame, patches);
                    }
                    &*patches
                };
                product(weights, Columns::new(patches, self.patch()), rows);
                for cell in rows.chunks_exact_mut(self.outputs) {
                    cell.iter_mut().zip(biases).for_each(|(value, bias)| *value += bias);
                }
            },
        );
        output
    }
}
