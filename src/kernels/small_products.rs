//! Compact matrix products without run-time dispatch, for WebAssembly. They are faster there than those of ndarray,
//! whose kernel needs twice the available registers.

use ndarray::NdFloat;

/// Size of a tile; rows are the lanes of vectors.
const ROWS: usize = 8;
const COLUMNS: usize = 4;
/// Terms of a sum per pass; their copies stay in the L1 cache.
const DEPTH: usize = 256;

/// A borrowed matrix: entry `(i, j)` is `data[i * row + j * column]`.
#[derive(Clone, Copy)]
pub(super) struct Strided<'a, T> {
    pub data: &'a [T],
    pub row: usize,
    pub column: usize,
}

impl<T> Strided<'_, T> {
    pub(super) fn transposed(self) -> Self {
        Self { row: self.column, column: self.row, ..self }
    }
}

/// Computes `out = a b`, or `out += a b`; `a` is `rows` x `depth`, and columns of `out` begin `stride` entries apart.
pub(super) fn multiply<T: NdFloat>(
    a: Strided<T>,
    b: Strided<T>,
    (rows, depth, columns): (usize, usize, usize),
    out: &mut [T],
    stride: usize,
    accumulate: bool,
) {
    let mut panel = [[T::zero(); ROWS]; DEPTH];
    for first_term in (0..depth).step_by(DEPTH) {
        let terms = DEPTH.min(depth - first_term);
        let add = accumulate || first_term > 0;
        for first_row in (0..rows).step_by(ROWS) {
            let height = ROWS.min(rows - first_row);
            for (k, lanes) in panel[..terms].iter_mut().enumerate() {
                let from = &a.data[first_row * a.row + (first_term + k) * a.column..];
                match from.first_chunk::<ROWS>() {
                    Some(from) if a.row == 1 && height == ROWS => *lanes = *from,
                    _ => (0..height).for_each(|i| lanes[i] = from[i * a.row]),
                }
            }
            for first_column in (0..columns).step_by(COLUMNS) {
                let width = COLUMNS.min(columns - first_column);
                // Columns beyond the last repeat it, and their sums are discarded.
                let at = |j: usize| (first_column + j.min(width - 1)) * b.column + first_term * b.row;
                let sums = if b.row == 1 {
                    let [b0, b1, b2, b3] = [at(0), at(1), at(2), at(3)].map(|at| &b.data[at..at + terms]);
                    let entries = b0.iter().zip(b1).zip(b2.iter().zip(b3));
                    tile(&panel[..terms], entries.map(|((b0, b1), (b2, b3))| [*b0, *b1, *b2, *b3]))
                } else {
                    let lines = b.data[at(0)..].chunks(b.row);
                    let offsets = [0, 1, 2, 3].map(|j| at(j) - at(0));
                    tile(&panel[..terms], lines.map(|line| offsets.map(|offset| line[offset])))
                };
                for (j, sums) in sums.iter().enumerate().take(width) {
                    let place = &mut out[(first_column + j) * stride + first_row..][..height];
                    if add {
                        place.iter_mut().zip(sums).for_each(|(out, sum)| *out += *sum);
                    } else {
                        place.copy_from_slice(&sums[..height]);
                    }
                }
            }
        }
    }
}

/// The sums of a tile over all terms.
#[inline(always)]
fn tile<T: NdFloat>(
    panel: &[[T; ROWS]],
    entries: impl Iterator<Item = [T; COLUMNS]>,
) -> [[T; ROWS]; COLUMNS] {
    let mut sums = [[T::zero(); ROWS]; COLUMNS];
    for (lanes, entries) in panel.iter().zip(entries) {
        for j in 0..COLUMNS {
            for i in 0..ROWS {
                sums[j][i] += lanes[i] * entries[j];
            }
        }
    }
    sums
}
