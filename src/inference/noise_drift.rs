//! Drifting noise: a smooth field over bins and frames that multiplies its dispersion.

use crate::model::NoiseDrift;

/// The neighbourhood over which the statistics of the field are summed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Smoothing {
    bins: usize,
    half_frames: usize,
    half_bins: usize,
}

impl Smoothing {
    /// For frames `frame_seconds` apart and bins `bin_hertz` apart.
    pub(super) fn new(drift: &NoiseDrift, bins: usize, frame_seconds: f64, bin_hertz: f64) -> Self {
        let half_frames = (drift.seconds / frame_seconds).round() as usize;
        let half_bins = (drift.hertz / bin_hertz).round() as usize;
        Self { bins, half_frames, half_bins }
    }

    /// Sums two statistics (bins x frames) over the neighbouring bins of each bin.
    pub(super) fn over_bins(&self, statistics: [&mut [f32]; 2]) {
        statistics.into_iter().for_each(|values| sum_over_bins(values, self.bins, self.half_bins));
    }

    /// Joins the tiles of two statistics (bins x frames) and sums each over neighbouring frames, twice for a window without
    /// edges.
    pub(super) fn over_frames<'a>(
        &self,
        parts: impl Iterator<Item = (&'a Vec<f32>, &'a Vec<f32>)>,
    ) -> (Vec<f32>, Vec<f32>) {
        let (first, second): (Vec<&[f32]>, Vec<&[f32]>) =
            parts.map(|(first, second)| (first.as_slice(), second.as_slice())).unzip();
        let smooth = |parts: &[&[f32]]| {
            let mut values = parts.concat();
            let mut once = vec![0.0; values.len()];
            sum_over_frames(&values, &mut once, self.bins, self.half_frames);
            sum_over_frames(&once, &mut values, self.bins, self.half_frames);
            values
        };
        crate::parallel::join(|| smooth(&first), || smooth(&second))
    }
}

/// Writes the sum of each value (bins x frames) and those in the `half` frames on either side.
pub(super) fn sum_over_frames(values: &[f32], out: &mut [f32], bins: usize, half: usize) {
    let frames = values.len() / bins;
    let frame = |t: usize| &values[t * bins..(t + 1) * bins];
    // Double precision: running sums must not drift.
    let mut sums = vec![0.0_f64; bins];
    for t in 0..half.min(frames) {
        sums.iter_mut().zip(frame(t)).for_each(|(sum, &x)| *sum += f64::from(x));
    }
    for (t, out) in out.chunks_exact_mut(bins).enumerate() {
        if t + half < frames {
            sums.iter_mut().zip(frame(t + half)).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        out.iter_mut().zip(&sums).for_each(|(out, &sum)| *out = sum as f32);
        if t >= half {
            sums.iter_mut().zip(frame(t - half)).for_each(|(sum, &x)| *sum -= f64::from(x));
        }
    }
}

/// Replaces each value (bins x frames) by the sum over itself and the `half` bins on either side.
pub(super) fn sum_over_bins(values: &mut [f32], bins: usize, half: usize) {
    let half = half.min(bins);
    // Zero padding gives all bins the same number of neighbours.
    let mut padded = vec![0.0; bins + 2 * half];
    for frame in values.chunks_exact_mut(bins) {
        padded[half..half + bins].copy_from_slice(frame);
        frame.fill(0.0);
        for shifted in padded.windows(bins) {
            frame.iter_mut().zip(shifted).for_each(|(sum, &x)| *sum += x);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_all_tiles_are_summed_twice() {
        let smoothing = Smoothing { bins: 2, half_frames: 1, half_bins: 0 };
        let tiles = [vec![0.0, 1.0, 1.0, 0.0], vec![0.0, 0.0, 0.0, 0.0, 0.0, 2.0_f32]];
        let (first, second) = smoothing.over_frames(tiles.iter().map(|tile| (tile, tile)));
        // Weights 1, 2, 3, 2, 1 around the second frame, and around the first and the last, whose neighbours end.
        let expected = [[2.0, 2.0], [3.0, 2.0], [2.0, 3.0], [1.0, 4.0], [0.0, 4.0]].concat();
        assert_eq!((first, second), (expected.clone(), expected));
    }

    #[test]
    fn neighbourhoods_are_summed_up_to_the_edges() {
        let values: Vec<f32> = (0..3 * 7).map(|i| (i * i % 11) as f32).collect();
        let (mut over_frames, mut over_bins) = (values.clone(), values.clone());
        sum_over_frames(&values, &mut over_frames, 3, 2);
        sum_over_bins(&mut over_bins, 3, 1);
        for t in 0..7_usize {
            for bin in 0..3_usize {
                let near = |t: usize, bin: usize| values[3 * t + bin];
                let frames: f32 = (t.saturating_sub(2)..(t + 3).min(7)).map(|t| near(t, bin)).sum();
                let bins: f32 = (bin.saturating_sub(1)..(bin + 2).min(3)).map(|bin| near(t, bin)).sum();
                assert_eq!((over_frames[3 * t + bin], over_bins[3 * t + bin]), (frames, bins));
            }
        }
    }
}
