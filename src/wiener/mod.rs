//! The Wiener filter: from the posterior-mean gain and the log odds of speech presence to the gain that is applied.

pub(crate) mod floor;
pub(crate) mod fusion;
pub(crate) mod reverberation;
mod settings;
pub(crate) mod smoothing;

pub(crate) use settings::NORMAL_FLOOR_DB;
pub use settings::{GainSettings, Strength};
