//! Targets defined by closures.

use super::{Minibatch, Real, Target};

/// Creates a target of `dimension` unknowns from a closure; its density is proportional to `exp(-U(theta))`. The
/// closure receives `theta` and writes the gradient of `U` into its second argument (`dimension` numbers each). It
/// returns `U`: finite where the density is positive, infinite elsewhere.
///
/// The closure must return equal values for equal states, as samplers may reuse them ([`Target::is_fixed`]). For minibatches,
/// independent blocks or metrics, implement [`Target`].
///
/// ```
/// use alphamf_samplers::random::SeedTree;
/// use alphamf_samplers::{Chain, Hmc, HmcSettings, from_fn};
/// # fn main() -> Result<(), alphamf_samplers::SamplerError> {
/// let normal = from_fn(3, |theta: &[f64], gradient: &mut [f64]| {
///     gradient.copy_from_slice(theta);
///     0.5 * theta.iter().map(|x| x * x).sum::<f64>()
/// });
/// let sampler = Hmc::new(3, 1, HmcSettings::default(), SeedTree::new(1))?;
/// let mut chain = Chain::new(normal, sampler, vec![0.0; 3])?;
/// chain.burn_in(200);
/// # Ok(())
/// # }
/// ```
pub fn from_fn<T: Real, F: FnMut(&[T], &mut [T]) -> f64>(dimension: usize, potential: F) -> FromFn<T, F> {
    FromFn { dimension, potential, gradient: Vec::new() }
}

/// A target defined by a closure; created by [`from_fn`].
#[derive(Debug, Clone)]
pub struct FromFn<T, F> {
    dimension: usize,
    potential: F,
    /// Buffer for a gradient that the caller does not need.
    gradient: Vec<T>,
}

impl<T: Real, F: FnMut(&[T], &mut [T]) -> f64> Target<T> for FromFn<T, F> {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn is_fixed(&self) -> bool {
        true
    }

    fn gradient(&mut self, theta: &[T], _: Minibatch<'_>, gradient: &mut [T]) {
        (self.potential)(theta, gradient);
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        self.gradient.resize(theta.len(), T::zero());
        potential[0] = (self.potential)(theta, &mut self.gradient);
    }

    fn evaluate(&mut self, theta: &[T], potential: &mut [f64], gradient: &mut [T]) {
        potential[0] = (self.potential)(theta, gradient);
    }
}
