//! The latent state of one block: factors, impulse expectations and accumulated gains.

use super::channel::ChannelResponse;
use super::noise_drift::Smoothing;
use super::start::{noise_spectra, shrink_to_previous};
use super::workspace_pool::WorkspacePool;
use crate::kernels::vector;
use crate::model::{
    Continuation, Factor, ImpulseVariables, MIN_POWER, MarginalTable, Mixture, NoiseModel, Prior,
};
use crate::parallel::*;
use crate::random::SeedTree;
use std::sync::Arc;

/// Frames of a tile: its matrices fit into a core's cache.
pub(crate) const TILE_FRAMES: usize = 32;
/// Range of activations and spectra, within which their products do not overflow.
pub(crate) const ENTRIES: (f32, f32) = (1e-9, 1e9);
/// Initial activations: the minimum of those of speech, and those of all noise spectra but the first.
const FIRST: (f32, f32) = (1e-6, 0.05);
/// Minimum of the initial noise field.
const MIN_FIELD: f32 = 0.1;

/// The inputs of a separation.
#[derive(Debug, Clone)]
pub(crate) struct Start<'a> {
    /// Number of frequency bins.
    pub bins: usize,
    /// Dispersion spectra of speech, bins x rank.
    pub speech_spectra: &'a [f32],
    /// Characteristic exponent of speech.
    pub alpha_speech: f64,
    /// Characteristic exponent of noise.
    pub alpha_noise: f64,
    /// Factorisation of the noise.
    pub noise: NoiseModel,
    /// Distance between frames, s.
    pub frame_seconds: f64,
    /// Distance between bins, Hz.
    pub bin_hertz: f64,
    /// Prior of the activations of speech.
    pub speech_prior: Prior,
    /// Prior of the activations and spectra of noise.
    pub noise_prior: Prior,
    /// Noise spectra and channel response of the previous block.
    pub previous: Option<&'a BandState>,
    /// Mean power of the noise per bin, if given.
    pub noise_profile: Option<&'a [f32]>,
    /// Whether to accumulate the squares of gains, for their standard deviation.
    pub gain_std: bool,
}

/// State carried over to the next block.
#[derive(Debug, Clone)]
pub(crate) struct BandState {
    noise_spectra: Vec<f32>,
    response: ChannelResponse,
}

impl BandState {
    /// Scales the state as if all powers were multiplied by `factor`.
    pub(crate) fn scale_power(&mut self, factor: f32, alpha_noise: f64) {
        let factor = libm::pow(f64::from(factor), alpha_noise / 2.0) as f32;
        self.noise_spectra.iter_mut().for_each(|x| *x = (*x * factor).clamp(ENTRIES.0, ENTRIES.1));
    }
}

/// Which factors a sweep of [`Separation::em_step`] updates besides the activations of speech.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UpdateMask {
    /// The activations and spectra of noise.
    pub noise: bool,
    /// The channel response.
    pub response: bool,
}

/// The factors of a block, divided into tiles of frames.
pub(crate) struct Separation {
    pub(crate) mixture: Mixture<f32>,
    pub(crate) tiles: Vec<Tile>,
    pub(crate) pool: WorkspacePool,
    pub(crate) speech_prior: Prior,
    pub(crate) noise_prior: Prior,
    /// The expectations with impulse variables integrated out.
    pub(crate) table: Arc<MarginalTable>,
    pub(super) drift: Option<Smoothing>,
    pub(super) dictionary: Vec<f32>,
    pub(super) response: ChannelResponse,
    /// Interpolation of the spectra of speech, if its activations are fixed.
    pub(super) continuation: Option<Continuation>,
    /// Number of gains in the sums.
    accumulated: usize,
}

/// Consecutive frames: data, factors and sums.
pub(crate) struct Tile {
    /// `|X|^2`, bins x frames.
    pub power: Vec<f32>,
    /// Activations, rank x frames; those of speech first.
    pub activations: Vec<f32>,
    /// Field that multiplies the dispersions of noise, bins x frames; empty for fixed spectra.
    pub field: Vec<f32>,
    pub(super) field_numerator: Vec<f32>,
    pub(super) field_denominator: Vec<f32>,
    /// Sum of the accumulated gains, bins x frames.
    pub gain_sum: Vec<f32>,
    /// Sum of their squares; empty if not requested.
    pub gain_square_sum: Vec<f32>,
    pub noise_numerator: Vec<f32>,
    pub noise_denominator: Vec<f32>,
    pub(super) numerator: Vec<f32>,
    pub(super) denominator: Vec<f32>,
    pub(super) response_numerator: Vec<f32>,
    pub(super) response_denominator: Vec<f32>,
    /// Update terms at the knots of a continuation, knots x rank.
    pub(super) continuation_numerator: Vec<f32>,
    pub(super) continuation_denominator: Vec<f32>,
}

impl Tile {
    /// A tile of powers `|X|^2` (bins x frames). Speech starts at the level of the recording, and the first noise spectrum
    /// with activation 1.
    fn new(mixture: &Mixture<f32>, power: &[f32], drifts: bool, gain_std: bool) -> Self {
        let (bins, rank, split) = (mixture.bins, mixture.rank(), mixture.speech_rank());
        let total = mixture.speech.spectra.iter().sum::<f32>() / bins as f32;
        let half_alpha = (mixture.speech.alpha / 2.0) as f32;
        let mut activations = vec![0.0; rank * (power.len() / bins)];
        for (column, power) in activations.chunks_exact_mut(rank).zip(power.chunks_exact(bins)) {
            let level = power.iter().map(|&x| vector::powf(x, half_alpha)).sum::<f32>() / bins as f32;
            column[..split].fill((level / total).max(FIRST.0));
            column[split..].fill(FIRST.1);
            column[split] = 1.0;
        }
        let per_bin = || vec![0.0; bins];
        let per_spectrum = || vec![0.0; bins * (rank - split)];
        let field = |value: f32| vec![value; if drifts { power.len() } else { 0 }];
        Self {
            power: power.iter().map(|x| x.max(MIN_POWER as f32)).collect(),
            field: field(1.0),
            field_numerator: field(0.0),
            field_denominator: field(0.0),
            gain_sum: vec![0.0; power.len()],
            gain_square_sum: vec![0.0; if gain_std { power.len() } else { 0 }],
            numerator: vec![0.0; activations.len()],
            denominator: vec![0.0; activations.len()],
            activations,
            noise_numerator: per_spectrum(),
            noise_denominator: per_spectrum(),
            response_numerator: per_bin(),
            response_denominator: per_bin(),
            continuation_numerator: Vec::new(),
            continuation_denominator: Vec::new(),
        }
    }
}

impl Separation {
    /// The initial state for powers `|X|^2` (bins x frames, of order one).
    pub(crate) fn new(start: &Start, power: &[f32], table: &Arc<MarginalTable>, seeds: SeedTree) -> Self {
        let bins = start.bins;
        let (noise_rank, drift) = match start.noise {
            NoiseModel::FixedSpectra { rank } => (rank, None),
            NoiseModel::Drifting(drift) => (1, Some(drift)),
        };
        let (profile, alpha) = (start.noise_profile, start.alpha_noise);
        let mut noise = noise_spectra(bins, power, profile, alpha, noise_rank, &mut seeds.rng(0));
        if let (Some(previous), None) = (start.previous, profile) {
            shrink_to_previous(&previous.noise_spectra, &mut noise, power.len() / bins);
        }
        let response =
            start.previous.map_or_else(|| ChannelResponse::new(bins), |previous| previous.response.clone());
        let mut mixture = Mixture {
            bins,
            speech: Factor { alpha: start.alpha_speech, spectra: start.speech_spectra.to_vec() },
            noise: Factor { alpha: start.alpha_noise, spectra: noise },
        };
        response.shape(start.speech_spectra, &mut mixture.speech.spectra);
        let per_tile = power.chunks(TILE_FRAMES * bins);
        let tiles = per_tile.map(|power| Tile::new(&mixture, power, drift.is_some(), start.gain_std));
        let tiles = tiles.collect();
        Self {
            mixture,
            tiles,
            pool: WorkspacePool::default(),
            speech_prior: start.speech_prior,
            noise_prior: start.noise_prior,
            table: Arc::clone(table),
            drift: drift.map(|drift| Smoothing::new(&drift, bins, start.frame_seconds, start.bin_hertz)),
            dictionary: start.speech_spectra.to_vec(),
            response,
            continuation: None,
            accumulated: 0,
        }
    }

    /// Initialises the field of drifting noise from powers (bins x frames). Sweeps multiply it by a smooth field, so
    /// its fast changes persist.
    pub(crate) fn init_noise_field(&mut self, power: &[f32]) {
        let Self { mixture, tiles, .. } = self;
        let half_alpha = (mixture.noise.alpha / 2.0) as f32;
        for (tile, power) in tiles.iter_mut().zip(power.chunks(TILE_FRAMES * mixture.bins)) {
            let frames = tile.field.chunks_exact_mut(mixture.bins).zip(power.chunks_exact(mixture.bins));
            vector::dispatch(
                #[inline(always)]
                || {
                    for (field, power) in frames {
                        for ((field, power), spectrum) in
                            field.iter_mut().zip(power).zip(&mixture.noise.spectra)
                        {
                            let dispersion = vector::powf(power.max(MIN_POWER as f32), half_alpha);
                            *field = (dispersion / spectrum).clamp(MIN_FIELD, ENTRIES.1);
                        }
                    }
                },
            );
        }
    }

    /// Copies the activations of speech from the separation of another band of the same frames and fixes them; from now on
    /// the spectra of speech are interpolated by `continuation`.
    pub(crate) fn fix_activations(&mut self, other: &Self, continuation: Continuation) {
        let (rank, split) = (self.mixture.rank(), self.mixture.speech_rank());
        for (tile, other_tile) in self.tiles.iter_mut().zip(&other.tiles) {
            let columns = other_tile.activations.chunks_exact(other.mixture.rank());
            for (column, other_column) in tile.activations.chunks_exact_mut(rank).zip(columns) {
                column[..split].copy_from_slice(&other_column[..split]);
            }
            tile.continuation_numerator = vec![0.0; continuation.knots() * split];
            tile.continuation_denominator = vec![0.0; continuation.knots() * split];
        }
        self.continuation = Some(continuation);
    }

    /// The update terms of the spectra of speech at the knots (knots x rank) in the last sweep, if their activations are
    /// fixed.
    pub(crate) fn continuation_terms(&self) -> (Vec<f32>, Vec<f32>) {
        sum(&self.tiles, |tile| (&tile.continuation_numerator, &tile.continuation_denominator))
    }

    /// Adds the present expected gain of every bin to the sums. Impulse variables are integrated out even where they are
    /// sampled: the mean is the same, with less Monte Carlo error.
    pub(crate) fn accumulate(&mut self) {
        self.accumulated += 1;
        let Self { mixture, tiles, pool, table, .. } = self;
        let (mixture, impulses) = (&*mixture, ImpulseVariables::Integrated(table));
        tiles.par_iter_mut().with_max_len(1).for_each_init(
            || pool.take(),
            |workspace, tile| {
                let mut dispersed = workspace.disperse(mixture, &tile.activations).modulated(&tile.field);
                let shares = dispersed.evaluate(impulses, &tile.power);
                tile.gain_sum.iter_mut().zip(shares.gain()).for_each(|(sum, gain)| *sum += gain);
                let squares = tile.gain_square_sum.iter_mut().zip(shares.gain());
                squares.for_each(|(sum, gain)| *sum += gain * gain);
            },
        );
    }

    /// The mean of the accumulated gains, bins x frames.
    pub(crate) fn mean_gain(&self) -> Vec<f32> {
        let scale = 1.0 / self.accumulated as f32;
        self.tiles.iter().flat_map(|tile| tile.gain_sum.iter().map(|sum| sum * scale)).collect()
    }

    /// The dispersions of speech and of noise at the present factors, bins x frames each.
    #[cfg(test)]
    pub(crate) fn dispersions(&self) -> [Vec<f32>; 2] {
        let mut workspace = self.pool.take();
        let mut dispersions = [Vec::new(), Vec::new()];
        for tile in &self.tiles {
            let dispersed = workspace.disperse(&self.mixture, &tile.activations).modulated(&tile.field);
            let (speech, noise) = dispersed.dispersions();
            dispersions[0].extend_from_slice(speech);
            dispersions[1].extend_from_slice(noise);
        }
        dispersions
    }

    /// The sum of the accumulated gains in one bin of a frame.
    pub(crate) fn gain_sum(&self, frame: usize, bin: usize) -> f32 {
        let entry = frame * self.mixture.bins + bin;
        let per_tile = entries_per_tile(&self.tiles);
        self.tiles[entry / per_tile].gain_sum[entry % per_tile]
    }

    /// The standard deviation of the accumulated gains, bins x frames; empty if not requested.
    pub(crate) fn gain_std(&self) -> Vec<f32> {
        let scale = 1.0 / self.accumulated as f32;
        let std = |(square, sum): (&f32, &f32)| (square * scale - (sum * scale).powi(2)).max(0.0).sqrt();
        let tiles = self.tiles.iter();
        tiles.flat_map(|tile| tile.gain_square_sum.iter().zip(&tile.gain_sum).map(std)).collect()
    }

    /// Resets the sums of gains.
    pub(crate) fn reset_averages(&mut self) {
        self.accumulated = 0;
        for tile in &mut self.tiles {
            tile.gain_sum.fill(0.0);
            tile.gain_square_sum.fill(0.0);
        }
    }

    /// The state to carry over to the next block.
    pub(crate) fn into_state(self) -> BandState {
        let (rank, split) = (self.mixture.rank(), self.mixture.speech_rank());
        let mut noise_spectra = self.mixture.noise.spectra;
        let columns = || self.tiles.iter().flat_map(|tile| tile.activations.chunks_exact(rank));
        for (k, spectrum) in noise_spectra.chunks_exact_mut(self.mixture.bins).enumerate() {
            let mean = columns().map(|column| column[split + k]).sum::<f32>() / columns().count() as f32;
            spectrum.iter_mut().for_each(|x| *x = (*x * mean).clamp(ENTRIES.0, ENTRIES.1));
        }
        BandState { noise_spectra, response: self.response }
    }
}

/// Number of entries of a tile; the last one may have fewer.
pub(crate) fn entries_per_tile(tiles: &[Tile]) -> usize {
    tiles.first().map_or(1, |tile| tile.power.len())
}

/// Sums of two statistics over the tiles, in order.
pub(crate) fn sum(tiles: &[Tile], of: impl Fn(&Tile) -> (&Vec<f32>, &Vec<f32>)) -> (Vec<f32>, Vec<f32>) {
    let mut sums: Option<(Vec<f32>, Vec<f32>)> = None;
    for (numerator, denominator) in tiles.iter().map(of) {
        match &mut sums {
            None => sums = Some((numerator.clone(), denominator.clone())),
            Some(sums) => {
                sums.0.iter_mut().zip(numerator).for_each(|(sum, x)| *sum += x);
                sums.1.iter_mut().zip(denominator).for_each(|(sum, x)| *sum += x);
            }
        }
    }
    sums.unwrap_or_default()
}
