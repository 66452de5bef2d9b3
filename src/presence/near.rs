//! Probability of speech near a frame. Where it is low, speech-like spectral peaks of steady noise are removed.

use crate::kernels::vector;

/// Frames on each side within which speech counts as near.
const NEAR_FRAMES: usize = 16;
/// Rank of the log odds that represent a frame: speech has high log odds in at least this number of bins, peaks of
/// noise in fewer.
const PRESENT_BINS: usize = 8;
/// Log odds, at that rank, at which speech is near with probability 1/2, and slope of the log odds of near speech;
/// tuned on white noise and speech (eval/results).
const MIN_LOG_ODDS: f32 = -1.0;
const SLOPE: f32 = 4.0;

/// Time within which past speech counts as near in real-time processing, s.
const RECENT_SECONDS: f64 = 0.4;
/// Rank of the log odds that represent a frame, and log odds for a probability of 1/2, in real-time processing. The
/// causal network has higher peaks in noise.
const RECENT_BINS: usize = 16;
const RECENT_LOG_ODDS: f32 = -0.6;

/// Returns the probability of speech near each frame, from log odds of speech (bins x frames). The [`PRESENT_BINS`]-th
/// highest log odds represent a frame.
pub(crate) fn frame_presence(log_odds: &[f32], bins: usize) -> Vec<f32> {
    let mut sorted = vec![0.0; bins];
    let odds: Vec<f32> =
        log_odds.chunks_exact(bins).map(|frame| nth_highest(frame, PRESENT_BINS, &mut sorted)).collect();
    (0..odds.len())
        .map(|t| {
            probability(
                &odds[t.saturating_sub(NEAR_FRAMES)..(t + NEAR_FRAMES + 1).min(odds.len())],
                MIN_LOG_ODDS,
            )
        })
        .collect()
}

/// Estimator of the probability of speech in the last 0.4 s, frame by frame. Allocates nothing after construction.
#[derive(Debug, Clone)]
pub(crate) struct RecentPresence {
    /// Ring buffer of the [`RECENT_BINS`]-th highest log odds of each of the last frames.
    odds: Vec<f32>,
    /// Index of the oldest entry.
    oldest: usize,
    sorted: Vec<f32>,
}

impl RecentPresence {
    /// Creates an estimator for frames of `bins` bins, `frame_seconds` apart.
    pub(crate) fn new(bins: usize, frame_seconds: f64) -> Self {
        let frames = (RECENT_SECONDS / frame_seconds).round() as usize;
        Self { odds: vec![f32::NEG_INFINITY; frames.max(1)], oldest: 0, sorted: vec![0.0; bins] }
    }

    /// Adds the log odds of speech of the next frame, one per bin, and returns the probability.
    pub(crate) fn update(&mut self, log_odds: &[f32]) -> f32 {
        self.odds[self.oldest] = nth_highest(log_odds, RECENT_BINS, &mut self.sorted);
        self.oldest = (self.oldest + 1) % self.odds.len();
        probability(&self.odds, RECENT_LOG_ODDS)
    }

    /// Discards all frames.
    pub(crate) fn reset(&mut self) {
        self.odds.fill(f32::NEG_INFINITY);
    }
}

/// Returns the `place`-th highest value, or the lowest of fewer values. `sorted` is a buffer of the length of `values`.
fn nth_highest(values: &[f32], place: usize, sorted: &mut [f32]) -> f32 {
    sorted.copy_from_slice(values);
    *sorted.select_nth_unstable_by(place.min(values.len()) - 1, |a, b| b.total_cmp(a)).1
}

/// Returns the probability of speech from the highest log odds of near frames, which is 1/2 at log odds of `even`.
fn probability(near: &[f32], even: f32) -> f32 {
    vector::logistic(SLOPE * (near.iter().copied().fold(f32::NEG_INFINITY, f32::max) - even))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINS: usize = 40;

    /// Frames whose `high` first bins have log odds of 6, the others of -6.
    fn frame(high: usize) -> Vec<f32> {
        (0..BINS).map(|bin| if bin < high { 6.0 } else { -6.0 }).collect()
    }

    #[test]
    fn speech_needs_more_than_peaks() {
        for (high, is_speech) in [(0, false), (PRESENT_BINS - 1, false), (PRESENT_BINS, true)] {
            let presence = frame_presence(&frame(high), BINS);
            assert_eq!((presence[0] > 0.99, presence[0] < 0.01), (is_speech, !is_speech));
        }
        let mut recent = RecentPresence::new(BINS, 0.008);
        assert!(recent.update(&frame(RECENT_BINS - 1)) < 0.01);
        assert!(recent.update(&frame(RECENT_BINS)) > 0.99);
        // With fewer bins than the rank, the lowest log odds count.
        assert!(RecentPresence::new(3, 0.008).update(&[6.0; 3]) > 0.99);
    }

    #[test]
    fn speech_is_near_for_a_while() {
        let odds: Vec<f32> = (0..101).flat_map(|t| frame(if t == 50 { BINS } else { 0 })).collect();
        let near: Vec<usize> = frame_presence(&odds, BINS)
            .iter()
            .enumerate()
            .filter_map(|(t, &probability)| (probability > 0.5).then_some(t))
            .collect();
        assert_eq!(near, (50 - NEAR_FRAMES..=50 + NEAR_FRAMES).collect::<Vec<_>>());
        // Live, only afterwards: 50 frames of 8 ms.
        let mut recent = RecentPresence::new(BINS, 0.008);
        let live: Vec<bool> = odds.chunks_exact(BINS).map(|frame| recent.update(frame) > 0.5).collect();
        assert_eq!(live.iter().filter(|&&near| near).count(), 50);
        assert!(live[50] && live[99] && !live[49] && !live[100]);
        recent.update(&frame(BINS));
        recent.reset();
        assert!(recent.update(&frame(0)) < 0.01);
    }
}
