//! Time-invariant multichannel linear filter, fitted to a target by least squares.

use super::dropouts::{Dropouts, PerPart};
use super::hermitian::{Matrix, Value};
use super::{column, place};
use crate::parallel::*;
use crate::transform::{FrameGrid, Spectrogram};
use num_complex::Complex;
use std::ops::Range;

/// Number of frames that the filter combines, centred on the present one.
const TAPS: usize = 3;
/// Maximum number of channels with [`TAPS`] frames. With more channels, the filter combines those of the present frame
/// alone, as the work grows with the square of channels times frames.
const MAX_CHANNELS_WITH_TAPS: usize = 8;
/// Diagonal loading of covariances, as a fraction of their mean diagonal, against singular matrices.
const LOADING: f64 = 1e-6;
/// Maximum weight of past blocks, in frames.
const MEMORY_FRAMES: f64 = 94.0;
/// Frames at the start of a block over which the filter fades from that of the last block.
const FADE_FRAMES: usize = 8;
/// Explained fraction at which the filter reaches its full weight: of the target's power that one channel alone does
/// not explain, the part that all channels explain. Identical channels explain nothing; two microphones 1 cm apart in a
/// room, 0.2 to 0.5 (eval/results).
const FULL_GAIN: f64 = 0.25;

/// Least-squares filter: in every bin, the linear combination of all channels in three frames that is nearest to each
/// channel of a target.
///
/// The errors of an estimated voice change from frame to frame. A time-invariant filter cannot follow them: it keeps
/// the part of the estimate that all channels explain linearly. Where other channels explain nothing, each channel
/// passes unchanged.
///
/// A channel that has dropped out does not contribute to the others, and passes unchanged, too.
pub(crate) struct LinearFilter {
    channels: usize,
    bins: PerPart<Vec<BinRegression>>,
    dropouts: Dropouts,
}

impl LinearFilter {
    /// Creates a filter for `channels` microphones and frames of this grid.
    pub(crate) fn new(channels: usize, grid: FrameGrid) -> Self {
        let taps = if channels <= MAX_CHANNELS_WITH_TAPS { TAPS } else { 1 };
        Self {
            channels,
            bins: PerPart::new(vec![BinRegression::new(channels, taps); grid.bins]),
            dropouts: Dropouts::new(channels, grid.frame_seconds),
        }
    }

    /// Returns the filtered frames `span` of every channel. `inputs` and `targets` hold these frames of every channel,
    /// and adjacent ones where available.
    pub(crate) fn filter(
        &mut self,
        inputs: &[Spectrogram],
        targets: &[Spectrogram],
        span: Range<usize>,
    ) -> Vec<Spectrogram> {
        let bins = inputs[0].bins();
        let unchanged = |channel: &Spectrogram| {
            let values = &channel.as_slice()[span.start * bins..span.end * bins];
            Spectrogram::from_values(bins, values.to_vec())
        };
        let mut filtered: Vec<Spectrogram> = inputs.iter().map(unchanged).collect();
        for part in self.dropouts.parts(inputs, span.clone()) {
            let channels = &part.channels;
            let of_part = |all: &Vec<BinRegression>| all.iter().map(|bin| bin.part(channels)).collect();
            let filters = self.bins.of(channels, self.channels, of_part);
            let column = |of: &[Spectrogram], bin: usize| column(of, channels, bin);
            let fit = |(bin, regression): (usize, &mut BinRegression)| {
                regression.fit(&column(inputs, bin), &column(targets, bin), span.clone())
            };
            let left: Vec<Unexplained> = filters.par_iter_mut().enumerate().map(fit).collect();
            let sum = |part: fn(&Unexplained) -> f64| left.iter().map(part).sum::<f64>();
            let (by_all, by_one) = (sum(|left| left.by_all), sum(|left| left.by_one));
            // Silence explains nothing: channels pass unchanged.
            let gain = if by_one > 0.0 { 1.0 - by_all / by_one } else { 0.0 };
            let weight = (gain / FULL_GAIN).clamp(0.0, 1.0);
            let apply = |(bin, regression): (usize, &mut BinRegression)| {
                regression.apply(&column(inputs, bin), span.clone(), weight)
            };
            let of_bins: Vec<Vec<Complex<f32>>> = filters.par_iter_mut().enumerate().map(apply).collect();
            place(&of_bins, &mut filtered, &part, span.start);
        }
        filtered
    }
}

/// Least-squares regression of one bin.
#[derive(Debug, Clone)]
struct BinRegression {
    channels: usize,
    taps: usize,
    /// Covariance of the inputs of the filter (channels x taps): sums over frames.
    covariance: Matrix,
    /// Covariance of these inputs with the target of each channel: sums over frames.
    with_targets: Vec<Vec<Value>>,
    /// Power of the target of each channel: sums over frames.
    target_powers: Vec<f64>,
    /// Effective number of frames in these sums.
    frames: f64,
    /// Weights of the inputs, for each channel, that solve the normal equations.
    solution: Vec<Vec<Value>>,
    /// Weights of the last block; empty before the first.
    weights: Vec<Vec<Value>>,
}

/// Power of the targets that each channel alone, and all channels together, do not explain.
struct Unexplained {
    by_one: f64,
    by_all: f64,
}

impl BinRegression {
    fn new(channels: usize, taps: usize) -> Self {
        let size = channels * taps;
        Self {
            channels,
            taps,
            covariance: Matrix::zero(size),
            with_targets: vec![vec![Value::ZERO; size]; channels],
            target_powers: vec![0.0; channels],
            frames: 0.0,
            solution: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Returns the regression of a subset of the channels, with the corresponding sums.
    fn part(&self, channels: &[usize]) -> Self {
        let values = |tap: usize| channels.iter().map(move |channel| tap * self.channels + channel);
        let values: Vec<usize> = (0..self.taps).flat_map(values).collect();
        let with_target = |&channel: &usize| {
            let sums = &self.with_targets[channel];
            values.iter().map(|&value| sums[value]).collect()
        };
        Self {
            channels: channels.len(),
            taps: self.taps,
            covariance: self.covariance.part(&values),
            with_targets: channels.iter().map(with_target).collect(),
            target_powers: channels.iter().map(|&channel| self.target_powers[channel]).collect(),
            frames: self.frames,
            solution: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Fits the filter to the frames `span` of inputs and targets (frames x channels), and to past frames.
    fn fit(&mut self, inputs: &[Value], targets: &[Value], span: Range<usize>) -> Unexplained {
        let kept = MEMORY_FRAMES / self.frames.max(MEMORY_FRAMES);
        self.covariance.values.iter_mut().for_each(|sum| *sum *= kept);
        self.with_targets.iter_mut().flatten().for_each(|sum| *sum *= kept);
        self.target_powers.iter_mut().for_each(|sum| *sum *= kept);
        self.frames = kept * self.frames + span.len() as f64;
        let size = self.covariance.size;
        let padded = self.padded(inputs);
        let rows = padded.windows(size).step_by(self.channels).zip(targets.chunks_exact(self.channels));
        for (row, target) in rows.skip(span.start).take(span.len()) {
            self.add(row, target);
        }
        let all: Vec<usize> = (0..size).collect();
        let inverse = self.inverse_root(&all);
        self.solution =
            self.with_targets.iter().map(|sums| solve_normal_equations(inverse.as_ref(), sums)).collect();
        let explained = |solution: &[Value], sums: &[Value]| weighted_sum(solution, sums).re;
        let mut left = Unexplained { by_one: 0.0, by_all: 0.0 };
        for (channel, &power) in self.target_powers.iter().enumerate() {
            let own: Vec<usize> = (channel..size).step_by(self.channels).collect();
            let sums: Vec<Value> = own.iter().map(|&i| self.with_targets[channel][i]).collect();
            let by_one = explained(&solve_normal_equations(self.inverse_root(&own).as_ref(), &sums), &sums);
            left.by_one += (power - by_one).max(0.0);
            left.by_all += (power - explained(&self.solution[channel], &self.with_targets[channel])).max(0.0);
        }
        left
    }

    /// Returns the frames `span` (frames x channels): the filtered channels with this weight, 0 to 1, plus the
    /// unchanged channels with the remaining weight.
    fn apply(&mut self, inputs: &[Value], span: Range<usize>, weight: f64) -> Vec<Complex<f32>> {
        let present = self.taps / 2 * self.channels;
        let mut weights = self.solution.clone();
        weights.iter_mut().flatten().for_each(|of_value| *of_value *= weight);
        for (channel, weights) in weights.iter_mut().enumerate() {
            weights[present + channel] += 1.0 - weight;
        }
        let before = std::mem::replace(&mut self.weights, weights);
        let mut filtered = Vec::with_capacity(span.len() * self.channels);
        let padded = self.padded(inputs);
        let rows = padded.windows(self.covariance.size).step_by(self.channels);
        for (i, row) in rows.skip(span.start).take(span.len()).enumerate() {
            let fade = (i + 1) as f64 / (FADE_FRAMES + 1) as f64;
            for (channel, weights) in self.weights.iter().enumerate() {
                let mut value = weighted_sum(weights, row);
                if let Some(before) = before.get(channel).filter(|_| fade < 1.0) {
                    let earlier = weighted_sum(before, row);
                    value = earlier + (value - earlier) * fade;
                }
                filtered.push(Complex::new(value.re as f32, value.im as f32));
            }
        }
        filtered
    }

    /// Returns `inputs` (frames x channels) padded with silent frames on both sides. The inputs of the filter for frame
    /// `t` start at frame `t` of the result.
    fn padded(&self, inputs: &[Value]) -> Vec<Value> {
        let silence = vec![Value::ZERO; self.taps / 2 * self.channels];
        [&silence, inputs, &silence].concat()
    }

    /// Adds a frame to the sums; the covariance in the lower triangle only.
    fn add(&mut self, row: &[Value], target: &[Value]) {
        for (i, x) in row.iter().enumerate() {
            let start = i * row.len();
            let sums = &mut self.covariance.values[start..=start + i];
            sums.iter_mut().zip(row).for_each(|(sum, y)| *sum += x * y.conj());
        }
        for (power, target) in self.target_powers.iter_mut().zip(target) {
            *power += target.norm_sqr();
        }
        for (sums, target) in self.with_targets.iter_mut().zip(target) {
            sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x * target.conj());
        }
    }

    /// Returns the inverse Cholesky factor of the loaded covariance of the inputs `of`; `None` for silence.
    fn inverse_root(&self, of: &[usize]) -> Option<Matrix> {
        let mut covariance = self.covariance.part(of);
        let loading = LOADING * covariance.trace() / of.len() as f64;
        (0..of.len()).for_each(|i| covariance.at_mut(i, i).re += loading);
        (loading > f64::MIN_POSITIVE).then(|| covariance.cholesky().inverse_of_lower())
    }
}

/// Solves the normal equations by the inverse of a Cholesky factor. Without one, all weights are zero.
fn solve_normal_equations(inverse: Option<&Matrix>, sums: &[Value]) -> Vec<Value> {
    let size = sums.len();
    let Some(inverse) = inverse else { return vec![Value::ZERO; size] };
    let half: Vec<Value> = (0..size).map(|i| (0..=i).map(|j| inverse.at(i, j) * sums[j]).sum()).collect();
    (0..size).map(|i| (i..size).map(|j| inverse.at(j, i).conj() * half[j]).sum()).collect()
}

/// Returns the sum of the values multiplied by the conjugated weights.
fn weighted_sum(weights: &[Value], values: &[Value]) -> Value {
    weights.iter().zip(values).map(|(weight, value)| weight.conj() * value).sum()
}
