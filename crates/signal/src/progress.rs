//! Progress reporting and cancellation.

use std::ops::ControlFlow;

/// Receives the progress of long-running work, and may cancel it.
///
/// Any closure `|done: f64| -> ControlFlow<()>` is one, and so is `()`, which never cancels. The function that takes the
/// callback documents the unit of `done`. It is called before every block and after every sweep, from any thread.
///
/// ```
/// use alphamf_signal::progress::{self, Cancelled, ProgressCallback};
/// use std::ops::ControlFlow;
/// fn count(progress: &mut dyn ProgressCallback) -> Result<u32, Cancelled> {
///     for n in 0..10 {
///         progress::report(progress, f64::from(n) / 10.0)?;
///     }
///     Ok(10)
/// }
/// let stop = |done: f64| if done < 0.5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
/// assert_eq!((count(&mut ()), count(&mut { stop })), (Ok(10), Err(Cancelled)));
/// ```
pub trait ProgressCallback: Send {
    /// Receives the progress; `Break` cancels the work.
    fn report(&mut self, done: f64) -> ControlFlow<()>;
}

impl ProgressCallback for () {
    fn report(&mut self, _: f64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(f64) -> ControlFlow<()> + Send> ProgressCallback for F {
    fn report(&mut self, done: f64) -> ControlFlow<()> {
        self(done)
    }
}

/// The work was cancelled by its [`ProgressCallback`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Cancelled;

/// Reports the progress to a callback.
///
/// # Errors
/// [`Cancelled`] if the callback cancels the work.
pub fn report(callback: &mut dyn ProgressCallback, done: f64) -> Result<(), Cancelled> {
    match callback.report(done) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Cancelled),
    }
}
