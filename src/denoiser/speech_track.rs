//! Speech track: the probability of speech every 10 ms, and sections with speech.
//!
//! The gain of a bin is the posterior fraction of its power that is speech. As in real-time [voice
//! activity](super::voice_activity), the log odds of speech in a frame are linear in two features: the mean fraction of
//! the bands with the most speech, and the level of speech relative to the loudest. Here both features use future
//! frames.

#[cfg(test)]
mod tests;

use super::voice_activity::{LOUDEST_FALL_SECONDS, MIN_LEVEL, SpeechBands};
use crate::decibels::decibels;
use crate::kernels::vector;
use crate::transform::Stft;
use serde::Serialize;
use std::collections::VecDeque;

/// Duration of a slot, s.
const SLOT_SECONDS: f64 = 0.01;
/// Maximum number of slots without speech within a section: pauses of up to 0.3 s, as in real-time voice activity.
const HANG_OVER_SLOTS: u64 = 30;
/// Minimum number of slots of a section.
const MIN_SLOTS: u64 = 5;
/// Half-widths of the triangular windows by which fraction and power are smoothed, frames.
const FRACTION_REACH: usize = 2;
const POWER_REACH: usize = 1;
/// Look-ahead of the level of the loudest speech, frames.
const LOOK_AHEAD: usize = 125;
/// Minimum power of the loudest speech, mean square: -70 dBFS.
const MIN_LOUDEST: f64 = 1e-7;
/// Least noise in a section relative to its speech: an SNR of 100 dB.
const MIN_NOISE: f64 = 1e-10;

/// Bias and weights of the log odds, fitted by `training/speech_track.py`.
const BIAS: f32 = -1.539;
const FRACTION_WEIGHT: f32 = 5.698;
const LEVEL_WEIGHT: f32 = 0.122;

/// Speech over time: its probability in slots of 10 ms, and the sections that have it.
///
/// A section begins and ends with a slot of at least the [`THRESHOLD`](Self::THRESHOLD); pauses of up to 0.3 s do not end it,
/// and sections of less than 0.05 s are left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SpeechTrack {
    /// Duration of a slot, s.
    pub slot_seconds: f64,
    /// Index of the first slot, from the start of the recording.
    pub first_slot: u64,
    /// Probability of speech per slot, 0 to 1.
    pub probability: Vec<f32>,
    /// Sections with speech, in order. A section is returned when it has ended: later than its slots.
    pub segments: Vec<SpeechSegment>,
}

impl SpeechTrack {
    /// Probability from which a slot belongs to speech.
    pub const THRESHOLD: f32 = 0.5;
}

/// A section with speech.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SpeechSegment {
    /// Start, s from the start of the recording.
    pub start_seconds: f64,
    /// End, s.
    pub end_seconds: f64,
    /// Expected level of speech: mean square over the section, dBFS.
    pub level_dbfs: f64,
    /// Ratio of the expected powers of speech and noise in the section, dB, at most 100; of an array, after its linear filter.
    pub snr_db: f64,
}

/// Measures of a frame: fraction of speech in the bands with the most speech, mean squares of speech up to 8 kHz, of
/// all speech and of noise.
#[derive(Debug, Clone, Copy, Default)]
struct Frame {
    fraction: f32,
    in_bands: f64,
    speech: f64,
    noise: f64,
}

/// An estimate for a frame or a slot.
#[derive(Debug, Clone, Copy, Default)]
struct Estimate {
    probability: f32,
    speech: f64,
    noise: f64,
}

/// Estimates the track from frames.
#[derive(Debug)]
pub(super) struct TrackMeter {
    bands: SpeechBands,
    /// Centre of the first frame, and distance between frames, s.
    first_seconds: f64,
    frame_seconds: f64,
    /// Frames still needed, the index of the first of them, and the number of estimated frames.
    frames: VecDeque<Frame>,
    first_frame: u64,
    estimates: u64,
    /// Natural logarithm of the loudest power of speech up to the last frame.
    loudest: f32,
    /// The last two estimates.
    last: [Estimate; 2],
    /// Number of slots so far.
    slots: u64,
    open: Option<Open>,
    /// Finished slots and sections that have not been returned.
    done: SpeechTrack,
}

/// A section that has not ended.
#[derive(Debug)]
struct Open {
    /// First slot, and one past the last with speech.
    start: u64,
    end: u64,
    /// Sums over the slots from `start` to `end`, and over the slots since then.
    speech: f64,
    noise: f64,
    since: [f64; 2],
}

impl Open {
    /// The section, which ends at `seconds` at the latest; `None` if it is too short.
    fn close(&self, seconds: f64) -> Option<SpeechSegment> {
        let slots = self.end - self.start;
        (slots >= MIN_SLOTS).then(|| SpeechSegment {
            start_seconds: self.start as f64 * SLOT_SECONDS,
            end_seconds: (self.end as f64 * SLOT_SECONDS).min(seconds),
            level_dbfs: decibels(self.speech / slots as f64),
            snr_db: decibels(self.speech / self.noise.max(MIN_NOISE * self.speech)),
        })
    }
}

impl TrackMeter {
    /// A meter for frames of this transform.
    pub(super) fn new(stft: &Stft) -> Self {
        let grid = stft.grid();
        Self {
            bands: SpeechBands::new(grid.bins, grid.bin_hertz),
            first_seconds: stft.first_seconds(),
            frame_seconds: grid.frame_seconds,
            frames: VecDeque::new(),
            first_frame: 0,
            estimates: 0,
            loudest: libm::log(MIN_LOUDEST) as f32,
            last: [Estimate::default(); 2],
            slots: 0,
            open: None,
            done: SpeechTrack::default(),
        }
    }

    /// Adds the next frame: the mean square and the gain of each bin.
    pub(super) fn push(&mut self, squares: &[f64], gain: &[f32]) {
        let speech = |bins: std::ops::Range<usize>| -> f64 {
            squares[bins.clone()]
                .iter()
                .zip(&gain[bins])
                .map(|(square, &gain)| square * f64::from(gain))
                .sum()
        };
        let (whole, in_bands) = (speech(0..gain.len()), speech(0..self.bands.end()));
        let frame = Frame {
            fraction: self.bands.fraction(|bin| gain[bin]).highest,
            in_bands,
            speech: whole,
            noise: (squares.iter().sum::<f64>() - whole).max(0.0),
        };
        tracing::trace!(fraction = frame.fraction, speech = frame.in_bands, "frame");
        self.frames.push_back(frame);
        let newest = self.frames.len() - 1;
        // The smoothed power at the newest frame lacks the following frames.
        let level = self.level(newest);
        let fall = (self.frame_seconds / LOUDEST_FALL_SECONDS) as f32;
        self.loudest = level.max(self.loudest - fall).max(libm::log(MIN_LOUDEST) as f32);
        while self.first_frame + self.frames.len() as u64 > self.estimates + LOOK_AHEAD as u64 {
            self.estimate(f64::INFINITY);
        }
    }

    /// Ends the recording after `seconds`. Every slot begins before the end.
    pub(super) fn finish(&mut self, seconds: f64) {
        let frames = self.first_frame + self.frames.len() as u64;
        while self.estimates < frames {
            self.estimate(seconds);
        }
        while self.begins_before(seconds) {
            self.push_slot(self.last[1]);
        }
        if let Some(open) = self.open.take() {
            self.done.segments.extend(open.close(seconds));
        }
    }

    /// Returns the slots and sections finished since the last call.
    pub(super) fn take(&mut self) -> SpeechTrack {
        let SpeechTrack { probability, segments, .. } = std::mem::take(&mut self.done);
        let first_slot = self.slots - probability.len() as u64;
        SpeechTrack { slot_seconds: SLOT_SECONDS, first_slot, probability, segments }
    }

    /// Natural logarithm of the smoothed power of speech at index `frame` of the kept frames.
    fn level(&self, frame: usize) -> f32 {
        let power = smoothed(&self.frames, frame, POWER_REACH, |frame| frame.in_bands);
        libm::log(power.max(f64::MIN_POSITIVE)) as f32
    }

    /// Estimates the next frame, and the slots up to its centre that begin before the end at `seconds`.
    fn estimate(&mut self, seconds: f64) {
        let at = (self.estimates - self.first_frame) as usize;
        let Frame { speech, noise, .. } = self.frames[at];
        let fraction = smoothed(&self.frames, at, FRACTION_REACH, |frame| f64::from(frame.fraction)) as f32;
        let level = (self.level(at) - self.loudest).clamp(MIN_LEVEL, 0.0);
        let log_odds = BIAS + FRACTION_WEIGHT * fraction + LEVEL_WEIGHT * level;
        // Digital silence holds no speech.
        let probability = if speech > 0.0 { vector::logistic(log_odds) } else { 0.0 };
        self.last = [self.last[1], Estimate { probability, speech, noise }];
        let centre = self.first_seconds + self.estimates as f64 * self.frame_seconds;
        self.estimates += 1;
        loop {
            let slot = (self.slots as f64 + 0.5) * SLOT_SECONDS;
            if slot > centre || !self.begins_before(seconds) {
                break;
            }
            let weight = 1.0 - ((centre - slot) / self.frame_seconds).clamp(0.0, 1.0);
            let [a, b] = self.last;
            let between = |a: f64, b: f64| a + weight * (b - a);
            self.push_slot(Estimate {
                probability: between(f64::from(a.probability), f64::from(b.probability)) as f32,
                speech: between(a.speech, b.speech),
                noise: between(a.noise, b.noise),
            });
        }
        if at >= FRACTION_REACH.max(POWER_REACH) {
            self.frames.pop_front();
            self.first_frame += 1;
        }
    }

    /// Whether the next slot begins before the end of a recording of `seconds`.
    fn begins_before(&self, seconds: f64) -> bool {
        (self.slots as f64) < seconds / SLOT_SECONDS - 1e-6
    }

    /// Adds a slot to the track and to its section.
    fn push_slot(&mut self, slot: Estimate) {
        let Estimate { probability, speech, noise } = slot;
        let number = self.slots;
        self.slots += 1;
        self.done.probability.push(probability);
        if probability >= SpeechTrack::THRESHOLD {
            let open = self.open.get_or_insert(Open {
                start: number,
                end: number,
                speech: 0.0,
                noise: 0.0,
                since: [0.0; 2],
            });
            let [pause_speech, pause_noise] = std::mem::take(&mut open.since);
            open.speech += pause_speech + speech;
            open.noise += pause_noise + noise;
            open.end = number + 1;
        } else if let Some(open) = &mut self.open {
            open.since[0] += speech;
            open.since[1] += noise;
            if number + 1 - open.end > HANG_OVER_SLOTS {
                self.done.segments.extend(open.close(f64::INFINITY));
                self.open = None;
            }
        }
    }
}

/// Mean of a value around a frame, weighted by a triangular window of `reach` frames on both sides; missing frames are
/// omitted.
fn smoothed(frames: &VecDeque<Frame>, at: usize, reach: usize, value: impl Fn(&Frame) -> f64) -> f64 {
    let first = at.saturating_sub(reach);
    let last = (at + reach).min(frames.len() - 1);
    let (mut sum, mut total) = (0.0, 0.0);
    for (i, frame) in (first..).zip(frames.range(first..=last)) {
        let weight = (reach + 1 - i.abs_diff(at)) as f64;
        sum += weight * value(frame);
        total += weight;
    }
    sum / total
}
