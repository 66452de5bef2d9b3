//! Bands of a block: its occupied bins, and rows of matrices of bins.

use std::ops::Range;

/// Bins whose power is below this share of the mean between 300 and 4000 Hz may be empty.
const EMPTY: f64 = 1e-7;
/// Recordings have at least so many bins with something in them.
const MIN_BINS: usize = 16;

/// The number of bins up to the highest that is not empty, as are those above the band of a recording that was
/// made at a denominator sample rate. A start or a click, which fills all bins of a few frames, does not count.
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

/// Some rows of a matrix of `height` rows.
pub(crate) fn rows(matrix: &[f32], height: usize, range: Range<usize>) -> Vec<f32> {
    matrix.chunks_exact(height).flat_map(|column| &column[range.clone()]).copied().collect()
}

/// Writes some rows of a matrix of `height` rows.
pub(crate) fn place_rows(rows: &[f32], matrix: &mut [f32], height: usize, range: Range<usize>) {
    for (column, rows) in matrix.chunks_exact_mut(height).zip(rows.chunks_exact(range.len())) {
        column[range.clone()].copy_from_slice(rows);
    }
}
