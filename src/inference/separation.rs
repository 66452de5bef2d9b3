//! The latent state of one stretch of a recording, and the sweeps that improve it.

use crate::model::{Factor, Impulses, MarginalTable, Mixture, SMALLEST_POWER, Workspace};
use crate::random::Streams;
use crate::stable::vector;
use rand::RngExt;
use rayon::prelude::*;
use std::sync::{Arc, Mutex};

/// Frames that are worked on together: their matrices fit into a core's cache.
pub(super) const TILE_FRAMES: usize = 32;

/// Exponents and ranks of a separation.
#[derive(Debug, Clone)]
pub struct Start<'a> {
    /// Number of frequency bins.
    pub bins: usize,
    /// Dispersion spectra of speech, bins x rank.
    pub speech_spectra: &'a [f32],
    /// Characteristic exponent of speech, in (0, 2].
    pub alpha_speech: f64,
    /// Characteristic exponent of noise, in (0, 2].
    pub alpha_noise: f64,
    /// Number of noise spectra.
    pub noise_rank: usize,
}

/// Which factors a sweep of [`Separation::maximise`] updates besides the activations of speech.
#[derive(Debug, Clone, Copy)]
pub struct Free {
    /// The activations of noise and its spectra.
    pub noise: bool,
    /// The gain of the channel.
    pub channel: bool,
    /// The speech spectra themselves, as in training.
    pub speech: bool,
}

/// The factors of a recording, cut into tiles of frames.
pub struct Separation {
    mixture: Mixture<f32>,
    dictionary: Vec<f32>,
    table: Arc<MarginalTable>,
    tiles: Vec<Tile>,
    workspaces: Mutex<Vec<Workspace<f32>>>,
}

/// Some consecutive frames: all that is known of them.
struct Tile {
    power: Vec<f32>,
    activations: Vec<f32>,
    impulses: Impulses<f32>,
    gain_sum: Vec<f32>,
    raise: Vec<f32>,
    lower: Vec<f32>,
    noise_raise: Vec<f32>,
    noise_lower: Vec<f32>,
    channel_raise: Vec<f32>,
    channel_lower: Vec<f32>,
}

impl Separation {
    /// The start for a stretch with powers `|X|^2` (bins x frames, mean near one).
    #[must_use]
    pub fn new(start: &Start, power: &[f32], table: Arc<MarginalTable>, streams: Streams) -> Self {
        let bins = start.bins;
        let mut stream = streams.stream(0);
        let noise = noise_start(start, power, &mut stream);
        let mixture = Mixture {
            bins,
            speech: Factor { alpha: start.alpha_speech, spectra: start.speech_spectra.to_vec() },
            noise: Factor { alpha: start.alpha_noise, spectra: noise },
        };
        let (rank, split) = (mixture.rank(), mixture.speech_rank());
        let total: f32 = start.speech_spectra.iter().sum::<f32>() / bins as f32;
        let tiles = power
            .chunks(TILE_FRAMES * bins)
            .map(|power| {
                let frames = power.len() / bins;
                let mut activations = vec![0.0; rank * frames];
                for (column, power) in activations.chunks_exact_mut(rank).zip(power.chunks_exact(bins)) {
                    let exponent = (start.alpha_speech / 2.0) as f32;
                    let level = power.iter().map(|x| x.powf(exponent)).sum::<f32>() / bins as f32;
                    column[..split].fill((level / total).max(1e-6));
                    column[split..].fill(0.05);
                    column[split] = 1.0;
                }
                Tile {
                    power: power.iter().map(|x| x.max(SMALLEST_POWER as f32)).collect(),
                    impulses: Impulses::Integrated(Arc::clone(&table)),
                    gain_sum: vec![0.0; power.len()],
                    raise: vec![0.0; activations.len()],
                    lower: vec![0.0; activations.len()],
                    activations,
                    noise_raise: vec![0.0; bins * (rank - split)],
                    noise_lower: vec![0.0; bins * (rank - split)],
                    channel_raise: vec![0.0; bins],
                    channel_lower: vec![0.0; bins],
                }
            })
            .collect();
        Self {
            dictionary: mixture.speech.spectra.clone(),
            mixture,
            table,
            tiles,
            workspaces: Mutex::default(),
        }
    }

    /// One sweep of (marginal) expectation maximisation: every free factor is multiplied by
    /// `(raise / lower)^exponent`. Returns nothing; the potential never rises for exponents up to 1/2
    /// with one factor free.
    pub fn maximise(&mut self, exponent: f32, free: Free) {
        let Self { mixture, tiles, workspaces, .. } = self;
        let split = mixture.speech_rank();
        let rank = mixture.rank();
        let bins = mixture.bins;
        let shared = &*mixture;
        tiles.par_iter_mut().for_each_init(
            || Borrowed::new(workspaces, bins),
            |workspace, tile| {
                let workspace = &mut workspace.workspace;
                workspace.disperse(shared, &tile.activations);
                workspace.evaluate(shared, &tile.impulses, &tile.power);
                workspace.activation_slopes(shared, &mut tile.raise, &mut tile.lower);
                if free.noise {
                    tile.noise_raise.fill(0.0);
                    tile.noise_lower.fill(0.0);
                    workspace.add_noise_slopes(
                        shared,
                        &tile.activations,
                        &mut tile.noise_raise,
                        &mut tile.noise_lower,
                    );
                }
                if free.channel {
                    tile.channel_raise.fill(0.0);
                    tile.channel_lower.fill(0.0);
                    workspace.add_channel_slopes(&mut tile.channel_raise, &mut tile.channel_lower);
                }
                let updated = if free.noise { rank } else { split };
                for (column, (raise, lower)) in tile
                    .activations
                    .chunks_exact_mut(rank)
                    .zip(tile.raise.chunks_exact(rank).zip(tile.lower.chunks_exact(rank)))
                {
                    multiply(&mut column[..updated], raise, lower, exponent);
                }
            },
        );
        if free.noise {
            let (raise, lower) = sum(tiles, |tile| (&tile.noise_raise, &tile.noise_lower));
            multiply(&mut mixture.noise.spectra, &raise, &lower, exponent);
        }
        if free.channel {
            let (raise, lower) = sum(tiles, |tile| (&tile.channel_raise, &tile.channel_lower));
            let _ = (raise, lower, &self.dictionary, &self.table);
        }
    }

    /// Adds the present gain of every bin to the average.
    pub fn accumulate(&mut self) {
        let Self { mixture, tiles, workspaces, .. } = self;
        let (shared, bins) = (&*mixture, mixture.bins);
        tiles.par_iter_mut().for_each_init(
            || Borrowed::new(workspaces, bins),
            |workspace, tile| {
                let workspace = &mut workspace.workspace;
                workspace.disperse(shared, &tile.activations);
                workspace.evaluate(shared, &tile.impulses, &tile.power);
                for (sum, gain) in tile.gain_sum.iter_mut().zip(workspace.gain()) {
                    *sum += gain;
                }
            },
        );
    }

    /// The sum of the gains that were accumulated, bins x frames.
    #[must_use]
    pub fn gain_sum(&self) -> Vec<f32> {
        self.tiles.iter().flat_map(|tile| tile.gain_sum.iter().copied()).collect()
    }

    /// The mixture as it stands.
    #[must_use]
    pub fn mixture(&self) -> &Mixture<f32> {
        &self.mixture
    }
}

/// A workspace on loan from the pool.
struct Borrowed<'a> {
    pool: &'a Mutex<Vec<Workspace<f32>>>,
    workspace: Workspace<f32>,
}

impl<'a> Borrowed<'a> {
    fn new(pool: &'a Mutex<Vec<Workspace<f32>>>, bins: usize) -> Self {
        let spare = pool.lock().ok().and_then(|mut pool| pool.pop());
        Self { pool, workspace: spare.unwrap_or_else(|| Workspace::new(bins)) }
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        if let Ok(mut pool) = self.pool.lock() {
            pool.push(std::mem::replace(&mut self.workspace, Workspace::new(0)));
        }
    }
}

fn sum(tiles: &[Tile], of: impl Fn(&Tile) -> (&Vec<f32>, &Vec<f32>)) -> (Vec<f32>, Vec<f32>) {
    let (mut raise, mut lower) =
        tiles.first().map(|tile| of(tile)).map_or_else(Default::default, |(a, b)| (a.clone(), b.clone()));
    for tile in &tiles[1..] {
        let (more_raise, more_lower) = of(tile);
        raise.iter_mut().zip(more_raise).for_each(|(sum, x)| *sum += x);
        lower.iter_mut().zip(more_lower).for_each(|(sum, x)| *sum += x);
    }
    (raise, lower)
}

fn multiply(factor: &mut [f32], raise: &[f32], lower: &[f32], exponent: f32) {
    vector::dispatch(
        #[inline(always)]
        || {
            for ((value, raise), lower) in factor.iter_mut().zip(raise).zip(lower) {
                *value = (*value * vector::powf(raise / lower.max(1e-20), exponent)).clamp(1e-9, 1e9);
            }
        },
    );
}

/// The noise spectra at the start: the first from a low quantile of the power over time, as if it
/// held stationary noise alone; the others random around it.
fn noise_start(start: &Start, power: &[f32], stream: &mut impl rand::Rng) -> Vec<f32> {
    const QUANTILE: f64 = 0.2;
    let bins = start.bins;
    let frames = power.len() / bins;
    let mut over_time = vec![0.0; frames];
    let mut spectra = Vec::with_capacity(bins * start.noise_rank);
    for bin in 0..bins {
        for (value, frame) in over_time.iter_mut().zip(power.chunks_exact(bins)) {
            *value = frame[bin];
        }
        let at = ((frames - 1) as f64 * QUANTILE) as usize;
        let (_, quantile, _) = over_time.select_nth_unstable_by(at, f32::total_cmp);
        // Of an exponential law's mean.
        let mean = f64::from(quantile.max(SMALLEST_POWER as f32)) / -(1.0 - QUANTILE).ln();
        spectra.push(mean.powf(start.alpha_noise / 2.0) as f32);
    }
    for _ in 1..start.noise_rank {
        for bin in 0..bins {
            let jitter: f32 = stream.random_range(0.5..1.5);
            spectra.push(spectra[bin] * jitter);
        }
    }
    spectra
}
