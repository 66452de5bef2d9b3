//! Microphone faults detected from the samples: silent, duplicated or inverted channels.

use serde::Serialize;

/// Level below that of the loudest channel from which on a channel counts as silent, as a ratio of energies: 60 dB.
const SILENT: f64 = 1e-6;
/// Correlation at and above which two channels count as duplicates.
const EQUAL: f64 = 0.999_999;
/// Correlation with the first channel from which on a channel has the opposite sign: near microphones agree at low frequencies,
/// which hold most of the energy.
const INVERTED: f64 = -0.5;

/// A fault of a microphone of an array. Channels count from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "fault")]
pub enum MicrophoneFault {
    /// The channel is 60 dB or more below the loudest.
    Silent {
        /// The channel.
        channel: usize,
    },
    /// The channel repeats an earlier one.
    Equal {
        /// The channel.
        channel: usize,
        /// The earlier one.
        to: usize,
    },
    /// The channel has the opposite sign of the first one that is not silent; it is still used.
    Inverted {
        /// The channel.
        channel: usize,
    },
}

/// Covariances of the channels of an array: a constant offset is none of a channel's sound.
#[derive(Debug, Clone)]
pub(crate) struct Microphones {
    /// Samples per channel.
    samples: u64,
    /// Sums of the samples of every channel.
    sums: Vec<f64>,
    /// Sums of products of two channels.
    products: Vec<f64>,
}

impl Microphones {
    pub(crate) fn new(channels: usize) -> Self {
        Self { samples: 0, sums: vec![0.0; channels], products: vec![0.0; channels * channels] }
    }

    /// Takes samples, by channel.
    pub(crate) fn add(&mut self, block: &[&[f32]]) {
        self.samples += block.first().map_or(0, |samples| samples.len() as u64);
        let channels = self.sums.len();
        for (i, first) in block.iter().enumerate() {
            self.sums[i] += first.iter().map(|&x| f64::from(x)).sum::<f64>();
            for (j, second) in block[..=i].iter().enumerate() {
                let product: f64 =
                    first.iter().zip(*second).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum();
                self.products[i * channels + j] += product;
            }
        }
    }

    /// The faults so far, channel by channel.
    pub(crate) fn faults(&self) -> Vec<MicrophoneFault> {
        let channels = self.sums.len();
        let samples = self.samples.max(1) as f64;
        let product =
            |i: usize, j: usize| self.products[i * channels + j] - self.sums[i] * self.sums[j] / samples;
        let energy = |i: usize| product(i, i);
        let loudest = (0..channels).map(energy).fold(0.0, f64::max);
        let is_silent = |i: usize| energy(i) <= SILENT * loudest;
        let correlation = |i: usize, j: usize| product(i, j) / (energy(i) * energy(j)).sqrt();
        (0..channels)
            .filter_map(|i| {
                let channel = i + 1;
                if is_silent(i) {
                    return (loudest > 0.0).then_some(MicrophoneFault::Silent { channel });
                }
                let sounding = (0..i).filter(|&j| !is_silent(j));
                if let Some(j) = sounding.clone().find(|&j| correlation(i, j) > EQUAL) {
                    return Some(MicrophoneFault::Equal { channel, to: j + 1 });
                }
                let first = sounding.into_iter().next()?;
                (correlation(i, first) < INVERTED).then_some(MicrophoneFault::Inverted { channel })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_found_and_nothing_else() {
        let voice: Vec<f32> =
            (0..4_000).map(|n| (0.03 * n as f32).sin() + 0.3 * (0.4 * n as f32).sin()).collect();
        let later = |by: usize| -> Vec<f32> { (0..4_000).map(|n| voice[(n + 4_000 - by) % 4_000]).collect() };
        let (near, far) = (later(2), later(5));
        let [louder, inverted, silent] =
            [2.0, -0.8, 1e-4].map(|factor: f32| near.iter().map(|x| factor * x).collect::<Vec<f32>>());
        let faults = |block: &[&[f32]]| {
            let mut whole = Microphones::new(block.len());
            let (first, last): (Vec<&[f32]>, Vec<&[f32]>) =
                block.iter().map(|x| x.split_at(x.len() / 3)).unzip();
            whole.add(&first);
            whole.add(&last);
            whole.faults()
        };
        assert_eq!(faults(&[&voice, &near, &far]), []);
        let found = faults(&[&silent, &voice, &near, &louder, &inverted, &far]);
        assert_eq!(
            found,
            [
                MicrophoneFault::Silent { channel: 1 },
                MicrophoneFault::Equal { channel: 4, to: 3 },
                MicrophoneFault::Inverted { channel: 5 },
            ]
        );
        assert_eq!(faults(&[&[0.0; 9], &[0.0; 9]]), []);
        // Offsets of either sign, louder than the voice.
        let [raised, lowered] = [(&voice, 2.0), (&far, -2.0)]
            .map(|(channel, by)| channel.iter().map(|x| x + by).collect::<Vec<f32>>());
        assert_eq!(faults(&[&raised, &lowered]), []);
    }
}
