//! Second-order expansions one unknown at a time, for Newtonian Monte Carlo.

use super::super::factor_target::{ActivationTarget, NoiseTarget};
use crate::model::Prior;
use crate::samplers::{Site, Sites, Support};

/// One site per activation.
impl Sites<f32> for ActivationTarget<'_> {
    fn count(&self) -> usize {
        self.mixture.rank()
    }

    fn site(&self, index: usize) -> Site {
        Site { rows: index..index + 1, support: Support::HalfLine }
    }

    fn expand(
        &mut self,
        theta: &[f32],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let Self { mixture, power, priors, .. } = *self;
        let (mut dispersed, impulses) = self.disperse(theta);
        let expansion = [&mut *potential, &mut *gradient, &mut *hessian];
        dispersed.expand_activation(impulses, power, index, expansion);
        let prior = priors[usize::from(index >= mixture.speech_rank())];
        let values = theta.iter().skip(index).step_by(mixture.rank());
        add_prior(prior, values, [potential, gradient, hessian]);
    }
}

/// One site per entry of a noise spectrum.
impl Sites<f32> for NoiseTarget<'_> {
    fn count(&self) -> usize {
        self.mixture.noise_rank()
    }

    fn site(&self, index: usize) -> Site {
        Site { rows: index..index + 1, support: Support::HalfLine }
    }

    fn expand(
        &mut self,
        theta: &[f32],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        self.load(theta);
        let bins = self.mixture.bins;
        let per_tile = self.for_every_tile(|dispersed, impulses, power| {
            let mut expansion = [(); 3].map(|()| vec![0.0; bins]);
            let sums = expansion.each_mut().map(Vec::as_mut_slice);
            dispersed.add_noise_expansion(impulses, power, index, sums);
            expansion
        });
        let mut sums = [potential, gradient, hessian];
        for (which, sum) in sums.iter_mut().enumerate() {
            sum.fill(0.0);
            for expansion in &per_tile {
                sum.iter_mut().zip(&expansion[which]).for_each(|(sum, x)| *sum += x);
            }
        }
        add_prior(self.prior, theta.iter().skip(index).step_by(self.mixture.noise_rank()), sums);
    }
}

/// Adds the expansion of a prior at one value of every block.
fn add_prior<'a>(prior: Prior, values: impl Iterator<Item = &'a f32>, expansion: [&mut [f64]; 3]) {
    let [potential, gradient, hessian] = expansion;
    for (block, &x) in values.enumerate() {
        let x = f64::from(x);
        potential[block] += prior.potential(x);
        gradient[block] += prior.slope(x);
        hessian[block] += prior.curvature(x);
    }
}
