//! Chains spread over ranks: the same bits on any number of them, and the law that a single Gibbs sampler has.

use std::thread;

use alphamf_samplers::InitialScale;
use alphamf_samplers::distributed::{
    BlockTarget, Communicator, Counted, DistributedChain, DistributedSettings, Factorisation, Local, Method,
    Side,
};
use alphamf_samplers::random::{Stream, Streams};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

const ROWS: usize = 6;
const COLUMNS: usize = 5;
const RANK: usize = 2;
const PSGLD: Method = Method::Psgld { forgetting: 0.999, regularisation: 0.05 };
const HAMCMC: Method =
    Method::Hamcmc { memory: 2, initial_scale: InitialScale::Fixed(0.1), trust_region: 2.0 };

fn entries() -> Vec<(usize, usize, f64)> {
    let mut stream = Streams::new(8).stream(0);
    let mut normal = |_| -> f64 { StandardNormal.sample(&mut stream) };
    let w: Vec<f64> = (0..ROWS * RANK).map(&mut normal).collect();
    let h: Vec<f64> = (0..COLUMNS * RANK).map(&mut normal).collect();
    let cells = (0..ROWS).flat_map(|i| (0..COLUMNS).map(move |j| (i, j)));
    // A corner without data makes parts of unlike size.
    let observed = cells.filter(|&(i, j)| i + j < 9 && (i, j) != (0, 0) && (i < 4 || j < 4));
    observed
        .map(|(i, j)| (i, j, (0..RANK).map(|k| w[i * RANK + k] * h[j * RANK + k]).sum::<f64>() + normal(0)))
        .collect()
}

fn target(blocks: usize, ranks: usize, rank: usize) -> Factorisation {
    let held: Vec<usize> = (0..blocks).filter(|block| block * ranks / blocks == rank).collect();
    let held = held[0]..held[0] + held.len();
    Factorisation::new(RANK, [ROWS, COLUMNS], blocks, held, entries())
}

/// What `each` makes of every rank's chain, by rank.
fn on_ranks<R: Send>(
    blocks: usize,
    ranks: usize,
    settings: DistributedSettings,
    each: impl Fn(DistributedChain<Factorisation, Counted<Local>>) -> R + Sync,
) -> Vec<R> {
    thread::scope(|scope| {
        let each = &each;
        let run = |local: Local| {
            scope.spawn(move || {
                let target = target(blocks, ranks, local.rank());
                each(DistributedChain::new(target, Counted::new(local), settings).unwrap())
            })
        };
        let threads: Vec<_> = Local::group(ranks).into_iter().map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Every unknown after some steps, by block, as bits.
fn state_after(steps: usize, blocks: usize, ranks: usize, settings: DistributedSettings) -> Vec<u64> {
    let seen = on_ranks(blocks, ranks, settings, |mut chain| {
        (0..steps).for_each(|_| chain.step());
        let mut seen = Vec::new();
        chain.visit(|_, (row, column), (w, h)| {
            seen.push((row, column, w.iter().chain(h).map(|x| x.to_bits()).collect::<Vec<_>>()));
        });
        seen
    });
    let mut seen: Vec<_> = seen.into_iter().flatten().collect();
    seen.sort();
    assert_eq!(seen.len(), blocks * blocks);
    seen.into_iter().flat_map(|(.., bits)| bits).collect()
}

#[test]
fn a_chain_is_the_same_on_any_number_of_ranks() {
    let longer = Method::Hamcmc { memory: 4, initial_scale: InitialScale::Pairs(0.1), trust_region: 1.0 };
    for method in [Method::Sgld, PSGLD, HAMCMC, longer] {
        let settings = DistributedSettings { method, step_size: 0.01, seed: 3 };
        let alone = state_after(150, 4, 1, settings);
        assert!(alone.iter().all(|&bits| f64::from_bits(bits).is_finite()));
        for ranks in 2..=4 {
            assert!(state_after(150, 4, ranks, settings) == alone, "{method:?} on {ranks} ranks");
        }
        assert!(state_after(150, 4, 2, DistributedSettings { seed: 4, ..settings }) != alone);
    }
}

#[test]
fn a_rank_sends_its_columns_and_inner_products() {
    // Two columns a block and more: what travels is `vectors x rank x columns` numbers of eight bytes, at most once a step.
    let sent = |method, ranks| {
        let settings = DistributedSettings { method, step_size: 0.01, seed: 3 };
        let bytes = on_ranks(ranks, ranks, settings, |mut chain| {
            let before = chain.communicator().bytes;
            (0..100).for_each(|_| chain.step());
            chain.communicator().bytes - before
        });
        bytes.iter().sum::<u64>()
    };
    let columns = (RANK * COLUMNS * 8) as u64;
    let plain = sent(Method::Sgld, 4);
    assert!(plain.is_multiple_of(columns) && plain / columns > 50 && plain / columns <= 100, "{plain}");
    assert_eq!(sent(PSGLD, 4), 2 * plain);
    // Four vectors instead of one, and ten inner products of each rank to three others.
    assert_eq!(sent(HAMCMC, 4), 4 * plain + 100 * 4 * 3 * 10 * 8);
    assert_eq!(sent(HAMCMC, 1), 0);
}

/// Parts of a square in as many blocks as it has rows and columns of: all alike. Of the entries of the first block alone,
/// one part has them all.
#[test]
fn a_chain_knows_how_uneven_its_parts_are() {
    let settings = DistributedSettings { method: Method::Sgld, step_size: 0.01, seed: 3 };
    let imbalance = |entries: Vec<(usize, usize, f64)>| {
        let target = Factorisation::new(1, [4, 4], 2, 0..2, entries);
        let [local] = Local::group(1).try_into().unwrap();
        DistributedChain::new(target, local, settings).unwrap().imbalance()
    };
    let all: Vec<_> = (0..16).map(|k| (k / 4, k % 4, 1.0)).collect();
    assert_eq!(imbalance(all.clone()), 1.0);
    assert_eq!(imbalance(all[..2].to_vec()), 2.0);
}

#[test]
fn what_cannot_be_run_is_refused() {
    let refusal = |method, step_size| {
        DistributedChain::new(
            target(2, 1, 0),
            Local::alone(),
            DistributedSettings { method, step_size, seed: 0 },
        )
        .unwrap_err()
        .to_string()
    };
    assert!(refusal(Method::Sgld, 0.0).contains("step size is 0"));
    assert!(refusal(Method::Psgld { forgetting: 1.0, regularisation: 1.0 }, 0.1).contains("forgetting is 1"));
    let short = Method::Hamcmc { memory: 1, initial_scale: InitialScale::Fixed(1.0), trust_region: 0.0 };
    assert!(refusal(short, 0.1).contains("memory is 1"));
    let settings = DistributedSettings { method: Method::Sgld, step_size: 0.1, seed: 0 };
    let empty = Factorisation::new(RANK, [ROWS, COLUMNS], 1, 0..1, []);
    let refused = DistributedChain::new(empty, Local::alone(), settings).unwrap_err().to_string();
    assert!(refused.contains("number of observations is 0"), "{refused}");
}

#[test]
fn slopes_are_those_of_the_potential() {
    let target = target(2, 1, 0);
    let mut stream = Streams::new(5).stream(0);
    let (mut w, h) = (target.start(Side::Rows, 1, &mut stream), target.start(Side::Columns, 0, &mut stream));
    let potential = |w: &[f64]| {
        let errors = target.predictions(1, 0, w, &h).map(|(mean, value)| (mean - value).powi(2));
        (errors.sum::<f64>() + w.iter().map(|w| w * w).sum::<f64>()) / 2.0
    };
    let (mut slope, mut other) = (vec![0.0; w.len()], vec![0.0; h.len()]);
    target.add_likelihood((1, 0), (&w, &h), (&mut slope, &mut other));
    target.add_prior(Side::Rows, 1, &w, &mut slope);
    for index in 0..w.len() {
        let at = w[index];
        let mut shifted = |by: f64| {
            w[index] = at + by;
            potential(&w)
        };
        let expected = (shifted(1e-4) - shifted(-1e-4)) / 2e-4;
        w[index] = at;
        assert!((slope[index] - expected).abs() < 1e-6, "{} {expected}", slope[index]);
    }
    assert!(other.iter().any(|slope| slope.abs() > 1e-3));
}

/// Sums of draws: mean and variance of each.
struct Moments {
    count: f64,
    sums: Vec<(f64, f64)>,
}

impl Moments {
    fn new(size: usize) -> Self {
        Self { count: 0.0, sums: vec![(0.0, 0.0); size] }
    }

    fn add(&mut self, draw: &[f64]) {
        self.count += 1.0;
        for (sum, x) in self.sums.iter_mut().zip(draw) {
            sum.0 += x;
            sum.1 += x * x;
        }
    }

    fn get(&self) -> Vec<(f64, f64)> {
        let moments = |&(sum, squares): &(f64, f64)| {
            let mean = sum / self.count;
            (mean, squares / self.count - mean * mean)
        };
        self.sums.iter().map(moments).collect()
    }
}

/// Draws each row of one factor given the other, exactly: precision `I + sum h h'`, by Cholesky's roots for two components.
fn draw_rows(count: usize, other: &[f64], cells: &[(usize, usize, f64)], stream: &mut Stream) -> Vec<f64> {
    let mut precision = vec![[1.0, 0.0, 1.0]; count];
    let mut linear = vec![[0.0; 2]; count];
    for &(i, j, x) in cells {
        let h = &other[j * RANK..][..RANK];
        let (p, b) = (&mut precision[i], &mut linear[i]);
        *p = [p[0] + h[0] * h[0], p[1] + h[0] * h[1], p[2] + h[1] * h[1]];
        *b = [b[0] + h[0] * x, b[1] + h[1] * x];
    }
    let mut rows = Vec::new();
    for ([a, b, c], [u, v]) in precision.into_iter().zip(linear) {
        let determinant = a * c - b * b;
        let mean = [(c * u - b * v) / determinant, (a * v - b * u) / determinant];
        let (y, z): (f64, f64) = (StandardNormal.sample(stream), StandardNormal.sample(stream));
        // The root of the inverse: L^-T with L L^T the precision.
        let (l, m) = (a.sqrt(), b / a.sqrt());
        let n = (c - m * m).sqrt();
        let second = z / n;
        rows.extend([mean[0] + (y - m * second) / l, mean[1] + second]);
    }
    rows
}

/// The mean and variance of every entry of `W H` under the exact posterior.
fn gibbs(sweeps: usize) -> Vec<(f64, f64)> {
    let cells = entries();
    let turned: Vec<_> = cells.iter().map(|&(i, j, x)| (j, i, x)).collect();
    let mut stream = Streams::new(6).stream(0);
    let mut h: Vec<f64> = (0..COLUMNS * RANK).map(|_| stream.random_range(-1.0..1.0)).collect();
    let mut moments = Moments::new(ROWS * COLUMNS);
    for sweep in 0..sweeps {
        let w = draw_rows(ROWS, &h, &cells, &mut stream);
        h = draw_rows(COLUMNS, &w, &turned, &mut stream);
        if sweep >= 1_000 {
            moments.add(&product(&w, &h));
        }
    }
    moments.get()
}

fn product(w: &[f64], h: &[f64]) -> Vec<f64> {
    w.chunks_exact(RANK).flat_map(|w| h.chunks_exact(RANK).map(move |h| w[0] * h[0] + w[1] * h[1])).collect()
}

/// The worst error of a mean, in standard deviations, and of a variance, as a share, of a chain on `ranks` ranks.
fn errors(
    settings: DistributedSettings,
    blocks: usize,
    ranks: usize,
    steps: usize,
    exact: &[(f64, f64)],
) -> (f64, f64) {
    let ranks = on_ranks(blocks, ranks, settings, |mut chain| {
        let mut moments: Vec<_> = (0..blocks * blocks).map(|_| None).collect();
        for step in 0..steps {
            chain.step();
            if step >= 2_000 && step % 10 == 0 {
                chain.visit(|_, (row, column), (w, h)| {
                    let draw = product(w, h);
                    moments[row * blocks + column].get_or_insert_with(|| Moments::new(draw.len())).add(&draw);
                });
            }
        }
        moments
    });
    let bounds =
        |count: usize| -> Vec<usize> { (0..=blocks).map(|block| (block * count).div_ceil(blocks)).collect() };
    let (rows, columns) = (bounds(ROWS), bounds(COLUMNS));
    let mut worst = (0.0_f64, 0.0_f64);
    for (place, moments) in ranks.iter().flat_map(|moments| moments.iter().enumerate()) {
        let Some(moments) = moments else { continue };
        let (i, j) = (rows[place / blocks], columns[place % blocks]);
        let width = columns[place % blocks + 1] - j;
        for (cell, (mean, variance)) in moments.get().into_iter().enumerate() {
            let (exact_mean, exact_variance) = exact[(i + cell / width) * COLUMNS + j + cell % width];
            worst.0 = worst.0.max((mean - exact_mean).abs() / exact_variance.sqrt());
            worst.1 = worst.1.max((variance / exact_variance - 1.0).abs());
        }
    }
    worst
}

/// A constant step and the noise of the parts leave a bias of some per cent; with gradients that lack the weight of their
/// part a mean is off by 0.85 deviations and a variance by its size, in two blocks. As the bits do not depend on the
/// number of ranks, what holds for one rank holds for as many as there are blocks.
#[test]
fn the_posterior_is_that_of_a_gibbs_sampler() {
    let exact = gibbs(60_000);
    for blocks in 1..=4 {
        for (method, step_size) in [(Method::Sgld, 0.004), (PSGLD, 0.001), (HAMCMC, 0.04)] {
            let settings = DistributedSettings { method, step_size, seed: 11 };
            let (mean, variance) = errors(settings, blocks, 1, 150_000, &exact);
            eprintln!(
                "{method:?}, {blocks} blocks: mean off by {mean:.3} deviations, variance by {variance:.3}"
            );
            assert!(mean < 0.2 && variance < 0.25);
        }
    }
}
