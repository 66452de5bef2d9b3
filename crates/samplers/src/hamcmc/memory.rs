//! Pairs, states and the inverse Hessian of one block.

use crate::gradient::{Block, DIVERGENCE, is_divergence, is_runaway};
use crate::lbfgs::InverseHessian;
use crate::vector::dot;
use crate::{InitialScale, Pairs, Real};

/// Memory of one block, by slot (`dimension x M`): pairs, or the states and gradients from which pairs are formed.
#[derive(Debug, Clone)]
pub(super) struct Memory<T> {
    pub(super) block: Block<T>,
    pub(super) s: Vec<T>,
    pub(super) y: Vec<T>,
    pub(super) usable: Vec<bool>,
    /// The differences between the states and gradients of the other chains, for [`Pairs::States`].
    pub(super) differences: [Vec<T>; 2],
    pub(super) inverse: InverseHessian<T>,
    pub(super) noise: Vec<T>,
    /// The standard normal noise of a tested move, and a buffer.
    pub(super) whitened: [Vec<T>; 2],
    /// The squared norm of the gradient at the start of the move, in the metric `H`.
    pub(super) steepness: f64,
    pub(super) probability: f64,
    pub(super) rejected: bool,
    pub(super) ran_away: bool,
    /// Unknowns whose drift was cut to its limit in the last step.
    pub(super) limited: usize,
}

impl<T: Real> Memory<T> {
    /// Returns the squared norm of `gradient` in the metric `H`.
    pub(super) fn steepness_of(&mut self, gradient: &[T]) -> f64 {
        let room = &mut self.whitened[1];
        room.copy_from_slice(gradient);
        self.inverse.multiply_root_transposed(room);
        dot(room, room).widen()
    }

    /// Writes the difference of two gradients, in the metric `H`, to the buffer.
    pub(super) fn measure(&mut self, noisy: &[T], full: &[T]) {
        let room = &mut self.whitened[1];
        room.iter_mut().zip(noisy.iter().zip(full)).for_each(|(room, (&a, &b))| *room = a - b);
        self.inverse.multiply_root_transposed(room);
    }

    /// Determines whether the last move ran away; `weight` times the change of the squared gradient is its energy error.
    pub(super) fn check_runaway(&mut self, theta: &[T], [before, after]: [&[T]; 2], weight: f64) {
        let error = weight * (self.steepness_of(after) - self.steepness);
        self.ran_away = error > DIVERGENCE || is_runaway([&self.block.old, theta], [before, after]);
        self.rejected = false;
    }

    /// Computes the acceptance probability of the last move. `potential` is the decrease of the potential, `half` half
    /// the step.
    pub(super) fn test(&mut self, potential: f64, half: f64, [before, after]: [&[T]; 2]) {
        let [z, room] = &mut self.whitened;
        room.iter_mut().zip(before.iter().zip(after)).for_each(|(sum, (&a, &b))| *sum = a + b);
        self.inverse.multiply_root_transposed(room);
        let half = T::narrow(half.sqrt());
        let back: f64 = room.iter().zip(z.iter()).map(|(&w, &z)| (half * w - z).widen().powi(2)).sum();
        let log_ratio = potential + 0.5 * (dot(z, z).widen() - back);
        self.ran_away |= is_divergence(-log_ratio);
        self.probability =
            if log_ratio.is_nan() || self.block.diverged { 0.0 } else { libm::exp(log_ratio.min(0.0)) };
    }

    /// Stores the pair of the last move, or the state and gradient at its end, in `slot`. Reverts a move that ends
    /// without a finite gradient. For a tested chain, the stored values depend on the state alone, never on a rejected
    /// proposal.
    pub(super) fn refresh(
        &mut self,
        slot: usize,
        theta: &mut [T],
        [before, after]: [&[T]; 2],
        (pairs, (trust_region, bounds), tested): (Pairs, (T, [T; 2]), bool),
    ) {
        let dimension = self.noise.len();
        let column = slot * dimension..(slot + 1) * dimension;
        let (s, y) = (&mut self.s[column.clone()], &mut self.y[column]);
        let finite = after.iter().all(|gradient| gradient.is_finite());
        let usable = match pairs {
            Pairs::Moves => {
                for i in 0..dimension {
                    s[i] = theta[i] - self.block.old[i];
                    y[i] = after[i] - before[i] + trust_region * s[i];
                }
                is_curved(s, y, bounds)
            }
            Pairs::States => {
                s.copy_from_slice(theta);
                y.copy_from_slice(after);
                finite
            }
        };
        self.usable[slot] = usable && (tested || !self.block.diverged);
        if !self.block.diverged && !finite {
            self.block.diverged = true;
            theta.copy_from_slice(&self.block.old);
        }
    }

    /// Stores the state of a chain and the gradient there in `slot`.
    pub(super) fn store(&mut self, slot: usize, state: &[T], gradient: &[T]) {
        let dimension = self.noise.len();
        let column = slot * dimension..(slot + 1) * dimension;
        self.s[column.clone()].copy_from_slice(state);
        self.y[column].copy_from_slice(gradient);
        self.usable[slot] &= gradient.iter().all(|gradient| gradient.is_finite());
    }

    /// Builds `H` from the pairs of all slots but `slot`, oldest first.
    pub(super) fn assemble(&mut self, slot: usize, initial: InitialScale) {
        // Pairs whose curvature is out of bounds are not marked as usable.
        let (dimension, memory) = (self.noise.len(), self.usable.len());
        let pair = |k: usize| k * dimension..(k + 1) * dimension;
        let others = (1..memory).map(|age| (slot + age) % memory).filter(|&k| self.usable[k]);
        let pairs = others.map(|k| (&self.s[pair(k)], &self.y[pair(k)]));
        self.inverse.reset(initial.scale(pairs.clone()));
        for (s, y) in pairs {
            self.inverse.push(s, y);
        }
    }

    /// Builds `H` from the differences between the states of all slots but `slot`, oldest first.
    pub(super) fn assemble_from_states(
        &mut self,
        slot: usize,
        initial: InitialScale,
        (trust_region, bounds): (T, [T; 2]),
    ) {
        let (dimension, memory) = (self.noise.len(), self.usable.len());
        let column = |k: usize| k * dimension..(k + 1) * dimension;
        let [steps, changes] = &mut self.differences;
        steps.clear();
        changes.clear();
        let mut others = (1..memory).map(|age| (slot + age) % memory).filter(|&k| self.usable[k]);
        let mut last = others.next();
        for next in others {
            let from = column(last.unwrap_or(next));
            last = Some(next);
            let start = steps.len();
            steps.extend(self.s[column(next)].iter().zip(&self.s[from.clone()]).map(|(&a, &b)| a - b));
            let gradients = self.y[column(next)].iter().zip(&self.y[from]);
            let s = &steps[start..];
            changes.extend(gradients.zip(s).map(|((&a, &b), &s)| a - b + trust_region * s));
            if !is_curved(s, &changes[start..], bounds) {
                steps.truncate(start);
                changes.truncate(start);
            }
        }
        let pairs = steps.chunks_exact(dimension).zip(changes.chunks_exact(dimension));
        self.inverse.reset(initial.scale(pairs.clone()));
        for (s, y) in pairs {
            self.inverse.push(s, y);
        }
    }
}

/// Whether a pair may enter `H`: its curvature is within bounds. Curvature that is positive only because of `lambda`
/// may be near zero, and would make `H` arbitrarily large.
fn is_curved<T: Real>(s: &[T], y: &[T], [least, largest]: [T; 2]) -> bool {
    let curvature = dot(s, y);
    let steep = largest < T::infinity() && dot(y, y) > largest * curvature;
    curvature >= least * dot(s, s) && !steep && InverseHessian::is_usable(s, y)
}
