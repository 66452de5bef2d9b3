//! Progress bars, interrupts, and files that only the command line knows.

use alphamf::inference::DenoiseError;
use alphamf::output::discard_unfinished;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::{self, File};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// A failure with a file, of the kind that decides the exit code.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An input is of no use.
    #[error("{}: cannot be used", .0.display())]
    Input(PathBuf),
    /// An output cannot be written.
    #[error("{}: cannot be written", .0.display())]
    Output(PathBuf),
    /// A dictionary is of no use.
    #[error("{}: cannot be used as a dictionary", .0.display())]
    Dictionary(PathBuf),
    /// A refiner is of no use.
    #[error("{}: cannot be used as a refiner", .0.display())]
    Refiner(PathBuf),
    /// What was asked for does not fit together.
    #[error("{0}")]
    Usage(String),
}

/// A failure for what does not fit together.
pub fn usage(what: impl Into<String>) -> anyhow::Error {
    Failure::Usage(what.into()).into()
}

/// Makes the first Ctrl-C (or request to terminate) end the run in good order, and the second at once, whatever
/// it waits for. Neither leaves a file that is not complete.
pub fn watch_for_interrupts() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            let _discarded = discard_unfinished();
            std::process::exit(130);
        }
    })
    .context("cannot watch for Ctrl-C")
}

/// Whether Ctrl-C was pressed.
pub fn interrupted() -> ControlFlow<()> {
    if INTERRUPTED.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Does in a thread of its own what may wait for others, so that Ctrl-C ends the waiting.
pub fn interruptible<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> anyhow::Result<T> {
    const LOOK: Duration = Duration::from_millis(50);
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::Builder::new().spawn(move || sender.send(work())).context("cannot start a thread")?;
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) if interrupted().is_continue() => {}
            Err(RecvTimeoutError::Timeout) => return Err(DenoiseError::Interrupted.into()),
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("a thread failed"),
        }
    }
}

/// A progress bar on a terminal; nothing elsewhere.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar with a label, unless `quiet`.
    pub fn new(label: &str, quiet: bool) -> Self {
        const STEPS: u64 = 1000;
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(STEPS), target);
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} %  {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(label.to_owned());
        Self(bar)
    }

    /// Shows how far a recording is, s, out of its duration if that is known; breaks after Ctrl-C.
    pub fn update_seconds(&self, seconds: f64, duration: Option<f64>) -> ControlFlow<()> {
        if let Some(duration) = duration {
            return self.update((seconds / duration).min(1.0));
        }
        if self.0.length().is_some() {
            self.0.unset_length();
            let style = ProgressStyle::with_template("{msg} {pos} s");
            self.0.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        }
        self.0.set_position(seconds as u64);
        interrupted()
    }

    /// Shows the share done, 0 to 1; breaks after Ctrl-C.
    pub fn update(&self, share: f64) -> ControlFlow<()> {
        self.0.set_position((share * self.0.length().unwrap_or(0) as f64) as u64);
        interrupted()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Refuses an output whose folder does not exist before hours are spent on its content.
pub fn check_output(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let reason = if !folder.is_dir() {
        format!("no folder {}", folder.display())
    } else if fs::metadata(path).is_ok_and(|found| found.is_dir()) {
        "it is a folder".to_owned()
    } else {
        return Ok(());
    };
    Err(anyhow::anyhow!(reason).context(Failure::Output(path.to_owned())))
}

/// Prints to standard output.
pub fn print(bytes: &[u8]) -> anyhow::Result<()> {
    let mut output = std::io::stdout();
    let written = output.write_all(bytes).and_then(|()| output.flush());
    written.with_context(|| Failure::Output("standard output".into()))
}

/// Replaces `path` by `bytes` as a whole, or leaves it as it was; writes to a device or pipe.
pub fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let written = if is_device(path) {
        File::options().write(true).open(path).and_then(|mut device| device.write_all(bytes))
    } else {
        alphamf::output::write_whole(path, bytes)
    };
    written.with_context(|| Failure::Output(path.to_owned()))
}

/// Whether a path is that of a device or pipe, which has no content to replace.
pub fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|existing| !existing.is_file() && !existing.is_dir())
}
