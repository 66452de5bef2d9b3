//! Metropolis-within-Gibbs sweeps over impulse variables, activations and noise spectra.
//!
//! HAMCMC interleaves `M` chains, each step conditioning its metric on the others. A Gibbs sweep therefore
//! moves one of `M` complete states: the activations, spectra and impulse variables of one chain.

#[cfg(test)]
mod calibration;

use super::counters::SamplerCounters;
use super::factor_target::{ActivationTarget, NoiseTarget, transpose};
use super::published::{Coordinates, SampledImpulses, minibatch, other_sampler, step_size};
use super::settings::{DRIFT_LIMIT, HamcmcMemory, ImpulseMode, SamplingSettings};
use super::state::Separation;
use crate::model::{ImpulseVariables, MarginalTable};
use crate::parallel::*;
use crate::random::SeedTree;
use crate::samplers::{
    GradientSettings, Hamcmc, HamcmcSettings, InitialScale, LogMapped, Sampler, SamplerError, SamplerKind,
    Target,
};

/// Default step size of HAMCMC, tuned in the denoiser (eval/results).
const STEP_SIZE: f64 = 0.05;
/// Range of a factor's logarithm: about that of [`ENTRIES`](super::state::ENTRIES).
const LOGARITHMS: (f32, f32) = (-20.0, 20.0);

/// The samplers of all factors, and their states.
pub(crate) struct Gibbs {
    tiles: Vec<TileChain>,
    noise: FactorChain,
    divergences: usize,
}

/// A sampler and its last draw, in its own coordinates.
struct FactorChain {
    sampler: Box<dyn Sampler<f32>>,
    theta: Vec<f32>,
    /// `None` for logarithms.
    coordinates: Option<Coordinates>,
    moves: SamplerCounters,
}

struct TileChain {
    activations: FactorChain,
    /// `None` if impulse variables are integrated out.
    sampled: Option<SampledImpulses>,
}

impl Gibbs {
    /// Builds samplers that start from the present factors of `separation`.
    pub(crate) fn new(
        separation: &Separation,
        settings: &SamplingSettings,
        seeds: SeedTree,
    ) -> Result<Self, SamplerError> {
        let Separation { mixture, tiles, .. } = separation;
        let (bins, rank, split) = (mixture.bins, mixture.rank(), mixture.speech_rank());
        let frames = tiles.iter().map(|tile| tile.power.len()).sum::<usize>() / bins;
        let chain = |split, dimension, terms, start: &[f32], seeds| -> Result<_, SamplerError> {
            let sampler = build(settings, dimension, start.len() / dimension, terms, seeds)?;
            let coordinates = Coordinates::new(settings, start, dimension, split);
            Ok(FactorChain::new(sampler, start, coordinates))
        };
        let mut spectra = mixture.noise.spectra.clone();
        transpose(&mixture.noise.spectra, bins, &mut spectra);
        let noise = chain(0, mixture.noise_rank(), frames, &spectra, seeds.child(0))?;
        let chains = noise.sampler.chains();
        let tiles = tiles.iter().zip(1..).map(|(tile, index)| {
            let seeds = seeds.child(index);
            let activations = chain(split, rank, bins, &tile.activations, seeds.child(0))?;
            let sampled = match settings.impulses {
                ImpulseMode::Integrated => None,
                ImpulseMode::Sampled => {
                    Some(SampledImpulses::draw(mixture, tile.power.len(), chains, seeds.rng(1))?)
                }
            };
            Ok(TileChain { activations, sampled })
        });
        let tiles = tiles.collect::<Result<_, SamplerError>>()?;
        Ok(Self { tiles, noise, divergences: 0 })
    }

    /// Runs one sweep over all variables of the next chain.
    ///
    /// Sampled impulse variables move in the bins of the minibatch of the activations.
    pub(crate) fn sweep(&mut self, separation: &mut Separation) {
        let chain = self.noise.sampler.next_chain();
        let rank = separation.mixture.noise_rank();
        let mut spectra = self.noise.sampler.next_start(&self.noise.theta).to_vec();
        self.noise.unmap(&mut spectra);
        transpose(&spectra, rank, &mut separation.mixture.noise.spectra);

        let Separation { mixture, tiles, pool, speech_prior, noise_prior, table, .. } = separation;
        let (shared, prior, priors) = (&*mixture, *noise_prior, [*speech_prior, *noise_prior]);
        let diverged: Vec<usize> = self
            .tiles
            .par_iter_mut()
            .zip(tiles.par_iter_mut())
            .with_max_len(1)
            .map_init(
                || pool.take(),
                |workspace, (own, tile)| {
                    let sampled = own.sampled.as_mut().map(|sampled| sampled.turn(chain));
                    let (power, field) = (&tile.power, &tile.field);
                    let target =
                        ActivationTarget { mixture: shared, table, sampled, power, field, priors, workspace };
                    own.activations.step(target, &mut tile.activations)
                },
            )
            .collect();
        let impulses = self.tiles.iter().map(|own| own.impulses(table, chain)).collect();
        let target = NoiseTarget { mixture, tiles, impulses, prior, pool };
        self.divergences += diverged.iter().sum::<usize>() + self.noise.step(target, &mut spectra);
        transpose(&spectra, rank, &mut mixture.noise.spectra);
    }

    /// Turns the samplers' adaptation on or off, and resets the counters: trial steps may diverge.
    pub(crate) fn adapt(&mut self, on: bool) {
        self.divergences = 0;
        self.noise.adapt(on);
        for tile in &mut self.tiles {
            tile.activations.adapt(on);
            tile.take_counts();
        }
    }

    /// Counters since the last call of [`adapt`](Self::adapt).
    pub(crate) fn finish(mut self) -> SamplerCounters {
        let mut moves = self.noise.moves;
        for tile in &mut self.tiles {
            moves.add(&tile.activations.moves);
            moves.count_impulses(tile.take_counts());
        }
        moves
    }

    /// Number of moves rejected because they were not finite, since the last call of [`adapt`](Self::adapt).
    pub(crate) fn divergences(&self) -> usize {
        self.divergences
    }
}

impl TileChain {
    fn impulses<'a>(&'a self, table: &'a MarginalTable, chain: usize) -> ImpulseVariables<'a, f32> {
        self.sampled.as_ref().map_or(ImpulseVariables::Integrated(table), |sampled| sampled.of(chain))
    }

    /// Accepted and total proposals for impulse variables since the last call.
    fn take_counts(&mut self) -> [u64; 2] {
        self.sampled.as_mut().map_or([0; 2], SampledImpulses::take_counts)
    }
}

impl FactorChain {
    fn new(sampler: Box<dyn Sampler<f32>>, start: &[f32], coordinates: Option<Coordinates>) -> Self {
        let mut theta = start.to_vec();
        match &coordinates {
            None => theta.iter_mut().for_each(|x| *x = libm::logf(*x)),
            Some(coordinates) => coordinates.map(&mut theta),
        }
        Self { sampler, theta, coordinates, moves: SamplerCounters::default() }
    }

    /// Runs one step, writes the draw into `factor` and returns the number of divergences.
    fn step(&mut self, target: impl Target<f32>, factor: &mut [f32]) -> usize {
        let Self { sampler, theta, coordinates, moves, .. } = self;
        let columns = target.blocks();
        let step = match coordinates {
            None => sampler.step(&mut LogMapped::new(target), theta),
            Some(coordinates) => coordinates.step(&mut **sampler, target, theta, moves),
        };
        moves.count_clipped(theta.len(), step.clipped);
        moves.count_step(&step, columns, step.pairs);
        factor.copy_from_slice(theta);
        self.unmap(factor);
        step.divergences
    }

    /// Maps a state of the sampler to the factor.
    fn unmap(&self, theta: &mut [f32]) {
        match &self.coordinates {
            None => theta.iter_mut().for_each(|x| *x = libm::expf(x.clamp(LOGARITHMS.0, LOGARITHMS.1))),
            Some(coordinates) => coordinates.unmap(theta),
        }
    }

    fn adapt(&mut self, on: bool) {
        self.moves = SamplerCounters::default();
        self.sampler.adapt(on);
    }
}

/// The sampler of a factor (dimension x blocks), each block of which has `terms` data terms.
fn build(
    settings: &SamplingSettings,
    dimension: usize,
    blocks: usize,
    terms: usize,
    seeds: SeedTree,
) -> Result<Box<dyn Sampler<f32>>, SamplerError> {
    if settings.sampler != SamplerKind::Hamcmc {
        return other_sampler(settings, dimension, blocks, terms, seeds);
    }
    let gradient = GradientSettings {
        step_size: step_size(settings, STEP_SIZE),
        minibatch: minibatch(settings, terms),
        drift_limit: DRIFT_LIMIT,
        ..GradientSettings::default()
    };
    // The curvature of an activation spans orders of magnitude from frame to frame.
    let HamcmcMemory { size, refresh_interval } = settings.hamcmc;
    let initial_scale = InitialScale::Pairs(1.0);
    let settings =
        HamcmcSettings { gradient, memory: size, initial_scale, refresh_interval, trust_region: 1.0 };
    // Pairs of moves, unlike samplers built by name, which use pairs of states. Impulse variables change between steps,
    // but both gradients of a move share them.
    Ok(Box::new(Hamcmc::new(dimension, blocks, settings, seeds)?))
}
