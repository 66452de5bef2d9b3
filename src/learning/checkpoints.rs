//! Checkpoints of training, to resume after an interruption.

use std::io;

/// Stores the state of training between sweeps, in parts that do not depend on the number of processes. `()` stores nothing.
///
/// [`is_due`](Self::is_due) and [`latest`](Self::latest) must return equal values in all processes.
pub trait CheckpointStore {
    /// Whether to store the state after `sweeps` sweeps.
    fn is_due(&self, sweeps: usize) -> bool;

    /// Stores one part of the state. Several processes call this at once, each for different parts.
    ///
    /// # Errors
    /// If it cannot be written.
    fn save(&mut self, sweeps: usize, part: usize, bytes: &[u8]) -> io::Result<()>;

    /// Marks the state as complete, once all parts are stored. Only the first process calls this.
    ///
    /// # Errors
    /// If the mark cannot be written.
    fn commit(&mut self, sweeps: usize) -> io::Result<()>;

    /// Number of sweeps of the latest complete state, if there is one.
    fn latest(&self) -> Option<usize>;

    /// Loads one part of the state.
    ///
    /// # Errors
    /// If it cannot be read.
    fn load(&mut self, sweeps: usize, part: usize) -> io::Result<Vec<u8>>;
}

impl CheckpointStore for () {
    fn is_due(&self, _: usize) -> bool {
        false
    }

    fn save(&mut self, _: usize, _: usize, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn commit(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn latest(&self) -> Option<usize> {
        None
    }

    fn load(&mut self, _: usize, _: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Copies `numbers` to consecutive slices of equal total length.
pub(crate) fn fill<T: Copy>(into: Vec<&mut [T]>, numbers: &[T]) -> io::Result<()> {
    let expected: usize = into.iter().map(|slice| slice.len()).sum();
    if numbers.len() != expected {
        let reason = format!("{} numbers; expected {expected}", numbers.len());
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    let mut rest = numbers;
    for slice in into {
        let (first, others) = rest.split_at(slice.len());
        slice.copy_from_slice(first);
        rest = others;
    }
    Ok(())
}
