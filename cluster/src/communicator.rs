//! Processes started by `mpirun`.

use crate::Post;
use alphamf_samplers::distributed::Communicator;
use mpi::datatype::PartitionMut;
use mpi::environment::Universe;
use mpi::point_to_point::MatchedReceiveVec as _;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _, Destination as _, Source as _};

/// All processes that `mpirun` started. A process that exits without finalising MPI terminates all.
pub struct Mpi {
    world: SimpleCommunicator,
    // Finalises MPI when dropped, which must come last.
    _universe: Universe,
}

impl Mpi {
    /// Initialises MPI; `None` if this process has done so before.
    #[must_use]
    pub fn join() -> Option<Self> {
        let universe = mpi::initialize()?;
        Some(Self { world: universe.world(), _universe: universe })
    }

    /// Terminates all processes with an exit code.
    pub fn abort(&self, code: u8) -> ! {
        self.world.abort(i32::from(code))
    }

    /// Converts a number of bytes for MPI, at most 2 GiB - 1. A larger number terminates all processes, as no error can
    /// be returned and the others wait for the message.
    #[expect(clippy::print_stderr, reason = "the process ends here")]
    fn count(&self, bytes: usize) -> i32 {
        i32::try_from(bytes).unwrap_or_else(|_| {
            let rank = self.world.rank();
            eprintln!("process {rank}: MPI message of {bytes} bytes: expected at most {}", i32::MAX);
            self.abort(1)
        })
    }
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    fn ranks(&self) -> usize {
        self.world.size() as usize
    }

    fn exchange(&mut self, outgoing: Vec<(usize, Vec<u8>)>, sources: &[usize]) -> Vec<Vec<u8>> {
        let process = |rank: usize| self.world.process_at_rank(rank as i32);
        mpi::request::scope(|scope| {
            // Non-blocking: two processes that both wait for the other to receive would deadlock.
            let sending: Vec<_> = outgoing
                .iter()
                .map(|(to, message)| {
                    self.count(message.len());
                    process(*to).immediate_send(scope, &message[..])
                })
                .collect();
            let received = sources.iter().map(|&from| process(from).receive_vec::<u8>().0).collect();
            for request in sending {
                request.wait();
            }
            received
        })
    }

    fn all_gather(&mut self, own: &[u8]) -> Vec<Vec<u8>> {
        // Never empty: Open MPI interprets the address of an empty slice as MPI_IN_PLACE.
        let own = [own, &[0_u8][..]].concat();
        let mut lengths = vec![0_i32; self.world.size() as usize];
        self.world.all_gather_into(&self.count(own.len()), &mut lengths[..]);
        let total = lengths.iter().map(|&length| length as usize).sum();
        self.count(total);
        let starts: Vec<i32> = lengths
            .iter()
            .scan(0, |end, length| {
                let start = *end;
                *end += length;
                Some(start)
            })
            .collect();
        let mut all = vec![0_u8; total];
        self.world.all_gather_varcount_into(
            &own[..],
            &mut PartitionMut::new(&mut all[..], &lengths[..], &starts[..]),
        );
        let range = |(&start, &length): (&i32, &i32)| start as usize..(start + length - 1) as usize;
        starts.iter().zip(&lengths).map(range).map(|range| all[range].to_vec()).collect()
    }
}

impl Post for Mpi {
    fn rank(&self) -> usize {
        Communicator::rank(self)
    }

    fn ranks(&self) -> usize {
        Communicator::ranks(self)
    }

    fn send(&mut self, to: usize, message: &[u8]) {
        // Never empty, as in `all_gather`.
        let message = [message, &[0_u8][..]].concat();
        self.count(message.len());
        self.world.process_at_rank(to as i32).send(&message[..]);
    }

    fn receive(&mut self) -> Option<(usize, Vec<u8>)> {
        let (mut message, status) =
            self.world.any_process().immediate_matched_probe()?.matched_receive_vec::<u8>();
        message.pop();
        Some((status.source_rank() as usize, message))
    }
}
