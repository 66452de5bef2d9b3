//! The impulse variables integrated out.
//!
//! Given the dispersions of both sources, a bin's posterior of `(phi_s, phi_n)` depends on its
//! power only through two ratios, `|X|^2 / sigma_s^2` and `|X|^2 / sigma_n^2` with
//! `sigma^2 = lambda^(2/alpha)`. Every expectation that inference needs is therefore a function of
//! two numbers. [`MarginalTable`] tabulates them once per pair of exponents, so that a sweep looks
//! up conditional expectations where it would otherwise average noisy draws. By Fisher's
//! identity, `d log p(X) / d log lambda_s = (2 / alpha_s) (E[|X|^2 v_s / v^2] - E[v_s / v])`, so the
//! same numbers give the gradient of the marginal posterior.

use crate::kernels::vector;
use crate::parallel::*;
use crate::stable::LogSurvival;

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

/// Logarithmic range of the power over the speech variance that the table covers, for exponents that need no
/// stretching.
/// So far up, even the rarest noise is likelier than speech.
const SPEECH_RANGE: (f64, f64) = (-12.0, 52.0);
/// The same of the power over the noise variance.
const NOISE_RANGE: (f64, f64) = (-12.0, 18.0);
/// The logarithm of a power that is negligible against a variance: its likelihood is flat.
const NEGLIGIBLE_POWER: f64 = -6.0;
/// The logarithm of a power that only the tail of an impulse variable reaches: there, moving along the tail changes
/// the evidence and nothing else.
const TAIL_POWER: f64 = 10.0;
/// Distance of grid points along either logarithm.
const STEP: f64 = 0.2;
/// The logarithm of an impulse variable spreads as one over its exponent: below this exponent the grid is
/// stretched by as much.
const UNSTRETCHED: f64 = 1.0;
/// Above this exponent, an impulse variable is spread so little that it needs finer nodes.
const NARROW: f64 = 1.6;

/// The grid points along one logarithm.
#[derive(Debug, Clone, Copy)]
struct Axis {
    low: f32,
    per_unit: f32,
    /// The largest place, just within the last cell.
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

/// How much the grid is stretched for an exponent.
fn stretch(alpha: f64) -> f64 {
    (UNSTRETCHED / alpha).max(1.0)
}

/// Conditional expectations on a logarithmic grid, for one pair of characteristic exponents.
///
/// Between grid points, gains are interpolated linearly and powers by their fourth roots, which are nearly straight.
/// Beyond the grid, the law's own limits are followed: where the power is negligible only the ratio of the variances
/// matters, and where it is far above both, only that of the tails. Gains are right to within 0.05; if one of the laws
/// is normal, to 0.15, where the gain turns from one source to the other within less than a cell.
#[derive(Debug, Clone)]
pub struct MarginalTable {
    /// Rows of as many cells as the axis of noise has points, a row for every ratio of power and speech: gain, fourth
    /// roots of the powers of speech and of noise, logarithm of the evidence.
    cells: Vec<[f32; 4]>,
    speech: Axis,
    noise: Axis,
    negligible: f32,
    /// Along the tails of both, the ratio of speech falls by this as that of noise falls by one.
    tail_slope: f32,
    /// Where the tail of speech begins.
    tail: f32,
}

impl MarginalTable {
    /// Distance over which differences of tabulated values make derivatives.
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
            cells: tabulate((speech, &speech_law), (noise, &noise_law)),
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

    /// The same for many bins: the places are found by vector instructions, all before the first is looked up.
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

    /// The cell of a pair of ratios, and how far into it they lie, 0 to 1.
    #[inline(always)]
    fn place(&self, speech_ratio: f32, noise_ratio: f32) -> (u32, f32, f32) {
        let larger = |a: f32, b: f32| if a > b { a } else { b };
        let smaller = |a: f32, b: f32| if a < b { a } else { b };
        // Powers far below both variances no longer tell how far: move along the diagonal,
        // which keeps the ratio of the variances.
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
        // A loop: `array::from_fn` would not be inlined, so would miss the CPU's wider instructions.
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

/// The law of the logarithm of an impulse variable on a lattice of which the grid points of an axis are a part. So
/// the variances at all grid points are on one lattice too, and share the evaluations of the likelihood.
struct LatticeLaw {
    /// Lattice points per grid point.
    refinement: i32,
    /// Distance of the lattice points.
    spacing: f64,
    /// Lattice points, ascending, and their probabilities.
    nodes: Vec<(i32, f64)>,
}

impl LatticeLaw {
    /// The law for an exponent and a distance of grid points, its tail as far as the largest power `high`.
    fn new(alpha: f64, step: f64, high: f64) -> Self {
        /// Range of the logarithm that holds all of the law but its tail, times the stretch.
        const BODY: (f64, f64) = (-6.0, 5.0);
        /// How far the tail reaches beyond the largest power.
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
        // Every probability goes to the two nearest nodes, so that its mean stays: a node gets that of the law times
        // a hat, which by parts is a difference of mean survivals.
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

/// Sums of the weights, of the weighted gains, and of either weighted power.
type Sums = [f64; 4];

#[inline(always)]
fn add(sums: &mut Sums, weight: f64, terms: &Sums) {
    sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += weight * term);
}

/// The expectations at all grid points: sums over the nodes of both laws, of noise first.
fn tabulate(
    (speech, speech_law): (Axis, &LatticeLaw),
    (noise, noise_law): (Axis, &LatticeLaw),
) -> Vec<[f32; 4]> {
    // The lattice points of the variances: those of the impulse variable less the ratio at a grid point.
    let origin = |axis: &Axis, law: &LatticeLaw| {
        (f64::from(axis.low) * f64::from(axis.per_unit)).round() as i32 * law.refinement
    };
    let lattice = |axis: &Axis, law: &LatticeLaw| -> (i32, Vec<bool>) {
        let span = (axis.points as i32 - 1) * law.refinement;
        let (first, last) = (law.nodes[0].0, law.nodes[law.nodes.len() - 1].0);
        let low = first - span;
        let mut needed = vec![false; (last - low) as usize + 1];
        for &(node, _) in &law.nodes {
            (node - span..=node)
                .step_by(law.refinement as usize)
                .for_each(|place| needed[(place - low) as usize] = true);
        }
        (low, needed)
    };
    let (speech_low, speech_needed) = lattice(&speech, speech_law);
    let (noise_low, noise_needed) = lattice(&noise, noise_law);
    let log_variance =
        |place: i32, axis: &Axis, law: &LatticeLaw| f64::from(place - origin(axis, law)) * law.spacing;
    let noise_variances: Vec<f64> = (noise_low..)
        .zip(&noise_needed)
        .map(|(place, _)| log_variance(place, &noise, noise_law).exp())
        .collect();
    let over_noise: Vec<Vec<Sums>> = (0..speech_needed.len())
        .into_par_iter()
        .map(|at| {
            if !speech_needed[at] {
                return Vec::new();
            }
            let speech_variance = log_variance(speech_low + at as i32, &speech, speech_law).exp();
            let terms: Vec<Sums> = noise_variances
                .iter()
                .zip(&noise_needed)
                .map(
                    |(noise_variance, needed)| {
                        if *needed { likelihood(speech_variance, *noise_variance) } else { Sums::default() }
                    },
                )
                .collect();
            vector::dispatch(
                #[inline(always)]
                || sum_over_nodes(noise_law, noise.points, noise_low, &terms),
            )
        })
        .collect();
    let extreme = |law: &LatticeLaw, axis: &Axis, point: usize| {
        let place = law.nodes[law.nodes.len() - 1].0 - point as i32 * law.refinement;
        log_variance(place, axis, law)
    };
    (0..speech.points)
        .into_par_iter()
        .flat_map_iter(|row| {
            let sums = vector::dispatch(
                #[inline(always)]
                || {
                    let mut sums = vec![Sums::default(); noise.points];
                    for &(node, probability) in &speech_law.nodes {
                        let place = node - row as i32 * speech_law.refinement;
                        let terms = &over_noise[(place - speech_low) as usize];
                        sums.iter_mut().zip(terms).for_each(|(sums, terms)| add(sums, probability, terms));
                    }
                    sums
                },
            );
            let log_speech = extreme(speech_law, &speech, row);
            let cells = sums.into_iter().enumerate();
            cells
                .map(|(column, sums)| cell(sums, log_speech, extreme(noise_law, &noise, column)))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The sums over the nodes of a law for every grid point of its axis, from the terms at lattice points, the first of
/// which is `low`.
#[inline(always)]
fn sum_over_nodes(law: &LatticeLaw, points: usize, low: i32, terms: &[Sums]) -> Vec<Sums> {
    /// Grid points at a time: their sums are in registers and do not wait for each other.
    const TOGETHER: usize = 8;
    let mut all = vec![Sums::default(); points];
    // What a node gives to grid points that follow each other lies side by side.
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

/// The density of a power of one times pi, alone and times the gain and the powers, for given variances.
fn likelihood(speech_variance: f64, noise_variance: f64) -> Sums {
    let precision = 1.0 / (speech_variance + noise_variance);
    let weight = precision * (-precision).exp();
    let gain = speech_variance * precision;
    let power = weight * gain * precision;
    // Where variances underflow, so does the weight.
    if weight > 0.0 {
        [weight, weight * gain, power, weight * noise_variance * precision * precision]
    } else {
        [0.0; 4]
    }
}

/// A cell of the table from the sums, and the logarithms of the largest variances among the nodes.
fn cell([evidence, gain, speech_power, noise_power]: Sums, log_speech: f64, log_noise: f64) -> [f32; 4] {
    /// Below this, sums lose digits.
    const LEAST: f64 = 1e-290;
    let values = if evidence > LEAST {
        [gain / evidence, speech_power / evidence, noise_power / evidence, evidence.ln()]
    } else {
        // The power is beyond anything that the nodes reach: their outermost pair decides.
        let log_variance = log_speech.max(log_noise) + (-(log_speech - log_noise).abs()).exp().ln_1p();
        let gain = (log_speech - log_variance).exp();
        let precision = (-log_variance).exp();
        let noise = (log_noise - log_variance).exp();
        [gain, gain * precision, noise * precision, -log_variance - precision]
    };
    let [gain, speech_power, noise_power, log_evidence] = values;
    [gain, speech_power.powf(0.25), noise_power.powf(0.25), log_evidence].map(|value| value as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stable::log_impulse_quadrature;

    /// The expectations by two-dimensional quadrature over the logits of both laws' distribution functions, each node
    /// the law's own quantile, in logarithms throughout.
    fn quadrature(speech: &[(f64, f64)], noise: &[(f64, f64)], ratios: (f64, f64)) -> Expectations<f64> {
        let terms = || {
            speech.iter().flat_map(|&(log_s, p_s)| {
                noise.iter().map(move |&(log_n, p_n)| {
                    let (s, n) = (log_s - ratios.0, log_n - ratios.1);
                    let log_v = s.max(n) + (-(s - n).abs()).exp().ln_1p();
                    (p_s * p_n, s, n, log_v, -log_v - (-log_v).exp())
                })
            })
        };
        let largest = terms().map(|term| term.4).fold(f64::MIN, f64::max);
        let mut sums = [0.0; 4];
        for (probability, s, n, log_v, log_weight) in terms() {
            let weight = probability * (log_weight - largest).exp();
            sums[0] += weight;
            sums[1] += weight * (s - log_v).exp();
            sums[2] += weight * (s - 2.0 * log_v).exp();
            sums[3] += weight * (n - 2.0 * log_v).exp();
        }
        Expectations {
            gain: sums[1] / sums[0],
            speech_power: sums[2] / sums[0],
            noise_power: sums[3] / sums[0],
            log_evidence: sums[0].ln() + largest,
        }
    }

    /// What is tabulated is what it says, over the grid and beyond, for all exponents that are accepted.
    #[test]
    fn the_table_is_the_quadrature() {
        for (alpha_speech, alpha_noise) in [
            (0.8, 1.9),
            (0.2, 1.9),
            (0.4, 1.9),
            (1.2, 1.5),
            (2.0, 2.0),
            (0.2, 0.2),
            (1.9, 0.6),
            (0.8, 2.0),
            (2.0, 1.9),
        ] {
            let table = MarginalTable::new(alpha_speech, alpha_noise);
            let (speech, noise) = (log_impulse_quadrature(alpha_speech), log_impulse_quadrature(alpha_noise));
            let (mut worst, mut worst_power, mut worst_evidence) =
                ((0.0_f64, (0.0, 0.0)), (0.0_f64, (0.0, 0.0)), 0.0_f64);
            let stretch = (1.0 / alpha_speech).max(1.0 / alpha_noise).max(1.0);
            for i in 0..10 {
                for j in 0..8 {
                    // Off the grid, from below it to above it.
                    let speech_ratio = stretch * (-16.07 + 8.13 * f64::from(i));
                    let noise_ratio = stretch * (-15.03 + 5.31 * f64::from(j));
                    let exact = quadrature(&speech, &noise, (speech_ratio, noise_ratio));
                    let found = table.expectations(speech_ratio as f32, noise_ratio as f32);
                    assert!(
                        [found.gain, found.speech_power, found.noise_power, found.log_evidence]
                            .iter()
                            .all(|x| x.is_finite()),
                        "alpha {alpha_speech} {alpha_noise} at {speech_ratio} {noise_ratio}: {found:?}"
                    );
                    let at = (speech_ratio, noise_ratio);
                    let gain = (f64::from(found.gain) - exact.gain).abs();
                    if gain > worst.0 {
                        worst = (gain, at);
                    }
                    let within = speech_ratio < 40.0 * stretch
                        && noise_ratio < 17.0
                        && speech_ratio > -6.0
                        && noise_ratio > -6.0;
                    if within && speech_ratio.min(noise_ratio) < 12.0 {
                        for (found, exact) in
                            [(found.speech_power, exact.speech_power), (found.noise_power, exact.noise_power)]
                        {
                            let error = (f64::from(found) - exact).abs() / (exact + 0.1);
                            if error > worst_power.0 {
                                worst_power = (error, at);
                            }
                        }
                        let error = (f64::from(found.log_evidence) - exact.log_evidence).abs()
                            / (1.0 + exact.log_evidence.abs());
                        worst_evidence = worst_evidence.max(error);
                    }
                }
            }
            let normal = alpha_speech == 2.0 || alpha_noise == 2.0;
            let (most, most_of_power) = if normal { (0.15, 0.3) } else { (0.05, 0.15) };
            assert!(
                worst.0 < most && worst_power.0 < most_of_power && worst_evidence < 0.03,
                "alpha {alpha_speech} {alpha_noise}: gain {worst:?} power {worst_power:?} evidence {worst_evidence}"
            );
        }
    }

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
        let table = MarginalTable::new(0.9, 1.95);
        for (a, b) in [(0.0, 0.0), (5.0, 1.0), (-2.0, 1.5), (20.0, 3.0)] {
            let at = |a: f32, b: f32| table.expectations(a, b);
            let step = 0.25;
            // The evidence is that of |X|^2 p(X): its derivative along either logarithmic variance.
            let speech_slope = (at(a - step, b).log_evidence - at(a + step, b).log_evidence) / (2.0 * step);
            let noise_slope = (at(a, b - step).log_evidence - at(a, b + step).log_evidence) / (2.0 * step);
            let e = at(a, b);
            assert!((speech_slope - (e.speech_power - e.gain)).abs() < 0.02, "{speech_slope} {e:?}");
            assert!((noise_slope - (e.noise_power - (1.0 - e.gain))).abs() < 0.02, "{noise_slope} {e:?}");
        }
    }
}
