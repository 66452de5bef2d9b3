//! The level of the voice band by band, with intervals that say how sure it is.
//!
//! The posterior of a bin has the mean `gain`, in units of its power: summed over a band and a slot of time, that is the
//! expected power of the voice. How far the true one may be from it goes by what share of the cell's power it is, by how
//! unevenly the gain lies in the cell, and by what the model says of it, before it is pooled with the listener. Three
//! quantiles are fitted to these by quantile regression (Koenker and Bassett 1978) on mixtures for development. How the
//! gain varies between draws is not among them: with it, they are no better.

use crate::transform::FrameGrid;
use std::ops::Range;

/// Duration of a slot, s.
const SLOT_SECONDS: f64 = 0.1;
/// Third octaves, counted from that of 1 kHz, from the one around 125 Hz to the one around 20 kHz.
const BANDS: Range<i32> = -9..14;
/// Shares of a power are held this far from nothing and from all.
const LEAST_SHARE: f64 = 1e-4;
/// Where quantiles are given, in log odds of the voice's share of a cell's power; they are straight in between.
const KNOTS: [f64; 6] = [-6.0, -3.0, -1.0, 1.0, 3.0, 6.0];

/// How a quantile goes by what is known of a cell.
struct Quantile {
    /// At [`KNOTS`].
    knots: [f64; 6],
    /// Per unit of the log odds of the voice's share by the model.
    model: f64,
    /// Per unit of the logarithm of the gain's unevenness.
    unevenness: f64,
}

/// The median, dB above the expected power.
const MEDIAN: Quantile =
    Quantile { knots: [-10.38, -2.03, 0.71, 0.43, 0.1, 0.0], model: 0.0, unevenness: 1.24 };
/// The logarithm of the distance from it to what one of twenty is below, dB.
const DOWN: Quantile =
    Quantile { knots: [3.255, 3.205, 2.705, 2.155, 1.875, -1.735], model: 0.259, unevenness: -0.53 };
/// The logarithm of the distance from it to what one of twenty is above, dB.
const UP: Quantile =
    Quantile { knots: [2.97, 2.51, 1.7, 0.04, -1.24, -2.56], model: -0.009, unevenness: -0.25 };

/// The level of the voice in third octaves and slots of 100 ms, each with an interval that holds the true one in nine of
/// ten cases, on noises as those it was fitted to; see the results of the evaluation for how well it does by kind of noise.
///
/// The level of a cell is the mean square of what the band holds, over the frames whose middle lies in the slot, against
/// full scale ±1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VoiceLevels {
    /// Where the bands begin and end, Hz: one more than there are bands.
    pub edges_hertz: Vec<f64>,
    /// Duration of a slot, s.
    pub slot_seconds: f64,
    /// The number of the first slot, from the start of the recording.
    pub first_slot: u64,
    /// Bands x slots; none where the recording is silent or all of it was taken out.
    pub cells: Vec<Option<VoiceLevel>>,
}

/// The level of the voice in one band and slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VoiceLevel {
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
    done: Vec<Option<VoiceLevel>>,
    taken: u64,
}

impl Quantile {
    /// At some log odds of the voice's share.
    fn at(&self, log_odds: f64, model: f64, unevenness: f64) -> f64 {
        let place = log_odds.clamp(KNOTS[0], KNOTS[5]);
        let next = KNOTS.iter().position(|&knot| place <= knot).map_or(5, |next| next.max(1));
        let share = (place - KNOTS[next - 1]) / (KNOTS[next] - KNOTS[next - 1]);
        let on_knots = self.knots[next - 1] + share * (self.knots[next] - self.knots[next - 1]);
        on_knots + self.model * model + self.unevenness * unevenness
    }
}

impl Cell {
    /// The level in a slot of so many frames.
    fn level(&self, frames: usize) -> Option<VoiceLevel> {
        /// The logarithms of the least and the largest distance of a quantile from the median, dB.
        const DISTANCES: (f64, f64) = (-6.0, 4.5);
        let Self { power, gain, gain_square, model } = *self;
        if !(power > 0.0 && gain > 0.0) {
            return None;
        }
        let log_odds = |part: f64| {
            let share = (part / power).min(1.0);
            libm::log((share + LEAST_SHARE) / (1.0 - share + LEAST_SHARE))
        };
        let (odds, model) = (log_odds(gain), log_odds(model));
        let unevenness = libm::log((gain_square / gain * (power / gain)).max(1.0));
        let quantile = |quantile: &Quantile| quantile.at(odds, model, unevenness);
        let distance = |of: &Quantile| libm::exp(quantile(of).clamp(DISTANCES.0, DISTANCES.1));
        let level_dbfs = 10.0 * libm::log10(gain / frames as f64) + quantile(&MEDIAN);
        Some(VoiceLevel {
            level_dbfs,
            lower_dbfs: level_dbfs - distance(&DOWN),
            upper_dbfs: level_dbfs + distance(&UP),
        })
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
    pub(super) fn take(&mut self) -> VoiceLevels {
        let cells = std::mem::take(&mut self.done);
        let first_slot = self.taken;
        self.taken += (cells.len() / self.bins.len().max(1)) as u64;
        VoiceLevels { edges_hertz: self.edges_hertz.clone(), slot_seconds: SLOT_SECONDS, first_slot, cells }
    }

    fn end_slot(&mut self) {
        let count = std::mem::take(&mut self.count);
        self.done.extend(self.cells.iter_mut().map(|cell| std::mem::take(cell).level(count)));
        self.slot += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transform::{DEFAULT_WINDOW_SECONDS, Stft};

    /// The levels of samples of which every bin is the voice's by this gain.
    fn levels(samples: &[f32], rate: u32, gain: f32) -> VoiceLevels {
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
    fn intervals_are_wider_the_less_of_the_power_is_the_voices() {
        let tone = tone(16_000, 1.0, 1000.0);
        let mut narrower = 0.0;
        for gain in [0.999, 0.9, 0.5, 0.1] {
            let VoiceLevel { level_dbfs, lower_dbfs, upper_dbfs } =
                levels(&tone, 16_000, gain).cells[5 * 18 + 9].unwrap();
            assert!(lower_dbfs < level_dbfs && level_dbfs < upper_dbfs);
            assert!(upper_dbfs - lower_dbfs > narrower, "{gain}");
            // No voice is much louder than all that was recorded.
            assert!(upper_dbfs < -23.0 + 3.0, "{gain}: {upper_dbfs}");
            narrower = upper_dbfs - lower_dbfs;
        }
        assert!(narrower > 15.0, "{narrower}");
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
