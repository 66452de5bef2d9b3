//! Late-reverberation suppression.
//!
//! After the end of a sound, its power in a room decays exponentially (Polack 1988). Speech itself decays more slowly,
//! so the steepest steady decays in a recording are the room's (Ratnam et al. 2003, section II). They give a decay rate
//! per octave. The rate bounds the power that earlier speech leaves in a bin, its tail (Lebart, Boucher and Denbigh
//! 2001, section 3), a fraction of which is suppressed.

use crate::transform::FrameGrid;

/// Edges of the octaves, Hz.
const OCTAVES_HERTZ: [f64; OCTAVES + 1] = [125.0, 250.0, 500.0, 1_000.0, 2_000.0, 4_000.0, 8_000.0];
const OCTAVES: usize = 6;
/// Length of a decay, s.
const FALL_SECONDS: f64 = 0.19;
/// Maximum mean deviation of a steady decay's logarithm from a straight line.
const MAX_DEVIATION: f64 = 0.6;
/// Maximum distance of a decay's start below the loudest tenth of the frames, in natural logarithms.
const MAX_LOG_DISTANCE: f64 = 3.0;
/// Quantile of the decay times that is attributed to the room; tuned on simulated and measured rooms (eval/results).
const ROOM_QUANTILE: f64 = 0.1;
/// Shortest reverberation times over the octaves without and with full suppression, s. In a dry room, speech determines
/// the decay of at least one octave.
const DRY_SECONDS: (f64, f64) = (0.25, 0.4);
/// Duration of early reflections, which support speech and are kept, s.
const EARLY_SECONDS: f64 = 0.048;
/// Minimum gain of a bin.
const MIN_GAIN: f32 = 0.1;

/// Range of reverberation times, s.
const RANGE_SECONDS: (f64, f64) = (0.05, 12.8);
/// Number of logarithmic classes of reverberation times.
const CLASSES: usize = 96;
/// Minimum number of decays for an estimate.
const MIN_DECAYS: u32 = 8;

/// Natural logarithm of a ratio of 60 dB.
const SIXTY_DB: f64 = 13.815_510_557_964_274;

/// Histogram of decays by reverberation time, per octave, of a recording so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decays([[u32; CLASSES]; OCTAVES]);

impl Default for Decays {
    fn default() -> Self {
        Self([[0; CLASSES]; OCTAVES])
    }
}

impl Decays {
    /// Counts the decays of speech with powers `speech` (bins x frames).
    pub(crate) fn count(&mut self, speech: &[f32], grid: FrameGrid) {
        let FrameGrid { bins, bin_hertz, frame_seconds } = grid;
        let span = ((FALL_SECONDS / frame_seconds).round() as usize).max(3);
        let bin = |hertz: f64| (hertz / bin_hertz).round() as usize;
        for (counts, edges) in self.0.iter_mut().zip(OCTAVES_HERTZ.windows(2)) {
            let octave = bin(edges[0])..bin(edges[1]);
            if octave.is_empty() || octave.end > bins {
                continue;
            }
            let mean = |frame: &[f32]| {
                frame[octave.clone()].iter().map(|&x| f64::from(x)).sum::<f64>() / octave.len() as f64
            };
            let level = logarithms(speech.chunks_exact(bins).map(mean).collect());
            let Some(loud) = nine_tenths(&level) else { continue };
            for fall in level.windows(span).filter(|fall| fall[0] > loud - MAX_LOG_DISTANCE) {
                if let Some(slope) = steady_fall(fall) {
                    counts[class_of(SIXTY_DB * frame_seconds / slope)] += 1;
                }
            }
        }
    }

    /// Reverberation time (RT60) per octave, 125 Hz to 8 kHz, s; `None` with too few decays.
    pub(crate) fn seconds(&self) -> [Option<f64>; OCTAVES] {
        self.0.each_ref().map(|counts| {
            let total: u32 = counts.iter().sum();
            let wanted = ROOM_QUANTILE * f64::from(total);
            let mut passed = 0;
            let class = counts.iter().position(|&count| {
                passed += count;
                f64::from(passed) > wanted
            });
            class.filter(|_| total >= MIN_DECAYS).map(seconds_of)
        })
    }
}

/// Natural logarithms of powers; those of silence are far below the mean.
fn logarithms(mut power: Vec<f64>) -> Vec<f64> {
    let least = (1e-12 * power.iter().sum::<f64>() / power.len().max(1) as f64).max(f64::MIN_POSITIVE);
    power.iter_mut().for_each(|power| *power = libm::log(*power + least));
    power
}

/// The 90 % quantile.
fn nine_tenths(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    let place = (9 * sorted.len() / 10).min(sorted.len().checked_sub(1)?);
    Some(*sorted.select_nth_unstable_by(place, f64::total_cmp).1)
}

/// The decrease of logarithms per step, if they lie on a falling line.
fn steady_fall(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let centre = (count - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / count;
    let (mut product, mut square) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        let at = index as f64 - centre;
        product += at * value;
        square += at * at;
    }
    let slope = product / square;
    let off = |(index, value): (usize, &f64)| (value - mean - slope * (index as f64 - centre)).abs();
    let deviation = values.iter().enumerate().map(off).sum::<f64>() / count;
    (slope < 0.0 && deviation < MAX_DEVIATION).then_some(-slope)
}

fn class_of(seconds: f64) -> usize {
    let fraction = libm::log(seconds / RANGE_SECONDS.0) / libm::log(RANGE_SECONDS.1 / RANGE_SECONDS.0);
    ((fraction * CLASSES as f64) as usize).min(CLASSES - 1)
}

/// The centre of a class, s.
fn seconds_of(class: usize) -> f64 {
    RANGE_SECONDS.0 * libm::pow(RANGE_SECONDS.1 / RANGE_SECONDS.0, (class as f64 + 0.5) / CLASSES as f64)
}

/// Fraction of the suppression to apply at these reverberation times, 0 to 1.
fn suppression_fraction(seconds: &[Option<f64>; OCTAVES]) -> f32 {
    let shortest = seconds.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    ((shortest - DRY_SECONDS.0) / (DRY_SECONDS.1 - DRY_SECONDS.0)).clamp(0.0, 1.0) as f32
}

/// Attenuates late reverberation: multiplies the gain (bins x frames) by one minus `amount` (0 to 1, less in a dry room) times
/// the fraction of the tail in the power of speech (`speech`, bins x frames).
pub(crate) fn suppress(gain: &mut [f32], speech: &[f32], grid: FrameGrid, decays: &Decays, amount: f32) {
    let FrameGrid { bins, frame_seconds, .. } = grid;
    let seconds = decays.seconds();
    let Some(per_frame) = per_frame(&seconds, grid) else { return };
    let amount = amount * suppression_fraction(&seconds);
    let early = ((EARLY_SECONDS / frame_seconds).round() as usize).max(1);
    let past: Vec<f32> = per_frame.iter().map(|&decay| libm::powf(decay, early as f32)).collect();
    let mut tail = vec![0.0_f32; bins];
    for (frame, gain) in gain.chunks_exact_mut(bins).enumerate() {
        tail.iter_mut().zip(&per_frame).for_each(|(tail, decay)| *tail *= decay);
        if let Some(before) = frame.checked_sub(early) {
            let sources = speech[before * bins..(before + 1) * bins].iter().zip(&past);
            tail.iter_mut().zip(sources).for_each(|(tail, (speech, past))| *tail = tail.max(speech * past));
        }
        let now = &speech[frame * bins..(frame + 1) * bins];
        for ((gain, tail), speech) in gain.iter_mut().zip(&tail).zip(now) {
            let of_speech = (tail / speech.max(f32::MIN_POSITIVE)).min(1.0);
            *gain *= (1.0 - amount * of_speech).max(MIN_GAIN);
        }
    }
}

/// The decay of powers per frame in each bin, interpolated over log frequency between the octaves with an estimate; `None`
/// without any.
fn per_frame(seconds: &[Option<f64>; OCTAVES], grid: FrameGrid) -> Option<Vec<f32>> {
    let FrameGrid { bins, bin_hertz, frame_seconds } = grid;
    let known: Vec<(f64, f64)> = OCTAVES_HERTZ
        .windows(2)
        .zip(seconds)
        .filter_map(|(edges, seconds)| Some((libm::log2((edges[0] * edges[1]).sqrt()), (*seconds)?)))
        .collect();
    let (&first, &last) = (known.first()?, known.last()?);
    let decay = |bin: usize| {
        let at = libm::log2((bin as f64 * bin_hertz).max(1.0));
        let pair = known.windows(2).find(|pair| (pair[0].0..pair[1].0).contains(&at));
        let seconds = match pair {
            Some(pair) => pair[0].1 + (pair[1].1 - pair[0].1) * (at - pair[0].0) / (pair[1].0 - pair[0].0),
            None if at < first.0 => first.1,
            None => last.1,
        };
        libm::exp(-SIXTY_DB * frame_seconds / seconds) as f32
    };
    Some((0..bins).map(decay).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeedTree;
    use rand::RngExt;

    const BINS: usize = 513;
    const FRAME_SECONDS: f64 = 0.016;
    const GRID: FrameGrid = FrameGrid { bins: BINS, bin_hertz: 15.625, frame_seconds: FRAME_SECONDS };

    /// Powers of noise bursts, one per second, that decay by 60 dB in `seconds`: bins x frames.
    fn bursts(seconds: f64, count: usize) -> Vec<f32> {
        let mut rng = SeedTree::new(5).rng(0);
        let fall = libm::exp(-SIXTY_DB * FRAME_SECONDS / seconds) as f32;
        let mut level = 0.0_f32;
        let mut power = Vec::new();
        for frame in 0..count * 64 {
            level = if frame % 64 < 12 { 1.0 } else { level * fall };
            power.extend((0..BINS).map(|_| -level * (1.0 - rng.random::<f32>()).ln()));
        }
        power
    }

    fn decays(power: &[f32]) -> Decays {
        let mut decays = Decays::default();
        decays.count(power, GRID);
        decays
    }

    #[test]
    fn the_reverberation_time_is_that_of_the_steepest_falls() {
        for seconds in [0.3, 0.6, 1.2] {
            let found = decays(&bursts(seconds, 20)).seconds();
            for found in found.map(Option::unwrap) {
                assert!((0.75..1.2).contains(&(found / seconds)), "{found} s in place of {seconds} s");
            }
        }
        assert_eq!(decays(&vec![1.0; BINS * 5]).seconds(), [None; OCTAVES]);
        assert_eq!(decays(&[]).seconds(), [None; OCTAVES]);
        // A recording at 8 kHz has no highest octave.
        let narrow: Vec<f32> =
            bursts(0.5, 20).chunks_exact(BINS).flat_map(|frame| &frame[..257]).copied().collect();
        let mut decays = Decays::default();
        decays.count(&narrow, FrameGrid { bins: 257, ..GRID });
        assert!(decays.seconds()[4].is_some() && decays.seconds()[5].is_none());
    }

    #[test]
    fn the_tail_is_lowered_and_the_voice_stays() {
        let power = bursts(0.6, 20);
        let decays = decays(&power);
        let lowered = |amount: f32| {
            let mut gain = vec![1.0_f32; power.len()];
            suppress(&mut gain, &power, GRID, &decays, amount);
            // Energies of all bursts except the first, at their start and 0.2 s after their end.
            let energy = |at: usize| -> f32 {
                let frames = (1..20).map(|burst| (burst * 64 + at) * BINS..(burst * 64 + at + 1) * BINS);
                let (after, before) = frames.fold((0.0, 0.0), |(after, before), frame| {
                    let of_frame = |square: bool| -> f32 {
                        frame.clone().map(|at| power[at] * if square { gain[at].powi(2) } else { 1.0 }).sum()
                    };
                    (after + of_frame(true), before + of_frame(false))
                });
                10.0 * (after / before).log10()
            };
            [energy(0), energy(24)]
        };
        let [start, tail] = lowered(1.0);
        assert!(start > -0.5 && tail < -10.0, "{start} dB where it starts, {tail} dB of the tail");
        let [start, half] = lowered(0.5);
        assert!(start > -0.3 && half < -3.0 && half > tail + 3.0, "{start} and {half} dB");
        assert_eq!(lowered(0.0), [0.0, 0.0]);
    }

    /// The tail of a steady sound is its power before the early reflections, less their decay.
    #[test]
    fn early_sound_has_no_tail() {
        let mut decays = Decays::default();
        decays.0.iter_mut().for_each(|counts| counts[class_of(0.6)] = MIN_DECAYS);
        let mut gain = vec![1.0_f32; BINS * 6];
        suppress(&mut gain, &vec![2.0; BINS * 6], GRID, &decays, 0.5);
        let tail = libm::exp(-SIXTY_DB * 3.0 * FRAME_SECONDS / seconds_of(class_of(0.6))) as f32;
        for (frame, gain) in gain.chunks_exact(BINS).enumerate() {
            let expected = if frame < 3 { 1.0 } else { 1.0 - 0.5 * tail };
            assert!(gain.iter().all(|gain| (gain - expected).abs() < 1e-4), "frame {frame}: {}", gain[0]);
        }
    }

    #[test]
    fn in_a_dry_room_nothing_changes() {
        let of = |seconds: [f64; OCTAVES]| suppression_fraction(&seconds.map(Some));
        assert_eq!(of([1.0, 0.6, 0.24, 0.5, 0.7, 0.4]), 0.0, "one octave has the decay of the voice");
        assert_eq!(of([0.41, 0.6, 0.5, 0.5, 0.7, 0.5]), 1.0);
        assert!((0.3..0.4).contains(&of([0.6, 0.5, 0.5, 0.3, 0.4, 0.5])));
        let power = bursts(0.2, 20);
        let mut gain = vec![1.0_f32; power.len()];
        suppress(&mut gain, &power, GRID, &decays(&power), 1.0);
        assert!(gain.iter().all(|&gain| gain == 1.0));
    }

    #[test]
    fn without_an_estimate_nothing_changes() {
        let mut gain = vec![0.5; BINS * 4];
        let voice = vec![1.0; BINS * 4];
        suppress(&mut gain, &voice, GRID, &Decays::default(), 1.0);
        assert!(gain.iter().all(|&gain| gain == 0.5));
    }
}
