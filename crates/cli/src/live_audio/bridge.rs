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

/// Buffered time beside a block of either device, in seconds: about the jitter of schedulers.
const SPARE_SECONDS: f64 = 0.005;
/// Length of the ring, in seconds: the longest delay.
const LONGEST_SECONDS: f64 = 2.0;
/// Relative change of the ratio per second of excess delay: too small to be audible.
const HURRY: f64 = 0.2;
/// Largest relative change; clocks deviate by a tenth of it.
const MAX_HURRY: f64 = 0.005;
/// Averaging time of the delay, in seconds: longer than the blocks of devices.
const AVERAGE_SECONDS: f64 = 1.0;
/// A longer block than the others counts for this time to twice as long, in seconds: devices that were held up have one.
const MEMORY_SECONDS: f64 = 10.0;

/// Counters of a bridge.
#[derive(Default)]
pub struct Known {
    /// Frames in the longest block of the input that the output has not taken note of.
    input_block: AtomicU32,
    /// Average number of buffered frames.
    waiting: AtomicU32,
    came: AtomicU64,
    went: AtomicU64,
    dropped: AtomicU64,
    missing: AtomicU64,
}

impl Known {
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
    known: Arc<Known>,
}

/// The output end.
pub struct Exit {
    ring: Consumer<Frame>,
    known: Arc<Known>,
    resampler: Resampler<2>,
    /// Input frames per output frame, with exact clocks.
    nominal: f64,
    /// Sample rate of the input, Hz.
    rate: f64,
    /// The longest blocks of both devices, in input frames.
    input_block: Longest,
    output_block: Longest,
    /// The longest delay that was wanted so far, in frames.
    most_wanted: f64,
    /// Frames until what is longest is forgotten.
    memory: f64,
    /// Average number of buffered frames, while audio flows.
    average: Option<f64>,
    /// Whether audio has flowed: before that, nothing is missing.
    started: bool,
}

/// The longest of the blocks that came lately, in frames.
#[derive(Default)]
struct Longest {
    now: f64,
    /// That of the time before.
    before: f64,
}

impl Longest {
    fn add(&mut self, block: f64) {
        self.now = self.now.max(block);
    }

    fn get(&self) -> f64 {
        self.now.max(self.before)
    }

    /// Forgets the time before.
    fn turn(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }
}

/// A bridge between devices of these sample rates, in Hz.
pub fn bridge(input_rate: u32, output_rate: u32) -> (Entrance, Exit, Arc<Known>) {
    let rate = f64::from(input_rate);
    let (producer, consumer) = RingBuffer::new((LONGEST_SECONDS * rate) as usize);
    let known = Arc::new(Known::default());
    let exit = Exit {
        ring: consumer,
        known: Arc::clone(&known),
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
    (Entrance { ring: producer, known: Arc::clone(&known) }, exit, known)
}

impl Entrance {
    /// A block of so many frames of the device begins, which [`Self::push`] takes in parts.
    pub fn begin_block(&self, length: usize) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.known.input_block.fetch_max(length, Ordering::Relaxed);
    }

    /// Takes a part of a block. Frames without room are dropped and counted.
    pub fn push(&mut self, frames: impl ExactSizeIterator<Item = Frame>) {
        self.known.came.fetch_add(frames.len() as u64, Ordering::Relaxed);
        let dropped = frames.filter(|frame| self.ring.push(*frame).is_err()).count();
        self.known.dropped.fetch_add(dropped as u64, Ordering::Relaxed);
    }
}

impl Exit {
    /// The delay that is wanted for a block of so many input frames.
    fn wanted(&mut self, block: f64) -> f64 {
        self.output_block.add(block);
        self.input_block.add(self.known.input_block.swap(0, Ordering::Relaxed).into());
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
        self.known.went.fetch_add(output.len() as u64, Ordering::Relaxed);
        let count = output.len() as f64;
        let wanted = self.wanted(count * self.nominal);
        let mut waiting = self.ring.slots() as f64;
        // Less than was wanted before is reached slowly, and without a gap.
        if waiting > 2.0 * self.most_wanted + SPARE_SECONDS * self.rate {
            let dropped = (waiting - wanted) as usize;
            let _last = (0..dropped).map_while(|_| self.ring.pop().ok()).last();
            self.known.dropped.fetch_add(dropped as u64, Ordering::Relaxed);
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
            hurry = (HURRY * (*average - wanted) / self.rate).clamp(-MAX_HURRY, MAX_HURRY);
            self.known.waiting.store(*average as u32, Ordering::Relaxed);
        }
        let step = self.nominal * (1.0 + hurry);
        let mut missing = 0;
        for mut place in output {
            let frame = self.average.and_then(|_| self.resampler.next(step, || self.ring.pop().ok()));
            if frame.is_none() {
                // It restarts when enough frames are buffered.
                self.average = None;
                missing += 1;
            }
            place(frame.unwrap_or_default());
        }
        if self.started {
            self.known.missing.fetch_add(missing, Ordering::Relaxed);
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
mod tests {
    use super::*;
    use std::f64::consts::PI;

    /// Fills a block, and gives its frames.
    fn fill(exit: &mut Exit, count: usize) -> Vec<Frame> {
        let mut frames = vec![[f32::NAN; 2]; count];
        exit.fill(frames.iter_mut().map(|place| move |frame| *place = frame));
        frames
    }

    /// Takes a block in parts, as the denoiser gives it.
    fn push(entrance: &mut Entrance, block: &[Frame]) {
        entrance.begin_block(block.len());
        block.chunks(256).for_each(|part| entrance.push(part.iter().copied()));
    }

    /// Lets two devices run, the input's clock wrong by a share, and gives what comes out after some seconds.
    fn devices(
        rates: (u32, u32),
        wrong: f64,
        blocks: (usize, usize),
        seconds: f64,
    ) -> (Vec<Frame>, Arc<Known>) {
        let (mut entrance, mut exit, known) = bridge(rates.0, rates.1);
        let tone = |n: usize| (n as f64 * 2.0 * PI * 440.0 / f64::from(rates.0)).sin() as f32;
        let (mut came, mut output) = (0, Vec::new());
        while (output.len() as f64) < seconds * f64::from(rates.1) {
            let time = (output.len() + blocks.1) as f64 / f64::from(rates.1);
            while ((came + blocks.0) as f64) < time * f64::from(rates.0) * (1.0 + wrong) {
                let block: Vec<Frame> = (came..came + blocks.0).map(|n| [tone(n), -tone(n)]).collect();
                push(&mut entrance, &block);
                came += blocks.0;
            }
            output.extend(fill(&mut exit, blocks.1));
        }
        (output, known)
    }

    #[test]
    fn a_tone_stays_a_tone_at_any_rates_and_clocks() {
        for (rates, wrong, blocks) in [
            ((48_000, 48_000), 0.0, (480, 512)),
            ((48_000, 48_000), 1e-3, (64, 1_024)),
            ((48_000, 48_000), -1e-3, (1_024, 128)),
            ((44_100, 48_000), 1e-4, (441, 480)),
            ((96_000, 44_100), -1e-4, (1_024, 128)),
            ((16_000, 48_000), 0.0, (64, 1_024)),
            ((48_000, 48_000), 1e-4, (4_096, 480)),
        ] {
            let (output, known) = devices(rates, wrong, blocks, 15.0);
            let rate = f64::from(rates.1);
            // The first second goes by until enough waits.
            let settled = &output[rates.1 as usize..];
            let context = format!("{rates:?}, clock wrong by {wrong}, blocks of {blocks:?}");
            assert_eq!(known.dropped(), 0, "{context}");
            assert_eq!(known.missing(), 0, "{context}");
            assert!(settled.iter().all(|[l, r]| (l + r).abs() < 1e-6), "{context}");
            let longest = (blocks.0 as f64 / f64::from(rates.0) + blocks.1 as f64 / rate + 0.015) * 2.0;
            assert!(f64::from(known.waiting()) < longest * f64::from(rates.0), "{context}");
            // A sinusoid solves y[n-1] + y[n+1] = 2 cos(w) y[n]: what is left is noise and clicks.
            let w = 2.0 * PI * 440.0 / rate * (1.0 + wrong);
            let error = settled
                .windows(3)
                .map(|y| f64::from(y[0][0]) + f64::from(y[2][0]) - 2.0 * w.cos() * f64::from(y[1][0]));
            let worst = error.fold(0.0, |worst: f64, error| worst.max(error.abs()));
            assert!(worst < 2e-3 * w, "{context}: {worst}");
        }
    }

    #[test]
    fn at_equal_rates_and_clocks_samples_stay_what_they_are() {
        let (mut entrance, mut exit, _) = bridge(48_000, 48_000);
        let ramp: Vec<Frame> = (0..2_300).map(|n| [n as f32; 2]).collect();
        push(&mut entrance, &ramp[..2_000]);
        // The spare is 240, and blocks of 2000 and 10 wait: not yet.
        assert!(fill(&mut exit, 10).iter().all(|frame| *frame == [0.0; 2]));
        push(&mut entrance, &ramp[2_000..]);
        let output: Vec<Frame> = (0..40).flat_map(|_| fill(&mut exit, 10)).collect();
        let first = output.iter().position(|frame| frame[0] > 0.5).unwrap();
        for (n, frame) in output[first + 40..].iter().enumerate() {
            assert!((frame[0] - output[first + 40][0] - n as f32).abs() < 0.5, "{n}: {frame:?}");
        }
    }

    #[test]
    fn an_input_that_stops_is_silence_and_goes_on_and_one_that_floods_is_dropped() {
        let (mut entrance, mut exit, known) = bridge(48_000, 48_000);
        assert!(fill(&mut exit, 480).iter().all(|frame| *frame == [0.0; 2]));
        assert_eq!(known.missing(), 0, "before anything came");
        let mut feed = |exit: &mut Exit, blocks: usize| {
            let mut last = Vec::new();
            for _ in 0..blocks {
                push(&mut entrance, &[[0.5; 2]; 480]);
                last = fill(exit, 480);
            }
            last
        };
        assert!(feed(&mut exit, 20).iter().all(|frame| (frame[0] - 0.5).abs() < 1e-3));
        let before = known.missing();
        for _ in 0..10 {
            fill(&mut exit, 480);
        }
        assert!(known.missing() > before);
        assert!(fill(&mut exit, 480).iter().all(|frame| *frame == [0.0; 2]));
        assert!(feed(&mut exit, 20).iter().all(|frame| (frame[0] - 0.5).abs() < 1e-3));
        assert_eq!(known.dropped(), 0);
        // Three seconds at once: the ring holds two, and of these the output wants some ms.
        for _ in 0..300 {
            push(&mut entrance, &[[0.25; 2]; 480]);
        }
        fill(&mut exit, 480);
        assert!(known.dropped() > 130_000, "{}", known.dropped());
        assert!(exit.ring.slots() < 2_000);
    }

    #[test]
    fn one_long_block_does_not_delay_for_ever() {
        let (mut entrance, mut exit, known) = bridge(48_000, 48_000);
        let run = |entrance: &mut Entrance, exit: &mut Exit, seconds: usize| {
            for _ in 0..seconds * 100 {
                push(entrance, &[[0.5; 2]; 480]);
                fill(exit, 480);
            }
            known.waiting()
        };
        let before = run(&mut entrance, &mut exit, 5);
        // The input is held up for 90 ms.
        (0..9).for_each(|_| drop(fill(&mut exit, 480)));
        push(&mut entrance, &[[0.5; 2]; 4_800]);
        fill(&mut exit, 480);
        let during = run(&mut entrance, &mut exit, 5);
        let missing = known.missing();
        assert!(during > before + 3_000, "{before} frames, {during} after a long block");
        let after = run(&mut entrance, &mut exit, 60);
        assert!(after < before + 240, "{before} frames, {after} a minute after a long block");
        assert_eq!((known.missing(), known.dropped()), (missing, 0));
    }

    #[test]
    fn rates_are_common_where_that_can_be() {
        let any = Offer { least_rate: 8_000, most_rate: 192_000 };
        let only = |rate| Offer { least_rate: rate, most_rate: rate };
        assert_eq!(choose_rates(&[any], &[any], (44_100, 48_000)), (44_100, 44_100));
        assert_eq!(
            choose_rates(&[only(16_000), only(48_000)], &[only(48_000)], (16_000, 48_000)),
            (48_000, 48_000)
        );
        assert_eq!(choose_rates(&[only(96_000), only(8_000)], &[any], (8_000, 44_100)), (8_000, 8_000));
        assert_eq!(choose_rates(&[only(16_000)], &[only(44_100)], (16_000, 44_100)), (16_000, 44_100));
        assert_eq!(choose_rates(&[], &[], (48_000, 44_100)), (48_000, 44_100));
    }

    #[test]
    fn devices_are_found_by_what_users_write() {
        let devices = [("hw:0", "Built-in Microphone"), ("hw:1", "USB Microphone"), ("null", "Discard all")]
            .map(|(id, name)| (id.to_owned(), name.to_owned()));
        assert_eq!(find(&devices, "hw:1"), Some(1));
        assert_eq!(find(&devices, "USB Microphone"), Some(1));
        assert_eq!(find(&devices, "usb"), Some(1));
        assert_eq!(find(&devices, "microphone"), None);
        assert_eq!(find(&devices, "headset"), None);
    }
}
