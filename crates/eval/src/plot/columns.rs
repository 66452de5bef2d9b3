//! Values over frequency and time that make a picture.

use super::colour;

/// The most columns and rows of a picture.
const SIZE: usize = 1024;

/// Values over frequency and time, in a picture that does not grow with the recording.
///
/// Neighbouring frames, and neighbouring bins, share a column or row where there are too many; the largest
/// value is kept.
#[derive(Debug, Clone)]
pub struct Columns {
    rows: usize,
    /// Bins in a row, frames in a column.
    merged: (usize, usize),
    frames: usize,
    /// Rows x columns.
    values: Vec<f32>,
}

impl Columns {
    /// An empty picture of frames with so many bins, at least one.
    #[must_use]
    pub fn new(bins: usize) -> Self {
        let merged = bins.div_ceil(SIZE).max(1);
        Self { rows: bins.div_ceil(merged), merged: (merged, 1), frames: 0, values: Vec::new() }
    }

    /// Appends a frame, the values of its bins from low to high.
    pub fn push(&mut self, frame: impl IntoIterator<Item = f32>) {
        let column = self.frames / self.merged.1;
        if column == SIZE {
            self.halve();
            return self.push(frame);
        }
        self.values.resize((column + 1) * self.rows, f32::NEG_INFINITY);
        let values = &mut self.values[column * self.rows..];
        for (bin, value) in frame.into_iter().enumerate() {
            if let Some(cell) = values.get_mut(bin / self.merged.0) {
                *cell = cell.max(value);
            }
        }
        self.frames += 1;
    }

    /// Merges neighbouring columns.
    fn halve(&mut self) {
        let merge = |pair: &[f32]| -> Vec<f32> {
            let (first, second) = pair.split_at(self.rows.min(pair.len()));
            if second.is_empty() {
                return first.to_vec();
            }
            first.iter().zip(second).map(|(a, b)| a.max(*b)).collect()
        };
        self.values = self.values.chunks(2 * self.rows).flat_map(merge).collect();
        self.merged.1 *= 2;
    }

    /// Frames so far.
    #[must_use]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// The largest value; minus infinity if there is none.
    #[must_use]
    pub fn largest(&self) -> f32 {
        self.values.iter().copied().fold(f32::NEG_INFINITY, f32::max)
    }

    /// Width, height and shades of the picture, row by row from the highest bin; the values from `low` to
    /// `high` go from 0 to 255.
    pub(super) fn shades(&self, low: f32, high: f32) -> (usize, usize, Vec<u8>) {
        let width = self.values.len() / self.rows;
        let mut shades = vec![0; self.values.len()];
        for (x, column) in self.values.chunks_exact(self.rows).enumerate() {
            for (row, value) in column.iter().enumerate() {
                let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
                shades[(self.rows - 1 - row) * width + x] = (255.0 * share) as u8;
            }
        }
        (width, self.rows, shades)
    }

    /// The picture as a PNG file, the values from `low` to `high` in the colours from dark to bright; `None` if
    /// there are no frames.
    #[must_use]
    pub fn png(&self, low: f32, high: f32) -> Option<Vec<u8>> {
        let (width, height, shades) = self.shades(low, high);
        encode_shades(width, height, &shades)
    }
}

/// A PNG file of shades.
pub(super) fn encode_shades(width: usize, height: usize, shades: &[u8]) -> Option<Vec<u8>> {
    let palette = (0..=255).flat_map(colour).collect();
    super::encode_png(width, height, Some(palette), shades).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_recordings_keep_the_largest_values_in_few_columns() {
        let mut columns = Columns::new(3_000);
        for frame in 0..5_000 {
            columns.push((0..3_000).map(|bin| if (frame, bin) == (4_321, 1_234) { 1.0 } else { 0.0 }));
        }
        let (width, height, shades) = columns.shades(0.0, 1.0);
        assert_eq!((width, height), (5_000_usize.div_ceil(8), 1_000));
        let bright: Vec<usize> = (0..shades.len()).filter(|&i| shades[i] > 0).collect();
        assert_eq!(bright, [(999 - 1_234 / 3) * width + 4_321 / 8]);
        assert_eq!((columns.frames(), columns.largest()), (5_000, 1.0));
        assert!(columns.png(0.0, 1.0).is_some());
        assert!(Columns::new(5).png(0.0, 1.0).is_none());
    }
}
