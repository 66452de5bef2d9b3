//! Outliers: invalid samples of floating-point files.

use std::borrow::Cow;

/// Quantile of a section's samples that is its level.
const RANK: f64 = 0.99;
/// Minimum ratio of an outlier to the section's level.
const OVER_LEVEL: f32 = 100.0;
/// Minimum of an outlier, in units of full scale: integer recordings have none.
const OVER_FULL_SCALE: f32 = 16.0;
/// Larger samples overflow single precision in a transform.
const MAX_AMPLITUDE: f32 = 1e30;

/// The samples with every outlier linearly interpolated, and the number of runs of outliers.
pub(super) fn remove(samples: &[f32]) -> (Cow<'_, [f32]>, usize) {
    if samples.iter().all(|x| x.abs() <= OVER_FULL_SCALE) {
        return (Cow::Borrowed(samples), 0);
    }
    let mut moduli: Vec<f32> = samples.iter().map(|x| x.abs()).collect();
    let at = ((moduli.len() - 1) as f64 * RANK) as usize;
    let level = *moduli.select_nth_unstable_by(at, f32::total_cmp).1;
    let limit = (OVER_LEVEL * level).max(OVER_FULL_SCALE);
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
        assert_eq!(remove(&loud), (Cow::Borrowed(loud.as_slice()), 0));
        assert!(remove(&[3e38, 3e38]).0.iter().all(|x| *x == MAX_AMPLITUDE));
        assert!(matches!(remove(&sine).0, Cow::Borrowed(_)));
    }
}
