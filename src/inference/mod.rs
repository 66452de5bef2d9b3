//! Posterior inference: expectation maximisation, then Gibbs sampling of activations, noise spectra and impulses.

pub(crate) mod bands;
mod channel;
mod counters;
pub(crate) mod em;
mod factor_target;
mod gibbs;
pub(crate) mod high_band;
mod monte_carlo;
mod noise_drift;
pub(crate) mod online;
mod published;
mod settings;
mod start;
pub(crate) mod state;
#[cfg(test)]
mod tests;
mod workspace_pool;

pub(crate) use counters::SamplerCounters;
pub use counters::SamplerStatistics;
pub(crate) use gibbs::Gibbs;
pub(crate) use monte_carlo::{GainMonitor, MonteCarloAccumulator};
pub use settings::{EmSettings, HamcmcMemory, ImpulseMode, Positivity, SamplingSettings};
pub(crate) use start::initial_noise_power;
