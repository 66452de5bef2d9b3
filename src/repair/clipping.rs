//! Detection of clipped samples.

/// Minimum length of a run at the peak; unclipped signals stay there for a sample or two.
const MIN_RUN: u64 = 4;
/// Minimum number of such runs; unclipped signals reach their peak once.
const MIN_RUNS: u64 = 3;
/// Minimum peak: lower ones are a few quantisation steps high, and therefore flat.
const MIN_PEAK: f32 = 0.01;

/// Counts the clipped samples of a channel, block by block: those in runs of at least four samples at its extreme, if
/// it has at least three of these runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clipping {
    above: Rail,
    below: Rail,
}

impl Clipping {
    /// Counts the clipped samples among the next samples.
    pub fn count(&mut self, samples: &[f32]) {
        for &x in samples {
            self.above.count(x);
            self.below.count(-x);
        }
    }

    /// Number of clipped samples so far.
    #[must_use]
    pub fn samples(&self) -> u64 {
        [self.above, self.below].iter().filter(|rail| rail.is_clipped()).map(|rail| rail.samples).sum()
    }
}

/// Runs at the highest sample so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rail {
    peak: f32,
    /// Length of the present run.
    run: u64,
    /// Number of runs of at least [`MIN_RUN`] samples, and number of their samples.
    runs: u64,
    samples: u64,
}

impl Default for Rail {
    fn default() -> Self {
        Self { peak: MIN_PEAK, run: 0, runs: 0, samples: 0 }
    }
}

impl Rail {
    /// The highest sample so far.
    pub(super) const fn peak(&self) -> f32 {
        self.peak
    }

    /// Whether the highest sample was reached in enough runs.
    pub(super) const fn is_clipped(&self) -> bool {
        self.runs >= MIN_RUNS
    }

    pub(super) fn count(&mut self, x: f32) {
        if x > self.peak {
            *self = Self { peak: x, run: 1, ..Self::default() };
        } else if x == self.peak {
            self.run += 1;
            match self.run {
                MIN_RUN => (self.runs, self.samples) = (self.runs + 1, self.samples + MIN_RUN),
                longer if longer > MIN_RUN => self.samples += 1,
                _ => {}
            }
        } else {
            self.run = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(samples: impl Iterator<Item = f32>) -> u64 {
        let (mut whole, mut parts) = (Clipping::default(), Clipping::default());
        let samples: Vec<f32> = samples.collect();
        whole.count(&samples);
        samples.chunks(7).for_each(|part| parts.count(part));
        assert_eq!(whole.samples(), parts.samples());
        whole.samples()
    }

    fn wave(n: usize) -> f32 {
        (0.01 * n as f32).sin() * (0.0003 * n as f32).sin()
    }

    #[test]
    fn clipped_samples_are_counted_at_both_ends() {
        let (mut highest, mut lowest) = (0, 0);
        let clipped = |n: usize| wave(n).clamp(-0.5, 0.7);
        for n in 0..40_000 {
            highest += u64::from(clipped(n) == 0.7);
            lowest += u64::from(clipped(n) == -0.5);
        }
        let found = counted((0..40_000).map(clipped));
        // Peaks that barely reach the limit do not count, as their runs are short.
        assert!(
            found <= highest + lowest && found + 100 > highest + lowest,
            "{found} of {}",
            highest + lowest
        );
        // One end alone, after a louder beginning at the other.
        let below = (0..40_000).map(|n| if n == 5 { 0.9 } else { clipped(n) });
        assert!(counted(below).abs_diff(lowest) < 100);
    }

    #[test]
    fn unclipped_samples_are_not_counted() {
        assert_eq!(counted((0..40_000).map(wave)), 0);
        assert_eq!(counted((0..40_000).map(|_| 0.0)), 0);
        // Steps of 16 bits, faint ones, and one top that is flat.
        assert_eq!(counted((0..40_000).map(|n| (wave(n) * 32_768.0).round() / 32_768.0)), 0);
        assert_eq!(counted((0..40_000).map(|n| (wave(n) * 3.0).round() / 32_768.0)), 0);
        assert_eq!(
            counted((0..40_000).map(|n| if (900..950).contains(&n) { 0.9 } else { 0.5 * wave(n) })),
            0
        );
    }
}
