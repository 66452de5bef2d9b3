//! Work sharing: each part is done once, by an idle process. Threads stand in for processes, so that this runs without MPI.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use alphamf_cluster::{Post, share_out};

struct Local {
    rank: usize,
    to: Vec<Sender<(usize, Vec<u8>)>>,
    inbox: Receiver<(usize, Vec<u8>)>,
}

impl Local {
    fn group(ranks: usize) -> Vec<Self> {
        let (to, inboxes): (Vec<_>, Vec<_>) = (0..ranks).map(|_| channel()).unzip();
        let local = |(rank, inbox)| Self { rank, to: to.clone(), inbox };
        inboxes.into_iter().enumerate().map(local).collect()
    }
}

impl Post for Local {
    fn rank(&self) -> usize {
        self.rank
    }
    fn ranks(&self) -> usize {
        self.to.len()
    }
    fn send(&mut self, to: usize, message: &[u8]) {
        self.to[to].send((self.rank, message.to_vec())).unwrap();
    }
    fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
        self.inbox.try_recv().ok()
    }
}

/// Progress of a distribution.
#[derive(Debug, Default)]
struct Log {
    /// Parts that were started, and their processes.
    started: Vec<(usize, usize)>,
    /// Reports to the first process.
    reports: Vec<(usize, Vec<u8>)>,
}

/// Each part waits until `is_ready` holds for the log, the part and its process; the report of part `last` stops the
/// distribution.
fn shared(
    ranks: usize,
    parts: usize,
    last: Option<usize>,
    is_ready: impl Fn(&Log, usize, usize) -> bool + Copy + Send + 'static,
) -> Log {
    let log = Arc::new((Mutex::new(Log::default()), Condvar::new()));
    let change = |log: &(Mutex<Log>, Condvar), change: &mut dyn FnMut(&mut Log)| {
        change(&mut log.0.lock().unwrap());
        log.1.notify_all();
    };
    thread::scope(|scope| {
        for mut local in Local::group(ranks) {
            let log = &log;
            scope.spawn(move || {
                let rank = local.rank;
                let mut begin = |part: usize| {
                    change(log, &mut |log| log.started.push((part, rank)));
                    let log = Arc::clone(log);
                    thread::spawn(move || {
                        let guard = log.0.lock().unwrap();
                        drop(log.1.wait_while(guard, |log| !is_ready(log, part, rank)).unwrap());
                        format!("{part} by {rank}").into_bytes()
                    })
                };
                let mut on_report = |part: usize, report: &[u8]| {
                    assert_eq!(rank, 0);
                    change(log, &mut |log| log.reports.push((part, report.to_vec())));
                    if Some(part) == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                share_out(&mut local, parts, &mut begin, &mut on_report);
            });
        }
    });
    let mut log = std::mem::take(&mut *log.0.lock().unwrap());
    log.started.sort_unstable();
    log.reports.sort_unstable();
    log
}

#[test]
fn every_part_is_done_and_reported_once() {
    for ranks in 1..=4 {
        for parts in [0, 1, 3, 40] {
            let Log { started, reports } = shared(ranks, parts, None, |_, _, _| true);
            assert!(
                started.iter().map(|(part, _)| *part).eq(0..parts),
                "{ranks} ranks, {parts} parts: {started:?}"
            );
            let expected =
                started.iter().map(|(part, rank)| (*part, format!("{part} by {rank}").into_bytes()));
            assert!(reports.into_iter().eq(expected));
        }
    }
}

#[test]
fn a_slow_process_is_given_less() {
    const PARTS: usize = 60;
    // The first process distributes parts while it works.
    for slow in 0..3 {
        let is_ready = move |log: &Log, _, rank| {
            if rank == slow {
                // Its first part takes as long as all parts of the others.
                log.started.len() == PARTS
            } else {
                log.started.iter().any(|&(_, rank)| rank == slow)
            }
        };
        let Log { started, .. } = shared(3, PARTS, None, is_ready);
        let parts = started.iter().filter(|(_, rank)| *rank == slow).count();
        assert_eq!((parts, started.len()), (1, PARTS), "process {slow}");
    }
}

#[test]
fn nothing_is_handed_out_after_a_stop() {
    const LAST: usize = 5;
    let is_ready = |log: &Log, part, _| part <= LAST || log.reports.iter().any(|&(part, _)| part == LAST);
    let Log { started, reports } = shared(2, 1_000, Some(LAST), is_ready);
    // The other process may have one part more.
    assert!((LAST + 1..=LAST + 2).contains(&started.len()), "{}", started.len());
    assert_eq!(started.len(), reports.len());
}
