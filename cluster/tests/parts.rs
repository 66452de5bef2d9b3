//! Work sharing: each part is done once, by an idle process. Threads stand in for processes, so that this runs without MPI.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

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

/// Process of each part, and the reports to the first process.
#[derive(Debug, Default)]
struct Log {
    done: Vec<(usize, usize)>,
    told: Vec<(usize, Vec<u8>)>,
}

/// One process takes `slow` ms for a part, the others 2 ms; part `last` stops the distribution.
fn shared(ranks: usize, parts: usize, slow: (usize, u64), last: usize) -> Log {
    let log = Mutex::new(Log::default());
    thread::scope(|scope| {
        for mut local in Local::group(ranks) {
            let log = &log;
            scope.spawn(move || {
                let rank = local.rank;
                let pause = Duration::from_millis(if rank == slow.0 { slow.1 } else { 2 });
                let mut begin = |part: usize| {
                    log.lock().unwrap().done.push((part, rank));
                    thread::spawn(move || {
                        thread::sleep(pause);
                        format!("{part} by {rank}").into_bytes()
                    })
                };
                let mut told = |part: usize, report: &[u8]| {
                    assert_eq!(rank, 0);
                    log.lock().unwrap().told.push((part, report.to_vec()));
                    if part == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                share_out(&mut local, parts, &mut begin, &mut told);
            });
        }
    });
    let mut log = log.into_inner().unwrap();
    log.done.sort_unstable();
    log.told.sort_unstable();
    log
}

#[test]
fn every_part_is_done_once_and_told_of() {
    for ranks in 1..=4 {
        for parts in [0, 1, 3, 40] {
            let Log { done, told } = shared(ranks, parts, (0, 2), usize::MAX);
            assert!(
                done.iter().map(|(part, _)| *part).eq(0..parts),
                "{ranks} ranks, {parts} parts: {done:?}"
            );
            let expected = done.iter().map(|(part, rank)| (*part, format!("{part} by {rank}").into_bytes()));
            assert!(told.into_iter().eq(expected));
        }
    }
}

#[test]
fn a_slow_rank_is_given_less() {
    // The first process distributes parts while it works.
    for slow in 0..3 {
        let Log { done, .. } = shared(3, 60, (slow, 300), usize::MAX);
        let parts = done.iter().filter(|(_, rank)| *rank == slow).count();
        // A third of them would take it six seconds.
        assert!((1..10).contains(&parts) && done.len() == 60, "rank {slow}: {parts} of {}", done.len());
    }
}

#[test]
fn nothing_is_handed_out_when_there_is_no_hope() {
    let Log { done, told } = shared(2, 1_000, (0, 2), 5);
    assert!(done.len() < 30, "{}", done.len());
    assert_eq!(done.len(), told.len());
}
