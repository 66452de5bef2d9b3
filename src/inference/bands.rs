//! Bands of a block: its occupied bins, and row blocks of bins x frames matrices.

use std::ops::Range;

/// Bins with a power below this fraction of the mean between 300 and 4000 Hz may be empty.
const EMPTY: f64 = 1e-7;
/// Minimum number of occupied bins.
const MIN_BINS: usize = 16;

/// The number of bins up to the highest that is not empty. Bins above the band of an upsampled recording are empty; onsets
/// and clicks, which fill all bins of a few frames, do not count.
pub(crate) fn occupied_bins(power: &[f32], bins: usize, bin_hertz: f64) -> usize {
    let frames = power.len() / bins;
    let at = |hertz: f64| ((hertz / bin_hertz) as usize).min(bins - 1);
    let voice = at(300.0)..at(4_000.0) + 1;
    let in_voice = power.chunks_exact(bins).flat_map(|frame| &frame[voice.clone()]);
    let mean = in_voice.map(|&x| f64::from(x)).sum::<f64>() / (frames * voice.len()) as f64;
    let threshold = (EMPTY * mean) as f32;
    let is_empty =
        |bin: &usize| 20 * power.chunks_exact(bins).filter(|frame| frame[*bin] > threshold).count() <= frames;
    (bins - (0..bins).rev().take_while(is_empty).count()).max(MIN_BINS.min(bins))
}

/// The rows `range` of a column-major matrix of `height` rows.
pub(crate) fn rows(matrix: &[f32], height: usize, range: Range<usize>) -> Vec<f32> {
    matrix.chunks_exact(height).flat_map(|column| &column[range.clone()]).copied().collect()
}

/// Writes `rows` to the rows `range` of a column-major matrix of `height` rows.
pub(crate) fn place_rows(rows: &[f32], matrix: &mut [f32], height: usize, range: Range<usize>) {
    for (column, rows) in matrix.chunks_exact_mut(height).zip(rows.chunks_exact(range.len())) {
        column[range.clone()].copy_from_slice(rows);
    }
}
