//! State of a stream between blocks: model state, overlapping gains, powers of finished frames and their unit.

use crate::denoiser::block::BlockState;
use crate::denoiser::front_end::{BLOCK_FRAMES, FrontEnd};
use crate::random::SeedTree;
use crate::transform::{Spectrogram, bin_power};
use crate::wiener::floor::apply_floor;
use crate::wiener::sparing::spare;
use std::borrow::Cow;
use std::ops::Range;

/// Minimum number of frames of a last block. A shorter one is separated together with finished frames before it, whose
/// output is unchanged.
const MIN_FRAMES: usize = BLOCK_FRAMES / 2;
/// Frames at the end of a block that the next block separates again; their gains are cross-faded.
pub(super) const OVERLAP_FRAMES: usize = 32;
/// Maximum amplitude, 300 dB above full scale, whose power does not overflow. Larger amplitudes are stored in a larger
/// unit.
const MAX_AMPLITUDE: f32 = 1e15;

/// The gains of a block, bins x frames.
pub(super) struct BlockGains {
    /// Gain before the floor.
    pub gain: Vec<f32>,
    /// Minimum gain per bin.
    pub floor: Vec<f32>,
    /// Weight of the gain with its floor, 0 to 1; below one in blocks with little noise.
    pub weight: f32,
    /// Standard deviation over the draws; empty without draws or if not requested.
    pub gain_std: Vec<f32>,
    /// Gain before fusion with speech presence; empty if not requested.
    pub model_gain: Vec<f32>,
}

/// The gains of some frames, bins x frames.
#[derive(Clone, Default)]
pub(super) struct FrameGains {
    pub gain: Vec<f32>,
    /// The gain with its floor, faded towards one by its weight.
    pub applied: Vec<f32>,
    pub gain_std: Vec<f32>,
    pub model_gain: Vec<f32>,
}

/// The frames of a block.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// Number of waiting frames.
    pub frames: usize,
    /// Whether they are the last of the recording.
    pub last: bool,
    /// Number of finished frames before them in the block.
    pub context: usize,
}

impl Span {
    /// Number of waiting frames that the block finishes: all but the overlap with the next one.
    pub(super) fn done(self) -> usize {
        if self.last { self.frames } else { self.frames - OVERLAP_FRAMES }
    }
}

/// The state of a stream between blocks.
pub(super) struct BlockMemory {
    seeds: SeedTree,
    /// Blocks with sound so far, the present one included.
    blocks: u64,
    /// Factor from amplitudes to the unit in which powers are stored.
    unit: f32,
    /// Inverse of the mean power of the last block that was not silent.
    scale: f32,
    /// Model state after the last block.
    pub previous: Option<BlockState>,
    /// Mean power of the noise per bin to start from, if given.
    pub noise_profile: Option<Vec<f32>>,
    /// Powers (bins x frames) of the last finished frames, which a short last block includes.
    done_power: Vec<f32>,
    /// Gains of the first waiting frames in the last block.
    overlap: FrameGains,
}

impl BlockMemory {
    /// The state before the first block.
    pub(super) fn new(seeds: SeedTree) -> Self {
        Self {
            seeds,
            blocks: 0,
            unit: 1.0,
            scale: 1.0,
            previous: None,
            noise_profile: None,
            done_power: Vec::new(),
            overlap: FrameGains::default(),
        }
    }

    /// The state of one channel after the division of the channels that shared this one. The model is reset; the
    /// overlapping gains are kept for the cross-fade.
    pub(super) fn of_one_channel(&self, noise_profile: Option<Vec<f32>>) -> Self {
        Self { blocks: self.blocks, noise_profile, overlap: self.overlap.clone(), ..Self::new(self.seeds) }
    }

    /// The span of a block of `frames` waiting frames. A short last block includes finished frames.
    pub(super) fn span(&self, frames: usize, last: bool, bins: usize) -> Span {
        let missing = if last { MIN_FRAMES.saturating_sub(frames) } else { 0 };
        Span { frames, last, context: missing.min(self.done_power.len() / bins) }
    }

    /// Chooses the unit so that the powers of the waiting frames of these channels are within the range of single precision.
    pub(super) fn choose_unit(&mut self, front_end: &FrontEnd, channels: Range<usize>) {
        let waiting = of_channels(front_end, channels).flat_map(Spectrogram::as_slice);
        let peak = waiting.fold(0.0_f32, |peak, x| peak.max(x.re.abs()).max(x.im.abs()));
        let unit = if peak > MAX_AMPLITUDE { MAX_AMPLITUDE / peak } else { 1.0 };
        if unit != self.unit {
            let ratio = (f64::from(unit) / f64::from(self.unit)).powi(2);
            let rescale =
                |x: f32, ratio: f64| (f64::from(x) * ratio).min(f64::from(MAX_AMPLITUDE).powi(2)) as f32;
            self.done_power.iter_mut().for_each(|x| *x = rescale(*x, ratio));
            self.scale = rescale(self.scale, 1.0 / ratio).max(f32::MIN_POSITIVE);
            self.unit = unit;
        }
    }

    /// The powers of a block (bins x frames), summed over these channels.
    pub(super) fn power(&mut self, front_end: &FrontEnd, channels: Range<usize>, span: Span) -> Vec<f32> {
        let (bins, done, Span { frames, last, context }) = (front_end.stft().bins(), span.done(), span);
        let mut power = self.done_power.split_off(self.done_power.len() - context * bins);
        power.resize((context + frames) * bins, 0.0);
        for waiting in of_channels(front_end, channels) {
            let values = power[context * bins..].iter_mut().zip(waiting.as_slice());
            values.for_each(|(sum, x)| *sum += (x * self.unit).norm_sqr());
        }
        if !last {
            self.done_power = power[done.saturating_sub(MIN_FRAMES) * bins..done * bins].to_vec();
        }
        power
    }

    /// Scales powers to a mean of one, and the state of the model with them. Returns false for silence.
    pub(super) fn rescale(&mut self, power: &mut [f32], alpha_noise: f64) -> bool {
        let mean = (power.iter().map(|&x| f64::from(x)).sum::<f64>() / power.len() as f64) as f32;
        if mean == 0.0 {
            return false;
        }
        let scale = 1.0 / mean.max(f32::MIN_POSITIVE);
        if let Some(previous) = &mut self.previous {
            previous.scale_power(scale / self.scale, alpha_noise);
        }
        self.scale = scale;
        power.iter_mut().for_each(|x| *x *= scale);
        true
    }

    /// The noise profile in the unit of the last block.
    pub(super) fn scaled_noise_profile(&self) -> Option<Vec<f32>> {
        let scaled = |x: &f32| x * self.unit * self.unit * self.scale;
        self.noise_profile.as_ref().map(|power| power.iter().map(scaled).collect())
    }

    /// Whether the present block is the first one with sound.
    pub(super) fn is_first(&self) -> bool {
        self.blocks == 1
    }

    /// The seeds of the next block.
    pub(super) fn next_seeds(&mut self) -> SeedTree {
        let seeds = self.seeds.child(self.blocks);
        self.blocks += 1;
        seeds
    }

    /// The gains of the finished frames of a block, cross-faded with those of the last one.
    pub(super) fn join(&mut self, block: BlockGains, span: Span, bins: usize) -> FrameGains {
        let mut applied = block.gain.clone();
        apply_floor(&mut applied, &block.floor);
        if block.weight < 1.0 {
            spare(&mut applied, block.weight);
        }
        let join = |overlap: &mut Vec<f32>, mut values: Vec<f32>| {
            if !values.is_empty() {
                values.drain(..span.context * bins);
                cross_fade(overlap, &mut values, bins);
                *overlap = values.split_off(span.done() * bins);
            }
            values
        };
        FrameGains {
            gain: join(&mut self.overlap.gain, block.gain),
            applied: join(&mut self.overlap.applied, applied),
            gain_std: join(&mut self.overlap.gain_std, block.gain_std),
            model_gain: join(&mut self.overlap.model_gain, block.model_gain),
        }
    }

    /// Reverberation time per octave, s; `None` without an estimate.
    pub(super) fn reverberation_seconds(&self) -> [Option<f64>; 6] {
        self.previous.as_ref().map_or([None; 6], |previous| previous.decays.seconds())
    }
}

/// The waiting frames of these channels.
fn of_channels(front_end: &FrontEnd, channels: Range<usize>) -> impl Iterator<Item = &Spectrogram> {
    front_end.spectrograms().skip(channels.start).take(channels.len())
}

/// The gains of a channel: all share one, or each has its own.
pub(super) fn of_channel(gains: &[FrameGains], channel: usize) -> &FrameGains {
    if gains.len() == 1 { &gains[0] } else { &gains[channel] }
}

/// The gains of all channels together for their first waiting frames: means weighted by power if each has its own gain.
pub(super) fn together<'a>(gains: &'a [FrameGains], front_end: &FrontEnd) -> Cow<'a, FrameGains> {
    if let [shared] = gains {
        return Cow::Borrowed(shared);
    }
    let mean = |values: fn(&FrameGains) -> &[f32]| -> Vec<f32> {
        (0..values(&gains[0]).len())
            .map(|i| {
                let (mut sum, mut whole) = (0.0, 0.0);
                for (gains, waiting) in gains.iter().zip(front_end.spectrograms()) {
                    let power = bin_power(&waiting.as_slice()[i]);
                    sum += power * f64::from(values(gains)[i]);
                    whole += power;
                }
                if whole > 0.0 { (sum / whole) as f32 } else { 0.0 }
            })
            .collect()
    };
    Cow::Owned(FrameGains {
        gain: mean(|gains| &gains.gain),
        applied: mean(|gains| &gains.applied),
        gain_std: mean(|gains| &gains.gain_std),
        model_gain: mean(|gains| &gains.model_gain),
    })
}

/// Fades from the values of the last block (bins x overlap) to those of this one (bins x frames).
fn cross_fade(before: &[f32], values: &mut [f32], bins: usize) {
    for (i, (value, &before)) in values.iter_mut().zip(before).enumerate() {
        let weight = (i / bins + 1) as f32 / (OVERLAP_FRAMES + 1) as f32;
        *value = before + weight * (*value - before);
    }
}
