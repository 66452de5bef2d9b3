//! Lost passages: speech that the network classifies as noise, because another speaker precedes or follows.
//!
//! A competing talker overlaps the voice, as noise does; a speaker who takes turns does not. A passage is therefore
//! lost if nearly all of it is removed, while far less power is removed during the voice.

use super::soft_passages::{averaged, runs};
use std::ops::Range;

/// Frames on each side over which powers are averaged: 0.4 s in total.
const REACH: usize = 12;
/// Maximum power kept in a lost passage relative to the power removed there: -6 dB.
const MAX_KEPT: f64 = 0.25;
/// Maximum power removed during the voice relative to the power removed in a lost passage: -6 dB. At -5 dB, competing
/// talkers are kept.
const MAX_BESIDE: f64 = 0.25;
/// Minimum number of frames of a lost passage, and of the voice: 0.5 s.
const MIN_FRAMES: usize = 32;
/// Minimum number of frames of the longest lost passage: 1 s. A cry or a bark next to a voice is shorter.
const MIN_LONGEST_FRAMES: usize = 62;

/// Kept and removed power of each frame, by an estimate of the network.
pub(super) struct Division {
    pub(super) kept: Vec<f64>,
    pub(super) removed: Vec<f64>,
}

/// Returns the lost passages, among frames for which `is_loud` is true.
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

    /// Lost passages of 600 frames: all but -20 dB is removed in `lost`, the fraction `beside` elsewhere. The last 100
    /// frames are soft.
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
