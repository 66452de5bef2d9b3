//! Metropolis-within-Gibbs sweeps over impulse variables, activations and noise spectra.
//!
//! HAMCMC interleaves `M` chains, each step conditioning its metric on the others. A Gibbs sweep therefore
//! moves one of `M` complete states: the activations, spectra and impulse variables of one chain.

use super::factor_target::{ActivationTarget, NoiseTarget, transpose};
use super::separation::Separation;
use super::settings::{ImpulseMode, Positivity, Settings};
use crate::model::{ImpulseStep, Impulses};
use crate::random::{Stream, Streams};
use crate::samplers::{
    GradientSettings, Hamcmc, HamcmcSettings, InitialScale, LogMapped, Mirrored, Options, Sampler,
    SamplerError, SamplerKind, StepSize, Target,
};
use rayon::prelude::*;

/// The samplers of all factors, and their states.
pub(super) struct Gibbs {
    tiles: Vec<TileChain>,
    noise: FactorChain,
    positivity: Positivity,
    sampled_impulses: bool,
    divergences: usize,
}

/// A sampler and its last draw, in its own coordinates.
struct FactorChain {
    sampler: Box<dyn Sampler<f32>>,
    theta: Vec<f32>,
}

struct TileChain {
    activations: FactorChain,
    impulses: ImpulseStep,
    stream: Stream,
}

impl Gibbs {
    /// Builds samplers that start from the present factors.
    pub(super) fn new(
        separation: &mut Separation,
        settings: &Settings,
        streams: Streams,
    ) -> Result<Self, SamplerError> {
        let Separation { mixture, tiles, .. } = separation;
        let (bins, rank) = (mixture.bins, mixture.rank());
        let chain = |dimension, blocks, terms: usize, start: &[f32], streams| -> Result<_, SamplerError> {
            let sampler =
                build(settings, dimension, blocks, terms, typical(settings.positivity, start), streams)?;
            let mut theta = start.to_vec();
            to_coordinates(settings.positivity, &mut theta);
            Ok(FactorChain { sampler, theta })
        };
        let mut spectra = mixture.noise.spectra.clone();
        transpose(&mixture.noise.spectra, bins, &mut spectra);
        let noise = chain(mixture.noise_rank(), bins, tiles.len(), &spectra, streams.child(0))?;
        let sampled_impulses = settings.impulses == ImpulseMode::Sampled;
        let chains = noise.sampler.chains();
        let tiles = tiles
            .iter_mut()
            .enumerate()
            .map(|(index, tile)| {
                let streams = streams.child(1 + index as u64);
                let frames = tile.power.len() / bins;
                let activations = chain(rank, frames, bins, &tile.activations, streams.child(0))?;
                let mut impulses =
                    ImpulseStep::new(mixture.speech.alpha, mixture.noise.alpha).map_err(|error| {
                        SamplerError::Setting { name: "alpha", value: error.value, expected: "0 to 2" }
                    })?;
                let mut stream = streams.stream(1);
                if sampled_impulses {
                    tile.impulses =
                        (0..chains).map(|_| impulses.draw(tile.power.len(), &mut stream)).collect();
                } else {
                    let table = tile.impulses[0].clone();
                    tile.impulses = vec![table; chains];
                }
                Ok(TileChain { activations, impulses, stream })
            })
            .collect::<Result<Vec<TileChain>, SamplerError>>()?;
        if let (Some(own), Some(tile)) = (tiles.first(), separation.tiles.first()) {
            let (mixture, pool, prior) = (&separation.mixture, &separation.pool, separation.speech_prior);
            let (impulses, power, drift) = (&tile.impulses[0], &tile.power, &tile.drift);
            let workspace = &mut pool.take(bins);
            let target = ActivationTarget { mixture, impulses, power, drift, prior, workspace };
            own.activations.sampler.check(&mut LogMapped::new(target))?;
        }
        Ok(Self { tiles, noise, positivity: settings.positivity, sampled_impulses, divergences: 0 })
    }

    /// One sweep over all variables of the chain whose turn it is, and its number.
    pub(super) fn sweep(&mut self, separation: &mut Separation) -> usize {
        let chain = self.noise.sampler.next_chain();
        let (bins, rank, positivity) =
            (separation.mixture.bins, separation.mixture.noise_rank(), self.positivity);
        let mut spectra = self.noise.sampler.next_start(&self.noise.theta).to_vec();
        from_coordinates(positivity, &mut spectra);
        transpose(&spectra, rank, &mut separation.mixture.noise.spectra);

        let Separation { mixture, tiles, pool, speech_prior, .. } = separation;
        let (shared, prior) = (&*mixture, *speech_prior);
        let sampled_impulses = self.sampled_impulses;
        let diverged: Vec<usize> = self
            .tiles
            .par_iter_mut()
            .zip(tiles.par_iter_mut())
            .map_init(
                || pool.take(bins),
                |workspace, (own, tile)| {
                    let FactorChain { sampler, theta } = &mut own.activations;
                    if sampled_impulses {
                        tile.activations.copy_from_slice(sampler.next_start(theta));
                        from_coordinates(positivity, &mut tile.activations);
                        workspace.disperse(shared, &tile.activations);
                        workspace.modulate_noise(&tile.drift);
                        let (impulses, lambda) = (&mut tile.impulses[chain], workspace.dispersions());
                        own.impulses.step(impulses, shared, lambda, &tile.power, &mut own.stream);
                    }
                    let impulses: &Impulses<f32> = &tile.impulses[chain];
                    let (power, drift) = (&tile.power, &tile.drift);
                    let target =
                        ActivationTarget { mixture: shared, impulses, power, drift, prior, workspace };
                    let divergences = step(sampler.as_mut(), positivity, target, theta);
                    tile.activations.copy_from_slice(theta);
                    from_coordinates(positivity, &mut tile.activations);
                    divergences
                },
            )
            .collect();
        let FactorChain { sampler, theta } = &mut self.noise;
        let target = NoiseTarget { mixture, tiles, chain, pool };
        self.divergences +=
            diverged.iter().sum::<usize>() + step(sampler.as_mut(), positivity, target, theta);
        spectra.copy_from_slice(theta);
        from_coordinates(positivity, &mut spectra);
        transpose(&spectra, rank, &mut mixture.noise.spectra);
        chain
    }

    /// Moves of a block that were rejected because they were not finite, over all sweeps.
    pub(super) fn divergences(&self) -> usize {
        self.divergences
    }
}

/// One step in the sampler's coordinates; returns the number of divergences.
fn step(
    sampler: &mut dyn Sampler<f32>,
    positivity: Positivity,
    target: impl Target<f32>,
    theta: &mut [f32],
) -> usize {
    match positivity {
        Positivity::Log => sampler.step(&mut LogMapped::new(target), theta).divergences,
        Positivity::Mirrored => sampler.step(&mut Mirrored::new(target), theta).divergences,
    }
}

fn to_coordinates(positivity: Positivity, factor: &mut [f32]) {
    if positivity == Positivity::Log {
        factor.iter_mut().for_each(|x| *x = libm::logf(*x));
    }
}

fn from_coordinates(positivity: Positivity, theta: &mut [f32]) {
    match positivity {
        Positivity::Log => theta.iter_mut().for_each(|x| *x = libm::expf(x.clamp(-20.0, 20.0))),
        Positivity::Mirrored => Mirrored::<(), f32>::fold(theta),
    }
}

/// The scale on which a factor varies in the sampler's coordinates: one for logarithms, else its mean.
fn typical(positivity: Positivity, factor: &[f32]) -> f64 {
    match positivity {
        Positivity::Log => 1.0,
        Positivity::Mirrored => {
            let sum: f64 = factor.iter().map(|&x| f64::from(x)).sum();
            (sum / factor.len() as f64).max(1e-6)
        }
    }
}

/// The sampler, with the user's options or what measured best in the denoiser.
fn build(
    settings: &Settings,
    dimension: usize,
    blocks: usize,
    terms: usize,
    typical: f64,
    streams: Streams,
) -> Result<Box<dyn Sampler<f32>>, SamplerError> {
    let step_size = settings.step_size.unwrap_or(match (settings.sampler, settings.positivity) {
        (SamplerKind::Hamcmc, _) => 0.05,
        // Its preconditioner divides by gradients that are large at the mode.
        (SamplerKind::Psgld, Positivity::Log) => 5e-4,
        (_, Positivity::Log) => 0.005,
        (_, Positivity::Mirrored) => 0.005 * typical * typical,
    });
    let step_size = StepSize::Constant(step_size);
    let minibatch = (settings.minibatch < 1.0).then(|| (settings.minibatch * terms as f64).ceil() as usize);
    // No drift moves a factor by more than itself.
    let drift_limit = typical;
    if settings.sampler == SamplerKind::Hamcmc {
        let gradient = GradientSettings { step_size, minibatch, drift_limit, ..GradientSettings::default() };
        // The curvature of an activation spans orders of magnitude from frame to frame.
        let initial_scale = InitialScale::Pairs(typical * typical);
        let trust_region = 1.0 / (typical * typical);
        let settings = HamcmcSettings { gradient, memory: 5, initial_scale, trust_region };
        return Ok(Box::new(Hamcmc::new(dimension, blocks, settings, streams)?));
    }
    let options = Options {
        step_size: Some(step_size),
        minibatch,
        drift_limit: Some(drift_limit),
        ..Options::default()
    };
    settings.sampler.build(dimension, blocks, &options, streams)
}
