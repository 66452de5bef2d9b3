//! The noise of minibatch gradients, measured during a warm-up.

/// Squared differences between gradients of minibatches and of all data, in a sampler's coordinates.
#[derive(Debug, Clone, Default)]
pub(crate) struct Noise {
    /// Sums, `dimension x blocks`.
    squares: Vec<f64>,
    count: f64,
}

impl Noise {
    /// Adds the differences at one state; those that are not finite are left out.
    pub fn add(&mut self, differences: impl Iterator<Item = f64> + Clone) {
        if differences.clone().all(f64::is_finite) {
            self.squares.resize(differences.clone().count(), 0.0);
            self.count += 1.0;
            self.squares.iter_mut().zip(differences).for_each(|(sum, value)| *sum += value.powi(2));
        }
    }

    /// Whether nothing has been measured in the present coordinates.
    pub fn is_empty(&self) -> bool {
        self.count == 0.0
    }

    /// The largest variance of a coordinate, 0 while there is no noise; the fewer the gradients, the more above their mean.
    pub fn variance(&self) -> f64 {
        let count = self.count.max(1.0);
        self.squares.iter().fold(0.0, |a: f64, &b| a.max(b)) / count * (1.0 + 4.0 / count)
    }

    /// Forgets what was measured in other coordinates.
    pub fn reset(&mut self) {
        self.squares.clear();
        self.count = 0.0;
    }
}
