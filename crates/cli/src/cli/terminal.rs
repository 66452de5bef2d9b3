//! Interrupts, standard streams and small files.

use alphamf::Cancelled;
use alphamf_files::output::remove_partial_files;
use anyhow::Context;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// A failure whose kind decides the exit code.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// An input is invalid.
    #[error("{}: cannot be read", .0.display())]
    Input(PathBuf),
    /// An input can be read, but not used.
    #[error("{}", .0.display())]
    Unusable(PathBuf),
    /// An output cannot be written.
    #[error("{}: cannot be written", .0.display())]
    Output(PathBuf),
    /// An output exists.
    #[error("{} already exists", .0.display())]
    Exists(PathBuf),
    /// A result exists that somebody has changed.
    #[error("{} was changed since it was written", .0.display())]
    Changed(PathBuf),
    /// A result of another recording, the second path, exists.
    #[error("{} is the result of {}", .0.display(), .1.display())]
    OfAnother(PathBuf, PathBuf),
    /// A dictionary is invalid.
    #[error("{}: cannot be read as a dictionary", .0.display())]
    Dictionary(PathBuf),
    /// The arguments are invalid or incompatible.
    #[error("{0}")]
    Usage(String),
}

/// A failure for invalid or incompatible arguments.
pub fn usage(what: impl Into<String>) -> anyhow::Error {
    Failure::Usage(what.into()).into()
}

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
        let _discarded = remove_partial_files();
        std::process::exit(130);
    }
}

/// Whether Ctrl-C was pressed.
pub fn interrupted() -> ControlFlow<()> {
    if INTERRUPTED.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Runs work that may block in a thread of its own, so that Ctrl-C interrupts the wait.
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

/// Threads for a run that asks for so many, or for one per core: a file takes some descriptors, a thread some addresses, and
/// the system may allow few.
pub fn threads(asked: Option<u16>) -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let limit = |name| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok())
    };
    let files = limit("Max open files").map_or(usize::MAX, threads_for_files);
    let most = limit("Max address space").map_or(files, |bytes| files.min(threads_for_addresses(bytes)));
    match asked.map(usize::from) {
        Some(asked) => asked.min(most),
        // None are as many as there are cores.
        None if thread::available_parallelism().is_ok_and(|cores| cores.get() <= most) => 0,
        None => most,
    }
}

/// Threads for so many open files.
fn threads_for_files(files: usize) -> usize {
    /// Those of the run, and those of a file with two pipes to and from ffmpeg.
    const OWN: usize = 12;
    const EACH: usize = 6;
    (files.saturating_sub(OWN) / EACH).max(1)
}

/// Threads for so many bytes of addresses (`ulimit -v`).
fn threads_for_addresses(bytes: usize) -> usize {
    /// What glibc reserves for the memory of a thread, whether or not it is used: twice, as it aligns it, and for the thread of
    /// a file of a folder, too.
    const EACH: usize = 256 << 20;
    (bytes / EACH).max(1)
}

/// Whether standard error is a terminal that can redraw a line.
pub fn is_interactive() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Whether standard error takes colours: it is a terminal, and `NO_COLOR` is not set.
pub fn has_colours() -> bool {
    is_interactive() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Columns of the terminal; 80 where that cannot be determined.
pub fn columns() -> usize {
    #[cfg(unix)]
    let found = rustix::termios::tcgetwinsize(io::stderr()).ok().map(|size| usize::from(size.ws_col));
    #[cfg(not(unix))]
    let found: Option<usize> = None;
    found.filter(|&columns| columns > 0).unwrap_or(80)
}

/// Whether a path stands for standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Name of an input or output in messages; `standard` names `-`.
pub fn name<'a>(path: &'a Path, standard: &'a str) -> &'a Path {
    if is_standard(path) { Path::new(standard) } else { path }
}

/// Refuses an output whose folder does not exist or cannot be written to, before any work.
pub fn check_output(path: &Path) -> anyhow::Result<()> {
    // A device or a pipe is written to where it is.
    if is_standard(path) || is_device(path) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let reason = if !folder.is_dir() {
        format!("no such folder: {}", folder.display())
    } else if path.is_dir() {
        "is a folder".to_owned()
    } else if let Some(error) = write_error_of(folder) {
        error.to_string()
    } else {
        return Ok(());
    };
    Err(anyhow::anyhow!(reason).context(Failure::Output(path.to_owned())))
}

/// Why files cannot be written to a folder, where the system reports it in advance.
#[cfg(unix)]
fn write_error_of(folder: &Path) -> Option<io::Error> {
    use rustix::fs::{Access, access};
    access(folder, Access::WRITE_OK).err().map(io::Error::from)
}

/// Why files cannot be written to a folder, where the system reports it in advance.
#[cfg(not(unix))]
fn write_error_of(_folder: &Path) -> Option<io::Error> {
    None
}

/// Prints to standard output.
pub fn print(bytes: &[u8]) -> anyhow::Result<()> {
    flushed(|| io::stdout().write_all(bytes))
}

/// Prints to standard output, and fails if what was printed cannot be written.
pub fn flushed(print: impl FnOnce() -> io::Result<()>) -> anyhow::Result<()> {
    let print = || print().and_then(|()| io::stdout().flush());
    print().with_context(|| Failure::Output("standard output".into()))
}

/// Standard output, if it is a file that can be sought, at its present position.
#[cfg(unix)]
pub fn seekable_output() -> Option<File> {
    use rustix::fs::{OFlags, fcntl_getfl};
    use std::os::fd::AsFd;
    let output = io::stdout();
    // A file opened for appending is written at its end, wherever one seeks.
    let appends = fcntl_getfl(&output).is_ok_and(|flags| flags.contains(OFlags::APPEND));
    let file = File::from(output.as_fd().try_clone_to_owned().ok()?);
    (!appends && file.metadata().is_ok_and(|found| found.is_file())).then_some(file)
}

#[cfg(not(unix))]
pub fn seekable_output() -> Option<File> {
    None
}

/// Replaces the file at `path` atomically; writes to a device or pipe, and to standard output if it is `-`.
pub fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    if is_standard(path) {
        return print(bytes);
    }
    let written = if is_device(path) {
        open_device(path)?.and_then(|mut device| device.write_all(bytes))
    } else {
        alphamf_files::output::write_atomic(path, bytes)
    };
    written.with_context(|| Failure::Output(path.to_owned()))
}

/// Opens a device or a pipe for writing; Ctrl-C interrupts the wait for a reader.
pub fn open_device(path: &Path) -> anyhow::Result<io::Result<File>> {
    let path = path.to_owned();
    interruptible(move || File::options().write(true).open(path))
}

/// Whether a path is a device or pipe, which cannot be replaced.
pub fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|existing| !existing.is_file() && !existing.is_dir())
}

/// Reads a file of at most `max_bytes`; Ctrl-C interrupts the wait for a pipe.
pub fn read_bounded(path: &Path, max_bytes: u64) -> anyhow::Result<Vec<u8>> {
    let path = path.to_owned();
    Ok(interruptible(move || at_most(max_bytes, File::open(path)?))??)
}

/// Reads standard input, of at most `max_bytes`; Ctrl-C interrupts the wait for it.
pub fn read_standard_input(max_bytes: u64) -> anyhow::Result<Vec<u8>> {
    Ok(interruptible(move || at_most(max_bytes, io::stdin()))??)
}

/// Reads a source to its end, unless that is beyond `max_bytes`.
fn at_most(max_bytes: u64, source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(io::Error::other(format!("more than {} MB", max_bytes >> 20)));
    }
    Ok(bytes)
}

/// Text for a terminal: escapes control characters, including those that change the direction of writing.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        let is_directional =
            matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || is_directional {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// A number of files, in words.
pub fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// Prints a line on standard error.
pub fn say(line: &str) {
    write_error(&format!("{}\n", printable(line)));
}

/// Writes to standard error, all at once; one that is closed or full stops nothing.
pub fn write_error(text: &str) {
    let _unwritten = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{printable, threads_for_addresses, threads_for_files};

    #[test]
    fn few_descriptors_and_addresses_are_for_few_threads() {
        assert_eq!([0, 32, 1_024].map(threads_for_files), [1, 3, 168]);
        assert_eq!([0, 512 << 20, usize::MAX].map(threads_for_addresses), [1, 2, usize::MAX >> 28]);
    }

    #[test]
    fn terminals_are_not_controlled_by_names() {
        assert_eq!(printable("a\x1b[2Jb\r\u{202e}c\u{9b}"), "a\\u{1b}[2Jb\\r\\u{202e}c\\u{9b}");
        assert_eq!(printable("Grüße, 世界 \u{fffd}.wav"), "Grüße, 世界 \u{fffd}.wav");
    }
}
