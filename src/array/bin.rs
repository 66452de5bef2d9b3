//! Filter of one bin: spatial covariances of speech and noise, and the Wiener filter computed from them.

use super::hermitian::{Matrix, Value};
use num_complex::Complex;

/// Iterations of expectation maximisation per block; tuned on simulated rooms with four microphones (eval/results).
const ITERATIONS: usize = 14;
/// Updates of the powers per iteration.
const POWER_UPDATES: usize = 2;
/// Diagonal loading of covariances, as a fraction: for the noise of microphones and converters, and against singular
/// matrices.
const LOADING: f64 = 1e-5;
/// Maximum weight of past blocks, in frames.
const MEMORY_FRAMES: f64 = 240.0;
/// Minimum fraction of speech, and of noise, in a frame by the prior.
const MIN_PART: f64 = 3e-4;
/// Minimum power, relative to the mean power of the bin.
const MIN_POWER: f64 = 1e-8;

/// Prior and powers of a frame.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// Fraction of its power that is speech by the prior.
    prior: f64,
    /// Minimum gain.
    floor: f64,
    /// Powers of speech and noise by the prior.
    before: [f64; 2],
    /// Estimated powers of speech and noise.
    powers: [f64; 2],
}

impl Frame {
    /// Creates a frame with a gain as prior and a minimum gain, 0 to 1 each.
    pub(super) fn new(gain: f32, floor: f32) -> Self {
        let prior = f64::from(gain).clamp(MIN_PART, 1.0 - MIN_PART);
        Self { prior, floor: floor.into(), before: [0.0; 2], powers: [0.0; 2] }
    }

    /// Initialises the powers from the prior and the mean `power` of the channels.
    fn start(&mut self, power: f64, least: f64) {
        self.before = [self.prior, 1.0 - self.prior].map(|part| part * power + least);
        self.powers = self.before;
    }

    /// Applies multiplicative updates to the powers (Sekiguchi et al. 2020, equations 33 to 36), from the components
    /// and their variances under speech. The result is a geometric mean, in which the prior has a weight of one third.
    fn update(&mut self, components: &[Value], variances: &[f64], least: f64) {
        let [speech, noise] = self.powers;
        let mut terms = [[0.0; 2]; 2];
        for (component, &variance) in components.iter().zip(variances) {
            let inverse = 1.0 / (speech * variance + noise);
            let excess = component.norm_sqr() * inverse * inverse;
            terms[0][0] += variance * excess;
            terms[0][1] += variance * inverse;
            terms[1][0] += excess;
            terms[1][1] += inverse;
        }
        for ((power, before), [numerator, denominator]) in self.powers.iter_mut().zip(self.before).zip(terms)
        {
            let updated = *power * (numerator / denominator).sqrt() + least;
            *power = libm::cbrt(updated * updated * before);
        }
    }

    /// Returns the Wiener gain of a component with this variance under speech.
    fn gain(&self, variance: f64) -> f64 {
        let speech = self.powers[0] * variance;
        speech / (speech + self.powers[1])
    }
}

/// Basis in which the covariance of noise is the identity, and that of speech is diagonal.
pub(super) struct Basis {
    /// Matrix from channels to components; its rows are conjugated basis vectors.
    pub analysis: Matrix,
    /// Matrix from components to channels: the inverse of `analysis`.
    pub synthesis: Matrix,
    /// Variances of the components under speech.
    pub variances: Vec<f64>,
}

impl Basis {
    pub(super) fn new(speech: &Matrix, noise: &Matrix) -> Self {
        let lower = noise.cholesky();
        let inverse = lower.inverse_of_lower();
        let (variances, vectors) = inverse.congruent(speech).eigen();
        Self {
            analysis: vectors.adjoint().times(&inverse),
            synthesis: lower.times(&vectors),
            variances: variances.into_iter().map(|variance| variance.max(LOADING)).collect(),
        }
    }

    /// Returns the components of `values` (frames x channels), frame by frame.
    fn components(&self, values: &[Value]) -> Vec<Value> {
        let size = self.variances.len();
        let rows = |frame: &'_ [Value]| -> Vec<Value> {
            let row = |row: &[Value]| row.iter().zip(frame).map(|(a, x)| a * x).sum();
            self.analysis.values.chunks_exact(size).map(row).collect()
        };
        values.chunks_exact(size).flat_map(rows).collect()
    }

    /// Returns the expected covariances of speech and noise, normalised by the powers of each frame: sums over frames.
    fn covariances(&self, components: &[Value], frames: &[Frame]) -> [Matrix; 2] {
        let size = self.variances.len();
        let mut sums = [Matrix::zero(size), Matrix::zero(size)];
        let mut gains = vec![0.0; size];
        for (components, frame) in components.chunks_exact(size).zip(frames) {
            gains.iter_mut().zip(&self.variances).for_each(|(gain, &variance)| *gain = frame.gain(variance));
            let [speech, noise] = frame.powers.map(|power| 1.0 / power);
            for i in 0..size {
                for j in 0..=i {
                    let product = components[i] * components[j].conj();
                    *sums[0].at_mut(i, j) += product * (gains[i] * gains[j] * speech);
                    *sums[1].at_mut(i, j) += product * ((1.0 - gains[i]) * (1.0 - gains[j]) * noise);
                }
                // Speech and noise have the same posterior variance.
                let variance = frame.powers[0] * self.variances[i] * (1.0 - gains[i]);
                sums[0].at_mut(i, i).re += variance * speech;
                sums[1].at_mut(i, i).re += variance * noise;
            }
        }
        sums.map(|mut sum| {
            for i in 0..size {
                for j in 0..i {
                    *sum.at_mut(j, i) = sum.at(i, j).conj();
                }
            }
            self.synthesis.congruent(&sum)
        })
    }

    /// Returns the images of speech in the channels, frames x channels.
    fn images(&self, components: &[Value], frames: &[Frame]) -> Vec<Value> {
        let size = self.variances.len();
        let mut images = Vec::with_capacity(components.len());
        let mut filtered = vec![Value::ZERO; size];
        for (components, frame) in components.chunks_exact(size).zip(frames) {
            for ((filtered, component), &variance) in filtered.iter_mut().zip(components).zip(&self.variances)
            {
                *filtered = component * frame.gain(variance).max(frame.floor);
            }
            let row = |row: &[Value]| -> Value { row.iter().zip(&filtered).map(|(b, y)| b * y).sum() };
            images.extend(self.synthesis.values.chunks_exact(size).map(row));
        }
        images
    }
}

/// Filter of a bin, whose covariances are carried from block to block.
#[derive(Debug, Clone)]
pub(super) struct BinFilter {
    channels: usize,
    /// Spatial covariances of speech and noise, each with a trace equal to the number of channels; `None` before the
    /// first block that is not silent.
    covariances: Option<[Matrix; 2]>,
    /// Weight of the covariances, in frames.
    frames: f64,
}

impl BinFilter {
    pub(super) fn new(channels: usize) -> Self {
        Self { channels, covariances: None, frames: 0.0 }
    }

    /// Returns the filter of a subset of the channels, with the corresponding part of the covariances.
    pub(super) fn part(&self, channels: &[usize]) -> Self {
        let mut part = Self { channels: channels.len(), covariances: None, frames: self.frames };
        part.covariances = self.covariances.as_ref().map(|both| {
            both.each_ref().map(|matrix| {
                let mut matrix = matrix.part(channels);
                part.normalise(&mut matrix);
                matrix
            })
        });
        part
    }

    /// Returns the images of speech (frames x channels) in a block of `values` (frames x channels). Over the first
    /// `overlap` frames, the output fades from the filter of the last block to the present one.
    pub(super) fn filter(
        &mut self,
        values: &[Value],
        mut frames: Vec<Frame>,
        overlap: usize,
    ) -> Vec<Complex<f32>> {
        let channels = self.channels;
        let power = |frame: &[Value]| frame.iter().map(Value::norm_sqr).sum::<f64>() / channels as f64;
        let powers: Vec<f64> = values.chunks_exact(channels).map(power).collect();
        let mean = powers.iter().sum::<f64>() / powers.len().max(1) as f64;
        if mean <= f64::MIN_POSITIVE / MIN_POWER {
            return vec![Complex::ZERO; values.len()];
        }
        let least = MIN_POWER * mean;
        for (frame, power) in frames.iter_mut().zip(powers) {
            frame.start(power, least);
        }
        let before = self.covariances.take();
        let mut covariances = self.remember(first_covariances(values, &frames, channels), before.as_ref());
        let mut basis = Basis::new(&covariances[0], &covariances[1]);
        let mut components = basis.components(values);
        for _ in 0..ITERATIONS {
            covariances = self.remember(basis.covariances(&components, &frames), before.as_ref());
            basis = Basis::new(&covariances[0], &covariances[1]);
            components = basis.components(values);
            for (frame, components) in frames.iter_mut().zip(components.chunks_exact(channels)) {
                for _ in 0..POWER_UPDATES {
                    frame.update(components, &basis.variances, least);
                }
            }
        }
        let mut images = basis.images(&components, &frames);
        if let Some([speech, noise]) = &before {
            let overlap = overlap.min(frames.len());
            let basis = Basis::new(speech, noise);
            let components = basis.components(&values[..overlap * channels]);
            let earlier = basis.images(&components, &frames[..overlap]);
            for (i, (image, earlier)) in images.iter_mut().zip(earlier).enumerate() {
                let weight = (i / channels + 1) as f64 / (overlap + 1) as f64;
                *image = earlier + (*image - earlier) * weight;
            }
        }
        self.covariances = Some(covariances);
        self.frames = (self.frames + frames.len() as f64).min(MEMORY_FRAMES);
        images.into_iter().map(|x| Complex::new(x.re as f32, x.im as f32)).collect()
    }

    /// Normalises the covariances of a block, and averages them with those of past blocks.
    fn remember(&self, [speech, noise]: [Matrix; 2], before: Option<&[Matrix; 2]>) -> [Matrix; 2] {
        let (speech_before, noise_before) = before.map(|[speech, noise]| (speech, noise)).unzip();
        [(speech, speech_before), (noise, noise_before)].map(|(mut matrix, before)| {
            self.normalise(&mut matrix);
            if let Some(before) = before {
                let weight = self.frames / (self.frames + MEMORY_FRAMES);
                for (value, before) in matrix.values.iter_mut().zip(&before.values) {
                    *value = *value * (1.0 - weight) + before * weight;
                }
            }
            matrix
        })
    }

    /// Loads the diagonal, and scales to a trace equal to the number of channels.
    fn normalise(&self, matrix: &mut Matrix) {
        let scale = (1.0 - LOADING) * self.channels as f64 / matrix.trace().max(f64::MIN_POSITIVE);
        matrix.values.iter_mut().for_each(|value| *value *= scale);
        for i in 0..self.channels {
            matrix.at_mut(i, i).re += LOADING;
        }
    }
}

/// Returns the covariances of speech and noise by the prior alone, normalised by the powers of each frame: sums over
/// frames.
fn first_covariances(values: &[Value], frames: &[Frame], channels: usize) -> [Matrix; 2] {
    let mut sums = [Matrix::zero(channels), Matrix::zero(channels)];
    for (x, frame) in values.chunks_exact(channels).zip(frames) {
        let weights = [frame.prior / frame.powers[0], (1.0 - frame.prior) / frame.powers[1]];
        for i in 0..channels {
            for j in 0..channels {
                let product = x[i] * x[j].conj();
                sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum.at_mut(i, j) += product * weight);
            }
        }
    }
    sums
}
