//! A filter that is constant in time, and linear: what of the microphones tells of the voice that is known from elsewhere.

use super::hermitian::{Matrix, Value};
use super::{column, place};
use crate::parallel::*;
use crate::transform::Spectrogram;
use num_complex::Complex;
use std::ops::Range;

/// Frames that count, of which the present one is in the middle.
const TAPS: usize = 3;
/// Largest number of channels with so many frames: with more of them, the present frame alone counts, as the work grows with the
/// square of both.
const MAX_CHANNELS_WITH_TAPS: usize = 8;
/// What a covariance has of the identity, as a fraction of its mean diagonal: against singular ones.
const LOADING: f64 = 1e-6;
/// Frames that the past blocks count for at most.
const MEMORY_FRAMES: f64 = 94.0;
/// Frames at the start of a block in which the filter of the last block fades into its own.
const FADE_FRAMES: usize = 8;

/// In every bin, the linear combination of all channels in three frames that is nearest to each channel of a target, by least
/// squares.
///
/// An estimate of a voice has errors that change from frame to frame. A filter that is the same in all frames cannot follow them: it
/// keeps of the estimate what directions and echoes tell.
pub(crate) struct LinearFilter {
    channels: usize,
    bins: Vec<BinRegression>,
}

impl LinearFilter {
    /// For `channels` microphones and frames of `bins` bins.
    pub(crate) fn new(channels: usize, bins: usize) -> Self {
        let taps = if channels <= MAX_CHANNELS_WITH_TAPS { TAPS } else { 1 };
        Self { channels, bins: vec![BinRegression::new(channels, taps); bins] }
    }

    /// The filtered frames `span` of every channel. `inputs` and `targets` hold the frames of every channel, and those around the span as
    /// far as there are any.
    pub(crate) fn filter(
        &mut self,
        inputs: &[Spectrogram],
        targets: &[Spectrogram],
        span: Range<usize>,
    ) -> Vec<Spectrogram> {
        let of_bins: Vec<Vec<Complex<f32>>> = self
            .bins
            .par_iter_mut()
            .enumerate()
            .map(|(bin, regression)| {
                regression.filter(&column(inputs, bin), &column(targets, bin), span.clone())
            })
            .collect();
        let mut filtered = vec![Spectrogram::new(self.bins.len(), span.len()); self.channels];
        place(&of_bins, &mut filtered);
        filtered
    }
}

/// One bin.
#[derive(Debug, Clone)]
struct BinRegression {
    channels: usize,
    taps: usize,
    /// Of the values that count for a frame: sums over frames of products with their conjugates.
    covariance: Matrix,
    /// Of these values with the conjugated target of each channel.
    with_targets: Vec<Vec<Value>>,
    /// Frames in these sums.
    frames: f64,
    /// The weights of these values, for each channel; none before the first block.
    weights: Vec<Vec<Value>>,
}

impl BinRegression {
    fn new(channels: usize, taps: usize) -> Self {
        let size = channels * taps;
        Self {
            channels,
            taps,
            covariance: Matrix::zero(size),
            with_targets: vec![vec![Value::ZERO; size]; channels],
            frames: 0.0,
            weights: Vec::new(),
        }
    }

    /// The filtered frames `span` (frames x channels), by a filter that is fitted to them and to those before.
    fn filter(&mut self, inputs: &[Value], targets: &[Value], span: Range<usize>) -> Vec<Complex<f32>> {
        let share = MEMORY_FRAMES / self.frames.max(MEMORY_FRAMES);
        self.covariance.values.iter_mut().for_each(|sum| *sum *= share);
        self.with_targets.iter_mut().flatten().for_each(|sum| *sum *= share);
        self.frames = share * self.frames + span.len() as f64;
        let rows: Vec<Vec<Value>> = span.clone().map(|t| self.around(inputs, t)).collect();
        for (row, target) in rows.iter().zip(targets.chunks_exact(self.channels).skip(span.start)) {
            self.add(row, target);
        }
        let weights = self.solution();
        let before = std::mem::replace(&mut self.weights, weights);
        let mut filtered = Vec::with_capacity(span.len() * self.channels);
        for (i, row) in rows.iter().enumerate() {
            let fade = (i + 1) as f64 / (FADE_FRAMES + 1) as f64;
            for (channel, weights) in self.weights.iter().enumerate() {
                let mut value = combined(weights, row);
                if let Some(before) = before.get(channel).filter(|_| fade < 1.0) {
                    let earlier = combined(before, row);
                    value = earlier + (value - earlier) * fade;
                }
                filtered.push(Complex::new(value.re as f32, value.im as f32));
            }
        }
        filtered
    }

    /// The values of all channels in the frames around frame `t` (frames x channels); frames that do not exist are silent.
    fn around(&self, inputs: &[Value], t: usize) -> Vec<Value> {
        let first = t as isize - (self.taps / 2) as isize;
        let at = |tap: usize| usize::try_from(first + tap as isize).ok().map(|t| t * self.channels);
        let frame = |tap: usize| at(tap).and_then(|start| inputs.get(start..start + self.channels));
        let silence = vec![Value::ZERO; self.channels];
        (0..self.taps).flat_map(|tap| frame(tap).unwrap_or(&silence).to_vec()).collect()
    }

    /// Adds a frame to the sums. Of the covariance only the lower triangle is used.
    fn add(&mut self, row: &[Value], target: &[Value]) {
        for (i, x) in row.iter().enumerate() {
            let start = i * row.len();
            let sums = &mut self.covariance.values[start..=start + i];
            sums.iter_mut().zip(row).for_each(|(sum, y)| *sum += x * y.conj());
        }
        for (sums, target) in self.with_targets.iter_mut().zip(target) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * target.conj());
        }
    }

    /// The weights for each channel that solve the normal equations.
    fn solution(&self) -> Vec<Vec<Value>> {
        let mut loaded = self.covariance.clone();
        let size = loaded.size;
        let loading = LOADING * loaded.trace() / size as f64;
        if loading <= f64::MIN_POSITIVE {
            return vec![vec![Value::ZERO; size]; self.channels];
        }
        (0..size).for_each(|i| loaded.at_mut(i, i).re += loading);
        let inverse = loaded.cholesky().inverse_of_lower();
        let solved = |sums: &Vec<Value>| {
            let half: Vec<Value> =
                (0..size).map(|i| (0..=i).map(|j| inverse.at(i, j) * sums[j]).sum()).collect();
            (0..size).map(|i| (i..size).map(|j| inverse.at(j, i).conj() * half[j]).sum()).collect()
        };
        self.with_targets.iter().map(solved).collect()
    }
}

/// The sum of the values, by conjugated weights.
fn combined(weights: &[Value], values: &[Value]) -> Value {
    weights.iter().zip(values).map(|(weight, value)| weight.conj() * value).sum()
}
