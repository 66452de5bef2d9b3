//! How the clock of one recorder runs against that of another, from the sound that both have recorded.
//!
//! The shift between two takes is the peak of their generalised cross-correlation with phase transform (Knapp and Carter
//! 1976): first over long sections, then, where it is expected, over windows of two seconds. A line through these
//! shifts gives the start and the speed of the clock. A section may have a high peak by chance: the line counts only if more
//! windows agree with it than chance explains.

mod correlator;

use correlator::Correlator;
use std::ops::Range;

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
/// Windows agree if their shifts are so near one line, s: for each second of the recording it is more, as clocks wander, and no more
/// than the last.
const AGREEING_SECONDS: f64 = 1e-3;
const WANDERING: f64 = 5e-6;
const MAX_AGREEING_SECONDS: f64 = 5e-3;
/// Most lines that chance may lay through as many windows.
const MAX_CHANCE_LINES: f64 = 0.03;
/// Windows between which lines are tried, at most.
const TRIED_WINDOWS: usize = 200;
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

    /// The clock of a take that has this one once it is read at the speed of another.
    pub fn after(self, speed: Self) -> Self {
        let faster = 1.0 + speed.drift;
        Self { shift: faster * self.shift, drift: faster * (1.0 + self.drift) - 1.0 }
    }

    /// Refuses one that drifts too fast.
    pub fn check(self) -> Result<(), Mismatch> {
        let ppm = 1e6 * self.drift;
        if ppm.abs() > MAX_DRIFT_PPM { Err(Mismatch::Drift(ppm)) } else { Ok(()) }
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
    /// Where the section began in which the shift was found, samples.
    found_from: usize,
    /// The last shift, samples, once there is one.
    last: Option<f64>,
    found: Vec<Window>,
    /// End of the last window that was looked at, samples.
    end: usize,
}

/// The shift in a window.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// Its middle in the reference, and the shift, samples.
    point: [f64; 2],
    /// Whether its peak is above [`WINDOW_PEAK`].
    is_clear: bool,
    /// Whether the take has the opposite sign.
    is_inverted: bool,
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
            found_from: 0,
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
        let last = self.last.ok_or(Mismatch::NoCommonSound)?;
        // Too short for windows that could disagree. At the end of long takes, this proves nothing.
        if self.found.len() < 3 && self.found_from == 0 {
            let clear = self.found.iter().find(|window| window.is_clear);
            let shift = clear.map_or(last, |window| window.point[1]);
            return Ok(Found { clock: Clock { shift, drift: 0.0 }, unmatched_from: None });
        }
        let agreeing = agreeing(&self.found, self.rate).ok_or(Mismatch::NoCommonSound)?;
        let matched = agreeing.last().map(|[middle, _]| middle + 0.5 * WINDOW_SECONDS * self.rate);
        let unmatched_from =
            matched.filter(|matched| self.end as f64 - matched > MAX_UNMATCHED_SECONDS * self.rate);
        Ok(Found { clock: line(&agreeing, self.rate)?, unmatched_from })
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
        self.found_from = start;
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
            if let Some(found) = self.look(window, of_take).filter(|window| window.is_clear) {
                shift = found.point[1];
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
        self.end = window.end;
        if let Some(found) = self.look(window, of_take) {
            self.found.push(found);
            self.last = Some(found.point[1]).filter(|_| found.is_clear).or(self.last);
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

    /// The shift in a window of the reference and one of the take; none in silence.
    fn look(&self, window: Range<usize>, of_take: Range<usize>) -> Option<Window> {
        let offset = of_take.start as f64 - window.start as f64;
        let shifts = 0..=(of_take.len() - window.len()) as isize;
        let middle = (window.start + window.len() / 2) as f64;
        let (reference, take) = (self.reference.range(window), self.take.range(of_take));
        let peak = self.correlator.peak(reference, take, shifts, 0.0)?;
        Some(Window {
            point: [middle, peak.shift + offset],
            is_clear: peak.height > WINDOW_PEAK,
            is_inverted: peak.is_inverted,
        })
    }

    /// Forgets what no later window reaches.
    fn forget(&mut self) {
        self.reference.forget_before(self.next);
        self.take.forget_before(self.next.saturating_sub(self.samples(MAX_SHIFT_SECONDS + 1.0)));
    }
}

/// The points of the windows that agree with one line, if they are more than by chance: of those with clear peaks, or of all.
fn agreeing(windows: &[Window], rate: f64) -> Option<Vec<[f64; 2]>> {
    /// Few recorders drift faster, parts per million: of slower lines, chance lays fewer.
    const COMMON_DRIFT_PPM: f64 = 200.0;
    [true, false].into_iter().find_map(|only_clear| {
        // One sign for all of a take.
        let lines = [false, true].into_iter().flat_map(|is_inverted| {
            let chosen = windows
                .iter()
                .filter(|window| window.is_inverted == is_inverted && (window.is_clear || !only_clear));
            let points: Vec<[f64; 2]> = chosen.map(|window| window.point).collect();
            [COMMON_DRIFT_PPM, 2.0 * MAX_DRIFT_PPM].map(|ppm| on_one_line(&points, ppm, rate))
        });
        lines.flatten().max_by_key(Vec::len)
    })
}

/// The points on the line that has most of them, of those up to a drift, if chance lays no line through as many.
fn on_one_line(points: &[[f64; 2]], ppm: f64, rate: f64) -> Option<Vec<[f64; 2]>> {
    let span = points.last()?[0] - points.first()?[0];
    let tolerance = (AGREEING_SECONDS * rate).max(WANDERING * span).min(MAX_AGREEING_SECONDS * rate);
    let near = |[start, shift]: [f64; 2], slope: f64, tolerance: f64| {
        move |&&[time, other]: &&[f64; 2]| (other - shift - slope * (time - start)).abs() <= tolerance
    };
    let tried: Vec<[f64; 2]> = points.iter().copied().step_by(points.len().div_ceil(TRIED_WINDOWS)).collect();
    let mut best = (0, [0.0; 2], 0.0);
    for (n, &[time, shift]) in tried.iter().enumerate() {
        for &[later, other] in &tried[n + 1..] {
            let slope = (other - shift) / (later - time);
            if slope.abs() <= 1e-6 * ppm {
                let count = tried.iter().filter(near([time, shift], slope, tolerance)).count();
                if count > best.0 {
                    best = (count, [time, shift], slope);
                }
            }
        }
    }
    let (_, point, slope) = best;
    // Its peak may be that of any part of a window, at any time in it.
    let tolerance = tolerance + 0.5 * slope.abs() * WINDOW_SECONDS * rate;
    let agreeing: Vec<[f64; 2]> = points.iter().filter(near(point, slope, tolerance)).copied().collect();
    let reach = REACH_SECONDS * rate;
    // Of a line through two points, in a short recording only some are slow enough.
    let slow = (1e-6 * ppm * span / reach).min(1.0);
    let by_chance = slow * chance_lines(points.len(), agreeing.len(), tolerance / reach);
    (by_chance <= MAX_CHANCE_LINES).then_some(agreeing)
}

/// How many lines through two of so many points have at least `agreeing` on them, the two among them, if each other is on it with this
/// probability.
fn chance_lines(points: usize, agreeing: usize, probability: f64) -> f64 {
    if agreeing < 3 {
        return f64::INFINITY;
    }
    let (others, least) = (points - 2, agreeing - 2);
    // The binomial distribution, by its ratios from one number to the next; in logarithms, as it starts very small.
    let mut log = others as f64 * (-probability).ln_1p();
    let odds = (probability / (1.0 - probability)).ln();
    let mut sum = 0.0;
    for number in 0..=others {
        if number >= least {
            sum += log.exp();
        }
        log += odds + ((others - number) as f64 / (number + 1) as f64).ln();
    }
    0.5 * (points * (points - 1)) as f64 * sum
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
mod tests;
