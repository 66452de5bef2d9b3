//! Ctrl-C and requests to terminate.

use super::ffmpeg;
use alphamf::Cancelled;
use alphamf_files::output::remove_partial_files;
use anyhow::Context;
#[cfg(unix)]
use std::fs;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Makes the first Ctrl-C or request to terminate stop the run cleanly, and the second one at once. Neither leaves an
/// incomplete file. Signals that the caller ignores, as `nohup` does, stay ignored; a file beyond the size limit is a
/// write error.
#[cfg(unix)]
pub fn watch_for_interrupts() -> anyhow::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    let watch = || {
        // A signal with a handler does not end the process: the write fails instead.
        signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default())?;
        let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal));
        let mut signals = signal_hook::iterator::Signals::new(wanted)?;
        thread::Builder::new().spawn(move || signals.forever().for_each(|_| interrupt()))?;
        std::io::Result::Ok(())
    };
    watch().context("cannot handle Ctrl-C")
}

/// Whether the process was started with a signal ignored, where the system reports it.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Makes the first Ctrl-C stop the run cleanly, and the second one at once. Neither leaves an incomplete file.
#[cfg(not(unix))]
pub fn watch_for_interrupts() -> anyhow::Result<()> {
    ctrlc::set_handler(interrupt).context("cannot handle Ctrl-C")
}

fn interrupt() {
    if INTERRUPTED.swap(true, Ordering::Relaxed) {
        let _stopped = ffmpeg::stop_all();
        let _discarded = remove_partial_files();
        std::process::exit(130);
    }
}

/// Whether Ctrl-C was pressed.
pub fn interrupted() -> ControlFlow<()> {
    if INTERRUPTED.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Fails after Ctrl-C.
pub fn check_interrupt() -> Result<(), Cancelled> {
    if interrupted().is_break() { Err(Cancelled) } else { Ok(()) }
}

/// Runs work that may block in a thread of its own, so that Ctrl-C interrupts the wait.
pub fn interruptible<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> anyhow::Result<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::Builder::new().spawn(move || sender.send(work())).context("cannot start a thread")?;
    receive(&receiver)
}

/// Waits for another thread, unless Ctrl-C interrupts the wait.
pub fn receive<T>(receiver: &Receiver<T>) -> anyhow::Result<T> {
    const LOOK: Duration = Duration::from_millis(50);
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => check_interrupt()?,
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("a thread failed"),
        }
    }
}
