//! One block of a recording: from powers to posterior-mean gains.

pub(crate) mod block;
mod factor_target;
pub(crate) mod gain;
mod monte_carlo;
mod moves;
mod noise_drift;
pub(crate) mod online;
mod published;
mod response;
pub(crate) mod reverberation;
mod sampling;
pub(crate) mod settings;
mod start;
pub(crate) mod state;
#[cfg(test)]
mod tests;
pub(crate) mod upper_band;

pub use block::RefinerMisfit;
pub use monte_carlo::MonteCarlo;
pub use moves::Moves;
pub use noise_drift::NoiseDrift;
pub use settings::{
    ALPHAS, EmSettings, GainSettings, HamcmcMemory, ImpulseMode, LiteralHamcmc, LiteralSettings,
    ModelSettings, NoiseModel, Positivity, SamplingSettings, Settings, SettingsError, Strength,
};
