//! Removal of a constant offset, which would cause steps at the edges of the recording, and dominate the lowest bins
//! and the estimated signal-to-noise ratio.

use std::ops::Range;

/// Number of parts of a block, whose means decide whether an offset is constant.
const PARTS: usize = 32;
/// Minimum length of a part, s.
const MIN_PART_SECONDS: f64 = 0.05;
/// Minimum number of parts.
const MIN_PARTS: usize = 8;
/// An offset is constant if the mean of every part is more than this fraction of it.
const CONSTANT: f32 = 0.5;
/// Minimum duration of zeros that are digital silence, s. Digital silence has no offset.
pub(super) const SILENCE_SECONDS: f64 = 0.01;
/// Duration of the fade from one offset to the next, s: inaudible.
const FADE_SECONDS: f64 = 0.5;
/// Length of the parts of real-time audio, and of those of a short block, s.
pub(super) const PART_SECONDS: f64 = 0.016;
/// Number of parts that suffice at the start, and in a short block.
pub(super) const FIRST_PARTS: usize = 3;
/// Minimum fraction of the power that is offset, at the start and in a short block: noise has a small offset by chance.
pub(super) const FIRST_FRACTION: f64 = 0.5;

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

    /// Returns the offset of a block. A short block has the offset of the previous block, if any.
    fn find(&self, samples: &[f32], sample_rate: u32) -> Option<f32> {
        constant_offset(samples, sample_rate).or(self.level).or_else(|| short_offset(samples, sample_rate))
    }
}

/// Returns the ranges of samples that are not digital silence.
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

/// Returns the offset of a block, 0 if it is not constant; `None` if the block is too short.
fn constant_offset(samples: &[f32], sample_rate: u32) -> Option<f32> {
    let shortest = (MIN_PART_SECONDS * f64::from(sample_rate)) as usize;
    let parts = (samples.len() / shortest).min(PARTS);
    (parts >= MIN_PARTS).then(|| constant_part(&mut means(samples, samples.len() / parts)))
}

/// Returns the offset of a short block if it has most of the power; `None` otherwise, and if the block is too short.
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

/// Returns the common offset of parts with these means (at least one), 0 without one. Sorts the means.
pub(super) fn constant_part(means: &mut [f32]) -> f32 {
    means.sort_unstable_by(f32::total_cmp);
    let (lowest, median, highest) = (means[0], means[means.len() / 2], means[means.len() - 1]);
    let nearest = if median > 0.0 { lowest } else { -highest };
    if nearest > CONSTANT * median.abs() { median } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // No offset, one that starts in the middle, and undetectable ones: in too few samples, or with less power than
        // the sound.
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
        // Sections of 0.2 s of silence and of sound alternate, after a whole block of silence.
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
