//! Learning the network's weights from simulated recordings.

use super::features::{OUTPUTS, Posterior, correction, set_slopes};
use super::{Refiner, RefinerHeader};
use crate::kernels::convolution::Grid;
use crate::kernels::vector::{log_odds, logistic};
use crate::parallel::*;
use crate::random::{Stream, Streams};
use crate::watch::{self, Cancelled, Watch};
use rand::RngExt;
use rand::seq::SliceRandom;

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
    stream: Stream,
}

impl Example {
    /// The errors of the gains with these odds from frame `first` on, and if asked for, the slopes of the logarithms
    /// of both, weighted, with respect to the odds' logarithms.
    pub(super) fn errors(&self, first: usize, odds: &[f32], with_slopes: bool) -> ([f64; 2], Vec<f32>) {
        let first = first * self.posterior.bins;
        let range = first..first + odds.len();
        let bins = || {
            let powers = self.posterior.power[range.clone()].iter().zip(&self.clean[range.clone()]);
            powers.zip(&self.correlation[range.clone()]).zip(odds)
        };
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
    pub fn new(header: RefinerHeader, examples: usize, streams: Streams) -> Self {
        let mut refiner = Refiner::empty(header);
        let mut stream = streams.stream(0);
        refiner.network.draw(&mut stream);
        let zeros = vec![0.0; refiner.network.parameters.len()];
        Self { refiner, steps: examples.div_ceil(BATCH), step: 0, mean: zeros.clone(), square: zeros, stream }
    }

    /// Learns from every example once, in an order of chance, a part of each; returns the mean change of the errors.
    /// `watch` is told the share of them that is done, 0 to 1.
    pub fn pass(&mut self, examples: &[Example], watch: &mut dyn Watch) -> Result<Change, Cancelled> {
        let mut order: Vec<&Example> = examples.iter().collect();
        order.shuffle(&mut self.stream);
        let mut total = Change::default();
        for (index, batch) in order.chunks(BATCH).enumerate() {
            watch::advance(watch, (index * BATCH) as f64 / examples.len() as f64)?;
            let crops: Vec<(&Example, usize)> = batch
                .iter()
                .map(|&example| {
                    let spare = example.posterior.frames().saturating_sub(CROP_FRAMES);
                    (example, self.stream.random_range(0..=spare))
                })
                .collect();
            let parts: Vec<(Vec<f32>, Change)> = crops
                .par_iter()
                .with_max_len(1)
                .map(|&(example, first)| self.refiner.slope(example, first))
                .collect();
            let mut gradient = vec![0.0; self.mean.len()];
            for (part, change) in &parts {
                let share = 1.0 / parts.len() as f64;
                gradient.iter_mut().zip(part).for_each(|(sum, &x)| *sum += share * f64::from(x));
                total.squared_db += change.squared_db / examples.len() as f64;
                total.compressed_db += change.compressed_db / examples.len() as f64;
            }
            self.follow(&gradient);
        }
        Ok(total)
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
    /// The slopes of the weights on a part of an example from frame `first` on, and how its errors change.
    fn slope(&self, example: &Example, first: usize) -> (Vec<f32>, Change) {
        let bins = example.posterior.bins;
        let frames = CROP_FRAMES.min(example.posterior.frames() - first);
        let mut grid = example.posterior.grid();
        grid.values = grid.values[first * grid.row()..(first + frames) * grid.row()].to_vec();
        let before: Vec<f32> = example.posterior.gain[first * bins..(first + frames) * bins]
            .iter()
            .map(|&gain| log_odds(gain))
            .collect();
        let (old, _) = example.errors(first, &before, false);
        let mut change = Change::default();
        let gradient = self.network.gradient(&grid, |output| {
            let at = |k: usize| (k / bins, k % bins);
            let odds = before.iter().enumerate().map(|(k, &odds)| {
                let [offset, multiple] = correction(output, at(k).0, at(k).1);
                odds + offset + multiple * odds
            });
            let (new, slopes) = example.errors(first, &odds.collect::<Vec<f32>>(), true);
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
