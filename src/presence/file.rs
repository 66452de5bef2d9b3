//! File format of speech-presence networks: a safetensors file with the sizes as metadata and three tensors. `weights`
//! (I8) holds the weights of all layers in order (outputs x inputs x taps), `scales` (F32) a scale for the weights of
//! each output, and `biases` (F32) the biases of all outputs. The biases of the places follow those of the first layer.

use super::header::PresenceNetError;
use crate::kernels::convolution::{Convolution, Reach};
use crate::tensor_file::{self, TensorFileError};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

/// Parameters of a file, consumed in file order.
pub(super) struct Parameters {
    weights: Tensor,
    scales: Tensor,
    biases: Tensor,
}

/// A tensor, and the number of its values consumed so far.
struct Tensor {
    name: &'static str,
    values: Vec<f32>,
    taken: usize,
}

impl Parameters {
    /// Reads the tensors of a file.
    ///
    /// # Errors
    /// A tensor is missing, is of another type, or has a value that is not finite.
    pub(super) fn new(tensors: &SafeTensors) -> Result<Self, PresenceNetError> {
        let (weights, scales, biases) = ("weights", "scales", "biases");
        let read = |name, dtype| tensor(tensors, name, dtype);
        let integers = read(weights, Dtype::I8)?.data().iter().map(|&value| f32::from(value.cast_signed()));
        Ok(Self {
            weights: Tensor { name: weights, values: integers.collect(), taken: 0 },
            scales: Tensor::finite(scales, &read(scales, Dtype::F32)?)?,
            biases: Tensor::finite(biases, &read(biases, Dtype::F32)?)?,
        })
    }

    /// Returns the weights (outputs x inputs) and biases of the next layer.
    ///
    /// # Errors
    /// A tensor has too few values.
    pub(super) fn layer(
        &mut self,
        inputs: usize,
        outputs: usize,
    ) -> Result<(Vec<f32>, Vec<f32>), PresenceNetError> {
        let weights = self.weights.take(inputs * outputs)?;
        let scales = self.scales.take(outputs)?;
        let scaled = weights
            .chunks_exact(outputs)
            .flat_map(|of_input| of_input.iter().zip(scales).map(|(weight, scale)| weight * scale));
        Ok((scaled.collect(), self.biases.take(outputs)?.to_vec()))
    }

    /// Returns the next layer as a convolution.
    ///
    /// # Errors
    /// A tensor has too few values.
    pub(super) fn convolution(
        &mut self,
        [inputs, outputs]: [usize; 2],
        reach: Reach,
        dilation: usize,
    ) -> Result<Convolution, PresenceNetError> {
        let (weights, biases) = self.layer(reach.frame_taps() * reach.band_taps() * inputs, outputs)?;
        Ok(Convolution::new(reach, dilation, &weights, biases))
    }

    /// Returns the next layers as convolutions of equal width, one per dilation.
    ///
    /// # Errors
    /// A tensor has too few values.
    pub(super) fn convolutions(
        &mut self,
        width: usize,
        reach: Reach,
        dilations: &[usize],
    ) -> Result<Vec<Convolution>, PresenceNetError> {
        dilations.iter().map(|&dilation| self.convolution([width, width], reach, dilation)).collect()
    }

    /// Returns the next `count` biases, which belong to no layer.
    ///
    /// # Errors
    /// The tensor has too few values.
    pub(super) fn biases(&mut self, count: usize) -> Result<Vec<f32>, PresenceNetError> {
        Ok(self.biases.take(count)?.to_vec())
    }

    /// Checks that all values have been consumed.
    ///
    /// # Errors
    /// A tensor has more values than have been consumed.
    pub(super) fn finish(self) -> Result<(), PresenceNetError> {
        self.weights.finish()?;
        self.scales.finish()?;
        self.biases.finish()
    }
}

impl Tensor {
    fn finite(name: &'static str, tensor: &TensorView) -> Result<Self, PresenceNetError> {
        let values: Vec<f32> = tensor_file::floats(tensor).collect();
        match values.iter().position(|value| !value.is_finite()) {
            Some(index) => Err(PresenceNetError::Value { name, index, value: values[index] }),
            None => Ok(Self { name, values, taken: 0 }),
        }
    }

    fn take(&mut self, count: usize) -> Result<&[f32], PresenceNetError> {
        let begin = self.taken;
        self.taken += count;
        if self.taken > self.values.len() {
            return Err(self.wrong_size());
        }
        Ok(&self.values[begin..self.taken])
    }

    fn finish(self) -> Result<(), PresenceNetError> {
        if self.taken == self.values.len() { Ok(()) } else { Err(self.wrong_size()) }
    }

    /// Returns the error of a tensor whose size differs from that of the consumed layers.
    fn wrong_size(&self) -> PresenceNetError {
        PresenceNetError::Size { name: self.name, found: self.values.len(), expected: self.taken }
    }
}

/// Returns the tensor of this name.
///
/// # Errors
/// The tensor is missing, or is of another type.
fn tensor<'a>(
    tensors: &SafeTensors<'a>,
    name: &'static str,
    expected: Dtype,
) -> Result<TensorView<'a>, PresenceNetError> {
    let tensor = tensors.tensor(name).map_err(|_| TensorFileError::Tensor(name))?;
    if tensor.dtype() == expected {
        return Ok(tensor);
    }
    Err(PresenceNetError::Type {
        name,
        found: format!("{:?}", tensor.dtype()),
        expected: format!("{expected:?}"),
    })
}
