//! Microphone faults detected from the samples: silent, interrupted, duplicated or inverted channels.

use serde::Serialize;

/// Maximum level of a silent channel relative to the loudest channel, as a ratio of energies: -60 dB.
pub(super) const SILENT: f64 = 1e-6;
/// Minimum silence of a channel, while others are not silent, that is a fault, s.
const INTERRUPTION_SECONDS: u64 = 10;
/// Maximum rounding error of the energy after the mean is subtracted, relative to the energy before.
const ROUNDING: f64 = 1e-11;
/// Correlation above which two channels count as duplicates.
const EQUAL: f64 = 0.999_999;
/// Correlation with the first channel below which a channel is inverted. Nearby microphones agree at low frequencies,
/// which contain most of the energy.
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
    /// The channel is silent for 10 s or more while others are not, as with a flat battery. The longest silence is
    /// reported.
    Interrupted {
        /// The channel.
        channel: usize,
        /// The first silent second, from the start of the recording.
        from_second: u64,
        /// The second after the last silent one.
        to_second: u64,
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

/// Covariances of the channels of an array about their means: a constant offset does not count as sound.
#[derive(Debug, Clone)]
struct Covariances {
    /// Samples per channel.
    samples: u64,
    /// Sums of the samples of every channel.
    sums: Vec<f64>,
    /// Sums of products of two channels.
    products: Vec<f64>,
}

impl Covariances {
    fn new(channels: usize) -> Self {
        Self { samples: 0, sums: vec![0.0; channels], products: vec![0.0; channels * channels] }
    }

    /// Adds a block of samples, by channel.
    fn add(&mut self, block: &[&[f32]]) {
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

    /// Adds the covariances of further samples.
    fn append(&mut self, other: &Self) {
        self.samples += other.samples;
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, x)| *sum += x);
        self.products.iter_mut().zip(&other.products).for_each(|(sum, x)| *sum += x);
    }

    fn get(&self, i: usize, j: usize) -> f64 {
        let samples = self.samples.max(1) as f64;
        self.products[i * self.sums.len() + j] - self.sums[i] * self.sums[j] / samples
    }

    fn energy(&self, i: usize) -> f64 {
        let energy = self.get(i, i);
        if energy > ROUNDING * self.products[i * self.sums.len() + i] { energy } else { 0.0 }
    }

    fn correlation(&self, i: usize, j: usize) -> f64 {
        self.get(i, j) / (self.energy(i) * self.energy(j)).sqrt()
    }

    fn loudest(&self) -> f64 {
        (0..self.sums.len()).map(|i| self.energy(i)).fold(0.0, f64::max)
    }

    /// Whether a channel is silent relative to the loudest.
    fn is_silent(&self, i: usize) -> bool {
        self.energy(i) <= SILENT * self.loudest()
    }
}

/// Range of seconds in which a channel is silent while others are not; `to` is exclusive.
#[derive(Debug, Clone, Copy, Default)]
struct Silence {
    from: u64,
    to: u64,
}

impl Silence {
    fn seconds(self) -> u64 {
        self.to - self.from
    }
}

/// Finds faults of the microphones of an array, from the samples of its channels.
#[derive(Debug, Clone)]
pub(crate) struct Microphones {
    sample_rate: u32,
    /// Whole seconds so far.
    seconds: u64,
    /// Covariances of the whole seconds so far.
    whole: Covariances,
    /// Covariances of the second in progress.
    second: Covariances,
    /// Current silence of each channel, empty if the channel is not silent.
    present: Vec<Silence>,
    /// Longest silence of each channel so far.
    longest: Vec<Silence>,
}

impl Microphones {
    /// Creates a detector for `channels` channels at a sample rate in Hz.
    pub(crate) fn new(channels: usize, sample_rate: u32) -> Self {
        Self {
            sample_rate,
            seconds: 0,
            whole: Covariances::new(channels),
            second: Covariances::new(channels),
            present: vec![Silence::default(); channels],
            longest: vec![Silence::default(); channels],
        }
    }

    /// Adds a block of samples, by channel.
    pub(crate) fn add(&mut self, block: &[&[f32]]) {
        let mut rest = block.to_vec();
        while rest.first().is_some_and(|samples| !samples.is_empty()) {
            let room = u64::from(self.sample_rate) - self.second.samples;
            let count = rest[0].len().min(room as usize);
            let (first, others): (Vec<&[f32]>, _) =
                rest.iter().map(|samples| samples.split_at(count)).unzip();
            self.second.add(&first);
            rest = others;
            if count as u64 == room {
                self.end_second();
            }
        }
    }

    fn end_second(&mut self) {
        let channels = self.present.len();
        let second = std::mem::replace(&mut self.second, Covariances::new(channels));
        self.whole.append(&second);
        let begun = self.seconds;
        self.seconds += 1;
        for (channel, (present, longest)) in self.present.iter_mut().zip(&mut self.longest).enumerate() {
            if !second.is_silent(channel) {
                *present = Silence::default();
                continue;
            }
            // While all channels are silent, the silence of a channel continues, and none begins.
            if present.seconds() == 0 {
                if second.loudest() == 0.0 {
                    continue;
                }
                present.from = begun;
            }
            present.to = self.seconds;
            if present.seconds() > longest.seconds() {
                *longest = *present;
            }
        }
    }

    /// Returns the faults so far, in the order of channels.
    pub(crate) fn faults(&self) -> Vec<MicrophoneFault> {
        let mut whole = self.whole.clone();
        whole.append(&self.second);
        let is_silent = |i: usize| whole.is_silent(i);
        let fault = |i: usize| {
            let channel = i + 1;
            if is_silent(i) {
                return (whole.loudest() > 0.0).then_some(MicrophoneFault::Silent { channel });
            }
            let silence = self.longest[i];
            if silence.seconds() >= INTERRUPTION_SECONDS {
                let (from_second, to_second) = (silence.from, silence.to);
                return Some(MicrophoneFault::Interrupted { channel, from_second, to_second });
            }
            let sounding = (0..i).filter(|&j| !is_silent(j));
            if let Some(j) = sounding.clone().find(|&j| whole.correlation(i, j) > EQUAL) {
                return Some(MicrophoneFault::Equal { channel, to: j + 1 });
            }
            let first = sounding.into_iter().next()?;
            (whole.correlation(i, first) < INVERTED).then_some(MicrophoneFault::Inverted { channel })
        };
        (0..self.present.len()).filter_map(fault).collect()
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
            let mut whole = Microphones::new(block.len(), 1_000);
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

    #[test]
    fn interruptions_are_reported() {
        const RATE: usize = 1_000;
        // Silent from one second to another.
        let channel = |channel: usize, silent: &[(usize, usize)]| -> Vec<f32> {
            let sample = |n: usize| (0.3 * n as f32 + channel as f32).sin();
            let is_silent = |n: usize| silent.iter().any(|&(from, to)| (from..to).contains(&(n / RATE)));
            // 66 dB below.
            (0..60 * RATE).map(|n| sample(n) * if is_silent(n) { 5e-4 } else { 1.0 }).collect()
        };
        let channels = [
            channel(0, &[]),
            channel(1, &[(2, 11), (20, 29)]),
            channel(2, &[(5, 15), (30, 60)]),
            channel(3, &[(3, 13)]),
        ];
        let faults = |channels: &[Vec<f32>], size: usize| {
            let mut microphones = Microphones::new(channels.len(), RATE as u32);
            for start in (0..60 * RATE).step_by(size) {
                let end = (start + size).min(60 * RATE);
                let block: Vec<&[f32]> = channels.iter().map(|channel| &channel[start..end]).collect();
                microphones.add(&block);
            }
            microphones.faults()
        };
        let expected = [
            MicrophoneFault::Interrupted { channel: 3, from_second: 30, to_second: 60 },
            MicrophoneFault::Interrupted { channel: 4, from_second: 3, to_second: 13 },
        ];
        for size in [1, 377, 60_000] {
            assert_eq!(faults(&channels, size), expected);
        }
        // Digital silence of all channels is no fault.
        // By rounding, the energy of a constant of 0.66 is not quite zero.
        let paused = [(0, 0.0), (1, 0.66)].map(|(index, offset)| -> Vec<f32> {
            let mut channel = channel(index, &[]);
            channel[10 * RATE..40 * RATE].fill(0.0);
            channel.iter().map(|x| x + offset).collect()
        });
        assert_eq!(faults(&paused, 5_000), []);
    }
}
