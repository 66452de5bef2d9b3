//! Metropolis-within-Gibbs sweeps over impulse variables, activations and noise spectra.
//!
//! HAMCMC interleaves `M` chains, each step conditioning its metric on the others. A Gibbs sweep therefore
//! moves one of `M` complete states: the activations, spectra and impulse variables of one chain.

use super::factor_target::{ActivationTarget, NoiseTarget, transpose};
use super::moves::Moves;
use super::settings::{HamcmcMemory, ImpulseMode, Positivity, SamplingSettings};
use super::state::Separation;
use crate::model::ImpulseStep;
use crate::parallel::*;
use crate::random::{Stream, Streams};
use crate::samplers::{
    GradientSettings, Hamcmc, HamcmcSettings, InitialScale, LogMapped, Mirrored, Options, Sampler,
    SamplerError, SamplerKind, Scaled, StepSize, Target,
};

/// The samplers of all factors, and their states.
pub(super) struct Gibbs {
    tiles: Vec<TileChain>,
    noise: FactorChain,
    sampled_impulses: bool,
    divergences: usize,
}

/// A sampler and its last draw, in its own coordinates.
struct FactorChain {
    sampler: Box<dyn Sampler<f32>>,
    theta: Vec<f32>,
    coordinates: Coordinates,
    moves: Moves,
}

/// What a sampler sees of a factor.
enum Coordinates {
    /// Logarithms.
    Log,
    /// Signed multiples of these units, mirrored at zero.
    Mirrored(Vec<f32>),
    /// The factor as it is, for a sampler that knows the half line.
    Plain,
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
        settings: &SamplingSettings,
        streams: Streams,
    ) -> Result<Self, SamplerError> {
        let Separation { mixture, tiles, .. } = separation;
        let (bins, rank) = (mixture.bins, mixture.rank());
        let frames: usize = tiles.iter().map(|tile| tile.power.len() / bins).sum();
        let chain = |split, dimension, terms, start: &[f32], streams| -> Result<_, SamplerError> {
            let sampler = build(settings, dimension, start.len() / dimension, terms, streams)?;
            let coordinates = match (settings.sampler, settings.positivity) {
                (SamplerKind::Newtonian, _) => Coordinates::Plain,
                (_, Positivity::Log) => Coordinates::Log,
                (_, Positivity::Mirrored) => Coordinates::Mirrored(units(start, dimension, split)),
            };
            let mut theta = start.to_vec();
            coordinates.map(&mut theta);
            Ok(FactorChain { sampler, theta, coordinates, moves: Moves::default() })
        };
        let mut spectra = mixture.noise.spectra.clone();
        transpose(&mixture.noise.spectra, bins, &mut spectra);
        let noise = chain(0, mixture.noise_rank(), frames, &spectra, streams.child(0))?;
        let sampled_impulses = settings.impulses == ImpulseMode::Sampled;
        let chains = noise.sampler.chains();
        let tiles = tiles
            .iter_mut()
            .enumerate()
            .map(|(index, tile)| {
                let streams = streams.child(1 + index as u64);
                let split = mixture.speech_rank();
                let activations = chain(split, rank, bins, &tile.activations, streams.child(0))?;
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
        Ok(Self { tiles, noise, sampled_impulses, divergences: 0 })
    }

    /// One sweep over all variables of the chain whose turn it is.
    ///
    /// The impulse variables move in the bins that the step of the activations looks at.
    pub(super) fn sweep(&mut self, separation: &mut Separation) {
        let chain = self.noise.sampler.next_chain();
        let (bins, rank) = (separation.mixture.bins, separation.mixture.noise_rank());
        let mut spectra = self.noise.sampler.next_start(&self.noise.theta).to_vec();
        self.noise.coordinates.unmap(&mut spectra);
        transpose(&spectra, rank, &mut separation.mixture.noise.spectra);

        let Separation { mixture, tiles, pool, speech_prior, .. } = separation;
        let (shared, prior) = (&*mixture, *speech_prior);
        let sampled_impulses = self.sampled_impulses;
        let diverged: Vec<usize> = self
            .tiles
            .par_iter_mut()
            .zip(tiles.par_iter_mut())
            .with_max_len(1)
            .map_init(
                || pool.take(bins),
                |workspace, (own, tile)| {
                    let (impulses, power, drift) = (&mut tile.impulses[chain], &tile.power, &tile.drift);
                    let redraw = sampled_impulses.then_some((&mut own.impulses, &mut own.stream));
                    let target = ActivationTarget {
                        mixture: shared,
                        impulses,
                        redraw,
                        power,
                        drift,
                        prior,
                        workspace,
                    };
                    own.activations.step(target, &mut tile.activations)
                },
            )
            .collect();
        let target = NoiseTarget { mixture, tiles, chain, pool };
        self.divergences += diverged.iter().sum::<usize>() + self.noise.step(target, &mut spectra);
        transpose(&spectra, rank, &mut mixture.noise.spectra);
    }

    /// Turns the samplers' adaptation on or off, and counts divergences and moves afresh: steps that were only tried
    /// may well have failed.
    pub(super) fn adapt(&mut self, on: bool) {
        self.divergences = 0;
        self.noise.adapt(on);
        for tile in &mut self.tiles {
            tile.activations.adapt(on);
            tile.impulses.take_counts();
        }
    }

    /// What the samplers did since they were last told whether to adapt.
    pub(super) fn finish(mut self) -> Moves {
        let mut moves = self.noise.moves;
        for tile in &mut self.tiles {
            moves.add(&tile.activations.moves);
            moves.count_impulses(tile.impulses.take_counts());
        }
        moves
    }

    /// Moves of a block that were rejected because they were not finite, over all sweeps.
    pub(super) fn divergences(&self) -> usize {
        self.divergences
    }
}

impl FactorChain {
    /// One step; writes the draw into `factor` and returns the number of divergences.
    fn step(&mut self, target: impl Target<f32>, factor: &mut [f32]) -> usize {
        let Self { sampler, theta, coordinates, moves } = self;
        let columns = target.blocks();
        let step = match coordinates {
            Coordinates::Log => sampler.step(&mut LogMapped::new(target), theta),
            Coordinates::Mirrored(units) => {
                let before = sampler.next_start(theta).to_vec();
                let step = sampler.step(&mut Mirrored::new(Scaled::new(target, units)), theta);
                moves.count_mirrored(&before, theta);
                step
            }
            Coordinates::Plain => {
                let mut target = target;
                sampler.step(&mut target, theta)
            }
        };
        moves.count_step(&step, columns, sampler.pairs());
        factor.copy_from_slice(theta);
        coordinates.unmap(factor);
        step.divergences
    }

    fn adapt(&mut self, on: bool) {
        self.moves = Moves::default();
        self.sampler.adapt(on);
    }
}

impl Coordinates {
    fn map(&self, factor: &mut [f32]) {
        match self {
            Self::Log => factor.iter_mut().for_each(|x| *x = libm::logf(*x)),
            Self::Mirrored(units) => factor.iter_mut().zip(units).for_each(|(x, unit)| *x /= unit),
            Self::Plain => (),
        }
    }

    fn unmap(&self, theta: &mut [f32]) {
        match self {
            Self::Log => theta.iter_mut().for_each(|x| *x = libm::expf(x.clamp(-20.0, 20.0))),
            Self::Mirrored(units) => {
                Mirrored::<(), f32>::fold(theta);
                theta.iter_mut().zip(units).for_each(|(x, unit)| *x *= unit);
            }
            Self::Plain => (),
        }
    }
}

/// The units of a factor (dimension x blocks): in every block the mean of the start over the rows below `split`,
/// and over the others. Levels differ by orders of magnitude from frame to frame and from bin to bin.
fn units(start: &[f32], dimension: usize, split: usize) -> Vec<f32> {
    let mut units = start.to_vec();
    for column in units.chunks_exact_mut(dimension) {
        let (speech, noise) = column.split_at_mut(split);
        for rows in [speech, noise] {
            let mean = rows.iter().sum::<f32>() / rows.len() as f32;
            rows.fill(mean.max(1e-9));
        }
    }
    units
}

/// The sampler, with the user's options or what measured best in the denoiser.
fn build(
    settings: &SamplingSettings,
    dimension: usize,
    blocks: usize,
    terms: usize,
    streams: Streams,
) -> Result<Box<dyn Sampler<f32>>, SamplerError> {
    let first = settings.step_size.unwrap_or(match settings.sampler {
        SamplerKind::Hamcmc => 0.05,
        // Its preconditioner divides by gradients that are large at the mode.
        SamplerKind::Psgld => 5e-4,
        SamplerKind::Sgrld | SamplerKind::Sgrhmc => 0.1,
        SamplerKind::Sghmc | SamplerKind::Sgnht => 0.03,
        SamplerKind::Hmc | SamplerKind::HmcBfgs | SamplerKind::Qnhmc => 0.02,
        SamplerKind::MhBfgs => 0.05,
        _ => 0.005,
    });
    let step_size = match settings.step_decay {
        0.0 => StepSize::Constant(first),
        power => StepSize::Decreasing { scale: libm::pow(first, 1.0 / power), power },
    };
    let minibatch = (settings.minibatch < 1.0).then(|| (settings.minibatch * terms as f64).ceil() as usize);
    // No drift moves a factor by more than itself.
    let drift_limit = 1.0;
    if settings.sampler == SamplerKind::Hamcmc {
        let gradient = GradientSettings { step_size, minibatch, drift_limit, ..GradientSettings::default() };
        // The curvature of an activation spans orders of magnitude from frame to frame.
        let initial_scale = InitialScale::Pairs(1.0);
        let HamcmcMemory { memory, renewal } = settings.hamcmc;
        let settings = HamcmcSettings { gradient, memory, initial_scale, renewal, trust_region: 1.0 };
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
