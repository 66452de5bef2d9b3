//! Progress bars, interrupts, and files that only the command line knows.

use alphamf::Cancelled;
use alphamf_files::output::discard_unfinished;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::fs::{self, File};
use std::io::{self, Read, Write};
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
    /// What was asked for does not fit together.
    #[error("{0}")]
    Usage(String),
}

/// A failure for what does not fit together.
pub fn usage(what: impl Into<String>) -> anyhow::Error {
    Failure::Usage(what.into()).into()
}

/// Makes the first Ctrl-C (or request to terminate) end the run in good order, and the second at once, whatever
/// it waits for. Neither leaves a file that is not complete. What the caller wants ignored, as `nohup` does, stays
/// ignored; a file beyond the limit on sizes is an error of writing.
#[cfg(unix)]
pub fn watch_for_interrupts() -> anyhow::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    let watch = || {
        // What a handler is there for does not end the process: the write fails.
        signal_hook::flag::register(SIGXFSZ, std::sync::Arc::default())?;
        let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&signal| !is_ignored(signal));
        let mut signals = signal_hook::iterator::Signals::new(wanted)?;
        thread::Builder::new().spawn(move || signals.forever().for_each(|_| interrupt()))?;
        std::io::Result::Ok(())
    };
    watch().context("cannot watch for Ctrl-C")
}

/// Whether the process was started with a signal ignored, where the system tells.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Makes the first Ctrl-C end the run in good order, and the second at once. Neither leaves a file that is not
/// complete.
#[cfg(not(unix))]
pub fn watch_for_interrupts() -> anyhow::Result<()> {
    ctrlc::set_handler(interrupt).context("cannot watch for Ctrl-C")
}

fn interrupt() {
    if INTERRUPTED.swap(true, Ordering::Relaxed) {
        let _discarded = discard_unfinished();
        std::process::exit(130);
    }
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
            Err(RecvTimeoutError::Timeout) => return Err(Cancelled.into()),
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

/// Whether a path stands for standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Name of an input or output in messages; `standard` names `-`.
pub fn name<'a>(path: &'a Path, standard: &'a str) -> &'a Path {
    if is_standard(path) { Path::new(standard) } else { path }
}

/// Refuses an output whose folder does not exist before hours are spent on its content.
pub fn check_output(path: &Path) -> anyhow::Result<()> {
    if is_standard(path) {
        return Ok(());
    }
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
    let print = || {
        check_standard_output()?;
        let mut output = std::io::stdout();
        output.write_all(bytes).and_then(|()| output.flush())
    };
    print().with_context(|| Failure::Output("standard output".into()))
}

/// Fails if standard output was closed (`>&-`), in whose place the runtime then puts the null device, open for
/// reading, too, as no shell does.
#[cfg(unix)]
pub fn check_standard_output() -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_getfl, fstat, stat};
    let output = io::stdout();
    let flags = fcntl_getfl(&output)?;
    let null = stat("/dev/null").map(|null| null.st_rdev);
    if flags.contains(OFlags::RDWR) && null == fstat(&output).map(|found| found.st_rdev) {
        return Err(io::Error::other("it is closed"));
    }
    Ok(())
}

#[cfg(not(unix))]
pub fn check_standard_output() -> io::Result<()> {
    Ok(())
}

/// Standard output if it is a file in which one can go back, at the place where it stands.
#[cfg(unix)]
pub fn seekable_output() -> Option<File> {
    use rustix::fs::{OFlags, fcntl_getfl};
    use std::os::fd::AsFd;
    let output = io::stdout();
    // What is appended to is written at its end, wherever one goes.
    let appends = fcntl_getfl(&output).is_ok_and(|flags| flags.contains(OFlags::APPEND));
    let file = File::from(output.as_fd().try_clone_to_owned().ok()?);
    (!appends && file.metadata().is_ok_and(|found| found.is_file())).then_some(file)
}

#[cfg(not(unix))]
pub fn seekable_output() -> Option<File> {
    None
}

/// Replaces `path` by `bytes` as a whole, or leaves it as it was; writes to a device or pipe, and prints if it is
/// `-`.
pub fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if is_standard(path) {
        return print(bytes);
    }
    let written = if is_device(path) {
        open_device(path)?.and_then(|mut device| device.write_all(bytes))
    } else {
        alphamf_files::output::write_whole(path, bytes)
    };
    written.with_context(|| Failure::Output(path.to_owned()))
}

/// Opens a device or a pipe for writing; Ctrl-C ends the waiting for who reads it.
pub fn open_device(path: &Path) -> anyhow::Result<io::Result<File>> {
    let path = path.to_owned();
    interruptible(move || File::options().write(true).open(path))
}

/// Whether a path is that of a device or pipe, which has no content to replace.
pub fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|existing| !existing.is_file() && !existing.is_dir())
}

/// The bytes of a file that cannot be longer than so many; Ctrl-C ends the waiting for a pipe.
pub fn read_bounded(path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    let path = path.to_owned();
    let read = move || {
        let mut bytes = Vec::new();
        File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::Error::other(format!("more than {} MB", most >> 20)));
        }
        Ok(bytes)
    };
    Ok(interruptible(read)??)
}

/// Text for a terminal: control characters, also those that turn the direction of writing, are escaped.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        let turns =
            matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || turns {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Prints a line on standard error.
pub fn say(line: &str) {
    eprintln!("{}", printable(line));
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn terminals_are_not_controlled_by_names() {
        assert_eq!(printable("a\x1b[2Jb\r\u{202e}c\u{9b}"), "a\\u{1b}[2Jb\\r\\u{202e}c\\u{9b}");
        assert_eq!(printable("Grüße, 世界 \u{fffd}.wav"), "Grüße, 世界 \u{fffd}.wav");
    }
}
