//! Estimation of the clock of one recorder relative to another, from the sound that both have recorded.
//!
//! The shift between two takes is the peak of their generalised cross-correlation with phase transform (Knapp and
//! Carter 1976). It is searched over long sections first, then over windows of two seconds near the expected shift. A
//! line through these shifts gives the start and the speed of the clock. A section may have a high peak by chance: the
//! line is accepted only if more windows agree with it than chance explains.

mod correlator;

use correlator::Correlator;
use std::ops::Range;

/// Longest time between the starts of two takes, s.
pub const MAX_SHIFT_SECONDS: f64 = 10.0;
/// Largest drift of a clock, parts per million. Cheap recorders have 100; film sound at 23.976 instead of 24 frames per
/// second has 1,000.
pub const MAX_DRIFT_PPM: f64 = 2_000.0;
/// Evidence of a larger drift: minimum number of windows, and maximum fraction of the spread of their shifts that
/// remains without the drift.
const PROVING_WINDOWS: usize = 8;
const PROVING_SPREAD: f64 = 0.1;
/// Length of the sections that are searched for the shift, s.
const SEARCH_SECONDS: f64 = 30.0;
/// Length and spacing of the parts of a section in a second search, s. Over a whole section, fast drift blurs the peak.
const PART_SECONDS: f64 = 1.0;
const PART_STEP_SECONDS: f64 = 3.0;
/// Maximum buffered length of one take ahead of the other, s: more than a section plus twice the longest shift.
const MAX_WAITING_SECONDS: f64 = 60.0;
/// Length and spacing of the windows, and maximum distance of a peak from the last shift, s. In longer windows, drift
/// blurs the peak.
const WINDOW_SECONDS: f64 = 2.0;
const STEP_SECONDS: f64 = 2.0;
const REACH_SECONDS: f64 = 0.05;
/// Minimum height of a peak in a search, and of a clear peak in a window, relative to the RMS of the correlation. The
/// largest of a million values of noise is 5, of a thousand 3.
const SEARCHED_PEAK: f64 = 8.0;
const WINDOW_PEAK: f64 = 5.0;
/// Minimum height of a peak in a search that needs no confirmation, and fraction of the section's windows that must
/// confirm a lower one. Takes of different scenes have peaks of up to 11, for example from a knock in each.
const CERTAIN_PEAK: f64 = 12.0;
const CONFIRMING: f64 = 0.25;
/// Maximum number of windows whose slopes are compared: two hours.
const MAX_WINDOWS: usize = 4_000;
/// Largest distance of agreeing shifts from a line, s: minimum, growth per second of recording (as clocks wander), and
/// maximum.
const AGREEING_SECONDS: f64 = 1e-3;
const DRIFT_TOLERANCE_PER_SECOND: f64 = 5e-6;
const MAX_AGREEING_SECONDS: f64 = 5e-3;
/// Largest expected number of chance lines through as many windows.
const MAX_CHANCE_LINES: f64 = 0.03;
/// Maximum number of windows between which lines are tried.
const TRIED_WINDOWS: usize = 200;
/// Longest unmatched end of takes that is not reported, s. A longer one is silent, or a take lacks samples.
const MAX_UNMATCHED_SECONDS: f64 = 30.0;
/// Distance of outliers from the line, in median distances. Outliers belong to other sounds or to echoes.
const OUTLIER: f64 = 3.0;

/// The clock of a take relative to that of the reference.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Clock {
    /// Position in the take of the first sample of the reference, samples: negative if the take starts later.
    pub shift: f64,
    /// Samples of the take per sample of the reference, minus one.
    pub drift: f64,
}

impl Clock {
    /// The position in the take of a position in the reference, samples.
    pub fn to_take(self, position: f64) -> f64 {
        self.shift + position * (1.0 + self.drift)
    }

    /// The clock of a take, if `self` is its clock after it was read with the drift of `speed`.
    pub fn after(self, speed: Self) -> Self {
        let faster = 1.0 + speed.drift;
        Self { shift: faster * self.shift, drift: faster * (1.0 + self.drift) - 1.0 }
    }

    /// Fails if the drift exceeds [`MAX_DRIFT_PPM`].
    pub fn check(self) -> Result<(), Mismatch> {
        let ppm = 1e6 * self.drift;
        if ppm.abs() > MAX_DRIFT_PPM { Err(Mismatch::Drift(ppm)) } else { Ok(()) }
    }

    /// The position in the reference of a position in the take, samples.
    pub fn to_reference(self, position: f64) -> f64 {
        (position - self.shift) / (1.0 + self.drift)
    }
}

/// Measured clock of a take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Clock of the take.
    pub clock: Clock,
    /// Position in the reference after which no window matches the take, samples; none if close to the end.
    pub unmatched_from: Option<f64>,
}

/// Why two takes cannot be joined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mismatch {
    /// They have no sound in common.
    NoCommonSound,
    /// Parts per million by which the clock of the take is faster; its absolute value exceeds [`MAX_DRIFT_PPM`].
    Drift(f64),
}

/// Tracks the shift of a take relative to the reference.
pub struct ClockMeter {
    rate: f64,
    /// Correlator of the windows.
    correlator: Correlator,
    reference: Buffer,
    take: Buffer,
    /// Position in the reference of the next section or window, samples.
    next: usize,
    /// Start of the section in which the shift was found, samples.
    found_from: usize,
    /// The last clear shift, samples.
    last: Option<f64>,
    found: Vec<Window>,
    /// End of the last window that was correlated, samples.
    end: usize,
}

/// The shift in a window.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// Middle of the window in the reference, and shift, samples.
    point: [f64; 2],
    /// Whether its peak is above [`WINDOW_PEAK`].
    is_clear: bool,
    /// Whether the take has the opposite sign.
    is_inverted: bool,
}

/// Samples of a recording from position `start`.
#[derive(Default)]
struct Buffer {
    start: usize,
    samples: Vec<f32>,
}

impl Buffer {
    /// Adds samples, unless `most` are buffered already: then the other recording has ended, and no window reaches the
    /// new ones.
    fn extend(&mut self, samples: &[f32], most: usize) {
        if self.samples.len() < most {
            self.samples.extend_from_slice(samples);
        }
    }

    fn end(&self) -> usize {
        self.start + self.samples.len()
    }

    /// Samples of a buffered range.
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
    /// Creates a meter for takes of this sample rate, Hz.
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

    /// Adds the next samples of both takes, equally many until one has ended.
    pub fn push(&mut self, reference: &[f32], take: &[f32]) {
        let most = self.samples(MAX_WAITING_SECONDS);
        self.reference.extend(reference, most);
        self.take.extend(take, most);
        while self.advance(false) {}
    }

    /// Computes the clock, after the end of both takes.
    pub fn finish(mut self) -> Result<Found, Mismatch> {
        while self.advance(true) {}
        let last = self.last.ok_or(Mismatch::NoCommonSound)?;
        // Short takes have too few windows to disagree. At the end of long takes, so few prove nothing.
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

    /// Processes the next section or window; returns `false` if it is not complete.
    fn advance(&mut self, ended: bool) -> bool {
        match self.last {
            None => self.search(ended),
            Some(last) => self.follow(last),
        }
    }

    /// Searches for the shift in the next section of both takes.
    fn search(&mut self, ended: bool) -> bool {
        let (start, length) = (self.next, self.samples(SEARCH_SECONDS));
        // A short take may lie anywhere in the reference, so each section has its own end.
        let ends = [&self.reference, &self.take].map(|recording| recording.end().min(start + length));
        let end = ends[0].min(ends[1]);
        if end < start + if ended { self.samples(1.0) } else { length } {
            return false;
        }
        let (reference, take) = (self.reference.range(start..ends[0]), self.take.range(start..ends[1]));
        // Shifts longer than the sections would wrap around the transform.
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

    /// Iterates over the shifts of parts of a section of the reference.
    fn shifts_of_parts(&self, reference: &[f32], take: &[f32]) -> impl Iterator<Item = f64> {
        let (length, most) = (self.samples(PART_SECONDS), self.samples(MAX_SHIFT_SECONDS));
        let correlator = Correlator::new(length + take.len(), self.rate);
        let of_take = correlator.spectrum(take);
        let starts = (0..reference.len().saturating_sub(length)).step_by(self.samples(PART_STEP_SECONDS));
        starts.filter_map(move |start| {
            let part = &reference[start..start + length];
            // Positions in the take at which the part may begin.
            let first = start.saturating_sub(most) as isize;
            let last = (start + most).min(take.len().checked_sub(length)?) as isize;
            let peak = correlator.peak_with(part, of_take.as_ref()?, first..=last, SEARCHED_PEAK)?;
            Some(peak.shift - start as f64)
        })
    }

    /// Whether enough windows of the section up to these ends have a shift near this one.
    fn is_confirmed(&self, mut shift: f64, [end, take_end]: [usize; 2]) -> bool {
        let (mut windows, mut confirming) = (0, 0);
        for start in (self.next..end).step_by(self.samples(STEP_SECONDS)) {
            let Some((window, of_take)) = self.window(start, shift) else { continue };
            if window.end > end || of_take.end > take_end {
                break;
            }
            windows += 1;
            if let Some(found) = self.measure_window(window, of_take).filter(|window| window.is_clear) {
                shift = found.point[1];
                confirming += 1;
            }
        }
        confirming > 0 && f64::from(confirming) >= CONFIRMING * f64::from(windows)
    }

    /// Measures the shift in the next window, near the last one.
    fn follow(&mut self, last: f64) -> bool {
        // Start of the take's window minus that of the reference: the shift less the reach.
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
        if let Some(found) = self.measure_window(window, of_take) {
            self.found.push(found);
            self.last = Some(found.point[1]).filter(|_| found.is_clear).or(self.last);
        }
        self.next += self.samples(STEP_SECONDS);
        self.forget();
        true
    }

    /// The window of the reference from `start`, and that of the take around the shifted position; `None` before the
    /// buffered samples of the take.
    fn window(&self, start: usize, shift: f64) -> Option<(Range<usize>, Range<usize>)> {
        let (length, reach) = (self.samples(WINDOW_SECONDS), self.samples(REACH_SECONDS));
        let of_take = start.checked_add_signed(shift.round() as isize - reach as isize)?;
        (of_take >= self.take.start).then(|| (start..start + length, of_take..of_take + length + 2 * reach))
    }

    /// Measures the shift between a window of the reference and one of the take; none in silence.
    fn measure_window(&self, window: Range<usize>, of_take: Range<usize>) -> Option<Window> {
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

    /// Drops samples that no later window reaches.
    fn forget(&mut self) {
        self.reference.forget_before(self.next);
        self.take.forget_before(self.next.saturating_sub(self.samples(MAX_SHIFT_SECONDS + 1.0)));
    }
}

/// Points of the windows that agree with one line, if more than chance explains: of windows with clear peaks, or else
/// of all.
fn agreeing(windows: &[Window], rate: f64) -> Option<Vec<[f64; 2]>> {
    /// Drift that few recorders exceed, parts per million. Fewer chance lines are this slow.
    const COMMON_DRIFT_PPM: f64 = 200.0;
    [true, false].into_iter().find_map(|only_clear| {
        // All windows of a take have one sign.
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

/// Points on the line with the most points, among lines up to a drift of `ppm`; none if chance explains a line through
/// as many.
fn on_one_line(points: &[[f64; 2]], ppm: f64, rate: f64) -> Option<Vec<[f64; 2]>> {
    let span = points.last()?[0] - points.first()?[0];
    let tolerance =
        (AGREEING_SECONDS * rate).max(DRIFT_TOLERANCE_PER_SECOND * span).min(MAX_AGREEING_SECONDS * rate);
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
    // The peak may come from any part of the window.
    let tolerance = tolerance + 0.5 * slope.abs() * WINDOW_SECONDS * rate;
    let agreeing: Vec<[f64; 2]> = points.iter().filter(near(point, slope, tolerance)).copied().collect();
    let reach = REACH_SECONDS * rate;
    // In a short recording, only a fraction of the lines through two points is slow enough.
    let slow = (1e-6 * ppm * span / reach).min(1.0);
    let by_chance = slow * chance_lines(points.len(), agreeing.len(), tolerance / reach);
    (by_chance <= MAX_CHANCE_LINES).then_some(agreeing)
}

/// Expected number of lines through two of `points` points that have at least `agreeing` points on them, with these
/// two. Each other point lies on a line with this probability.
fn chance_lines(points: usize, agreeing: usize, probability: f64) -> f64 {
    if agreeing < 3 {
        return f64::INFINITY;
    }
    let (others, least) = (points - 2, agreeing - 2);
    // Binomial distribution, by the ratios of successive terms. Logarithms avoid underflow of the first terms.
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

/// Fits a line to shifts: first by medians (Theil and Sen), which are robust to windows with another sound, then by
/// least squares through the shifts near it. The drift is kept only if it explains more than half of the spread.
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
    // Few windows, or a drift that no clock has, are no evidence.
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

/// Iterates over the slopes between all windows or, for many, between some at even spacing: memory would grow with the
/// square of the length.
fn slopes(found: &[[f64; 2]]) -> impl Iterator<Item = f64> {
    let some = found.iter().step_by(found.len().div_ceil(MAX_WINDOWS).max(1));
    let later = some.clone();
    some.enumerate().flat_map(move |(n, [time, shift])| {
        later.clone().skip(n + 1).map(move |[later, other]| (other - shift) / (later - time))
    })
}

/// The median; 0 if there are no values.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests;
