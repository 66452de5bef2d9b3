//! The level of the voice band by band, with intervals that say how sure it is.
//!
//! The posterior of a bin has the mean `gain`, in units of its power: summed over a band and a slot of time, that is the
//! expected power of the voice. How far the true one may be from it goes by what share of the cell's power it is, by how
//! unevenly the gain lies in the cell, and by what the model says of it, before it is pooled_gain with the listener; by the
//! same three of all bands together, and by their means over the last second. Three quantiles follow from these by a
//! [small network](quantiles), learned by quantile regression (Koenker and Bassett 1978) on mixtures for development.

mod quantiles;
mod weights;

use self::quantiles::{INPUTS, Quantiles};
use crate::transform::FrameGrid;
use std::ops::Range;

/// Duration of a slot, s.
const SLOT_SECONDS: f64 = 0.1;
/// Third octaves, counted from that of 1 kHz, from the one around 125 Hz to the one around 20 kHz.
const BANDS: Range<i32> = -9..14;
/// Shares of a power are held this far from nothing and from all.
const LEAST_SHARE: f64 = 1e-4;
/// How much louder than all that was recorded the voice may be, dB: one of five hundred is.
const MOST_ABOVE: f64 = 1.0;
/// What a mean over the last slots keeps of what was before, from slot to slot: it looks back by a second.
const KEPT: f64 = 0.9;

/// The level of the voice in third octaves and slots of 100 ms, each with an interval that holds the true one in nine of
/// ten cases, on noises as those it was fitted to; see the results of the evaluation for how well it does by kind of noise.
///
/// The level of a cell is the mean square of what the band holds, over the frames whose middle lies in the slot, against
/// full scale ±1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpeechLevels {
    /// Where the bands begin and end, Hz: one more than there are bands.
    pub edges_hertz: Vec<f64>,
    /// Duration of a slot, s.
    pub slot_seconds: f64,
    /// The number of the first slot, from the start of the recording.
    pub first_slot: u64,
    /// Bands x slots; none where the recording is silent or all of it was taken out.
    pub cells: Vec<Option<SpeechLevel>>,
}

/// The level of the voice in one band and slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeechLevel {
    /// As likely too high as too low, dBFS.
    pub level_dbfs: f64,
    /// One of twenty is below this, dBFS.
    pub lower_dbfs: f64,
    /// One of twenty is above this, dBFS.
    pub upper_dbfs: f64,
}

/// Sums over a band and a slot, weighted by powers.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    power: f64,
    /// Of the gain, of its square, and of the model's gain.
    gain: f64,
    gain_square: f64,
    model: f64,
}

/// Gathers cells from frames, as they are done.
#[derive(Debug)]
pub(super) struct LevelMeter {
    edges_hertz: Vec<f64>,
    /// The bins of every band.
    bins: Vec<Range<usize>>,
    /// Middle of the first frame, and distance of frames, s.
    first_seconds: f64,
    frame_seconds: f64,
    /// Frames so far.
    frames: u64,
    /// The slot that is being filled, its cells, and how many frames are in it.
    slot: u64,
    cells: Vec<Cell>,
    count: usize,
    recent: Recent,
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

    /// The log odds of the voice's share of the power, by the gain and by the model, and the logarithm of how uneven the gain
    /// is; none of silence, or if all of it was taken out.
    fn shares(&self) -> Option<[f64; 3]> {
        let Self { power, gain, gain_square, model } = *self;
        if !(power > 0.0 && gain > 0.0) {
            return None;
        }
        let log_odds = |part: f64| {
            let share = (part / power).min(1.0);
            libm::log((share + LEAST_SHARE) / (1.0 - share + LEAST_SHARE))
        };
        let unevenness = libm::log((gain_square / gain * (power / gain)).max(1.0));
        Some([log_odds(gain), log_odds(model), unevenness])
    }
}

/// Means over the last slots, the later ones counting more.
#[derive(Debug, Clone, Copy, Default)]
struct Recent {
    sums: [f64; 3],
    weight: f64,
}

impl Recent {
    /// The means with the next values.
    fn push(&mut self, values: [f64; 3]) -> [f64; 3] {
        self.weight = KEPT * self.weight + (1.0 - KEPT);
        for (sum, value) in self.sums.iter_mut().zip(values) {
            *sum = KEPT * *sum + (1.0 - KEPT) * value;
        }
        self.sums.map(|sum| sum / self.weight)
    }
}

impl LevelMeter {
    /// For frames on this grid, with windows of so many seconds.
    pub(super) fn new(grid: FrameGrid, window_seconds: f64) -> Self {
        let edge = |band: i32| 1000.0 * libm::exp2((f64::from(band) - 0.5) / 3.0);
        // Windows of some rates are rounded: half the rate is that of the highest bin, nearly.
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
            done: Vec::new(),
            taken: 0,
        }
    }

    /// Takes the next frame: the mean squares that its bins stand for, the gain, and that of the model.
    pub(super) fn push(&mut self, squares: &[f64], gain: &[f32], model: &[f32]) {
        let seconds = self.first_seconds + self.frames as f64 * self.frame_seconds;
        self.frames += 1;
        if seconds < 0.0 {
            return;
        }
        // Against what rounding takes from a frame in the middle of which a slot begins.
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

    /// Ends the recording after so many seconds: slots begin before that.
    pub(super) fn finish(&mut self, seconds: f64) {
        let slots = (seconds / SLOT_SECONDS - 1e-9).ceil() as u64;
        while self.slot < slots {
            self.end_slot();
        }
        let beyond = (self.slot - slots) as usize * self.cells.len();
        self.done.truncate(self.done.len().saturating_sub(beyond));
    }

    /// The cells that are done and were not taken yet.
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
        let slot = all.shares().map(|slot| (slot, self.recent.push(slot)));
        self.done.extend(self.cells.iter_mut().map(std::mem::take).enumerate().map(|(band, cell)| {
            let (shares, (slot, recent)) = (cell.shares()?, slot?);
            let mut inputs = [0.0; INPUTS];
            inputs.iter_mut().zip(shares.iter().chain(&slot).chain(&recent)).for_each(|(to, x)| *to = *x);
            let [recorded, expected] =
                [cell.power, cell.gain].map(|square| 10.0 * libm::log10(square / frames as f64));
            tracing::trace!(slot = number, band, recorded, expected, ?inputs, "cell");
            let Quantiles { median, below, above } = Quantiles::of(&inputs);
            let level_dbfs = (expected + median).min(recorded);
            Some(SpeechLevel {
                level_dbfs,
                lower_dbfs: level_dbfs - below,
                upper_dbfs: (level_dbfs + above).min(recorded + MOST_ABOVE),
            })
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::{DEFAULT_WINDOW_SECONDS, Stft};

    /// The levels of samples of which every bin is the voice's by this gain.
    fn levels(samples: &[f32], rate: u32, gain: f32) -> SpeechLevels {
        let stft = Stft::new(rate, DEFAULT_WINDOW_SECONDS).unwrap();
        let (bins, window) = (stft.bins(), stft.window() as f64);
        let mut meter = LevelMeter::new(stft.grid(), window / f64::from(rate));
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
    fn no_voice_is_much_louder_than_what_was_recorded() {
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
