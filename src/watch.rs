//! How far long work is, and how to end it early.

use std::ops::ControlFlow;

/// Is told how far long work is, and may end it.
///
/// Any closure `|done: f64| -> ControlFlow<()>` is one, and so is `()`, which lets everything go on. What `done`
/// counts, the function that takes the watch says. It is asked before every block and
/// after every sweep over it, from any thread.
///
/// ```
/// use alphamf::signal::SampleFormat;
/// use alphamf::{Cancelled, DenoiseError, Denoiser, Dictionary, Settings, Signal};
/// use std::ops::ControlFlow;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let noisy = Signal::new(8_000, SampleFormat::Float32, vec![vec![0.1; 8_000]])?;
/// let denoiser = Denoiser::new(Dictionary::shipped()?, Settings::fast())?;
/// let cancelled = denoiser.denoise_with(&noisy, &mut |_share: f64| ControlFlow::Break(()));
/// assert!(matches!(cancelled, Err(DenoiseError::Cancelled(Cancelled))));
/// # Ok(())
/// # }
/// ```
pub trait Watch: Send {
    /// Takes note of how far the work is; `Break` ends it.
    fn advance(&mut self, done: f64) -> ControlFlow<()>;
}

impl Watch for () {
    fn advance(&mut self, _: f64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(f64) -> ControlFlow<()> + Send> Watch for F {
    fn advance(&mut self, done: f64) -> ControlFlow<()> {
        self(done)
    }
}

/// The [`Watch`] ended the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Cancelled;

/// Tells the watch how far the work is.
pub(crate) fn advance(watch: &mut dyn Watch, done: f64) -> Result<(), Cancelled> {
    match watch.advance(done) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Cancelled),
    }
}

/// What kind of failure an error is: what a program answers for, as by its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting is out of its range, or does not go with another.
    Setting,
    /// What was given to work on is of no use.
    Input,
    /// A dictionary or a refiner is of no use.
    Model,
    /// The [`Watch`] ended the work.
    Cancelled,
    /// None of these.
    Other,
}
