//! Difference between the channels of a recording: small in ordinary stereo, large with one microphone per speaker.

use crate::decibels::decibels;
use crate::transform::{FrameGrid, Spectrogram, bin_power};

/// Frames of a slot, 0.13 s.
const SLOT_FRAMES: usize = 8;
/// Lowest edge between two octaves, Hz.
const LOWEST_EDGE_HERTZ: f64 = 177.0;
/// Added to each channel's fraction of the power of all channels, which bounds its level.
const MIN_PART: f64 = 1e-6;
/// Decay of the weight of slots per block.
const KEEP: f64 = 0.5;
/// Minimum difference of channels with different sounds, dB. In mixtures, ordinary stereo reached at most 3.8 dB, also
/// in rooms, in wide ambience and with voices panned by 4.5 dB to either side. Microphones of two speakers, each 10 or
/// 15 dB softer in that of the other, were at 5.4 dB or more. A voice beside noise was at 4.9 dB or more.
const DIFFERENT_DB: f64 = 4.5;

/// Measures how much the ratios between the channels' levels vary over time, by octave.
///
/// A shared gain suits channels whose levels rise and fall together, whatever the ratios between these levels.
pub(super) struct ChannelDifference {
    /// The octave of every bin.
    octaves: Vec<usize>,
    /// Sums over the slots, by octave and channel.
    sums: Vec<Sums>,
}

/// Sums of weights, of weighted levels relative to the mean of the other channels, dB, and of their weighted squares.
#[derive(Clone, Copy, Default)]
struct Sums([f64; 3]);

impl Sums {
    fn add(&mut self, weight: f64, level: f64) {
        let Self(sums) = self;
        sums.iter_mut().zip([weight, weight * level, weight * level * level]).for_each(|(sum, x)| *sum += x);
    }

    /// The weighted sum of the squares of the levels' differences from their mean.
    fn variation(&self) -> f64 {
        let Self([weight, sum, square]) = self;
        if *weight > 0.0 { square - sum * sum / weight } else { 0.0 }
    }
}

impl ChannelDifference {
    pub(super) fn new(grid: FrameGrid) -> Self {
        let octave = |bin: usize| {
            let octaves = libm::log2(bin as f64 * grid.bin_hertz / LOWEST_EDGE_HERTZ);
            if octaves < 0.0 { 0 } else { 1 + octaves as usize }
        };
        Self { octaves: (0..grid.bins).map(octave).collect(), sums: Vec::new() }
    }

    /// Adds the first `frames` frames of every channel, and returns whether they hold different sounds.
    pub(super) fn is_found<'a>(
        &mut self,
        channels: impl Iterator<Item = &'a Spectrogram>,
        frames: usize,
    ) -> bool {
        let channels: Vec<&Spectrogram> = channels.collect();
        let count = channels.len();
        let octaves = self.octaves.last().map_or(0, |highest| highest + 1);
        self.sums.resize(octaves * count, Sums::default());
        self.sums.iter_mut().flat_map(|Sums(sums)| sums).for_each(|sum| *sum *= KEEP);
        for slot in 0..frames / SLOT_FRAMES {
            let mut powers = vec![0.0; octaves * count];
            for (index, channel) in channels.iter().enumerate() {
                for t in slot * SLOT_FRAMES..(slot + 1) * SLOT_FRAMES {
                    for (octave, value) in self.octaves.iter().zip(channel.frame(t)) {
                        powers[octave * count + index] += bin_power(value);
                    }
                }
            }
            self.add(&powers, count);
        }
        self.decibels(count) > DIFFERENT_DB
    }

    /// Adds the powers of one slot by octave and channel.
    fn add(&mut self, powers: &[f64], count: usize) {
        for (powers, sums) in powers.chunks_exact(count).zip(self.sums.chunks_exact_mut(count)) {
            let all: f64 = powers.iter().sum();
            if all == 0.0 {
                continue;
            }
            let levels: Vec<f64> = powers.iter().map(|power| decibels(power / all + MIN_PART)).collect();
            let sum: f64 = levels.iter().sum();
            for (sums, level) in sums.iter_mut().zip(&levels) {
                let others = (sum - level) / (count - 1) as f64;
                // Louder slots weigh more, but less than in proportion to their power.
                sums.add(all.sqrt(), level - others);
            }
        }
    }

    /// Standard deviation of the level relative to the other channels, over octaves and slots, dB: the maximum over
    /// channels.
    fn decibels(&self, count: usize) -> f64 {
        let of_channel = |index: usize| {
            let sums = self.sums.iter().skip(index).step_by(count);
            let (weight, variation) =
                sums.fold((0.0, 0.0), |(weight, sum), of| (weight + of.0[0], sum + of.variation()));
            if weight > 0.0 { (variation.max(0.0) / weight).sqrt() } else { 0.0 }
        };
        (0..count).map(of_channel).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    const GRID: FrameGrid = FrameGrid { bins: 65, bin_hertz: 62.5, frame_seconds: 0.004 };
    /// Slots of a block.
    const SLOTS: usize = 20;

    /// Frames of one channel with these levels, dB, in odd and even slots.
    fn channel(even_db: f64, odd_db: f64) -> Spectrogram {
        let level = |slot: usize| [even_db, odd_db][slot % 2];
        let value = |slot: usize| Complex::new(libm::pow(10.0, level(slot) / 20.0) as f32, 0.0);
        let values = (0..SLOTS).flat_map(|slot| vec![value(slot); GRID.bins * SLOT_FRAMES]).collect();
        Spectrogram::from_values(GRID.bins, values)
    }

    /// The difference after one block, dB, and whether it is found.
    fn difference(levels_db: &[(f64, f64)]) -> (f64, bool) {
        let channels: Vec<Spectrogram> = levels_db.iter().map(|&(even, odd)| channel(even, odd)).collect();
        let mut difference = ChannelDifference::new(GRID);
        let is_found = difference.is_found(channels.iter(), SLOTS * SLOT_FRAMES);
        (difference.decibels(levels_db.len()), is_found)
    }

    #[test]
    fn levels_that_change_together_do_not_differ() {
        for levels_db in [&[(0.0, 0.0), (-20.0, -20.0)][..], &[(0.0, -40.0), (-12.0, -52.0), (6.0, -34.0)]] {
            let (decibels, is_found) = difference(levels_db);
            assert!(decibels < 1e-3 && !is_found, "{decibels} dB");
        }
        assert_eq!(difference(&[(0.0, 0.0), (-900.0, -900.0)]), (0.0, false), "one is silent");
        assert_eq!(difference(&[(-900.0, -900.0); 2]), (0.0, false), "both are silent");
    }

    #[test]
    fn it_is_the_deviation_of_the_ratio() {
        // The ratio is 10 dB and -10 dB, at the same total power.
        let (decibels, is_found) = difference(&[(0.0, -10.0), (-10.0, 0.0)]);
        assert!((decibels - 10.0).abs() < 1e-3 && is_found, "{decibels} dB");
        let (decibels, is_found) = difference(&[(0.0, -4.0), (-4.0, 0.0)]);
        assert!((decibels - 4.0).abs() < 1e-3 && !is_found, "{decibels} dB");
        // One of four channels changes, by 12 dB: the deviation from its mean is 6 dB, with the weights of the slots a little less.
        let (decibels, is_found) = difference(&[(0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (-6.0, 6.0)]);
        assert!((5.5..6.0).contains(&decibels) && is_found, "{decibels} dB");
    }

    /// Earlier blocks count, with decreasing weight.
    #[test]
    fn a_change_between_blocks_is_found() {
        let frames = SLOTS * SLOT_FRAMES;
        let [left, right] = [channel(0.0, 0.0), channel(-12.0, -12.0)];
        let mut difference = ChannelDifference::new(GRID);
        assert!(!difference.is_found([&left, &right].into_iter(), frames));
        assert!(difference.is_found([&right, &left].into_iter(), frames));
        // After many blocks, the change no longer counts.
        for _ in 0..8 {
            difference.is_found([&right, &left].into_iter(), frames);
        }
        assert!(difference.decibels(2) < 1.5);
    }
}
