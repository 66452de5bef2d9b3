//! Work sharing: each part of a job goes to the next idle process.

use std::ops::ControlFlow;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Asynchronous messages within a group of processes.
pub trait Post {
    /// Number of this process, from 0.
    fn rank(&self) -> usize;

    /// Number of processes.
    fn ranks(&self) -> usize;

    /// Sends a message.
    fn send(&mut self, to: usize, message: &[u8]);

    /// Next message that has arrived, and its sender; `None` if there is none.
    fn receive(&mut self) -> Option<(usize, Vec<u8>)>;
}

/// Sleep of a process between polls: its work may run on the same core.
const PAUSE: Duration = Duration::from_millis(2);

/// Distributes parts 0 to `parts` - 1 among all processes: each goes to the next idle one. All processes call it; each
/// returns when no part is left. `begin` starts a part, whose thread returns a report; a panic gives an empty one.
/// `on_report` receives the reports in the first process and may stop the distribution. The first process works, too.
pub fn share_out(
    post: &mut dyn Post,
    parts: usize,
    begin: &mut dyn FnMut(usize) -> JoinHandle<Vec<u8>>,
    on_report: &mut dyn FnMut(usize, &[u8]) -> ControlFlow<()>,
) {
    if post.rank() > 0 {
        return work(post, begin);
    }
    let mut left = 0..parts;
    let mut others = post.ranks() - 1;
    let mut own: Option<(usize, JoinHandle<Vec<u8>>)> = None;
    loop {
        if own.is_none() {
            own = left.next().map(|part| (part, begin(part)));
        }
        let finished = own.take_if(|(_, work)| work.is_finished());
        let arrived = post.receive();
        let pause = finished.is_none() && arrived.is_none();
        if let Some((part, work)) = finished
            && on_report(part, &work.join().unwrap_or_default()).is_break()
        {
            left = 0..0;
        }
        if let Some((from, message)) = arrived {
            // The first message of a process is a request without a report.
            if let Some((part, report)) = message.split_first_chunk()
                && on_report(u64::from_le_bytes(*part) as usize, report).is_break()
            {
                left = 0..0;
            }
            match left.next() {
                Some(part) => post.send(from, &(part as u64).to_le_bytes()),
                None => {
                    others -= 1;
                    post.send(from, &[]);
                }
            }
        }
        if own.is_none() && left.is_empty() && others == 0 {
            return;
        }
        if pause {
            thread::sleep(PAUSE);
        }
    }
}

/// Requests parts from the first process until none is left.
fn work(post: &mut dyn Post, begin: &mut dyn FnMut(usize) -> JoinHandle<Vec<u8>>) {
    let mut report = Vec::new();
    loop {
        post.send(0, &report);
        let (_, answer) = loop {
            match post.receive() {
                Some(message) => break message,
                None => thread::sleep(PAUSE),
            }
        };
        let Some(&part) = answer.first_chunk() else { return };
        let work = begin(u64::from_le_bytes(part) as usize);
        report = [&part[..], &work.join().unwrap_or_default()].concat();
    }
}
