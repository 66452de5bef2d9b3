//! How far the mean of the gain over a finite number of draws may lie from its posterior expectation.

use super::state::Separation;
use crate::samplers::diagnostics::{mean_and_variance, standard_error};

/// Gains of a block that are followed from draw to draw.
const PROBES: usize = 64;

/// Below this variance a gain does not change but for rounding.
const CONSTANT: f64 = 1e-9;

/// The precision of the posterior mean of the gain, from gains that are evenly spread over time and frequency (up to
/// the dictionary's highest bin), before they are smoothed.
///
/// Each is a chain of its own, with the Monte Carlo error of a stationary chain (Geyer's initial monotone sequence
/// over its halves). Draws that are correlated for longer than the chain lasts are not found out by that: between
/// seeds, gains were found to differ by up to twice the standard error.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MonteCarloAccumulator {
    /// How many gains were followed; 0 if there were fewer than eight draws.
    pub gains: u64,
    /// Sum of their variances over the draws.
    variance: f64,
    /// Sum of the squares of their standard errors.
    squared_error: f64,
}

impl MonteCarloAccumulator {
    /// Root mean square of the standard errors, of a gain between 0 and 1; NaN if nothing was followed.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        (self.squared_error / self.gains as f64).sqrt()
    }

    /// Independent draws that would give the same error: the sum of the variances over that of the squared standard
    /// errors; NaN if no gain varied.
    #[must_use]
    pub fn effective_draws(&self) -> f64 {
        self.variance / self.squared_error
    }

    /// Adds what was found of another block or channel.
    pub fn add(&mut self, other: &Self) {
        self.gains += other.gains;
        self.variance += other.variance;
        self.squared_error += other.squared_error;
    }
}

/// The gains of a block that are followed.
pub(crate) struct GainMonitor {
    /// Frame and bin, the sum before the last draw, and the draws.
    chains: Vec<((usize, usize), f32, Vec<f64>)>,
}

impl GainMonitor {
    /// GainMonitor of a block of `bins x frames` of which no draw is accumulated yet.
    pub(crate) fn new(bins: usize, frames: usize) -> Self {
        /// The golden section: bins of neighbouring frames lie far apart.
        const SECTION: f64 = 0.618_033_988_749_895;
        let place = |k: usize| {
            let share = (k as f64 + 0.5) / PROBES as f64;
            ((share * frames as f64) as usize, ((k as f64 * SECTION).fract() * bins as f64) as usize)
        };
        Self { chains: (0..PROBES).map(|k| (place(k), 0.0, Vec::new())).collect() }
    }

    /// Takes the draw that was accumulated last.
    pub(crate) fn record(&mut self, separation: &Separation) {
        for ((frame, bin), before, draws) in &mut self.chains {
            let sum = separation.gain_sum(*frame, *bin);
            draws.push(f64::from(sum - *before));
            *before = sum;
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::denoiser::block::{Request, Separator};
    use crate::denoiser::{GainSettings, SamplingSettings, Settings};
    use crate::model::Dictionary;
    use crate::random::SeedTree;
    use crate::transform::FrameGrid;
    use rand_distr::{Distribution, Exp1};

    /// Gains from several seeds differ by as much as is said of each.
    #[test]
    fn the_error_is_that_between_seeds() {
        const SEEDS: u64 = 4;
        let (bins, frames) = (257, 100);
        let grid = FrameGrid { bins, bin_hertz: 15.625, frame_seconds: 0.016 };
        let mut stream = SeedTree::new(1).rng(0);
        let power: Vec<f32> = (0..bins * frames)
            .map(|i| {
                let excess: f32 = Exp1.sample(&mut stream);
                // Bursts of something that is not the noise.
                let loud = (i / bins) % 20 < 8 && (i % bins) % 12 < 3;
                if loud { 20.0 * excess } else { excess }
            })
            .collect();
        for iterations in [20, 160] {
            let burn_in = iterations / 4;
            let sampling = SamplingSettings { iterations, burn_in, ..SamplingSettings::default() };
            let gain = GainSettings::model_only();
            let settings = Settings { sampling: Some(sampling), gain, ..Settings::default() };
            let separator = Separator::new(Dictionary::built_in().unwrap(), settings);
            let runs: Vec<_> = (0..SEEDS)
                .map(|seed| {
                    let request = Request::default();
                    let streams = SeedTree::new(seed);
                    let separated =
                        separator.separate(grid, &power, request, streams, &mut (), None).unwrap();
                    (separated.gain, separated.monte_carlo)
                })
                .collect();
            let variance_at = |i: usize| {
                let mean = runs.iter().map(|(gain, _)| gain[i]).sum::<f32>() / SEEDS as f32;
                runs.iter().map(|(gain, _)| (gain[i] - mean).powi(2)).sum::<f32>() / (SEEDS - 1) as f32
            };
            let between = ((0..power.len()).map(variance_at).sum::<f32>() / power.len() as f32).sqrt();
            let mut all = MonteCarloAccumulator::default();
            runs.iter().for_each(|(_, found)| all.add(found));
            assert_eq!(all.gains, SEEDS * PROBES as u64);
            let draws = (iterations - iterations / 4) as f64;
            assert!((1.0..=2.0 * draws).contains(&all.effective_draws()), "{}", all.effective_draws());
            let ratio = all.standard_error() / f64::from(between);
            // As if draws were independent, it would be 0.3 of the truth and less.
            assert!((0.45..1.5).contains(&ratio), "{iterations} iterations: {ratio} of the truth");
        }
    }
}
