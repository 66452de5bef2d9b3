//! Axes with round ends and labels.

/// A range with round ends, and the distance between its labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Axis {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Distance between labels.
    pub step: f64,
}

impl Axis {
    /// The shortest axis with round ends and about five labels that contains all values; 0 to 1 for no values.
    #[must_use]
    pub fn over(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) =
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)));
        let (low, high) = match (low.is_finite(), high - low) {
            (false, _) => (0.0, 1.0),
            (true, range) if range > 1e-9 * high.abs().max(1e-9) => (low, high),
            (true, _) => (low - 0.5, low + 0.5),
        };
        let rough = (high - low) / 5.0;
        let power = 10.0_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0]
            .map(|m| m * power)
            .into_iter()
            .find(|step| *step >= rough)
            .unwrap_or(10.0 * power);
        Self { low: (low / step).floor() * step, high: (high / step).ceil() * step, step }
    }

    /// The position of a value, from 0 at the lower end to 1 at the upper.
    #[must_use]
    pub fn fraction(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// The values to label.
    pub fn ticks(&self) -> impl Iterator<Item = f64> + use<> {
        let Self { low, high, step } = *self;
        let count = ((high - low) / step).round() as usize;
        (0..=count).map(move |i| low + i as f64 * step)
    }

    /// The label of a value, with a true minus sign.
    #[must_use]
    pub fn label(&self, tick: f64) -> String {
        let digits = (-(self.step * 1.000_001).log10().floor()).max(0.0) as usize;
        // Rounding must not leave "-0".
        let tick = if tick.abs() < 0.5 * self.step { 0.0 } else { tick };
        format!("{tick:.digits$}").replace('-', "\u{2212}")
    }
}

/// Times to label in a recording of `seconds`, at most 14, and the distance between them, s.
pub(super) fn time_ticks(seconds: f64) -> (Vec<f64>, f64) {
    const STEPS: [f64; 24] = [
        0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0,
        300.0, 600.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0,
    ];
    const MAX_TICKS: f64 = 14.0;
    let step = STEPS.into_iter().find(|step| seconds / step < MAX_TICKS).unwrap_or(86_400.0);
    let count = (seconds / step + 1e-9) as usize;
    ((0..=count.min(1_000)).map(|i| i as f64 * step).collect(), step)
}

/// Formats a time as m:ss or h:mm:ss, with the decimals required for labels `step` apart.
pub(super) fn time_label(seconds: f64, step: f64, with_hours: bool) -> String {
    let digits = [1.0, 0.1, 0.01].into_iter().filter(|&unit| step < unit).count();
    let scale = 10_f64.powi(digits as i32);
    // In units of the last digit, so that 59.99 does not become 0:60.
    let units = (seconds * scale).round();
    let minutes = (units / scale / 60.0).floor();
    let rest = units / scale - 60.0 * minutes;
    let width = if digits == 0 { 2 } else { digits + 3 };
    if with_hours {
        let hours = (minutes / 60.0).floor();
        return format!("{hours}:{:02}:{rest:0width$.digits$}", minutes - 60.0 * hours);
    }
    format!("{minutes}:{rest:0width$.digits$}")
}
