//! Clicks: bursts of a few milliseconds that stand far out of their surroundings.

use super::autoregression::Interpolator;
use super::quantile;
use std::ops::Range;

/// Levels are taken from blocks of this length, in seconds.
pub(super) const BLOCK: f64 = 0.001;
/// Blocks on either side whose median level is the surroundings' level.
pub(super) const NEIGHBOURS: usize = 30;
/// A click reaches as far as its level stays above this multiple of the surroundings'.
pub(super) const EDGE: f64 = 2.5;

/// What counts as a click.
#[derive(Clone, Copy)]
pub(super) struct Threshold {
    /// Least level relative to the surroundings.
    pub over_surroundings: f64,
    /// Least level relative to the recording's loud parts (the 90% quantile of all blocks).
    pub over_recording: f64,
    /// Most blocks.
    pub longest: usize,
}

/// Clicks that no speech sound is taken for: clean and noisy speech has at most about one a second.
pub(super) const CERTAIN: Threshold = Threshold { over_surroundings: 8.0, over_recording: 3.0, longest: 8 };
/// Clicks, some of which overlap, in a recording that is known to have them.
const LIKELY: Threshold = Threshold { over_surroundings: 6.0, over_recording: 1.0, longest: 12 };
/// A stretch of the recording has clicks if there are as many certain ones, in all and per second.
const EVIDENCE: (usize, f64) = (4, 2.0);
/// Length of the stretches that are judged each for itself, in seconds.
const STRETCH: f64 = 10.0;
/// Coefficients of the first-order high-passes in which clicks are looked for: sharp ones stand
/// out where speech is whitened, rounded ones in the signal itself.
const EMPHASES: [f64; 2] = [SHARP, 0.0];
/// The one for sharp clicks.
pub(super) const SHARP: f64 = 0.9;
/// How far back a sample is predicted from, s.
pub(super) const REACH: f64 = 0.004;
/// How often the model of what is around a click is fitted.
const ITERATIONS: usize = 3;

/// The samples that clicks cover, ascending; empty if the recording does not have them.
pub fn detect(samples: &[f32], sample_rate: u32) -> Vec<Range<usize>> {
    let block = ((f64::from(sample_rate) * BLOCK).round() as usize).max(1);
    let seconds = samples.len() as f64 / f64::from(sample_rate);
    let stretches = (seconds / STRETCH).round().max(1.0) as usize;
    let length = (samples.len() / stretches / block + 1) * block;
    let mut clicks: Vec<Range<usize>> = Vec::new();
    for (stretch, samples) in samples.chunks(length).enumerate() {
        let seconds = samples.len() as f64 / f64::from(sample_rate);
        for emphasis in EMPHASES {
            let levels = Levels::new(samples, block, emphasis);
            let certain = levels.clicks(CERTAIN).len();
            if certain < EVIDENCE.0 || (certain as f64) < EVIDENCE.1 * seconds {
                continue;
            }
            clicks.extend(levels.clicks(LIKELY).into_iter().map(|blocks| {
                let start = (blocks.start * block).saturating_sub(block / 2);
                let end = (blocks.end * block + block / 2).min(samples.len());
                stretch * length + start..stretch * length + end
            }));
        }
    }
    clicks.sort_by_key(|click| click.start);
    clicks.dedup_by(|next, last| {
        let touches = next.start <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
    clicks
}

/// The samples with all clicks interpolated from autoregressive models of their surroundings.
pub fn interpolate(samples: &[f32], sample_rate: u32, clicks: &[Range<usize>]) -> Vec<f32> {
    let rate = f64::from(sample_rate);
    let order = ((REACH * rate) as usize).clamp(8, 192);
    let context = (0.032 * rate) as usize;
    let mut interpolator = Interpolator::new(order, ITERATIONS);
    let mut output = samples.to_vec();
    // Clicks within each other's reach are filled together.
    for group in clicks.chunk_by(|a, b| b.start - a.end <= 2 * order) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let start = first.start.saturating_sub(context);
        let end = (last.end + context).min(samples.len());
        let mut stretch: Vec<f64> = output[start..end].iter().map(|&x| f64::from(x)).collect();
        // A click further off in the stretch that is still to be filled must not enter the model.
        for click in clicks.iter().filter(|click| click.start >= last.end && click.start < end) {
            stretch[click.start - start..click.end.min(end) - start].fill(0.0);
        }
        let missing: Vec<usize> =
            group.iter().flat_map(|click| click.start - start..click.end - start).collect();
        interpolator.interpolate(&mut stretch, &missing);
        for at in missing {
            output[start + at] = stretch[at] as f32;
        }
    }
    output
}

/// Levels block by block: the largest modulus of the signal after a first-order high-pass.
struct Levels {
    own: Vec<f64>,
    surroundings: Vec<f64>,
    loud: f64,
}

impl Levels {
    fn new(samples: &[f32], block: usize, emphasis: f64) -> Self {
        let emphasised = |at: usize| {
            let before = at.checked_sub(1).map_or(0.0, |n| f64::from(samples[n]));
            (f64::from(samples[at]) - emphasis * before).abs()
        };
        let own: Vec<f64> = (0..samples.len() / block)
            .map(|b| (b * block..(b + 1) * block).map(emphasised).fold(0.0, f64::max))
            .collect();
        // Short of silence, so that a lone sound in it has surroundings to stand out of.
        let floor = 0.1 * quantile(&own, 0.5).unwrap_or(0.0) + 1e-9;
        let width = (2 * NEIGHBOURS + 1).min(own.len());
        let mut surroundings = vec![floor; own.len()];
        for (b, level) in surroundings.iter_mut().enumerate() {
            let start = b.saturating_sub(NEIGHBOURS).min(own.len() - width);
            *level = quantile(&own[start..start + width], 0.5).map_or(floor, |level| level.max(floor));
        }
        let loud = quantile(&own, 0.9).unwrap_or(0.0);
        Self { own, surroundings, loud }
    }

    /// The blocks of every click above a threshold.
    fn clicks(&self, threshold: Threshold) -> Vec<Range<usize>> {
        let above = |b: usize, factor: f64| b < self.own.len() && self.own[b] > factor * self.surroundings[b];
        let mut clicks = Vec::new();
        let mut b = 0;
        while b < self.own.len() {
            if !above(b, threshold.over_surroundings) {
                b += 1;
                continue;
            }
            let mut start = b;
            while start > 0 && above(start - 1, EDGE) {
                start -= 1;
            }
            let mut end = b + 1;
            // One block below the edge does not end a click.
            while above(end, EDGE) || above(end + 1, threshold.over_surroundings) {
                end += 1;
            }
            let peak = self.own[start..end].iter().copied().fold(0.0, f64::max);
            if end - start <= threshold.longest && peak > threshold.over_recording * self.loud {
                clicks.push(start..end);
            }
            b = end;
        }
        clicks
    }
}
