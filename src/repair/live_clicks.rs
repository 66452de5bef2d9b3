//! Causal click repair for real-time audio.

use super::autoregression::{Interpolator, order_at};
use super::clicks::{BLOCK_SECONDS, CERTAIN, EDGE, NEIGHBOURS, SHARP};

/// Distance between the blocks that enter the statistics of loud parts, in blocks.
const EVERY: usize = 5;
/// Number of levels in these statistics: ten seconds.
const KEPT_LEVELS: usize = 2_000;
/// Minimum number of levels for detection.
const MIN_LEVELS: usize = 200;
/// Time constant of the count of clicks, s.
const MEMORY_SECONDS: f64 = 5.0;
/// Minimum decaying count: 2.5 clicks per second, as in recordings. Six clicks per second are detected after 2.7 s.
const EVIDENCE: f64 = 12.5;
/// Maximum order of the model before a click; half of it at high sample rates.
const ORDER: usize = 32;
/// Sample rate above which the order is halved, Hz.
const HIGH_RATE: u32 = 64_000;
/// Context before a click, s.
const CONTEXT_SECONDS: f64 = 0.02;
/// Fits of the model; for the first, the click is set to zero.
const ITERATIONS: usize = 2;

/// Causal repair of the clicks of a channel, if there are more than 2.5 per second. Allocates nothing.
///
/// The clicks are the certain clicks of [`repair`](super::repair): sharp, at most 8 ms long, far above their
/// surroundings and above the loud parts of the last ten seconds. Each click is replaced while it lasts; after 8 ms,
/// the signal passes. A click counts only if it is above the following sound, too, unlike the first pulse of a voice
/// after a pause.
#[derive(Debug, Clone)]
pub(crate) struct LiveClicks {
    /// Samples of a hop, and the levels of its blocks.
    hop: usize,
    levels: Vec<f32>,
    /// The last output samples, followed by the present hop.
    samples: Vec<f64>,
    /// Indices of the missing samples.
    missing: Vec<usize>,
    interpolator: Interpolator,
    /// The last input sample.
    last: f32,
    /// Levels of the last blocks without clicks, levels of one in [`EVERY`] of these blocks, and their number.
    near: [f32; NEIGHBOURS],
    far: Vec<f32>,
    count: usize,
    sorted: Vec<f32>,
    /// Blocks of the present click, and their highest level.
    click_blocks: usize,
    highest: f32,
    /// Highest level of the last click, and blocks until it can be counted; 0 without one.
    pending_click: (f32, usize),
    evidence: f64,
    forget: f64,
}

impl LiveClicks {
    /// Creates a repair for hops of `hop` samples at a sample rate in Hz.
    pub(crate) fn new(sample_rate: u32, hop: usize) -> Self {
        let rate = f64::from(sample_rate);
        let blocks = ((hop as f64 / rate / BLOCK_SECONDS).round() as usize).clamp(1, hop.max(1));
        let context = (CONTEXT_SECONDS * rate) as usize;
        let most = if sample_rate > HIGH_RATE { ORDER / 2 } else { ORDER };
        let order = order_at(rate, most);
        Self {
            hop,
            levels: vec![0.0; blocks],
            samples: vec![0.0; context + hop],
            missing: vec![0; hop],
            interpolator: Interpolator::with_room(order, ITERATIONS, (context + hop, hop)),
            last: 0.0,
            near: [0.0; NEIGHBOURS],
            far: vec![0.0; KEPT_LEVELS],
            count: 0,
            sorted: vec![0.0; KEPT_LEVELS],
            click_blocks: 0,
            highest: 0.0,
            pending_click: (0.0, 0),
            evidence: 0.0,
            forget: libm::exp(-(hop as f64 / rate / blocks as f64) / MEMORY_SECONDS),
        }
    }

    /// Repairs the next hop. Hops without clicks stay unchanged.
    pub(crate) fn repair(&mut self, hop: &mut [f32]) {
        self.samples.copy_within(self.hop.., 0);
        let context = self.samples.len() - self.hop;
        self.samples[context..].iter_mut().zip(&*hop).for_each(|(kept, x)| *kept = f64::from(*x));
        let has_clicks = self.evidence >= EVIDENCE;
        let (samples, blocks) = (self.hop, self.levels.len());
        let range = |block: usize| block * samples / blocks..(block + 1) * samples / blocks;
        let levels = self.levels.iter_mut().enumerate();
        levels.for_each(|(block, own)| *own = level(&hop[range(block)], &mut self.last));
        let peak = self.levels.iter().copied().fold(0.0, f32::max);
        // `loud` is the most expensive step, and few hops need it.
        let loud = if self.click_blocks > 0 || self.is_over_loud(peak) { self.loud() } else { None };
        let half = samples / blocks / 2;
        let (mut lost, mut free) = (0, 0);
        for block in 0..blocks {
            let (level, range) = (self.levels[block], range(block));
            self.evidence *= self.forget;
            if !self.is_click(level, loud) {
                self.learn(level);
                self.count_ended();
            } else if has_clicks {
                let click = free.max(range.start.saturating_sub(half))..(range.end + half).min(self.hop);
                free = click.end;
                for at in click {
                    self.missing[lost] = context + at;
                    lost += 1;
                }
            }
        }
        if lost > 0 {
            let missing = &self.missing[..lost];
            self.interpolator.interpolate(&mut self.samples, missing);
            // The rest of the hop may contain the end of the click, so the context alone limits the samples.
            let largest = self.samples[..context].iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
            for &at in missing {
                self.samples[at] = self.samples[at].clamp(-largest, largest);
                hop[at - context] = self.samples[at] as f32;
            }
        }
    }

    /// Whether the next block belongs to a click, given the level of loud parts.
    fn is_click(&mut self, level: f32, loud: Option<f32>) -> bool {
        let Some(loud) = loud else { return false };
        let surroundings = self.surroundings(loud);
        let over = |factor: f64| level > factor as f32 * surroundings;
        if self.click_blocks == 0 {
            if over(CERTAIN.over_surroundings) && level > CERTAIN.over_recording as f32 * loud {
                (self.click_blocks, self.highest) = (1, level);
            }
        } else if over(EDGE) {
            (self.click_blocks, self.highest) = (self.click_blocks + 1, self.highest.max(level));
        } else {
            if self.click_blocks <= CERTAIN.longest && self.pending_click.1 == 0 {
                self.pending_click = (self.highest, NEIGHBOURS);
            }
            self.click_blocks = 0;
        }
        (1..=CERTAIN.longest).contains(&self.click_blocks)
    }

    /// Returns the level of the last blocks without clicks, at least a fraction of that of loud parts.
    fn surroundings(&self, loud: f32) -> f32 {
        let mut near = self.near;
        near.select_nth_unstable_by(NEIGHBOURS / 2, f32::total_cmp).1.max(0.1 * loud + 1e-9)
    }

    /// Counts the last click [`NEIGHBOURS`] blocks after its end, if it is above these blocks, too.
    fn count_ended(&mut self) {
        let (highest, blocks) = &mut self.pending_click;
        if *blocks == 0 {
            return;
        }
        *blocks -= 1;
        let (highest, blocks) = (*highest, *blocks);
        if blocks == 0
            && let Some(loud) = self.loud()
            && highest > CERTAIN.over_surroundings as f32 * self.surroundings(loud)
        {
            self.evidence += 1.0;
        }
    }

    /// Number of levels in the statistics.
    fn known(&self) -> usize {
        (self.count / EVERY).min(KEPT_LEVELS)
    }

    /// Whether a level exceeds [`loud`](Self::loud) by the threshold of a click.
    fn is_over_loud(&self, level: f32) -> bool {
        let known = self.known();
        let below = |far: &&f32| level > CERTAIN.over_recording as f32 * **far;
        self.far[..known].iter().filter(below).count() > known * 9 / 10
    }

    /// Returns the 90 % quantile of the levels of the last ten seconds; `None` if there are too few.
    fn loud(&mut self) -> Option<f32> {
        let known = self.known();
        if known < MIN_LEVELS {
            return None;
        }
        let sorted = &mut self.sorted[..known];
        sorted.copy_from_slice(&self.far[..known]);
        Some(*sorted.select_nth_unstable_by(known * 9 / 10, f32::total_cmp).1)
    }

    fn learn(&mut self, level: f32) {
        self.near[self.count % NEIGHBOURS] = level;
        self.far[self.count / EVERY % KEPT_LEVELS] = level;
        // The count wraps at a multiple of both lengths, with the statistics full.
        self.count = if self.count + 1 == 2 * EVERY * KEPT_LEVELS * NEIGHBOURS {
            self.count / 2 + 1
        } else {
            self.count + 1
        };
    }

    /// Returns to the initial state.
    pub(crate) fn reset(&mut self) {
        self.samples.fill(0.0);
        self.near.fill(0.0);
        (self.last, self.count, self.click_blocks, self.evidence) = (0.0, 0, 0, 0.0);
        self.pending_click = (0.0, 0);
    }
}

/// Returns the maximum modulus of a block after a first-order high-pass filter; `last` is the previous sample.
fn level(block: &[f32], last: &mut f32) -> f32 {
    block.iter().fold(0.0, |level, &x| {
        let sharp = (x - SHARP as f32 * *last).abs();
        *last = x;
        level.max(sharp)
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{clicks, power, single, snr, voice};
    use super::*;

    /// Output samples, in hops of 8 ms.
    fn live(samples: &[f32], rate: u32) -> Vec<f32> {
        let hop = rate as usize / 125;
        let (mut repairing, mut done) = (LiveClicks::new(rate, hop), samples.to_vec());
        done.chunks_exact_mut(hop).for_each(|hop| repairing.repair(hop));
        done
    }

    #[test]
    fn clicks_are_repaired_once_there_are_many() {
        for rate in [8_000, 16_000, 48_000] {
            let voice: Vec<f64> = (0..3).flat_map(|seed| voice(rate, seed)).collect();
            let level = 0.1 * power(&voice).sqrt();
            let noise = crate::random::SeedTree::new(5).rng(0);
            let noise = rand::RngExt::random_iter::<f64>(noise).map(|x| level * (2.0 * x - 1.0));
            let clicks = clicks(&voice, rate, 6, 4.0, 3);
            let quiet: Vec<f64> = voice.iter().zip(noise).map(|(s, n)| s + n).collect();
            let noisy: Vec<f64> = quiet.iter().zip(&clicks).map(|(x, c)| x + c).collect();
            let done: Vec<f64> = live(&single(&noisy), rate).iter().map(|&x| f64::from(x)).collect();
            // By this time, clicks are detected.
            let late = 3 * rate as usize..;
            let (before, after) =
                (snr(&voice[late.clone()], &noisy[late.clone()]), snr(&voice[late.clone()], &done[late]));
            assert!(after > before + 6.0, "{rate} Hz: {before} {after} dB");
        }
    }

    #[test]
    fn the_repair_is_never_louder_than_the_sound_before() {
        let mut random = crate::random::SeedTree::new(7).rng(0);
        for rate in [8_000, 16_000, 48_000] {
            // Hum, and bursts of 5 and 9 ms: the last millisecond of the longer ones passes.
            let mut x: Vec<f64> = (0..12 * rate)
                .map(|n| 0.02 * (std::f64::consts::TAU * 100.0 * f64::from(n) / f64::from(rate)).sin())
                .collect();
            let millisecond = rate as usize / 1000;
            for start in (3_000..11_900).step_by(131) {
                let length = if start % 3 == 0 { 9 } else { 5 };
                let burst = start * millisecond..(start + length) * millisecond;
                x[burst].fill_with(|| rand::RngExt::random_range(&mut random, -0.9..0.9));
            }
            let x = single(&x);
            let done = live(&x, rate);
            assert!(done != x, "{rate} Hz: no click was repaired");
            for (n, (y, x)) in done.iter().zip(&x).enumerate() {
                assert!(y == x || y.abs() <= 0.021, "{rate} Hz, {n}: {y} of {x}");
            }
        }
    }

    #[test]
    fn signals_without_clicks_stay_unchanged() {
        for rate in [8_000, 16_000, 48_000] {
            let voice: Vec<f64> = (0..3).flat_map(|seed| voice(rate, seed)).collect();
            let x = single(&voice);
            assert!(live(&x, rate) == x, "{rate} Hz");
            let silence = vec![0.0; 4 * rate as usize];
            assert!(live(&silence, rate) == silence);
        }
    }

    #[test]
    fn few_clicks_and_long_ones_pass() {
        let rate = 16_000;
        let mut x = single(&voice(rate, 1));
        for start in (8_000..x.len() - 400).step_by(16_000) {
            x[start] = 1.0;
        }
        assert!(live(&x, rate) == x, "one a second");
        let mut bursts = vec![0.0; 6 * 16_000];
        for start in (20_000..bursts.len() - 2_000).step_by(4_000) {
            for (n, x) in bursts[start..start + 1_000].iter_mut().enumerate() {
                *x = if n % 3 == 0 { 0.5 } else { -0.25 };
            }
        }
        assert!(live(&bursts, rate) == bursts, "60 ms each");
    }
}
