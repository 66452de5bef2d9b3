//! The file format of refiners: a safetensors file with one tensor, `parameters`, and its settings as metadata.

use super::Refiner;
pub use crate::tensor_file::TensorFileError;
use crate::tensor_file::{self, Format};
use crate::transform::WINDOW_SECONDS;
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

const FORMAT: Format = Format { name: "alphamf-refiner", version: 1 };
const TENSOR: &str = "parameters";
/// Numbers of channels that a network may have.
pub(crate) const CHANNELS: RangeInclusive<usize> = 1..=256;

/// Weights beyond this are no result of learning, whose largest is below 1; products of them would overflow.
const LARGEST: f32 = 100.0;

/// What a refiner was made for and from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefinerHeader {
    /// Length of the analysis window that it was learned with, s.
    pub window_seconds: f64,
    /// Channels of the network, 1 to 256.
    pub channels: usize,
    /// Simulated speech that it was learned from, s.
    pub seconds: f64,
    /// How many times it learned from each example.
    pub passes: usize,
    /// Number of files of clean speech.
    pub files: usize,
    /// Seed of the simulation and the start.
    pub seed: u64,
}

/// Why some bytes are not a refiner.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RefinerError {
    /// The file is another one, or damaged.
    #[error("not a refiner: {0}")]
    TensorFile(#[from] TensorFileError),
    /// The network of these settings has another size.
    #[error(
        "{found} parameters of type {dtype}; a network of {channels} channels has {expected} of type F32"
    )]
    Size {
        /// Parameters in the file.
        found: usize,
        /// Their type.
        dtype: String,
        /// Channels by the metadata.
        channels: usize,
        /// Parameters of such a network.
        expected: usize,
    },
    /// A parameter is not a number, or no result of learning.
    #[error("parameter {index} is {value}; expected -{LARGEST} to {LARGEST}")]
    Parameter {
        /// Index of the parameter.
        index: usize,
        /// The parameter.
        value: f32,
    },
}

impl Refiner {
    /// Reads a refiner from the bytes of its file.
    ///
    /// # Errors
    /// See [`RefinerError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, RefinerError> {
        let (header, tensors): (RefinerHeader, _) = tensor_file::read(bytes, &FORMAT)?;
        if !CHANNELS.contains(&header.channels) {
            return Err(TensorFileError::Metadata("channels").into());
        }
        if !WINDOW_SECONDS.contains(&header.window_seconds) {
            return Err(TensorFileError::Metadata("window_seconds").into());
        }
        let tensor = tensors.tensor(TENSOR).map_err(TensorFileError::from)?;
        let mut refiner = Self::empty(header);
        let expected = refiner.network.parameters.len();
        if tensor.dtype() != Dtype::F32 || tensor.shape() != [expected] {
            return Err(RefinerError::Size {
                found: tensor.shape().iter().product(),
                dtype: format!("{:?}", tensor.dtype()),
                channels: refiner.header.channels,
                expected,
            });
        }
        let parameters = refiner.network.parameters.iter_mut().zip(tensor_file::floats(&tensor));
        for (index, (parameter, value)) in parameters.enumerate() {
            if !(-LARGEST..=LARGEST).contains(&value) {
                return Err(RefinerError::Parameter { index, value });
            }
            *parameter = value;
        }
        Ok(refiner)
    }

    /// The bytes of the refiner's file.
    ///
    /// # Errors
    /// Only if serialising fails, which that of a refiner does not.
    pub fn to_bytes(&self) -> Result<Vec<u8>, RefinerError> {
        let parameters = &self.network.parameters;
        Ok(tensor_file::write(&FORMAT, &self.header, &[(TENSOR, vec![parameters.len()], parameters)])?)
    }
}
