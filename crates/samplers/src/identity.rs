//! Identities that hold for unbiased draws and fail for biased ones.

use crate::Real;

/// Sums of gradients and of states times gradients, in batches of steps.
///
/// Under `exp(-U)`, by integration by parts, `E[dU/dx_i] = 0` and `E[(x_i - c) dU/dx_i] = 1` for any `c`; minibatch
/// gradients are unbiased for both. At another temperature, both hold for the gradient divided by the temperature. The
/// batches give the standard error.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct IdentitySums {
    width: usize,
    /// Steps in each batch.
    length: usize,
    steps: usize,
    /// For every batch and coordinate: sums of the gradient, of the state and of their product.
    batches: Vec<Vec<[f64; 3]>>,
}

/// Batches in each run.
const BATCHES: usize = 25;

impl IdentitySums {
    /// Creates empty sums for about `steps` steps of a state of `width` numbers.
    pub fn new(width: usize, steps: usize) -> Self {
        Self { width, length: (steps / BATCHES).max(1), steps: 0, batches: Vec::new() }
    }

    /// Adds a state and the gradient there; `temperature`, above 0, is that of the draws.
    pub fn add<T: Real>(&mut self, state: &[T], gradient: &[T], temperature: f64) {
        if self.steps.is_multiple_of(self.length) {
            self.batches.push(vec![[0.0; 3]; self.width]);
        }
        self.steps += 1;
        let Some(batch) = self.batches.last_mut() else { return };
        for (sums, (&state, &gradient)) in batch.iter_mut().zip(state.iter().zip(gradient)) {
            let (x, g) = (state.widen(), gradient.widen() / temperature);
            sums.iter_mut().zip([g, x, x * g]).for_each(|(sum, value)| *sum += value);
        }
    }

    /// Iterates over the full batches: the means of gradient, state and product in one coordinate.
    fn of(&self, coordinate: usize) -> impl Iterator<Item = [f64; 3]> {
        let full = self.steps / self.length;
        self.batches[..full].iter().map(move |batch| batch[coordinate].map(|sum| sum / self.length as f64))
    }
}

/// Returns the larger deviation of the two identities from their expected values, in standard errors, for one
/// coordinate of each of the `runs`. Returns 0 for fewer than eight batches.
pub(crate) fn standard_errors<'a>(runs: impl Iterator<Item = (&'a IdentitySums, usize)>) -> f64 {
    let batches: Vec<[f64; 3]> = runs.flat_map(|(sums, coordinate)| sums.of(coordinate)).collect();
    let n = batches.len() as f64;
    if n < 8.0 {
        return 0.0;
    }
    let centre = batches.iter().map(|[_, x, _]| x).sum::<f64>() / n;
    let score = |value: &dyn Fn(&[f64; 3]) -> f64| {
        let mean = batches.iter().map(value).sum::<f64>() / n;
        let variance = batches.iter().map(|batch| (value(batch) - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let score = mean.abs() / (variance / n).sqrt();
        if mean == 0.0 { 0.0 } else { score }
    };
    score(&|[g, ..]| *g).max(score(&|[g, _, product]| product - centre * g - 1.0))
}

#[cfg(test)]
mod tests {
    use super::{IdentitySums, standard_errors};
    use crate::Real;
    use crate::random::SeedTree;

    #[test]
    fn identities_hold_for_draws_and_fail_for_draws_that_are_too_wide() {
        for (width, biased) in [(1.0, false), (1.1, true)] {
            let mut rng = SeedTree::new(5).rng(0);
            let mut sums = IdentitySums::new(1, 20_000);
            for _ in 0..20_000 {
                let x = 3.0 + width * f64::normal(&mut rng);
                sums.add(&[x], &[x - 3.0], 1.0);
            }
            let errors = standard_errors(std::iter::once((&sums, 0)));
            assert_eq!(errors > 5.0, biased, "{errors}");
        }
    }
}
