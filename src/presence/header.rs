//! Headers of speech-presence networks, their valid ranges, and errors of invalid files.

use crate::range;
use crate::tensor_file::TensorFileError;
use crate::transform::WINDOW_RANGE_SECONDS;
use serde::{Deserialize, Serialize};

/// Maximum number of channels.
pub(super) const MAX_CHANNELS: usize = 1024;
/// Maximum number of convolutions before and after the recurrences, and of dual-path blocks.
const MAX_LAYERS: usize = 32;
/// Maximum dilation, pairs of frames (frames in the causal network).
const MAX_DILATION: usize = 256;

/// Parameters and training data of a speech-presence network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PresenceNetHeader {
    /// Length of the analysis window in training, s.
    pub window_seconds: f64,
    /// Channels of a place, 1 to 1024.
    pub channels: usize,
    /// Gated recurrent units of each direction over bands, 1 to 1024.
    pub over_bands: usize,
    /// Gated recurrent units of each direction over frames, 1 to 1024.
    pub over_frames: usize,
    /// Dilations of the convolutions before the recurrences, pairs of frames (frames in the causal network).
    pub near: Vec<usize>,
    /// Number of dual-path blocks over bands and frames, 1 to 32.
    pub turns: usize,
    /// Dilations of the convolutions after the recurrences, pairs of frames (frames in the causal network).
    pub after: Vec<usize>,
    /// Duration of the training mixtures, hours.
    pub hours: f64,
}

/// Error of an invalid speech-presence network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PresenceNetError {
    /// The file has another format, or is damaged.
    #[error("not a speech-presence network: {0}")]
    File(#[from] TensorFileError),
    /// A size in the metadata is out of range.
    #[error("{name} is {value}; expected 1 to {most}")]
    Range {
        /// Name of the size.
        name: &'static str,
        /// Value of the size.
        value: usize,
        /// Maximum of the size.
        most: usize,
    },
    /// A tensor has the wrong element type.
    #[error("tensor '{name}' has elements of type {found}; expected {expected}")]
    Type {
        /// The tensor's name.
        name: &'static str,
        /// Element type in the file.
        found: String,
        /// Expected element type.
        expected: String,
    },
    /// A tensor has the wrong number of values.
    #[error("tensor '{name}' has {found} values; expected {expected}")]
    Size {
        /// The tensor's name.
        name: &'static str,
        /// Number of values in the file.
        found: usize,
        /// Expected number of values; for a tensor with too few, the number up to the end of the first incomplete
        /// layer.
        expected: usize,
    },
    /// A scale or bias is not finite.
    #[error("tensor '{name}', value {index} is {value}; expected a finite value")]
    Value {
        /// The tensor's name.
        name: &'static str,
        /// Index of the value.
        index: usize,
        /// The value.
        value: f32,
    },
}

impl PresenceNetHeader {
    /// Checks every range.
    pub(super) fn validate(&self) -> Result<(), PresenceNetError> {
        within("channels", self.channels, MAX_CHANNELS)?;
        within("over_bands", self.over_bands, MAX_CHANNELS)?;
        within("over_frames", self.over_frames, MAX_CHANNELS)?;
        within("turns", self.turns, MAX_LAYERS)?;
        for (name, dilations) in [("near", &self.near), ("after", &self.after)] {
            within_reach(name, dilations)?;
        }
        check_window(self.window_seconds)
    }
}

/// Checks that a size is 1 to `most`.
pub(super) fn within(name: &'static str, value: usize, most: usize) -> Result<(), PresenceNetError> {
    if (1..=most).contains(&value) { Ok(()) } else { Err(PresenceNetError::Range { name, value, most }) }
}

/// Checks the number and the dilations of layers. No layers are valid.
pub(super) fn within_reach(name: &'static str, dilations: &[usize]) -> Result<(), PresenceNetError> {
    within(name, dilations.len().max(1), MAX_LAYERS)?;
    dilations.iter().try_for_each(|&dilation| within(name, dilation, MAX_DILATION))
}

/// Checks the length of a window, s.
pub(super) fn check_window(seconds: f64) -> Result<(), PresenceNetError> {
    range::within("window_seconds", seconds, WINDOW_RANGE_SECONDS)
        .map_err(|error| TensorFileError::Header(error.to_string()).into())
}
