//! Round numbers along an axis.

/// A range with round ends.
pub(crate) struct Axis {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    pub step: f64,
}

impl Axis {
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

    pub fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    pub fn ticks(&self) -> impl Iterator<Item = f64> {
        let count = ((self.high - self.low) / self.step).round() as usize;
        (0..=count).map(|i| self.low + i as f64 * self.step)
    }

    pub fn show(&self, tick: f64) -> String {
        let digits = (-self.step.log10().floor()).max(0.0) as usize;
        // Rounding must not leave "-0".
        let tick = if tick.abs() < 0.5 * self.step { 0.0 } else { tick };
        format!("{tick:.digits$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_ends_around_the_values() {
        for (values, low, high, step) in [
            (vec![0.3, 9.1], 0.0, 10.0, 2.0),
            (vec![-4.2, 17.0], -5.0, 20.0, 5.0),
            (vec![0.58, 0.91], 0.5, 1.0, 0.1),
            (vec![3.0], 2.4, 3.6, 0.2),
        ] {
            let axis = Axis::over(values.iter().copied());
            assert!(
                (axis.low - low).abs() < 1e-9 && (axis.high - high).abs() < 1e-9,
                "{}..{}",
                axis.low,
                axis.high
            );
            assert!((axis.step - step).abs() < 1e-9, "{}", axis.step);
        }
        let nothing = Axis::over(std::iter::empty());
        assert_eq!((nothing.low, nothing.high), (0.0, 1.0));
        assert_eq!(
            Axis::over([-1.0, 1.0].into_iter()).ticks().map(|t| format!("{t:.1}")).collect::<Vec<_>>().len(),
            5
        );
    }
}
