//! Voice activity: the probability of speech in a frame, and where speech starts and ends.

use crate::kernels::vector;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Range;

/// Voice activity of the last frame.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VoiceActivity {
    /// Probability of speech in the last frame, 0 to 1.
    pub probability: f32,
    /// Whether there is speech: the probability has reached the threshold within the hang-over.
    pub speaking: bool,
}

/// Start or end of speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VoiceEvent {
    /// Whether speech starts; otherwise it has ended.
    pub speaking: bool,
    /// Position in the output, samples per channel since the start or the last reset, exact to a hop, at most half the
    /// latency. An end is later than the speech by the hang-over.
    pub sample: u64,
}

/// Queue of events of a [`LiveDenoiser`](crate::LiveDenoiser), for programs that poll them. It keeps the last
/// [`MAX`](Self::MAX) events. An audio thread may push, as no call allocates.
#[derive(Debug, Clone)]
pub struct VoiceEvents {
    events: VecDeque<VoiceEvent>,
}

impl VoiceEvents {
    /// Maximum number of events in the queue.
    pub const MAX: usize = 4096;

    /// Adds an event, and removes the oldest one if the queue is full.
    pub fn push(&mut self, event: VoiceEvent) {
        if self.events.len() == Self::MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Removes and returns all events in order.
    pub fn take(&mut self) -> impl ExactSizeIterator<Item = VoiceEvent> {
        self.events.drain(..)
    }

    /// Removes all events, as after a reset.
    pub fn clear(&mut self) {
        self.events.clear();
    }
}

impl Default for VoiceEvents {
    fn default() -> Self {
        Self { events: VecDeque::with_capacity(Self::MAX) }
    }
}

const BANDS: usize = 16;
/// Lower edge of the lowest band and upper edges of all, Hz.
const EDGES_HZ: [f64; BANDS + 1] = [
    62.5, 200.0, 300.0, 400.0, 500.0, 650.0, 800.0, 1_000.0, 1_250.0, 1_600.0, 2_000.0, 2_500.0, 3_100.0,
    3_900.0, 5_000.0, 6_200.0, 8_000.0,
];
/// Number of bands with the highest fractions of speech; their mean is the fraction of the frame.
const HIGHEST_BANDS: usize = 4;
/// Time constants of the fraction of speech and of its power, s.
const FRACTION_SECONDS: f64 = 0.06;
const POWER_SECONDS: f64 = 0.03;
/// The loudest power of speech: initial value (mean square 0.01), and time in which it falls by a factor of e, s.
const INITIAL_LOUDEST_LOG_POWER: f32 = -4.6;
pub(super) const LOUDEST_FALL_SECONDS: f64 = 5.0;
/// Minimum natural logarithm of the power of speech relative to the loudest.
pub(super) const MIN_LEVEL: f32 = -9.0;
/// Added to powers before the logarithm.
const MIN_POWER: f32 = 1e-12;

/// Log odds of speech in a frame are linear in its fraction of speech and in the level of that speech relative to the
/// loudest: bias and weights, by `training/voice_activity.py`.
const BIAS: f32 = -0.991;
const FRACTION_WEIGHT: f32 = 6.442;
const LEVEL_WEIGHT: f32 = 0.263;

/// The bands in which a frame's fraction of speech is estimated.
#[derive(Debug, Clone)]
pub(super) struct SpeechBands {
    /// Bins of the bands within the bandwidth of the recording.
    bins: Vec<Range<usize>>,
}

/// The fraction of speech in a frame, 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpeechFraction {
    /// Mean over the bands with the highest fractions.
    pub highest: f32,
    /// Mean over all bands.
    pub whole: f32,
}

impl SpeechBands {
    /// The bands of frames of `bins` bins `bin_hertz` apart.
    pub(super) fn new(bins: usize, bin_hertz: f64) -> Self {
        let edge = |hertz: f64| (hertz / bin_hertz).round() as usize;
        let bands = EDGES_HZ.windows(2).map(|edges| edge(edges[0])..edge(edges[1]));
        Self { bins: bands.take_while(|band| band.end <= bins).collect() }
    }

    /// One past the last bin of the bands.
    pub(super) fn end(&self) -> usize {
        self.bins.last().map_or(0, |band| band.end)
    }

    /// The fraction of speech in a frame, from the fraction `of_bin` of each bin, 0 to 1.
    pub(super) fn fraction(&self, of_bin: impl Fn(usize) -> f32) -> SpeechFraction {
        let mut means = [0.0; BANDS];
        let mut last = 0.0;
        for (band, mean) in means.iter_mut().enumerate() {
            // Bands that the recording lacks, or that are narrower than a bin, have the fraction of the one below.
            if let Some(bins) = self.bins.get(band).filter(|bins| !bins.is_empty()) {
                last = bins.clone().map(&of_bin).sum::<f32>() / bins.len() as f32;
            }
            *mean = last;
        }
        let whole = means.iter().sum::<f32>() / BANDS as f32;
        means.sort_unstable_by(|a, b| b.total_cmp(a));
        SpeechFraction { highest: means[..HIGHEST_BANDS].iter().sum::<f32>() / HIGHEST_BANDS as f32, whole }
    }
}

/// Estimates the probability of speech frame by frame, without allocation.
#[derive(Debug, Clone)]
pub(super) struct VoiceDetector {
    bands: SpeechBands,
    fraction_step: f32,
    power_step: f32,
    /// Decrease of `loudest` per frame.
    fall: f32,
    /// Fraction of speech in the highest bands, and power of speech, smoothed.
    fraction: f32,
    power: f32,
    /// Natural logarithm of the loudest power of speech.
    loudest: f32,
    probability: f32,
    speaking: bool,
    /// Samples from one frame to the next.
    hop: u64,
    /// Sample rate, Hz.
    sample_rate: f64,
    /// Samples per channel since the probability last reached the threshold.
    quiet: u64,
    /// Samples per channel so far.
    position: u64,
}

impl VoiceDetector {
    /// A detector for frames of `bins` bins `bin_hertz` apart, `hop` samples or `frame_seconds` apart.
    pub(super) fn new(bins: usize, bin_hertz: f64, hop: usize, frame_seconds: f64) -> Self {
        let step = |time: f64| (1.0 - libm::exp(-frame_seconds / time)) as f32;
        Self {
            bands: SpeechBands::new(bins, bin_hertz),
            fraction_step: step(FRACTION_SECONDS),
            power_step: step(POWER_SECONDS),
            fall: (frame_seconds / LOUDEST_FALL_SECONDS) as f32,
            fraction: 0.0,
            power: 0.0,
            loudest: INITIAL_LOUDEST_LOG_POWER,
            probability: 0.0,
            speaking: false,
            hop: hop as u64,
            sample_rate: hop as f64 / frame_seconds,
            quiet: 0,
            position: 0,
        }
    }

    /// Estimates the probability of speech from the powers of the next frame (of mean 1 for white noise at full scale),
    /// and the fraction of speech in its bins, 0 to 1.
    pub(super) fn estimate(&mut self, power: &[f32], fraction: impl Fn(usize) -> f32) {
        let SpeechFraction { highest, whole } = self.bands.fraction(fraction);
        let in_bands = &power[..self.bands.end()];
        let power = whole * in_bands.iter().sum::<f32>() / in_bands.len().max(1) as f32;
        self.fraction += self.fraction_step * (highest - self.fraction);
        self.power += self.power_step * (power - self.power);
        let level = vector::ln(self.power + MIN_POWER);
        self.loudest = level.max(self.loudest - self.fall);
        let level = (level - self.loudest).max(MIN_LEVEL);
        self.probability = vector::logistic(BIAS + FRACTION_WEIGHT * self.fraction + LEVEL_WEIGHT * level);
    }

    /// Processes a frame that cannot hold speech.
    pub(super) fn clear(&mut self) {
        (self.fraction, self.power, self.probability) = (0.0, 0.0, 0.0);
    }

    /// Advances by a frame and returns the event in it, if any.
    pub(super) fn advance(&mut self, threshold: f32, hang_over_seconds: f32) -> Option<VoiceEvent> {
        let hang_over_samples = (f64::from(hang_over_seconds) * self.sample_rate).round() as u64;
        self.position += self.hop;
        self.quiet = if self.probability >= threshold { 0 } else { self.quiet.saturating_add(self.hop) };
        let speaking = self.quiet == 0 || self.speaking && self.quiet <= hang_over_samples;
        let changed = std::mem::replace(&mut self.speaking, speaking) != speaking;
        changed.then_some(VoiceEvent { speaking, sample: self.position })
    }

    /// The activity of the last frame.
    pub(super) fn activity(&self) -> VoiceActivity {
        VoiceActivity { probability: self.probability, speaking: self.speaking }
    }

    /// Returns to the initial state.
    pub(super) fn reset(&mut self) {
        self.clear();
        self.loudest = INITIAL_LOUDEST_LOG_POWER;
        (self.speaking, self.quiet, self.position) = (false, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_events_the_last_are_kept_in_the_same_memory() {
        let mut events = VoiceEvents::default();
        let capacity = events.events.capacity();
        let event = |sample| VoiceEvent { speaking: sample % 2 == 0, sample };
        let many = VoiceEvents::MAX as u64 + 3;
        (0..many).for_each(|sample| events.push(event(sample)));
        assert!(events.take().eq((3..many).map(event)));
        assert_eq!(events.take().len(), 0);
        assert_eq!(events.events.capacity(), capacity);
        events.push(event(7));
        events.clear();
        assert_eq!(events.take().next(), None);
    }

    /// With short windows, as in dictionaries of 4 to 8 ms, low bands have no bin of their own.
    #[test]
    fn bands_without_bins_have_the_fraction_of_the_one_below() {
        for bin_hertz in [15.625, 125.0, 250.0, 1_000.0] {
            let bands = SpeechBands::new((8_000.0 / bin_hertz) as usize + 1, bin_hertz);
            let SpeechFraction { highest, whole } = bands.fraction(|_| 0.5);
            assert_eq!((highest, whole <= 0.5), (0.5, true), "{bin_hertz} Hz");
        }
    }
}
