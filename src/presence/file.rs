//! The file format of listeners: a safetensors file with its sizes as metadata and three tensors. `weights` (I8) has those of
//! all convolutions, one after the other (taps x inputs x outputs), `scales` (F32) what those of each output are
//! multiplied by, `biases` (F32) those of all outputs, after those of the first layer the ones of every place.

use super::PresenceNet;
use super::network::{Network, PLACES};
use crate::kernels::convolution::Convolution;
pub use crate::tensor_file::TensorFileError;
use crate::tensor_file::{self, Format};
use crate::transform::WINDOW_RANGE_SECONDS;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::ops::Range;

const FORMAT: Format = Format { name: "alphamf-listener", version: 2 };
/// Most channels and layers that a network may have: far more than is of use, and no more than memory holds.
pub(super) const WIDEST: usize = 1024;
const DEEPEST: usize = 32;
/// The longest dilation, frames.
const FARTHEST: usize = 256;

/// What a listener was made for and from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PresenceNetHeader {
    /// Length of the analysis window that it was learned with, s.
    pub window_seconds: f64,
    /// Whether it hears the past alone.
    pub live: bool,
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
pub enum PresenceNetError {
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
    /// A tensor has another type or number of values than the network of these sizes.
    #[error(
        "'{name}' has {found} values of type {dtype}; a network of these sizes has {expected} of type {expected_dtype}"
    )]
    Size {
        /// The tensor.
        name: &'static str,
        /// Its values.
        found: usize,
        /// Their type.
        dtype: String,
        /// Values of such a network.
        expected: usize,
        /// Their type.
        expected_dtype: &'static str,
    },
    /// A scale or bias is not a number.
    #[error("value {index} of '{name}' is {value}; all are finite")]
    Value {
        /// The tensor.
        name: &'static str,
        /// Index of the value.
        index: usize,
        /// The value.
        value: f32,
    },
}

impl PresenceNetHeader {
    fn validate(&self) -> Result<(), PresenceNetError> {
        within("channels", self.channels, WIDEST)?;
        within("narrow", self.narrow, WIDEST)?;
        within("width", self.width, WIDEST)?;
        for (name, dilations) in [("local", &self.local), ("wide", &self.wide), ("after", &self.after)] {
            within_reach(name, dilations)?;
        }
        is_window(self.window_seconds)
    }
}

/// Whether a size is at least one and no more than a network may have.
pub(super) fn within(name: &'static str, value: usize, most: usize) -> Result<(), PresenceNetError> {
    if (1..=most).contains(&value) { Ok(()) } else { Err(PresenceNetError::Range { name, value, most }) }
}

/// Whether a network may have these layers.
pub(super) fn within_reach(name: &'static str, dilations: &[usize]) -> Result<(), PresenceNetError> {
    within(name, dilations.len(), DEEPEST)?;
    dilations.iter().try_for_each(|&dilation| within(name, dilation, FARTHEST))
}

/// Whether windows may be this long.
pub(super) fn is_window(seconds: f64) -> Result<(), PresenceNetError> {
    if WINDOW_RANGE_SECONDS.contains(&seconds) {
        Ok(())
    } else {
        Err(TensorFileError::Metadata("window_seconds").into())
    }
}

impl PresenceNet {
    /// Reads a listener from the bytes of its file.
    ///
    /// # Errors
    /// See [`PresenceNetError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PresenceNetError> {
        let (header, tensors): (PresenceNetHeader, _) = tensor_file::read(bytes, &FORMAT)?;
        header.validate()?;
        let mut network = Network::new(&header);
        let layers: Vec<Convolution> = network.convolutions().cloned().collect();
        let places = network.places..network.places + PLACES * header.channels;
        network.parameters = parameters(&tensors, &layers, places, header.live)?;
        Ok(Self { header, network })
    }
}

/// The parameters of layers as their places say, and of biases at `places`, which follow those of the first layer.
pub(super) fn parameters(
    tensors: &SafeTensors,
    layers: &[Convolution],
    places: Range<usize>,
    live: bool,
) -> Result<Vec<f32>, PresenceNetError> {
    let outputs: usize = layers.iter().map(|layer| layer.outputs).sum();
    let weights = layers.iter().map(|layer| learned_weights(layer, live)).sum();
    let weights = tensor(tensors, "weights", (Dtype::I8, "I8"), weights)?;
    let scales = finite_values(tensors, "scales", outputs)?;
    let biases = finite_values(tensors, "biases", outputs + places.len())?;

    let mut parameters = vec![0.0; layers.iter().map(Convolution::size).sum::<usize>() + places.len()];
    let (mut weights, mut scales, mut biases) = (weights.data(), &scales[..], &biases[..]);
    for (index, layer) in layers.iter().enumerate() {
        let own = &mut parameters[layer.offset..][..layer.size()];
        let (own_weights, own_biases) = own.split_at_mut(layer.size() - layer.outputs);
        let scales = take(&mut scales, layer.outputs);
        // Taps into the future come last: those that a live listener lacks stay zero.
        let learned = take(&mut weights, learned_weights(layer, live));
        let rows = own_weights.chunks_exact_mut(layer.outputs).zip(learned.chunks_exact(layer.outputs));
        for (row, learned) in rows {
            for ((weight, &learned), scale) in row.iter_mut().zip(learned).zip(scales) {
                *weight = f32::from(learned.cast_signed()) * scale;
            }
        }
        own_biases.copy_from_slice(take(&mut biases, layer.outputs));
        if index == 0 {
            parameters[places.clone()].copy_from_slice(take(&mut biases, places.len()));
        }
    }
    Ok(parameters)
}

/// Number of weights of a layer in a file.
fn learned_weights(layer: &Convolution, live: bool) -> usize {
    let (over_frames, over_bands) = layer.reach;
    let frames = if live { over_frames + 1 } else { 2 * over_frames + 1 };
    frames * (2 * over_bands + 1) * layer.inputs * layer.outputs
}

/// The first `count` values, which are there.
fn take<'a, T>(values: &mut &'a [T], count: usize) -> &'a [T] {
    let (taken, rest) = values.split_at(count);
    *values = rest;
    taken
}

/// The tensor of this name, if it has as many values of this type.
fn tensor<'a>(
    tensors: &SafeTensors<'a>,
    name: &'static str,
    (dtype, expected_dtype): (Dtype, &'static str),
    expected: usize,
) -> Result<TensorView<'a>, PresenceNetError> {
    let tensor = tensors.tensor(name).map_err(TensorFileError::from)?;
    if tensor.dtype() == dtype && tensor.shape() == [expected] {
        return Ok(tensor);
    }
    let found = tensor.shape().iter().product();
    Err(PresenceNetError::Size {
        name,
        found,
        dtype: format!("{:?}", tensor.dtype()),
        expected,
        expected_dtype,
    })
}

fn finite_values(
    tensors: &SafeTensors,
    name: &'static str,
    expected: usize,
) -> Result<Vec<f32>, PresenceNetError> {
    let values: Vec<f32> =
        tensor_file::floats(&tensor(tensors, name, (Dtype::F32, "F32"), expected)?).collect();
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(PresenceNetError::Value { name, index, value: values[index] }),
        None => Ok(values),
    }
}
