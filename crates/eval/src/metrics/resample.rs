//! The resampler of Octave's signal package, which STOI's reference implementation uses.

use std::f64::consts::PI;

/// Resamples from `from` to `to` Hz with a Kaiser-windowed sinc of 60 dB rejection.
///
/// The filter is that of Octave's `resample`, of unit gain at zero frequency; the result has
/// `ceil(length * to / from)` samples and no delay. Both rates must be positive.
pub(crate) fn resample(samples: &[f64], from: u32, to: u32) -> Vec<f64> {
    if from == to {
        return samples.to_vec();
    }
    let divisor = gcd(from, to);
    let (up, down) = ((to / divisor) as usize, (from / divisor) as usize);
    let filter = low_pass(up, down);
    let half = filter.len() / 2;
    let length = (samples.len() * up).div_ceil(down);
    (0..length)
        .map(|k| {
            // Output k is at k * down on the grid of the upsampled signal; sample n at n * up.
            let centre = k * down;
            let first = centre.saturating_sub(half).div_ceil(up);
            let last = ((centre + half) / up).min(samples.len() - 1);
            (first..=last).map(|n| samples[n] * filter[centre + half - n * up]).sum()
        })
        .collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The anti-aliasing filter for a change of rate by `up / down`, centred, its sum equal to `up`.
fn low_pass(up: usize, down: usize) -> Vec<f64> {
    const REJECTION: f64 = 60.0;
    let cutoff = 1.0 / (2.0 * up.max(down) as f64);
    let roll_off = cutoff / 10.0;
    let half = ((REJECTION - 8.0) / (28.714 * roll_off)).ceil() as usize;
    let beta = 0.1102 * (REJECTION - 8.7);
    let mut filter: Vec<f64> = (0..=2 * half)
        .map(|i| {
            let t = i as f64 - half as f64;
            let x = 2.0 * PI * cutoff * t;
            let sinc = if x == 0.0 { 1.0 } else { x.sin() / x };
            let r = t / half as f64;
            sinc * bessel_i0(beta * (1.0 - r * r).max(0.0).sqrt())
        })
        .collect();
    let gain = up as f64 / filter.iter().sum::<f64>();
    filter.iter_mut().for_each(|h| *h *= gain);
    filter
}

/// Modified Bessel function of the first kind and order 0, by its power series (for small `x`).
fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut sum, mut term, mut k) = (1.0, 1.0, 1.0);
    while term > sum * f64::EPSILON {
        term *= quarter / (k * k);
        sum += term;
        k += 1.0;
    }
    sum
}
