//! Autoregressive models of a stretch of signal, and the interpolation of samples lost from it.

/// The coefficients `[1, a_1, ..., a_p]` of the prediction error filter of a stretch, by the
/// autocorrelation method with a Hann window (Levinson and Durbin).
pub fn prediction_error_filter(samples: &[f64], order: usize) -> Vec<f64> {
    let n = samples.len();
    let windowed: Vec<f64> = samples
        .iter()
        .enumerate()
        .map(|(i, x)| x * (std::f64::consts::PI * (i as f64 + 1.0) / (n as f64 + 1.0)).sin().powi(2))
        .collect();
    let mut correlation: Vec<f64> = (0..=order)
        .map(|lag| windowed.iter().zip(windowed.iter().skip(lag)).map(|(x, y)| x * y).sum())
        .collect();
    // White noise 50 dB below keeps narrow-band stretches well conditioned.
    correlation[0] = correlation[0] * (1.0 + 1e-5) + f64::MIN_POSITIVE;
    let mut filter = vec![0.0; order + 1];
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
    filter
}

/// Replaces the samples at `missing` (ascending) by those that minimise the squared prediction
/// error of the stretch, model and samples in turn (Janssen, Veldhuis and Vries, "Adaptive
/// interpolation of discrete-time signals that can be modeled as autoregressive processes", 1986).
pub fn interpolate(samples: &mut [f64], missing: &[usize], order: usize) {
    const ITERATIONS: usize = 3;
    for &at in missing {
        samples[at] = 0.0;
    }
    for _ in 0..ITERATIONS {
        let filter = prediction_error_filter(samples, order);
        let b: Vec<f64> =
            (0..=order).map(|lag| filter.iter().zip(&filter[lag..]).map(|(x, y)| x * y).sum()).collect();
        for &at in missing {
            samples[at] = 0.0;
        }
        let mut solution: Vec<f64> = missing
            .iter()
            .map(|&at| {
                let known = |lag: usize| {
                    let before = at.checked_sub(lag).map_or(0.0, |n| samples[n]);
                    before + samples.get(at + lag).copied().unwrap_or(0.0)
                };
                -(1..=order).map(|lag| b[lag] * known(lag)).sum::<f64>()
            })
            .collect();
        let entry = |i: usize, j: usize| b.get(missing[i] - missing[j]).copied().unwrap_or(0.0);
        solve_banded(entry, order, &mut solution);
        for (&at, &x) in missing.iter().zip(&solution) {
            samples[at] = x;
        }
    }
}

/// Solves a positive definite system, whose lower triangle `entry(row, column)` is zero beyond
/// `bandwidth`, by Cholesky's method.
fn solve_banded(entry: impl Fn(usize, usize) -> f64, bandwidth: usize, x: &mut [f64]) {
    let (n, width) = (x.len(), bandwidth + 1);
    // Row i holds columns i - bandwidth to i of the factor.
    let mut factor = vec![0.0; n * width];
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
    use crate::random::Streams;
    use rand_distr::{Distribution, StandardNormal};

    fn process(n: usize) -> Vec<f64> {
        let mut stream = Streams::new(1).stream(0);
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
        interpolate(&mut x, &missing, 32);
        for &n in &missing {
            assert!((x[n] - tone[n]).abs() < 0.1, "{n}: {} {}", x[n], tone[n]);
        }
        assert!((0..600).filter(|n| !missing.contains(n)).all(|n| x[n] == tone[n]));
    }

    #[test]
    fn minimises_the_prediction_error() {
        // With the model known, no small change of a filled sample may lower the squared error.
        let mut x = process(400);
        let missing = [100, 101, 102, 105, 390, 399];
        interpolate(&mut x, &missing, 2);
        // Once more with the model that the last pass used, up to its own small change.
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
        interpolate(&mut x, &[40, 41], 8);
        assert_eq!(x, vec![0.0; 100]);
    }
}
