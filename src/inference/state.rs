//! The latent state of one stretch of a recording, and the sweeps that improve it.

use super::channel::ChannelResponse;
use super::noise_drift::Smoothing;
use super::start::{noise_spectra, shrink_to_previous};
use crate::kernels::vector;
use crate::model::NoiseModel;
use crate::model::{
    Continuation, Factor, ImpulseVariables, MIN_POWER, MarginalTable, Mixture, Prior, Workspace,
};
use crate::parallel::*;
use crate::random::{SeedTree, SeededRng};
use crate::stable::GeneralisedGamma;
use rand_distr::Distribution;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

/// Tile that are worked on together: their matrices fit into a core's cache.
pub(crate) const TILE_FRAMES: usize = 32;
/// Range of activations and spectra, in which neither they nor their products overflow.
pub(crate) const ENTRIES: (f32, f32) = (1e-9, 1e9);
/// What activations start at: the least of those of speech, and those of all noise spectra but the first.
const FIRST: (f32, f32) = (1e-6, 0.05);
/// The least of what noise that is heard starts at, of its spectrum.
const MIN_FIELD: f32 = 0.1;
/// Keeps ratios of slopes finite.
const MIN_TERM: f32 = 1e-20;

/// What a separation starts from.
#[derive(Debug, Clone)]
pub(crate) struct Start<'a> {
    /// Number of frequency bins.
    pub bins: usize,
    /// Dispersion spectra of speech, bins x rank.
    pub speech_spectra: &'a [f32],
    /// Characteristic exponents of speech and of noise.
    pub alpha_speech: f64,
    pub alpha_noise: f64,
    /// What the noise is made of.
    pub noise: NoiseModel,
    /// Distances of frames (s) and bins (Hz).
    pub frame_seconds: f64,
    pub bin_hertz: f64,
    /// Prior of the activations of speech.
    pub speech_prior: Prior,
    /// Prior of the activations and spectra of noise.
    pub noise_prior: Prior,
    /// Noise spectra and channel of the stretch before this one.
    pub carried: Option<&'a BandState>,
    /// The mean power of the noise per bin, if it is known beforehand.
    pub noise_profile: Option<&'a [f32]>,
    /// Whether to sum the squares of gains too.
    pub deviation: bool,
}

/// What one stretch of a recording hands on to the next.
#[derive(Debug, Clone)]
pub(crate) struct BandState {
    noise_spectra: Vec<f32>,
    response: ChannelResponse,
}

impl BandState {
    /// Changes the unit of power.
    pub(crate) fn scale_power(&mut self, factor: f32, alpha_noise: f64) {
        let factor = libm::pow(f64::from(factor), alpha_noise / 2.0) as f32;
        self.noise_spectra.iter_mut().for_each(|x| *x = (*x * factor).clamp(ENTRIES.0, ENTRIES.1));
    }
}

/// Which factors a sweep of [`Separation::em_step`] updates besides the activations of speech.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UpdateMask {
    /// The activations of noise and its spectra.
    pub noise: bool,
    /// The gain of the channel.
    pub response: bool,
}

/// The factors of a stretch of a recording, which is cut into tiles of frames.
pub(crate) struct Separation {
    pub(crate) mixture: Mixture<f32>,
    pub(crate) tiles: Vec<Tile>,
    pub(crate) pool: WorkspacePool,
    pub(crate) speech_prior: Prior,
    pub(crate) noise_prior: Prior,
    /// The expectations with impulse variables integrated out.
    pub(crate) table: Arc<MarginalTable>,
    drift: Option<Smoothing>,
    dictionary: Vec<f32>,
    response: ChannelResponse,
    /// If the activations of speech are held, how its spectra are made.
    continuation: Option<Continuation>,
    /// Gains in the sums.
    accumulated: usize,
}

/// Some consecutive frames: all that is known of them.
pub(crate) struct Tile {
    /// `|X|^2`, bins x frames.
    pub power: Vec<f32>,
    /// Speech above noise, rank x frames.
    pub activations: Vec<f32>,
    /// What multiplies the dispersions of noise, bins x frames; empty if it is made of constant spectra alone.
    pub field: Vec<f32>,
    field_numerator: Vec<f32>,
    field_denominator: Vec<f32>,
    /// Sum of the gains that were accumulated, bins x frames.
    pub gain_sum: Vec<f32>,
    /// Sum of their squares; empty if not asked for.
    pub gain_square_sum: Vec<f32>,
    pub noise_numerator: Vec<f32>,
    pub noise_denominator: Vec<f32>,
    numerator: Vec<f32>,
    denominator: Vec<f32>,
    response_numerator: Vec<f32>,
    response_denominator: Vec<f32>,
    /// UpdateTerms at the knots of a continuation, knots x rank.
    continuation_numerator: Vec<f32>,
    continuation_denominator: Vec<f32>,
}

impl Tile {
    /// The start for powers `|X|^2` (bins x frames): speech as loud as all of it, and the first noise spectrum as it is.
    fn new(mixture: &Mixture<f32>, power: &[f32], drifts: bool, deviation: bool) -> Self {
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
            gain_square_sum: vec![0.0; if deviation { power.len() } else { 0 }],
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
    /// The start for powers `|X|^2` (bins x frames, of order one).
    pub(crate) fn new(start: &Start, power: &[f32], table: &Arc<MarginalTable>, streams: SeedTree) -> Self {
        let bins = start.bins;
        let (noise_rank, drift) = match start.noise {
            NoiseModel::FixedSpectra { rank } => (rank, None),
            NoiseModel::Drifting(drift) => (1, Some(drift)),
        };
        let (profile, alpha) = (start.noise_profile, start.alpha_noise);
        let mut noise = noise_spectra(bins, power, profile, alpha, noise_rank, &mut streams.rng(0));
        if let (Some(carried), None) = (start.carried, profile) {
            shrink_to_previous(&carried.noise_spectra, &mut noise, power.len() / bins);
        }
        let response =
            start.carried.map_or_else(|| ChannelResponse::new(bins), |carried| carried.response.clone());
        let mut mixture = Mixture {
            bins,
            speech: Factor { alpha: start.alpha_speech, spectra: start.speech_spectra.to_vec() },
            noise: Factor { alpha: start.alpha_noise, spectra: noise },
        };
        response.shape(start.speech_spectra, &mut mixture.speech.spectra);
        let per_tile = power.chunks(TILE_FRAMES * bins);
        let tiles = per_tile.map(|power| Tile::new(&mixture, power, drift.is_some(), start.deviation));
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

    /// Makes one tile of all, for samplers that look at all frames at once. There are no sweeps of
    /// [`em_step`](Self::em_step) after that.
    pub(crate) fn merge_tiles(&mut self) {
        let joined = std::mem::take(&mut self.tiles).into_iter().reduce(|mut all, tile| {
            all.power.extend(tile.power);
            all.activations.extend(tile.activations);
            all.field.extend(tile.field);
            all.gain_sum.extend(tile.gain_sum);
            all.gain_square_sum.extend(tile.gain_square_sum);
            all
        });
        self.tiles.extend(joined);
    }

    /// Draws all factors from their priors, as far as these are generalised gamma laws.
    pub(crate) fn start_from_priors(&mut self, stream: &mut SeededRng) {
        let Self { mixture, tiles, speech_prior, noise_prior, .. } = self;
        let (rank, split) = (mixture.rank(), mixture.speech_rank());
        let mut draw = |prior: &Prior, values: &mut [f32]| {
            if let &Prior::GeneralisedGamma { shape, scale, power } = prior
                && let Ok(law) = GeneralisedGamma::new(shape, scale, power)
            {
                let draws = values.iter_mut().zip(law.sample_iter(&mut *stream));
                draws.for_each(|(value, draw)| *value = (draw as f32).clamp(ENTRIES.0, ENTRIES.1));
            }
        };
        draw(noise_prior, &mut mixture.noise.spectra);
        for column in tiles.iter_mut().flat_map(|tile| tile.activations.chunks_exact_mut(rank)) {
            draw(speech_prior, &mut column[..split]);
            draw(noise_prior, &mut column[split..]);
        }
    }

    /// Lets noise that drifts start from these powers (bins x frames). The sweeps multiply them by what varies slowly:
    /// what moves fast stays as it is here.
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

    /// Takes the activations of speech from the separation of another band of the same frames and holds them; from
    /// now on, the spectra of speech are made by `continuation`.
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

    /// The slopes of the spectra of speech at the knots (knots x rank) in the last sweep, if their activations are
    /// held.
    pub(crate) fn continuation_slopes(&self) -> (Vec<f32>, Vec<f32>) {
        sum(&self.tiles, |tile| (&tile.continuation_numerator, &tile.continuation_denominator))
    }

    /// One sweep of expectation maximisation on the posterior with the impulse variables integrated out:
    /// every free factor is multiplied by `(numerator / denominator)^update_exponent`, from the same slopes. Activations of speech
    /// are free unless they are held.
    pub(crate) fn em_step(&mut self, update_exponent: f32, free: UpdateMask) {
        let continuation = self.continuation;
        let Self { mixture, tiles, pool, speech_prior, noise_prior, drift, table, .. } = self;
        let impulses = ImpulseVariables::Integrated(table);
        let (rank, split) = (mixture.rank(), mixture.speech_rank());
        let first = if continuation.is_some() { split } else { 0 };
        let updated = first..if free.noise { rank } else { split };
        let (shared, bins) = (&*mixture, mixture.bins);
        let free_drift = drift.filter(|_| free.noise);
        let spectra_free = free.noise && drift.is_none();
        tiles.par_iter_mut().with_max_len(1).for_each_init(
            || pool.take(),
            |workspace, tile| {
                let mut dispersed = workspace.disperse(shared, &tile.activations).modulated(&tile.field);
                let shares = dispersed.evaluate(impulses, &tile.power);
                if let Some(smoothing) = &free_drift {
                    let (numerator, denominator) = (&mut tile.field_numerator, &mut tile.field_denominator);
                    shares.of_noise(numerator, denominator);
                    smoothing.over_bins([numerator, denominator]);
                }
                let slopes = shares.slopes();
                slopes.activations(&mut tile.numerator, &mut tile.denominator);
                if spectra_free {
                    let (numerator, denominator) = (&mut tile.noise_numerator, &mut tile.noise_denominator);
                    numerator.fill(0.0);
                    denominator.fill(0.0);
                    slopes.add_noise(numerator, denominator);
                }
                if free.response {
                    let (numerator, denominator) =
                        (&mut tile.response_numerator, &mut tile.response_denominator);
                    numerator.fill(0.0);
                    denominator.fill(0.0);
                    slopes.add_gain(numerator, denominator);
                }
                if let Some(continuation) = &continuation {
                    let (numerator, denominator) =
                        (&mut tile.continuation_numerator, &mut tile.continuation_denominator);
                    numerator.fill(0.0);
                    denominator.fill(0.0);
                    slopes.add_continuation(continuation, numerator, denominator);
                }
                let slopes = tile.numerator.chunks_exact(rank).zip(tile.denominator.chunks_exact_mut(rank));
                for (column, (numerator, denominator)) in tile.activations.chunks_exact_mut(rank).zip(slopes)
                {
                    speech_prior.add_gradient(&column[..split], &mut denominator[..split]);
                    noise_prior.add_gradient(&column[split..], &mut denominator[split..]);
                    let (numerator, denominator) =
                        (&numerator[updated.clone()], &denominator[updated.clone()]);
                    multiply(&mut column[updated.clone()], numerator, denominator, update_exponent);
                }
            },
        );
        if let Some(smoothing) = free_drift {
            let parts = tiles.iter().map(|tile| (&tile.field_numerator, &tile.field_denominator));
            let (numerator, denominator) = smoothing.over_frames(parts);
            let parts =
                numerator.par_chunks(TILE_FRAMES * bins).zip(denominator.par_chunks(TILE_FRAMES * bins));
            tiles.par_iter_mut().zip(parts).for_each(|(tile, (numerator, denominator))| {
                multiply(&mut tile.field, numerator, denominator, update_exponent);
            });
        }
        if spectra_free {
            let (numerator, mut denominator) =
                sum(tiles, |tile| (&tile.noise_numerator, &tile.noise_denominator));
            noise_prior.add_gradient(&mixture.noise.spectra, &mut denominator);
            multiply(&mut mixture.noise.spectra, &numerator, &denominator, update_exponent);
        }
        if free.response {
            let (numerator, denominator) =
                sum(tiles, |tile| (&tile.response_numerator, &tile.response_denominator));
            self.response.update(&numerator, &denominator, update_exponent);
            self.response.shape(&self.dictionary, &mut mixture.speech.spectra);
        }
    }

    /// Adds the present expected gain of every bin to the sums. Impulse variables are integrated out even where
    /// they are sampled: the mean is the same, its Monte Carlo error less.
    pub(crate) fn accumulate(&mut self) {
        let table = Arc::clone(&self.table);
        self.accumulate_at(&vec![ImpulseVariables::Integrated(&table); self.tiles.len()]);
    }

    /// The same given the impulse variables of every tile.
    pub(crate) fn accumulate_at(&mut self, impulses: &[ImpulseVariables<'_, f32>]) {
        self.accumulated += 1;
        let Self { mixture, tiles, pool, .. } = self;
        let mixture = &*mixture;
        tiles.par_iter_mut().zip(impulses).with_max_len(1).for_each_init(
            || pool.take(),
            |workspace, (tile, &impulses)| {
                let mut dispersed = workspace.disperse(mixture, &tile.activations).modulated(&tile.field);
                let shares = dispersed.evaluate(impulses, &tile.power);
                tile.gain_sum.iter_mut().zip(shares.gain()).for_each(|(sum, gain)| *sum += gain);
                let squares = tile.gain_square_sum.iter_mut().zip(shares.gain());
                squares.for_each(|(sum, gain)| *sum += gain * gain);
            },
        );
    }

    /// The sums of gains (bins x frames) over their number.
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

    /// The sum of the gains of one bin of a frame.
    pub(crate) fn gain_sum(&self, frame: usize, bin: usize) -> f32 {
        let entry = frame * self.mixture.bins + bin;
        let per_tile = entries_per_tile(&self.tiles);
        self.tiles[entry / per_tile].gain_sum[entry % per_tile]
    }

    /// The standard deviation of the gains that were accumulated (bins x frames); empty if not asked for.
    pub(crate) fn gain_deviation(&self) -> Vec<f32> {
        let scale = 1.0 / self.accumulated as f32;
        let deviation =
            |(square, sum): (&f32, &f32)| (square * scale - (sum * scale).powi(2)).max(0.0).sqrt();
        let tiles = self.tiles.iter();
        tiles.flat_map(|tile| tile.gain_square_sum.iter().zip(&tile.gain_sum).map(deviation)).collect()
    }

    /// Starts the sums of gains anew.
    pub(crate) fn reset_averages(&mut self) {
        self.accumulated = 0;
        for tile in &mut self.tiles {
            tile.gain_sum.fill(0.0);
            tile.gain_square_sum.fill(0.0);
        }
    }

    /// What the next stretch may start from.
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

/// Spare workspaces, at most one per thread.
#[derive(Default)]
pub(crate) struct WorkspacePool(Mutex<Vec<Workspace<f32>>>);

/// A workspace on loan from a [`WorkspacePool`].
pub(crate) struct WorkspaceGuard<'a> {
    pool: &'a WorkspacePool,
    workspace: Workspace<f32>,
}

impl WorkspacePool {
    pub(crate) fn take(&self) -> WorkspaceGuard<'_> {
        let spare = self.0.lock().ok().and_then(|mut spare| spare.pop());
        WorkspaceGuard { pool: self, workspace: spare.unwrap_or_default() }
    }
}

impl Deref for WorkspaceGuard<'_> {
    type Target = Workspace<f32>;
    fn deref(&self) -> &Self::Target {
        &self.workspace
    }
}

impl DerefMut for WorkspaceGuard<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.workspace
    }
}

impl Drop for WorkspaceGuard<'_> {
    fn drop(&mut self) {
        if let Ok(mut spare) = self.pool.0.lock() {
            spare.push(std::mem::take(&mut self.workspace));
        }
    }
}

/// How many entries of the spectrogram a tile has; the last one may have fewer.
pub(crate) fn entries_per_tile(tiles: &[Tile]) -> usize {
    tiles.first().map_or(1, |tile| tile.power.len())
}

/// Sums of two statistics over the tiles, in their order.
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

/// A multiplicative update of `factor` by `(numerator / denominator)^update_exponent`.
pub(crate) fn multiply(factor: &mut [f32], numerator: &[f32], denominator: &[f32], update_exponent: f32) {
    vector::dispatch(
        #[inline(always)]
        || {
            for ((value, numerator), denominator) in factor.iter_mut().zip(numerator).zip(denominator) {
                let step = vector::powf(numerator / denominator.max(MIN_TERM), update_exponent);
                *value = (*value * step).clamp(ENTRIES.0, ENTRIES.1);
            }
        },
    );
}
