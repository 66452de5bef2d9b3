//! Whether there is speech near a frame at all: peaks of steady noise that look like speech are removed where there is none.

use crate::kernels::vector;

/// Frames to either side within which speech counts as near.
const NEAR_FRAMES: usize = 16;
/// Number of bins in which near speech has high log odds; peaks of noise have them in fewer.
const PRESENT_BINS: usize = 8;
/// Log odds at which speech is near with even odds, and the slope of its log odds; tuned on white noise and speech
/// (eval/results).
const MIN_LOG_ODDS: f32 = -1.0;
const SLOPE: f32 = 4.0;

/// Time within which past speech counts as near, live, s.
const RECENT_SECONDS: f64 = 0.4;
/// Number of bins in which recent speech has high log odds, and those of even odds: the causal network has higher peaks in
/// noise.
const RECENT_BINS: usize = 16;
const RECENT_LOG_ODDS: f32 = -0.6;

/// Probability of speech near each frame, from log odds of speech (bins x frames): by the [`PRESENT_BINS`]-th highest of a
/// frame.
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

/// The probability of speech in the last 0.4 s, frame by frame, without allocation.
#[derive(Debug, Clone)]
pub(crate) struct RecentPresence {
    /// The [`RECENT_BINS`]-th highest log odds of the last frames, a ring.
    odds: Vec<f32>,
    /// Place of the oldest.
    oldest: usize,
    sorted: Vec<f32>,
}

impl RecentPresence {
    /// For frames of `bins` bins, `frame_seconds` apart.
    pub(crate) fn new(bins: usize, frame_seconds: f64) -> Self {
        let frames = (RECENT_SECONDS / frame_seconds).round() as usize;
        Self { odds: vec![f32::NEG_INFINITY; frames.max(1)], oldest: 0, sorted: vec![0.0; bins] }
    }

    /// Takes the log odds of speech of the next frame, one per bin.
    pub(crate) fn update(&mut self, log_odds: &[f32]) -> f32 {
        self.odds[self.oldest] = nth_highest(log_odds, RECENT_BINS, &mut self.sorted);
        self.oldest = (self.oldest + 1) % self.odds.len();
        probability(&self.odds, RECENT_LOG_ODDS)
    }

    /// Forgets all frames.
    pub(crate) fn reset(&mut self) {
        self.odds.fill(f32::NEG_INFINITY);
    }
}

/// The `place`-th highest of the values, at most as many as there are; `sorted` has room for them.
fn nth_highest(values: &[f32], place: usize, sorted: &mut [f32]) -> f32 {
    sorted.copy_from_slice(values);
    *sorted.select_nth_unstable_by(place.min(values.len()) - 1, |a, b| b.total_cmp(a)).1
}

/// The probability of speech by the highest of the log odds of near frames, and those of even odds.
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
        // Fewer bins than places: all of them.
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
