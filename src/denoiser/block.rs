//! One block of a recording: from powers to gains.

use super::settings::Settings;
use crate::inference::bands::{occupied_bins, place_rows, rows};
use crate::inference::high_band::{HighBand, HighBandState};
use crate::inference::online::OnlineSeparation;
use crate::inference::state::{BandState, Separation, Start, UpdateMask};
use crate::inference::{
    GainMonitor, Gibbs, MonteCarloAccumulator, SamplerCounters, SamplingSettings, initial_noise_power,
};
use crate::model::{Dictionary, MarginalTable, NoiseModel};
use crate::presence::{self, HighBandPresenceNet, PresenceNet};
use crate::random::SeedTree;
use crate::samplers::SamplerError;
use crate::signal::progress::{self, Cancelled, ProgressCallback};
use crate::transform::FrameGrid;
use crate::wiener::floor::{BinLevels, Floors};
use crate::wiener::fusion::{self, NONSTATIONARY_WEIGHT, WEIGHT};
use crate::wiener::reverberation::{self, Decays};
use crate::wiener::smoothing::smooth_over_frames;
use std::sync::Arc;

/// The least number of sweeps for the upper band, and their number where a listener hears it: then the model says little there.
const UPPER_SWEEPS: usize = 12;
const HEARD_UPPER_SWEEPS: usize = 5;
/// What is added to the log odds of speech above the dictionary's band. A fricative that is lost is missed more than noise of
/// the same strength disturbs: the log-spectral distance of development mixtures in fricatives falls from 6.1 to 4.9 dB.
const UPPER_LEAN: f32 = 1.0;
/// How many sweeps an observer is shown the mean of before the burn-in is over.
const SHOWN_SWEEPS: usize = 20;

/// What a block starts from, and what is asked for beside its gains.
#[derive(Default)]
pub(crate) struct Request<'a> {
    pub carried: Option<&'a BlockState>,
    /// Mean power of the noise per bin.
    pub noise_profile: Option<&'a [f32]>,
    /// Whether the spread of the gains is asked for.
    pub deviation: bool,
    /// Whether the gain of the model, before it is pooled_gain with the listener, is.
    pub model_gain: bool,
}

/// Shown the number of Gibbs sweeps so far and the gain (bins x frames), every so many sweeps.
pub(crate) struct Observation<'a> {
    pub every: usize,
    pub show: &'a mut dyn FnMut(usize, &[f32]),
}

/// The outcome of one block.
pub(crate) struct BlockResult {
    /// Posterior-mean gain, bins x frames.
    pub gain: Vec<f32>,
    /// The least gain to apply, per bin.
    pub floor: Vec<f32>,
    /// The standard deviation of the gain over the draws, bins x frames; empty if there are none or it was not
    /// asked for.
    pub deviation: Vec<f32>,
    /// The gain before it is pooled_gain with the listener, bins x frames; empty if not asked for.
    pub model_gain: Vec<f32>,
    pub monte_carlo: MonteCarloAccumulator,
    pub divergences: usize,
    pub moves: SamplerCounters,
    pub carried: BlockState,
}

/// What one block hands on to the next.
pub(crate) struct BlockState {
    /// Number of bins up to the highest that is not empty.
    occupied: usize,
    band: BandState,
    upper: Option<HighBandState>,
    levels: BinLevels,
    floors: Floors,
    pub decays: Decays,
}

impl BlockState {
    /// Changes the unit of power.
    pub(crate) fn scale_power(&mut self, factor: f32, alpha_noise: f64) {
        self.band.scale_power(factor, alpha_noise);
        if let Some(upper) = &mut self.upper {
            upper.scale_power(factor, alpha_noise);
        }
        self.floors.scale_power(factor);
    }
}

/// Why a block could not be separated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SeparationError {
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// The model and the settings by which blocks are separated.
#[derive(Debug, Clone)]
pub(crate) struct Separator {
    pub dictionary: Dictionary,
    pub settings: Settings,
    /// The expectations given the dispersions of a bin, for the exponents in use.
    table: Arc<MarginalTable>,
    pub listener: Option<PresenceNet>,
    pub high_band_net: Option<HighBandPresenceNet>,
}

impl Separator {
    pub(crate) fn new(dictionary: Dictionary, settings: Settings) -> Self {
        let alpha = settings.model.alpha_speech.unwrap_or(dictionary.header().alpha);
        let table = Arc::new(MarginalTable::new(alpha, settings.model.alpha_noise));
        Self { dictionary, settings, table, listener: None, high_band_net: None }
    }

    /// Whether a network that was trained with windows of `window_seconds` fits the model: it needs noise that drifts
    /// and the window of the dictionary.
    pub(crate) fn fits(&self, window_seconds: f64) -> bool {
        matches!(self.settings.model.noise, NoiseModel::Drifting(_))
            && self.dictionary.header().window_seconds == window_seconds
    }

    /// Separates frames of `bins` bins, `frame_seconds` apart, one after the other.
    pub(crate) fn online(&self, bins: usize, frame_seconds: f64) -> OnlineSeparation {
        let alphas = (self.alpha_speech(), self.settings.model.alpha_noise);
        OnlineSeparation::new(&self.dictionary, &self.table, alphas, bins, frame_seconds)
    }

    /// Separates one block of powers (bins x frames): warm start, sampling, posterior. `watch` is told the share that is
    /// done, 0 to 1.
    pub(crate) fn separate(
        &self,
        grid: FrameGrid,
        power: &[f32],
        request: Request,
        streams: SeedTree,
        watch: &mut dyn ProgressCallback,
        observation: Option<Observation>,
    ) -> Result<BlockResult, SeparationError> {
        let Settings { em, sampling, .. } = &self.settings;
        let bands = self.bands(grid, power, request.carried);
        let speech_spectra = self.dictionary.rows(bands.below);
        let block = self.block(grid, bands, power, &request, &speech_spectra, streams);
        let mut separation = Separation::new(&block.start, &block.power_below, &self.table, streams.child(0));
        if let Some(heard) = block.heard.as_ref().filter(|_| self.settings.model.nonstationary_noise) {
            separation.init_noise_field(&initial_noise_power(bands.below, &block.power_below, &heard.below));
        }
        let sweeps = em.iterations + sampling.as_ref().map_or(0, |sampling| sampling.iterations);
        let mut advance = |done: usize| progress::report(watch, done as f64 / sweeps as f64);
        block.em_iterations(&mut separation, &mut advance)?;
        let mut chain = Chain::default();
        if let Some(sampling) = sampling {
            let mut advance = |done: usize| advance(em.iterations + done);
            chain = block.sample(sampling, &mut separation, &mut advance, observation)?;
        }
        let Posterior { gain, model_gain, floors, upper, levels, decays } = block.posterior(&separation);
        Ok(BlockResult {
            gain,
            model_gain,
            floor: floors.amplitudes(),
            deviation: block.deviation(&separation),
            monte_carlo: chain.monte_carlo,
            divergences: chain.divergences,
            moves: chain.moves,
            carried: BlockState {
                occupied: bands.occupied,
                band: separation.into_state(),
                upper,
                levels,
                floors,
                decays,
            },
        })
    }

    /// How the bins of a block are divided.
    fn bands(&self, grid: FrameGrid, power: &[f32], carried: Option<&BlockState>) -> Bands {
        let before = carried.map_or(0, |carried| carried.occupied);
        let occupied = occupied_bins(power, grid.bins, grid.bin_hertz).max(before);
        Bands { below: occupied.min(self.dictionary.header().bins()), occupied }
    }

    /// What is given of a block, with the spectra of speech in the dictionary's band (bins x rank).
    fn block<'a>(
        &'a self,
        grid: FrameGrid,
        bands: Bands,
        power: &'a [f32],
        request: &Request<'a>,
        speech_spectra: &'a [f32],
        streams: SeedTree,
    ) -> Block<'a> {
        let FrameGrid { bins, bin_hertz, frame_seconds } = grid;
        let Bands { below, occupied } = bands;
        let Settings { model, sampling, .. } = &self.settings;
        let &Request { carried, noise_profile, deviation, model_gain, .. } = request;
        // The factors of a narrower band say nothing of what is new.
        let factors = carried.filter(|carried| carried.occupied == occupied);
        let power_below = rows(power, bins, 0..below);
        let power_above = rows(power, bins, below..occupied);
        Block {
            separator: self,
            heard: self.listener.as_ref().map(|listener| {
                SpeechPresence::new(listener, self.high_band_net.as_ref(), below, &power_below, &power_above)
            }),
            bins,
            power,
            power_below,
            power_above,
            noise_above: noise_profile.map(|profile| &profile[below..occupied]),
            carried_above: factors.and_then(|carried| carried.upper.as_ref()),
            gain_before: carried.map(|carried| (&carried.levels, &carried.floors)),
            decays_before: carried.map(|carried| &carried.decays),
            start: Start {
                bins: below,
                speech_spectra,
                alpha_speech: self.alpha_speech(),
                alpha_noise: model.alpha_noise,
                noise: model.noise,
                frame_seconds,
                bin_hertz,
                speech_prior: model.speech_prior,
                noise_prior: model.noise_prior,
                carried: factors.map(|carried| &carried.band),
                noise_profile: noise_profile.map(|profile| &profile[..below]),
                deviation: deviation && sampling.is_some(),
            },
            model_gain,
            streams,
        }
    }

    /// The characteristic exponent of speech: that of the settings, or else the dictionary's.
    fn alpha_speech(&self) -> f64 {
        self.settings.model.alpha_speech.unwrap_or(self.dictionary.header().alpha)
    }
}

/// How the bins of a block are divided: so many below are in the dictionary's band, and so many are not empty.
#[derive(Clone, Copy)]
struct Bands {
    below: usize,
    occupied: usize,
}

/// A block on its way: what is given of it.
struct Block<'a> {
    separator: &'a Separator,
    bins: usize,
    /// Of all bins, of those in the dictionary's band, and of those above that are not empty; x frames.
    power: &'a [f32],
    power_below: Vec<f32>,
    power_above: Vec<f32>,
    /// What the listener says, if there is one.
    heard: Option<SpeechPresence>,
    /// The mean power of the noise per bin above the dictionary's band, if it is known.
    noise_above: Option<&'a [f32]>,
    carried_above: Option<&'a HighBandState>,
    gain_before: Option<(&'a BinLevels, &'a Floors)>,
    decays_before: Option<&'a Decays>,
    /// Of the dictionary's band.
    start: Start<'a>,
    /// Whether the gain of the model is asked for.
    model_gain: bool,
    streams: SeedTree,
}

/// The log odds of speech that the listeners band_log_odds, bins x frames.
struct SpeechPresence {
    /// In the dictionary's band.
    below: Vec<f32>,
    /// Above it, if there is a listener for it and anything to band_log_odds.
    above: Option<Vec<f32>>,
    /// The probability of a voice near every frame.
    presence: Vec<f32>,
}

impl SpeechPresence {
    /// Of the powers of `bins` bins in the dictionary's band and of those above (bins x frames each).
    fn new(
        listener: &PresenceNet,
        upper: Option<&HighBandPresenceNet>,
        bins: usize,
        power_below: &[f32],
        power_above: &[f32],
    ) -> Self {
        let heard = listener.band_log_odds(power_below, bins);
        let below = heard.on_bins(bins);
        let presence = presence::frame_presence(&below, bins);
        let mut above = upper.and_then(|upper| upper.log_odds(&heard, power_above));
        above.iter_mut().flatten().for_each(|odds| *odds += UPPER_LEAN);
        Self { below, above, presence }
    }
}

/// What the draws say of themselves.
#[derive(Default)]
struct Chain {
    divergences: usize,
    monte_carlo: MonteCarloAccumulator,
    moves: SamplerCounters,
}

/// The whole spectrum of a block.
struct Posterior {
    /// Posterior-mean gain, bins x frames.
    gain: Vec<f32>,
    /// The same before it is pooled_gain with the listener; empty if it is not asked for.
    model_gain: Vec<f32>,
    /// The least gain to apply, per bin.
    floors: Floors,
    /// What the upper band hands on.
    upper: Option<HighBandState>,
    /// Those of this block and the blocks before it.
    levels: BinLevels,
    /// Likewise.
    decays: Decays,
}

/// Told how many sweeps are done.
type Advance<'a> = dyn FnMut(usize) -> Result<(), Cancelled> + 'a;

impl Block<'_> {
    /// Expectation maximisation; without draws to come, its last gains are averaged.
    fn em_iterations(&self, separation: &mut Separation, advance: &mut Advance) -> Result<(), Cancelled> {
        let Settings { model, em, sampling, .. } = &self.separator.settings;
        for sweep in 0..em.iterations {
            let settled = is_settled(sweep, em.iterations);
            let free = UpdateMask { noise: settled, response: settled && model.channel_response };
            separation.em_step(em.exponent as f32, free);
            if sampling.is_none() && in_last_quarter(sweep, em.iterations) {
                separation.accumulate();
            }
            advance(sweep + 1)?;
        }
        Ok(())
    }

    /// Gibbs sweeps, averaged after the burn-in.
    fn sample(
        &self,
        settings: &SamplingSettings,
        separation: &mut Separation,
        advance: &mut Advance,
        mut observation: Option<Observation>,
    ) -> Result<Chain, SeparationError> {
        if settings.literal.hamcmc.one_memory {
            separation.merge_tiles();
        }
        if settings.literal.prior_start {
            separation.start_from_priors(&mut self.streams.child(3).rng(0));
        }
        let mut gibbs = Gibbs::new(separation, settings, self.streams.child(1))?;
        gibbs.adapt(true);
        let mut probes = GainMonitor::new(self.start.bins, self.power.len() / self.bins);
        for sweep in 0..settings.iterations {
            if sweep == settings.burn_in {
                gibbs.adapt(false);
            }
            gibbs.sweep(separation);
            if sweep == settings.burn_in {
                separation.reset_averages();
            }
            let shown = observation
                .as_ref()
                .is_some_and(|Observation { every, .. }| (sweep / every + 1) * every - sweep <= SHOWN_SWEEPS);
            if sweep >= settings.burn_in || shown {
                gibbs.accumulate(separation);
            }
            if sweep >= settings.burn_in {
                probes.record(separation);
            }
            if let Some(Observation { every, show }) = &mut observation
                && (sweep + 1) % *every == 0
            {
                let Posterior { mut gain, floors, .. } = self.posterior(separation);
                apply_floor(&mut gain, &floors.amplitudes());
                show(sweep + 1, &gain);
                if sweep < settings.burn_in {
                    separation.reset_averages();
                }
            }
            advance(sweep + 1)?;
        }
        let (divergences, monte_carlo) = (gibbs.divergences(), probes.finish());
        Ok(Chain { divergences, monte_carlo, moves: gibbs.finish() })
    }

    /// The gain of the whole spectrum by what was accumulated: pooled_gain with what the listener hears, with
    /// the band above, smoothed.
    fn posterior(&self, separation: &Separation) -> Posterior {
        let Self { separator, bins, power, start, .. } = self;
        let (bins, split, settings) = (*bins, start.bins, &separator.settings);
        let mut gain = vec![0.0; power.len()];
        let mut model_gain = vec![0.0; if self.model_gain { power.len() } else { 0 }];
        let mut gain_below = separation.mean_gain();
        let deaf_above =
            matches!(&self.heard, Some(SpeechPresence { above: None, .. })) && !self.power_above.is_empty();
        let gain_before_pooling = deaf_above.then(|| gain_below.clone());
        place_rows(&gain_below, &mut model_gain, bins, 0..split);
        if let Some(heard) = &self.heard {
            let weight = if settings.model.nonstationary_noise { NONSTATIONARY_WEIGHT } else { WEIGHT };
            fusion::pool_log_odds(&mut gain_below, &heard.below, &heard.presence, weight);
        }
        place_rows(&gain_below, &mut gain, bins, 0..split);
        let mut upper = None;
        if !self.power_above.is_empty() {
            let occupied = split + self.power_above.len() / (power.len() / bins);
            let (mut gain_above, carried) = self.separate_above(separation);
            place_rows(&gain_above, &mut model_gain, bins, split..occupied);
            if let Some(SpeechPresence { above: Some(above), presence, .. }) = &self.heard {
                fusion::pool_log_odds(&mut gain_above, above, presence, WEIGHT);
            }
            if let Some(gain_before_pooling) = &gain_before_pooling {
                self.follow(gain_before_pooling, &gain_below, &mut gain_above);
            }
            place_rows(&gain_above, &mut gain, bins, split..occupied);
            upper = Some(carried);
        }
        let (levels_before, floors_before) = self.gain_before.unzip();
        let levels = BinLevels::new(&gain, power, bins, levels_before);
        let snr_db = levels.snr_db(start.bin_hertz);
        if settings.gain.smooth {
            // What is pooled_gain is smooth enough.
            let rough = if self.heard.is_some() { split..bins } else { 0..bins };
            smooth_over_frames(&mut gain, &snr_db, rough);
        }
        let mut floors = Floors::new(
            &settings.gain,
            self.heard.is_some(),
            &levels,
            &snr_db,
            start.bin_hertz,
            floors_before,
        );
        // What is learned of speech above is uncertain: no more noise is left there than just below.
        floors.level_off(split);
        let decays = self.suppress_reverberation(&mut gain);
        Posterior { gain, model_gain, floors, upper, levels, decays }
    }

    /// Takes as much of the voice's tail out of the gain as the settings ask for. The decays of the room so far.
    fn suppress_reverberation(&self, gain: &mut [f32]) -> Decays {
        let Self { separator, bins, power, start, decays_before, .. } = self;
        let voice: Vec<f32> = gain.iter().zip(*power).map(|(gain, power)| gain * gain * power).collect();
        let grid = FrameGrid { bins: *bins, bin_hertz: start.bin_hertz, frame_seconds: start.frame_seconds };
        let mut decays = decays_before.cloned().unwrap_or_default();
        decays.count(&voice, grid);
        let share = separator.settings.gain.dereverb as f32;
        if share > 0.0 {
            reverberation::suppress(gain, &voice, grid, &decays, share);
        }
        decays
    }

    /// The standard deviation of the gain over the draws, bins x frames; empty if it is not asked for.
    fn deviation(&self, separation: &Separation) -> Vec<f32> {
        let mut whole = Vec::new();
        if self.start.deviation {
            whole.resize(self.power.len(), 0.0);
            place_rows(&separation.gain_deviation(), &mut whole, self.bins, 0..self.start.bins);
        }
        whole
    }

    /// Takes as much from the frames above the dictionary's band as the pool with the listener took from the
    /// octave below: what starts and stops is wide, and above the model knows it by the voice's activations alone.
    fn follow(&self, before: &[f32], pooled_gain: &[f32], above: &mut [f32]) {
        let bins = self.start.bins;
        let octave = bins / 2..bins;
        let frames = self
            .power_below
            .chunks_exact(bins)
            .zip(before.chunks_exact(bins).zip(pooled_gain.chunks_exact(bins)));
        let rows = above.len() / (before.len() / bins);
        for ((power, (before, pooled_gain)), above) in frames.zip(above.chunks_exact_mut(rows)) {
            let voice = |gain: &[f32]| -> f32 { octave.clone().map(|bin| gain[bin] * power[bin]).sum() };
            let share = (voice(pooled_gain) / voice(before).max(f32::MIN_POSITIVE)).min(1.0);
            above.iter_mut().for_each(|gain| *gain *= share);
        }
    }

    /// The mean gain (bins x frames) above the band of `below`, and what to hand on.
    fn separate_above(&self, below: &Separation) -> (Vec<f32>, HighBandState) {
        let Self { separator, power, power_above, .. } = self;
        let start = Start {
            bins: power_above.len() / (power.len() / self.bins),
            noise_profile: self.noise_above,
            deviation: false,
            ..self.start.clone()
        };
        let (carried, streams) = (self.carried_above, self.streams.child(2));
        let continuation = separator.dictionary.continuation();
        let mut above =
            HighBand::new(&start, power_above, below, continuation, carried, &separator.table, streams);
        let sweeps = match &self.heard {
            Some(SpeechPresence { above: Some(_), .. }) => HEARD_UPPER_SWEEPS,
            _ => separator.settings.em.iterations.max(UPPER_SWEEPS),
        };
        for sweep in 0..sweeps {
            above.em_step(separator.settings.em.exponent as f32, is_settled(sweep, sweeps));
            if in_last_quarter(sweep, sweeps) {
                above.accumulate();
            }
        }
        (above.mean_gain(), above.into_state())
    }
}

/// Raises the gain (bins x frames) to the floor of each bin.
pub(crate) fn apply_floor(gain: &mut [f32], floor: &[f32]) {
    for frame in gain.chunks_exact_mut(floor.len()) {
        frame.iter_mut().zip(floor).for_each(|(gain, floor)| *gain = gain.max(*floor));
    }
}

/// Whether the noise and the channel are free: they keep their start until the speech has taken what is its own.
fn is_settled(sweep: usize, sweeps: usize) -> bool {
    3 * sweep >= sweeps
}

/// Whether the gains of a sweep belong to the average.
fn in_last_quarter(sweep: usize, sweeps: usize) -> bool {
    4 * (sweeps - sweep) <= sweeps + 3
}
