//! Metropolis-within-Gibbs sweeps over impulse variables, activations and noise spectra.
//!
//! HAMCMC interleaves `M` chains, each step conditioning its metric on the others. A Gibbs sweep therefore
//! moves one of `M` complete states: the activations, spectra and impulse variables of one chain.

#[cfg(test)]
mod calibration;

use super::counters::SamplerCounters;
use super::factor_target::{ActivationTarget, NoiseTarget, transpose};
use super::published::{
    Coordinates, Joined, SampledImpulses, drift_limit, minibatch, other_sampler, step_size,
};
use super::settings::{HamcmcMemory, ImpulseMode, LiteralHamcmc, SamplingSettings};
use super::state::Separation;
use crate::model::{ImpulseVariables, MarginalTable};
use crate::parallel::*;
use crate::random::SeedTree;
use crate::samplers::{
    GradientSettings, Hamcmc, HamcmcSettings, InitialScale, LogMapped, Sampler, SamplerError, SamplerKind,
    Target,
};
use std::sync::Arc;

/// The step size of HAMCMC that measured best in the denoiser.
const STEP_SIZE: f64 = 0.05;
/// No drift moves a factor by more than itself.
pub(crate) const DRIFT_LIMIT: f64 = 1.0;
/// The range of a factor's logarithm: about that of the entries of a state.
const LOGARITHMS: (f32, f32) = (-20.0, 20.0);

/// The samplers of all factors, and their states.
pub(crate) struct Gibbs {
    tiles: Vec<TileChain>,
    noise: FactorChain,
    divergences: usize,
    /// The chain that was moved last, where the gain is that at its impulse variables.
    shown: Option<usize>,
    /// Whether minibatches are of single entries.
    single_entries: bool,
}

/// A sampler and its last draw, in its own coordinates.
struct FactorChain {
    sampler: Box<dyn Sampler<f32>>,
    theta: Vec<f32>,
    /// If not logarithms.
    coordinates: Option<Coordinates>,
    /// Whether all blocks are one to the sampler.
    joined: bool,
    moves: SamplerCounters,
}

struct TileChain {
    activations: FactorChain,
    /// If impulse variables are not integrated out.
    sampled: Option<SampledImpulses>,
}

impl Gibbs {
    /// Builds samplers that start from the present factors.
    pub(crate) fn new(
        separation: &Separation,
        settings: &SamplingSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        let Separation { mixture, tiles, .. } = separation;
        let (bins, rank, split) = (mixture.bins, mixture.rank(), mixture.speech_rank());
        let entries: usize = tiles.iter().map(|tile| tile.power.len()).sum();
        let single_entries = settings.literal.single_entries;
        let chain = |split, dimension, terms, start: &[f32], streams| -> Result<_, SamplerError> {
            let blocks = start.len() / dimension;
            let joined = settings.literal.hamcmc.one_memory;
            let (unknowns, parts) = if joined { (start.len(), 1) } else { (dimension, blocks) };
            let sampler = build(settings, unknowns, parts, terms, streams)?;
            let coordinates = Coordinates::new(settings, start, dimension, split);
            Ok(FactorChain::new(sampler, start, coordinates, joined))
        };
        let mut spectra = mixture.noise.spectra.clone();
        transpose(&mixture.noise.spectra, bins, &mut spectra);
        let terms = if single_entries { entries } else { entries / bins };
        let noise = chain(0, mixture.noise_rank(), terms, &spectra, streams.child(0))?;
        let chains = noise.sampler.chains();
        let tiles = tiles.iter().zip(1..).map(|(tile, index)| {
            let streams = streams.child(index);
            let terms = if single_entries { tile.power.len() } else { bins };
            let activations = chain(split, rank, terms, &tile.activations, streams.child(0))?;
            let sampled = match settings.impulses {
                ImpulseMode::Integrated => None,
                ImpulseMode::Sampled => {
                    Some(SampledImpulses::draw(mixture, tile.power.len(), chains, streams.rng(1))?)
                }
            };
            Ok(TileChain { activations, sampled })
        });
        let shown = settings.literal.sampled_gain.then_some(0);
        let tiles = tiles.collect::<Result<_, SamplerError>>()?;
        Ok(Self { tiles, noise, divergences: 0, shown, single_entries })
    }

    /// One sweep over all variables of the chain whose turn it is.
    ///
    /// Impulse variables that are sampled move in the bins that the step of the activations looks at.
    pub(crate) fn sweep(&mut self, separation: &mut Separation) {
        let chain = self.noise.sampler.next_chain();
        self.shown = self.shown.map(|_| chain);
        let rank = separation.mixture.noise_rank();
        let mut spectra = self.noise.sampler.next_start(&self.noise.theta).to_vec();
        self.noise.unmap(&mut spectra);
        transpose(&spectra, rank, &mut separation.mixture.noise.spectra);

        let Separation { mixture, tiles, pool, speech_prior, noise_prior, table, .. } = separation;
        let (shared, prior, priors) = (&*mixture, *noise_prior, [*speech_prior, *noise_prior]);
        let single_entries = self.single_entries;
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
                    let target = ActivationTarget {
                        mixture: shared,
                        table,
                        sampled,
                        power,
                        field,
                        priors,
                        single_entries,
                        workspace,
                    };
                    own.activations.step(target, &mut tile.activations)
                },
            )
            .collect();
        let impulses = self.tiles.iter().map(|own| own.impulses(table, chain)).collect();
        let target = NoiseTarget { mixture, tiles, impulses, prior, single_entries, pool };
        self.divergences += diverged.iter().sum::<usize>() + self.noise.step(target, &mut spectra);
        transpose(&spectra, rank, &mut mixture.noise.spectra);
    }

    /// Adds the gain of the state of the last sweep to the sums.
    pub(crate) fn accumulate(&self, separation: &mut Separation) {
        let Some(chain) = self.shown else { return separation.accumulate() };
        let table = Arc::clone(&separation.table);
        let impulses: Vec<_> = self.tiles.iter().map(|own| own.impulses(&table, chain)).collect();
        separation.accumulate_at(&impulses);
    }

    /// Turns the samplers' adaptation on or off, and counts divergences and moves afresh: steps that were only tried
    /// may well have failed.
    pub(crate) fn adapt(&mut self, on: bool) {
        self.divergences = 0;
        self.noise.adapt(on);
        for tile in &mut self.tiles {
            tile.activations.adapt(on);
            tile.take_counts();
        }
    }

    /// What the samplers did since they were last told whether to adapt.
    pub(crate) fn finish(mut self) -> SamplerCounters {
        let mut moves = self.noise.moves;
        for tile in &mut self.tiles {
            moves.add(&tile.activations.moves);
            moves.count_impulses(tile.take_counts());
        }
        moves
    }

    /// SamplerCounters of a block that were rejected because they were not finite, over all sweeps.
    pub(crate) fn divergences(&self) -> usize {
        self.divergences
    }
}

impl TileChain {
    fn impulses<'a>(&'a self, table: &'a MarginalTable, chain: usize) -> ImpulseVariables<'a, f32> {
        self.sampled.as_ref().map_or(ImpulseVariables::Integrated(table), |sampled| sampled.of(chain))
    }

    /// Proposals for impulse variables that were accepted, of how many, since this was last asked.
    fn take_counts(&mut self) -> [u64; 2] {
        self.sampled.as_mut().map_or([0; 2], SampledImpulses::take_counts)
    }
}

impl FactorChain {
    fn new(
        sampler: Box<dyn Sampler<f32>>,
        start: &[f32],
        coordinates: Option<Coordinates>,
        joined: bool,
    ) -> Self {
        let mut theta = start.to_vec();
        match &coordinates {
            None => theta.iter_mut().for_each(|x| *x = libm::logf(*x)),
            Some(coordinates) => coordinates.map(&mut theta),
        }
        Self { sampler, theta, coordinates, joined, moves: SamplerCounters::default() }
    }

    /// One step; writes the draw into `factor` and returns the number of divergences.
    fn step(&mut self, target: impl Target<f32>, factor: &mut [f32]) -> usize {
        if self.joined {
            return self.step_blocks(Joined::new(target), factor);
        }
        self.step_blocks(target, factor)
    }

    fn step_blocks(&mut self, target: impl Target<f32>, factor: &mut [f32]) -> usize {
        let Self { sampler, theta, coordinates, moves, .. } = self;
        let columns = target.blocks();
        let step = match coordinates {
            None => sampler.step(&mut LogMapped::new(target), theta),
            Some(coordinates) => coordinates.step(&mut **sampler, target, theta, moves),
        };
        moves.count_limited(theta.len(), sampler.limited());
        moves.count_step(&step, columns, sampler.pairs());
        factor.copy_from_slice(theta);
        self.unmap(factor);
        step.divergences
    }

    /// Turns a state of the sampler's into the factor.
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

/// The sampler of a factor (dimension x blocks), each block of which has so many data terms.
fn build(
    settings: &SamplingSettings,
    dimension: usize,
    blocks: usize,
    terms: usize,
    streams: SeedTree,
) -> Result<Box<dyn Sampler<f32>>, SamplerError> {
    if settings.sampler != SamplerKind::Hamcmc {
        return other_sampler(settings, dimension, blocks, terms, streams);
    }
    let gradient = GradientSettings {
        step_size: step_size(settings, STEP_SIZE),
        minibatch: minibatch(settings, terms),
        drift_limit: drift_limit(settings),
        ..GradientSettings::default()
    };
    // The curvature of an activation spans orders of magnitude from frame to frame.
    let LiteralHamcmc { gamma, lambda, shifted_pairs, .. } = settings.literal.hamcmc;
    let initial_scale = gamma.map_or(InitialScale::Pairs(1.0), InitialScale::Fixed);
    let trust_region = lambda.unwrap_or(1.0);
    let HamcmcMemory { memory, renewal } = settings.hamcmc;
    let settings =
        HamcmcSettings { gradient, memory, initial_scale, refresh_interval: renewal, trust_region };
    let sampler = Hamcmc::new(dimension, blocks, settings, streams)?;
    Ok(Box::new(if shifted_pairs { sampler.with_shifted_pairs() } else { sampler }))
}
