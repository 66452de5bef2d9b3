//! Communication between ranks: messages of bytes, in order between any two.

use std::sync::mpsc::{Receiver, Sender, channel};

use num_traits::{FromBytes, ToBytes};

/// One rank's connection to its group of ranks.
///
/// All ranks of a group make the same calls in the same order. A failing rank ends the whole group, so no call returns an
/// error.
pub trait Communicator {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn ranks(&self) -> usize;

    /// Sends every (rank, message) in `outgoing` and returns one message from each of `sources`, in this order.
    /// Messages between two ranks arrive in the order in which they were sent. A rank may send to itself.
    fn exchange(&mut self, outgoing: Vec<(usize, Vec<u8>)>, sources: &[usize]) -> Vec<Vec<u8>>;

    /// Sends `own` to every rank and returns the messages of all ranks, in rank order.
    fn all_gather(&mut self, own: &[u8]) -> Vec<Vec<u8>> {
        let all: Vec<usize> = (0..self.ranks()).collect();
        let outgoing = all.iter().map(|&rank| (rank, own.to_vec())).collect();
        self.exchange(outgoing, &all)
    }
}

impl<C: Communicator + ?Sized> Communicator for &mut C {
    fn rank(&self) -> usize {
        (**self).rank()
    }

    fn ranks(&self) -> usize {
        (**self).ranks()
    }

    fn exchange(&mut self, outgoing: Vec<(usize, Vec<u8>)>, sources: &[usize]) -> Vec<Vec<u8>> {
        (**self).exchange(outgoing, sources)
    }

    fn all_gather(&mut self, own: &[u8]) -> Vec<Vec<u8>> {
        (**self).all_gather(own)
    }
}

/// A rank within one process: a single one, or one per thread.
#[derive(Debug)]
pub struct Local {
    rank: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

impl Local {
    /// Creates a group of one rank.
    #[must_use]
    pub fn alone() -> Self {
        let (to, from) = channel();
        Self { rank: 0, to: vec![to], from: vec![from] }
    }

    /// Creates a group of `ranks` ranks, each to be moved to its own thread.
    #[must_use]
    pub fn group(ranks: usize) -> Vec<Self> {
        let mut to: Vec<Vec<_>> = (0..ranks).map(|_| Vec::new()).collect();
        let from: Vec<Vec<_>> = (0..ranks)
            .map(|_| {
                to.iter_mut()
                    .map(|to| {
                        let (sender, receiver) = channel();
                        to.push(sender);
                        receiver
                    })
                    .collect()
            })
            .collect();
        to.into_iter().zip(from).enumerate().map(|(rank, (to, from))| Self { rank, to, from }).collect()
    }
}

impl Communicator for Local {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.to.len()
    }

    #[expect(clippy::panic, reason = "a thread that has ended early has panicked itself")]
    fn exchange(&mut self, outgoing: Vec<(usize, Vec<u8>)>, sources: &[usize]) -> Vec<Vec<u8>> {
        for (rank, message) in outgoing {
            assert!(self.to[rank].send(message).is_ok(), "rank {rank} has ended");
        }
        let receive = |&rank: &usize| match self.from[rank].recv() {
            Ok(message) => message,
            Err(_) => panic!("rank {rank} has ended"),
        };
        sources.iter().map(receive).collect()
    }
}

/// A communicator that counts the messages and bytes sent to other ranks.
#[derive(Debug)]
pub struct Counted<C> {
    inner: C,
    /// Messages sent to other ranks.
    pub messages: u64,
    /// Bytes sent to other ranks.
    pub bytes: u64,
}

impl<C> Counted<C> {
    /// Wraps `inner`, with counts of 0.
    #[must_use]
    pub fn new(inner: C) -> Self {
        Self { inner, messages: 0, bytes: 0 }
    }
}

impl<C: Communicator> Communicator for Counted<C> {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn ranks(&self) -> usize {
        self.inner.ranks()
    }

    fn exchange(&mut self, outgoing: Vec<(usize, Vec<u8>)>, sources: &[usize]) -> Vec<Vec<u8>> {
        let rank = self.rank();
        for (_, message) in outgoing.iter().filter(|(to, _)| *to != rank) {
            self.messages += 1;
            self.bytes += message.len() as u64;
        }
        self.inner.exchange(outgoing, sources)
    }

    fn all_gather(&mut self, own: &[u8]) -> Vec<Vec<u8>> {
        let others = self.ranks() as u64 - 1;
        self.messages += others;
        self.bytes += others * own.len() as u64;
        self.inner.all_gather(own)
    }
}

/// Encodes numbers as a little-endian message.
#[must_use]
pub fn pack<T: ToBytes<Bytes: Sized>>(numbers: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(numbers));
    numbers.iter().for_each(|number| bytes.extend_from_slice(number.to_le_bytes().as_ref()));
    bytes
}

/// Decodes the numbers of a little-endian message; ignores surplus bytes at the end.
#[must_use]
pub fn unpack<T>(bytes: &[u8]) -> Vec<T>
where
    T: FromBytes,
    T::Bytes: Sized + for<'a> TryFrom<&'a [u8]>,
{
    let numbers = bytes.chunks_exact(size_of::<T>()).filter_map(|bytes| <T::Bytes>::try_from(bytes).ok());
    numbers.map(|bytes| T::from_le_bytes(&bytes)).collect()
}
