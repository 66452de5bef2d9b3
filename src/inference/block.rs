//! One block of a recording: from powers to gains.

use super::denoiser::{DenoiseError, Denoiser, Progress};
use super::gain::{band_snr_db, floors, smooth_over_frames};
use super::gibbs::Gibbs;
use super::monte_carlo::{MonteCarlo, Probes};
use super::separation::{Carried, Free, Separation, Start};
use super::upper_band::{CarriedUpper, UpperBand};
use crate::random::Streams;
use crate::refiner::Posterior;
use std::ops::{ControlFlow, Range};

/// The least number of sweeps for the upper band.
const UPPER_SWEEPS: usize = 12;
/// Bins whose power is below this share of the mean between 300 and 4000 Hz may be empty.
const EMPTY: f64 = 1e-7;
/// Recordings have at least so many bins with something in them.
const LEAST_BINS: usize = 16;

/// How many sweeps an observer is shown the mean of before the burn-in is over.
const SHOWN_SWEEPS: usize = 20;

/// What a block starts from, and what is asked for beside its gains.
#[derive(Default)]
pub(super) struct Known<'a> {
    pub carried: Option<&'a Handover>,
    /// Mean power of the noise per bin.
    pub noise_power: Option<&'a [f32]>,
    /// Whether the spread of the gains is asked for.
    pub deviation: bool,
    /// Whether the dispersions are.
    pub dispersion: bool,
}

/// Shown the number of Gibbs sweeps so far and the gain (bins x frames), every so many sweeps.
pub(super) struct Observation<'a> {
    pub every: usize,
    pub show: &'a mut dyn FnMut(usize, &[f32]),
}

/// The outcome of one block.
pub(super) struct Separated {
    /// Posterior-mean gain, bins x frames.
    pub gain: Vec<f32>,
    /// The least gain to apply, per bin.
    pub floor: Vec<f32>,
    /// The standard deviation of the gain over the draws, bins x frames; empty if there are none or it was not
    /// asked for.
    pub deviation: Vec<f32>,
    /// The dispersions of speech and of noise in the last draw, for the bins of the dictionary; empty if not asked
    /// for.
    pub dispersion: [Vec<f32>; 2],
    pub monte_carlo: MonteCarlo,
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

impl Denoiser {
    /// Separates one block of powers (bins x frames).
    pub(super) fn separate(
        &self,
        bins: usize,
        power: &[f32],
        known: Known,
        streams: Streams,
        progress: Progress,
        mut observation: Option<Observation>,
    ) -> Result<Separated, DenoiseError> {
        let settings = self.settings();
        let header = self.dictionary().header();
        let bin_hertz = 1.0 / header.window_seconds;
        let Known { carried, noise_power, deviation, dispersion } = known;
        let occupied =
            occupied_bins(power, bins, bin_hertz).max(carried.map_or(0, |carried| carried.occupied));
        let split = occupied.min(header.bins());
        let carried = carried.filter(|carried| carried.occupied == occupied);
        let start = Start {
            bins: split,
            speech_spectra: &self.dictionary().rows(split),
            alpha_speech: settings.alpha_speech.unwrap_or(header.alpha),
            alpha_noise: settings.alpha_noise,
            noise: settings.noise,
            frame_seconds: header.window_seconds / 4.0,
            bin_hertz,
            speech_prior: settings.speech_prior,
            carried: carried.map(|carried| &carried.band),
            noise_power: noise_power.map(|power| &power[..split]),
            deviation: deviation && settings.iterations > 0,
        };
        let power_below = rows(power, bins, 0..split);
        let mut separation = Separation::new(&start, &power_below, self.table(), streams.child(0));
        let power_above = rows(power, bins, split..occupied);
        // The gain of the whole spectrum, its floor, and what the upper band hands on.
        let complete = |separation: &Separation, averaged: usize| {
            let mut gain = vec![0.0; power.len()];
            let mut gain_below = separation.mean_gain(averaged);
            if let Some(refiner) = self.refiner() {
                gain_below = refiner.refine(&Posterior {
                    bins: split,
                    bin_hertz,
                    alpha: [start.alpha_speech, start.alpha_noise],
                    gain: gain_below.as_slice(),
                    power: &power_below,
                    dispersion: separation.dispersions().each_ref().map(Vec::as_slice),
                });
            }
            place_rows(&gain_below, &mut gain, bins, 0..split);
            let mut upper = None;
            if split < occupied {
                let start = Start {
                    bins: occupied - split,
                    noise_power: noise_power.map(|power| &power[split..occupied]),
                    deviation: false,
                    ..start.clone()
                };
                let carried = carried.and_then(|carried| carried.upper.as_ref());
                let (gain_above, handed_on) =
                    self.separate_above(&start, &power_above, separation, carried, streams.child(2));
                place_rows(&gain_above, &mut gain, bins, split..occupied);
                upper = Some(handed_on);
            }
            let snr_db = band_snr_db(&gain, power, bins, bin_hertz);
            if settings.smooth_gain {
                // What is refined is smooth enough.
                let rough = if self.refiner().is_some() { split..bins } else { 0..bins };
                smooth_over_frames(&mut gain, &snr_db, rough);
            }
            let mut floor = floors(settings, &snr_db);
            // What is learned of speech above is uncertain: no more noise is left there than just below.
            let (below, above) = floor.split_at_mut(split);
            if let Some(&top) = below.last() {
                above.iter_mut().for_each(|floor| *floor = floor.min(top));
            }
            (gain, floor, upper)
        };
        let sweeps = settings.warm_start + settings.iterations;
        let mut averaged = 0;
        let mut advance = |done: usize| match progress(done as f64 / sweeps as f64) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(DenoiseError::Interrupted),
        };
        for sweep in 0..settings.warm_start {
            let settled = is_settled(sweep, settings.warm_start);
            separation.maximise(
                settings.exponent as f32,
                Free { noise: settled, channel: settled && settings.channel },
            );
            if settings.iterations == 0 && in_last_quarter(sweep, settings.warm_start) {
                separation.accumulate();
                averaged += 1;
            }
            advance(sweep + 1)?;
        }
        let (mut divergences, mut monte_carlo) = (0, MonteCarlo::default());
        if settings.iterations > 0 {
            let mut gibbs = Gibbs::new(&mut separation, settings, streams.child(1))?;
            gibbs.adapt(true);
            let mut probes = Probes::new(split, power.len() / bins);
            for sweep in 0..settings.iterations {
                if sweep == settings.burn_in {
                    gibbs.adapt(false);
                }
                gibbs.sweep(&mut separation);
                if sweep == settings.burn_in {
                    averaged = separation.forget();
                }
                let shown = observation.as_ref().is_some_and(|Observation { every, .. }| {
                    (sweep / every + 1) * every - sweep <= SHOWN_SWEEPS
                });
                if sweep >= settings.burn_in || shown {
                    separation.accumulate();
                    averaged += 1;
                }
                if sweep >= settings.burn_in {
                    probes.record(&separation);
                }
                if let Some(Observation { every, show }) = &mut observation
                    && (sweep + 1) % *every == 0
                {
                    let (mut gain, floor, _) = complete(&separation, averaged);
                    apply_floor(&mut gain, &floor);
                    show(sweep + 1, &gain);
                    if sweep < settings.burn_in {
                        averaged = separation.forget();
                    }
                }
                advance(settings.warm_start + sweep + 1)?;
            }
            divergences = gibbs.divergences();
            monte_carlo = probes.finish();
        }
        let (gain, floor, upper) = complete(&separation, averaged);
        let mut whole_deviation = Vec::new();
        if start.deviation {
            whole_deviation.resize(power.len(), 0.0);
            place_rows(&separation.gain_deviation(averaged), &mut whole_deviation, bins, 0..split);
        }
        let dispersion = if dispersion { separation.dispersions() } else { Default::default() };
        let carried = Handover { occupied, band: separation.carry(), upper };
        Ok(Separated {
            gain,
            floor,
            deviation: whole_deviation,
            dispersion,
            monte_carlo,
            divergences,
            carried,
        })
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
        let mut above = UpperBand::new(start, power, below, carried, self.table(), streams);
        let sweeps = self.settings().warm_start.max(UPPER_SWEEPS);
        let mut averaged = 0;
        for sweep in 0..sweeps {
            above.maximise(self.settings().exponent as f32, is_settled(sweep, sweeps));
            if in_last_quarter(sweep, sweeps) {
                above.accumulate();
                averaged += 1;
            }
        }
        (above.mean_gain(averaged), above.carry())
    }
}

/// Raises the gain (bins x frames) to the floor of each bin.
pub(super) fn apply_floor(gain: &mut [f32], floor: &[f32]) {
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
