//! Learning the network's weights from simulated recordings.

use super::features::{INPUTS, OUTPUTS, Posterior, bands, correction, set_slopes};
use super::{Refiner, RefinerHeader};
use crate::kernels::convolution::Grid;
use crate::kernels::vector::{log_odds, logistic};
use crate::learning::{fill, owner, section};
use crate::parallel::*;
use crate::random::{SeedTree, SeededRng};
use crate::samplers::distributed::{Communicator, pack, unpack};
use crate::watch::{self, Cancelled, Watch};
use rand::RngExt;
use rand::seq::SliceRandom;
use std::collections::VecDeque;
use std::io;

/// Frames of an example that a step looks at.
const CROP_FRAMES: usize = 256;
/// Examples that share a step.
const BATCH: usize = 8;
/// Weight of the compressed magnitudes, which the ear hears, beside the squared error.
pub(super) const COMPRESSED: f64 = 0.3;
/// The power of power that makes a compressed magnitude.
const COMPRESSION: f64 = 0.15;
/// Powers below this count as this when they are compressed.
const LEAST_POWER: f64 = 1e-7;
/// Share of the clean energy that is added to every error: below, there is nothing to gain.
const NEGLIGIBLE: f64 = 1e-3;
/// Step size of the first steps, which falls to zero as a cosine.
const STEP_SIZE: f64 = 2e-3;
/// Steps over which the step size rises.
const RISE: usize = 50;
/// The longest gradient that a step follows.
const LONGEST_GRADIENT: f64 = 1.0;
/// Decays of the mean gradient and of its square (Kingma and Ba 2015).
const DECAYS: [f64; 2] = [0.9, 0.999];

/// A block of a simulated recording; all matrices are bins x frames.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    /// What is known after the separation.
    pub posterior: Posterior<Vec<f32>>,
    /// `|S|^2` of the clean speech, in the same unit.
    pub clean: Vec<f32>,
    /// The real part of `X* S`.
    pub correlation: Vec<f32>,
}

/// The part of an example that a step looks at.
#[derive(Debug, Clone)]
pub(super) struct Crop {
    bins: usize,
    /// The input of the network.
    grid: Grid,
    /// The posterior-mean gain, `|X|^2`, `|S|^2` and the real part of `X* S`, bins x frames.
    gain: Vec<f32>,
    power: Vec<f32>,
    clean: Vec<f32>,
    correlation: Vec<f32>,
}

/// The mean change of the errors by the network, dB.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Change {
    /// That of the squared error.
    pub squared_db: f64,
    /// That of the squared error of compressed magnitudes.
    pub compressed_db: f64,
}

/// A refiner that learns, by Adam.
#[derive(Debug, Clone)]
pub(crate) struct Learning {
    refiner: Refiner,
    steps: usize,
    step: usize,
    mean: Vec<f64>,
    square: Vec<f64>,
    stream: SeededRng,
}

impl Example {
    pub fn frames(&self) -> usize {
        self.posterior.frames()
    }

    /// What a step looks at from frame `first` on.
    pub(super) fn crop(&self, first: usize) -> Crop {
        let bins = self.posterior.bins;
        let last = (first + CROP_FRAMES).min(self.frames());
        let part = |matrix: &[f32], row: usize| matrix[first * row..last * row].to_vec();
        // All of its frames: the mean of their powers is in the input.
        let mut grid = self.posterior.grid();
        grid.values = part(&grid.values, grid.row());
        let of_bins = |matrix| part(matrix, bins);
        Crop {
            bins,
            grid,
            gain: of_bins(&self.posterior.gain),
            power: of_bins(&self.posterior.power),
            clean: of_bins(&self.clean),
            correlation: of_bins(&self.correlation),
        }
    }
}

impl Crop {
    /// As a message to another rank.
    fn pack(&self) -> Vec<u8> {
        let matrices = [&self.grid.values, &self.gain, &self.power, &self.clean, &self.correlation];
        let mut message = pack(&[self.bins as u64]);
        matrices.into_iter().for_each(|matrix| message.extend(pack(matrix)));
        message
    }

    fn unpack(message: &[u8]) -> Self {
        let (bins, numbers) = message.split_at(size_of::<u64>());
        let bins = unpack::<u64>(bins)[0] as usize;
        let (row, numbers) = (INPUTS * bands(bins), unpack::<f32>(numbers));
        let frames = numbers.len() / (row + 4 * bins);
        let (values, matrices) = numbers.split_at(row * frames);
        let matrix = |index: usize| matrices[index * bins * frames..][..bins * frames].to_vec();
        Self {
            bins,
            grid: Grid { channels: INPUTS, bands: bands(bins), values: values.to_vec() },
            gain: matrix(0),
            power: matrix(1),
            clean: matrix(2),
            correlation: matrix(3),
        }
    }

    /// The errors of the gains with these odds, and if asked for, the slopes of the logarithms of both, weighted, with
    /// respect to the odds' logarithms.
    pub(super) fn errors(&self, odds: &[f32], with_slopes: bool) -> ([f64; 2], Vec<f32>) {
        let bins = || self.power.iter().zip(&self.clean).zip(&self.correlation).zip(odds);
        let compress = |power: f64| libm::pow(power, COMPRESSION);
        let mut errors = [0.0; 2];
        for (((&power, &clean), &correlation), &odds) in bins() {
            let (power, clean, gain) = (f64::from(power), f64::from(clean), f64::from(logistic(odds)));
            errors[0] +=
                clean - 2.0 * gain * f64::from(correlation) + gain * gain * power + NEGLIGIBLE * clean;
            let target = compress(clean + LEAST_POWER);
            let distance = compress(gain * gain * power + LEAST_POWER) - target;
            errors[1] += distance * distance + NEGLIGIBLE * compress(clean * clean);
        }
        // Of a stretch without anything there is nothing to learn.
        let errors = errors.map(|error| error.max(f64::MIN_POSITIVE));
        let slope = |(((&power, &clean), &correlation), &odds): (((&f32, &f32), &f32), &f32)| {
            let (power, clean, gain) = (f64::from(power), f64::from(clean), f64::from(logistic(odds)));
            let squared = 2.0 * (gain * power - f64::from(correlation)) / errors[0];
            let estimate = gain * gain * power + LEAST_POWER;
            let compressed = compress(estimate);
            let distance = compressed - compress(clean + LEAST_POWER);
            let rise = COMPRESSION * compressed / estimate * 2.0 * gain * power;
            ((squared + COMPRESSED * 2.0 * distance * rise / errors[1]) * gain * (1.0 - gain)) as f32
        };
        let slopes = if with_slopes { bins().map(slope).collect() } else { Vec::new() };
        (errors, slopes)
    }
}

impl Learning {
    /// A refiner that changes nothing yet, and is to learn from so many examples in all, repetitions counted.
    #[must_use]
    pub fn new(header: RefinerHeader, examples: usize, streams: SeedTree) -> Self {
        let mut refiner = Refiner::empty(header);
        let mut stream = streams.rng(0);
        refiner.network.draw(&mut stream);
        let zeros = vec![0.0; refiner.network.parameters.len()];
        Self { refiner, steps: examples.div_ceil(BATCH), step: 0, mean: zeros.clone(), square: zeros, stream }
    }

    /// Learns from every example once, in an order of chance, a part of each; returns the mean change of the errors.
    /// Each rank has its [section] of the examples, `own`; of all of them the `frames` are known. Every rank learns the
    /// same, which does not depend on their number. `watch` is told the share of the examples that is done, 0 to 1.
    pub fn pass(
        &mut self,
        own: &[Example],
        frames: &[usize],
        ranks: &mut dyn Communicator,
        watch: &mut dyn Watch,
    ) -> Result<Change, Cancelled> {
        let mut order: Vec<usize> = (0..frames.len()).collect();
        order.shuffle(&mut self.stream);
        let mut total = Change::default();
        for (index, batch) in order.chunks(BATCH).enumerate() {
            watch::advance(watch, (index * BATCH) as f64 / frames.len() as f64)?;
            let places: Vec<(usize, usize)> = batch
                .iter()
                .map(|&example| {
                    let spare = frames[example].saturating_sub(CROP_FRAMES);
                    (example, self.stream.random_range(0..=spare))
                })
                .collect();
            let parts = self.slopes(own, frames.len(), &places, ranks);
            let mut gradient = vec![0.0; self.mean.len()];
            for (part, change) in &parts {
                let share = 1.0 / parts.len() as f64;
                gradient.iter_mut().zip(part).for_each(|(sum, &x)| *sum += share * f64::from(x));
                total.squared_db += change.squared_db / frames.len() as f64;
                total.compressed_db += change.compressed_db / frames.len() as f64;
            }
            self.follow(&gradient);
        }
        Ok(total)
    }

    /// The slopes of the weights on each of these places, a number of an example and a frame, and how the errors change
    /// there. The ranks share the places, whoever has the examples.
    fn slopes(
        &self,
        own: &[Example],
        examples: usize,
        places: &[(usize, usize)],
        ranks: &mut dyn Communicator,
    ) -> Vec<(Vec<f32>, Change)> {
        let (rank, count) = (ranks.rank(), ranks.ranks());
        let (held, computed) = (section(rank, examples, count), section(rank, places.len(), count));
        let made: Vec<(usize, Crop)> = places
            .par_iter()
            .with_max_len(1)
            .enumerate()
            .filter(|(_, (example, _))| held.contains(example))
            .map(|(slot, &(example, first))| (slot, own[example - held.start].crop(first)))
            .collect();
        let (kept, sent): (Vec<_>, Vec<_>) = made.into_iter().partition(|(slot, _)| computed.contains(slot));
        let outgoing = sent.iter().map(|(slot, crop)| (owner(*slot, places.len(), count), crop.pack()));
        let holders = computed.map(|slot| owner(places[slot].0, examples, count));
        let sources: Vec<usize> = holders.clone().filter(|&holder| holder != rank).collect();
        let mut arrived = VecDeque::from(ranks.exchange(outgoing.collect(), &sources));
        let mut kept = VecDeque::from(kept);
        let crops: Vec<Crop> = holders
            .filter_map(|holder| match holder == rank {
                true => kept.pop_front().map(|(_, crop)| crop),
                false => arrived.pop_front().map(|message| Crop::unpack(&message)),
            })
            .collect();
        let found: Vec<Vec<u8>> = crops
            .par_iter()
            .with_max_len(1)
            .map(|crop| {
                let (slope, Change { squared_db, compressed_db }) = self.refiner.slope(crop);
                [pack(&slope), pack(&[squared_db, compressed_db])].concat()
            })
            .collect();
        let slopes = self.mean.len() * size_of::<f32>();
        let part = |message: &[u8]| {
            let (slope, change) = message.split_at(slopes);
            let change: Vec<f64> = unpack(change);
            (unpack(slope), Change { squared_db: change[0], compressed_db: change[1] })
        };
        let all = ranks.all_gather(&found.concat());
        all.iter().flat_map(|message| message.chunks_exact(slopes + 2 * size_of::<f64>())).map(part).collect()
    }

    /// What [`restore`](Self::restore) needs: the weights, the moments of their slopes, and the rest.
    pub fn parts(&self) -> io::Result<[Vec<u8>; 3]> {
        let moments = [pack(&self.mean), pack(&self.square)].concat();
        Ok([pack(&self.refiner.network.parameters), moments, serde_json::to_vec(&(self.step, &self.stream))?])
    }

    /// Goes on where another one, as new as this, was when its parts were these.
    pub fn restore(&mut self, [weights, moments, rest]: &[Vec<u8>; 3]) -> io::Result<()> {
        fill(vec![&mut self.refiner.network.parameters[..]], &unpack(weights))?;
        fill(vec![&mut self.mean[..], &mut self.square[..]], &unpack(moments))?;
        (self.step, self.stream) = serde_json::from_slice(rest)?;
        Ok(())
    }

    /// What was learned.
    #[must_use]
    pub fn into_refiner(self) -> Refiner {
        self.refiner
    }

    /// A step of Adam against the gradient.
    fn follow(&mut self, gradient: &[f64]) {
        let length = gradient.iter().map(|x| x * x).sum::<f64>().sqrt();
        let shrink = (LONGEST_GRADIENT / length.max(f64::MIN_POSITIVE)).min(1.0);
        let share = self.step as f64 / self.steps.max(1) as f64;
        self.step += 1;
        let rise = (self.step as f64 / RISE as f64).min(1.0);
        let size = STEP_SIZE * rise * 0.5 * (1.0 + libm::cos(std::f64::consts::PI * share.min(1.0)));
        let [correct_mean, correct_square] = DECAYS.map(|decay| 1.0 - libm::pow(decay, self.step as f64));
        let moments = self.mean.iter_mut().zip(&mut self.square).zip(gradient);
        for (parameter, ((mean, square), slope)) in self.refiner.network.parameters.iter_mut().zip(moments) {
            let slope = shrink * slope;
            *mean += (1.0 - DECAYS[0]) * (slope - *mean);
            *square += (1.0 - DECAYS[1]) * (slope * slope - *square);
            let direction = *mean / correct_mean / ((*square / correct_square).sqrt() + 1e-8);
            *parameter -= (size * direction) as f32;
        }
    }
}

impl Refiner {
    /// The slopes of the weights on a part of an example, and how its errors change.
    fn slope(&self, crop: &Crop) -> (Vec<f32>, Change) {
        let bins = crop.bins;
        let before: Vec<f32> = crop.gain.iter().map(|&gain| log_odds(gain)).collect();
        let (old, _) = crop.errors(&before, false);
        let mut change = Change::default();
        let gradient = self.network.gradient(&crop.grid, |output| {
            let at = |k: usize| (k / bins, k % bins);
            let odds = before.iter().enumerate().map(|(k, &odds)| {
                let [offset, multiple] = correction(output, at(k).0, at(k).1);
                odds + offset + multiple * odds
            });
            let (new, slopes) = crop.errors(&odds.collect::<Vec<f32>>(), true);
            let [squared_db, compressed_db] = [0, 1].map(|k| 10.0 * libm::log10(new[k] / old[k]));
            change = Change { squared_db, compressed_db };
            let mut grid = Grid::new(OUTPUTS, output.bands, output.frames());
            for (k, (&slope, &odds)) in slopes.iter().zip(&before).enumerate() {
                set_slopes(&mut grid, at(k).0, at(k).1, odds, slope);
            }
            grid
        });
        (gradient, change)
    }
}
