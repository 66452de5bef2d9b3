//! A constant offset, as cheap converters add: the edges of the recording would be steps, and the lowest bins, and with
//! them the estimated ratio of speech to noise, would hold nothing else.

/// Parts of a block whose means tell whether an offset is constant,
const PARTS: usize = 32;
/// their least length, s,
const LEAST_SECONDS: f64 = 0.05;
/// and their least number.
const LEAST_PARTS: usize = 8;
/// An offset is constant if every part has at least this share of it.
const CONSTANT: f32 = 0.5;
/// Time over which one offset goes over into the next, s: too slow to be heard.
const FADE_SECONDS: f64 = 0.5;

/// The offset of a channel, from block to block.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Offset {
    /// That of the block before; none before the first.
    level: Option<f32>,
}

impl Offset {
    /// Takes the offset out of the next block. Blocks without one stay as they are.
    pub(crate) fn remove(&mut self, samples: &mut [f32], sample_rate: u32) {
        let found = constant_offset(samples, sample_rate);
        // A short rest has the offset of what came before.
        let Some(level) = found.or(self.level) else { return };
        let before = self.level.unwrap_or(level);
        self.level = Some(level);
        if before == 0.0 && level == 0.0 {
            return;
        }
        let fade = (FADE_SECONDS * f64::from(sample_rate)) as usize;
        for (n, x) in samples.iter_mut().enumerate() {
            *x -= if n < fade { before + (level - before) * (n as f32 / fade as f32) } else { level };
        }
    }
}

/// The offset of a block, 0 if it is not constant; `None` if the block is too short to tell.
fn constant_offset(samples: &[f32], sample_rate: u32) -> Option<f32> {
    let least = (LEAST_SECONDS * f64::from(sample_rate)) as usize;
    let parts = (samples.len() / least).min(PARTS);
    if parts < LEAST_PARTS {
        return None;
    }
    let length = samples.len() / parts;
    let mean = |part: &[f32]| (part.iter().map(|&x| f64::from(x)).sum::<f64>() / part.len() as f64) as f32;
    let mut means: Vec<f32> = samples.chunks_exact(length).map(mean).collect();
    means.sort_by(f32::total_cmp);
    let (lowest, median, highest) = (means[0], means[means.len() / 2], means[means.len() - 1]);
    let nearest = if median > 0.0 { lowest } else { -highest };
    Some(if nearest > CONSTANT * median.abs() { median } else { 0.0 })
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
        // None, one that comes in the middle, and one of too little to tell.
        let late = |n: usize| if n < 8_000 { 0.0 } else { 0.2 };
        for samples in [hum(0.0), (0..16_000).map(late).collect(), vec![0.2; 1_000]] {
            let mut same = samples.clone();
            Offset::default().remove(&mut same, rate);
            assert_eq!(same, samples);
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
