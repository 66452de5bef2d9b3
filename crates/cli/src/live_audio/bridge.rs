//! Clock-drift compensation between two audio devices.
//!
//! A bounded ring buffer holds the input. The output reads it at its own clock, through a resampler whose ratio follows
//! the fill level, so that the delay stays constant.

use crate::resampler::Resampler;
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Left and right channel; equal for mono.
pub type Frame = [f32; 2];

/// Buffered time in addition to a block of each device, in seconds: about the jitter of schedulers.
const SPARE_SECONDS: f64 = 0.005;
/// Length of the ring, in seconds: the longest delay.
const MAX_DELAY_SECONDS: f64 = 2.0;
/// Relative change of the ratio per second of excess delay: too small to be audible.
const RATIO_GAIN: f64 = 0.2;
/// Largest relative change of the ratio; clocks deviate by a tenth of it.
const MAX_HURRY: f64 = 0.005;
/// Averaging time of the delay, in seconds: longer than the blocks of devices.
const AVERAGE_SECONDS: f64 = 1.0;
/// Time for which an unusually long block counts, in seconds; at most twice as long. Devices deliver one after a delay.
const MEMORY_SECONDS: f64 = 10.0;

/// Counters of a bridge.
#[derive(Default)]
pub struct Counters {
    /// Frames in the longest input block since the last block of the output.
    input_block: AtomicU32,
    /// Average number of buffered frames.
    waiting: AtomicU32,
    came: AtomicU64,
    went: AtomicU64,
    dropped: AtomicU64,
    missing: AtomicU64,
}

impl Counters {
    /// Frames delivered by the input.
    pub fn came(&self) -> u64 {
        self.came.load(Ordering::Relaxed)
    }

    /// Frames requested by the output.
    pub fn went(&self) -> u64 {
        self.went.load(Ordering::Relaxed)
    }

    /// Input frames dropped by overruns.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Silent output frames of underruns.
    pub fn missing(&self) -> u64 {
        self.missing.load(Ordering::Relaxed)
    }

    /// Average number of buffered input frames.
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }
}

/// The input end.
pub struct Entrance {
    ring: Producer<Frame>,
    counters: Arc<Counters>,
}

/// The output end.
pub struct Exit {
    ring: Consumer<Frame>,
    counters: Arc<Counters>,
    resampler: Resampler<2>,
    /// Input frames per output frame, with exact clocks.
    nominal: f64,
    /// Sample rate of the input, Hz.
    rate: f64,
    /// The longest blocks of both devices, in input frames.
    input_block: Longest,
    output_block: Longest,
    /// Longest target delay so far, in frames.
    most_wanted: f64,
    /// Frames until the longest blocks are forgotten.
    memory: f64,
    /// Average number of buffered frames, while audio flows.
    average: Option<f64>,
    /// Whether audio has flowed; before, missing frames are not counted.
    started: bool,
}

/// Longest recent block, in frames.
#[derive(Default)]
struct Longest {
    now: f64,
    /// Longest block of the previous period.
    before: f64,
}

impl Longest {
    fn add(&mut self, block: f64) {
        self.now = self.now.max(block);
    }

    fn get(&self) -> f64 {
        self.now.max(self.before)
    }

    /// Starts a period, and forgets the one before the last.
    fn turn(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }
}

/// Creates a bridge between devices of these sample rates, in Hz.
pub fn bridge(input_rate: u32, output_rate: u32) -> (Entrance, Exit, Arc<Counters>) {
    let rate = f64::from(input_rate);
    let (producer, consumer) = RingBuffer::new((MAX_DELAY_SECONDS * rate) as usize);
    let counters = Arc::new(Counters::default());
    let exit = Exit {
        ring: consumer,
        counters: Arc::clone(&counters),
        resampler: Resampler::new((f64::from(output_rate) / rate).min(1.0)),
        nominal: rate / f64::from(output_rate),
        rate,
        input_block: Longest::default(),
        output_block: Longest::default(),
        most_wanted: 0.0,
        memory: MEMORY_SECONDS * rate,
        average: None,
        started: false,
    };
    (Entrance { ring: producer, counters: Arc::clone(&counters) }, exit, counters)
}

impl Entrance {
    /// Announces a device block of `length` frames, which [`Self::push`] receives in parts.
    pub fn begin_block(&self, length: usize) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.counters.input_block.fetch_max(length, Ordering::Relaxed);
    }

    /// Buffers a part of a block. Frames beyond the capacity are dropped and counted.
    pub fn push(&mut self, frames: impl ExactSizeIterator<Item = Frame>) {
        self.counters.came.fetch_add(frames.len() as u64, Ordering::Relaxed);
        let dropped = frames.filter(|frame| self.ring.push(*frame).is_err()).count();
        self.counters.dropped.fetch_add(dropped as u64, Ordering::Relaxed);
    }
}

impl Exit {
    /// Target delay for an output block of `block` input frames, in frames.
    fn wanted(&mut self, block: f64) -> f64 {
        self.output_block.add(block);
        self.input_block.add(self.counters.input_block.swap(0, Ordering::Relaxed).into());
        let wanted = self.output_block.get() + self.input_block.get() + SPARE_SECONDS * self.rate;
        self.most_wanted = self.most_wanted.max(wanted);
        self.memory -= block;
        if self.memory <= 0.0 {
            self.memory = MEMORY_SECONDS * self.rate;
            self.output_block.turn();
            self.input_block.turn();
        }
        wanted
    }

    /// Fills a block of the output.
    pub fn fill(&mut self, output: impl ExactSizeIterator<Item = impl FnMut(Frame)>) {
        self.counters.went.fetch_add(output.len() as u64, Ordering::Relaxed);
        let count = output.len() as f64;
        let wanted = self.wanted(count * self.nominal);
        let mut waiting = self.ring.slots() as f64;
        // A decrease of the target delay is followed slowly, without a gap.
        if waiting > 2.0 * self.most_wanted + SPARE_SECONDS * self.rate {
            let dropped = (waiting - wanted) as usize;
            let _last = (0..dropped).map_while(|_| self.ring.pop().ok()).last();
            self.counters.dropped.fetch_add(dropped as u64, Ordering::Relaxed);
            self.average = self.average.map(|_| wanted);
            waiting = wanted;
        }
        if self.average.is_none() && waiting >= wanted && self.input_block.get() > 0.0 {
            self.average = Some(wanted);
            self.started = true;
        }
        let mut hurry = 0.0;
        if let Some(average) = &mut self.average {
            *average +=
                (count / (AVERAGE_SECONDS * self.rate / self.nominal)).min(1.0) * (waiting - *average);
            hurry = (RATIO_GAIN * (*average - wanted) / self.rate).clamp(-MAX_HURRY, MAX_HURRY);
            self.counters.waiting.store(*average as u32, Ordering::Relaxed);
        }
        let step = self.nominal * (1.0 + hurry);
        let mut missing = 0;
        for mut place in output {
            let frame = self.average.and_then(|_| self.resampler.next(step, || self.ring.pop().ok()));
            if frame.is_none() {
                // Playback restarts when enough frames are buffered.
                self.average = None;
                missing += 1;
            }
            place(frame.unwrap_or_default());
        }
        if self.started {
            self.counters.missing.fetch_add(missing, Ordering::Relaxed);
        }
    }
}

/// A range of sample rates of a device, in Hz.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    pub least_rate: u32,
    pub most_rate: u32,
}

/// Rates tried in turn: at a common rate there is no resampling.
const COMMON_RATES: [u32; 6] = [48_000, 44_100, 96_000, 32_000, 16_000, 8_000];

/// Chooses the sample rates of input and output: a common one, preferably the default of the input; else both defaults.
pub fn choose_rates(input: &[Offer], output: &[Offer], own: (u32, u32)) -> (u32, u32) {
    let has = |offers: &[Offer], rate| {
        offers.iter().any(|offer| (offer.least_rate..=offer.most_rate).contains(&rate))
    };
    let tried = [own.0, own.1].into_iter().chain(COMMON_RATES);
    let mut both = tried.filter(|&rate| has(input, rate) && has(output, rate));
    both.next().map_or(own, |rate| (rate, rate))
}

/// Index of the device with this ID or name, or with this substring if it is unique.
pub fn find(devices: &[(String, String)], wanted: &str) -> Option<usize> {
    let exactly = devices.iter().position(|(id, name)| id == wanted || name == wanted);
    let wanted = wanted.to_lowercase();
    let mut partly = devices.iter().enumerate().filter(|(_, (id, name))| {
        id.to_lowercase().contains(&wanted) || name.to_lowercase().contains(&wanted)
    });
    exactly.or_else(|| match (partly.next(), partly.next()) {
        (Some((place, _)), None) => Some(place),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
