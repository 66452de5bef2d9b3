//! Restoration of clipped samples from autoregressive models of their surroundings.

use super::autoregression::{CONTEXT_SECONDS, Interpolator, order_at};
use super::clipping::Rail;
use std::ops::Range;

/// Maximum ratio of a restored sample to the level at which it was clipped.
pub(crate) const MAX_RATIO: f32 = 2.0;
/// Maximum order of the models. Higher orders are slow in heavily clipped audio, and gain little at rates above 16 kHz.
const MAX_ORDER: usize = 128;
/// Maximum length of a section with one model, s, as a voice changes over time.
const SECTION_SECONDS: f64 = 0.08;
/// Fits of the model of a section.
const ITERATIONS: usize = 4;

/// Restores the clipped samples of a channel, block by block. All samples at the extreme of a block count as clipped,
/// if it was reached in as many runs as [`Clipping`](super::Clipping) requires, or if an earlier block was clipped at
/// the same level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Declipper {
    /// Last levels at which samples were clipped, positive and negative, as moduli.
    levels: [Option<f32>; 2],
    /// The last restored samples before the next block, as context.
    before: Vec<f32>,
}

impl Declipper {
    /// Restores the clipped samples of the next block, and returns their number.
    pub(crate) fn restore(&mut self, samples: &mut [f32], sample_rate: u32) -> usize {
        let rate = f64::from(sample_rate);
        let context = (CONTEXT_SECONDS * rate) as usize;
        let [above, below] = self.levels_of(samples);
        let known = self.before.len();
        let is_clipped = |x: f32| x >= above || x <= -below;
        let clipped: Vec<usize> =
            (0..samples.len()).filter(|&n| is_clipped(samples[n])).map(|n| known + n).collect();
        let mut joined = std::mem::take(&mut self.before);
        joined.extend_from_slice(samples);
        if !clipped.is_empty() {
            let order = order_at(rate, MAX_ORDER);
            let mut interpolator = Interpolator::new(order, ITERATIONS);
            // Samples more than twice the order apart are restored independently.
            for section in sections(&clipped, 2 * order, (SECTION_SECONDS * rate) as usize) {
                restore_section(&mut joined, &clipped[section], context, &mut interpolator);
            }
            samples.copy_from_slice(&joined[known..]);
        }
        joined.drain(..joined.len().saturating_sub(context));
        self.before = joined;
        clipped.len()
    }

    /// Returns the positive and the negative clipping level of a block, as moduli; infinite without clipped samples.
    fn levels_of(&mut self, samples: &[f32]) -> [f32; 2] {
        let mut of_block = [f32::INFINITY; 2];
        for ((sign, known), level) in [1.0, -1.0].into_iter().zip(&mut self.levels).zip(&mut of_block) {
            let mut rail = Rail::default();
            samples.iter().for_each(|x| rail.count(sign * x));
            if rail.is_clipped() {
                *known = Some(rail.peak());
            }
            // A louder block is not clipped at a level that it exceeds.
            if *known == Some(rail.peak()) {
                *level = rail.peak();
            }
        }
        of_block
    }
}

/// Divides clipped samples, ascending, into sections at gaps of more than `gap` samples. A section longer than
/// `longest` samples is divided at the widest gap in its second half.
fn sections(clipped: &[usize], gap: usize, longest: usize) -> Vec<Range<usize>> {
    let mut sections = Vec::new();
    let mut start = 0;
    while start < clipped.len() {
        let within = clipped[start..].iter().take_while(|&&n| n - clipped[start] < longest).count();
        let widest = |from: usize| {
            (from..start + within)
                .max_by_key(|&n| clipped.get(n + 1).map_or(usize::MAX, |next| next - clipped[n]))
        };
        let apart =
            (start..start + within).find(|&n| clipped.get(n + 1).is_none_or(|next| next - clipped[n] > gap));
        let half = clipped[start..].iter().take_while(|&&n| 2 * (n - clipped[start]) < longest).count();
        let last = apart.or_else(|| widest(start + half.min(within - 1))).unwrap_or(start);
        sections.push(start..last + 1);
        start = last + 1;
    }
    sections
}

/// Restores the samples of one section, at the indices `clipped`.
fn restore_section(samples: &mut [f32], clipped: &[usize], context: usize, interpolator: &mut Interpolator) {
    let (Some(&first), Some(&last)) = (clipped.first(), clipped.last()) else { return };
    let start = first.saturating_sub(context);
    let end = (last + 1 + context).min(samples.len());
    let mut section: Vec<f64> = samples[start..end].iter().map(|&x| f64::from(x)).collect();
    let missing: Vec<usize> = clipped.iter().map(|n| n - start).collect();
    interpolator.interpolate_beyond(&mut section, &missing, f64::from(MAX_RATIO));
    for (&at, &from) in clipped.iter().zip(&missing) {
        samples[at] = section[from] as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 16_000;

    /// Partials that swell and fade, as of a voice, and faint noise.
    fn voice(samples: usize) -> Vec<f32> {
        let partial =
            |n: f64, frequency: f64, swell: f64| (frequency * n).sin() * (0.6 + 0.4 * (swell * n).sin());
        (0..samples)
            .map(|n| {
                let noise = 0.001 * ((n * n % 17) as f64 - 8.0) / 8.0;
                let n = n as f64;
                (0.5 * partial(n, 0.05, 0.001)
                    + 0.3 * partial(n, 0.13, 0.0017)
                    + 0.2 * partial(n, 0.31, 0.0023)
                    + noise) as f32
            })
            .collect()
    }

    fn error(truth: &[f32], found: &[f32]) -> f32 {
        truth.iter().zip(found).map(|(a, b)| (a - b) * (a - b)).sum()
    }

    #[test]
    fn clipped_samples_are_restored_and_the_others_stay() {
        let truth = voice(20_000);
        let (above, below) = (0.6, -0.5);
        let clipped: Vec<f32> = truth.iter().map(|x| x.clamp(below, above)).collect();
        let mut whole = clipped.clone();
        let counted = Declipper::default().restore(&mut whole, RATE);
        let (before, after) = (error(&truth, &clipped), error(&truth, &whole));
        assert!(after < 0.1 * before, "{after} of {before}");
        let mut restored = 0;
        for (x, y) in clipped.iter().zip(&whole) {
            match *x {
                x if x == above => assert!((above..=MAX_RATIO * above).contains(y)),
                x if x == below => assert!((MAX_RATIO * below..=below).contains(y)),
                x => assert_eq!(x, *y),
            }
            restored += usize::from(x != y);
        }
        assert!(restored > 500 && restored <= counted, "{restored} of {counted}");
        // Blocks differ where a border cuts the context.
        let mut parts = clipped.clone();
        let mut declipper = Declipper::default();
        parts.chunks_mut(7_001).for_each(|part| _ = declipper.restore(part, RATE));
        let blocks = error(&truth, &parts);
        assert!(blocks < 0.12 * before, "{blocks} of {before}");
    }

    #[test]
    fn a_known_level_needs_no_further_evidence() {
        let truth = voice(20_000);
        let clipped: Vec<f32> = truth.iter().map(|x| x.min(0.5)).collect();
        let peak = (10_000..).find(|&n| clipped[n] == 0.5).unwrap();
        let few = 10_000..peak + 40;
        let (mut alone, mut after) = (clipped[few.clone()].to_vec(), clipped[few.clone()].to_vec());
        assert_eq!(Declipper::default().restore(&mut alone, RATE), 0);
        assert_eq!(alone, clipped[few.clone()], "one run may be the peak of the signal");
        let mut declipper = Declipper::default();
        declipper.restore(&mut clipped[..10_000].to_vec(), RATE);
        declipper.restore(&mut after, RATE);
        assert!(after.iter().any(|&x| x > 0.5));
        // Louder samples were not clipped.
        let mut louder = truth[10_000..].to_vec();
        assert_eq!(declipper.restore(&mut louder, RATE), 0);
        assert_eq!(louder, truth[10_000..]);
        assert!(declipper.restore(&mut clipped[few].to_vec(), RATE) > 0, "the level is still known");
    }

    #[test]
    fn unclipped_and_silent_samples_stay() {
        for x in [voice(20_000), vec![0.0; 1_000], Vec::new()] {
            let mut same = x.clone();
            assert_eq!(Declipper::default().restore(&mut same, RATE), 0);
            assert_eq!(same, x);
        }
        // Nothing but clipped samples.
        for (square, rate) in [(100, 8_000), (3, 192_000)] {
            let mut x: Vec<f32> = (0..20_000).map(|n| if n / square % 2 == 0 { 0.9 } else { -0.9 }).collect();
            Declipper::default().restore(&mut x, rate);
            assert!(x.iter().all(|x| (0.9..=1.8).contains(&x.abs())));
        }
    }

    #[test]
    fn sections_are_cut_at_gaps() {
        let lengths = |clipped: &[usize], gap, longest| -> Vec<usize> {
            sections(clipped, gap, longest).into_iter().map(|section| section.len()).collect()
        };
        assert_eq!(lengths(&[1, 2, 3, 30, 31], 10, 100), [3, 2]);
        // A long section is divided at its widest gap, after index 60.
        let mut long: Vec<usize> = (0..100).collect();
        long[61..].iter_mut().for_each(|n| *n += 5);
        assert_eq!(lengths(&long, 10, 80), [61, 39]);
        assert_eq!(lengths(&(0..1_000).collect::<Vec<_>>(), 10, 1), [1; 1_000]);
    }
}
