//! Quantiles of a speech level, by a small network of three layers.

use crate::tensor_file::{self, Format, Layout, TensorFileError};

/// Number of inputs of the network for a cell:
/// - log odds of the speech fraction by the gain, log odds by the posterior-mean gain, and log unevenness of the gain;
/// - the three features of the slot over all bands, and their means over the last second;
/// - log ratios: of the expected power in the slot to the recorded power, of its posterior-mean part to its variance,
///   and of the expected power to the power by frames, to the previous slot and to the next slot;
/// - the index of the band;
/// - log ratios of the expected power to the louder adjacent band, and to the recent mean of the loudest of these
///   bands.
pub(super) const INPUTS: usize = 17;
/// Hidden units of each layer.
const HIDDEN: usize = 12;
/// Range of the median relative to the expected power, dB.
const MEDIAN_RANGE_DB: (f64, f64) = (-40.0, 10.0);
/// Range of the natural logarithm of a quantile's distance from the median in dB.
const LOG_DISTANCE_RANGE: (f64, f64) = (-6.0, 4.5);
const FORMAT: Format = Format { name: "alphamf-levels", version: 1 };

/// Quantiles of the level, dB.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantiles {
    /// Median relative to the expected power.
    pub median: f64,
    /// Distance of the 5 % quantile below the median.
    pub below: f64,
    /// Distance of the 95 % quantile above the median.
    pub above: f64,
}

/// The network: three layers, in [`Layout::ByInput`]; the file has them in [`Layout::ByOutput`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QuantileNet {
    first: Vec<f32>,
    second: Vec<f32>,
    third: Vec<f32>,
}

impl QuantileNet {
    /// The network embedded in this crate: `models/speech-levels.safetensors`.
    pub(crate) fn built_in() -> Result<Self, TensorFileError> {
        Self::from_bytes(include_bytes!("../../../models/speech-levels.safetensors"))
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, TensorFileError> {
        let [first, second, third] =
            tensor_file::three_layers(bytes, &FORMAT, Layout::ByOutput, [INPUTS, HIDDEN, HIDDEN, 3])?;
        Ok(Self { first, second, third })
    }

    /// The quantiles of a cell.
    pub(super) fn quantiles(&self, inputs: &[f64; INPUTS]) -> Quantiles {
        let first = layer::<HIDDEN>(&self.first, inputs).map(libm::tanh);
        let second = layer::<HIDDEN>(&self.second, &first).map(libm::tanh);
        let [median, below, above] = layer(&self.third, &second);
        let distance =
            |logarithm: f64| libm::exp(logarithm.clamp(LOG_DISTANCE_RANGE.0, LOG_DISTANCE_RANGE.1));
        let median = median.clamp(MEDIAN_RANGE_DB.0, MEDIAN_RANGE_DB.1);
        Quantiles { median, below: distance(below), above: distance(above) }
    }
}

/// An affine layer.
fn layer<const OUTPUTS: usize>(weights: &[f32], inputs: &[f64]) -> [f64; OUTPUTS] {
    let mut outputs = [0.0; OUTPUTS];
    for (row, input) in weights.chunks_exact(OUTPUTS).zip(inputs.iter().chain(&[1.0])) {
        outputs.iter_mut().zip(row).for_each(|(output, &weight)| *output += f64::from(weight) * input);
    }
    outputs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the network with the framework in which it was trained.
    #[test]
    fn quantiles_are_those_of_the_training_framework() {
        let net = QuantileNet::built_in().unwrap();
        let mut compared = 0;
        for line in include_str!("reference.csv").lines().skip(1) {
            let values: Vec<f64> = line.split(',').map(|value| value.parse().unwrap()).collect();
            let (inputs, expected) = values.split_first_chunk::<INPUTS>().unwrap();
            let Quantiles { median, below, above } = net.quantiles(inputs);
            assert_eq!(expected.len(), 3);
            for (found, expected) in [median, below, above].into_iter().zip(expected) {
                assert!((found - expected).abs() < 2e-3 * (1.0 + expected.abs()), "{found} {expected}");
                compared += 1;
            }
        }
        assert_eq!(compared, 15);
    }

    #[test]
    fn intervals_are_wider_the_less_of_the_power_is_speech() {
        let net = QuantileNet::built_in().unwrap();
        // A cell at the level of its surroundings.
        let inputs = |odds: f64, slot: f64, part: f64| {
            let own = [odds, odds, 0.2, slot, slot, 0.5, slot, slot, 0.5];
            let exact = [part, odds, 0.0, 0.0, 0.0, 9.0, 2.0, 0.0];
            let mut inputs = [0.0; INPUTS];
            inputs.iter_mut().zip(own.into_iter().chain(exact)).for_each(|(to, x)| *to = x);
            inputs
        };
        for slot in [0.0, 2.0, 4.0] {
            let width = |fraction: f64| {
                let odds = (fraction / (1.0 - fraction)).ln();
                let Quantiles { below, above, .. } = net.quantiles(&inputs(odds, slot, fraction.ln()));
                below + above
            };
            let widths = [0.999, 0.9, 0.5, 0.1].map(width);
            assert!(widths.is_sorted(), "{widths:?}");
            assert!(widths[0] < 4.0 && widths[3] > 10.0, "{widths:?}");
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let good = include_bytes!("../../../models/speech-levels.safetensors");
        assert!(matches!(QuantileNet::from_bytes(&good[..100]), Err(TensorFileError::Bytes(_))));
        let read = |from: &[u8], to: &[u8]| {
            let at = good.windows(from.len()).position(|window| window == from).unwrap();
            let mut bytes = good.to_vec();
            bytes[at..at + to.len()].copy_from_slice(to);
            QuantileNet::from_bytes(&bytes).unwrap_err()
        };
        assert!(matches!(read(b"\"third\"", b"\"thurd\""), TensorFileError::Tensor("third")));
        assert!(matches!(read(b"[156]", b"[155]"), TensorFileError::Bytes(_)));
    }
}
