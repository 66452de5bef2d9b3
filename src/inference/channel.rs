//! Channel response: the gain per bin between the dictionary's recordings and this one.

/// Prior standard deviation of the log gain from one bin to the next: loose enough for the edges of a telephone band and
/// for the long-term spectrum of a speaker.
const STEP: f64 = 0.35;
/// Pseudo-count of each bin, which keeps the gain of bins without speech.
const PRIOR_COUNT: f64 = 2.0;

/// A gain per bin whose logarithm is a random walk over frequency.
#[derive(Debug, Clone)]
pub(super) struct ChannelResponse {
    /// `log gain` per bin.
    log_gain: Vec<f64>,
}

impl ChannelResponse {
    pub(super) fn new(bins: usize) -> Self {
        Self { log_gain: vec![0.0; bins] }
    }

    /// Moves the gain of each bin towards its product with `(numerator / denominator)^update_exponent`, smoothed over bins;
    /// `denominator` counts the frames in which the bin is speech.
    pub(super) fn update(&mut self, numerator: &[f32], denominator: &[f32], update_exponent: f32) {
        let update_exponent = f64::from(update_exponent);
        let target = |(&gain, (&numerator, &denominator)): (&f64, (&f32, &f32))| {
            let count = |sum: f32| f64::from(sum) + PRIOR_COUNT;
            gain + update_exponent * libm::log(count(numerator) / count(denominator))
        };
        let targets: Vec<f64> =
            self.log_gain.iter().zip(numerator.iter().zip(denominator)).map(target).collect();
        let weights: Vec<f64> = denominator.iter().map(|&count| f64::from(count)).collect();
        self.log_gain = smooth(&targets, &weights);
        // A constant factor belongs to the activations.
        let total: f64 = weights.iter().sum();
        if total > 0.0 {
            let mean =
                self.log_gain.iter().zip(&weights).map(|(gain, weight)| gain * weight).sum::<f64>() / total;
            self.log_gain.iter_mut().for_each(|gain| *gain -= mean);
        }
    }

    /// Writes `diag(gain) spectra` (bins x rank) into `shaped`.
    pub(super) fn shape(&self, spectra: &[f32], shaped: &mut [f32]) {
        let bins = self.log_gain.len();
        let gain: Vec<f32> = self.log_gain.iter().map(|&gain| libm::exp(gain) as f32).collect();
        for (column, shaped) in spectra.chunks_exact(bins).zip(shaped.chunks_exact_mut(bins)) {
            for ((shaped, &value), gain) in shaped.iter_mut().zip(column).zip(&gain) {
                *shaped = value * gain;
            }
        }
    }
}

/// The most probable random walk with steps of standard deviation [`STEP`], given one observation per bin with inverse
/// variance `weights`.
fn smooth(observed: &[f64], weights: &[f64]) -> Vec<f64> {
    // Keeps the system regular without observations.
    const LEVEL_WEIGHT: f64 = 1e-4;
    let coupling = 1.0 / (STEP * STEP);
    let last = observed.len() - 1;
    let neighbours = |i: usize| f64::from(u8::from(i > 0) + u8::from(i < last));
    // Gaussian elimination of a tridiagonal system, and back substitution.
    let mut diagonal = Vec::with_capacity(observed.len());
    let mut walk: Vec<f64> = Vec::with_capacity(observed.len());
    for (i, (value, weight)) in observed.iter().zip(weights).enumerate() {
        let (mut own, mut right) = (weight + LEVEL_WEIGHT + coupling * neighbours(i), weight * value);
        if i > 0 {
            let ratio = coupling / diagonal[i - 1];
            own -= ratio * coupling;
            right += ratio * walk[i - 1];
        }
        diagonal.push(own);
        walk.push(right);
    }
    let mut above = 0.0;
    for (value, diagonal) in walk.iter_mut().zip(&diagonal).rev() {
        *value = (*value + coupling * above) / diagonal;
        above = *value;
    }
    walk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_is_the_most_probable_one() {
        let observed: Vec<f64> = (0..40).map(|i| libm::sin(f64::from(i * i))).collect();
        let weights: Vec<f64> = (0..40).map(|i| f64::from(i % 4) * 3.0).collect();
        let walk = smooth(&observed, &weights);
        let cost = |walk: &[f64]| {
            let residual = walk.iter().zip(&observed).zip(&weights).map(|((x, y), w)| w * (x - y).powi(2));
            let steps = walk.windows(2).map(|pair| ((pair[1] - pair[0]) / STEP).powi(2));
            residual.sum::<f64>() + steps.sum::<f64>()
        };
        for i in 0..walk.len() {
            for nudge in [-1e-2, 1e-2] {
                let mut other = walk.clone();
                other[i] += nudge;
                assert!(cost(&other) > cost(&walk), "bin {i}");
            }
        }
    }

    #[test]
    fn a_band_limit_is_estimated_and_silence_changes_nothing() {
        let bins = 257;
        let mut channel = ChannelResponse::new(bins);
        // Speech is a thousand times weaker than expected above bin 200, and absent in bins 100 to 120.
        let count = |bin: usize| if (100..=120).contains(&bin) { 0.0 } else { 300.0_f32 };
        for _ in 0..20 {
            let denominator: Vec<f32> = (0..bins).map(count).collect();
            let excess =
                |bin: usize| (if bin > 200 { -6.9 } else { 0.0 } - channel.log_gain[bin]).exp() as f32;
            let numerator: Vec<f32> = (0..bins).map(|bin| count(bin) * excess(bin)).collect();
            channel.update(&numerator, &denominator, 1.0);
        }
        let level = |bin: usize| channel.log_gain[bin] - channel.log_gain[50];
        assert!((level(250) + 6.9).abs() < 0.2, "{}", level(250));
        assert!(level(195).abs() < 0.2 && level(110).abs() < 0.2, "{} {}", level(195), level(110));
        // The level of speech is that of the activations.
        let sum: f64 = (0..bins).map(|bin| channel.log_gain[bin] * f64::from(count(bin))).sum();
        assert!(sum.abs() < 1e-6, "{sum}");
    }
}
