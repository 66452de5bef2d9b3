//! What learning keeps, to go on from it after an interruption.

use std::io;

/// Keeps the state of learning between sweeps over what is learned from, in parts that do not depend on the number of
/// ranks. `()` keeps none.
///
/// All ranks must give the same answers to [`due`](Self::due) and [`newest`](Self::newest).
pub trait Checkpoints {
    /// Whether the state after so many sweeps is to be kept.
    fn due(&self, sweeps: usize) -> bool;

    /// Keeps one part of it. Several ranks call this at once, each for other parts.
    ///
    /// # Errors
    /// If it cannot be kept.
    fn save(&mut self, sweeps: usize, part: usize, bytes: &[u8]) -> io::Result<()>;

    /// Takes note, on the first rank, that all parts of it have been kept.
    ///
    /// # Errors
    /// If this cannot be noted.
    fn complete(&mut self, sweeps: usize) -> io::Result<()>;

    /// After how many sweeps the newest complete state was kept.
    fn newest(&self) -> Option<usize>;

    /// One part of it.
    ///
    /// # Errors
    /// If it cannot be read.
    fn load(&mut self, sweeps: usize, part: usize) -> io::Result<Vec<u8>>;
}

impl Checkpoints for () {
    fn due(&self, _: usize) -> bool {
        false
    }

    fn save(&mut self, _: usize, _: usize, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn complete(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn newest(&self) -> Option<usize> {
        None
    }

    fn load(&mut self, _: usize, _: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Divides `numbers` among slices, of as many in all.
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
