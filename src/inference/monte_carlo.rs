//! Monte Carlo error of the posterior-mean gain.

use super::state::Separation;
use crate::samplers::diagnostics::{mean_and_variance, standard_error};

/// Maximum variance of a gain that changes by rounding alone.
const CONSTANT: f64 = 1e-9;

/// The Monte Carlo error of the posterior-mean gain, from monitored gains that are evenly spread over time and frequency
/// (up to the dictionary's highest bin), before smoothing.
///
/// Each monitored gain is a chain, with the standard error of a stationary chain (Geyer's initial monotone sequence
/// over its halves). Correlation beyond the length of a chain is not detected: results of different seeds may differ by
/// up to twice the standard error.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct MonteCarloAccumulator {
    /// Number of monitored gains; 0 with fewer than eight draws.
    pub gains: u64,
    /// Sum of their variances over the draws.
    variance: f64,
    /// Sum of the squares of their standard errors.
    squared_error: f64,
}

impl MonteCarloAccumulator {
    /// Root mean square of the standard errors, of a gain between 0 and 1; NaN without monitored gains.
    pub(crate) fn standard_error(&self) -> f64 {
        (self.squared_error / self.gains as f64).sqrt()
    }

    /// Number of independent draws with the same error: the sum of the variances over that of the squared standard errors;
    /// NaN if no gain varied.
    pub(crate) fn effective_draws(&self) -> f64 {
        self.variance / self.squared_error
    }

    /// Adds the gains of another block or channel.
    pub(crate) fn add(&mut self, other: &Self) {
        self.gains += other.gains;
        self.variance += other.variance;
        self.squared_error += other.squared_error;
    }
}

/// The monitored gains of a block.
pub(crate) struct GainMonitor {
    /// Frame and bin, the sum of gains up to the last draw, and the draws.
    chains: Vec<((usize, usize), f32, Vec<f64>)>,
}

impl GainMonitor {
    /// Number of monitored gains of a block.
    pub(crate) const GAINS: usize = 64;

    /// A monitor of a block of `bins x frames` without draws so far.
    pub(crate) fn new(bins: usize, frames: usize) -> Self {
        /// The golden section: bins of successive frames lie far apart.
        const SECTION: f64 = 0.618_033_988_749_895;
        let place = |k: usize| {
            let fraction = (k as f64 + 0.5) / Self::GAINS as f64;
            ((fraction * frames as f64) as usize, ((k as f64 * SECTION).fract() * bins as f64) as usize)
        };
        Self { chains: (0..Self::GAINS).map(|k| (place(k), 0.0, Vec::new())).collect() }
    }

    /// Records the draw that was accumulated last.
    pub(crate) fn record(&mut self, separation: &Separation) {
        for ((frame, bin), before, draws) in &mut self.chains {
            let sum = separation.gain_sum(*frame, *bin);
            draws.push(f64::from(sum - *before));
            *before = sum;
        }
    }

    /// The errors of the draws so far.
    pub(crate) fn finish(&self) -> MonteCarloAccumulator {
        let mut found = MonteCarloAccumulator::default();
        for (.., draws) in self.chains.iter().filter(|(.., draws)| draws.len() >= 8) {
            let (_, variance) = mean_and_variance(draws);
            let error = standard_error(&[draws]);
            found.gains += 1;
            if variance > CONSTANT && error.is_finite() {
                found.variance += variance;
                found.squared_error += error * error;
            }
        }
        found
    }
}
