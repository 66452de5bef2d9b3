//! Second estimate of soft passages. Next to a louder voice, the network classifies a softer one as noise; at equal
//! levels it mostly does not. Passages that are [lost](super::lost_passages) are estimated twice, too.

use super::lost_passages::{Division, lost_passages};
use super::sizes::{BANDS, PAIR};
use crate::kernels::convolution::Grid;
use std::ops::Range;

/// Frames on each side over which the level is averaged: 1 s in total.
const REACH: usize = 31;
/// Bins whose power is the level: 0.1 to 4 kHz.
pub(super) const BINS: Range<usize> = 6..257;
/// Maximum level of a soft passage relative to the loudest level, as a ratio of powers: -8 dB.
pub(super) const SOFT: f64 = 0.158_489;
/// Level to which louder frames are attenuated, relative to the loudest second, as a ratio of powers: -18 dB.
const COMMON: f64 = 0.015_849;
/// Margin by which the log odds of the second estimate are lowered: in it, noise in pauses is as loud as speech.
pub(super) const MARGIN: f32 = 1.0;
/// Frames of context before and after a soft passage that the network receives, too; a long passage has none.
const CONTEXT: usize = 16;
/// Minimum number of frames of a long passage: 1 s. It extends up to the adjacent louder voice, which the network does
/// not receive: next to that voice, it classifies the softer one as noise. Shorter passages are mostly pauses, in which
/// a competing talker would be kept without context.
const LONG: usize = 62;
/// A long passage ends where the power of a syllable exceeds the loudest one in the passage by this factor: 3 dB.
const LOUDER: f64 = 2.0;
/// Power of a syllable, relative to the loudest second, at which a long passage always ends: -3 dB.
const LOUD: f64 = 0.5;
/// Frames of a syllable, over which the power is averaged to measure its variation in a passage.
const SYLLABLE: usize = 4;

/// Passages of a recording that are estimated twice.
pub(super) struct SoftPassages {
    /// Power averaged over a second, by frame.
    levels: Vec<f64>,
    /// Mean power of the loudest second.
    loudest: f64,
    /// Power by frame.
    powers: Vec<f64>,
    /// Whether each frame is in a passage that is estimated twice.
    is_estimated_twice: Vec<bool>,
}

impl SoftPassages {
    /// Finds the soft passages of powers (bins x frames), and the lost passages of the first estimate. `estimate` is
    /// its division of the powers in [`BINS`].
    pub(super) fn new(power: &[f32], bins: usize, estimate: &Division) -> Self {
        let range = BINS.start.min(bins)..BINS.end.min(bins);
        let of_frame = |frame: &[f32]| frame[range.clone()].iter().map(|&x| f64::from(x)).sum();
        let powers: Vec<f64> = power.chunks_exact(bins).map(of_frame).collect();
        let levels = averaged(&powers, REACH);
        let loudest = levels.iter().copied().fold(0.0, f64::max);
        let is_estimated_twice: Vec<bool> = levels.iter().map(|&level| level < SOFT * loudest).collect();
        let lost = lost_passages(estimate, |frame| !is_estimated_twice[frame]);
        let mut this = Self { levels, loudest, powers, is_estimated_twice };
        this.extend_long();
        lost.into_iter().for_each(|passage| this.is_estimated_twice[passage].fill(true));
        this
    }

    /// Extends long passages up to the adjacent louder voice, which raises the averaged levels within half a second.
    fn extend_long(&mut self) {
        let syllables = averaged(&self.powers, SYLLABLE / 2);
        let [at_least, at_most] = [SOFT, LOUD].map(|factor| factor * self.loudest);
        let frames = syllables.len();
        let long: Vec<_> =
            runs(frames, |frame| self.is_estimated_twice[frame]).filter(|run| run.len() >= LONG).collect();
        for Range { start, end } in long {
            let loudest = syllables[start..end].iter().copied().fold(0.0, f64::max);
            let loud = (LOUDER * loudest).clamp(at_least, at_most);
            let is_soft = |&frame: &usize| syllables[frame] < loud;
            let before = (start.saturating_sub(REACH)..start).rev().take_while(is_soft).count();
            let after = (end..frames.min(end + REACH)).take_while(is_soft).count();
            for (beside, nearest) in [(start - before..start, start), (end..end + after, end - 1)] {
                let level = self.levels[nearest];
                self.levels[beside.clone()].fill(level);
                self.is_estimated_twice[beside].fill(true);
            }
        }
    }

    /// The powers with louder frames attenuated to a common level.
    pub(super) fn levelled(&self, power: &[f32], bins: usize) -> Vec<f32> {
        let common = (COMMON * self.loudest).max(f64::MIN_POSITIVE);
        let frames = power.chunks_exact(bins).zip(&self.levels);
        frames
            .flat_map(|(frame, level)| {
                let gain = (common / level.max(common)) as f32;
                frame.iter().map(move |x| gain * x)
            })
            .collect()
    }

    /// The passages whose power varies by at least this factor, with their context, in whole pairs of frames.
    fn with_context(&self, variation: f64) -> Vec<Range<usize>> {
        let frames = self.levels.len();
        let mut passages: Vec<Range<usize>> = Vec::new();
        for passage in runs(frames, |frame| self.is_estimated_twice[frame]) {
            if self.variation(passage.clone()) < variation {
                continue;
            }
            let context = if passage.len() < LONG { CONTEXT } else { 0 };
            let start = passage.start.saturating_sub(context) / PAIR * PAIR;
            let end = (passage.end + context).min(frames).next_multiple_of(PAIR);
            match passages.last_mut() {
                Some(last) if start <= last.end => last.end = end,
                _ => passages.push(start..end),
            }
        }
        passages
    }

    /// Returns the variation of power in a passage of at least one frame: the highest mean over a syllable divided by
    /// the 10 % quantile of these means, at least 1.
    fn variation(&self, passage: Range<usize>) -> f64 {
        // A long passage already extends as far as possible.
        let before = if passage.len() < LONG { SYLLABLE - 1 } else { 0 };
        let start = passage.start.saturating_sub(before);
        let mut powers: Vec<f64> =
            self.powers[start..passage.end].windows(SYLLABLE).map(|near| near.iter().sum()).collect();
        let highest = powers.iter().copied().fold(0.0, f64::max);
        let tenth = powers.len() / 10;
        if powers.is_empty() || highest == 0.0 {
            return 1.0;
        }
        highest / *powers.select_nth_unstable_by(tenth, f64::total_cmp).1
    }

    /// Raises the log odds (bands x frames) to those of the second estimate less a margin, in passages whose power
    /// varies by at least the factor `variation`. `look` computes the second estimate from `input`, the features of the
    /// levelled powers. Neither is called if no passage varies by that factor.
    pub(super) fn raise(
        &self,
        variation: f64,
        odds: &mut [f32],
        input: impl FnOnce() -> Grid,
        look: impl Fn(&Grid) -> Vec<f32>,
    ) {
        let passages = self.with_context(variation);
        if passages.is_empty() {
            return;
        }
        let input = input();
        let row = input.row();
        for passage in passages {
            let pairs = passage.start / PAIR..passage.end / PAIR;
            let values = input.values[pairs.start * row..pairs.end * row].to_vec();
            let found = look(&Grid { values, ..input });
            for (frame, found) in passage.zip(found.chunks_exact(BANDS)) {
                if frame < self.levels.len() && self.is_estimated_twice[frame] {
                    let odds = &mut odds[frame * BANDS..][..BANDS];
                    odds.iter_mut().zip(found).for_each(|(odds, found)| *odds = odds.max(found - MARGIN));
                }
            }
        }
    }
}

/// Returns the runs of successive frames, of `frames` frames, for which `is_in` is true.
pub(super) fn runs(frames: usize, is_in: impl Fn(usize) -> bool) -> impl Iterator<Item = Range<usize>> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let first = (next..frames).find(|&frame| is_in(frame))?;
        next = (first..frames).find(|&frame| !is_in(frame)).unwrap_or(frames);
        Some(first..next)
    })
}

/// Returns means over each value and `reach` values on both sides. The first and the last value are repeated beyond the
/// ends.
pub(super) fn averaged(values: &[f64], reach: usize) -> Vec<f64> {
    let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return Vec::new() };
    let ends = |value| std::iter::repeat_n(value, reach);
    let longer: Vec<f64> = ends(first).chain(values.iter().copied()).chain(ends(last)).collect();
    longer.windows(2 * reach + 1).map(|near| near.iter().sum::<f64>() / near.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAMES: usize = 601;
    /// An estimate without lost passages.
    const FIRST: Division = Division { kept: Vec::new(), removed: Vec::new() };

    /// Frames 0 to 199 are loud, 200 to 399 softer by 12 dB, the others by 30 dB; of 300 bins.
    fn power() -> Vec<f32> {
        (0..FRAMES).flat_map(|t| [[1.0, 0.063_095_73, 0.001][(t / 200).min(2)]; 300]).collect()
    }

    #[test]
    fn levelled_passages_within_the_range_have_one_level() {
        let power = power();
        let levelled = SoftPassages::new(&power, 300, &FIRST).levelled(&power, 300);
        let decibels = |t: usize| 10.0 * levelled[300 * t + 50].log10();
        assert!((decibels(100) - decibels(300)).abs() < 0.01);
        assert!((decibels(100) - decibels(500) - 12.0).abs() < 0.01);
        assert!(levelled.iter().zip(&power).all(|(after, before)| after <= before));
    }

    #[test]
    fn only_soft_frames_are_raised_and_never_lowered() {
        let power = power();
        let passages = SoftPassages::new(&power, 300, &FIRST);
        let [passage] = &passages.with_context(1.0)[..] else { panic!() };
        // A mean over five frames includes two on each side.
        assert!((200..=204).contains(&passage.start) && passage.end == FRAMES + 1, "{passage:?}");
        // The second estimate is the index of the pair in the input, less 200, plus the margin.
        let mut input = Grid::new(1, 1, FRAMES.div_ceil(PAIR));
        (0..).zip(&mut input.values).for_each(|(pair, value)| *value = (pair - 200) as f32 + MARGIN);
        let look = |input: &Grid| input.values.iter().flat_map(|&value| [value; PAIR * BANDS]).collect();
        let mut odds = vec![0.0; FRAMES * BANDS];
        passages.raise(1.0, &mut odds, || input, look);
        for (frame, odds) in odds.chunks_exact(BANDS).enumerate() {
            assert_eq!(odds, [(frame as f32 / 2.0).floor().max(200.0) - 200.0; BANDS], "{frame}");
        }
    }

    #[test]
    fn a_short_passage_has_a_context() {
        // In a gap of 100 silent frames, the averaged level of 59 frames is below -8 dB.
        let power: Vec<f32> = (0..FRAMES).flat_map(|t| [f32::from(!(200..300).contains(&t)); 300]).collect();
        let passages = SoftPassages::new(&power, 300, &FIRST);
        let [passage] = &passages.with_context(1.0)[..] else { panic!() };
        assert!((204..208).contains(&passage.start) && (292..296).contains(&passage.end), "{passage:?}");
    }

    #[test]
    fn passages_of_little_variation_are_left_out() {
        // The first soft passage varies by 5 dB, the second by 20 dB, in words of 30 frames.
        let level = |t: usize| match (t / 200, t / 30 % 2) {
            (0 | 2, _) => 1.0,
            (1, word) => [0.003, 0.01][word],
            (_, word) => [0.000_1, 0.01][word],
        };
        let power: Vec<f32> = (0..800).flat_map(|t| [level(t); 300]).collect();
        let passages = SoftPassages::new(&power, 300, &FIRST);
        let starts =
            |variation| passages.with_context(variation).iter().map(|x| x.start / 200).collect::<Vec<_>>();
        assert_eq!(starts(1.0), [1, 3]);
        assert_eq!(starts(10.0), [3]);
        assert!(starts(1e3).is_empty());
    }

    #[test]
    fn silence_and_few_bins_have_no_soft_passages() {
        for (power, bins) in [(vec![0.0; 600], 300), (Vec::new(), 300), (vec![f32::MAX; 12], 4)] {
            let passages = SoftPassages::new(&power, bins, &FIRST);
            assert!(passages.with_context(1.0).is_empty());
            assert!(passages.levelled(&power, bins).iter().all(|x| x.is_finite()));
        }
    }
}
