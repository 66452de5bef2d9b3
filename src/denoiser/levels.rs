//! Speech levels per third octave and 100 ms, with intervals.
//!
//! A cell is one band in one slot of time. The posterior of a bin, in units of its power, has the mean `gain` and the
//! variance `gain (1 - gain)`. The expected power of speech in a cell is therefore a sum of two terms. The first is the
//! power of the signal filtered by the gain and by [ideal filters](slots), over exactly the samples of the slot. The
//! second is the variance in the frames with their centre in the slot.
//!
//! The uncertainty depends on three features of a cell: the fraction of its power that is speech, how unevenly the gain
//! is distributed, and the posterior-mean gain before fusion. It also depends on these features over all bands and on
//! their means over the last second, and on the ratios of the expected power to its surroundings. A [small
//! network](quantiles) maps these to three quantiles. It was trained by quantile regression (Koenker and Bassett 1978)
//! on mixtures of training material.

mod quantiles;
mod slots;
#[cfg(test)]
mod tests;

pub(crate) use self::quantiles::QuantileNet;
use self::quantiles::{INPUTS, Quantiles};
pub(crate) use self::slots::{SlotBank, SlotPlan};
use crate::decibels::decibels;
use crate::transform::{Spectrogram, Stft, Synthesiser};
use num_complex::Complex;
use serde::Serialize;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Duration of a slot, s.
const SLOT_SECONDS: f64 = 0.1;
/// Indices of the third octaves relative to 1 kHz: from 125 Hz to 20 kHz.
const BANDS: Range<i32> = -9..14;
/// Offset that keeps fractions of a power away from 0 and 1.
const MIN_FRACTION: f64 = 1e-4;
/// Maximum upper bound of the interval relative to the recorded level, dB; speech exceeds it in one of 200 cells.
const MAX_EXCESS_DB: f64 = 6.0;
/// Minimum mean square, far below that of the softest recording, and bounds of the logarithms of ratios of mean
/// squares.
const MIN_SQUARE: f64 = 1e-60;
const MAX_LOG_RATIO: f64 = 10.0;
const MAX_LOG_EXCESS: f64 = 3.0;
const MAX_LOG_BLUR: f64 = 5.0;
/// Error of a lossy codec: 10 dB at 1 kbit/s per channel, divided by this power of the rate in kbit/s; and the minimum
/// rate, bit/s.
const CODING_ERROR: (f64, f64) = (10.0, 0.6);
const MIN_BIT_RATE: f64 = 4_000.0;
/// Decay per slot of the means over the last second.
const SLOT_DECAY: f64 = 0.9;

/// Levels of speech in third octaves and slots of 100 ms, each with a nominal 90 % interval (coverage by kind of noise:
/// eval/results).
///
/// The level of a cell is the mean square of the speech through an ideal filter of that band, relative to full scale ±1, over
/// exactly the samples of the slot; impulse responses longer than 1.6 s are truncated.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SpeechLevels {
    /// Edges of the bands, Hz: one more than there are bands.
    pub edges_hertz: Vec<f64>,
    /// Duration of a slot, s.
    pub slot_seconds: f64,
    /// Index of the first slot, from the start of the recording.
    pub first_slot: u64,
    /// Levels, bands x slots, the bands of a slot contiguous; `None` where the input or the output is silent.
    pub cells: Vec<Option<SpeechLevel>>,
}

impl SpeechLevels {
    /// Widens the intervals of a recording that a lossy codec has coded at this rate, bit/s per channel.
    ///
    /// The signal does not reveal the error of the codec. The error was measured with Opus, Vorbis, MP3 and AAC at 12
    /// to 96 kbit/s (training/levels.py). It is independent of the other errors, so the squares of the widths add up.
    pub fn widen_for_codec(&mut self, bit_rate: f64) {
        let (factor, power) = CODING_ERROR;
        let error_db = factor * libm::pow(bit_rate.max(MIN_BIT_RATE) / 1000.0, -power);
        for cell in self.cells.iter_mut().flatten() {
            let SpeechLevel { level_dbfs, lower_dbfs, upper_dbfs } = *cell;
            cell.lower_dbfs = level_dbfs - libm::hypot(level_dbfs - lower_dbfs, error_db);
            cell.upper_dbfs = level_dbfs + libm::hypot(upper_dbfs - level_dbfs, error_db);
        }
    }
}

/// The level of speech in one cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SpeechLevel {
    /// Median, dBFS.
    pub level_dbfs: f64,
    /// 5 % quantile, dBFS.
    pub lower_dbfs: f64,
    /// 95 % quantile, dBFS.
    pub upper_dbfs: f64,
}

/// Sums over a band and a slot, weighted by powers.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    power: f64,
    /// Sums of the gain, of its square, and of the posterior-mean gain.
    gain: f64,
    gain_square: f64,
    model: f64,
}

/// Sums over the frames of one slot: its cells and its number of frames.
struct FrameSlot {
    cells: Vec<Cell>,
    frames: usize,
}

/// One slot: sums over its frames, and mean squares by band.
struct Slot {
    frame_sums: FrameSlot,
    /// Mean squares of the recording and of the posterior-mean speech, over exactly the samples of the slot.
    recorded: Vec<f64>,
    speech: Vec<f64>,
    /// Posterior variance of speech, by frames, and its sum with the mean square of the posterior mean.
    spread: Vec<f64>,
    expected: Vec<f64>,
}

impl Slot {
    fn new(frame_sums: FrameSlot, recorded: Vec<f64>, speech: Vec<f64>) -> Self {
        // The posterior of a bin has the variance `gain (1 - gain)`, in units of its power.
        let spread = |cell: &Cell| {
            (cell.gain - cell.gain_square).max(MIN_FRACTION.powi(2) * cell.gain)
                / frame_sums.frames.max(1) as f64
        };
        let spread: Vec<f64> = frame_sums.cells.iter().map(spread).collect();
        let expected = speech.iter().zip(&spread).map(|(mean, spread)| mean + spread).collect();
        Self { frame_sums, recorded, speech, spread, expected }
    }
}

/// Mean squares per slot of a channel's signal filtered by a gain.
struct Channel {
    synthesiser: Option<Synthesiser>,
    bank: SlotBank,
}

/// One frame, of all channels.
pub(super) struct LevelFrame<'a> {
    /// Mean square of each bin.
    pub squares: &'a [f64],
    /// Spectrum of each channel.
    pub spectra: &'a [&'a [Complex<f32>]],
    /// Gain and posterior-mean gain of each bin.
    pub gain: &'a [f32],
    pub model: &'a [f32],
}

/// Accumulates cells from frames.
pub(super) struct LevelMeter {
    edges_hertz: Vec<f64>,
    /// The bins of every band.
    bins: Vec<Range<usize>>,
    /// Centre of the first frame, and distance between frames, s.
    first_seconds: f64,
    frame_seconds: f64,
    /// Frames so far.
    frames: u64,
    /// Index of the present slot of frames, its cells, and its number of frames.
    slot: u64,
    cells: Vec<Cell>,
    count: usize,
    /// Recording and posterior-mean speech of each channel.
    recorded: Vec<Channel>,
    speech: Vec<Channel>,
    /// Slots with complete frames whose samples are not complete.
    frame_sums: VecDeque<FrameSlot>,
    /// The last slot with levels, and the next slot.
    before: Option<Slot>,
    next: Option<Slot>,
    /// Number of slots with levels.
    ended: u64,
    /// Recent means of the features over all bands, and of the greatest mean square of each band and its neighbours.
    recent: RecentMeans,
    loud: RecentMeans,
    net: QuantileNet,
    /// Levels that have not been returned.
    done: Vec<Option<SpeechLevel>>,
}

impl Cell {
    fn add(&mut self, other: &Self) {
        self.power += other.power;
        self.gain += other.gain;
        self.gain_square += other.gain_square;
        self.model += other.model;
    }

    /// Log odds of the speech fraction by the gain and by the posterior-mean gain, and log unevenness of the gain;
    /// `None` for silence, or if the gain removes the whole cell.
    fn features(&self) -> Option<[f64; 3]> {
        let Self { power, gain, gain_square, model } = *self;
        if !(power > 0.0 && gain > 0.0) {
            return None;
        }
        let log_odds = |part: f64| {
            let fraction = (part / power).min(1.0);
            libm::log((fraction + MIN_FRACTION) / (1.0 - fraction + MIN_FRACTION))
        };
        let unevenness = libm::log((gain_square / gain * (power / gain)).max(1.0));
        Some([log_odds(gain), log_odds(model), unevenness])
    }
}

/// Exponentially weighted means over the last slots.
#[derive(Debug, Default)]
struct RecentMeans {
    sums: Vec<f64>,
    weight: f64,
}

impl RecentMeans {
    /// Adds the values of the next slot.
    fn push(&mut self, values: impl ExactSizeIterator<Item = f64>) {
        self.sums.resize(values.len(), 0.0);
        self.weight = SLOT_DECAY * self.weight + (1.0 - SLOT_DECAY);
        for (sum, value) in self.sums.iter_mut().zip(values) {
            *sum = SLOT_DECAY * *sum + (1.0 - SLOT_DECAY) * value;
        }
    }

    fn mean(&self, index: usize) -> f64 {
        self.sums[index] / self.weight
    }
}

impl Channel {
    fn new(stft: &Stft, plan: &Arc<SlotPlan>) -> Self {
        Self { synthesiser: Some(stft.synthesiser()), bank: SlotBank::new(plan.clone()) }
    }

    fn push(&mut self, frame: impl Iterator<Item = Complex<f32>>, bins: usize) {
        if let Some(synthesiser) = &mut self.synthesiser {
            let mut samples = Vec::new();
            synthesiser.push(&Spectrogram::from_values(bins, frame.collect()), &mut samples);
            self.bank.push(&samples);
        }
    }

    fn finish(&mut self, samples: u64, slots: u64) {
        if let Some(synthesiser) = self.synthesiser.take() {
            let mut rest = Vec::new();
            synthesiser.finish(samples, &mut rest);
            self.bank.push(&rest);
            self.bank.finish(samples, slots);
        }
    }

    /// Removes the next slot of every channel and returns its mean squares by band, averaged over channels; `None` if a
    /// channel has no complete slot.
    fn row(channels: &mut [Self], bands: usize) -> Option<Vec<f64>> {
        let mut sums = vec![0.0; bands];
        if channels.iter().any(|channel| channel.bank.rows.len() < bands) {
            return None;
        }
        let scale = 1.0 / channels.len() as f64;
        for channel in channels {
            let row = channel.bank.rows.drain(..bands);
            sums.iter_mut().zip(row).for_each(|(sum, square)| *sum += scale * square);
        }
        Some(sums)
    }
}

impl LevelMeter {
    /// A meter for frames of this transform in `channels` channels.
    pub(super) fn new(stft: &Stft, channels: usize, net: QuantileNet) -> Self {
        let (grid, sample_rate) = (stft.grid(), stft.sample_rate());
        let edge = |band: i32| 1000.0 * libm::exp2((f64::from(band) - 0.5) / 3.0);
        // Some sample rates need rounded windows, whose highest bin is not exactly at half the rate.
        let highest = (grid.bins - 1) as f64 * grid.bin_hertz * 1.001;
        let edges_hertz: Vec<f64> =
            (BANDS.start..=BANDS.end).map(edge).take_while(|&edge| edge <= highest).collect();
        let first_bin = |hertz: f64| ((hertz / grid.bin_hertz).ceil() as usize).min(grid.bins);
        let bins: Vec<Range<usize>> =
            edges_hertz.windows(2).map(|edges| first_bin(edges[0])..first_bin(edges[1])).collect();
        let plan = Arc::new(SlotPlan::new(sample_rate, SLOT_SECONDS, &edges_hertz));
        let all = || (0..channels).map(|_| Channel::new(stft, &plan)).collect();
        Self {
            cells: vec![Cell::default(); bins.len()],
            edges_hertz,
            bins,
            first_seconds: stft.first_seconds(),
            frame_seconds: grid.frame_seconds,
            frames: 0,
            slot: 0,
            count: 0,
            recorded: all(),
            speech: all(),
            frame_sums: VecDeque::new(),
            before: None,
            next: None,
            ended: 0,
            recent: RecentMeans::default(),
            loud: RecentMeans::default(),
            net,
            done: Vec::new(),
        }
    }

    /// Adds the next frame.
    pub(super) fn push(&mut self, frame: &LevelFrame) {
        let LevelFrame { squares, spectra, gain, model } = *frame;
        let bins = squares.len();
        for (k, spectrum) in spectra.iter().enumerate() {
            self.recorded[k].push(spectrum.iter().copied(), bins);
            self.speech[k].push(spectrum.iter().zip(gain).map(|(value, &gain)| value * gain), bins);
        }
        let seconds = self.first_seconds + self.frames as f64 * self.frame_seconds;
        self.frames += 1;
        if seconds < 0.0 {
            return;
        }
        // Guards against rounding where a slot begins at the centre of a frame.
        let slot = (seconds / SLOT_SECONDS + 1e-9) as u64;
        while self.slot < slot {
            self.end_frames();
        }
        self.count += 1;
        for (cell, bins) in self.cells.iter_mut().zip(&self.bins) {
            for bin in bins.clone() {
                let (power, gain) = (squares[bin], f64::from(gain[bin]));
                cell.power += power;
                cell.gain += gain * power;
                cell.gain_square += gain * gain * power;
                cell.model += f64::from(model[bin]) * power;
            }
        }
    }

    /// Ends the recording after `samples` samples, `seconds` long. Every slot begins before the end.
    pub(super) fn finish(&mut self, samples: u64, seconds: f64) {
        let slots = (seconds / SLOT_SECONDS - 1e-9).ceil() as u64;
        while self.slot < slots {
            self.end_frames();
        }
        for channel in self.recorded.iter_mut().chain(&mut self.speech) {
            channel.finish(samples, slots);
        }
        self.end_slots();
        if let Some(last) = self.next.take() {
            self.end_slot(&last, None);
        }
    }

    /// Returns the cells finished since the last call.
    pub(super) fn take(&mut self) -> SpeechLevels {
        let cells = std::mem::take(&mut self.done);
        let first_slot = self.ended - (cells.len() / self.bins.len().max(1)) as u64;
        SpeechLevels { edges_hertz: self.edges_hertz.clone(), slot_seconds: SLOT_SECONDS, first_slot, cells }
    }

    /// Ends the present slot of frames.
    fn end_frames(&mut self) {
        let frames = std::mem::take(&mut self.count);
        let cells = self.cells.iter_mut().map(std::mem::take).collect();
        self.frame_sums.push_back(FrameSlot { cells, frames });
        self.slot += 1;
        self.end_slots();
    }

    /// Computes the levels of the slots whose samples are complete, except the last of them, which needs its successor.
    fn end_slots(&mut self) {
        let bands = self.bins.len();
        while !self.frame_sums.is_empty() {
            let Some(recorded) = Channel::row(&mut self.recorded, bands) else { return };
            let Some(speech) = Channel::row(&mut self.speech, bands) else { return };
            let Some(frame_sums) = self.frame_sums.pop_front() else { return };
            let next = Slot::new(frame_sums, recorded, speech);
            if let Some(slot) = self.next.take() {
                self.end_slot(&slot, Some(&next));
                self.before = Some(slot);
            }
            self.next = Some(next);
        }
    }

    /// Computes the levels of a slot from this slot and its neighbours.
    fn end_slot(&mut self, slot: &Slot, next: Option<&Slot>) {
        let number = self.ended;
        self.ended += 1;
        let mut whole = Cell::default();
        slot.frame_sums.cells.iter().for_each(|cell| whole.add(cell));
        let all = whole.features().map(|all| {
            self.recent.push(all.into_iter());
            (all, [0, 1, 2].map(|index| self.recent.mean(index)))
        });
        let loud = slot.expected.iter().enumerate();
        self.loud.push(loud.map(|(band, square)| square.max(louder_neighbour(&slot.expected, band))));
        for (band, cell) in slot.frame_sums.cells.iter().enumerate() {
            let Some((own, (all, recent))) = cell.features().zip(all) else {
                self.done.push(None);
                continue;
            };
            let expected = slot.expected[band];
            let neighbours = [self.before.as_ref(), next]
                .map(|other| other.map_or(expected, |other| other.expected[band]));
            let louder_neighbour = louder_neighbour(&slot.expected, band);
            let exact = [
                log_ratio(expected, slot.recorded[band]).min(MAX_LOG_EXCESS),
                log_ratio(slot.speech[band], slot.spread[band]),
                log_ratio(expected, cell.gain / slot.frame_sums.frames as f64)
                    .clamp(-MAX_LOG_BLUR, MAX_LOG_BLUR),
                log_ratio(expected, neighbours[0]),
                log_ratio(expected, neighbours[1]),
                band as f64,
                log_ratio(expected, louder_neighbour),
                log_ratio(expected, self.loud.mean(band)),
            ];
            let mut inputs = [0.0; INPUTS];
            let values = own.iter().chain(&all).chain(&recent).chain(&exact);
            inputs.iter_mut().zip(values).for_each(|(to, x)| *to = *x);
            let [recorded, expected] = [slot.recorded[band], expected].map(level_db);
            tracing::trace!(slot = number, band, recorded, expected, ?inputs, "cell");
            let Quantiles { median, below, above } = self.net.quantiles(&inputs);
            let level_dbfs = (expected + median).min(recorded);
            self.done.push(Some(SpeechLevel {
                level_dbfs,
                lower_dbfs: level_dbfs - below,
                upper_dbfs: (level_dbfs + above).min(recorded + MAX_EXCESS_DB),
            }));
        }
    }
}

/// The greater of the two values next to index `at`; a missing value counts as 0.
fn louder_neighbour(values: &[f64], at: usize) -> f64 {
    let value = |at: Option<usize>| at.and_then(|at| values.get(at)).copied().unwrap_or(0.0);
    value(at.checked_sub(1)).max(value(Some(at + 1)))
}

/// Natural logarithm of a ratio of mean squares, within [`MAX_LOG_RATIO`].
fn log_ratio(above: f64, below: f64) -> f64 {
    let ratio = libm::log(above.max(MIN_SQUARE)) - libm::log(below.max(MIN_SQUARE));
    ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
}

/// Level of a mean square, dB.
fn level_db(square: f64) -> f64 {
    decibels(square.max(f64::MIN_POSITIVE))
}
