//! The Wiener filter: computes the applied gain from the posterior-mean gain and the log odds of speech presence.
//!
//! In the order of use: [`steady`], [`fusion`], [`high_band`], [`smoothing`], [`floor`], [`reverberation`], [`sparing`]. All
//! work on matrices of bins x frames, column-major.

pub(crate) mod floor;
pub(crate) mod fusion;
pub(crate) mod high_band;
pub(crate) mod reverberation;
mod settings;
pub(crate) mod smoothing;
pub(crate) mod sparing;
pub(crate) mod steady;

pub(crate) use settings::NORMAL_FLOOR_DB;
pub use settings::{GainSettings, Strength};
