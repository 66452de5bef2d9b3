//! Lost passages: those of a speaker whom the network takes for noise, because another one speaks before or after.
//!
//! A competing talker goes on beside the voice, as noise does; a speaker who takes turns is alone. So a passage is lost where nearly
//! all of it is removed, while far less is removed from the voice.

use super::soft_passages::{averaged, runs};
use std::ops::Range;

/// Frames to either side over which powers are averaged: 0.4 s in all.
const REACH: usize = 12;
/// Power that is kept of a lost passage relative to what is removed, at most: -6 dB.
const MAX_KEPT: f64 = 0.25;
/// Power that is removed from the voice relative to that of a lost passage, at most: -6 dB. At -5 dB, competing talkers are kept.
const MAX_BESIDE: f64 = 0.25;
/// Frames of a lost passage, and of the voice, at least: 0.5 s.
const MIN_FRAMES: usize = 32;
/// Frames of the longest lost passage, at least: 1 s. A cry or a bark beside a voice is shorter.
const MIN_LONGEST_FRAMES: usize = 62;

/// Powers by frame, divided by an estimate of the network.
pub(super) struct Division {
    pub(super) kept: Vec<f64>,
    pub(super) removed: Vec<f64>,
}

/// The lost passages, among frames that are loud.
pub(super) fn lost_passages(estimate: &Division, is_loud: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let [kept, removed] = [&estimate.kept, &estimate.removed].map(|powers| averaged(powers, REACH));
    let frames = kept.len();
    let beside: Vec<f64> =
        (0..frames).filter(|&t| is_loud(t) && kept[t] > removed[t]).map(|t| removed[t]).collect();
    if beside.len() < MIN_FRAMES {
        return Vec::new();
    }
    let least = mean(&beside) / MAX_BESIDE;
    let is_lost = |t: usize| is_loud(t) && kept[t] < MAX_KEPT * removed[t];
    let mut lost: Vec<Range<usize>> = runs(frames, is_lost)
        .filter(|run| run.len() >= MIN_FRAMES && mean(&removed[run.clone()]) > least)
        .collect();
    if lost.iter().all(|passage| passage.len() < MIN_LONGEST_FRAMES) {
        lost.clear();
    }
    lost
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of which `lost` are removed but for -20 dB, and `beside` of the others; the last 100 are soft.
    fn found(lost: Range<usize>, beside: f64) -> Vec<Range<usize>> {
        let removed: Vec<f64> = (0..600).map(|t| if lost.contains(&t) { 0.99 } else { beside }).collect();
        let kept = removed.iter().map(|removed| 1.0 - removed).collect();
        lost_passages(&Division { kept, removed }, |t| t < 500)
    }

    #[test]
    fn a_passage_that_is_removed_is_lost_if_little_is_removed_from_the_voice() {
        let [passage] = &found(200..300, 0.01)[..] else { panic!() };
        assert!(passage.start.abs_diff(200) < REACH && passage.end.abs_diff(300) < REACH, "{passage:?}");
        assert!(found(200..300, 0.3).is_empty(), "as much goes on beside the voice");
    }

    #[test]
    fn a_short_sound_and_soft_frames_are_not_lost() {
        assert!(found(200..250, 0.01).is_empty());
        assert!(found(510..600, 0.01).is_empty());
        assert!(lost_passages(&Division { kept: Vec::new(), removed: Vec::new() }, |_| true).is_empty());
    }

    #[test]
    fn nothing_is_lost_where_there_is_no_other_voice() {
        assert!(
            lost_passages(&Division { kept: vec![0.0; 600], removed: vec![1.0; 600] }, |_| true).is_empty()
        );
    }
}
