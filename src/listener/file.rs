//! The file format of listeners: a safetensors file with one tensor of type F16, `parameters`, and its sizes as
//! metadata.

use super::Listener;
use super::network::Network;
pub use crate::tensor_file::TensorFileError;
use crate::tensor_file::{self, Format};
use crate::transform::WINDOW_SECONDS;
use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};

const FORMAT: Format = Format { name: "alphamf-listener", version: 1 };
const TENSOR: &str = "parameters";
/// Most channels and layers that a network may have: far more than is of use, and no more than memory holds.
const WIDEST: usize = 1024;
const DEEPEST: usize = 32;
/// The longest dilation, frames.
const FARTHEST: usize = 256;

/// What a listener was made for and from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ListenerHeader {
    /// Length of the analysis window that it was learned with, s.
    pub window_seconds: f64,
    /// Channels of a place, 1 to 1024.
    pub channels: usize,
    /// Channels of a place on the way to and from the trunk, 1 to 1024.
    pub narrow: usize,
    /// Channels of the trunk, 1 to 1024.
    pub width: usize,
    /// Distances of the taps of the layers before the trunk, pairs of frames.
    pub local: Vec<usize>,
    /// Those of the trunk's layers.
    pub wide: Vec<usize>,
    /// Those of the layers after it.
    pub after: Vec<usize>,
    /// Mixtures that it was learned from, hours.
    pub hours: f64,
}

/// Why some bytes are not a listener.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenerError {
    /// The file is another one, or damaged.
    #[error("not a listener: {0}")]
    File(#[from] TensorFileError),
    /// A size in the metadata is out of its range.
    #[error("{name} is {value}; expected 1 to {most}")]
    Range {
        /// What it is the size of.
        name: &'static str,
        /// The size.
        value: usize,
        /// The largest.
        most: usize,
    },
    /// The network of these sizes has another number of parameters.
    #[error("{found} parameters of type {dtype}; a network of these sizes has {expected} of type F16")]
    Size {
        /// Parameters in the file.
        found: usize,
        /// Their type.
        dtype: String,
        /// Parameters of such a network.
        expected: usize,
    },
    /// A parameter is not a number.
    #[error("parameter {index} is {value}; parameters are finite")]
    Parameter {
        /// Index of the parameter.
        index: usize,
        /// The parameter.
        value: f32,
    },
}

impl ListenerHeader {
    fn validate(&self) -> Result<(), ListenerError> {
        let within = |name, value, most| {
            if (1..=most).contains(&value) { Ok(()) } else { Err(ListenerError::Range { name, value, most }) }
        };
        within("channels", self.channels, WIDEST)?;
        within("narrow", self.narrow, WIDEST)?;
        within("width", self.width, WIDEST)?;
        for (name, dilations) in [("local", &self.local), ("wide", &self.wide), ("after", &self.after)] {
            within(name, dilations.len(), DEEPEST)?;
            dilations.iter().try_for_each(|&dilation| within(name, dilation, FARTHEST))?;
        }
        if !WINDOW_SECONDS.contains(&self.window_seconds) {
            return Err(TensorFileError::Metadata("window_seconds").into());
        }
        Ok(())
    }
}

impl Listener {
    /// Reads a listener from the bytes of its file.
    ///
    /// # Errors
    /// See [`ListenerError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ListenerError> {
        let (header, tensors): (ListenerHeader, _) = tensor_file::read(bytes, &FORMAT)?;
        header.validate()?;
        let tensor = tensors.tensor(TENSOR).map_err(TensorFileError::from)?;
        let mut network = Network::new(&header);
        let expected = network.parameters.len();
        if tensor.dtype() != Dtype::F16 || tensor.shape() != [expected] {
            return Err(ListenerError::Size {
                found: tensor.shape().iter().product(),
                dtype: format!("{:?}", tensor.dtype()),
                expected,
            });
        }
        let (values, _) = tensor.data().as_chunks::<2>();
        for (index, (parameter, value)) in network.parameters.iter_mut().zip(values).enumerate() {
            let value = widen_half(u16::from_le_bytes(*value));
            if !value.is_finite() {
                return Err(ListenerError::Parameter { index, value });
            }
            *parameter = value;
        }
        Ok(Self { header, network })
    }
}

/// The number that 16 bits of IEEE 754 stand for.
fn widen_half(bits: u16) -> f32 {
    let (sign, magnitude) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff));
    // Its exponent, moved to its place in 32 bits, is 112 too low: a factor that is exact, for subnormal numbers too.
    let value = f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23);
    let value = if magnitude >= 0x7c00 { f32::from_bits(magnitude << 13 | 0x7f80_0000) } else { value };
    f32::from_bits(value.to_bits() | sign)
}

#[cfg(test)]
mod tests {
    use super::widen_half;

    #[test]
    fn halves_are_widened_exactly() {
        for bits in 0..=u16::MAX {
            let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
            let magnitude = match exponent {
                0 => fraction * 2.0_f64.powi(-14),
                31 if fraction == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (1.0 + fraction) * 2.0_f64.powi(exponent - 15),
            };
            let (found, expected) = (widen_half(bits), if bits >> 15 == 1 { -magnitude } else { magnitude });
            assert!(
                f64::from(found) == expected || found.is_nan() && expected.is_nan(),
                "{bits:#x}: {found}"
            );
            assert_eq!(found.is_sign_negative(), bits >> 15 == 1, "{bits:#x}");
        }
    }
}
