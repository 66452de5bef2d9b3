//! Marginal likelihood: the impulse variables integrated out.
//!
//! Given the dispersions of both sources, a bin's posterior of `(phi_s, phi_n)` depends on its power only through two
//! ratios, `|X|^2 / sigma_s^2` and `|X|^2 / sigma_n^2` with `sigma^2 = lambda^(2/alpha)`. Every expectation that
//! inference needs is therefore a function of two numbers. [`MarginalTable`] tabulates them once per pair of exponents,
//! so that a sweep looks up conditional expectations instead of averaging noisy draws. By Fisher's identity,
//! `d log p(X) / d log lambda_s = (2 / alpha_s) (E[|X|^2 v_s / v^2] - E[v_s / v])`, so these expectations also give the
//! gradient of the marginal posterior.

#[cfg(test)]
mod tests;

use crate::kernels::vector;
use crate::parallel::*;
use crate::stable::LogSurvival;

/// Posterior expectations of one time-frequency bin, with the impulse variables integrated out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expectations<T> {
    /// `E[v_s / v]`, the Wiener gain of speech, 0 to 1. The gain of noise is one minus it.
    pub gain: T,
    /// `E[|X|^2 v_s / v^2]`.
    pub speech_power: T,
    /// `E[|X|^2 v_n / v^2]`.
    pub noise_power: T,
    /// `log(|X|^2 p(X))`, up to the constant `log pi`.
    pub log_evidence: T,
}

/// Range of the log ratio of power to speech variance in the table, for exponents without stretching. At the upper end,
/// even rare noise is likelier than speech.
const SPEECH_RANGE: (f64, f64) = (-12.0, 52.0);
/// Range of the log ratio of power to noise variance.
const NOISE_RANGE: (f64, f64) = (-12.0, 18.0);
/// Log ratio at which a power is negligible against a variance: the likelihood is flat.
const NEGLIGIBLE_POWER: f64 = -6.0;
/// Log ratio that only the tail of an impulse variable reaches. Along the tail, only the evidence changes.
const TAIL_POWER: f64 = 10.0;
/// Distance between grid points along both axes, in natural logarithms.
const STEP: f64 = 0.2;
/// Minimum exponent without stretching of the grid: the spread of a log impulse variable is inversely proportional to
/// its exponent.
const UNSTRETCHED: f64 = 1.0;
/// Exponent above which the law of an impulse variable is so narrow that it needs finer nodes.
const NARROW: f64 = 1.6;

/// The grid points along one logarithm.
#[derive(Debug, Clone, Copy)]
struct Axis {
    low: f32,
    per_unit: f32,
    /// Maximum position, just within the last cell.
    last: f32,
    points: usize,
}

impl Axis {
    fn new((low, high): (f64, f64), step: f64) -> Self {
        let cells = ((high - low) / step).ceil();
        Self {
            low: low as f32,
            per_unit: (1.0 / step) as f32,
            last: cells as f32 - 1e-3,
            points: cells as usize + 1,
        }
    }
}

/// Stretching of the grid for an exponent.
fn stretch(alpha: f64) -> f64 {
    (UNSTRETCHED / alpha).max(1.0)
}

/// Conditional expectations on a logarithmic grid, for one pair of characteristic exponents.
///
/// Between grid points, gains are interpolated linearly and powers by their fourth roots, which are nearly linear.
/// Beyond the grid, the limits of the laws apply. For negligible powers, the expectations depend only on the ratio of
/// the variances. For powers far above both variances, they depend only on the ratio of the tail probabilities. The
/// error of gains is below 0.05. If one of the laws is normal, it is below 0.15, as the gain may change from 0 to 1
/// within a cell.
#[derive(Debug, Clone)]
pub struct MarginalTable {
    /// A row per ratio of power to speech variance, with a cell per point of the noise axis: gain, fourth roots of the
    /// powers of speech and of noise, log evidence.
    cells: Vec<[f32; 4]>,
    speech: Axis,
    noise: Axis,
    negligible: f32,
    /// Decrease of the speech ratio per unit of the noise ratio, along the tails of both.
    tail_slope: f32,
    /// Log ratio at which the tail of speech starts.
    tail: f32,
}

impl MarginalTable {
    /// Step of numerical derivatives of tabulated values.
    pub(super) const CELL: f32 = 0.4;

    /// Tabulates the expectations for characteristic exponents from 0.2 to 2.
    #[must_use]
    pub fn new(alpha_speech: f64, alpha_noise: f64) -> Self {
        let (of_speech, of_noise) = (stretch(alpha_speech), stretch(alpha_noise));
        let widest = of_speech.max(of_noise);
        let axis =
            |(low, high): (f64, f64), stretch: f64| Axis::new((low * widest, high * stretch), STEP * stretch);
        let (speech, noise) = (axis(SPEECH_RANGE, of_speech), axis(NOISE_RANGE, of_noise));
        let speech_law = LatticeLaw::new(alpha_speech, STEP * of_speech, SPEECH_RANGE.1 * of_speech);
        let noise_law = LatticeLaw::new(alpha_noise, STEP * of_noise, NOISE_RANGE.1 * of_noise);
        Self {
            cells: tabulate(&Variances::new(speech, &speech_law), &Variances::new(noise, &noise_law)),
            speech,
            noise,
            negligible: (NEGLIGIBLE_POWER * widest) as f32,
            tail_slope: (alpha_noise / alpha_speech) as f32,
            tail: (TAIL_POWER * of_speech) as f32,
        }
    }

    /// The expectations for a bin whose logarithmic power exceeds the logarithmic variances of
    /// speech and noise by `speech_ratio` and `noise_ratio`.
    #[inline(always)]
    #[must_use]
    pub fn expectations(&self, speech_ratio: f32, noise_ratio: f32) -> Expectations<f32> {
        self.interpolate(self.place(speech_ratio, noise_ratio))
    }

    /// The expectations for `N` bins: cells are located by vector instructions before the first look-up.
    #[inline(always)]
    pub(crate) fn for_each<const N: usize>(
        &self,
        ratios: impl Fn(usize) -> (f32, f32),
        mut write: impl FnMut(usize, Expectations<f32>),
    ) {
        let (mut cells, mut x, mut y) = ([0; N], [0.0; N], [0.0; N]);
        for i in 0..N {
            let (speech_ratio, noise_ratio) = ratios(i);
            (cells[i], x[i], y[i]) = self.place(speech_ratio, noise_ratio);
        }
        for i in 0..N {
            write(i, self.interpolate((cells[i], x[i], y[i])));
        }
    }

    /// The cell of a pair of ratios, and their position in it, 0 to 1.
    #[inline(always)]
    fn place(&self, speech_ratio: f32, noise_ratio: f32) -> (u32, f32, f32) {
        let larger = |a: f32, b: f32| if a > b { a } else { b };
        let smaller = |a: f32, b: f32| if a < b { a } else { b };
        // Powers far below both variances: move along the diagonal, which keeps the ratio of the variances.
        let shift = larger(self.negligible - larger(speech_ratio, noise_ratio), 0.0);
        // Powers far above both: move along the tails, which keeps the ratio of their probabilities.
        let beyond = larger(noise_ratio - (self.noise.low + self.noise.last / self.noise.per_unit), 0.0);
        let along = larger(speech_ratio - beyond * self.tail_slope, smaller(speech_ratio, self.tail));
        let place = |ratio: f32, axis: &Axis| {
            // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
            const ROUND: f32 = 12_582_912.0;
            let x = smaller(larger((ratio + shift - axis.low) * axis.per_unit, 0.0), axis.last);
            let shifted = (x - 0.5) + ROUND;
            (shifted.to_bits().wrapping_sub(ROUND.to_bits()), x - (shifted - ROUND))
        };
        let ((row, dx), (column, dy)) = (place(along, &self.speech), place(noise_ratio, &self.noise));
        (row * self.noise.points as u32 + column, dx, dy)
    }

    /// Bilinear interpolation.
    #[inline(always)]
    fn interpolate(&self, (cell, dx, dy): (u32, f32, f32)) -> Expectations<f32> {
        let row = |at: usize| -> &[[f32; 4]] { &self.cells[at..at + 2] };
        let (row, next_row) = (row(cell as usize), row(cell as usize + self.noise.points));
        let weights = [(1.0 - dx) * (1.0 - dy), (1.0 - dx) * dy, dx * (1.0 - dy), dx * dy];
        // A loop: `array::from_fn` is not inlined, and would not use the CPU's wider instructions.
        let mut sums = [0.0; 4];
        for (k, sum) in sums.iter_mut().enumerate() {
            *sum = weights[0] * row[0][k]
                + weights[1] * row[1][k]
                + weights[2] * next_row[0][k]
                + weights[3] * next_row[1][k];
        }
        let [gain, speech_root, noise_root, log_evidence] = sums;
        let (speech_square, noise_square) = (speech_root * speech_root, noise_root * noise_root);
        Expectations {
            gain,
            speech_power: speech_square * speech_square,
            noise_power: noise_square * noise_square,
            log_evidence,
        }
    }
}

/// The law of a log impulse variable on a lattice that contains the grid points of an axis. The variances at all grid
/// points then also lie on one lattice, and share evaluations of the likelihood.
struct LatticeLaw {
    /// Lattice points per grid point.
    refinement: i32,
    /// Distance between lattice points.
    spacing: f64,
    /// Lattice points, ascending, and their probabilities.
    nodes: Vec<(i32, f64)>,
}

impl LatticeLaw {
    /// Creates the law for an exponent and a distance between grid points, with its tail up to the log power `high`.
    fn new(alpha: f64, step: f64, high: f64) -> Self {
        /// Range of the logarithm that contains the law without its tail, before stretching.
        const BODY: (f64, f64) = (-6.0, 5.0);
        /// Extent of the tail beyond the maximum log power.
        const MARGIN: f64 = 8.0;
        if alpha >= 2.0 {
            return Self { refinement: 1, spacing: step, nodes: vec![(0, 1.0)] };
        }
        let refinement = if alpha > NARROW { 5 } else { 2 };
        let spacing = step / f64::from(refinement);
        let grid = |value: f64| (value * stretch(alpha) / step).round() as i32;
        let (low, body) = (refinement * grid(BODY.0), refinement * grid(BODY.1));
        let end = refinement * ((high + MARGIN) / step).round() as i32;
        let places: Vec<i32> = (low..body).chain((body..=end).step_by(refinement as usize)).collect();
        // Each probability is divided between the two nearest nodes, which preserves the mean. The probability of a
        // node is the integral of the law times a hat function: by parts, a difference of mean survival probabilities.
        let log_phi = |place: i32| f64::from(place) * spacing;
        let survivals = LogSurvival::new(alpha / 2.0);
        let means: Vec<f64> = places
            .windows(2)
            .map(|pair| {
                let (a, b) = (log_phi(pair[0]), log_phi(pair[1]));
                (survivals.at(a) + 4.0 * survivals.at(0.5 * (a + b)) + survivals.at(b)) / 6.0
            })
            .collect();
        let above = |i: usize| means.get(i).copied().unwrap_or(0.0);
        let below = |i: usize| i.checked_sub(1).map_or(1.0, |i| means[i]);
        let nodes = places.iter().enumerate();
        let nodes = nodes.map(|(i, &place)| (place, below(i) - above(i)));
        let nodes = nodes.filter(|&(_, probability)| probability > 0.0).collect();
        Self { refinement, spacing, nodes }
    }
}

/// Sums of the weights, of the weighted gains, and of the weighted powers of speech and noise.
type Sums = [f64; 4];

#[inline(always)]
fn add(sums: &mut Sums, weight: f64, terms: &Sums) {
    sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += weight * term);
}

/// The variances of a source at all nodes and grid points, for a power of one. Their logarithms lie on a lattice: the
/// position is that of the node (an impulse variable) minus that of the grid point (a ratio).
struct Variances<'a> {
    axis: Axis,
    law: &'a LatticeLaw,
    /// Lowest position.
    low: i32,
    /// Whether each position from `low` occurs.
    needed: Vec<bool>,
}

impl<'a> Variances<'a> {
    fn new(axis: Axis, law: &'a LatticeLaw) -> Self {
        let span = (axis.points as i32 - 1) * law.refinement;
        let (first, last) = (law.nodes[0].0, law.nodes[law.nodes.len() - 1].0);
        let low = first - span;
        let mut needed = vec![false; (last - low) as usize + 1];
        for &(node, _) in &law.nodes {
            (node - span..=node)
                .step_by(law.refinement as usize)
                .for_each(|place| needed[(place - low) as usize] = true);
        }
        Self { axis, law, low, needed }
    }

    fn log_variance(&self, place: i32) -> f64 {
        let Self { axis, law, .. } = self;
        let origin = (f64::from(axis.low) * f64::from(axis.per_unit)).round() as i32 * law.refinement;
        f64::from(place - origin) * law.spacing
    }

    /// The logarithm of the largest variance at a grid point.
    fn log_largest(&self, point: usize) -> f64 {
        let nodes = &self.law.nodes;
        self.log_variance(nodes[nodes.len() - 1].0 - point as i32 * self.law.refinement)
    }
}

/// The expectations at all grid points: sums over the nodes of both laws, of noise first.
fn tabulate(speech: &Variances, noise: &Variances) -> Vec<[f32; 4]> {
    let noise_variances: Vec<f64> =
        (noise.low..).zip(&noise.needed).map(|(place, _)| libm::exp(noise.log_variance(place))).collect();
    let over_noise: Vec<Vec<Sums>> = (0..speech.needed.len())
        .into_par_iter()
        .map(|at| {
            if !speech.needed[at] {
                return Vec::new();
            }
            let speech_variance = libm::exp(speech.log_variance(speech.low + at as i32));
            let terms: Vec<Sums> = noise_variances
                .iter()
                .zip(&noise.needed)
                .map(
                    |(noise_variance, needed)| {
                        if *needed { likelihood(speech_variance, *noise_variance) } else { Sums::default() }
                    },
                )
                .collect();
            vector::dispatch(
                #[inline(always)]
                || sum_over_nodes(noise.law, noise.axis.points, noise.low, &terms),
            )
        })
        .collect();
    (0..speech.axis.points)
        .into_par_iter()
        .flat_map_iter(|row| {
            let sums = vector::dispatch(
                #[inline(always)]
                || {
                    let mut sums = vec![Sums::default(); noise.axis.points];
                    for &(node, probability) in &speech.law.nodes {
                        let place = node - row as i32 * speech.law.refinement;
                        let terms = &over_noise[(place - speech.low) as usize];
                        sums.iter_mut().zip(terms).for_each(|(sums, terms)| add(sums, probability, terms));
                    }
                    sums
                },
            );
            let log_speech = speech.log_largest(row);
            let cells = sums.into_iter().enumerate();
            cells.map(|(column, sums)| cell(sums, log_speech, noise.log_largest(column))).collect::<Vec<_>>()
        })
        .collect()
}

/// Sums over the nodes of a law for every grid point of its axis. `terms` are at consecutive lattice points from `low`.
#[inline(always)]
fn sum_over_nodes(law: &LatticeLaw, points: usize, low: i32, terms: &[Sums]) -> Vec<Sums> {
    /// Number of grid points summed together; their sums are independent and stay in registers.
    const TOGETHER: usize = 8;
    let mut all = vec![Sums::default(); points];
    // Contributions of a node to successive grid points are contiguous.
    let refinement = law.refinement as usize;
    let of_residue: Vec<Vec<Sums>> = (0..refinement)
        .map(|residue| terms.iter().skip(residue).step_by(refinement).copied().collect())
        .collect();
    for start in (0..points).step_by(TOGETHER) {
        let start = start.min(points - TOGETHER);
        let mut sums = [Sums::default(); TOGETHER];
        for &(node, probability) in &law.nodes {
            let place = (node - low) as usize;
            let last = place / refinement + 1 - start - TOGETHER;
            if let Some(terms) = of_residue[place % refinement][last..].first_chunk::<TOGETHER>() {
                for k in 0..TOGETHER {
                    add(&mut sums[k], probability, &terms[TOGETHER - 1 - k]);
                }
            }
        }
        all[start..start + TOGETHER].copy_from_slice(&sums);
    }
    all
}

/// Computes `pi` times the density of a power of one for given variances, and its products with the gain and with both
/// powers.
fn likelihood(speech_variance: f64, noise_variance: f64) -> Sums {
    let precision = 1.0 / (speech_variance + noise_variance);
    let weight = precision * libm::exp(-precision);
    let gain = speech_variance * precision;
    let power = weight * gain * precision;
    // Where variances underflow, so does the weight.
    if weight > 0.0 {
        [weight, weight * gain, power, weight * noise_variance * precision * precision]
    } else {
        [0.0; 4]
    }
}

/// Computes a cell of the table from the sums and the logarithms of the largest variances among the nodes.
fn cell([evidence, gain, speech_power, noise_power]: Sums, log_speech: f64, log_noise: f64) -> [f32; 4] {
    /// Minimum evidence at which sums are precise.
    const MIN_EVIDENCE: f64 = 1e-290;
    let values = if evidence > MIN_EVIDENCE {
        [gain / evidence, speech_power / evidence, noise_power / evidence, libm::log(evidence)]
    } else {
        // The power is beyond the range of the nodes: the largest variances determine the cell.
        let log_variance =
            log_speech.max(log_noise) + libm::log1p(libm::exp(-(log_speech - log_noise).abs()));
        let gain = libm::exp(log_speech - log_variance);
        let precision = libm::exp(-log_variance);
        let noise = libm::exp(log_noise - log_variance);
        [gain, gain * precision, noise * precision, -log_variance - precision]
    };
    let [gain, speech_power, noise_power, log_evidence] = values;
    [gain, libm::pow(speech_power, 0.25), libm::pow(noise_power, 0.25), log_evidence]
        .map(|value| value as f32)
}
