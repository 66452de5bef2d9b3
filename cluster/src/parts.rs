//! Parts of a job, each given to the rank that is free next.

use std::ops::ControlFlow;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A group of ranks that send each other messages without knowing when and from whom the next one comes.
pub trait Post {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn ranks(&self) -> usize;

    /// Sends a message.
    fn send(&mut self, to: usize, message: &[u8]);

    /// A message that has arrived, and who sent it; nothing if none has.
    fn receive(&mut self) -> Option<(usize, Vec<u8>)>;
}

/// How long a rank that has nothing to do sleeps before it looks again: what it leaves to do runs on the same core.
const PAUSE: Duration = Duration::from_millis(2);

/// Has every part from 0 on done by one rank, the next one by whoever is free. All ranks call it; each leaves when there
/// is nothing left for it. `begin` starts the work on a part, which ends with a report, empty if it panicked; `told` is
/// given the reports on the first rank, and may stop the handing out. The first rank works as the others do.
pub fn share_out(
    post: &mut dyn Post,
    parts: usize,
    begin: &mut dyn FnMut(usize) -> JoinHandle<Vec<u8>>,
    told: &mut dyn FnMut(usize, &[u8]) -> ControlFlow<()>,
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
            && told(part, &work.join().unwrap_or_default()).is_break()
        {
            left = 0..0;
        }
        if let Some((from, message)) = arrived {
            // A rank's first message is no report.
            if let Some((part, report)) = message.split_first_chunk()
                && told(u64::from_le_bytes(*part) as usize, report).is_break()
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

/// Asks the first rank for parts until it has none.
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
