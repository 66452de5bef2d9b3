//! One block of a recording: from powers to gains, through inference, speech presence and the Wiener filter.

mod doubt;
mod filter;
mod presence;
mod sweeps;
#[cfg(test)]
mod tests;

use super::DenoiseError;
use super::settings::Settings;
use crate::inference::bands::{occupied_bins, rows};
use crate::inference::high_band::HighBandState;
use crate::inference::initial_noise_power;
use crate::inference::online::OnlineSeparation;
use crate::inference::state::{BandState, Separation, Start};
use crate::model::{Dictionary, MarginalTable, NoiseModel};
use crate::presence::{CausalNetwork, HighBandPresenceNet, PoolNet, PresenceNet, PresenceNetError};
use crate::random::SeedTree;
use crate::signal::progress::{self, ProgressCallback};
use crate::transform::FrameGrid;
use crate::wiener::GainSettings;
use crate::wiener::floor::{BinLevels, Floors};
use crate::wiener::reverberation::Decays;
use filter::Filter;
use presence::SpeechPresence;
use std::num::NonZeroUsize;
use std::sync::Arc;
pub(crate) use sweeps::ChainResult;

/// Minimum power variation, as a factor (10 dB), of soft passages that the small network estimates twice. Most passages
/// that vary less hold noise alone, so the second estimate is omitted to save time.
const SMALL_NETWORK_VARIATION: f64 = 10.0;

/// Optional inputs of a block, and its optional results beside the gain.
#[derive(Default, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// State of the previous block.
    pub previous: Option<&'a BlockState>,
    /// Mean power of the noise per bin.
    pub noise_profile: Option<&'a [f32]>,
    /// Whether to return the standard deviation of the gain over the draws.
    pub gain_std: bool,
    /// Whether to return the posterior-mean gain before fusion with speech presence.
    pub model_gain: bool,
    /// Whether to omit the speech-presence network.
    pub model_alone: bool,
    /// Whether the block is the only one of the recording with sound.
    pub is_whole: bool,
    /// Whether the recording is too short for a pause.
    pub is_short: bool,
}

/// Intermediate results: every `every` Gibbs sweeps, `show` receives the number of sweeps and the result so far.
pub(crate) struct Snapshots<'a, T> {
    pub every: NonZeroUsize,
    pub show: &'a mut dyn FnMut(usize, T),
}

/// The outcome of one block.
pub(crate) struct BlockResult {
    /// Gain after fusion and smoothing, before the floor; bins x frames.
    pub gain: Vec<f32>,
    /// Minimum gain per bin, as a factor of amplitude.
    pub floor: Vec<f32>,
    /// Standard deviation of the gain over the draws, bins x frames; empty without draws or if not requested.
    pub gain_std: Vec<f32>,
    /// Posterior-mean gain before fusion with speech presence, bins x frames; empty if not requested.
    pub model_gain: Vec<f32>,
    pub chain: ChainResult,
    pub state: BlockState,
    /// Whether the speech-presence network is certain of speech.
    speech_found: bool,
}

/// State carried over to the next block.
pub(crate) struct BlockState {
    /// Number of bins up to the highest that is not empty.
    occupied: usize,
    band: BandState,
    high_band: Option<HighBandState>,
    levels: BinLevels,
    floors: Floors,
    pub decays: Decays,
}

impl BlockState {
    /// Scales the state as if all powers were multiplied by `factor`.
    pub(crate) fn scale_power(&mut self, factor: f32, alpha_noise: f64) {
        self.band.scale_power(factor, alpha_noise);
        if let Some(high_band) = &mut self.high_band {
            high_band.scale_power(factor, alpha_noise);
        }
        self.floors.scale_power(factor);
    }
}

/// The model and the settings by which blocks are separated.
#[derive(Debug, Clone)]
pub(crate) struct Separator {
    pub dictionary: Dictionary,
    pub settings: Settings,
    /// Expectations given the dispersions of a bin, for the exponents in use.
    table: Arc<MarginalTable>,
    /// The networks of speech presence, if they are used.
    pub networks: Option<Networks>,
}

/// The networks of speech presence.
#[derive(Debug, Clone)]
pub(crate) struct Networks {
    pub presence: PresenceNet,
    pub high_band: HighBandPresenceNet,
    /// Causal network, shared by live denoisers.
    pub causal: Arc<CausalNetwork>,
    /// Network of the pool, if the settings enable it.
    pub pool: Option<PoolNet>,
}

impl Networks {
    /// The networks embedded in this crate, which were trained with drifting noise and one window. `None` if the
    /// settings disable them, or if the noise model or the window differs.
    fn built_in(dictionary: &Dictionary, settings: &Settings) -> Result<Option<Self>, PresenceNetError> {
        let drifting = matches!(settings.model.noise, NoiseModel::Drifting(_));
        if !(settings.gain.speech_presence && drifting) {
            return Ok(None);
        }
        let built_in =
            if settings.gain.small_network { PresenceNet::built_in_small } else { PresenceNet::built_in };
        let presence = built_in()?;
        if dictionary.header().window_seconds != presence.header().window_seconds {
            return Ok(None);
        }
        let pool = settings.gain.learned_pool.then(PoolNet::built_in).transpose()?;
        Ok(Some(Self {
            presence,
            high_band: HighBandPresenceNet::built_in()?,
            causal: Arc::new(CausalNetwork::built_in()?),
            pool,
        }))
    }
}

impl Separator {
    /// A separator with the built-in networks that fit the dictionary and the settings.
    pub(crate) fn new(dictionary: Dictionary, settings: Settings) -> Result<Self, PresenceNetError> {
        let networks = Networks::built_in(&dictionary, &settings)?;
        let alpha = settings.model.alpha_speech.unwrap_or(dictionary.header().alpha);
        let table = Arc::new(MarginalTable::new(alpha, settings.model.alpha_noise));
        Ok(Self { dictionary, settings, table, networks })
    }

    /// This separator with other settings of the gain.
    pub(crate) fn with_gain(self: &Arc<Self>, gain: GainSettings) -> Arc<Self> {
        if gain == self.settings.gain {
            return Arc::clone(self);
        }
        let settings = Settings { gain, ..self.settings.clone() };
        Arc::new(Self { settings, ..Self::clone(self) })
    }

    /// Causal separation of frames of `bins` bins, `frame_seconds` apart.
    pub(crate) fn online(&self, bins: usize, frame_seconds: f64) -> OnlineSeparation {
        let alphas = (self.alpha_speech(), self.settings.model.alpha_noise);
        OnlineSeparation::new(&self.dictionary, &self.table, alphas, bins, frame_seconds)
    }

    /// Separates one block of powers (bins x frames). If the small network finds no speech in a short recording, the
    /// larger network separates the block again. If the only block with sound still has no speech, the model alone
    /// separates it too, and a part of its gain may be kept. `progress` receives the completed fraction of the first
    /// separation, 0 to 1, and 1 during the others.
    pub(crate) fn separate(
        &self,
        grid: FrameGrid,
        power: &[f32],
        request: Request,
        seeds: SeedTree,
        progress: &mut dyn ProgressCallback,
        snapshots: Option<Snapshots<Vec<f32>>>,
    ) -> Result<BlockResult, DenoiseError> {
        let mut result = self.separate_once(grid, power, request, seeds, progress, snapshots)?;
        let is_without_speech =
            |result: &BlockResult| !result.speech_found && doubt::is_without_speech(&result.gain, power);
        let Some(networks) = self.networks.as_ref().filter(|_| is_without_speech(&result)) else {
            return Ok(result);
        };
        let progress = &mut |_: f64| progress.report(1.0);
        if request.is_short && self.settings.gain.small_network {
            // The small network classifies an isolated voice of 0.1 s as noise. So short a recording needs no fast
            // network.
            let larger = self.with_larger_network(networks)?;
            result = larger.separate_once(grid, power, request, seeds, progress, None)?;
        }
        if request.is_whole && is_without_speech(&result) {
            let request = Request { model_alone: true, gain_std: false, model_gain: false, ..request };
            let alone = self.separate_once(grid, power, request, seeds, progress, None)?;
            doubt::raise_to_model_gain(&mut result.gain, &alone.gain, power);
        }
        Ok(result)
    }

    /// This separator with the larger network in place of the small one.
    fn with_larger_network(&self, networks: &Networks) -> Result<Self, PresenceNetError> {
        let networks = Networks { presence: PresenceNet::built_in()?, ..networks.clone() };
        let gain = GainSettings { small_network: false, ..self.settings.gain.clone() };
        let settings = Settings { gain, ..self.settings.clone() };
        Ok(Self { networks: Some(networks), settings, ..self.clone() })
    }

    /// Separates one block: expectation maximisation, sampling, Wiener filter.
    fn separate_once(
        &self,
        grid: FrameGrid,
        power: &[f32],
        request: Request,
        seeds: SeedTree,
        progress: &mut dyn ProgressCallback,
        snapshots: Option<Snapshots<Vec<f32>>>,
    ) -> Result<BlockResult, DenoiseError> {
        let Settings { sampling, .. } = &self.settings;
        let bands = self.bands(grid, power, request.previous);
        let speech_spectra = self.dictionary.rows(bands.low);
        let block = self.block(grid, bands, power, &request, &speech_spectra, seeds);
        let mut separation = Separation::new(&block.start, &block.power_low, &self.table, seeds.child(0));
        if let Some(presence) = block.presence.as_ref().filter(|_| self.settings.model.nonstationary_noise) {
            let noise = initial_noise_power(bands.low, &block.power_low, &presence.low);
            separation.init_noise_field(&noise);
        }
        let em_sweeps = block.em_sweeps();
        let sweeps = em_sweeps + sampling.as_ref().map_or(0, |sampling| sampling.iterations);
        let mut advance = |done: usize| progress::report(progress, done as f64 / sweeps as f64);
        block.em_iterations(&mut separation, &mut advance)?;
        let mut chain = ChainResult::default();
        if let Some(sampling) = sampling {
            let mut advance = |done: usize| advance(em_sweeps + done);
            chain = block.sample(sampling, &mut separation, &mut advance, snapshots)?;
        }
        let Filter { gain, model_gain, floors, high_band, levels, decays, speech_found } =
            block.filter(&separation);
        Ok(BlockResult {
            gain,
            model_gain,
            floor: floors.amplitudes(),
            gain_std: block.gain_std(&separation),
            chain,
            state: BlockState {
                occupied: bands.occupied,
                band: separation.into_state(),
                high_band,
                levels,
                floors,
                decays,
            },
            speech_found,
        })
    }

    /// Divides the bins of a block into bands.
    fn bands(&self, grid: FrameGrid, power: &[f32], previous: Option<&BlockState>) -> Bands {
        let before = previous.map_or(0, |previous| previous.occupied);
        let occupied = occupied_bins(power, grid.bins, grid.bin_hertz).max(before);
        Bands { low: occupied.min(self.dictionary.header().bins()), occupied }
    }

    /// The inputs of a block, with the spectra of speech in the dictionary's band (bins x rank).
    fn block<'a>(
        &'a self,
        grid: FrameGrid,
        bands: Bands,
        power: &'a [f32],
        request: &Request<'a>,
        speech_spectra: &'a [f32],
        seeds: SeedTree,
    ) -> Block<'a> {
        let Bands { low, occupied } = bands;
        let Settings { model, sampling, .. } = &self.settings;
        let &Request { previous, noise_profile, gain_std, model_gain, model_alone, .. } = request;
        // Factors of a narrower band do not cover the new bins.
        let factors = previous.filter(|previous| previous.occupied == occupied);
        let variation = if self.settings.gain.small_network { SMALL_NETWORK_VARIATION } else { 1.0 };
        let power_low = rows(power, grid.bins, 0..low);
        let power_high = rows(power, grid.bins, low..occupied);
        Block {
            separator: self,
            presence: self
                .networks
                .as_ref()
                .filter(|_| !model_alone)
                .map(|networks| SpeechPresence::new(networks, variation, low, &power_low, &power_high)),
            grid,
            bands,
            power,
            power_low,
            power_high,
            noise_high: noise_profile.map(|profile| &profile[low..occupied]),
            previous_high_band: factors.and_then(|previous| previous.high_band.as_ref()),
            previous_levels: previous.map(|previous| (&previous.levels, &previous.floors)),
            previous_decays: previous.map(|previous| &previous.decays),
            start: Start {
                bins: low,
                speech_spectra,
                alpha_speech: self.alpha_speech(),
                alpha_noise: model.alpha_noise,
                noise: model.noise,
                frame_seconds: grid.frame_seconds,
                bin_hertz: grid.bin_hertz,
                speech_prior: model.speech_prior,
                noise_prior: model.noise_prior,
                previous: factors.map(|previous| &previous.band),
                noise_profile: noise_profile.map(|profile| &profile[..low]),
                gain_std: gain_std && sampling.is_some(),
            },
            model_gain,
            seeds,
        }
    }

    /// Characteristic exponent of speech: that of the settings, or else the dictionary's.
    fn alpha_speech(&self) -> f64 {
        self.settings.model.alpha_speech.unwrap_or(self.dictionary.header().alpha)
    }
}

/// Numbers of bins of a block: `occupied` up to the highest that is not empty, `low` of them in the dictionary's band.
#[derive(Clone, Copy)]
struct Bands {
    low: usize,
    occupied: usize,
}

/// The inputs of a block.
struct Block<'a> {
    separator: &'a Separator,
    grid: FrameGrid,
    bands: Bands,
    /// Powers of all bins, of those in the dictionary's band, and of the occupied ones above it; bins x frames each.
    power: &'a [f32],
    power_low: Vec<f32>,
    power_high: Vec<f32>,
    /// Log odds of speech, if there is a speech-presence network.
    presence: Option<SpeechPresence>,
    /// Mean power of the noise per bin above the dictionary's band, if given.
    noise_high: Option<&'a [f32]>,
    previous_high_band: Option<&'a HighBandState>,
    previous_levels: Option<(&'a BinLevels, &'a Floors)>,
    previous_decays: Option<&'a Decays>,
    /// Inputs of the dictionary's band.
    start: Start<'a>,
    /// Whether to return the gain before fusion.
    model_gain: bool,
    seeds: SeedTree,
}

impl Block<'_> {
    /// The standard deviation of the gain over the draws, bins x frames; empty if not requested.
    fn gain_std(&self, separation: &Separation) -> Vec<f32> {
        if self.start.gain_std { self.join_bands(&separation.gain_std(), None) } else { Vec::new() }
    }
}
