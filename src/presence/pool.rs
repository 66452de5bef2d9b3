//! Correction of the opinion pool of model and network where the network is not certain of speech.
//!
//! The network misses voices unlike those in its training data: cries, shouts, whispers. Its log odds are then low in
//! the whole block. A second, small network compares the log odds of model and network. For every band and pair of
//! frames, it returns a change of the network's weight in the pool, and a shift of the pooled log odds. Blocks in which
//! the network is certain of speech anywhere stay bit-identical.

mod inputs;
#[cfg(test)]
mod tests;

use super::BandLogOdds;
use super::bands::{Interpolation, edges};
use super::network::activation;
use super::sizes::{BANDS, PAIR};
use crate::kernels::vector;
use crate::tensor_file::{self, Format, Layout, TensorFileError};
pub(crate) use inputs::trace_pool;
use inputs::{Evidence, INPUTS};

/// Units of the hidden layers.
const HIDDEN: [usize; 2] = [32, 16];
/// Maximum magnitude of the shift of the pooled log odds.
const MAX_SHIFT: f32 = 8.0;
/// Certainty, log odds, up to which changes apply in full, and from which they do not apply.
pub(super) const CERTAIN: (f32, f32) = (1.0, 4.0);
const FORMAT: Format = Format { name: "alphamf-pool", version: 1 };

/// A network of three layers, each [`Layout::ByInput`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PoolNet {
    first: Vec<f32>,
    second: Vec<f32>,
    third: Vec<f32>,
}

/// Change of the pool in a block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PoolChange {
    /// Added to the log odds of the network's weight, bins x frames.
    pub weight: Vec<f32>,
    /// Added to the pooled log odds, bins x frames.
    pub shift: Vec<f32>,
    /// Fraction of the change that applies, 0 to 1. Both matrices are already scaled by it.
    pub fraction: f32,
}

impl PoolNet {
    /// The network embedded in this crate: `models/pool.safetensors`.
    pub(crate) fn built_in() -> Result<Self, TensorFileError> {
        Self::from_bytes(include_bytes!("../../models/pool.safetensors"))
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, TensorFileError> {
        let sizes = [INPUTS, HIDDEN[0], HIDDEN[1], 2];
        let [first, second, third] = tensor_file::three_layers(bytes, &FORMAT, Layout::ByInput, sizes)?;
        Ok(Self { first, second, third })
    }

    /// Returns the change of the pool in a block, from the network's log odds and the model's gain (bins x frames).
    /// `None` if the network is certain of speech.
    pub(crate) fn change(&self, network: &BandLogOdds, gain: &[f32], bins: usize) -> Option<PoolChange> {
        let certainty = network.certainty?;
        let fraction = ((CERTAIN.1 - certainty) / (CERTAIN.1 - CERTAIN.0)).min(1.0);
        if fraction <= 0.0 {
            return None;
        }
        let evidence = Evidence::new(network, gain, bins);
        let interpolation = Interpolation::new(&edges(), bins);
        let mut on_bins = Vec::with_capacity(bins);
        let frames = gain.len() / bins;
        let (mut weight, mut shift) = (Vec::new(), Vec::new());
        let mut bands = ([0.0; BANDS], [0.0; BANDS]);
        let inputs = evidence.inputs(certainty);
        let pairs = inputs.chunks_exact(evidence.bands()).enumerate();
        for (pair, inputs) in pairs {
            self.outputs(inputs, &mut bands);
            for (of_bands, of_bins) in [(&mut bands.0, &mut weight), (&mut bands.1, &mut shift)] {
                // Bands above those of the recording get the values of its highest band.
                let highest = of_bands[inputs.len() - 1];
                of_bands[inputs.len()..].fill(highest);
                of_bands.iter_mut().for_each(|value| *value *= fraction);
                on_bins.clear();
                interpolation.extend(of_bands, &mut on_bins);
                for _ in pair * PAIR..frames.min((pair + 1) * PAIR) {
                    of_bins.extend_from_slice(&on_bins);
                }
            }
        }
        Some(PoolChange { weight, shift, fraction })
    }

    /// Computes the change of the weight and the shift of each band from its inputs.
    fn outputs(&self, inputs: &[[f32; INPUTS]], (weight, shift): &mut ([f32; BANDS], [f32; BANDS])) {
        vector::dispatch(
            #[inline(always)]
            || {
                for ((inputs, weight), shift) in inputs.iter().zip(weight).zip(shift) {
                    let first = rectified::<{ HIDDEN[0] }>(layer(&self.first, inputs));
                    let second = rectified::<{ HIDDEN[1] }>(layer(&self.second, &first));
                    let [change, raised] = layer(&self.third, &second);
                    *weight = change;
                    *shift = MAX_SHIFT * vector::tanh(raised / MAX_SHIFT);
                }
            },
        );
    }
}

/// Applies an affine layer.
#[inline(always)]
fn layer<const OUTPUTS: usize>(parameters: &[f32], inputs: &[f32]) -> [f32; OUTPUTS] {
    let (rows, biases) = parameters.split_at(inputs.len() * OUTPUTS);
    let mut outputs = [0.0; OUTPUTS];
    outputs.copy_from_slice(biases);
    for (input, row) in inputs.iter().zip(rows.chunks_exact(OUTPUTS)) {
        outputs.iter_mut().zip(row).for_each(|(output, weight)| *output += weight * input);
    }
    outputs
}

#[inline(always)]
fn rectified<const SIZE: usize>(mut values: [f32; SIZE]) -> [f32; SIZE] {
    values.iter_mut().for_each(|value| *value = activation(*value));
    values
}
