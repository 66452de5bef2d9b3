//! Options of every command.

use clap::Args;
use clap::builder::TypedValueParser;
use std::thread;

/// Options of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "General")]
pub struct Common {
    /// Set the number of worker threads.
    ///
    /// Range: 1 to 1024. Default: one per core. Output does not depend on it.
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true, value_parser = parse_threads)]
    threads: Option<u16>,

    /// Print errors only.
    #[arg(short, long, global = true)]
    pub quiet: bool,

    /// Set the log level.
    ///
    /// Excludes --quiet.
    #[arg(long, global = true, value_name = "LEVEL", default_value = "warn", conflicts_with = "quiet")]
    #[arg(hide_short_help = true)]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(["error", "warn", "info", "debug", "trace"])
        .try_map(|level| level.parse::<tracing::Level>()))]
    log: tracing::Level,

    /// Print help: common options with -h, all with --help.
    #[arg(short, long, global = true, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

fn parse_threads(text: &str) -> Result<u16, String> {
    let threads = text.parse().ok().filter(|threads| (1..=1024).contains(threads));
    threads.ok_or_else(|| "expected a whole number from 1 to 1024".to_owned())
}

/// The options of every command but help, hidden, for commands on which they have no effect.
pub fn without_effect() -> Vec<clap::Arg> {
    let common = Common::augment_args(clap::Command::new("denoise"));
    let others = common.get_arguments().filter(|option| option.get_id() != "help");
    others.map(|option| option.clone().hide(true)).collect()
}

impl Common {
    /// The least level to log.
    pub fn level(&self) -> tracing::Level {
        if self.quiet { tracing::Level::ERROR } else { self.log }
    }

    /// The number of worker threads, 0 for one per core. The system's limits of file descriptors and address space may
    /// reduce it.
    pub fn threads(&self) -> usize {
        let [files, bytes] = limits();
        let most = threads_for_files(files).min(threads_for_addresses(bytes));
        match self.threads.map(usize::from) {
            Some(asked) => asked.min(most),
            // 0 means one per core.
            None if thread::available_parallelism().is_ok_and(|cores| cores.get() <= most) => 0,
            None => most,
        }
    }
}

/// The system's limits of open files, and of address space in bytes.
#[cfg(unix)]
fn limits() -> [usize; 2] {
    use rustix::process::{Resource, getrlimit};
    [Resource::Nofile, Resource::As].map(|resource| {
        let limit = getrlimit(resource).current;
        limit.and_then(|limit| limit.try_into().ok()).unwrap_or(usize::MAX)
    })
}

#[cfg(not(unix))]
fn limits() -> [usize; 2] {
    [usize::MAX; 2]
}

/// Maximum number of threads for a limit of open files.
fn threads_for_files(files: usize) -> usize {
    /// Descriptors of the run, and of a file with two pipes to and from ffmpeg.
    const OWN: usize = 12;
    const EACH: usize = 6;
    (files.saturating_sub(OWN) / EACH).max(1)
}

/// Maximum number of threads for a limit of address space, bytes (`ulimit -v`).
fn threads_for_addresses(bytes: usize) -> usize {
    /// Address space that glibc reserves for a thread's heap, used or not: doubled by alignment, and again for the
    /// separate thread of each file in a folder.
    const EACH: usize = 256 << 20;
    (bytes / EACH).max(1)
}

#[cfg(test)]
mod tests {
    use super::{threads_for_addresses, threads_for_files};

    #[test]
    fn few_descriptors_and_addresses_are_for_few_threads() {
        assert_eq!([0, 32, 1_024].map(threads_for_files), [1, 3, 168]);
        assert_eq!([0, 512 << 20, usize::MAX].map(threads_for_addresses), [1, 2, usize::MAX >> 28]);
    }
}
