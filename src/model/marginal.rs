//! The impulse variables integrated out.
//!
//! Given the dispersions of both sources, a bin's posterior of `(phi_s, phi_n)` depends on its
//! power only through two ratios, `|X|^2 / sigma_s^2` and `|X|^2 / sigma_n^2` with
//! `sigma^2 = lambda^(2/alpha)`. Every expectation that inference needs is therefore a function of
//! two numbers. [`MarginalTable`] tabulates them once per pair of exponents, so that a sweep looks
//! up exact conditional expectations where it would otherwise average noisy draws. By Fisher's
//! identity, `d log p(X) / d log lambda_s = (2 / alpha_s) (E[|X|^2 v_s / v^2] - E[v_s / v])`, so the
//! same numbers give the gradient of the marginal posterior.

use crate::stable::{impulse_quadrature, vector};
use rayon::prelude::*;

/// What one time-frequency bin says of the two sources, the impulse variables averaged out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expectations<T> {
    /// `E[v_s / v]`, the Wiener gain of speech, 0 to 1. That of noise is one minus this.
    pub gain: T,
    /// `E[|X|^2 v_s / v^2]`.
    pub speech_power: T,
    /// `E[|X|^2 v_n / v^2]`.
    pub noise_power: T,
    /// `log(|X|^2 p(X))`, up to the constant `log pi`.
    pub log_evidence: T,
}

/// Logarithmic range of the power over the speech variance that the table covers.
const SPEECH_RANGE: (f64, f64) = (-12.0, 42.0);
/// Logarithmic range of the power over the noise variance that the table covers.
const NOISE_RANGE: (f64, f64) = (-12.0, 18.0);
/// The logarithm of a power that is negligible against a variance: its likelihood is flat.
const NEGLIGIBLE_POWER: f32 = -6.0;
/// Grid points per unit of either logarithm.
const RESOLUTION: f64 = 2.5;
/// Grid points along either axis.
const ROWS: usize = points(SPEECH_RANGE);
const COLUMNS: usize = points(NOISE_RANGE);

const fn points((low, high): (f64, f64)) -> usize {
    ((high - low) * RESOLUTION) as usize + 1
}

/// Conditional expectations on a logarithmic grid, for one pair of characteristic exponents.
#[derive(Debug, Clone)]
pub struct MarginalTable {
    /// Rows of `COLUMNS` cells, a row for every ratio of power and speech.
    cells: Vec<[f32; 4]>,
}

impl MarginalTable {
    /// Distance of grid points along either logarithm.
    pub(super) const CELL: f32 = (1.0 / RESOLUTION) as f32;

    /// Tabulates the expectations for characteristic exponents in (0, 2].
    #[must_use]
    pub fn new(alpha_speech: f64, alpha_noise: f64) -> Self {
        let speech = impulse_quadrature(alpha_speech, 96);
        let noise = impulse_quadrature(alpha_noise, 40);
        let cells = (0..ROWS * COLUMNS)
            .into_par_iter()
            .map(|cell| {
                let speech_ratio = SPEECH_RANGE.0 + (cell / COLUMNS) as f64 / RESOLUTION;
                let noise_ratio = NOISE_RANGE.0 + (cell % COLUMNS) as f64 / RESOLUTION;
                let e = vector::dispatch(
                    #[inline(always)]
                    || expectations(&speech, &noise, speech_ratio, noise_ratio),
                );
                [e.gain, e.speech_power, e.noise_power, e.log_evidence].map(|value| value as f32)
            })
            .collect();
        Self { cells }
    }

    /// The expectations for a bin whose logarithmic power exceeds the logarithmic variances of
    /// speech and noise by `speech_ratio` and `noise_ratio`.
    #[inline(always)]
    #[must_use]
    pub fn expectations(&self, speech_ratio: f32, noise_ratio: f32) -> Expectations<f32> {
        self.interpolate(Self::place(speech_ratio, noise_ratio))
    }

    /// The same for many bins: the places are found by vector instructions, all before the first is looked up.
    #[inline(always)]
    pub(super) fn for_each<const N: usize>(
        &self,
        ratios: impl Fn(usize) -> (f32, f32),
        mut write: impl FnMut(usize, Expectations<f32>),
    ) {
        let (mut cells, mut x, mut y) = ([0; N], [0.0; N], [0.0; N]);
        for i in 0..N {
            let (speech_ratio, noise_ratio) = ratios(i);
            (cells[i], x[i], y[i]) = Self::place(speech_ratio, noise_ratio);
        }
        for i in 0..N {
            write(i, self.interpolate((cells[i], x[i], y[i])));
        }
    }

    /// The cell of a pair of ratios, and how far into it they lie, 0 to 1; outside the grid, its edge.
    #[inline(always)]
    fn place(speech_ratio: f32, noise_ratio: f32) -> (u32, f32, f32) {
        let larger = |a: f32, b: f32| if a > b { a } else { b };
        // Powers far below both variances no longer tell how far: move along the diagonal,
        // which keeps the ratio of the variances.
        let shift = larger(NEGLIGIBLE_POWER - larger(speech_ratio, noise_ratio), 0.0);
        let place = |ratio: f32, (low, high): (f64, f64)| {
            // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
            const ROUND: f32 = 12_582_912.0;
            let last = ((high - low) * RESOLUTION) as f32 - 1e-3;
            let x = larger((ratio + shift - low as f32) * RESOLUTION as f32, 0.0);
            let x = if x < last { x } else { last };
            let shifted = (x - 0.5) + ROUND;
            (shifted.to_bits().wrapping_sub(ROUND.to_bits()), x - (shifted - ROUND))
        };
        let ((row, dx), (column, dy)) = (place(speech_ratio, SPEECH_RANGE), place(noise_ratio, NOISE_RANGE));
        (row * COLUMNS as u32 + column, dx, dy)
    }

    /// Bilinear interpolation.
    #[inline(always)]
    fn interpolate(&self, (cell, dx, dy): (u32, f32, f32)) -> Expectations<f32> {
        let row = |at: usize| -> &[[f32; 4]] { &self.cells[at..at + 2] };
        let (row, next_row) = (row(cell as usize), row(cell as usize + COLUMNS));
        let weights = [(1.0 - dx) * (1.0 - dy), (1.0 - dx) * dy, dx * (1.0 - dy), dx * dy];
        // A loop: `array::from_fn` would not be inlined, so would miss the CPU's wider instructions.
        let mut sums = [0.0; 4];
        for (k, sum) in sums.iter_mut().enumerate() {
            *sum = weights[0] * row[0][k]
                + weights[1] * row[1][k]
                + weights[2] * next_row[0][k]
                + weights[3] * next_row[1][k];
        }
        let [gain, speech_power, noise_power, log_evidence] = sums;
        Expectations { gain, speech_power, noise_power, log_evidence }
    }
}

/// The expectations by quadrature (nodes and their probabilities), for a bin of power one.
#[inline(always)]
fn expectations(
    speech: &[(f64, f64)],
    noise: &[(f64, f64)],
    speech_ratio: f64,
    noise_ratio: f64,
) -> Expectations<f64> {
    const LANES: usize = 16;
    let scaled = |nodes: &[(f64, f64)], ratio: f64| -> Vec<(f32, f32)> {
        let scale = (-ratio).exp();
        nodes.iter().map(|&(phi, probability)| ((phi * scale) as f32, probability as f32)).collect()
    };
    let mut noise_nodes = scaled(noise, noise_ratio);
    noise_nodes.resize(noise_nodes.len().next_multiple_of(LANES), (1.0, 0.0));
    let (noise_variances, noise_probabilities): (Vec<_>, Vec<_>) = noise_nodes.into_iter().unzip();
    // Per lane: the sums of the weights, of the weighted gains, and of either weighted power.
    let mut sums = [[0.0_f32; LANES]; 4];
    for (speech_variance, speech_probability) in scaled(speech, speech_ratio) {
        let (variances, _) = noise_variances.as_chunks::<LANES>();
        let (probabilities, _) = noise_probabilities.as_chunks::<LANES>();
        for (noise_variance, probability) in variances.iter().zip(probabilities) {
            for lane in 0..LANES {
                let precision = 1.0 / (speech_variance + noise_variance[lane]);
                let weight = speech_probability * probability[lane] * precision * vector::exp(-precision);
                let share = speech_variance * precision;
                sums[0][lane] += weight;
                sums[1][lane] += weight * share;
                sums[2][lane] += weight * share * precision;
                sums[3][lane] += weight * (1.0 - share) * precision;
            }
        }
    }
    let [evidence, gain, speech_power, noise_power] = sums.map(|lanes| f64::from(lanes.iter().sum::<f32>()));
    // Where the power is beyond anything that the nodes reach, their outermost pair decides.
    let normaliser = evidence.max(f64::from(f32::MIN_POSITIVE));
    Expectations {
        gain: gain / normaliser,
        speech_power: speech_power / normaliser,
        noise_power: noise_power / normaliser,
        log_evidence: normaliser.ln(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaussian_sources_have_the_wiener_gain() {
        let table = MarginalTable::new(2.0, 2.0);
        for (speech_ratio, noise_ratio) in [(0.0, 0.0), (1.3, -0.4), (-3.0, 2.2), (-30.0, -31.0)] {
            let (speech, noise) = (f64::exp(-speech_ratio), f64::exp(-noise_ratio));
            let e = table.expectations(speech_ratio as f32, noise_ratio as f32);
            let gain = speech / (speech + noise);
            assert!((f64::from(e.gain) - gain).abs() < 5e-3, "{e:?} against {gain}");
            if speech_ratio > -10.0 {
                let power = speech / (speech + noise).powi(2);
                assert!((f64::from(e.speech_power) / power - 1.0).abs() < 0.03, "{e:?} against {power}");
            }
        }
    }

    #[test]
    fn fisher_identity_holds() {
        let (speech, noise) = (impulse_quadrature(0.9, 96), impulse_quadrature(1.95, 40));
        for (a, b) in [(0.0, 0.0), (5.0, 1.0), (-2.0, 1.5), (20.0, 3.0)] {
            let at = |a, b| expectations(&speech, &noise, a, b);
            let step = 0.05;
            // The evidence is that of |X|^2 p(X): its derivative along either logarithmic variance.
            let speech_slope = (at(a - step, b).log_evidence - at(a + step, b).log_evidence) / (2.0 * step);
            let noise_slope = (at(a, b - step).log_evidence - at(a, b + step).log_evidence) / (2.0 * step);
            let e = at(a, b);
            assert!((speech_slope - (e.speech_power - e.gain)).abs() < 2e-3, "{speech_slope} {e:?}");
            assert!((noise_slope - (e.noise_power - (1.0 - e.gain))).abs() < 2e-3, "{noise_slope} {e:?}");
        }
    }
}
