//! Chains spread over ranks: the same bits on any number of them, and the law that a single Gibbs sampler has.

use std::thread;

use alphamf_samplers::InitialScale;
use alphamf_samplers::distributed::{
    BlockTarget, Communicator, Counted, DistributedChain, DistributedSettings, Factorisation, Local, Method,
    Side, held_blocks,
};
use alphamf_samplers::random::{SeedTree, SeededRng};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

const ROWS: usize = 6;
const COLUMNS: usize = 5;
const RANK: usize = 2;
const PSGLD: Method = Method::Psgld { forgetting: 0.999, regularisation: 0.05 };
const HAMCMC: Method =
    Method::Hamcmc { memory: 2, initial_scale: InitialScale::Fixed(0.1), trust_region: 2.0 };

fn entries() -> Vec<(usize, usize, f64)> {
    let mut stream = SeedTree::new(8).rng(0);
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
    Factorisation::new(RANK, [ROWS, COLUMNS], blocks, held_blocks(blocks, ranks, rank), entries())
}

/// Every block has one rank, and no rank has two blocks more than another.
#[test]
fn ranks_share_the_blocks() {
    for blocks in 1..20 {
        for ranks in 1..=blocks {
            let held: Vec<_> = (0..ranks).map(|rank| held_blocks(blocks, ranks, rank)).collect();
            assert!(held.iter().cloned().flatten().eq(0..blocks), "{held:?}");
            let lengths = held.iter().map(ExactSizeIterator::len);
            assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1, "{held:?}");
        }
    }
}

/// Three observations at one position are summed in a fixed order, whatever the order of the entries.
#[test]
fn draws_do_not_depend_on_the_order_of_the_entries() {
    let draw = |entries: &[(usize, usize, f64)]| {
        let target = Factorisation::new(RANK, [2, 2], 1, 0..1, entries.iter().copied());
        let settings = DistributedSettings { method: Method::Sgld, step_size: 0.01, seed: 5 };
        let mut chain = DistributedChain::new(target, Local::alone(), settings).unwrap();
        (0..50).for_each(|_| chain.step());
        let mut states = Vec::new();
        chain.visit(|_, _, (w, h)| states.extend_from_slice(&[w, h].concat()));
        states
    };
    let mut entries = [(0, 0, 0.1), (0, 0, 0.7), (1, 1, 0.2), (0, 0, -3.3), (0, 0, 1.9), (0, 0, 1.0 / 3.0)];
    let first = draw(&entries);
    entries.reverse();
    assert_eq!(draw(&entries), first);
}

/// Returns the result of `each` on the chain of every rank, in rank order.
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
    let places = seen.iter().map(|&(row, column, _)| (row, column));
    assert!(places.eq((0..blocks * blocks).map(|k| (k / blocks, k % blocks))));
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
    // At least two columns per block: a message has `vectors x rank x columns` numbers of eight bytes, at most one per
    // step.
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

/// With as many blocks as rows and columns, all parts of a full square matrix are equal. With entries in the first
/// block alone, one part has them all.
#[test]
fn a_chain_reports_how_uneven_its_parts_are() {
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

/// A step that is too long is reported.
#[test]
fn blocks_that_are_not_finite_are_counted() {
    for method in [Method::Sgld, HAMCMC] {
        for (step_size, expected) in [(0.01, 0), (1e3, 4)] {
            let settings = DistributedSettings { method, step_size, seed: 1 };
            let mut chain = DistributedChain::new(target(2, 1, 0), Local::alone(), settings).unwrap();
            (0..500).for_each(|_| chain.step());
            assert_eq!(chain.diverged(), expected, "{method:?} at {step_size}");
        }
    }
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
    for wrong in [0.0, -1.0, f64::INFINITY, f64::NAN] {
        let method = Method::Psgld { forgetting: 0.9, regularisation: wrong };
        assert!(refusal(method, 0.1).contains("regularisation"));
        assert!(refusal(Method::Sgld, wrong).contains("step size"));
    }
    for wrong in [-1.0, f64::INFINITY, f64::NAN] {
        let method =
            Method::Hamcmc { memory: 2, initial_scale: InitialScale::Fixed(1.0), trust_region: wrong };
        assert!(refusal(method, 0.1).contains("trust region"));
    }
    let settings = DistributedSettings { method: Method::Sgld, step_size: 0.1, seed: 0 };
    let empty = Factorisation::new(RANK, [ROWS, COLUMNS], 1, 0..1, []);
    let refused = DistributedChain::new(empty, Local::alone(), settings).unwrap_err().to_string();
    assert!(refused.contains("number of observations is 0"), "{refused}");
}

#[test]
fn slopes_are_those_of_the_potential() {
    let target = target(2, 1, 0);
    let mut stream = SeedTree::new(5).rng(0);
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

/// The chain in plain form: all unknowns in one vector, `H` as a dense matrix. `H = S S^T` from the pairs in their
/// order, oldest first, by the formulas of [`lbfgs`](alphamf_samplers::lbfgs). Returns all of `W` and `H` after each
/// step.
fn plain_chain(steps: u64, blocks: usize, settings: DistributedSettings) -> Vec<Vec<f64>> {
    let streams = SeedTree::new(settings.seed);
    let bounds = |count: usize, block: usize| (block * count).div_ceil(blocks) * RANK;
    let sides = [(Side::Rows, ROWS, 0), (Side::Columns, COLUMNS, ROWS * RANK)];
    let size = (ROWS + COLUMNS) * RANK;
    // Fills what belongs to each block by a generator.
    let fill = |draw: &mut dyn FnMut(Side, u64) -> SeededRng| {
        let mut filled = vec![0.0; size];
        for (side, count, from) in sides {
            for block in 0..blocks {
                let mut stream = draw(side, block as u64);
                let places = from + bounds(count, block)..from + bounds(count, block + 1);
                filled[places].iter_mut().for_each(|x| *x = StandardNormal.sample(&mut stream));
            }
        }
        filled
    };
    let start = fill(&mut |side, block| streams.child(2 + side as u64).rng(block));
    let part_of = |(i, j): (usize, usize)| (j * blocks / COLUMNS + blocks - i * blocks / ROWS) % blocks;
    let cells = entries();
    let slope = |theta: &[f64], part: usize| {
        let mut slope = vec![0.0; size];
        for &(i, j, x) in cells.iter().filter(|&&(i, j, _)| part_of((i, j)) == part) {
            let (w, h) = (i * RANK, (ROWS + j) * RANK);
            let error = (0..RANK).map(|k| theta[w + k] * theta[h + k]).sum::<f64>() - x;
            for k in 0..RANK {
                slope[w + k] += error * theta[h + k];
                slope[h + k] += error * theta[w + k];
            }
        }
        slope
    };
    let parts: Vec<usize> =
        (0..blocks).map(|part| cells.iter().filter(|&&(i, j, _)| part_of((i, j)) == part).count()).collect();
    let inner = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let product = |matrix: &[Vec<f64>], v: &[f64]| matrix.iter().map(|row| inner(row, v)).collect::<Vec<_>>();

    let memory = if let Method::Hamcmc { memory, .. } = settings.method { memory } else { 1 };
    let mut states = vec![start; memory];
    let mut squares = vec![0.0; size];
    let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    let (step_size, mut seen) = (settings.step_size, Vec::new());
    for step in 0..steps {
        let mut left = streams.child(0).rng(step).random_range(0..cells.len());
        let mut part = 0;
        while left >= parts[part] {
            left -= parts[part];
            part += 1;
        }
        let weight = cells.len() as f64 / parts[part] as f64;
        let normal = fill(&mut |side, block| streams.child(1).child(side as u64).child(block).rng(step));
        let mut theta = states.remove(0);
        let likelihood = slope(&theta, part);
        let estimate = |theta: &[f64]| -> Vec<f64> {
            slope(theta, part).iter().zip(theta).map(|(slope, x)| weight * slope + x).collect()
        };
        let g = estimate(&theta);
        match settings.method {
            Method::Sgld => {
                for i in 0..size {
                    theta[i] += (2.0 * step_size).sqrt() * normal[i] - step_size * g[i];
                }
            }
            Method::Psgld { forgetting, regularisation } => {
                for i in 0..size {
                    let square = (likelihood[i] / parts[part] as f64).powi(2);
                    let keep = if step == 0 { 0.0 } else { forgetting };
                    squares[i] = keep * squares[i] + (1.0 - keep) * square;
                    let metric = 1.0 / (regularisation + squares[i].sqrt());
                    theta[i] += (2.0 * step_size * metric).sqrt() * normal[i] - step_size * metric * g[i];
                }
            }
            Method::Hamcmc { initial_scale, trust_region, .. } => {
                let curved = pairs.iter().filter(|(s, y)| {
                    let sy = inner(s, y);
                    sy > 1e-8 * (inner(s, s) * inner(y, y)).sqrt() && sy >= trust_region * inner(s, s)
                });
                let curved: Vec<_> = curved.collect();
                let gamma = match initial_scale {
                    InitialScale::Fixed(gamma) => gamma,
                    InitialScale::Pairs(gamma) => {
                        let scales = curved.iter().map(|(s, y)| inner(s, y) / inner(y, y));
                        scales.reduce(f64::min).unwrap_or(gamma)
                    }
                    other => panic!("{other:?}"),
                };
                let diagonal = |x: f64| -> Vec<Vec<f64>> {
                    (0..size).map(|i| (0..size).map(|j| if i == j { x } else { 0.0 }).collect()).collect()
                };
                let (mut root, mut inverse) = (diagonal(gamma.sqrt()), diagonal(1.0 / gamma));
                for (s, y) in curved {
                    let bs = product(&inverse, s);
                    let (sy, sbs) = (inner(s, y), inner(s, &bs));
                    let q: Vec<f64> = y.iter().zip(&bs).map(|(y, bs)| y + (sy / sbs).sqrt() * bs).collect();
                    let across: Vec<f64> =
                        (0..size).map(|j| (0..size).map(|i| q[i] * root[i][j]).sum()).collect();
                    for i in 0..size {
                        for j in 0..size {
                            root[i][j] -= s[i] * across[j] / sy;
                            inverse[i][j] += y[i] * y[j] / sy - bs[i] * bs[j] / sbs;
                        }
                    }
                }
                let turned: Vec<f64> =
                    (0..size).map(|j| (0..size).map(|i| root[i][j] * g[i]).sum()).collect();
                let push =
                    turned.iter().zip(&normal).map(|(g, z)| (2.0 * step_size).sqrt() * z - step_size * g);
                let moved = product(&root, &push.collect::<Vec<_>>());
                theta.iter_mut().zip(&moved).for_each(|(theta, moved)| *theta += moved);
                let after = estimate(&theta);
                let y = (0..size).map(|i| after[i] - g[i] + trust_region * moved[i]).collect();
                if pairs.len() == memory - 1 {
                    pairs.remove(0);
                }
                pairs.push((moved, y));
            }
            other => panic!("{other:?}"),
        }
        seen.push(theta.clone());
        states.push(theta);
    }
    seen
}

#[test]
fn a_chain_is_what_its_formulas_say() {
    let longer = Method::Hamcmc { memory: 4, initial_scale: InitialScale::Pairs(0.1), trust_region: 1.0 };
    for (method, step_size) in [(Method::Sgld, 0.02), (PSGLD, 0.01), (HAMCMC, 0.05), (longer, 0.05)] {
        for blocks in [1, 3, 4] {
            let settings = DistributedSettings { method, step_size, seed: 3 };
            let mut chain = DistributedChain::new(target(blocks, 1, 0), Local::alone(), settings).unwrap();
            for (step, expected) in plain_chain(60, blocks, settings).into_iter().enumerate() {
                chain.step();
                let mut found = vec![f64::NAN; expected.len()];
                chain.visit(|_, (row, column), (w, h)| {
                    let row = (row * ROWS).div_ceil(blocks) * RANK;
                    let column = (ROWS + (column * COLUMNS).div_ceil(blocks)) * RANK;
                    found[row..][..w.len()].copy_from_slice(w);
                    found[column..][..h.len()].copy_from_slice(h);
                });
                for (found, expected) in found.iter().zip(&expected) {
                    assert!(
                        (found - expected).abs() < 1e-7 * (1.0 + expected.abs()),
                        "{method:?}, {blocks} blocks, step {step}: {found} {expected}"
                    );
                }
            }
        }
    }
}

/// A borrowed rank acts as the rank itself; messages and bytes to other ranks are counted.
#[test]
fn communicators_can_be_borrowed_and_counted() {
    let mut ranks = Local::group(3);
    let heard = thread::scope(|scope| {
        let talk = |local: &mut Local| {
            let own = local.rank() as u8;
            let mut counted = Counted::new(local);
            let outgoing = (0..3).map(|to| (to, vec![own; to + 1])).collect();
            let exchanged = counted.exchange(outgoing, &[2, 0, 1]);
            let gathered = counted.all_gather(&[own, 7]);
            (exchanged, gathered, counted.messages, counted.bytes)
        };
        let threads: Vec<_> = ranks.iter_mut().map(|local| scope.spawn(move || talk(local))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    for (rank, (exchanged, gathered, messages, bytes)) in heard.into_iter().enumerate() {
        assert_eq!(exchanged, [2, 0, 1].map(|from| vec![from; rank + 1]));
        assert_eq!(gathered, [[0, 7], [1, 7], [2, 7]]);
        assert_eq!((messages, bytes), (2 + 2, 6 - (rank as u64 + 1) + 2 * 2));
    }
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
fn draw_rows(count: usize, other: &[f64], cells: &[(usize, usize, f64)], stream: &mut SeededRng) -> Vec<f64> {
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
    let mut stream = SeedTree::new(6).rng(0);
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
            // An odd interval, or all draws would be those of one of HAMCMC's two chains.
            if step >= 2_000 && step % 11 == 0 {
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

/// A constant step and the noise of the parts leave a bias of some per cent. Without the weight of the parts, in two
/// blocks, a mean would be off by 0.85 deviations and a variance by 100 %. Chains are bit-identical on any number of
/// ranks, so the result for one rank holds for all.
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
