//! Autoregressive models of a section of signal, and interpolation of its missing samples.

/// Context of a prediction, s.
const REACH_SECONDS: f64 = 0.004;
/// Minimum order of the models of missing samples.
const MIN_ORDER: usize = 8;
/// Known signal on either side of missing samples to which a model is fitted, s.
pub(super) const CONTEXT_SECONDS: f64 = 0.032;

/// Returns the order of the models of missing samples at a sample rate in Hz, at most `most`.
pub(super) fn order_at(rate: f64, most: usize) -> usize {
    ((REACH_SECONDS * rate) as usize).clamp(MIN_ORDER, most)
}

/// The coefficients `[1, a_1, ..., a_p]` of the prediction error filter of a section, by the
/// autocorrelation method with a Hann window (Levinson and Durbin).
pub(crate) fn prediction_error_filter(samples: &[f64], order: usize) -> Vec<f64> {
    let mut model = Model::default();
    model.fit(samples, order);
    model.filter
}

/// An autoregressive model, with the buffers of its fit.
#[derive(Debug, Clone, Default)]
struct Model {
    /// `[1, a_1, ..., a_p]`.
    filter: Vec<f64>,
    windowed: Vec<f64>,
    correlation: Vec<f64>,
}

impl Model {
    fn fit(&mut self, samples: &[f64], order: usize) {
        let Self { filter, windowed, correlation } = self;
        let n = samples.len();
        windowed.clear();
        windowed.extend(
            samples.iter().enumerate().map(|(i, x)| {
                x * libm::sin(std::f64::consts::PI * (i as f64 + 1.0) / (n as f64 + 1.0)).powi(2)
            }),
        );
        let lagged = |lag: usize| windowed.iter().zip(windowed.iter().skip(lag)).map(|(x, y)| x * y).sum();
        correlation.clear();
        correlation.extend((0..=order).map(|lag| -> f64 { lagged(lag) }));
        // White noise 50 dB below keeps narrow-band sections well conditioned.
        correlation[0] = correlation[0] * (1.0 + 1e-5) + f64::MIN_POSITIVE;
        filter.clear();
        filter.resize(order + 1, 0.0);
        filter[0] = 1.0;
        let mut error = correlation[0];
        for i in 1..=order {
            let reflection = -(0..i).map(|j| filter[j] * correlation[i - j]).sum::<f64>() / error;
            for j in 1..=i / 2 {
                let (low, high) = (filter[j], filter[i - j]);
                filter[j] = low + reflection * high;
                filter[i - j] = high + reflection * low;
            }
            filter[i] = reflection;
            error *= 1.0 - reflection * reflection;
        }
    }
}

/// Replaces missing samples by values that minimise the squared prediction error of the section, alternating between
/// model and samples (Janssen, Veldhuis and Vries, "Adaptive interpolation of discrete-time signals that can be modeled
/// as autoregressive processes", 1986).
#[derive(Debug)]
pub(crate) struct Interpolator {
    order: usize,
    iterations: usize,
    /// Capacity: samples of a section, and missing samples.
    room: (usize, usize),
    model: Model,
    /// Autocorrelation of the filter.
    weights: Vec<f64>,
    solution: Vec<f64>,
    factor: Vec<f64>,
}

impl Interpolator {
    /// Creates an interpolator with models of `order`, at least 1, each fitted `iterations` times.
    pub(crate) fn new(order: usize, iterations: usize) -> Self {
        Self::with_room(order, iterations, (0, 0))
    }

    /// Creates an interpolator with capacity for `room`: samples of a section, and missing samples. Within it,
    /// [`interpolate`](Self::interpolate) allocates nothing.
    pub(crate) fn with_room(order: usize, iterations: usize, room: (usize, usize)) -> Self {
        let coefficients = || Vec::with_capacity(order + 1);
        let (samples, missing) = room;
        Self {
            order,
            iterations,
            room,
            model: Model {
                filter: coefficients(),
                windowed: Vec::with_capacity(samples),
                correlation: coefficients(),
            },
            weights: coefficients(),
            solution: Vec::with_capacity(missing),
            factor: Vec::with_capacity(missing * (order + 1)),
        }
    }

    /// Replaces the samples at `missing`, ascending. Their moduli are limited to the largest known modulus: next to the
    /// rest of a click, the model would continue a hum far beyond it.
    pub(crate) fn interpolate(&mut self, samples: &mut [f64], missing: &[usize]) {
        for &at in missing {
            samples[at] = 0.0;
        }
        let largest = samples.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        self.iterate(samples, missing, |_, x| x.clamp(-largest, largest));
    }

    /// Replaces the samples at `missing`, ascending, whose true moduli are greater. Each sample keeps its sign, and its
    /// modulus grows by a factor of 1 to `most`.
    pub(crate) fn interpolate_beyond(&mut self, samples: &mut [f64], missing: &[usize], most: f64) {
        let least: Vec<f64> = missing.iter().map(|&at| samples[at]).collect();
        self.iterate(samples, missing, |index, x| {
            let sign = least[index].signum();
            let modulus = least[index].abs();
            sign * (sign * x).clamp(modulus, most * modulus)
        });
    }

    /// Alternates between fitting the model and replacing the samples. `bounded` returns the limited value of a missing
    /// sample, from its index and its value.
    fn iterate(&mut self, samples: &mut [f64], missing: &[usize], bounded: impl Fn(usize, f64) -> f64) {
        let order = self.order;
        for _ in 0..self.iterations {
            self.model.fit(samples, order);
            let filter = &self.model.filter;
            self.weights.clear();
            self.weights.extend(
                (0..=order).map(|lag| filter.iter().zip(&filter[lag..]).map(|(x, y)| x * y).sum::<f64>()),
            );
            let weights = &self.weights;
            for &at in missing {
                samples[at] = 0.0;
            }
            self.solution.clear();
            self.solution.extend(missing.iter().map(|&at| {
                let known = |lag: usize| {
                    let before = at.checked_sub(lag).map_or(0.0, |n| samples[n]);
                    before + samples.get(at + lag).copied().unwrap_or(0.0)
                };
                -(1..=order).map(|lag| weights[lag] * known(lag)).sum::<f64>()
            }));
            let entry = |i: usize, j: usize| weights.get(missing[i] - missing[j]).copied().unwrap_or(0.0);
            solve_banded(entry, order, &mut self.factor, &mut self.solution);
            for (index, (&at, &x)) in missing.iter().zip(&self.solution).enumerate() {
                samples[at] = bounded(index, x);
            }
        }
    }
}

impl Clone for Interpolator {
    /// Returns an interpolator with the same capacity; there is no state between sections to copy.
    fn clone(&self) -> Self {
        Self::with_room(self.order, self.iterations, self.room)
    }
}

/// Solves a positive definite system, whose lower triangle `entry(row, column)` is zero beyond
/// `bandwidth`, by Cholesky's method; `factor` is room for its factor.
fn solve_banded(entry: impl Fn(usize, usize) -> f64, bandwidth: usize, factor: &mut Vec<f64>, x: &mut [f64]) {
    let (n, width) = (x.len(), bandwidth + 1);
    // Row i holds columns i - bandwidth to i of the factor.
    factor.clear();
    factor.resize(n * width, 0.0);
    let place = |i: usize, j: usize| i * width + bandwidth + j - i;
    for i in 0..n {
        let first = i.saturating_sub(bandwidth);
        for j in first..=i {
            let shared = first.max(j.saturating_sub(bandwidth));
            let dot: f64 = (shared..j).map(|k| factor[place(i, k)] * factor[place(j, k)]).sum();
            let rest = entry(i, j) - dot;
            factor[place(i, j)] =
                if i == j { rest.max(f64::MIN_POSITIVE).sqrt() } else { rest / factor[place(j, j)] };
        }
        let dot: f64 = (first..i).map(|k| factor[place(i, k)] * x[k]).sum();
        x[i] = (x[i] - dot) / factor[place(i, i)];
    }
    for i in (0..n).rev() {
        let last = (i + width).min(n);
        let dot: f64 = (i + 1..last).map(|k| factor[place(k, i)] * x[k]).sum();
        x[i] = (x[i] - dot) / factor[place(i, i)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeedTree;
    use rand_distr::{Distribution, StandardNormal};

    fn process(n: usize) -> Vec<f64> {
        let mut stream = SeedTree::new(1).rng(0);
        let mut x = vec![0.0, 0.0];
        for t in 2..n {
            let e: f64 = StandardNormal.sample(&mut stream);
            x.push(1.6 * x[t - 1] - 0.9 * x[t - 2] + e);
        }
        x
    }

    #[test]
    fn recovers_the_model() {
        let filter = prediction_error_filter(&process(20_000), 4);
        for (a, expected) in filter.iter().zip([1.0, -1.6, 0.9, 0.0, 0.0]) {
            assert!((a - expected).abs() < 0.05, "{filter:?}");
        }
    }

    #[test]
    fn fills_a_tone_without_a_seam() {
        let tone: Vec<f64> =
            (0..600).map(|n| (0.3 * f64::from(n)).sin() + (0.71 * f64::from(n)).cos()).collect();
        let missing: Vec<usize> = (280..310).collect();
        let mut x = tone.clone();
        Interpolator::new(32, 3).interpolate(&mut x, &missing);
        for &n in &missing {
            assert!((x[n] - tone[n]).abs() < 0.1, "{n}: {} {}", x[n], tone[n]);
        }
        assert!((0..600).filter(|n| !missing.contains(n)).all(|n| x[n] == tone[n]));
    }

    #[test]
    fn the_rest_of_a_click_does_not_make_a_louder_one() {
        let hum = |n: usize| 0.02 * (0.039 * n as f64).sin();
        let mut x: Vec<f64> = (0..448).map(hum).collect();
        x[442..].copy_from_slice(&[0.9, -0.3, 0.5, 0.9, -0.7, 0.2]);
        let missing: Vec<usize> = (357..442).collect();
        Interpolator::new(32, 2).interpolate(&mut x, &missing);
        assert!(x.iter().all(|x| x.abs() <= 0.9), "{:?}", &x[357..442]);
    }

    #[test]
    fn minimises_the_prediction_error() {
        // With the model known, no small change of a filled sample may lower the squared error.
        let mut x = process(400);
        let missing = [100, 101, 102, 105, 390, 399];
        Interpolator::new(2, 3).interpolate(&mut x, &missing);
        // The model is fitted to the result, and nearly equals that of the last pass.
        let filter = prediction_error_filter(&x, 2);
        let error = |x: &[f64]| {
            (0..x.len() + 2)
                .map(|t| {
                    let at = |lag: usize| t.checked_sub(lag).and_then(|n| x.get(n)).copied().unwrap_or(0.0);
                    (0..3).map(|k| filter[k] * at(k)).sum::<f64>().powi(2)
                })
                .sum::<f64>()
        };
        let least = error(&x);
        for n in missing {
            for change in [-0.3, 0.3] {
                let mut y = x.clone();
                y[n] += change;
                assert!(error(&y) > least, "sample {n}");
            }
        }
    }

    #[test]
    fn silence_stays_silent() {
        let mut x = vec![0.0; 100];
        Interpolator::new(8, 3).interpolate(&mut x, &[40, 41]);
        assert_eq!(x, vec![0.0; 100]);
    }
}
