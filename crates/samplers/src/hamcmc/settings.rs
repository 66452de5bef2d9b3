//! Settings of HAMCMC.

use crate::{GradientSettings, InitialScale};

/// Settings of [`Hamcmc`](super::Hamcmc); see [`SamplerOptions`](crate::SamplerOptions) for scale-free defaults.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HamcmcSettings {
    /// Step, minibatch and positivity.
    pub gradient: GradientSettings,
    /// The memory `M`, at least 2: `M - 1` pairs. Default 3; 2 to 5 is usual.
    pub memory: usize,
    /// Matrix `gamma I` at the start of the recursion. Default `Fixed(1.0)`.
    pub initial_scale: InitialScale,
    /// Steps of a chain between two refreshes of its pair, at least 1; without effect [with a Metropolis
    /// test](super::Hamcmc::with_metropolis). Default 1, as published.
    pub refresh_interval: u64,
    /// The trust region `lambda`, from 0: `H` approximates `(Hessian + lambda I)^-1`. Default 0.
    pub trust_region: f64,
}

impl Default for HamcmcSettings {
    fn default() -> Self {
        Self {
            gradient: GradientSettings::default(),
            memory: 3,
            initial_scale: InitialScale::Fixed(1.0),
            refresh_interval: 1,
            trust_region: 0.0,
        }
    }
}

/// The differences that form the pairs of `H`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pairs {
    /// The last move of each other chain: `M - 1` pairs. As published; the default of
    /// [`Hamcmc::new`](super::Hamcmc::new).
    Moves,
    /// Differences between successive states of the other chains: `M - 2` pairs, independent of the chain that moves.
    /// The default of HAMCMC [by name](crate::SamplerKind::Hamcmc).
    States,
}
