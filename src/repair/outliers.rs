//! Outliers: invalid samples of floating-point files.

use std::borrow::Cow;

/// Quantile of a section's samples that is its level.
const RANK: f64 = 0.99;
/// Minimum ratio of an outlier to the section's level.
const OVER_LEVEL: f32 = 100.0;
/// Minimum of an outlier, in units of full scale: integer recordings have none.
const OVER_FULL_SCALE: f32 = 16.0;
/// Maximum modulus of a sample, 600 dB above full scale. Larger samples overflow single precision in sums, as in a
/// transform.
pub(crate) const MAX_AMPLITUDE: f32 = 1e30;
/// Number of samples below which a section is short: a few outliers can reach its quantile.
const SHORT: usize = 10_000;

/// Removal of the outliers of a channel, section by section.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outliers {
    /// The highest level of the sections so far; `None` before the first.
    level: Option<f32>,
}

impl Outliers {
    /// Removes the outliers of the next section, like [`remove_outliers`](super::remove_outliers). In a short section,
    /// the level of the earlier sections counts if it is lower.
    pub(crate) fn remove<'a>(&mut self, samples: &'a [f32]) -> (Cow<'a, [f32]>, usize) {
        let peak = samples.iter().fold(0.0_f32, |peak, x| peak.max(x.abs()));
        let before = self.level;
        let level = if peak <= OVER_FULL_SCALE { peak } else { quantile(samples) };
        self.level = Some(before.map_or(level, |before| before.max(level)));
        if peak <= OVER_FULL_SCALE {
            return (Cow::Borrowed(samples), 0);
        }
        let before = before.filter(|_| samples.len() < SHORT);
        interpolated(samples, before.map_or(level, |before| before.min(level)))
    }
}

/// The level of a section.
fn quantile(samples: &[f32]) -> f32 {
    let mut moduli: Vec<f32> = samples.iter().map(|x| x.abs()).collect();
    let at = ((moduli.len() - 1) as f64 * RANK) as usize;
    *moduli.select_nth_unstable_by(at, f32::total_cmp).1
}

/// The samples with every outlier over a level linearly interpolated, and the number of runs of outliers.
fn interpolated(samples: &[f32], level: f32) -> (Cow<'_, [f32]>, usize) {
    let limit = (OVER_LEVEL * level).max(OVER_FULL_SCALE);
    if samples.iter().all(|x| x.abs() <= limit.min(MAX_AMPLITUDE)) {
        return (Cow::Borrowed(samples), 0);
    }
    let is_outlier = |x: &f32| x.abs() > limit;
    let mut repaired: Vec<f32> = samples.to_vec();
    let (mut count, mut start) = (0, 0);
    while let Some(offset) = samples[start..].iter().position(is_outlier) {
        let first = start + offset;
        let length = samples[first..].iter().take_while(|x| is_outlier(x)).count();
        let end = first + length;
        // Without a neighbour on one side, the value of the other is held.
        let right = samples.get(end).copied();
        let left = first.checked_sub(1).map(|before| samples[before]);
        let (left, right) = (left.or(right).unwrap_or(0.0), right.or(left).unwrap_or(0.0));
        for (place, x) in (1..).zip(&mut repaired[first..end]) {
            *x = left + (right - left) * (place as f32 / (length + 1) as f32);
        }
        (count, start) = (count + 1, end);
    }
    repaired.iter_mut().for_each(|x| *x = x.clamp(-MAX_AMPLITUDE, MAX_AMPLITUDE));
    (Cow::Owned(repaired), count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remove(samples: &[f32]) -> (Cow<'_, [f32]>, usize) {
        Outliers::default().remove(samples)
    }

    #[test]
    fn outliers_are_interpolated_and_other_samples_stay() {
        let sine: Vec<f32> = (0..1_000).map(|n| 0.5 * (n as f32 * 0.01).sin()).collect();
        let mut x = sine.clone();
        (x[0], x[500], x[501], x[999]) = (-3e38, 1e9, f32::MAX, 40.0);
        let (repaired, count) = remove(&x);
        assert_eq!(count, 2, "40 is less than a hundred times the level");
        assert!(repaired[..999].iter().zip(&sine).all(|(a, b)| (a - b).abs() < 0.02));
        assert_eq!(repaired[999], 40.0);
        // Loud samples are no outliers, and outliers alone are limited.
        let loud: Vec<f32> = sine.iter().map(|x| x * 1e18).collect();
        assert!(matches!(remove(&loud), (Cow::Borrowed(same), 0) if same == loud));
        assert!(remove(&[3e38, 3e38]).0.iter().all(|x| *x == MAX_AMPLITUDE));
        assert!(matches!(remove(&sine).0, Cow::Borrowed(_)));
    }

    #[test]
    fn a_short_last_section_may_consist_of_outliers() {
        let sine: Vec<f32> = (0..20_000).map(|n| 0.5 * (n as f32 * 0.01).sin()).collect();
        for length in [1, 3, 50] {
            let mut last = sine[..length].to_vec();
            last[length.saturating_sub(3)..].fill(1e9);
            let mut outliers = Outliers::default();
            assert_eq!(outliers.remove(&sine).1, 0);
            let (repaired, count) = outliers.remove(&last);
            assert_eq!(count, 1, "{length} samples");
            assert!(repaired.iter().all(|x| x.abs() < 0.51), "{length} samples: {repaired:?}");
        }
        // A change to sections in integer units is no outlier: the samples stay unchanged.
        let integers: Vec<f32> = sine.iter().map(|x| x * 32_768.0).collect();
        let mut outliers = Outliers::default();
        for section in [&sine[..], &integers, &integers[..1_000]] {
            assert_eq!(outliers.remove(section), (Cow::Borrowed(section), 0));
        }
    }
}
