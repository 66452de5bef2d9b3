//! Clicks: bursts of a few milliseconds far above their surroundings.

use super::autoregression::{CONTEXT_SECONDS, Interpolator, order_at};
use super::quantile;
use std::ops::Range;

/// Length of the blocks of levels, s.
pub(super) const BLOCK_SECONDS: f64 = 0.001;
/// Blocks on each side whose median is the level of the surroundings.
pub(super) const NEIGHBOURS: usize = 30;
/// A click extends while its level exceeds that of the surroundings by this factor.
pub(super) const EDGE: f64 = 2.5;

/// Thresholds of a click.
#[derive(Clone, Copy)]
pub(super) struct Threshold {
    /// Minimum level relative to the surroundings.
    pub over_surroundings: f64,
    /// Minimum level relative to the loud parts of the recording (90 % quantile of all blocks).
    pub over_recording: f64,
    /// Maximum number of blocks.
    pub longest: usize,
}

/// Certain clicks: speech has at most about one false detection per second.
pub(super) const CERTAIN: Threshold = Threshold { over_surroundings: 8.0, over_recording: 3.0, longest: 8 };
/// Likely clicks, in a section with certain clicks. Lower thresholds would include glottal pulses.
const LIKELY: Threshold = Threshold { over_surroundings: 6.0, over_recording: 3.0, longest: 12 };
/// Minimum number of certain clicks of a section, in total and per second. In a short section, glottal pulses of a low
/// voice reach any rate.
const EVIDENCE: (usize, f64) = (20, 2.5);
/// Minimum number of certain clicks after a section with clicks, in total and per second.
const CONTINUED: (usize, f64) = (1, 1.25);
/// Blocks of a window, half a second, and minimum fraction of windows with a certain click, from the first to the last
/// one. Clicks occur at all times, glottal pulses of a creaky voice in clusters. Clicks at the minimum rate occurred in
/// 75 % of the windows or more, glottal pulses in up to 50 %.
const SPREAD: (usize, f64) = (500, 0.6);
/// Length of the sections that are judged independently, s.
const SECTION_SECONDS: f64 = 10.0;
/// Coefficients of the first-order high-pass filters for detection. Sharp clicks stand out from whitened speech,
/// rounded clicks from the unfiltered signal.
const EMPHASES: [f64; 2] = [SHARP, 0.0];
/// Coefficient for sharp clicks.
pub(super) const SHARP: f64 = 0.9;
/// Maximum order of the models.
const MAX_ORDER: usize = 192;
/// Fits of the model around a click.
const ITERATIONS: usize = 3;

/// Detector of the clicks of a channel, part by part.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Detector {
    /// Whether the last section had clicks, for each emphasis.
    has_clicks: [bool; EMPHASES.len()],
}

impl Detector {
    /// Returns the sample ranges of all clicks in the next part, ascending.
    pub(super) fn detect(&mut self, samples: &[f32], sample_rate: u32) -> Vec<Range<usize>> {
        let block = ((f64::from(sample_rate) * BLOCK_SECONDS).round() as usize).max(1);
        let seconds = samples.len() as f64 / f64::from(sample_rate);
        let sections = (seconds / SECTION_SECONDS).round().max(1.0) as usize;
        let length = (samples.len() / sections / block + 1) * block;
        let mut clicks: Vec<Range<usize>> = Vec::new();
        for (index, samples) in samples.chunks(length).enumerate() {
            let seconds = samples.len() as f64 / f64::from(sample_rate);
            for (emphasis, has_clicks) in EMPHASES.into_iter().zip(&mut self.has_clicks) {
                let levels = Levels::new(samples, block, emphasis);
                let certain = levels.clicks(CERTAIN);
                let (number, rate) = if *has_clicks { CONTINUED } else { EVIDENCE };
                let is_spread = *has_clicks || is_spread(&certain);
                *has_clicks = certain.len() >= number && certain.len() as f64 >= rate * seconds && is_spread;
                if !*has_clicks {
                    continue;
                }
                clicks.extend(levels.clicks(LIKELY).into_iter().map(|blocks| {
                    let start = (blocks.start * block).saturating_sub(block / 2);
                    let end = (blocks.end * block + block / 2).min(samples.len());
                    index * length + start..index * length + end
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
}

/// Whether clicks, ascending, are spread over the time between the first and the last.
fn is_spread(clicks: &[Range<usize>]) -> bool {
    let (window, part) = SPREAD;
    let windows = clicks.chunk_by(|a, b| a.start / window == b.start / window).count();
    let all = clicks
        .first()
        .zip(clicks.last())
        .map_or(0, |(first, last)| last.start / window - first.start / window + 1);
    windows as f64 >= part * all as f64
}

/// Returns the samples with all clicks interpolated from autoregressive models of their surroundings.
pub(crate) fn interpolate(samples: &[f32], sample_rate: u32, clicks: &[Range<usize>]) -> Vec<f32> {
    let rate = f64::from(sample_rate);
    let order = order_at(rate, MAX_ORDER);
    let context = (CONTEXT_SECONDS * rate) as usize;
    let mut interpolator = Interpolator::new(order, ITERATIONS);
    let mut output = samples.to_vec();
    // Clicks within each other's context are interpolated together.
    for group in clicks.chunk_by(|a, b| b.start - a.end <= 2 * order) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let start = first.start.saturating_sub(context);
        let end = (last.end + context).min(samples.len());
        let mut section: Vec<f64> = output[start..end].iter().map(|&x| f64::from(x)).collect();
        // Clicks of the section that are not interpolated yet must not enter the model.
        for click in clicks.iter().filter(|click| click.start >= last.end && click.start < end) {
            section[click.start - start..click.end.min(end) - start].fill(0.0);
        }
        let missing: Vec<usize> =
            group.iter().flat_map(|click| click.start - start..click.end - start).collect();
        interpolator.interpolate(&mut section, &missing);
        for at in missing {
            output[start + at] = section[at] as f32;
        }
    }
    output
}

/// Levels per block: maximum modulus after a first-order high-pass.
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
        // The floor is positive even in silence, so that a single sound there has surroundings.
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

    /// Returns the block ranges of all clicks above a threshold.
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
