//! Runs of ffmpeg, which end before this program does.

use super::original::Original;
use super::report::Report;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A program that Ctrl-C at the terminal does not reach: this one ends it, and what it has completed stays.
pub(super) fn apart(program: &Path) -> Command {
    #[cfg_attr(not(unix), expect(unused_mut))]
    let mut command = Command::new(program);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

/// A run of ffmpeg, and what it reports. Dropped, it is stopped.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) child: Child,
    /// How it ended, once its number is off the list.
    status: Option<ExitStatus>,
    report: Option<JoinHandle<Report>>,
}

/// The numbers of the programs that run.
static PROCESSES: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn processes() -> MutexGuard<'static, BTreeSet<u32>> {
    PROCESSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops all that run, of all threads, before a process ends without dropping them. As long as the returned guard lives, no
/// thread can start one.
#[must_use]
pub fn stop_all() -> impl Drop {
    let processes = processes();
    // Elsewhere, Ctrl-C reaches them.
    #[cfg(unix)]
    for process in processes.iter().filter_map(|&id| rustix::process::Pid::from_raw(id.cast_signed())) {
        // One that has ended cannot be stopped.
        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
    }
    processes
}

impl Running {
    /// Starts it with one descriptor more than its standard ones.
    pub(super) fn start(mut command: Command, handed: Option<&Original>) -> io::Result<Self> {
        // One at a time: no program that is started at the same time gets the descriptor.
        let mut processes = processes();
        handed.map(|file| file.set_inherited(true)).transpose()?;
        let child = command.spawn();
        handed.map(|file| file.set_inherited(false)).transpose()?;
        // Dropped on an error, it is stopped.
        let mut this = Self { child: child?, status: None, report: None };
        processes.insert(this.child.id());
        drop(processes);
        if let Some(errors) = this.child.stderr.take() {
            this.report = Some(thread::Builder::new().spawn(move || Report::read(errors))?);
        }
        Ok(this)
    }

    /// Waits for its end: how it ended, and what it reported.
    pub(super) fn wait(&mut self) -> io::Result<(ExitStatus, Report)> {
        const PAUSE: Duration = Duration::from_millis(5);
        let status = loop {
            match self.ended()? {
                Some(status) => break status,
                None => thread::sleep(PAUSE),
            }
        };
        let report = self.report.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        Ok((status, report))
    }

    /// How it ended, if it has. Its number leaves the list before the system can give it to another program.
    fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.status.is_none() {
            let mut processes = processes();
            self.status = self.child.try_wait()?;
            if self.status.is_some() {
                processes.remove(&self.child.id());
            }
        }
        Ok(self.status)
    }

    /// Waits for its end, which must be a success.
    pub(super) fn finish(&mut self) -> io::Result<Report> {
        let (status, report) = self.wait()?;
        if status.success() {
            return Ok(report);
        }
        // A signal, for example that of the limit on the size of files.
        let ended = || format!("it failed without a message ({status})");
        let reason = report.reason.filter(|_| status.code().is_some()).unwrap_or_else(ended);
        Err(io::Error::other(format!("ffmpeg: {}", reason.trim())))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended cannot be stopped, and its number may be that of another.
        if let Ok(None) = self.ended() {
            let mut processes = processes();
            let _ = self.child.kill();
            let _ = self.child.wait();
            processes.remove(&self.child.id());
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Stdio;

    /// The system gives their numbers to others, which must not be stopped in their place.
    #[test]
    fn programs_that_have_ended_leave_the_list() {
        let start = || {
            let mut command = apart(Path::new("sh"));
            command.args(["-c", "exit"]).stdin(Stdio::null()).stdout(Stdio::piped());
            let mut running = Running::start(command, None).unwrap();
            let mut output = running.child.stdout.take().unwrap();
            assert_eq!(output.read_to_end(&mut Vec::new()).unwrap(), 0);
            // Its output closes a moment before its end.
            thread::sleep(Duration::from_millis(200));
            running
        };
        let dropped = start();
        let number = dropped.child.id();
        assert!(processes().contains(&number));
        drop(dropped);
        assert!(!processes().contains(&number));
        // The next program with its number stays on it.
        let mut waited = start();
        let number = waited.child.id();
        waited.finish().unwrap();
        assert!(processes().insert(number));
        waited.finish().unwrap();
        drop(waited);
        assert!(processes().remove(&number));
    }
}
