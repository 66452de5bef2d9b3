//! The frames of a block that are not digital silence.

use crate::random::SeedTree;
use crate::transform::FrameGrid;
use crate::wiener::sparing;
use rand::RngExt;

/// Frames with a mean power below this fraction of that of their block count as digital silence.
const SILENCE: f32 = 1e-9;
/// Minimum number of frames, 0.6 s, of a recording with pauses. In a shorter one the noise cannot be estimated, and the
/// network may classify the voice as noise.
const SHORT_FRAMES: usize = 40;
/// Number of frames of faint noise before and after such a short recording, 0.5 s each.
const SURROUNDING_FRAMES: usize = 31;
/// Power of the faint noise relative to the recording: -40 dB.
const FAINT: f64 = 1e-4;
/// Power of the noise that digital silence is filled with, relative to the other frames: -50 dB.
const FILL: f64 = 1e-5;
/// Minimum ratio of kept to removed power, after silence is filled, of a voice with hardly any noise, dB.
const CLEAN_DB: f64 = 15.0;

/// Frames without digital silence, which carries no information on the noise elsewhere.
pub(super) struct Sounding<'a> {
    /// Powers of the whole block, bins x frames.
    pub block: &'a [f32],
    /// Powers of these frames, and of any noise around them, bins x frames.
    pub power: Vec<f32>,
    bins: usize,
    /// Index of each sounding frame in the block.
    frame_indices: Vec<usize>,
    /// Number of frames of noise before the sounding frames.
    lead: usize,
}

impl<'a> Sounding<'a> {
    /// The sounding frames of a block of powers (bins x frames).
    pub(super) fn new(block: &'a [f32], bins: usize) -> Self {
        let frame = |t: usize| &block[t * bins..(t + 1) * bins];
        let is_silent = |t: &usize| frame(*t).iter().sum::<f32>() <= SILENCE * bins as f32;
        let frame_indices: Vec<usize> = (0..block.len() / bins).filter(|t| !is_silent(t)).collect();
        let power = frame_indices.iter().flat_map(|&t| frame(t).iter().copied()).collect();
        Self { block, power, bins, frame_indices, lead: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frame_indices.is_empty()
    }

    /// Whether a recording of these frames is too short for a pause.
    pub(super) fn is_short(&self) -> bool {
        self.frame_indices.len() < SHORT_FRAMES
    }

    /// Adds noise before and after the frames: that of the profile, or else faint white noise, in no bin more than the
    /// recording.
    pub(super) fn surround(&mut self, noise_profile: Option<&[f32]>, seeds: SeedTree) {
        let mut noise = vec![0.0; self.bins];
        for frame in self.power.chunks_exact(self.bins) {
            noise
                .iter_mut()
                .zip(frame)
                .for_each(|(sum, &x)| *sum += f64::from(x) / self.frame_indices.len() as f64);
        }
        let white = FAINT * noise.iter().sum::<f64>() / self.bins as f64;
        noise.iter_mut().for_each(|mean| *mean = mean.min(white));
        if let Some(profile) = noise_profile {
            noise = profile.iter().copied().map(f64::from).collect();
        }
        let mut draw = noise_powers(seeds);
        let frames = self.frame_indices.len() + 2 * SURROUNDING_FRAMES;
        let mut power: Vec<f32> = (0..frames).flat_map(|_| &noise).map(|&mean| draw(mean)).collect();
        // The noise continues in frames whose windows extend beyond the ends of the recording.
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

    /// Raises `gain` (bins x sounding frames) to `filled`, the gain of the whole block with its silence filled, if that
    /// keeps nearly all power. Without pauses, parts of a clean voice are classified as noise.
    pub(super) fn raise_clean(&self, gain: &mut [f32], filled: &[f32], grid: FrameGrid) {
        let bins = self.bins;
        let filled: Vec<f32> = self
            .frame_indices
            .iter()
            .flat_map(|&t| filled[t * bins..(t + 1) * bins].iter().copied())
            .collect();
        if sparing::kept_above_rumble_db(&filled, &self.power, grid) >= CLEAN_DB {
            gain.iter_mut().zip(filled).for_each(|(gain, filled)| *gain = gain.max(filled));
        }
    }

    /// Raises `values`, shaped as the powers with the noise around them, to `alone`, those of the frames without it.
    pub(super) fn raise_to_isolated(&self, values: &mut [f32], alone: &[f32]) {
        let within = values[self.lead * self.bins..].iter_mut().zip(alone);
        within.for_each(|(value, &alone)| *value = value.max(alone));
    }

    /// Copies `values`, shaped as the powers (bins x frames), to the corresponding frames of the block.
    pub(super) fn place(&self, values: &[f32], block: &mut [f32]) {
        let bins = self.bins;
        for (&t, frame) in self.frame_indices.iter().zip(values.chunks_exact(bins).skip(self.lead)) {
            block[t * bins..(t + 1) * bins].copy_from_slice(frame);
        }
    }
}

/// Returns a function that draws noise powers from the exponential distribution with a given mean.
fn noise_powers(seeds: SeedTree) -> impl FnMut(f64) -> f32 {
    let mut random = seeds.rng(0);
    move |mean| (-mean * libm::log(1.0 - random.random::<f64>())) as f32
}
