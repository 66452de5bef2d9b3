//! The quantiles of a level, by a network of three layers.

use super::weights::{FIRST, SECOND, THIRD};

/// What the network sees of a cell: the log odds of the voice's share by the gain, those by the model, and the logarithm of
/// the gain's unevenness; the same of its slot, all bands together; and the means of these over the last second.
pub(super) const INPUTS: usize = 9;
/// Its hidden units.
pub(super) const HIDDEN: usize = 12;
/// Where the median may lie, dB above the expected power.
const MEDIANS: (f64, f64) = (-40.0, 10.0);
/// The logarithms of the least and the largest distance of a quantile from the median, dB.
const DISTANCES: (f64, f64) = (-6.0, 4.5);

/// Quantiles of the level, dB.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantiles {
    /// Above the expected power.
    pub median: f64,
    /// How far below the median one of twenty begins.
    pub below: f64,
    /// How far above it one of twenty begins.
    pub above: f64,
}

impl Quantiles {
    pub(super) fn of(inputs: &[f64; INPUTS]) -> Self {
        let first = layer(&FIRST, inputs).map(libm::tanh);
        let second = layer(&SECOND, &first).map(libm::tanh);
        let [median, below, above] = layer(&THIRD, &second);
        let distance = |logarithm: f64| libm::exp(logarithm.clamp(DISTANCES.0, DISTANCES.1));
        Self { median: median.clamp(MEDIANS.0, MEDIANS.1), below: distance(below), above: distance(above) }
    }
}

/// Of each output the weights of the inputs, and then its bias.
fn layer<const WEIGHTS: usize, const OUTPUTS: usize>(
    weights: &[[f32; WEIGHTS]; OUTPUTS],
    inputs: &[f64],
) -> [f64; OUTPUTS] {
    weights.map(|row| {
        let products = row.iter().zip(inputs.iter().chain(&[1.0]));
        products.map(|(&weight, input)| f64::from(weight) * input).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::super::weights::REFERENCE;
    use super::*;

    /// What the network said of some cells where it was learned.
    #[test]
    fn quantiles_are_those_that_were_learned() {
        for (inputs, expected) in REFERENCE {
            let Quantiles { median, below, above } = Quantiles::of(&inputs);
            for (found, expected) in [median, below, above].into_iter().zip(expected) {
                assert!((found - expected).abs() < 2e-3 * (1.0 + expected.abs()), "{found} {expected}");
            }
        }
    }

    #[test]
    fn intervals_are_wider_the_less_of_the_power_is_the_voices() {
        for slot in [0.0, 2.0, 4.0] {
            let width = |share: f64| {
                let odds = (share / (1.0 - share)).ln();
                let Quantiles { below, above, .. } =
                    Quantiles::of(&[odds, odds, 0.2, slot, slot, 0.5, slot, slot, 0.5]);
                below + above
            };
            let widths = [0.999, 0.9, 0.5, 0.1].map(width);
            assert!(widths.is_sorted(), "{widths:?}");
            assert!(widths[0] < 1.0 && widths[3] > 10.0, "{widths:?}");
        }
    }
}
