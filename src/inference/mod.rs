//! Where model meets sampler: from powers to posterior-mean gains, and from clean speech to a dictionary.

mod block;
mod channel;
mod denoiser;
mod drift;
mod factor_target;
mod gain;
mod gibbs;
pub mod impulses;
mod monte_carlo;
mod profile;
mod refining;
mod separation;
mod settings;
mod start;
mod stream;
#[cfg(test)]
mod tests;
mod training;
mod upper_band;

pub use denoiser::{DenoiseError, Denoised, Denoiser, Observer, Progress, Summary};
pub use drift::Drift;
pub use monte_carlo::MonteCarlo;
pub use profile::NoiseProfile;
pub use refining::{RefinerSettings, RefiningError, learn_refiner};
pub use settings::{ALPHAS, ImpulseMode, NoiseModel, Positivity, Settings, SettingsError};
pub use stream::DenoiseStream;
pub use training::{Corpus, TrainingError, TrainingSettings};
