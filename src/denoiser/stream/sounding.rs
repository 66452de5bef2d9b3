//! The frames of a block that are not digital silence.

use crate::random::SeedTree;
use crate::transform::FrameGrid;
use crate::wiener::sparing;
use rand::RngExt;

/// Frames with a mean power below this fraction of that of their block count as digital silence.
const SILENCE: f32 = 1e-9;
/// A recording with fewer frames, 0.6 s, may have no pause: its noise is unknown, and the network may take the voice for it.
const SHORT_FRAMES: usize = 40;
/// Frames of faint noise before and after such a recording, 0.5 s each.
const SURROUNDING_FRAMES: usize = 31;
/// Power of that noise relative to the recording: -40 dB.
const FAINT: f64 = 1e-4;
/// Power of the noise that digital silence is filled with, relative to the other frames: -50 dB.
const FILL: f64 = 1e-5;
/// Where at least this ratio is kept once silence is filled, dB, there is a voice with hardly any noise.
const CLEAN_DB: f64 = 15.0;

/// Frames without digital silence, which carries no information on the noise elsewhere.
pub(super) struct Sounding<'a> {
    /// Powers of the whole block, bins x frames.
    pub block: &'a [f32],
    /// Powers, bins x frames.
    pub power: Vec<f32>,
    bins: usize,
    /// The frames of the block that they are.
    places: Vec<usize>,
    /// Frames of faint noise before them.
    lead: usize,
}

impl<'a> Sounding<'a> {
    /// The sounding frames of a block of powers (bins x frames).
    pub(super) fn new(block: &'a [f32], bins: usize) -> Self {
        let frame = |t: usize| &block[t * bins..(t + 1) * bins];
        let is_silent = |t: &usize| frame(*t).iter().sum::<f32>() <= SILENCE * bins as f32;
        let places: Vec<usize> = (0..block.len() / bins).filter(|t| !is_silent(t)).collect();
        let power = places.iter().flat_map(|&t| frame(t).iter().copied()).collect();
        Self { block, power, bins, places, lead: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether the frames, of a recording, are too few for a pause.
    pub(super) fn is_short(&self) -> bool {
        self.places.len() < SHORT_FRAMES
    }

    /// Puts noise before and after the frames: that of the profile, or else faint white noise, in no bin more than the
    /// recording.
    pub(super) fn surround(&mut self, noise_profile: Option<&[f32]>, seeds: SeedTree) {
        let mut noise = vec![0.0; self.bins];
        for frame in self.power.chunks_exact(self.bins) {
            noise.iter_mut().zip(frame).for_each(|(sum, &x)| *sum += f64::from(x) / self.places.len() as f64);
        }
        let white = FAINT * noise.iter().sum::<f64>() / self.bins as f64;
        noise.iter_mut().for_each(|mean| *mean = mean.min(white));
        if let Some(profile) = noise_profile {
            noise = profile.iter().copied().map(f64::from).collect();
        }
        let mut draw = noise_powers(seeds);
        let frames = self.places.len() + 2 * SURROUNDING_FRAMES;
        let mut power: Vec<f32> = (0..frames).flat_map(|_| &noise).map(|&mean| draw(mean)).collect();
        // The noise goes on where the windows reach beyond the ends of the recording.
        let within = power[SURROUNDING_FRAMES * self.bins..].iter_mut().zip(&self.power);
        within.for_each(|(noise, &x)| *noise = noise.max(x));
        self.power = power;
        self.lead = SURROUNDING_FRAMES;
    }

    /// The powers of the whole block with its silence filled by faint white noise; `None` without silence.
    pub(super) fn filled(&self, seeds: SeedTree) -> Option<Vec<f32>> {
        if self.power.len() == self.block.len() {
            return None;
        }
        let sum: f64 = self.power.iter().map(|&x| f64::from(x)).sum();
        let mean = FILL * sum / self.power.len() as f64;
        let mut draw = noise_powers(seeds);
        Some(self.block.iter().map(|&x| x.max(draw(mean))).collect())
    }

    /// Raises `gain` (bins x frames), as many as there are powers, to `filled`, that of the whole block with its silence
    /// filled, if that keeps nearly all: without pauses a clean voice passes for noise in places.
    pub(super) fn raise_clean(&self, gain: &mut [f32], filled: &[f32], grid: FrameGrid) {
        let bins = self.bins;
        let filled: Vec<f32> =
            self.places.iter().flat_map(|&t| filled[t * bins..(t + 1) * bins].iter().copied()).collect();
        if sparing::kept_above_rumble_db(&filled, &self.power, grid) >= CLEAN_DB {
            gain.iter_mut().zip(filled).for_each(|(gain, filled)| *gain = gain.max(filled));
        }
    }

    /// Raises `values` (bins x frames), as many as there are powers, to those of the frames without their surroundings.
    pub(super) fn raise(&self, values: &mut [f32], alone: &[f32]) {
        let within = values[self.lead * self.bins..].iter_mut().zip(alone);
        within.for_each(|(value, &alone)| *value = value.max(alone));
    }

    /// Copies `values` (bins x frames), as many as there are powers, to the frames of the block.
    pub(super) fn place(&self, values: &[f32], block: &mut [f32]) {
        let bins = self.bins;
        for (&t, frame) in self.places.iter().zip(values.chunks_exact(bins).skip(self.lead)) {
            block[t * bins..(t + 1) * bins].copy_from_slice(frame);
        }
    }
}

/// Draws powers of noise, by their mean: they are distributed exponentially.
fn noise_powers(seeds: SeedTree) -> impl FnMut(f64) -> f32 {
    let mut random = seeds.rng(0);
    move |mean| (-mean * libm::log(1.0 - random.random::<f64>())) as f32
}
