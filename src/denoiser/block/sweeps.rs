//! The sweeps over a block: expectation maximisation, then Gibbs sampling.

use super::{Block, Separator, Snapshots};
use crate::denoiser::DenoiseError;
use crate::denoiser::settings::Settings;
use crate::inference::high_band::{HighBand, HighBandState};
use crate::inference::state::{Separation, Start, UpdateMask};
use crate::inference::{GainMonitor, Gibbs, MonteCarloAccumulator, SamplerCounters, SamplingSettings};
use crate::signal::progress::Cancelled;
use crate::wiener::floor::apply_floor;

/// Number of sweeps of the high band where the network for that band is used.
const HIGH_BAND_SWEEPS_WITH_NET: usize = 5;
/// Number of sweeps that a snapshot averages during the burn-in.
const SNAPSHOT_SWEEPS: usize = 20;

/// Diagnostics of the draws.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ChainResult {
    pub monte_carlo: MonteCarloAccumulator,
    /// Sampler moves rejected because they were not finite.
    pub divergences: usize,
    pub counters: SamplerCounters,
}

impl ChainResult {
    /// Adds the draws of another block or channel.
    pub(crate) fn add(&mut self, other: &Self) {
        self.monte_carlo.add(&other.monte_carlo);
        self.divergences += other.divergences;
        self.counters.add(&other.counters);
    }
}

/// Callback that receives the number of completed sweeps.
type Advance<'a> = dyn FnMut(usize) -> Result<(), Cancelled> + 'a;

impl Block<'_> {
    /// Number of sweeps of expectation maximisation, which also applies to a second separation by the model alone.
    pub(super) fn em_sweeps(&self) -> usize {
        let Separator { settings, networks, .. } = self.separator;
        settings.em.sweeps(networks.is_some(), !self.power_high.is_empty())
    }

    /// Runs expectation maximisation, and averages the gains of its last quarter if no sampling follows.
    pub(super) fn em_iterations(
        &self,
        separation: &mut Separation,
        advance: &mut Advance,
    ) -> Result<(), Cancelled> {
        let Settings { model, em, sampling, .. } = &self.separator.settings;
        let sweeps = self.em_sweeps();
        for sweep in 0..sweeps {
            let settled = is_settled(sweep, sweeps);
            let free = UpdateMask { noise: settled, response: settled && model.channel_response };
            separation.em_step(em.update_exponent as f32, free);
            if sampling.is_none() && in_last_quarter(sweep, sweeps) {
                separation.accumulate();
            }
            advance(sweep + 1)?;
        }
        Ok(())
    }

    /// Runs the Gibbs sweeps, and averages their gains after the burn-in.
    pub(super) fn sample(
        &self,
        settings: &SamplingSettings,
        separation: &mut Separation,
        advance: &mut Advance,
        mut snapshots: Option<Snapshots<Vec<f32>>>,
    ) -> Result<ChainResult, DenoiseError> {
        let mut gibbs = Gibbs::new(separation, settings, self.seeds.child(1))?;
        gibbs.adapt(true);
        let mut monitor = GainMonitor::new(self.start.bins, self.power.len() / self.grid.bins);
        for sweep in 0..settings.iterations {
            if sweep == settings.burn_in {
                gibbs.adapt(false);
            }
            gibbs.sweep(separation);
            if sweep == settings.burn_in {
                separation.reset_averages();
            }
            let before_snapshot = snapshots.as_ref().is_some_and(|Snapshots { every, .. }| {
                (sweep / every.get() + 1) * every.get() - sweep <= SNAPSHOT_SWEEPS
            });
            if sweep >= settings.burn_in || before_snapshot {
                separation.accumulate();
            }
            if sweep >= settings.burn_in {
                monitor.record(separation);
            }
            if let Some(Snapshots { every, show }) = &mut snapshots
                && (sweep + 1).is_multiple_of(every.get())
            {
                let mut filter = self.filter(separation);
                apply_floor(&mut filter.gain, &filter.floors.amplitudes());
                show(sweep + 1, filter.gain);
                if sweep < settings.burn_in {
                    separation.reset_averages();
                }
            }
            advance(sweep + 1)?;
        }
        let (divergences, monte_carlo) = (gibbs.divergences(), monitor.finish());
        Ok(ChainResult { monte_carlo, divergences, counters: gibbs.finish() })
    }

    /// The mean gain (bins x frames) above the dictionary's band, and the state to carry over. `low` is the separation
    /// of the dictionary's band.
    pub(super) fn separate_high_band(&self, low: &Separation) -> (Vec<f32>, HighBandState) {
        let Self { separator, bands, power_high, .. } = self;
        let start = Start {
            bins: bands.occupied - bands.low,
            noise_profile: self.noise_high,
            gain_std: false,
            ..self.start.clone()
        };
        let (previous, seeds) = (self.previous_high_band, self.seeds.child(2));
        let continuation = separator.dictionary.continuation();
        let mut high =
            HighBand::new(&start, power_high, low, continuation, previous, &separator.table, seeds);
        let em = &separator.settings.em;
        let sweeps = match &self.presence {
            Some(presence) if presence.high.is_some() => HIGH_BAND_SWEEPS_WITH_NET,
            _ => self.em_sweeps(),
        };
        for sweep in 0..sweeps {
            high.em_step(em.update_exponent as f32, is_settled(sweep, sweeps));
            if in_last_quarter(sweep, sweeps) {
                high.accumulate();
            }
        }
        (high.mean_gain(), high.into_state())
    }
}

/// Whether a sweep updates noise and channel response. Both are fixed in the first third, while the activations of
/// speech converge.
fn is_settled(sweep: usize, sweeps: usize) -> bool {
    3 * sweep >= sweeps
}

/// Whether the gain of a sweep belongs to the average.
fn in_last_quarter(sweep: usize, sweeps: usize) -> bool {
    4 * (sweeps - sweep) <= sweeps + 3
}
