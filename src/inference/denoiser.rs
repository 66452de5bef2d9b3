//! From a noisy recording to the voice.

use super::gibbs::Gibbs;
use super::separation::{Carried, Free, Separation, Start};
use super::settings::{Settings, SettingsError};
use super::stream::DenoiseStream;
use super::upper_band::{CarriedUpper, UpperBand};
use crate::audio::{InvalidSignal, InvalidWindow, Signal};
use crate::model::{Dictionary, MarginalTable};
use crate::random::Streams;
use crate::samplers::SamplerError;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// Separates speech from noise.
///
/// ```no_run
/// use alphamf::inference::{Denoiser, Settings};
/// use alphamf::model::Dictionary;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let denoiser = Denoiser::new(Dictionary::shipped()?, Settings::default())?;
/// let noisy = alphamf::audio::read("noisy.wav")?;
/// let denoised = denoiser.denoise(&noisy, &mut |_| std::ops::ControlFlow::Continue(()))?;
/// alphamf::audio::write("clean.wav", &denoised.signal)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Denoiser {
    dictionary: Dictionary,
    settings: Settings,
    table: Arc<MarginalTable>,
}

/// A denoised recording.
#[derive(Debug, Clone)]
pub struct Denoised {
    /// The voice, in the format of the input.
    pub signal: Signal,
    /// What was found.
    pub summary: Summary,
}

/// What the separation found out about a recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Estimated ratio of speech to noise before, dB; NaN for silence.
    pub input_snr_db: f64,
    /// Energy of the output below that of the input, dB; NaN for silence.
    pub attenuation_db: f64,
    /// Sampler moves that were rejected because they were not finite.
    pub divergences: usize,
}

/// Why a recording could not be denoised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DenoiseError {
    /// A setting is out of its range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The sampler refused its settings.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The dictionary's window is of no use at this sample rate.
    #[error(transparent)]
    Window(#[from] InvalidWindow),
    /// The result is not a signal.
    #[error("the result is not a signal: {0}")]
    Signal(#[from] InvalidSignal),
    /// The progress callback asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// Told how far the work is, as the function that takes it says; may ask to stop.
pub type Progress<'a> = &'a mut dyn FnMut(f64) -> ControlFlow<()>;

/// Shown the number of Gibbs sweeps so far and the recording as denoised by then.
pub type Observer<'a> = dyn FnMut(usize, &Signal) + 'a;

/// Shown the number of Gibbs sweeps so far and the mean gain (bins x frames), every so many sweeps.
pub(super) struct Observation<'a> {
    pub every: usize,
    pub show: &'a mut dyn FnMut(usize, &[f32]),
}

impl Denoiser {
    /// A denoiser with a dictionary of speech.
    ///
    /// # Errors
    /// If a setting is out of its range.
    pub fn new(dictionary: Dictionary, settings: Settings) -> Result<Self, DenoiseError> {
        settings.validate()?;
        let alpha = settings.alpha_speech.unwrap_or(dictionary.header().alpha);
        let table = Arc::new(MarginalTable::new(alpha, settings.alpha_noise));
        Ok(Self { dictionary, settings, table })
    }

    /// The dictionary in use.
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        &self.dictionary
    }

    /// The settings in use.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Denoises a recording. All channels get the same gain, so that the stereo image stays. `progress` is told
    /// the share that is done, 0 to 1.
    ///
    /// # Errors
    /// [`DenoiseError::Interrupted`] if `progress` asked to stop; otherwise only if the settings do not fit
    /// the recording.
    pub fn denoise(&self, noisy: &Signal, progress: Progress) -> Result<Denoised, DenoiseError> {
        self.denoise_observed(noisy, 0, &mut |_, _| (), progress)
    }

    /// Denoises a recording, with the same result, and shows how it develops: every `every` Gibbs sweeps
    /// (0 for never) `observer` is given the result by the mean gain of as many sweeps or, once the
    /// burn-in is over, of all since. Only recordings of a single block (12 s) are shown.
    ///
    /// # Errors
    /// As [`Denoiser::denoise`].
    pub fn denoise_observed(
        &self,
        noisy: &Signal,
        every: usize,
        observer: &mut Observer,
        progress: Progress,
    ) -> Result<Denoised, DenoiseError> {
        let mut stream = self.stream(noisy.sample_rate(), noisy.channels().len())?;
        let length = noisy.len();
        let mut channels = vec![Vec::with_capacity(length); noisy.channels().len()];
        let step = stream.block_samples();
        let duration = noisy.duration();
        let progress: Progress = &mut |seconds| progress((seconds / duration).min(1.0));
        for start in (0..length).step_by(step) {
            let end = (start + step).min(length);
            let block: Vec<&[f32]> = noisy.channels().iter().map(|samples| &samples[start..end]).collect();
            append(&mut channels, stream.push(&block, progress)?);
        }
        let mut show = |sweep: usize, channels: Vec<Vec<f32>>| {
            // What does not make a signal here is reported at the end.
            if let Ok(signal) = noisy.with_channels(channels) {
                observer(sweep, &signal);
            }
        };
        let (rest, summary) = stream.finish_observed(every, &mut show, progress)?;
        append(&mut channels, rest);
        Ok(Denoised { signal: noisy.with_channels(channels)?, summary })
    }

    /// Denoises a recording of any length that comes in blocks, in memory that does not grow.
    ///
    /// # Errors
    /// If the dictionary's window does not fit the sample rate (Hz).
    pub fn stream(&self, sample_rate: u32, channels: usize) -> Result<DenoiseStream<'_>, DenoiseError> {
        DenoiseStream::new(self, sample_rate, channels)
    }

    /// Separates one block of powers (bins x frames).
    pub(super) fn separate(
        &self,
        bins: usize,
        power: &[f32],
        carried: Option<&Handover>,
        streams: Streams,
        progress: Progress,
        mut observation: Option<Observation>,
    ) -> Result<Separated, DenoiseError> {
        let settings = &self.settings;
        let header = self.dictionary.header();
        let bin_hertz = 1.0 / header.window_seconds;
        let occupied =
            occupied_bins(power, bins, bin_hertz).max(carried.map_or(0, |carried| carried.occupied));
        let known = occupied.min(header.bins());
        let carried = carried.filter(|carried| carried.occupied == occupied);
        let start = Start {
            bins: known,
            speech_spectra: &self.dictionary.rows(known),
            alpha_speech: settings.alpha_speech.unwrap_or(header.alpha),
            alpha_noise: settings.alpha_noise,
            noise: settings.noise,
            frame_seconds: header.window_seconds / 4.0,
            bin_hertz,
            speech_prior: settings.speech_prior,
            carried: carried.map(|carried| &carried.band),
        };
        let power_below = rows(power, bins, 0..known);
        let mut separation = Separation::new(&start, &power_below, &self.table, streams.child(0));
        drop(power_below);
        let power_above = rows(power, bins, known..occupied);
        // The gain of the whole spectrum, and what the upper band hands on.
        let complete = |separation: &Separation, averaged: usize| {
            let mut gain = vec![0.0; power.len()];
            place_rows(&separation.mean_gain(averaged), &mut gain, bins, 0..known);
            let mut upper = None;
            if known < occupied {
                let start = Start { bins: occupied - known, ..start.clone() };
                let carried = carried.and_then(|carried| carried.upper.as_ref());
                let (gain_above, handed_on) =
                    self.separate_above(&start, &power_above, separation, carried, streams.child(2));
                place_rows(&gain_above, &mut gain, bins, known..occupied);
                upper = Some(handed_on);
            }
            if settings.smooth_gain {
                smooth_over_frames(&mut gain, bins);
            }
            (gain, upper)
        };
        let sweeps = settings.warm_start + settings.iterations;
        let mut averaged = 0;
        let mut advance = |done: usize| match progress(done as f64 / sweeps as f64) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(DenoiseError::Interrupted),
        };
        for sweep in 0..settings.warm_start {
            // The noise keeps its start until the speech has taken what is its own.
            let settled = 3 * sweep >= settings.warm_start;
            separation.maximise(
                settings.exponent as f32,
                Free { noise: settled, channel: settled && settings.channel },
            );
            if settings.iterations == 0 && in_last_quarter(sweep, settings.warm_start) {
                separation.accumulate(0);
                averaged += 1;
            }
            advance(sweep + 1)?;
        }
        let mut divergences = 0;
        if settings.iterations > 0 {
            let mut gibbs = Gibbs::new(&mut separation, settings, streams.child(1))?;
            for sweep in 0..settings.iterations {
                let chain = gibbs.sweep(&mut separation);
                if sweep == settings.burn_in {
                    averaged = separation.forget();
                }
                if sweep >= settings.burn_in || observation.is_some() {
                    separation.accumulate(chain);
                    averaged += 1;
                }
                if let Some(Observation { every, show }) = &mut observation
                    && (sweep + 1) % *every == 0
                {
                    show(sweep + 1, &complete(&separation, averaged).0);
                    if sweep < settings.burn_in {
                        averaged = separation.forget();
                    }
                }
                advance(settings.warm_start + sweep + 1)?;
            }
            divergences = gibbs.divergences();
        }
        let (gain, upper) = complete(&separation, averaged);
        let carried = Handover { occupied, band: separation.carry(), upper };
        Ok(Separated { gain, divergences, carried })
    }

    /// Separates the powers (bins x frames) above the band of `below`: their mean gain, and what to hand on.
    fn separate_above(
        &self,
        start: &Start,
        power: &[f32],
        below: &Separation,
        carried: Option<&CarriedUpper>,
        streams: Streams,
    ) -> (Vec<f32>, CarriedUpper) {
        let mut above = UpperBand::new(start, power, below, carried, &self.table, streams);
        let sweeps = self.settings.warm_start.max(UPPER_SWEEPS);
        let mut averaged = 0;
        for sweep in 0..sweeps {
            above.maximise(self.settings.exponent as f32, 3 * sweep >= sweeps);
            if in_last_quarter(sweep, sweeps) {
                above.accumulate();
                averaged += 1;
            }
        }
        (above.mean_gain(averaged), above.carry())
    }
}

/// The outcome of one block.
pub(super) struct Separated {
    /// Posterior-mean gain, bins x frames.
    pub gain: Vec<f32>,
    pub divergences: usize,
    pub carried: Handover,
}

/// What one block hands on to the next.
pub(super) struct Handover {
    /// Number of bins up to the highest that is not empty.
    occupied: usize,
    band: Carried,
    upper: Option<CarriedUpper>,
}

impl Handover {
    /// Changes the unit of power.
    pub(super) fn scale_power(&mut self, factor: f32, alpha_noise: f64) {
        self.band.scale_power(factor, alpha_noise);
        if let Some(upper) = &mut self.upper {
            upper.scale_power(factor, alpha_noise);
        }
    }
}

/// The least number of sweeps for the upper band.
const UPPER_SWEEPS: usize = 12;
/// Bins whose power is below this share of the mean between 300 and 4000 Hz may be empty.
const EMPTY: f64 = 1e-7;

/// Whether the gains of a sweep belong to the average.
fn in_last_quarter(sweep: usize, sweeps: usize) -> bool {
    4 * (sweeps - sweep) <= sweeps + 3
}

/// The number of bins up to the highest that is not empty, as are those above the band of a recording that was
/// made at a lower sample rate. A start or a click, which fills all bins of a few frames, does not count.
fn occupied_bins(power: &[f32], bins: usize, bin_hertz: f64) -> usize {
    let frames = power.len() / bins;
    let at = |hertz: f64| ((hertz / bin_hertz) as usize).min(bins - 1);
    let voice = at(300.0)..at(4_000.0) + 1;
    let in_voice = power.chunks_exact(bins).flat_map(|frame| &frame[voice.clone()]);
    let mean = in_voice.map(|&x| f64::from(x)).sum::<f64>() / (frames * voice.len()) as f64;
    let threshold = (EMPTY * mean) as f32;
    let is_empty =
        |bin: &usize| 20 * power.chunks_exact(bins).filter(|frame| frame[*bin] > threshold).count() <= frames;
    (bins - (0..bins).rev().take_while(is_empty).count()).max(LEAST_BINS.min(bins))
}

/// Recordings have at least so many bins with something in them.
const LEAST_BINS: usize = 16;

/// Some rows of a matrix of `height` rows.
fn rows(matrix: &[f32], height: usize, range: Range<usize>) -> Vec<f32> {
    matrix.chunks_exact(height).flat_map(|column| &column[range.clone()]).copied().collect()
}

/// Writes some rows of a matrix of `height` rows.
fn place_rows(rows: &[f32], matrix: &mut [f32], height: usize, range: Range<usize>) {
    for (column, rows) in matrix.chunks_exact_mut(height).zip(rows.chunks_exact(range.len())) {
        column[range.clone()].copy_from_slice(rows);
    }
}

/// Averages every frame (bins each) with its neighbours, by 1/4, 1/2 and 1/4.
fn smooth_over_frames(gain: &mut [f32], bins: usize) {
    let before = gain.to_vec();
    let frames = gain.len() / bins;
    for (t, frame) in gain.chunks_exact_mut(bins).enumerate() {
        let (previous, next) = (t.saturating_sub(1) * bins, (t + 1).min(frames - 1) * bins);
        for (bin, gain) in frame.iter_mut().enumerate() {
            *gain = 0.5 * *gain + 0.25 * (before[previous + bin] + before[next + bin]);
        }
    }
}

fn append(channels: &mut [Vec<f32>], block: Vec<Vec<f32>>) {
    channels.iter_mut().zip(block).for_each(|(channel, samples)| channel.extend(samples));
}
