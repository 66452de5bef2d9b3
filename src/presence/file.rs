//! File format of speech-presence networks: a safetensors file with the sizes as metadata and three tensors. `weights` (I8)
//! holds all convolutions one after the other (taps x inputs x outputs), `scales` (F32) the scale of each output's weights,
//! `biases` (F32) the biases of all outputs, those of the places after those of the first layer.

use super::header::PresenceNetError;
use crate::kernels::convolution::Convolution;
use crate::tensor_file::{self, TensorFileError};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::ops::Range;

/// Which taps over frames a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taps {
    /// Of the past, the present and the future.
    Both,
    /// Of the past and the present.
    Past,
}

/// Reads the parameters of `layers` to their offsets, and the biases at `places`, which follow those of the first layer.
pub(super) fn parameters(
    tensors: &SafeTensors,
    layers: &[Convolution],
    places: Range<usize>,
    taps: Taps,
) -> Result<Vec<f32>, PresenceNetError> {
    let outputs: usize = layers.iter().map(|layer| layer.outputs).sum();
    let weights = layers.iter().map(|layer| stored_weights(layer, taps)).sum();
    let weights = tensor(tensors, "weights", (Dtype::I8, "I8"), weights)?;
    let scales = finite_values(tensors, "scales", outputs)?;
    let biases = finite_values(tensors, "biases", outputs + places.len())?;

    let mut parameters = vec![0.0; layers.iter().map(Convolution::size).sum::<usize>() + places.len()];
    let (mut weights, mut scales, mut biases) = (weights.data(), &scales[..], &biases[..]);
    for (index, layer) in layers.iter().enumerate() {
        let own = &mut parameters[layer.offset..][..layer.size()];
        let (own_weights, own_biases) = own.split_at_mut(layer.size() - layer.outputs);
        let scales = take(&mut scales, layer.outputs);
        // Taps into the future come last: those that a causal network lacks stay zero.
        let stored = take(&mut weights, stored_weights(layer, taps));
        let rows = own_weights.chunks_exact_mut(layer.outputs).zip(stored.chunks_exact(layer.outputs));
        for (row, stored) in rows {
            for ((weight, &stored), scale) in row.iter_mut().zip(stored).zip(scales) {
                *weight = f32::from(stored.cast_signed()) * scale;
            }
        }
        own_biases.copy_from_slice(take(&mut biases, layer.outputs));
        if index == 0 {
            parameters[places.clone()].copy_from_slice(take(&mut biases, places.len()));
        }
    }
    Ok(parameters)
}

/// Number of stored weights of a layer.
fn stored_weights(layer: &Convolution, taps: Taps) -> usize {
    let (over_frames, over_bands) = layer.reach;
    let frames = match taps {
        Taps::Both => 2 * over_frames + 1,
        Taps::Past => over_frames + 1,
    };
    frames * (2 * over_bands + 1) * layer.inputs * layer.outputs
}

/// Takes the first `count` values.
fn take<'a, T>(values: &mut &'a [T], count: usize) -> &'a [T] {
    let (taken, rest) = values.split_at(count);
    *values = rest;
    taken
}

/// The tensor of this name, checked for type and number of values.
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
