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

/// Builds a command that Ctrl-C at the terminal does not reach: this program stops it, and keeps completed outputs.
pub(super) fn apart(program: &Path) -> Command {
    #[cfg_attr(not(unix), expect(unused_mut))]
    let mut command = Command::new(program);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

/// A run of ffmpeg and its report. Dropping it stops the program.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) child: Child,
    /// Exit status, set when the process ID is removed from [`PROCESSES`].
    status: Option<ExitStatus>,
    report: Option<JoinHandle<Report>>,
}

/// IDs of the running processes.
static PROCESSES: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn processes() -> MutexGuard<'static, BTreeSet<u32>> {
    PROCESSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops the running processes of all threads, before this process exits without dropping them. While the returned
/// guard lives, no thread can start one.
#[must_use]
pub fn stop_all() -> impl Drop {
    let processes = processes();
    // On other systems, Ctrl-C reaches them.
    #[cfg(unix)]
    for process in processes.iter().filter_map(|&id| rustix::process::Pid::from_raw(id.cast_signed())) {
        // An error means that the process has already ended.
        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
    }
    processes
}

impl Running {
    /// Starts the program. It inherits the descriptor of `inherited`, besides the standard ones.
    pub(super) fn start(mut command: Command, inherited: Option<&Original>) -> io::Result<Self> {
        // The lock serialises starts: no other program inherits the descriptor.
        let mut processes = processes();
        inherited.map(|file| file.set_inherited(true)).transpose()?;
        let child = command.spawn();
        inherited.map(|file| file.set_inherited(false)).transpose()?;
        // On an error, dropping `this` stops the program.
        let mut this = Self { child: child?, status: None, report: None };
        processes.insert(this.child.id());
        drop(processes);
        if let Some(errors) = this.child.stderr.take() {
            this.report = Some(thread::Builder::new().spawn(move || Report::read(errors))?);
        }
        Ok(this)
    }

    /// Waits for the program to end. Returns its exit status and report.
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

    /// Exit status, if the program has ended. Its ID is removed from [`PROCESSES`] before the system can reuse it.
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

    /// Waits for the program to end; fails unless it succeeded.
    pub(super) fn finish(&mut self) -> io::Result<Report> {
        let (status, report) = self.wait()?;
        if status.success() {
            return Ok(report);
        }
        // It was ended by a signal, such as that of the file size limit.
        let ended = || format!("it failed without a message ({status})");
        let reason = report.reason.filter(|_| status.code().is_some()).unwrap_or_else(ended);
        Err(io::Error::other(format!("ffmpeg: {}", reason.trim())))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A process that has ended must not be stopped: its ID may belong to another.
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

    /// The system may reuse their IDs for other processes, which must not be stopped.
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
        // A later process with the same ID stays on the list.
        let mut waited = start();
        let number = waited.child.id();
        waited.finish().unwrap();
        assert!(processes().insert(number));
        waited.finish().unwrap();
        drop(waited);
        assert!(processes().remove(&number));
    }
}
