//! Division of a sequence among processes.

use std::ops::Range;

/// The section of `count` items that belongs to process `rank` of `processes`.
pub(crate) fn section(rank: usize, count: usize, processes: usize) -> Range<usize> {
    rank * count / processes..(rank + 1) * count / processes
}
