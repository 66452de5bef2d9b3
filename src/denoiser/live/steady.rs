//! Steady sounds above 8 kHz, such as the whine of a screen or a power supply.
//!
//! The causal network ends at 8 kHz, and its highest band controls the gain above: a tone there would be kept during
//! speech. Speech has no sound above 8 kHz that lasts for seconds. Power that stays above a level for that long is
//! therefore noise.

use crate::kernels::vector;

/// Minimum duration of a steady sound, s.
const SECONDS: f64 = 1.6;
/// Number of parts of that duration; the minimum is taken over the last four to five parts.
const PARTS: usize = 4;
/// Time constants of the power whose minimum is taken, and of the power compared with that minimum, s.
const MINIMUM_SECONDS: f64 = 0.05;
const PRESENT_SECONDS: f64 = 0.02;
/// Ratio of mean power to minimum: between that of a tone, 1, and that of white noise. With 2, fricatives are 0.1 dB
/// weaker.
const OVER_MINIMUM: f32 = 1.5;

/// Attenuates sounds that are steady, frame by frame and without allocation: minimum statistics (Martin 2001, "Noise power
/// spectral density estimation based on optimal smoothing and minimum statistics").
#[derive(Debug, Clone)]
pub(super) struct SteadySounds {
    keep_minimum: f32,
    keep_present: f32,
    /// Smoothed powers.
    smoothed: Vec<f32>,
    present: Vec<f32>,
    /// Minima of the present part and of the last [`PARTS`] parts, a ring buffer of rows of bins.
    minima: Vec<f32>,
    /// Row of the present part, its remaining frames, and the number of frames of a part.
    row: usize,
    left: usize,
    frames: usize,
}

impl SteadySounds {
    /// An estimate for frames of `bins` bins, `frame_seconds` apart.
    pub(super) fn new(bins: usize, frame_seconds: f64) -> Self {
        let frames = ((SECONDS / PARTS as f64 / frame_seconds).round() as usize).max(1);
        let keep = |time: f64| libm::exp(-frame_seconds / time) as f32;
        Self {
            keep_minimum: keep(MINIMUM_SECONDS),
            keep_present: keep(PRESENT_SECONDS),
            smoothed: vec![0.0; bins],
            present: vec![0.0; bins],
            minima: vec![0.0; (PARTS + 1) * bins],
            row: 0,
            left: frames,
            frames,
        }
    }

    /// Lowers the gains of the next frame, whose powers are `power`, to those of a Wiener filter for its steady part.
    pub(super) fn attenuate(&mut self, power: &[f32], gain: &mut [f32]) {
        let bins = self.smoothed.len();
        let (keep_minimum, keep_present) = (self.keep_minimum, self.keep_present);
        vector::dispatch(
            #[inline(always)]
            || {
                let smoothed = self.smoothed.iter_mut().zip(&mut self.present).zip(power);
                for ((slow, quick), power) in smoothed {
                    *slow = power + keep_minimum * (*slow - power);
                    *quick = power + keep_present * (*quick - power);
                }
                let lowest = &mut self.minima[self.row * bins..][..bins];
                lowest
                    .iter_mut()
                    .zip(&self.smoothed)
                    .for_each(|(lowest, power)| *lowest = lowest.min(*power));
                for (bin, (gain, present)) in gain.iter_mut().zip(&self.present).enumerate() {
                    let minima = (0..=PARTS).map(|row| self.minima[row * bins + bin]);
                    let minimum = minima.fold(f32::INFINITY, f32::min);
                    *gain =
                        gain.min((1.0 - OVER_MINIMUM * minimum / present.max(f32::MIN_POSITIVE)).max(0.0));
                }
            },
        );
        self.left -= 1;
        if self.left == 0 {
            self.left = self.frames;
            self.row = (self.row + 1) % (PARTS + 1);
            self.minima[self.row * bins..][..bins].fill(f32::INFINITY);
        }
    }

    /// Resets to the initial state, without steady sounds.
    pub(super) fn reset(&mut self) {
        self.smoothed.fill(0.0);
        self.present.fill(0.0);
        self.minima.fill(0.0);
        (self.row, self.left) = (0, self.frames);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINS: usize = 2;

    /// The gains of the last of `frames` frames with this power in both bins, from gains of 1 and 0.5.
    fn last_gain(steady: &mut SteadySounds, frames: usize, power: impl Fn(usize) -> f32) -> [f32; BINS] {
        let mut gain = [0.0; BINS];
        for frame in 0..frames {
            gain = [1.0, 0.5];
            steady.attenuate(&[power(frame); BINS], &mut gain);
        }
        gain
    }

    #[test]
    fn what_lasts_for_two_seconds_is_removed_and_what_stops_is_kept() {
        let mut steady = SteadySounds::new(BINS, 0.008);
        // A sound counts as speech until it has lasted for the minimum duration.
        assert_eq!(last_gain(&mut steady, 150, |_| 1.0), [1.0, 0.5]);
        assert_eq!(last_gain(&mut steady, 110, |_| 1.0), [0.0, 0.0]);
        // Speech over it: 20 dB more, for 0.2 s.
        let gain = last_gain(&mut steady, 25, |_| 100.0);
        assert!(gain[0] > 0.95 && gain[1] == 0.5, "{gain:?}");
        // A second later the steady sound alone is still removed.
        assert_eq!(last_gain(&mut steady, 125, |_| 1.0), [0.0, 0.0]);
        // Bursts of 0.4 s with pauses of 0.2 s, in which the smoothed power falls to exp(-4), are kept: 1 - 1.5 exp(-4) = 0.973.
        steady.reset();
        let gain = last_gain(&mut steady, 75 * 10 - 30, |frame| if frame % 75 < 50 { 1.0 } else { 1e-6 });
        assert!(gain[0] > 0.97 && gain[1] == 0.5, "{gain:?}");
    }

    #[test]
    fn after_a_reset_it_is_as_new() {
        let mut used = SteadySounds::new(BINS, 0.008);
        last_gain(&mut used, 333, |_| 1.0);
        used.reset();
        let mut new = SteadySounds::new(BINS, 0.008);
        for frame in 0..300 {
            assert_eq!(last_gain(&mut used, 1, |_| 1.0), last_gain(&mut new, 1, |_| 1.0), "frame {frame}");
        }
    }

    #[test]
    fn silence_and_narrow_recordings_are_left_as_they_are() {
        let mut steady = SteadySounds::new(BINS, 0.008);
        assert_eq!(last_gain(&mut steady, 500, |_| 0.0), [1.0, 0.5]);
        SteadySounds::new(0, 0.008).attenuate(&[], &mut []);
    }
}
