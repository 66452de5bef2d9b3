//! Checks that MPI processes give results bit-identical to one process, and that messages arrive complete.
//!
//! `mpirun -n RANKS same_bits`, with up to four processes. The law of the chain on one process is proved by the tests
//! of `alphamf-samplers`.

use std::error::Error;

use alphamf_cluster::Mpi;
use alphamf_samplers::InitialScale;
use alphamf_samplers::distributed::{
    Communicator, DistributedChain, DistributedSettings, Factorisation, Local, Method, held_blocks, pack,
    unpack,
};
use alphamf_samplers::random::SeedTree;
use rand_distr::{Distribution, StandardNormal};

const SHAPE: [usize; 2] = [30, 23];
const BLOCKS: usize = 4;

fn factorisation(rank: usize, ranks: usize) -> Factorisation {
    let mut stream = SeedTree::new(1).rng(0);
    let cells = (0..SHAPE[0]).flat_map(|i| (0..SHAPE[1]).map(move |j| (i, j)));
    let entries =
        cells.filter(|(i, j)| (i * j) % 3 != 1).map(|(i, j)| (i, j, StandardNormal.sample(&mut stream)));
    Factorisation::new(3, SHAPE, BLOCKS, held_blocks(BLOCKS, ranks, rank), entries)
}

/// Row and column of a block, and its unknowns as bits.
type Block = (u64, u64, Vec<u64>);

/// Every unknown after 200 steps.
fn run<C: Communicator>(mut ranks: C, method: Method) -> Result<Vec<Block>, Box<dyn Error>> {
    let target = factorisation(ranks.rank(), ranks.ranks());
    let settings = DistributedSettings { method, step_size: 0.005, seed: 2 };
    let mut chain = DistributedChain::new(target, &mut ranks, settings)?;
    (0..200).for_each(|_| chain.step());
    let mut own: Vec<u64> = Vec::new();
    chain.visit(|_, (row, column), (w, h)| {
        own.extend([row as u64, column as u64, (w.len() + h.len()) as u64]);
        own.extend(w.iter().chain(h).map(|x| x.to_bits()));
    });
    let mut blocks = Vec::new();
    for message in ranks.all_gather(&pack(&own)) {
        let mut rest = &unpack::<u64>(&message)[..];
        while let [row, column, length, others @ ..] = rest {
            let (state, others) = others.split_at(*length as usize);
            blocks.push((*row, *column, state.to_vec()));
            rest = others;
        }
    }
    blocks.sort();
    Ok(blocks)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut ranks = Mpi::join().ok_or("MPI is already initialised")?;
    let (rank, count) = (ranks.rank(), ranks.ranks());
    // Messages of every length from none to megabytes, two to each process, in order.
    let length = |from: usize, to: usize| if from == to { 0 } else { 1 << (18 + (from + 2 * to) % 5) };
    let sent = (0..count).flat_map(|to| [(to, vec![rank as u8; length(rank, to)]), (to, vec![7; to])]);
    let sources: Vec<usize> = (0..count).flat_map(|from| [from, from]).collect();
    let arrived = ranks.exchange(sent.collect(), &sources);
    for (from, pair) in arrived.chunks_exact(2).enumerate() {
        assert!(pair[0] == vec![from as u8; length(from, rank)] && pair[1] == vec![7; rank], "from {from}");
    }
    assert!(ranks.all_gather(&[]).iter().all(Vec::is_empty));
    let gathered = ranks.all_gather(&vec![7_u8; rank]);
    assert!(gathered.iter().enumerate().all(|(from, message)| *message == vec![7; from]));
    let hamcmc =
        |memory| Method::Hamcmc { memory, initial_scale: InitialScale::Pairs(0.1), trust_region: 1.0 };
    let psgld = Method::Psgld { forgetting: 0.9, regularisation: 0.1 };
    for method in [Method::Sgld, psgld, hamcmc(2), hamcmc(4)] {
        let together = run(&mut ranks, method)?;
        assert_eq!(together.len(), BLOCKS * BLOCKS);
        assert!(
            together.iter().all(|(.., state)| state.iter().all(|&bits| f64::from_bits(bits).is_finite()))
        );
        assert!(together == run(Local::alone(), method)?, "{method:?} on {count} processes");
    }
    if rank == 0 {
        println!("{count} processes: the same bits as one process");
    }
    Ok(())
}
