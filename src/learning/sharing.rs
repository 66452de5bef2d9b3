//! How ranks share what stands in a row.

use std::ops::Range;

/// Which of `count` things in a row are a rank's.
pub(crate) fn section(rank: usize, count: usize, ranks: usize) -> Range<usize> {
    rank * count / ranks..(rank + 1) * count / ranks
}
