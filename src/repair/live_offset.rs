//! Causal removal of a constant offset for real-time audio.

use super::offset::{FIRST_FRACTION, FIRST_PARTS, PART_SECONDS, constant_part};

/// Number of parts whose means are compared.
const PARTS: usize = 16;
/// Time constant of the fade from one offset to the next, s.
const FADE_SECONDS: f64 = 0.1;
/// Minimum offset.
const MIN_OFFSET: f32 = 1e-4;
/// Offsets closer than this are equal.
const SAME: f32 = 1e-6;
/// Number of successive zeros that are digital silence: sound with an offset crosses zero without staying there.
const SILENT_SAMPLES: usize = 8;

/// Removal of the offset of a channel in real-time audio, estimated over the last quarter of a second. Digital silence,
/// as of a muted microphone, is excluded. Allocates nothing.
#[derive(Debug, Clone)]
pub(crate) struct LiveOffset {
    /// Number of samples of a part.
    part: usize,
    /// Step per sample towards the next offset, as a fraction of the distance.
    step: f32,
    sum: f64,
    summed: usize,
    /// Sum of the squares of the first parts.
    power: f64,
    /// Means of the last parts.
    means: [f32; PARTS],
    /// Number of parts so far.
    parts: usize,
    /// Number of zeros up to the last sample.
    zeros: usize,
    level: f32,
    goal: f32,
}

impl LiveOffset {
    /// Creates a repair for a sample rate in Hz.
    pub(crate) fn new(sample_rate: u32) -> Self {
        let rate = f64::from(sample_rate);
        Self {
            part: ((PART_SECONDS * rate).round() as usize).max(1),
            step: (1.0 - libm::exp(-1.0 / (FADE_SECONDS * rate))) as f32,
            sum: 0.0,
            summed: 0,
            power: 0.0,
            means: [0.0; PARTS],
            parts: 0,
            zeros: 0,
            level: 0.0,
            goal: 0.0,
        }
    }

    /// Removes the offset from the next samples. Audio without an offset stays unchanged. Digital silence stays silent,
    /// except for fewer than [`SILENT_SAMPLES`] zeros at the end of a call.
    ///
    /// The first offset is not faded in. It is returned with the number of earlier samples from which the caller must
    /// subtract it.
    pub(crate) fn remove(&mut self, samples: &mut [f32]) -> Option<(f32, usize)> {
        let mut found = None;
        for n in 0..samples.len() {
            self.zeros = if samples[n] == 0.0 { (self.zeros + 1).min(SILENT_SAMPLES + 1) } else { 0 };
            if self.zeros >= SILENT_SAMPLES {
                if self.zeros == SILENT_SAMPLES {
                    samples[(n + 1).saturating_sub(SILENT_SAMPLES)..n].fill(0.0);
                    self.begin_silence();
                }
                continue;
            }
            self.sum += f64::from(samples[n]);
            if self.parts < FIRST_PARTS {
                self.power += f64::from(samples[n]).powi(2);
            }
            self.summed += 1;
            if self.summed == self.part && self.compare() {
                self.level = self.goal;
                samples[..n].iter_mut().for_each(|x| *x -= self.goal);
                found = Some((self.goal, (FIRST_PARTS * self.part).saturating_sub(n + 1)));
            }
            let distance = self.goal - self.level;
            self.level = if distance.abs() < SAME { self.goal } else { self.level + self.step * distance };
            samples[n] -= self.level;
        }
        found
    }

    /// Excludes the previous zeros from the present part. Before the first estimate, discards all parts, as the
    /// estimate requires successive parts.
    fn begin_silence(&mut self) {
        self.summed = self.summed.saturating_sub(SILENT_SAMPLES - 1);
        if self.parts < FIRST_PARTS {
            (self.sum, self.summed, self.power, self.parts) = (0.0, 0, 0.0, 0);
        }
    }

    /// Re-estimates the offset at the end of a part; returns whether it is the first offset.
    fn compare(&mut self) -> bool {
        self.means[self.parts % PARTS] = (self.sum / self.part as f64) as f32;
        self.parts += 1;
        if self.parts == 2 * PARTS {
            self.parts = PARTS;
        }
        (self.sum, self.summed) = (0.0, 0);
        let mut sorted = self.means;
        let is_first = self.parts == FIRST_PARTS;
        if is_first || self.parts >= PARTS {
            let level = constant_part(&mut sorted[..self.parts.min(PARTS)]);
            let min_power = FIRST_FRACTION * self.power / (FIRST_PARTS * self.part) as f64;
            let is_one = level.abs() >= MIN_OFFSET && !(is_first && f64::from(level).powi(2) < min_power);
            self.goal = if is_one { level } else { 0.0 };
        }
        is_first && self.goal != 0.0
    }

    /// Returns to the initial state.
    pub(crate) fn reset(&mut self) {
        (self.sum, self.summed, self.power, self.parts, self.zeros) = (0.0, 0, 0.0, 0, 0);
        (self.level, self.goal) = (0.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f32::consts::TAU;

    /// Returns the samples without their offset, in hops of 100, and the first offset.
    fn live(samples: &[f32]) -> (Vec<f32>, Option<f32>) {
        let (mut offset, mut done, mut start) = (LiveOffset::new(16_000), samples.to_vec(), None);
        for hop in 0..samples.len() / 100 {
            let (before, rest) = done.split_at_mut(100 * hop);
            if let Some((level, earlier)) = offset.remove(&mut rest[..100]) {
                // The samples before the `earlier` ones are silence at the start.
                let (silent, before) = before.split_at_mut(before.len() - earlier);
                assert!(start.is_none() && silent.iter().all(|x| *x == 0.0));
                before.iter_mut().for_each(|x| *x -= level);
                start = Some(level);
            }
        }
        (done, start)
    }

    #[test]
    fn an_offset_is_known_at_the_start_and_followed_without_a_step() {
        let voice = |n: usize| 0.1 * (n as f32 * 0.06).sin() * (1.0 + (n as f32 * 0.002).sin());
        for level in [0.3, -0.5] {
            let mut samples: Vec<f32> = (0..32_000).map(|n| level + voice(n)).collect();
            samples[16_000..].iter_mut().for_each(|x| *x -= 0.5 * level);
            let (done, found) = live(&samples);
            assert!(found.is_some_and(|found| (found - level).abs() < 0.03), "{found:?}");
            let error: Vec<f32> = done.iter().enumerate().map(|(n, x)| x - voice(n)).collect();
            assert!(error[..16_000].iter().all(|e| e.abs() < 0.03), "{level}");
            assert!(error[28_000..].iter().all(|e| e.abs() < 0.03), "{level}");
            // The removed offset changes slowly.
            let taken: Vec<f32> = samples.iter().zip(&done).map(|(x, y)| x - y).collect();
            assert!(taken.windows(2).all(|pair| (pair[1] - pair[0]).abs() < 1e-3), "{level}");
        }
    }

    /// As of a microphone that starts late, and is muted.
    #[test]
    fn digital_silence_stays_and_hides_no_offset() {
        let voice = |n: usize| 0.1 * (n as f32 * 0.06).sin() * (1.0 + (n as f32 * 0.002).sin());
        // Silence ends within a hop, and begins there.
        let is_silent = |n: usize| n < 8_050 || (16_050..32_020).contains(&n) || n % 4_000 < 30;
        for level in [0.3, -0.2] {
            let samples: Vec<f32> =
                (0..48_000).map(|n| if is_silent(n) { 0.0 } else { level + voice(n) }).collect();
            let (done, found) = live(&samples);
            assert!(found.is_some_and(|found| (found - level).abs() < 0.03), "{level}: {found:?}");
            for (n, &x) in done.iter().enumerate() {
                let error = if is_silent(n) { x.abs() } else { (x - voice(n)).abs() };
                assert!(error < if is_silent(n) { 1e-9 } else { 0.03 }, "{level}, {n}: {x}");
            }
        }
    }

    #[test]
    fn sound_without_an_offset_stays_as_it_is() {
        for frequency in [2.5, 16.0, 50.0, 100.0, 1_000.0_f32] {
            let samples: Vec<f32> =
                (0..48_000).map(|n| 0.3 * (TAU * frequency * n as f32 / 16_000.0).cos()).collect();
            let (done, found) = live(&samples);
            // At the start, a sound slower than a voice may count as an offset.
            if frequency > 10.0 {
                assert!(done == samples && found.is_none(), "{frequency} Hz");
            } else {
                assert!(done[32_000..] == samples[32_000..], "{frequency} Hz");
            }
        }
    }
}
