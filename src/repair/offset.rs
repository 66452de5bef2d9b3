//! Removal of a constant offset. It would make steps of the edges of the recording, and dominate the lowest bins and the
//! estimated signal-to-noise ratio.

use std::ops::Range;

/// Parts of a block, whose means decide whether an offset is constant.
const PARTS: usize = 32;
/// Minimum length of a part, s.
const MIN_PART_SECONDS: f64 = 0.05;
/// Minimum number of parts.
const MIN_PARTS: usize = 8;
/// An offset is constant if every part has at least this fraction of it.
const CONSTANT: f32 = 0.5;
/// Zeros of at least this duration are digital silence, s: they have no offset.
pub(super) const SILENCE_SECONDS: f64 = 0.01;
/// Duration of the fade from one offset to the next, s: inaudible.
const FADE_SECONDS: f64 = 0.5;

/// The offset of a channel, from block to block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Offset {
    /// Offset of the previous block; `None` before the first.
    level: Option<f32>,
}

impl Offset {
    /// Removes the offset from the next block. Blocks without offset, and digital silence, stay unchanged.
    pub(crate) fn remove(&mut self, samples: &mut [f32], sample_rate: u32) {
        let sounding = sounding(samples, sample_rate);
        let found = match &sounding[..] {
            [all] if all.len() == samples.len() => self.find(samples, sample_rate),
            parts => {
                let parts: Vec<&[f32]> = parts.iter().map(|part| &samples[part.clone()]).collect();
                self.find(&parts.concat(), sample_rate)
            }
        };
        let Some(level) = found else { return };
        let before = self.level.unwrap_or(level);
        self.level = Some(level);
        if before == 0.0 && level == 0.0 {
            return;
        }
        let fade = (FADE_SECONDS * f64::from(sample_rate)) as usize;
        for n in sounding.into_iter().flatten() {
            samples[n] -= if n < fade { before + (level - before) * (n as f32 / fade as f32) } else { level };
        }
    }

    /// The offset of a block. A short one has that of the previous block.
    fn find(&self, samples: &[f32], sample_rate: u32) -> Option<f32> {
        constant_offset(samples, sample_rate).or(self.level).or_else(|| short_offset(samples, sample_rate))
    }
}

/// The samples that are not digital silence.
pub(super) fn sounding(samples: &[f32], sample_rate: u32) -> Vec<Range<usize>> {
    let shortest = ((SILENCE_SECONDS * f64::from(sample_rate)) as usize).max(1);
    let mut sounding = Vec::new();
    let (mut start, mut end) = (0, 0);
    for zeros in samples.chunk_by(|a, b| (*a == 0.0) == (*b == 0.0)) {
        let next = end + zeros.len();
        if zeros[0] == 0.0 && zeros.len() >= shortest {
            sounding.push(start..end);
            start = next;
        }
        end = next;
    }
    sounding.push(start..end);
    sounding.retain(|part| !part.is_empty());
    sounding
}

/// The offset of a block, 0 if it is not constant; `None` if the block is too short.
fn constant_offset(samples: &[f32], sample_rate: u32) -> Option<f32> {
    let shortest = (MIN_PART_SECONDS * f64::from(sample_rate)) as usize;
    let parts = (samples.len() / shortest).min(PARTS);
    (parts >= MIN_PARTS).then(|| constant_part(&mut means(samples, samples.len() / parts)))
}

/// The offset of a short block if it is most of the power; `None` else, and if the block is too short.
fn short_offset(samples: &[f32], sample_rate: u32) -> Option<f32> {
    let length = (PART_SECONDS * f64::from(sample_rate)) as usize;
    let mut means = means(samples, length.max(1));
    let power = samples.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / samples.len() as f64;
    let level = (means.len() >= FIRST_PARTS).then(|| constant_part(&mut means))?;
    (f64::from(level).powi(2) > FIRST_FRACTION * power).then_some(level)
}

/// The means of parts of `length` samples each.
fn means(samples: &[f32], length: usize) -> Vec<f32> {
    let mean = |part: &[f32]| (part.iter().map(|&x| f64::from(x)).sum::<f64>() / part.len() as f64) as f32;
    samples.chunks_exact(length).map(mean).collect()
}

/// The offset that parts with these means (at least one) have in common, 0 if there is none. Sorts them.
fn constant_part(means: &mut [f32]) -> f32 {
    means.sort_unstable_by(f32::total_cmp);
    let (lowest, median, highest) = (means[0], means[means.len() / 2], means[means.len() - 1]);
    let nearest = if median > 0.0 { lowest } else { -highest };
    if nearest > CONSTANT * median.abs() { median } else { 0.0 }
}

/// Parts of real-time audio, of which the means are compared.
const LIVE_PARTS: usize = 16;
/// Their length, and that of the parts of a short block, s.
const PART_SECONDS: f64 = 0.016;
/// Number of parts that are sufficient at the start, and in a short block.
const FIRST_PARTS: usize = 3;
/// Minimum fraction of the power that is offset, there: noise has some by chance.
const FIRST_FRACTION: f64 = 0.5;
/// Time constant of the fade from one offset to the next in real-time audio, s.
const LIVE_FADE_SECONDS: f64 = 0.1;
/// Minimum offset of real-time audio.
const MIN_OFFSET: f32 = 1e-4;
/// Offsets closer than this are equal.
const SAME: f32 = 1e-6;
/// So many zeros in a row are digital silence in real-time audio: sound with an offset crosses zero, and does not stay there.
const SILENT_SAMPLES: usize = 8;

/// The offset of a channel in real-time audio, over the last quarter of a second without digital silence, as of a muted
/// microphone. Allocates nothing.
#[derive(Debug, Clone)]
pub(crate) struct LiveOffset {
    /// Samples of a part.
    part: usize,
    /// Step per sample towards the next offset, as a fraction of the distance.
    step: f32,
    sum: f64,
    summed: usize,
    /// Sum of the squares of the first parts.
    power: f64,
    /// Means of the last parts.
    means: [f32; LIVE_PARTS],
    /// Number of parts so far.
    parts: usize,
    /// Zeros up to the last sample.
    zeros: usize,
    level: f32,
    goal: f32,
}

impl LiveOffset {
    /// For a sample rate in Hz.
    pub(crate) fn new(sample_rate: u32) -> Self {
        let rate = f64::from(sample_rate);
        Self {
            part: ((PART_SECONDS * rate).round() as usize).max(1),
            step: (1.0 - libm::exp(-1.0 / (LIVE_FADE_SECONDS * rate))) as f32,
            sum: 0.0,
            summed: 0,
            power: 0.0,
            means: [0.0; LIVE_PARTS],
            parts: 0,
            zeros: 0,
            level: 0.0,
            goal: 0.0,
        }
    }

    /// Removes the offset from the next samples. Audio without offset stays unchanged, and digital silence stays silent, but for
    /// fewer than [`SILENT_SAMPLES`] zeros at the end of a call.
    ///
    /// The first offset is not faded in. It is returned with the number of earlier samples, from which the caller has to
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

    /// Takes the last zeros, but one, out of the present part. What came before silence is no part of the first estimate: its
    /// parts follow each other.
    fn begin_silence(&mut self) {
        self.summed = self.summed.saturating_sub(SILENT_SAMPLES - 1);
        if self.parts < FIRST_PARTS {
            (self.sum, self.summed, self.power, self.parts) = (0.0, 0, 0.0, 0);
        }
    }

    /// Re-estimates the offset at the end of a part; returns whether it is the first one.
    fn compare(&mut self) -> bool {
        self.means[self.parts % LIVE_PARTS] = (self.sum / self.part as f64) as f32;
        self.parts += 1;
        if self.parts == 2 * LIVE_PARTS {
            self.parts = LIVE_PARTS;
        }
        (self.sum, self.summed) = (0.0, 0);
        let mut sorted = self.means;
        let is_first = self.parts == FIRST_PARTS;
        if is_first || self.parts >= LIVE_PARTS {
            let level = constant_part(&mut sorted[..self.parts.min(LIVE_PARTS)]);
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

    /// The samples without their offset, in hops of 100, and what was found at the start.
    fn live(samples: &[f32]) -> (Vec<f32>, Option<f32>) {
        let (mut offset, mut done, mut start) = (LiveOffset::new(16_000), samples.to_vec(), None);
        for hop in 0..samples.len() / 100 {
            let (before, rest) = done.split_at_mut(100 * hop);
            if let Some((level, earlier)) = offset.remove(&mut rest[..100]) {
                // Nothing but silence at the start is without the offset.
                let (silent, before) = before.split_at_mut(before.len() - earlier);
                assert!(start.is_none() && silent.iter().all(|x| *x == 0.0));
                before.iter_mut().for_each(|x| *x -= level);
                start = Some(level);
            }
        }
        (done, start)
    }

    #[test]
    fn live_an_offset_is_known_at_the_start_and_followed_without_a_step() {
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
    fn live_digital_silence_stays_and_hides_no_offset() {
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
    fn live_sound_without_an_offset_stays_as_it_is() {
        for frequency in [2.5, 16.0, 50.0, 100.0, 1_000.0_f32] {
            let samples: Vec<f32> =
                (0..48_000).map(|n| 0.3 * (TAU * frequency * n as f32 / 16_000.0).cos()).collect();
            let (done, found) = live(&samples);
            // What is slower than a voice may be taken for an offset before there is anything to hear.
            if frequency > 10.0 {
                assert!(done == samples && found.is_none(), "{frequency} Hz");
            } else {
                assert!(done[32_000..] == samples[32_000..], "{frequency} Hz");
            }
        }
    }

    #[test]
    fn only_what_is_constant_is_an_offset() {
        let rate = 8_000;
        let hum = |offset: f32| -> Vec<f32> {
            (0..16_000).map(|n| offset + 0.3 * (n as f32 * 0.04).sin()).collect()
        };
        for offset in [0.2, -0.1, 1.0] {
            let mut samples = hum(offset);
            Offset::default().remove(&mut samples, rate);
            assert!(samples.iter().zip(hum(0.0)).all(|(a, b)| (a - b).abs() < 0.02), "{offset}");
        }
        // None, one that comes in the middle, and one of too little to tell: in too few samples, or less than the sound.
        let late = |n: usize| if n < 8_000 { 0.01 } else { 0.2 };
        let late = (0..16_000).map(late).collect();
        for samples in [hum(0.0), late, vec![0.2; 300], hum(0.1)[..1_000].to_vec(), hum(0.0)[..500].to_vec()]
        {
            let mut same = samples.clone();
            Offset::default().remove(&mut same, rate);
            assert_eq!(same, samples);
        }
        let mut short = hum(-0.5)[..1_000].to_vec();
        Offset::default().remove(&mut short, rate);
        assert!(short.iter().zip(hum(0.0)).all(|(a, b)| (a - b).abs() < 0.05));
    }

    #[test]
    fn digital_silence_hides_no_offset_and_stays() {
        let sound = |n: usize| 0.3 * (n as f32 * 0.04).sin();
        // Sections of 0.2 s of sound and of silence in turn, behind a whole block of silence.
        let is_silent = |n: usize| (n / 1_600).is_multiple_of(2);
        let mut offset = Offset::default();
        offset.remove(&mut vec![0.0; 16_000], 8_000);
        for _ in 0..2 {
            let mut samples: Vec<f32> =
                (0..16_000).map(|n| if is_silent(n) { 0.0 } else { 0.2 + sound(n) }).collect();
            offset.remove(&mut samples, 8_000);
            for (n, &x) in samples.iter().enumerate() {
                let expected = if is_silent(n) { 0.0 } else { sound(n) };
                assert!((x - expected).abs() < 0.02 && !(is_silent(n) && x != 0.0), "{n}: {x} {expected}");
            }
        }
    }

    #[test]
    fn offsets_of_blocks_join_without_a_step() {
        let mut offset = Offset::default();
        let mut joined = Vec::new();
        for level in [0.1, 0.3, 0.3, -0.2_f32] {
            let mut block = vec![level; 16_000];
            offset.remove(&mut block, 8_000);
            joined.extend(block.into_iter().map(|x| level - x));
        }
        let mut rest = vec![-0.2; 100];
        offset.remove(&mut rest, 8_000);
        joined.extend(rest.into_iter().map(|x| -0.2 - x));
        assert!(joined.windows(2).all(|pair| (pair[1] - pair[0]).abs() < 2e-4));
    }
}
