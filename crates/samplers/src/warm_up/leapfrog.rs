//! One leapfrog step from the current state, for the initial step size.

use crate::random::SeededRng;
use crate::vector::{add_scaled, dot, is_sound_for_test};
use crate::{Real, Target};

/// Buffers for leapfrog steps of all blocks at once.
#[derive(Debug, Clone, Default)]
pub(super) struct Leapfrog<T> {
    momentum: Vec<T>,
    state: Vec<T>,
    gradient: Vec<T>,
    start_gradient: Vec<T>,
    potential: Vec<f64>,
    start_potential: Vec<f64>,
    /// Whether states are folded into the positive orthant; the density is then extended evenly to all signs.
    pub folds: bool,
}

/// The acceptance that the search for a first step crosses (Hoffman and Gelman 2014, algorithm 4, with Stan's
/// constant).
const CROSSING: f64 = 0.8;
const MAX_TRIALS: usize = 80;

impl<T: Real> Leapfrog<T> {
    /// Evaluates the target at `phi`.
    pub fn start(&mut self, target: &mut dyn Target<T>, phi: &[T], blocks: usize) {
        for room in [&mut self.momentum, &mut self.state, &mut self.gradient, &mut self.start_gradient] {
            room.resize(phi.len(), T::zero());
        }
        self.potential.resize(blocks, 0.0);
        self.start_potential.resize(blocks, 0.0);
        target.evaluate(phi, &mut self.start_potential, &mut self.start_gradient);
    }

    /// Writes the acceptance probability of one leapfrog step of every block from `phi`, with new momenta.
    pub fn acceptance(
        &mut self,
        target: &mut dyn Target<T>,
        phi: &[T],
        (steps, rng): (&[f64], &mut SeededRng),
        acceptance: &mut Vec<f64>,
    ) {
        let n = phi.len() / steps.len();
        self.momentum.iter_mut().for_each(|p| *p = T::normal(rng));
        self.state.copy_from_slice(phi);
        acceptance.clear();
        for (block, &step) in steps.iter().enumerate() {
            let column = block * n..(block + 1) * n;
            let (p, x) = (&mut self.momentum[column.clone()], &mut self.state[column.clone()]);
            // The buffer of the acceptance first holds the initial energy.
            acceptance.push(self.start_potential[block] + 0.5 * dot(p, p).widen());
            add_scaled(p, T::narrow(-0.5 * step), &self.start_gradient[column.clone()]);
            add_scaled(x, T::narrow(step), p);
            if self.folds {
                // The even extension is symmetric, so the step is reflected at zero.
                for (x, p) in x.iter_mut().zip(p).filter(|(x, _)| **x < T::zero()) {
                    (*x, *p) = (-*x, -*p);
                }
            }
            if !is_sound_for_test(x) {
                acceptance[block] = f64::NAN;
                x.copy_from_slice(&phi[column]);
            }
        }
        target.evaluate(&self.state, &mut self.potential, &mut self.gradient);
        for (block, &step) in steps.iter().enumerate() {
            let column = block * n..(block + 1) * n;
            let p = &mut self.momentum[column.clone()];
            add_scaled(p, T::narrow(-0.5 * step), &self.gradient[column]);
            let error = self.potential[block] + 0.5 * dot(p, p).widen() - acceptance[block];
            acceptance[block] = if error.is_nan() { 0.0 } else { libm::exp(-error.max(0.0)) };
        }
    }

    /// Finds a step for every block by doubling or halving 1 until one leapfrog step's acceptance crosses 0.8.
    pub fn first_steps(
        &mut self,
        target: &mut dyn Target<T>,
        phi: &[T],
        blocks: usize,
        rng: &mut SeededRng,
    ) -> Vec<f64> {
        self.start(target, phi, blocks);
        let mut steps = vec![1.0; blocks];
        let mut direction = vec![0.0; blocks];
        let mut acceptance = Vec::new();
        for trial in 0..MAX_TRIALS {
            self.acceptance(target, phi, (&steps, rng), &mut acceptance);
            let mut going = false;
            for ((step, direction), &acceptance) in steps.iter_mut().zip(&mut direction).zip(&acceptance) {
                let towards = if acceptance > CROSSING { 2.0 } else { 0.5 };
                if trial == 0 {
                    *direction = towards;
                }
                if *direction == towards {
                    *step *= towards;
                    going = true;
                } else {
                    // Crossed: this block is done.
                    *direction = f64::NAN;
                }
            }
            if !going {
                break;
            }
        }
        steps
    }
}
