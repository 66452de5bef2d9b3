//! The distributed factorisation of `hamcmc-2016` section 4.3: DSGLD, PSGLD and HAMCMC on MovieLens 1M.
//!
//! `mpirun -n RANKS movielens --data DIR --method sgld|psgld|hamcmc --step EPS [--iterations N] [--validate] > CURVE.csv`
//!
//! `DIR` has `train.csv.gz` and `test.csv.gz` of `movie,user,rating`. With `--validate` a twentieth of the training
//! ratings is held out in place of the test set, to choose a step size.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::time::Instant;

use alphamf_cluster::Mpi;
use alphamf_samplers::InitialScale;
use alphamf_samplers::distributed::{
    Communicator, Counted, DistributedChain, DistributedSettings, Factorisation, Method, held_blocks, pack,
    unpack,
};
use alphamf_samplers::random::{SeedTree, SeededRng};
use anyhow::Context as _;
use clap::Parser;
use flate2::read::GzDecoder;
use rand::seq::SliceRandom as _;

const MOVIES: usize = 3_952;
const USERS: usize = 6_040;
const RANK: usize = 10;
/// Number of initial samples that are not averaged.
const BURN_IN: usize = 50;
/// Number of iterations between averaged and scored predictions; odd, so that both chains of HAMCMC are included.
const EVERY: usize = 5;

#[derive(Debug, Parser)]
struct Arguments {
    /// The folder of the ratings.
    #[arg(long)]
    data: PathBuf,
    /// sgld, psgld or hamcmc.
    #[arg(long)]
    method: String,
    /// The step size.
    #[arg(long)]
    step: f64,
    /// PSGLD's floor of the metric.
    #[arg(long, default_value_t = 1e-3)]
    floor: f64,
    /// HAMCMC's initial matrix, a multiple of the identity.
    #[arg(long, default_value_t = 1.0)]
    gamma: f64,
    /// HAMCMC's trust region.
    #[arg(long, default_value_t = 0.0)]
    trust: f64,
    /// Blocks to a side.
    #[arg(long, default_value_t = 4)]
    blocks: usize,
    /// Iterations.
    #[arg(long, default_value_t = 1_000)]
    iterations: usize,
    /// The common seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Score by a twentieth of the training ratings, which are not learned from.
    #[arg(long)]
    validate: bool,
}

type Rating = (usize, usize, f64);

/// Reads ratings with movies and users in the order of `places`, so that blocks have about equally many ratings.
fn read(path: &Path, [movies, users]: [&[usize]; 2]) -> anyhow::Result<Vec<Rating>> {
    let place = |places: &[usize], number: f64| places.get((number as usize).checked_sub(1)?).copied();
    let rating = |line: &str| -> Option<Rating> {
        let fields: Vec<f64> = line.split(',').map(|field| field.parse().ok()).collect::<Option<_>>()?;
        let [movie, user, rating] = fields[..] else { return None };
        Some((place(movies, movie)?, place(users, user)?, rating))
    };
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let lines = BufReader::new(GzDecoder::new(file)).lines().skip(1);
    lines
        .map(|line| {
            let line = line.with_context(|| path.display().to_string())?;
            rating(&line)
                .with_context(|| format!("{}: no rating of a movie by a user: {line}", path.display()))
        })
        .collect()
}

fn shuffled(count: usize, stream: &mut SeededRng) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.shuffle(stream);
    places
}

/// Sums the squared errors of the last draw and of the mean prediction over the held-out ratings of all processes, and
/// counts the ratings.
fn score<C: Communicator>(
    chain: &mut DistributedChain<Factorisation, C>,
    held_out: &Factorisation,
    means: &mut HashMap<(usize, usize), Vec<f64>>,
    draws: usize,
) -> [f64; 3] {
    let mut sums = [0.0; 3];
    chain.visit(|_, (row, column), (w, h)| {
        let means = means.entry((row, column)).or_default();
        for (index, (prediction, rating)) in held_out.predictions(row, column, w, h).enumerate() {
            if means.len() == index {
                means.push(0.0);
            }
            means[index] += (prediction - means[index]) / draws as f64;
            sums[0] += (prediction - rating).powi(2);
            sums[1] += (means[index] - rating).powi(2);
            sums[2] += 1.0;
        }
    });
    let mut total = [0.0; 3];
    for message in chain.communicator().all_gather(&pack(&sums)) {
        total.iter_mut().zip(unpack::<f64>(&message)).for_each(|(total, sum)| *total += sum);
    }
    total
}

fn main() -> anyhow::Result<()> {
    let mut ranks = Mpi::join().ok_or_else(|| anyhow::anyhow!("MPI is already initialised"))?;
    let arguments = Arguments::parse();
    let method = match &arguments.method[..] {
        "sgld" => Method::Sgld,
        "psgld" => Method::Psgld { forgetting: 0.99, regularisation: arguments.floor },
        "hamcmc" => Method::Hamcmc {
            memory: 2,
            initial_scale: InitialScale::Fixed(arguments.gamma),
            trust_region: arguments.trust,
        },
        other => anyhow::bail!("--method {other}; expected sgld, psgld or hamcmc"),
    };
    let blocks = arguments.blocks;
    let mut stream = SeedTree::new(7).rng(0);
    let places = [shuffled(MOVIES, &mut stream), shuffled(USERS, &mut stream)];
    let places = [&places[0][..], &places[1][..]];
    let mut training = read(&arguments.data.join("train.csv.gz"), places)?;
    training.shuffle(&mut stream);
    let held_out = if arguments.validate {
        training.split_off(training.len() - training.len() / 20)
    } else {
        read(&arguments.data.join("test.csv.gz"), places)?
    };
    let held = held_blocks(blocks, ranks.ranks(), ranks.rank());
    let factorisation = |entries| Factorisation::new(RANK, [MOVIES, USERS], blocks, held.clone(), entries);
    let held_out = factorisation(held_out);
    let settings = DistributedSettings { method, step_size: arguments.step, seed: arguments.seed };
    let first = ranks.rank() == 0;
    let mut chain = DistributedChain::new(factorisation(training), Counted::new(&mut ranks), settings)?;
    if first {
        println!("iteration,seconds,last,mean");
    }
    let (mut seconds, mut sent) = (0.0, 0);
    let mut means = HashMap::new();
    let mut draws = 0;
    for iteration in 1..=arguments.iterations {
        let (start, before) = (Instant::now(), chain.communicator().bytes);
        chain.step();
        sent += chain.communicator().bytes - before;
        seconds += start.elapsed().as_secs_f64();
        if iteration.is_multiple_of(EVERY) {
            if iteration > BURN_IN {
                draws += 1;
            }
            // Until the burn-in has ended the mean is the last draw.
            let [last, mean, count] = score(&mut chain, &held_out, &mut means, draws.max(1));
            if iteration <= BURN_IN {
                means.clear();
            }
            if first {
                println!(
                    "{iteration},{seconds:.4},{:.5},{:.5}",
                    (last / count).sqrt(),
                    (mean / count).sqrt()
                );
            }
            if !last.is_finite() {
                break;
            }
        }
    }
    if first {
        let per_step = sent as f64 / arguments.iterations as f64;
        eprintln!(
            "{:.4} s and {per_step:.0} bytes sent by the first process per step",
            seconds / arguments.iterations as f64
        );
    }
    Ok(())
}
