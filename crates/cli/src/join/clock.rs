//! How the clock of one recorder runs against that of another, from the sound that both have recorded.
//!
//! The shift between two takes is the peak of their generalised cross-correlation with phase transform (Knapp and Carter
//! 1976): first over long sections, then, where it is expected, over windows of two seconds. A line through these
//! shifts gives the start and the speed of the clock.

use alphamf_fourier::{ComplexToReal, RealToComplex, forward, inverse};
use num_complex::Complex;
use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

/// Longest time between the starts of two takes, s.
pub const MAX_SHIFT_SECONDS: f64 = 10.0;
/// Largest deviation of a clock, parts per million: cheap recorders have 100, sound of film that runs at 23.976 frames per second in
/// place of 24 has 1,000.
pub const MAX_DRIFT_PPM: f64 = 2_000.0;
/// Windows that prove a larger deviation, and the part of the spread of their shifts that it leaves at most.
const PROVING_WINDOWS: usize = 8;
const PROVING_SPREAD: f64 = 0.1;
/// Length of the sections in which the shift is searched, s.
const SEARCH_SECONDS: f64 = 30.0;
/// Length and distance of the parts of a section in which it is searched again, s: over a whole one, fast drift blurs the peak.
const PART_SECONDS: f64 = 1.0;
const PART_STEP_SECONDS: f64 = 3.0;
/// What of one take may wait for the other, s: more than a section and the longest shift twice.
const MAX_WAITING_SECONDS: f64 = 60.0;
/// Length and distance of the windows after that, s, and how far from the last shift a peak may lie. In longer ones, drift blurs
/// the peak.
const WINDOW_SECONDS: f64 = 2.0;
const STEP_SECONDS: f64 = 2.0;
const REACH_SECONDS: f64 = 0.05;
/// Frequencies that count, Hz: rumble, and what the microphones of telephones lack, tell nothing.
const BAND_HERTZ: RangeInclusive<f64> = 100.0..=6_000.0;
/// A peak is so many times the root mean square of the correlation around it, in a search and in a window. Of a million values of
/// noise the largest is 5, of a thousand 3.
const SEARCHED_PEAK: f64 = 8.0;
const WINDOW_PEAK: f64 = 5.0;
/// Takes of different scenes have peaks of up to 11 in a search, as of a knock in each. A peak below the first number counts only if the
/// second part of the windows of its section have one near it.
const CERTAIN_PEAK: f64 = 12.0;
const CONFIRMING: f64 = 0.25;
/// Windows whose slopes are compared: those of two hours.
const MAX_WINDOWS: usize = 4_000;
/// Sections at the end of takes in which nothing is found are silent, or belong to takes that lack samples, s: shorter ones are common.
const MAX_UNMATCHED_SECONDS: f64 = 30.0;
/// Shifts so many times their median distance from the line belong to other sounds, or to echoes.
const OUTLIER: f64 = 3.0;

/// The clock of a take against that of the reference.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Clock {
    /// Position in the take of the first sample of the reference, samples: negative if the take starts later.
    pub shift: f64,
    /// Samples of the take per sample of the reference, less one.
    pub drift: f64,
}

impl Clock {
    /// The position in the take of a position in the reference, samples.
    pub fn to_take(self, position: f64) -> f64 {
        self.shift + position * (1.0 + self.drift)
    }

    /// The position in the reference of a position in the take, samples.
    pub fn to_reference(self, position: f64) -> f64 {
        (position - self.shift) / (1.0 + self.drift)
    }
}

/// What was found of a take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Its clock.
    pub clock: Clock,
    /// Position in the reference after which no window has a sound in common with it, samples, if long before its end.
    pub unmatched_from: Option<f64>,
}

/// Why two takes cannot be joined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mismatch {
    /// They have no sound in common.
    NoCommonSound,
    /// The clock of the take runs faster by so many parts per million, more than [`MAX_DRIFT_PPM`] of either sign.
    Drift(f64),
}

/// Follows the shift of a take against the reference.
pub struct ClockMeter {
    rate: f64,
    /// Of the windows.
    correlator: Correlator,
    reference: Buffer,
    take: Buffer,
    /// Position in the reference of the next section or window, samples.
    next: usize,
    /// The last shift, samples, once there is one.
    last: Option<f64>,
    /// Middle of a window, and the shift in it, samples.
    found: Vec<[f64; 2]>,
    /// End of the last window that was looked at, samples.
    end: usize,
}

/// Samples of a recording from a position on.
#[derive(Default)]
struct Buffer {
    start: usize,
    samples: Vec<f32>,
}

impl Buffer {
    /// Adds samples. Where so many wait for the other recording, that has ended, and no window comes to these any more.
    fn extend(&mut self, samples: &[f32], most: usize) {
        if self.samples.len() < most {
            self.samples.extend_from_slice(samples);
        }
    }

    fn end(&self) -> usize {
        self.start + self.samples.len()
    }

    /// Those of a range that is there.
    fn range(&self, range: Range<usize>) -> &[f32] {
        &self.samples[range.start - self.start..range.end - self.start]
    }

    fn forget_before(&mut self, position: usize) {
        let count = position.saturating_sub(self.start).min(self.samples.len());
        self.samples.drain(..count);
        self.start += count;
    }
}

impl ClockMeter {
    /// For takes of this sample rate, Hz.
    pub fn new(sample_rate: u32) -> Self {
        let rate = f64::from(sample_rate);
        let window = 2.0 * (WINDOW_SECONDS + REACH_SECONDS) * rate;
        Self {
            rate,
            correlator: Correlator::new(window as usize, rate),
            reference: Buffer::default(),
            take: Buffer::default(),
            next: 0,
            last: None,
            found: Vec::new(),
            end: 0,
        }
    }

    /// Takes the next samples of both, as many of each until one has ended.
    pub fn push(&mut self, reference: &[f32], take: &[f32]) {
        let most = self.samples(MAX_WAITING_SECONDS);
        self.reference.extend(reference, most);
        self.take.extend(take, most);
        while self.advance(false) {}
    }

    /// What was found, after the end of both.
    pub fn finish(mut self) -> Result<Found, Mismatch> {
        while self.advance(true) {}
        let matched = self.found.last().map(|[middle, _]| middle + 0.5 * WINDOW_SECONDS * self.rate);
        let unmatched_from =
            matched.filter(|matched| self.end as f64 - matched > MAX_UNMATCHED_SECONDS * self.rate);
        // Too short for windows.
        if self.found.is_empty() {
            self.found.push([0.0, self.last.ok_or(Mismatch::NoCommonSound)?]);
        }
        Ok(Found { clock: line(&self.found, self.rate)?, unmatched_from })
    }

    fn samples(&self, seconds: f64) -> usize {
        (seconds * self.rate) as usize
    }

    /// Whether there was a section or window to look at.
    fn advance(&mut self, ended: bool) -> bool {
        match self.last {
            None => self.search(ended),
            Some(last) => self.follow(last),
        }
    }

    /// Looks for the shift in the next section of both.
    fn search(&mut self, ended: bool) -> bool {
        let (start, length) = (self.next, self.samples(SEARCH_SECONDS));
        // Those of a short take may be anywhere in the reference, so that each has a section of its own.
        let ends = [&self.reference, &self.take].map(|recording| recording.end().min(start + length));
        let end = ends[0].min(ends[1]);
        if end < start + if ended { self.samples(1.0) } else { length } {
            return false;
        }
        let (reference, take) = (self.reference.range(start..ends[0]), self.take.range(start..ends[1]));
        // Longer shifts than the sections would be counted around the end of the transform.
        let most = |section: &[f32]| self.samples(MAX_SHIFT_SECONDS).min(section.len() - 1) as isize;
        let correlator = Correlator::new(reference.len() + take.len(), self.rate);
        let found = correlator.peak(reference, take, -most(reference)..=most(take), SEARCHED_PEAK);
        let found = found.filter(|peak| peak.height >= CERTAIN_PEAK || self.is_confirmed(peak.shift, ends));
        self.last = found
            .map(|peak| peak.shift)
            .or_else(|| self.shifts_of_parts(reference, take).find(|&shift| self.is_confirmed(shift, ends)));
        if self.last.is_none() {
            self.next = end;
            self.forget();
        }
        true
    }

    /// The shifts of parts of a section of the reference.
    fn shifts_of_parts(&self, reference: &[f32], take: &[f32]) -> impl Iterator<Item = f64> {
        let (length, most) = (self.samples(PART_SECONDS), self.samples(MAX_SHIFT_SECONDS));
        let correlator = Correlator::new(length + take.len(), self.rate);
        let of_take = correlator.spectrum(take);
        let starts = (0..reference.len().saturating_sub(length)).step_by(self.samples(PART_STEP_SECONDS));
        starts.filter_map(move |start| {
            let part = &reference[start..start + length];
            // Where in the take it may begin.
            let first = start.saturating_sub(most) as isize;
            let last = (start + most).min(take.len().checked_sub(length)?) as isize;
            let peak = correlator.peak_with(part, of_take.as_ref()?, first..=last, SEARCHED_PEAK)?;
            Some(peak.shift - start as f64)
        })
    }

    /// Whether the windows of a section that ends there in both have a shift near this one.
    fn is_confirmed(&self, mut shift: f64, [end, take_end]: [usize; 2]) -> bool {
        let (mut windows, mut confirming) = (0, 0);
        for start in (self.next..end).step_by(self.samples(STEP_SECONDS)) {
            let Some((window, of_take)) = self.window(start, shift) else { continue };
            if window.end > end || of_take.end > take_end {
                break;
            }
            windows += 1;
            if let Some(found) = self.shift_in(window, of_take) {
                shift = found;
                confirming += 1;
            }
        }
        confirming > 0 && f64::from(confirming) >= CONFIRMING * f64::from(windows)
    }

    /// Looks for the shift in the next window, near the last one.
    fn follow(&mut self, last: f64) -> bool {
        // The window of the take begins so much before where the shift puts it.
        let offset = last.round() as isize - self.samples(REACH_SECONDS) as isize;
        let earliest = self.take.start.saturating_add_signed(-offset);
        self.next = self.next.max(earliest).max(self.reference.start);
        let Some((window, of_take)) = self.window(self.next, last) else {
            self.next += self.samples(STEP_SECONDS);
            return true;
        };
        if window.end > self.reference.end() || of_take.end > self.take.end() {
            return false;
        }
        let middle = (window.start + window.len() / 2) as f64;
        self.end = window.end;
        if let Some(found) = self.shift_in(window, of_take) {
            self.found.push([middle, found]);
            self.last = Some(found);
        }
        self.next += self.samples(STEP_SECONDS);
        self.forget();
        true
    }

    /// The window of the reference from `start` on, and that of the take around where a shift puts it; `None` where the take has
    /// not begun.
    fn window(&self, start: usize, shift: f64) -> Option<(Range<usize>, Range<usize>)> {
        let (length, reach) = (self.samples(WINDOW_SECONDS), self.samples(REACH_SECONDS));
        let of_take = start.checked_add_signed(shift.round() as isize - reach as isize)?;
        (of_take >= self.take.start).then(|| (start..start + length, of_take..of_take + length + 2 * reach))
    }

    /// The shift in a window of the reference and one of the take.
    fn shift_in(&self, window: Range<usize>, of_take: Range<usize>) -> Option<f64> {
        let offset = of_take.start as f64 - window.start as f64;
        let shifts = 0..=(of_take.len() - window.len()) as isize;
        let (reference, take) = (self.reference.range(window), self.take.range(of_take));
        self.correlator.peak(reference, take, shifts, WINDOW_PEAK).map(|peak| peak.shift + offset)
    }

    /// Forgets what no later window reaches.
    fn forget(&mut self) {
        self.reference.forget_before(self.next);
        self.take.forget_before(self.next.saturating_sub(self.samples(MAX_SHIFT_SECONDS + 1.0)));
    }
}

/// Correlates two takes.
struct Correlator {
    /// Length of the transforms.
    size: usize,
    /// Distance of their bins, Hz.
    hertz: f64,
    forward: Arc<dyn RealToComplex<f32>>,
    inverse: Arc<dyn ComplexToReal<f32>>,
}

impl Correlator {
    /// For takes of so many samples together, of this sample rate.
    fn new(samples: usize, rate: f64) -> Self {
        let size = samples.next_power_of_two();
        Self { size, hertz: rate / size as f64, forward: forward(size), inverse: inverse(size) }
    }

    /// The spectrum of some samples.
    fn spectrum(&self, samples: &[f32]) -> Option<Vec<Complex<f32>>> {
        let (mut padded, mut bins) = (self.forward.make_input_vec(), self.forward.make_output_vec());
        padded[..samples.len()].copy_from_slice(samples);
        self.forward.process(&mut padded, &mut bins).ok().map(|()| bins)
    }

    /// The largest peak among `shifts` of `take` against `reference`, samples: `take[n + shift]` is `reference[n]`. `None` if it is
    /// not above `least` times the root mean square.
    fn peak(
        &self,
        reference: &[f32],
        take: &[f32],
        shifts: RangeInclusive<isize>,
        least: f64,
    ) -> Option<Peak> {
        self.peak_with(reference, &self.spectrum(take)?, shifts, least)
    }

    /// As [`peak`](Self::peak), from the spectrum of the take.
    fn peak_with(
        &self,
        reference: &[f32],
        of_take: &[Complex<f32>],
        shifts: RangeInclusive<isize>,
        least: f64,
    ) -> Option<Peak> {
        let Self { size, hertz, inverse, .. } = self;
        let mut cross = self.spectrum(reference)?;
        for (bin, (reference, take)) in cross.iter_mut().zip(of_take).enumerate() {
            let product = take * reference.conj();
            let power = product.norm();
            // Of very faint or very loud sounds, the product is rounded to zero or infinity.
            let is_exact = power > f32::MIN_POSITIVE && power.is_finite();
            let counts = BAND_HERTZ.contains(&(bin as f64 * hertz)) && is_exact;
            *reference = if counts { product / power } else { Default::default() };
        }
        let mut correlation = inverse.make_output_vec();
        inverse.process(&mut cross, &mut correlation).ok()?;
        let at = |shift: isize| f64::from(correlation[shift.rem_euclid(*size as isize) as usize]);
        let (mut best, mut squares) = (*shifts.start(), 0.0);
        for shift in shifts.clone() {
            squares += at(shift) * at(shift);
            if at(shift) > at(best) {
                best = shift;
            }
        }
        let deviation = (squares / shifts.count() as f64).sqrt();
        let height = at(best) / deviation;
        if at(best) <= least * deviation {
            return None;
        }
        // The top of the parabola through the peak and its neighbours.
        let [before, peak, after] = [best - 1, best, best + 1].map(at);
        let bend = before - 2.0 * peak + after;
        let top = if bend < 0.0 { 0.5 * (before - after) / bend } else { 0.0 };
        Some(Peak { shift: best as f64 + top.clamp(-0.5, 0.5), height })
    }
}

/// A peak of a correlation.
struct Peak {
    /// Where it is, samples.
    shift: f64,
    /// Its height, in units of the root mean square.
    height: f64,
}

/// The line through shifts: by medians (Theil and Sen), which a window with another sound does not bend, then by least squares
/// through those near it. The clock drifts if that explains more than half of the spread.
fn line(found: &[[f64; 2]], rate: f64) -> Result<Clock, Mismatch> {
    let residual = |drift: f64, [time, shift]: [f64; 2]| shift - drift * time;
    let middle = |drift: f64| median(found.iter().map(|&point| residual(drift, point)));
    let spread =
        |drift: f64, middle: f64| median(found.iter().map(|&point| (residual(drift, point) - middle).abs()));
    let drift = median(slopes(found));
    let shift = middle(drift);
    let near = spread(drift, shift).max(1e-6 * rate);
    let constant = middle(0.0);
    let spread_without = spread(0.0, constant);
    let is_likely = drift.abs() < 1e-6 * MAX_DRIFT_PPM;
    if !is_likely && found.len() >= PROVING_WINDOWS && near <= PROVING_SPREAD * spread_without {
        return Err(Mismatch::Drift(1e6 * drift));
    }
    // Few windows, or a drift that no clock has, tell nothing.
    if !is_likely || found.len() < 3 || near > 0.5 * spread_without {
        return Ok(Clock { shift: constant, drift: 0.0 });
    }
    let inliers: Vec<[f64; 2]> = found
        .iter()
        .copied()
        .filter(|&point| (residual(drift, point) - shift).abs() <= OUTLIER * near)
        .collect();
    let count = inliers.len() as f64;
    let mean = |part: usize| inliers.iter().map(|point| point[part]).sum::<f64>() / count;
    let (time, level) = (mean(0), mean(1));
    let sum =
        |of: fn(f64, f64) -> f64| inliers.iter().map(|[t, shift]| of(t - time, shift - level)).sum::<f64>();
    let drift = sum(|t, shift| t * shift) / sum(|t, _| t * t);
    Ok(Clock { shift: level - drift * time, drift })
}

/// Slopes between all windows or, of many, between some that are spread evenly: all of them would take memory by the square of
/// the length.
fn slopes(found: &[[f64; 2]]) -> impl Iterator<Item = f64> {
    let some = found.iter().step_by(found.len().div_ceil(MAX_WINDOWS).max(1));
    let later = some.clone();
    some.enumerate().flat_map(move |(n, [time, shift])| {
        later.clone().skip(n + 1).map(move |[later, other]| (other - shift) / (later - time))
    })
}

/// The median; zero of nothing.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resampler::Resampler;
    use alphamf::random::SeedTree;
    use rand::RngExt;

    const RATE: u32 = 8_000;

    fn noise(seconds: usize, seed: u64) -> Vec<f32> {
        let mut random = SeedTree::new(seed).rng(0);
        (0..seconds * RATE as usize).map(|_| random.random_range(-1.0..1.0_f32)).collect()
    }

    /// A sound as another recorder has it, whose own noise is as loud.
    fn take(sound: &[f32], clock: Clock, seed: u64) -> Vec<f32> {
        let mut resampler = Resampler::<1>::new(1.0);
        // The reference's position of the take's first sample.
        let start = clock.to_reference(0.0);
        let silence = (-start).max(0.0).ceil();
        resampler.start_at(start + silence);
        let mut samples = std::iter::repeat_n(0.0, silence as usize).chain(sound.iter().copied());
        let mut take = Vec::new();
        while let Some([sample]) = resampler.next(1.0 / (1.0 + clock.drift), || samples.next().map(|x| [x])) {
            take.push(sample);
        }
        take.iter_mut().zip(noise(220, seed)).for_each(|(x, noise)| *x += noise);
        take
    }

    fn measured(reference: &[f32], take: &[f32]) -> Result<Clock, Mismatch> {
        found(reference, take).map(|found| found.clock)
    }

    fn found(reference: &[f32], take: &[f32]) -> Result<Found, Mismatch> {
        let mut meter = ClockMeter::new(RATE);
        let most = reference.len().max(take.len());
        let block = |samples: &[f32], at: usize| {
            samples[at.min(samples.len())..(at + 5_000).min(samples.len())].to_vec()
        };
        (0..most).step_by(5_000).for_each(|at| meter.push(&block(reference, at), &block(take, at)));
        meter.finish()
    }

    #[test]
    fn shift_and_drift_are_found_in_noise() {
        let sound = noise(90, 1);
        for (shift, ppm) in [(9_876.4, 50.0), (-12_345.6, -80.0), (0.0, 0.0), (79_000.0, 7.0)] {
            let clock = Clock { shift, drift: 1e-6 * ppm };
            let found = measured(&sound, &take(&sound, clock, 2)).unwrap();
            assert!((found.shift - shift).abs() < 0.5, "{clock:?}: {found:?}");
            assert!((found.drift - clock.drift).abs() < 2e-6, "{clock:?}: {found:?}");
        }
    }

    /// As of a file with a wrong sample rate.
    #[test]
    fn clocks_far_apart_are_followed_or_refused() {
        // Drift blurs long sounds: as of a voice, these are short.
        let loudness = |n: usize| if n % 7_000 < 400 { 30.0 } else { 1.0 };
        let sound: Vec<f32> = noise(90, 1).iter().enumerate().map(|(n, x)| loudness(n) * x).collect();
        // A long sound, low-passed.
        let mut level = 0.0;
        let mut low_passed = |x: f32| {
            level += 0.2 * (x - level);
            10.0 * level
        };
        let long: Vec<f32> = noise(90, 1).into_iter().map(&mut low_passed).collect();
        for sound in [&sound, &long] {
            for ppm in [-999.0, 600.0, 1_001.0] {
                let clock = Clock { shift: 9_876.4, drift: 1e-6 * ppm };
                let found = measured(sound, &take(sound, clock, 2)).unwrap();
                assert!((found.shift - clock.shift).abs() < 8.0, "{clock:?}: {found:?}");
                assert!((found.drift - clock.drift).abs() < 2e-5, "{clock:?}: {found:?}");
            }
        }
        for ppm in [-3_000.0, 3_000.0] {
            let found = measured(&sound, &take(&sound, Clock { shift: 0.0, drift: 1e-6 * ppm }, 2));
            let Err(Mismatch::Drift(found)) = found else { panic!("{ppm}: {found:?}") };
            assert!((found / ppm - 1.0).abs() < 0.05, "{ppm}: {found}");
        }
    }

    #[test]
    fn a_short_take_has_a_shift_and_no_drift() {
        let sound = noise(6, 1);
        let found = measured(&sound, &take(&sound, Clock { shift: 4_000.0, drift: 5e-5 }, 2)).unwrap();
        assert!((found.shift - 4_000.0).abs() < 2.0 && found.drift == 0.0, "{found:?}");
    }

    /// Transforms for them are shorter than the longest shift.
    #[test]
    fn short_takes_have_their_own_shift() {
        for tenths in [12, 20, 39] {
            let sound = &noise(4, 1)[..tenths * RATE as usize / 10];
            for shift in [0.0, 1_000.0, -1_000.0] {
                let take = take(sound, Clock { shift, drift: 0.0 }, 2);
                let found = measured(sound, &take).unwrap();
                assert!((found.shift - shift).abs() < 0.5, "{tenths} tenths: {found:?}");
            }
        }
    }

    /// Most of it is not in the same time of the other.
    #[test]
    fn a_short_take_is_found_anywhere() {
        let sound = noise(40, 1);
        for shift in [-72_000.0, -16_000.0] {
            let short = &take(&sound, Clock { shift, drift: 0.0 }, 2)[..20_000];
            let found = measured(&sound, short).unwrap();
            assert!((found.shift - shift).abs() < 0.5 && found.drift == 0.0, "{found:?}");
            let found = measured(short, &sound).unwrap();
            assert!((found.shift + shift).abs() < 0.5 && found.drift == 0.0, "{found:?}");
        }
    }

    #[test]
    fn a_take_that_ends_early_is_found_and_the_rest_does_not_wait() {
        let sound = noise(200, 1);
        let clock = Clock { shift: -70_000.0, drift: 0.0 };
        let take = &take(&sound, clock, 2)[..20 * RATE as usize];
        let found = measured(&sound, take).unwrap();
        assert!((found.shift - clock.shift).abs() < 0.5, "{found:?}");
        let mut meter = ClockMeter::new(RATE);
        sound.chunks(5_000).for_each(|block| meter.push(block, &[]));
        assert!(meter.reference.samples.len() < 62 * RATE as usize);
    }

    #[test]
    fn a_take_that_lacks_samples_is_reported() {
        let sound = noise(100, 1);
        let (clock, rate) = (Clock { shift: 4_000.0, drift: 2e-5 }, RATE as usize);
        let mut take = take(&sound, clock, 2);
        let whole = found(&sound, &take).unwrap();
        assert_eq!(whole.unmatched_from, None);
        // Most of it agrees, so that its clock is that of the part before.
        take.drain(60 * rate..60 * rate + rate / 5);
        let lacking = found(&sound, &take).unwrap();
        assert!((lacking.clock.shift - whole.clock.shift).abs() < 0.5, "{lacking:?}");
        let from = lacking.unmatched_from.unwrap() / f64::from(RATE);
        assert!((57.0..=61.0).contains(&from), "{from} s");
        // A take that ends early has nothing to compare.
        assert_eq!(found(&sound, &take[..50 * rate]).unwrap().unmatched_from, None);
    }

    #[test]
    fn a_day_takes_no_more_memory_than_two_hours() {
        let drift = 30e-6 * f64::from(RATE);
        let shift =
            |n: u32| 500.0 + 2.0 * drift * f64::from(n) + if n.is_multiple_of(3) { 0.01 } else { 0.0 };
        let found: Vec<[f64; 2]> = (0..43_200).map(|n| [2.0 * f64::from(RATE * n), shift(n)]).collect();
        assert!(slopes(&found).take(8_000_001).count() <= 8_000_000);
        let clock = line(&found, f64::from(RATE)).unwrap();
        assert!((clock.drift - 30e-6).abs() < 1e-9 && (clock.shift - 500.0).abs() < 0.02, "{clock:?}");
        assert_eq!(slopes(&found[..3_600]).count(), 3_600 * 3_599 / 2);
    }

    #[test]
    fn takes_of_other_sounds_have_no_clock() {
        assert_eq!(measured(&noise(60, 1), &noise(60, 2)), Err(Mismatch::NoCommonSound));
        assert_eq!(measured(&noise(60, 1), &vec![0.0; 60 * RATE as usize]), Err(Mismatch::NoCommonSound));
        assert_eq!(measured(&noise(60, 1), &[]), Err(Mismatch::NoCommonSound));
    }

    /// The product of the spectra exceeds what floats hold.
    #[test]
    fn samples_far_above_full_scale_end_nothing() {
        let sound = noise(90, 1);
        let clock = Clock { shift: 4_000.0, drift: 5e-5 };
        let mut take = take(&sound, clock, 2);
        take[280_000..330_000].iter_mut().step_by(16_000).for_each(|x| *x = f32::MAX);
        let found = found(&sound, &take).unwrap();
        assert!((found.clock.shift - clock.shift).abs() < 0.5, "{found:?}");
        assert!((found.clock.drift - clock.drift).abs() < 2e-6, "{found:?}");
        assert_eq!(found.unmatched_from, None);
    }

    /// The correlation of a whole section has a peak, but only the window with the knock does.
    #[test]
    fn a_knock_in_each_is_no_sound_in_common() {
        let knocking = |seed: u64, at: usize| {
            let mut sound = noise(30, seed);
            sound.iter_mut().for_each(|x| *x *= 0.01);
            sound[at] += 0.43;
            sound
        };
        for at in [70_000, 90_000, 110_000] {
            let found = measured(&knocking(1, 80_000), &knocking(2, at));
            assert_eq!(found, Err(Mismatch::NoCommonSound), "{at}");
        }
    }
}
