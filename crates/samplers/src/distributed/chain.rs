//! The distributed chain: data parts, the ring exchange and the three samplers.

mod displacement;

use std::ops::Range;

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::communicator::{Communicator, pack, unpack};
use crate::checks::{check, check_positive};
use crate::hamcmc::check_memory;
use crate::psgld::check_metric;
use crate::random::{SeedTree, SeededRng};
use crate::vector::{add_scaled, dot};
use crate::{InitialScale, SamplerError};
use displacement::{Products, displacement};

/// The matrix side to which a block of unknowns belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Row unknowns, which stay at the rank that holds the data of these rows.
    Rows,
    /// Column unknowns, which move between ranks.
    Columns,
}

/// A posterior whose data form a matrix of blocks; see the [module](super). Each data block depends on one block of row
/// unknowns and one block of column unknowns.
///
/// Each rank has its own value of this type, which holds only the data of its row blocks ([`held_blocks`]).
pub trait BlockTarget {
    /// The number `B` of blocks per side.
    fn blocks(&self) -> usize;

    /// Draws the initial unknowns of a block from `stream`; their number is the size of the block.
    fn start(&self, side: Side, block: usize, stream: &mut SeededRng) -> Vec<f64>;

    /// Number of observations in a block of the data.
    fn observations(&self, row_block: usize, column_block: usize) -> usize;

    /// Adds the gradient of minus the log likelihood of a data block to `slopes`. `block` is (row block, column block);
    /// `parameters` and `slopes` are those of its rows and of its columns.
    fn add_likelihood(
        &self,
        block: (usize, usize),
        parameters: (&[f64], &[f64]),
        slopes: (&mut [f64], &mut [f64]),
    );

    /// Adds the gradient of minus the log prior of a block of unknowns to `slope`.
    fn add_prior(&self, side: Side, block: usize, theta: &[f64], slope: &mut [f64]);
}

/// The sampler of a [`DistributedChain`].
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Method {
    /// `theta <- theta - eps g + N(0, 2 eps)`: DSGLD.
    Sgld,
    /// [`Psgld`](crate::psgld) without Gamma; as published, it squares the mean gradient of the part's log likelihood.
    Psgld {
        /// The memory of the squared gradients, in [0, 1).
        forgetting: f64,
        /// The floor `lambda` of the metric, above 0.
        regularisation: f64,
    },
    /// [`Hamcmc`](crate::hamcmc) with [`Pairs::Moves`](crate::Pairs), one memory over all unknowns.
    Hamcmc {
        /// The memory `M`, at least 2: `M - 1` pairs.
        memory: usize,
        /// The initial matrix of the L-BFGS recursion.
        initial_scale: InitialScale,
        /// The trust region `lambda`, from 0.
        trust_region: f64,
    },
}

impl Method {
    fn check(self) -> Result<(), SamplerError> {
        match self {
            Self::Sgld => Ok(()),
            Self::Psgld { forgetting, regularisation } => check_metric(forgetting, regularisation),
            Self::Hamcmc { memory, initial_scale, trust_region } => {
                check_memory(memory, initial_scale, trust_region)
            }
        }
    }

    /// Returns the number of states and the number of further vectors of equal length, per block of unknowns.
    fn vectors(self) -> (usize, usize) {
        match self {
            Self::Sgld => (1, 0),
            Self::Psgld { .. } => (1, 1),
            Self::Hamcmc { memory, .. } => (memory, 2 * (memory - 1)),
        }
    }
}

/// Settings of a [`DistributedChain`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DistributedSettings {
    /// The sampler.
    pub method: Method,
    /// The constant step size `eps`, above 0.
    pub step_size: f64,
    /// The seed, common to all ranks.
    pub seed: u64,
}

/// One block of unknowns with its memory.
#[derive(Debug, Clone)]
struct Half {
    side: Side,
    block: usize,
    length: usize,
    /// The states, followed by squared gradients, or by the pairs' `s` and then their `y`.
    vectors: Vec<f64>,
    gradient: Vec<f64>,
    noise: Vec<f64>,
}

impl Half {
    fn new(side: Side, block: usize, vectors: Vec<f64>, count: usize) -> Self {
        let length = vectors.len() / count;
        Self { side, block, length, vectors, gradient: vec![0.0; length], noise: vec![0.0; length] }
    }

    fn vector(&self, index: usize) -> &[f64] {
        &self.vectors[index * self.length..][..self.length]
    }

    fn vector_mut(&mut self, index: usize) -> &mut [f64] {
        &mut self.vectors[index * self.length..][..self.length]
    }
}

/// A row block and its current column block.
#[derive(Debug, Clone)]
struct Place {
    rows: Half,
    columns: Half,
}

impl Place {
    fn halves(&mut self) -> [&mut Half; 2] {
        [&mut self.rows, &mut self.columns]
    }

    /// Writes the gradient of minus the log likelihood of the data block of these rows and columns, at state `slot`.
    fn likelihood(&mut self, target: &impl BlockTarget, slot: usize) {
        let Self { rows, columns } = self;
        rows.gradient.fill(0.0);
        columns.gradient.fill(0.0);
        let unknowns = |half: &Half| slot * half.length..(slot + 1) * half.length;
        target.add_likelihood(
            (rows.block, columns.block),
            (&rows.vectors[unknowns(rows)], &columns.vectors[unknowns(columns)]),
            (&mut rows.gradient, &mut columns.gradient),
        );
    }

    /// Multiplies the likelihood gradient by `weight` and adds that of the prior: an estimate of the whole gradient.
    fn potential(&mut self, target: &impl BlockTarget, slot: usize, weight: f64) {
        for half in self.halves() {
            let Half { side, block, length, vectors, gradient, .. } = half;
            gradient.iter_mut().for_each(|slope| *slope *= weight);
            target.add_prior(*side, *block, &vectors[slot * *length..][..*length], gradient);
        }
    }
}

/// The portion of a Markov chain on a [`BlockTarget`] that one rank holds; see the [module](super).
#[derive(Debug)]
pub struct DistributedChain<G, C> {
    target: G,
    communicator: C,
    settings: DistributedSettings,
    places: Vec<Place>,
    /// Number of observations in each part.
    parts: Vec<usize>,
    part: usize,
    steps: u64,
    streams: SeedTree,
}

/// Returns the consecutive row blocks of `rank`. The numbers of row blocks of any two ranks differ by at most one.
///
/// # Panics
/// If there are no ranks.
#[must_use]
pub fn held_blocks(blocks: usize, ranks: usize, rank: usize) -> Range<usize> {
    (rank * blocks).div_ceil(ranks)..((rank + 1) * blocks).div_ceil(ranks)
}

/// Returns the rank that [holds](held_blocks) row block `block` of `blocks`.
fn owner(block: usize, blocks: usize, ranks: usize) -> usize {
    block * ranks / blocks
}

impl<G: BlockTarget, C: Communicator> DistributedChain<G, C> {
    /// Creates a chain at the initial unknowns of the target, with the column blocks of part 0.
    ///
    /// # Errors
    /// If a setting is out of range, there are fewer blocks than ranks, or there is no observation.
    pub fn new(target: G, mut communicator: C, settings: DistributedSettings) -> Result<Self, SamplerError> {
        settings.method.check()?;
        check_positive("step size", settings.step_size)?;
        let (blocks, ranks) = (target.blocks(), communicator.ranks());
        check("number of blocks", blocks as f64, "at least one for each rank", blocks >= ranks)?;
        let streams = SeedTree::new(settings.seed);
        let held = held_blocks(blocks, ranks, communicator.rank());
        let (states, others) = settings.method.vectors();
        let half = |side, block| {
            let start = target.start(side, block, &mut streams.child(2 + side as u64).rng(block as u64));
            let mut vectors = start.repeat(states);
            vectors.resize(start.len() * (states + others), 0.0);
            Half::new(side, block, vectors, states + others)
        };
        let places = held
            .clone()
            .map(|block| Place { rows: half(Side::Rows, block), columns: half(Side::Columns, block) });
        let places = places.collect();
        let own: Vec<u64> = (0..blocks)
            .map(|part| held.clone().map(|b| target.observations(b, (b + part) % blocks) as u64).sum())
            .collect();
        let mut parts = vec![0; blocks];
        for counts in communicator.all_gather(&pack(&own)) {
            parts.iter_mut().zip(unpack::<u64>(&counts)).for_each(|(part, count)| *part += count as usize);
        }
        let observations: usize = parts.iter().sum();
        check("number of observations", observations as f64, "at least 1", observations > 0)?;
        Ok(Self { target, communicator, settings, places, parts, part: 0, steps: 0, streams })
    }

    /// Takes one step, without an acceptance test. Too large a step size makes the chain diverge; see
    /// [`diverged`](Self::diverged).
    pub fn step(&mut self) {
        let total: usize = self.parts.iter().sum();
        let mut left = self.streams.child(0).rng(self.steps).random_range(0..total);
        let drawn = self.parts.iter().position(|&part| {
            let found = left < part;
            left = left.saturating_sub(part);
            found
        });
        self.bring(drawn.unwrap_or(0));
        let part = self.parts[self.part];
        let weight = total as f64 / part as f64;
        let noise = (2.0 * self.settings.step_size).sqrt();
        let streams = self.streams.child(1);
        for half in self.places.iter_mut().flat_map(Place::halves) {
            let mut stream = streams.child(half.side as u64).child(half.block as u64).rng(self.steps);
            half.noise.iter_mut().for_each(|noise| *noise = StandardNormal.sample(&mut stream));
        }
        match self.settings.method {
            Method::Sgld => self.step_plainly(weight, noise),
            Method::Psgld { forgetting, regularisation } => {
                self.step_with_squares(weight, noise, part as f64, forgetting, regularisation);
            }
            Method::Hamcmc { memory, initial_scale, trust_region } => {
                self.step_with_pairs(weight, noise, memory, initial_scale, trust_region);
            }
        }
        self.steps += 1;
    }

    fn step_plainly(&mut self, weight: f64, noise: f64) {
        for place in &mut self.places {
            place.likelihood(&self.target, 0);
            place.potential(&self.target, 0, weight);
            for half in place.halves() {
                add_scaled(&mut half.vectors, -self.settings.step_size, &half.gradient);
                add_scaled(&mut half.vectors, noise, &half.noise);
            }
        }
    }

    fn step_with_squares(
        &mut self,
        weight: f64,
        noise: f64,
        terms: f64,
        forgetting: f64,
        regularisation: f64,
    ) {
        let keep = if self.steps == 0 { 0.0 } else { forgetting };
        for place in &mut self.places {
            place.likelihood(&self.target, 0);
            for half in place.halves() {
                let squares = &mut half.vectors[half.length..];
                for (v, slope) in squares.iter_mut().zip(&half.gradient) {
                    *v = keep * *v + (1.0 - keep) * (slope / terms) * (slope / terms);
                }
            }
            place.potential(&self.target, 0, weight);
            for half in place.halves() {
                let (theta, squares) = half.vectors.split_at_mut(half.length);
                for (((theta, v), slope), z) in
                    theta.iter_mut().zip(squares).zip(&half.gradient).zip(&half.noise)
                {
                    let metric = 1.0 / (regularisation + v.sqrt());
                    *theta += noise * metric.sqrt() * z - self.settings.step_size * metric * slope;
                }
            }
        }
    }

    fn step_with_pairs(
        &mut self,
        weight: f64,
        noise: f64,
        memory: usize,
        initial: InitialScale,
        trust_region: f64,
    ) {
        let pairs = memory - 1;
        let slot = (self.steps % memory as u64) as usize;
        let oldest = (self.steps % pairs as u64) as usize;
        for place in &mut self.places {
            place.likelihood(&self.target, slot);
            place.potential(&self.target, slot, weight);
        }
        let products = self.inner_products(memory);
        let ages = (0..pairs).map(|age| (oldest + age) % pairs);
        let coefficients =
            displacement(&products, ages, pairs, (self.settings.step_size, noise), initial, trust_region);
        for place in &mut self.places {
            for half in place.halves() {
                let mut moved = vec![0.0; half.length];
                for (index, &coefficient) in coefficients[..2 * pairs].iter().enumerate() {
                    add_scaled(&mut moved, coefficient, half.vector(memory + index));
                }
                add_scaled(&mut moved, coefficients[2 * pairs], &half.gradient);
                add_scaled(&mut moved, coefficients[2 * pairs + 1], &half.noise);
                add_scaled(half.vector_mut(slot), 1.0, &moved);
                half.vector_mut(memory + oldest).copy_from_slice(&moved);
                let Half { length, vectors, gradient, .. } = half;
                vectors[(memory + pairs + oldest) * *length..][..*length].copy_from_slice(gradient);
            }
            place.likelihood(&self.target, slot);
            place.potential(&self.target, slot, weight);
            for half in place.halves() {
                let (s, y) = half.vectors.split_at_mut((memory + pairs) * half.length);
                let s = &s[(memory + oldest) * half.length..][..half.length];
                let y = &mut y[oldest * half.length..][..half.length];
                for ((y, after), s) in y.iter_mut().zip(&half.gradient).zip(s) {
                    *y = after - *y + trust_region * s;
                }
            }
        }
    }

    /// Returns the inner products between the pairs' `s` and `y`, the gradient and the noise, over all unknowns.
    fn inner_products(&mut self, memory: usize) -> Products {
        let size = 2 * memory;
        let mut own = Vec::new();
        for Place { rows, columns } in &self.places {
            let halves = [rows, columns].map(|half| {
                let pairs = (memory..memory + size - 2).map(|index| half.vector(index));
                pairs.chain([&half.gradient[..], &half.noise[..]]).collect::<Vec<_>>()
            });
            for i in 0..size {
                for j in 0..=i {
                    own.push(halves.iter().map(|vectors| dot(vectors[i], vectors[j])).sum::<f64>());
                }
            }
        }
        let mut sums = vec![0.0; size * (size + 1) / 2];
        // Sums block by block, so that the order of summation does not depend on the number of ranks.
        for message in self.communicator.all_gather(&pack(&own)) {
            for block in unpack::<f64>(&message).chunks_exact(sums.len()) {
                add_scaled(&mut sums, 1.0, block);
            }
        }
        Products { size, lower: sums }
    }

    /// Exchanges column blocks between ranks, so that each row block gets its column block of `part`.
    fn bring(&mut self, part: usize) {
        let (blocks, ranks) = (self.parts.len(), self.communicator.ranks());
        let shift = (part + blocks - self.part) % blocks;
        self.part = part;
        if shift == 0 {
            return;
        }
        // Sends in the order of the destination row blocks, which is the order in which a receiver reads.
        let destination = |place: &Place| (place.rows.block + blocks - shift) % blocks;
        let mut leaving: Vec<usize> = (0..self.places.len()).collect();
        leaving.sort_by_key(|&index| destination(&self.places[index]));
        let outgoing = leaving.iter().map(|&index| {
            let place = &self.places[index];
            (owner(destination(place), blocks, ranks), pack(&place.columns.vectors))
        });
        let outgoing = outgoing.collect();
        let sources: Vec<usize> = self
            .places
            .iter()
            .map(|place| owner((place.rows.block + shift) % blocks, blocks, ranks))
            .collect();
        let (states, others) = self.settings.method.vectors();
        let arrived = self.communicator.exchange(outgoing, &sources);
        for (place, message) in self.places.iter_mut().zip(arrived) {
            let block = (place.rows.block + part) % blocks;
            place.columns = Half::new(Side::Columns, block, unpack(&message), states + others);
        }
    }

    /// Calls `see` for every data block of this rank, with (row block, column block) and the last draw of their
    /// unknowns. Moves the column blocks once around the ring.
    pub fn visit(&mut self, mut see: impl FnMut(&G, (usize, usize), (&[f64], &[f64]))) {
        let (states, _) = self.settings.method.vectors();
        let slot = ((self.steps + states as u64 - 1) % states as u64) as usize;
        for _ in 0..self.parts.len() {
            for Place { rows, columns } in &self.places {
                see(&self.target, (rows.block, columns.block), (rows.vector(slot), columns.vector(slot)));
            }
            self.bring((self.part + 1) % self.parts.len());
        }
    }

    /// Returns the number of row and column blocks at this rank with a state that is not finite. Draws are invalid if
    /// it is above 0.
    #[must_use]
    pub fn diverged(&self) -> usize {
        let (states, _) = self.settings.method.vectors();
        let halves = self.places.iter().flat_map(|place| [&place.rows, &place.columns]);
        halves.filter(|half| !half.vectors[..states * half.length].iter().all(|x| x.is_finite())).count()
    }

    /// Returns the number of observations in the largest part divided by the mean over parts; 1 if all parts are equal.
    #[must_use]
    pub fn imbalance(&self) -> f64 {
        let largest = self.parts.iter().max().map_or(0, |&part| part);
        (largest * self.parts.len()) as f64 / self.parts.iter().sum::<usize>() as f64
    }

    /// The communicator, for use between steps.
    pub fn communicator(&mut self) -> &mut C {
        &mut self.communicator
    }
}
