//! The noise of minibatch gradients, measured during a warm-up.

/// Squared differences between gradients of minibatches and of all data, in a sampler's coordinates.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noise {
    /// Sums, `dimension x blocks`.
    squares: Vec<f64>,
    count: f64,
}

impl Noise {
    /// Adds the differences at one state; ignores them if any is not finite.
    pub fn add(&mut self, differences: impl Iterator<Item = f64> + Clone) {
        if differences.clone().all(f64::is_finite) {
            self.squares.resize(differences.clone().count(), 0.0);
            self.count += 1.0;
            self.squares.iter_mut().zip(differences).for_each(|(sum, value)| *sum += value.powi(2));
        }
    }

    /// Whether there is no measurement in the current coordinates.
    pub fn is_empty(&self) -> bool {
        self.count == 0.0
    }

    /// Returns the largest variance of a coordinate; 0 without measurements. The margin above the mean is larger for
    /// fewer measurements.
    pub fn variance(&self) -> f64 {
        let count = self.count.max(1.0);
        self.squares.iter().fold(0.0, |a: f64, &b| a.max(b)) / count * (1.0 + 4.0 / count)
    }

    /// Drops the measurements, which belong to other coordinates.
    pub fn reset(&mut self) {
        self.squares.clear();
        self.count = 0.0;
    }
}
