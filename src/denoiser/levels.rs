//! Speech levels per third octave and 100 ms, with intervals.
//!
//! The posterior of a bin has the mean `gain`, in units of its power; summed over a cell (a band and a slot of time), it is
//! the expected power of speech. The uncertainty depends on the fraction of the cell's power that is speech, on how
//! unevenly the gain is distributed in the cell, and on the posterior-mean gain before fusion; on the same three over all
//! bands, and on their means over the last second. A [small network](quantiles) maps these to three quantiles. It was
//! trained by quantile regression (Koenker and Bassett 1978) on development mixtures.

mod quantiles;

pub(crate) use self::quantiles::QuantileNet;
use self::quantiles::{INPUTS, Quantiles};
use crate::transform::FrameGrid;
use std::ops::Range;

/// Duration of a slot, s.
const SLOT_SECONDS: f64 = 0.1;
/// Third octaves relative to that of 1 kHz: from 125 Hz to 20 kHz.
const BANDS: Range<i32> = -9..14;
/// Fractions of a power are kept this far from 0 and 1.
const MIN_FRACTION: f64 = 1e-4;
/// Maximum upper bound of the interval above the recorded level, dB: speech is louder in one of 500 cells.
const MAX_EXCESS_DB: f64 = 1.0;
/// Decay per slot of the means over the last second.
const SLOT_DECAY: f64 = 0.9;

/// Levels of speech in third octaves and slots of 100 ms, each with a nominal 90 % interval (coverage by kind of noise:
/// eval/results).
///
/// The level of a cell is the mean square of the band's speech relative to full scale ±1, over the frames with their centre
/// in the slot.
#[derive(Debug, Clone, PartialEq, Default)]
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

/// The level of speech in one cell.
#[derive(Debug, Clone, Copy, PartialEq)]
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
    /// Of the gain, of its square, and of the posterior-mean gain.
    gain: f64,
    gain_square: f64,
    model: f64,
}

/// Accumulates cells from frames.
#[derive(Debug)]
pub(super) struct LevelMeter {
    edges_hertz: Vec<f64>,
    /// The bins of every band.
    bins: Vec<Range<usize>>,
    /// Centre of the first frame, and distance between frames, s.
    first_seconds: f64,
    frame_seconds: f64,
    /// Frames so far.
    frames: u64,
    /// The present slot, its cells, and its number of frames.
    slot: u64,
    cells: Vec<Cell>,
    count: usize,
    recent: Recent,
    net: QuantileNet,
    done: Vec<Option<SpeechLevel>>,
    taken: u64,
}

impl Cell {
    fn add(&mut self, other: &Self) {
        self.power += other.power;
        self.gain += other.gain;
        self.gain_square += other.gain_square;
        self.model += other.model;
    }

    /// Log odds of the speech fraction by the gain and by the posterior-mean gain, and log unevenness of the gain; `None` for
    /// silence, or if all of it was removed.
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
#[derive(Debug, Clone, Copy, Default)]
struct Recent {
    sums: [f64; 3],
    weight: f64,
}

impl Recent {
    /// The means including the next values.
    fn push(&mut self, values: [f64; 3]) -> [f64; 3] {
        self.weight = SLOT_DECAY * self.weight + (1.0 - SLOT_DECAY);
        for (sum, value) in self.sums.iter_mut().zip(values) {
            *sum = SLOT_DECAY * *sum + (1.0 - SLOT_DECAY) * value;
        }
        self.sums.map(|sum| sum / self.weight)
    }
}

impl LevelMeter {
    /// For frames on this grid, with windows of `window_seconds`.
    pub(super) fn new(grid: FrameGrid, window_seconds: f64, net: QuantileNet) -> Self {
        let edge = |band: i32| 1000.0 * libm::exp2((f64::from(band) - 0.5) / 3.0);
        // Windows are rounded at some rates: half the rate is not exactly that of the highest bin.
        let highest = (grid.bins - 1) as f64 * grid.bin_hertz * 1.001;
        let edges_hertz: Vec<f64> =
            (BANDS.start..=BANDS.end).map(edge).take_while(|&edge| edge <= highest).collect();
        let first_bin = |hertz: f64| ((hertz / grid.bin_hertz).ceil() as usize).min(grid.bins);
        let bins: Vec<Range<usize>> =
            edges_hertz.windows(2).map(|edges| first_bin(edges[0])..first_bin(edges[1])).collect();
        Self {
            cells: vec![Cell::default(); bins.len()],
            edges_hertz,
            bins,
            first_seconds: grid.frame_seconds - window_seconds / 2.0,
            frame_seconds: grid.frame_seconds,
            frames: 0,
            slot: 0,
            count: 0,
            recent: Recent::default(),
            net,
            done: Vec::new(),
            taken: 0,
        }
    }

    /// Adds the next frame: the mean square, the gain and the posterior-mean gain of each bin.
    pub(super) fn push(&mut self, squares: &[f64], gain: &[f32], model: &[f32]) {
        let seconds = self.first_seconds + self.frames as f64 * self.frame_seconds;
        self.frames += 1;
        if seconds < 0.0 {
            return;
        }
        // Guards against rounding where a slot begins at the centre of a frame.
        let slot = (seconds / SLOT_SECONDS + 1e-9) as u64;
        while self.slot < slot {
            self.end_slot();
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

    /// Ends the recording after `seconds`; slots begin before that.
    pub(super) fn finish(&mut self, seconds: f64) {
        let slots = (seconds / SLOT_SECONDS - 1e-9).ceil() as u64;
        while self.slot < slots {
            self.end_slot();
        }
        let beyond = (self.slot - slots) as usize * self.cells.len();
        self.done.truncate(self.done.len().saturating_sub(beyond));
    }

    /// The finished cells since the last call.
    pub(super) fn take(&mut self) -> SpeechLevels {
        let cells = std::mem::take(&mut self.done);
        let first_slot = self.taken;
        self.taken += (cells.len() / self.bins.len().max(1)) as u64;
        SpeechLevels { edges_hertz: self.edges_hertz.clone(), slot_seconds: SLOT_SECONDS, first_slot, cells }
    }

    fn end_slot(&mut self) {
        let (number, frames) = (self.slot, std::mem::take(&mut self.count));
        self.slot += 1;
        let mut all = Cell::default();
        self.cells.iter().for_each(|cell| all.add(cell));
        let slot = all.features().map(|slot| (slot, self.recent.push(slot)));
        self.done.extend(self.cells.iter_mut().map(std::mem::take).enumerate().map(|(band, cell)| {
            let (own, (slot, recent)) = (cell.features()?, slot?);
            let mut inputs = [0.0; INPUTS];
            inputs.iter_mut().zip(own.iter().chain(&slot).chain(&recent)).for_each(|(to, x)| *to = *x);
            let [recorded, expected] =
                [cell.power, cell.gain].map(|square| 10.0 * libm::log10(square / frames as f64));
            tracing::trace!(slot = number, band, recorded, expected, ?inputs, "cell");
            let Quantiles { median, below, above } = self.net.quantiles(&inputs);
            let level_dbfs = (expected + median).min(recorded);
            Some(SpeechLevel {
                level_dbfs,
                lower_dbfs: level_dbfs - below,
                upper_dbfs: (level_dbfs + above).min(recorded + MAX_EXCESS_DB),
            })
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::{DEFAULT_WINDOW_SECONDS, Stft};

    /// The levels of samples with this gain in every bin.
    fn levels(samples: &[f32], rate: u32, gain: f32) -> SpeechLevels {
        let stft = Stft::new(rate, DEFAULT_WINDOW_SECONDS).unwrap();
        let (bins, window) = (stft.bins(), stft.window() as f64);
        let mut meter =
            LevelMeter::new(stft.grid(), window / f64::from(rate), QuantileNet::built_in().unwrap());
        for frame in stft.analyse(samples).as_slice().chunks_exact(bins) {
            let squares: Vec<f64> =
                frame.iter().map(|x| 2.0 * f64::from(x.norm_sqr()) / (0.375 * window * window)).collect();
            meter.push(&squares, &vec![gain; bins], &vec![gain; bins]);
        }
        meter.finish(samples.len() as f64 / f64::from(rate));
        meter.take()
    }

    fn tone(rate: u32, seconds: f32, hertz: f32) -> Vec<f32> {
        let step = std::f32::consts::TAU * hertz / rate as f32;
        (0..(seconds * rate as f32) as usize).map(|n| 0.1 * (n as f32 * step).sin()).collect()
    }

    #[test]
    fn a_tone_has_its_level_in_its_band_at_every_rate() {
        for (rate, bands) in [(8_000, 15), (16_000, 18), (44_100, 22), (48_000, 23)] {
            let found = levels(&tone(rate, 1.0, 1000.0), rate, 1.0);
            assert_eq!((found.edges_hertz.len(), found.cells.len()), (bands + 1, 10 * bands), "{rate} Hz");
            assert!((found.edges_hertz[0] - 111.36).abs() < 0.01, "{}", found.edges_hertz[0]);
            for slot in found.cells.chunks_exact(bands).skip(1).take(8) {
                let at = |band: usize| slot[band].unwrap().level_dbfs;
                assert!((at(9) + 23.01).abs() < 0.2, "{rate} Hz: {}", at(9));
                assert!(at(8) < -60.0 && at(10) < -60.0, "{rate} Hz: {} {}", at(8), at(10));
            }
        }
    }

    #[test]
    fn speech_is_hardly_louder_than_the_recording() {
        let tone = tone(16_000, 1.0, 1000.0);
        for gain in [0.999, 0.9, 0.5, 0.1] {
            let SpeechLevel { level_dbfs, lower_dbfs, upper_dbfs } =
                levels(&tone, 16_000, gain).cells[5 * 18 + 9].unwrap();
            assert!(lower_dbfs < level_dbfs && level_dbfs < upper_dbfs);
            assert!(level_dbfs < -22.8 && upper_dbfs < -21.8, "{gain}: {level_dbfs} {upper_dbfs}");
        }
    }

    #[test]
    fn silence_has_no_level_and_ends_have_their_slots() {
        assert!(levels(&[0.0; 8_000], 8_000, 1.0).cells.iter().all(Option::is_none));
        assert!(levels(&tone(8_000, 1.0, 500.0), 8_000, 0.0).cells.iter().all(Option::is_none));
        for (samples, slots) in [(1, 1), (400, 1), (800, 1), (801, 2), (8_000, 10), (8_400, 11)] {
            let found = levels(&vec![0.1; samples], 8_000, 1.0);
            assert_eq!(found.cells.len(), slots * 15, "{samples} samples");
        }
    }
}
