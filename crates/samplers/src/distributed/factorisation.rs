//! Factorisation of a partly observed matrix into two low-rank factors.

use std::ops::Range;

use rand_distr::{Distribution, StandardNormal};

use super::{BlockTarget, Side};
use crate::random::SeededRng;

/// `W[i][k] ~ N(0, 1)`, `H[k][j] ~ N(0, 1)`, `X[i][j] ~ N(sum_k W[i][k] H[k][j], 1)` for the observed entries:
/// `hamcmc-2016` section 4.3 with unit variances.
///
/// Rows and columns are each cut into `blocks` blocks of nearly equal size. A block of rows holds `rank` numbers per row,
/// one row after the other; a block of columns `rank` numbers per column.
#[derive(Debug, Clone)]
pub struct Factorisation {
    rank: usize,
    rows: usize,
    columns: usize,
    blocks: usize,
    held: Range<usize>,
    /// Entries by held row block, then by column block: (row, column, value) with indices within the block.
    entries: Vec<Vec<(u32, u32, f64)>>,
}

impl Factorisation {
    /// Creates a factorisation of a `rows x columns` matrix with `rank` components, in `blocks x blocks` blocks.
    /// `entries` are (row, column, value) with indices from 0; those out of range or outside the row blocks `held` are
    /// dropped. Their order has no effect. Repeated entries at one position are separate observations.
    ///
    /// # Panics
    /// If `rank`, `rows`, `columns` or `blocks` is 0, or `held` is not within the blocks.
    #[must_use]
    pub fn new(
        rank: usize,
        [rows, columns]: [usize; 2],
        blocks: usize,
        held: Range<usize>,
        entries: impl IntoIterator<Item = (usize, usize, f64)>,
    ) -> Self {
        assert!(rank > 0 && rows > 0 && columns > 0 && blocks > 0, "a factorisation without numbers");
        assert!(held.start <= held.end && held.end <= blocks, "row blocks {held:?} of {blocks}");
        let mut kept = vec![Vec::new(); held.len() * blocks];
        for (i, j, value) in entries.into_iter().filter(|&(i, j, _)| i < rows && j < columns) {
            let (row_block, column_block) = (block_of(i, rows, blocks), block_of(j, columns, blocks));
            if held.contains(&row_block) {
                let i = i - start_of(row_block, rows, blocks);
                let j = j - start_of(column_block, columns, blocks);
                kept[(row_block - held.start) * blocks + column_block].push((i as u32, j as u32, value));
            }
        }
        // Sorts for locality, and so that sums do not depend on the order of the entries.
        let sort = |block: &mut Vec<(u32, u32, f64)>| {
            block.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        };
        kept.iter_mut().for_each(sort);
        Self { rank, rows, columns, blocks, held, entries: kept }
    }

    /// Iterates over the entries of a held block: (expected value, observed value).
    pub fn predictions<'a>(
        &'a self,
        row_block: usize,
        column_block: usize,
        w: &'a [f64],
        h: &'a [f64],
    ) -> impl Iterator<Item = (f64, f64)> + 'a {
        let rank = self.rank;
        self.block(row_block, column_block).iter().map(move |&(i, j, value)| {
            let (w, h) = (&w[i as usize * rank..][..rank], &h[j as usize * rank..][..rank]);
            (w.iter().zip(h).map(|(w, h)| w * h).sum(), value)
        })
    }

    fn block(&self, row_block: usize, column_block: usize) -> &[(u32, u32, f64)] {
        &self.entries[(row_block - self.held.start) * self.blocks + column_block]
    }
}

/// Returns the first of `count` indices that lies in `block` of `blocks`.
fn start_of(block: usize, count: usize, blocks: usize) -> usize {
    (block * count).div_ceil(blocks)
}

/// Returns the block of `blocks` that contains index `place` of `count`.
fn block_of(place: usize, count: usize, blocks: usize) -> usize {
    place * blocks / count
}

impl BlockTarget for Factorisation {
    fn blocks(&self) -> usize {
        self.blocks
    }

    fn start(&self, side: Side, block: usize, stream: &mut SeededRng) -> Vec<f64> {
        let count = match side {
            Side::Rows => self.rows,
            Side::Columns => self.columns,
        };
        let places = start_of(block + 1, count, self.blocks) - start_of(block, count, self.blocks);
        (0..places * self.rank).map(|_| StandardNormal.sample(stream)).collect()
    }

    fn observations(&self, row_block: usize, column_block: usize) -> usize {
        self.block(row_block, column_block).len()
    }

    fn add_likelihood(
        &self,
        (row_block, column_block): (usize, usize),
        (w, h): (&[f64], &[f64]),
        (slope_w, slope_h): (&mut [f64], &mut [f64]),
    ) {
        let rank = self.rank;
        for &(i, j, value) in self.block(row_block, column_block) {
            let (i, j) = (i as usize * rank, j as usize * rank);
            let (w, h) = (&w[i..i + rank], &h[j..j + rank]);
            let error = w.iter().zip(h).map(|(w, h)| w * h).sum::<f64>() - value;
            for (slope, h) in slope_w[i..i + rank].iter_mut().zip(h) {
                *slope += error * h;
            }
            for (slope, w) in slope_h[j..j + rank].iter_mut().zip(w) {
                *slope += error * w;
            }
        }
    }

    fn add_prior(&self, _: Side, _: usize, theta: &[f64], slope: &mut [f64]) {
        slope.iter_mut().zip(theta).for_each(|(slope, theta)| *slope += theta);
    }
}
