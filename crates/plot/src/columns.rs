//! Spectrogram-like pictures of values over frequency and time.

use super::{FrequencyScale, colour};
use std::ops::Range;

/// Rows of a picture.
pub(super) const ROWS: usize = 300;
/// Maximum number of columns.
const MAX_COLUMNS: usize = 2_048;

/// Values over frequency and time, in bounded memory.
///
/// Neighbouring frames are averaged into columns, and neighbouring bins into rows, if there are too many.
#[derive(Debug, Clone)]
pub struct Columns {
    /// Bins of every row, lowest first.
    rows: Vec<Range<usize>>,
    /// Frames per column.
    merged: usize,
    frames: usize,
    /// Sums over the frames of a column, columns x rows.
    sums: Vec<f32>,
}

impl Columns {
    /// An empty picture. Frames have `bins` values, at least one, from 0 Hz to `highest_hertz`.
    #[must_use]
    pub fn new(bins: usize, scale: FrequencyScale, highest_hertz: f64) -> Self {
        let bin = |row: usize| {
            let hertz = scale.hertz(row as f64 / ROWS as f64, highest_hertz);
            hertz / highest_hertz * bins as f64
        };
        let rows = (0..ROWS).map(|row| {
            let first = (bin(row).round() as usize).min(bins.saturating_sub(1));
            // A row narrower than a bin shows the bin that contains it.
            let first = if bin(row + 1) - bin(row) < 1.0 {
                (bin(row) as usize).min(bins.saturating_sub(1))
            } else {
                first
            };
            first..(bin(row + 1).round() as usize).clamp(first + 1, bins.max(first + 1))
        });
        Self { rows: rows.collect(), merged: 1, frames: 0, sums: Vec::new() }
    }

    /// Appends a frame, the values of its bins from low to high.
    pub fn push(&mut self, frame: &[f32]) {
        if self.frames / self.merged == MAX_COLUMNS {
            self.halve();
        }
        let column = self.frames / self.merged;
        self.sums.resize((column + 1) * ROWS, 0.0);
        for (sum, bins) in self.sums[column * ROWS..].iter_mut().zip(&self.rows) {
            if let Some(values) = frame.get(bins.clone()) {
                *sum += values.iter().sum::<f32>() / values.len() as f32;
            }
        }
        self.frames += 1;
    }

    /// Merges neighbouring columns.
    fn halve(&mut self) {
        let merge = |pair: &[f32]| -> Vec<f32> {
            let (first, second) = pair.split_at(ROWS);
            first.iter().zip(second).map(|(a, b)| a + b).collect()
        };
        self.sums = self.sums.chunks_exact(2 * ROWS).flat_map(merge).collect();
        self.merged *= 2;
    }

    /// Number of frames so far.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Means of a column, from the lowest row.
    fn column(&self, column: usize) -> impl Iterator<Item = f32> {
        let count = self.merged.min(self.frames - column * self.merged) as f32;
        self.sums[column * ROWS..][..ROWS].iter().map(move |sum| sum / count)
    }

    fn count(&self) -> usize {
        self.sums.len() / ROWS
    }

    /// The largest value; minus infinity if there is none.
    #[must_use]
    pub fn largest(&self) -> f32 {
        (0..self.count()).flat_map(|column| self.column(column)).fold(f32::NEG_INFINITY, f32::max)
    }

    /// Shades of a picture of this width and [`ROWS`] rows, row by row from the top, of the first `frames` frames. `place` maps
    /// a value to the colour scale, 0 to 1.
    pub(super) fn shades(&self, width: usize, frames: f64, place: impl Fn(f32) -> f32) -> Vec<u8> {
        let count = self.count();
        if count == 0 {
            return Vec::new();
        }
        let places: Vec<f32> =
            (0..count).flat_map(|c| self.column(c)).map(|value| place(value).clamp(0.0, 1.0)).collect();
        let last = (count - 1) as f64;
        // A column lies at the middle of its frames.
        let at = |x: f64| {
            let frame = x / width as f64 * frames;
            ((frame - 0.5 * (self.merged - 1) as f64) / self.merged as f64).clamp(0.0, last)
        };
        let mut shades = vec![0; width * ROWS];
        for x in 0..width {
            let (from, middle, to) = (at(x as f64), at(x as f64 + 0.5), at(x as f64 + 1.0));
            let (first, end) = (from.ceil() as usize, to.ceil() as usize);
            for row in 0..ROWS {
                let value = if end > first + 1 {
                    let inside = (first..end).map(|column| places[column * ROWS + row]);
                    inside.sum::<f32>() / (end - first) as f32
                } else {
                    let (below, above) = (middle.floor() as usize, middle.ceil() as usize);
                    let [a, b] = [below, above].map(|column| places[column * ROWS + row]);
                    a + (middle - below as f64) as f32 * (b - a)
                };
                shades[(ROWS - 1 - row) * width + x] = (255.0 * value).round() as u8;
            }
        }
        shades
    }

    /// Encodes the picture as a PNG file of this width; `None` if there are no frames. `value` transforms the values:
    /// `low` is darkest, `high` brightest.
    #[must_use]
    pub fn png(&self, width: usize, value: impl Fn(f32) -> f32, low: f32, high: f32) -> Option<Vec<u8>> {
        let shades = self.shades(width, self.frames as f64, |x| (value(x) - low) / (high - low));
        if shades.is_empty() { None } else { encode_shades(width, ROWS, &shades) }
    }
}

/// Encodes a PNG file of shades.
pub(super) fn encode_shades(width: usize, height: usize, shades: &[u8]) -> Option<Vec<u8>> {
    let palette = (0..=255).flat_map(colour).collect();
    super::encode_png(width, height, Some(palette), shades).ok()
}
