//! Progress bars, interrupts, and files that only the command line knows.

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

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
}

/// Makes the first Ctrl-C end the run in good order, and the second at once.
pub fn watch_for_interrupts() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot watch for Ctrl-C")
}

/// Whether Ctrl-C was pressed.
pub fn interrupted() -> ControlFlow<()> {
    if INTERRUPTED.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
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

/// Replaces `path` by `bytes` as a whole, or leaves it as it was.
pub fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let write = || -> std::io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            // As for any new file: what the umask leaves.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    if fs::metadata(path).is_ok_and(|existing| !existing.is_file()) {
        anyhow::bail!(
            anyhow::anyhow!("exists and is not a regular file").context(Failure::Output(path.to_owned()))
        );
    }
    write().with_context(|| Failure::Output(path.to_owned()))
}
