//! Ensemble-chain adaptation: each chain of an ensemble moves with an inverse Hessian built from the others.

use super::lbfgs::InverseHessian;
use super::{InitialScale, Real, Target};

/// `K` chains of `dimension x blocks`, with their potentials and gradients.
#[derive(Debug, Clone)]
pub(super) struct Ensemble<T> {
    dimension: usize,
    members: Vec<Member<T>>,
    slot: usize,
    started: bool,
    /// Whether gradients belong to previous coordinates.
    stale: bool,
    order: Vec<usize>,
    s: Vec<T>,
    y: Vec<T>,
}

#[derive(Debug, Clone)]
struct Member<T> {
    state: Vec<T>,
    gradient: Vec<T>,
    potential: Vec<f64>,
}

impl<T: Real> Ensemble<T> {
    pub fn new(dimension: usize, blocks: usize, chains: usize) -> Self {
        let zeros = vec![T::zero(); dimension * blocks];
        let member = Member { state: zeros.clone(), gradient: zeros, potential: vec![0.0; blocks] };
        Self {
            dimension,
            members: vec![member; chains],
            slot: 0,
            started: false,
            stale: false,
            order: Vec::with_capacity(chains),
            s: vec![T::zero(); dimension],
            y: vec![T::zero(); dimension],
        }
    }

    /// Puts every chain at `theta` before the first step, then loads the chain to be moved into `theta`.
    pub fn begin(&mut self, target: &mut dyn Target<T>, theta: &mut [T]) {
        if !self.started {
            self.started = true;
            for member in &mut self.members {
                member.state.copy_from_slice(theta);
                target.evaluate(theta, &mut member.potential, &mut member.gradient);
            }
        }
        if std::mem::take(&mut self.stale) {
            for member in &mut self.members {
                target.evaluate(&member.state, &mut member.potential, &mut member.gradient);
            }
        }
        theta.copy_from_slice(&self.members[self.slot].state);
    }

    /// Writes the potential and gradient of the chain to be moved; uses the stored ones if the target is fixed.
    pub fn evaluate(&self, target: &mut dyn Target<T>, potential: &mut [f64], gradient: &mut [T]) {
        let member = &self.members[self.slot];
        if target.is_fixed() {
            potential.copy_from_slice(&member.potential);
            gradient.copy_from_slice(&member.gradient);
        } else {
            target.evaluate(&member.state, potential, gradient);
        }
    }

    /// Builds the inverse Hessian of `block` from all chains but the one to be moved: sorted by falling
    /// potential, pairs between neighbours, dropping a state whose pair has no positive curvature
    /// (`quasi-newton-mcmc` section 3).
    pub fn assemble(&mut self, block: usize, initial: InitialScale, inverse: &mut InverseHessian<T>) {
        let Self { dimension, members, slot, order, s, y, .. } = self;
        let column = block * *dimension..(block + 1) * *dimension;
        order.clear();
        order.extend((0..members.len()).filter(|k| k != slot));
        order.sort_unstable_by(|&a, &b| {
            members[b].potential[block].total_cmp(&members[a].potential[block]).then(a.cmp(&b))
        });
        // Two passes: the scale of the initial matrix may depend on the pairs.
        let mut scale = initial.without_pairs();
        for pass in 0..2 {
            let mut last = &members[order[0]];
            let mut first = true;
            if pass == 1 {
                inverse.reset(scale);
            }
            for &k in &order[1..] {
                let next = &members[k];
                let states = next.state[column.clone()].iter().zip(&last.state[column.clone()]);
                s.iter_mut().zip(states).for_each(|(s, (&a, &b))| *s = a - b);
                let gradients = next.gradient[column.clone()].iter().zip(&last.gradient[column.clone()]);
                y.iter_mut().zip(gradients).for_each(|(y, (&a, &b))| *y = a - b);
                if !InverseHessian::is_usable(s, y) {
                    continue;
                }
                if pass == 1 {
                    inverse.push(s, y);
                } else {
                    let pair = initial.scale(std::iter::once((&s[..], &y[..])));
                    scale = if first { pair } else { scale.min(pair) };
                    first = false;
                }
                last = next;
            }
        }
    }

    /// Stores the moved chain and advances to the next. Blocks that did not move keep their state and gradient.
    pub fn finish(&mut self, theta: &[T], gradient: &[T], potential: &[f64], moved: impl Fn(usize) -> bool) {
        let member = &mut self.members[self.slot];
        for block in (0..potential.len()).filter(|&block| moved(block)) {
            let column = block * self.dimension..(block + 1) * self.dimension;
            member.state[column.clone()].copy_from_slice(&theta[column.clone()]);
            member.gradient[column.clone()].copy_from_slice(&gradient[column]);
            member.potential[block] = potential[block];
        }
        self.slot = (self.slot + 1) % self.members.len();
    }

    /// Maps all states to new coordinates.
    pub fn change_coordinates<F: FnMut(usize, &mut [T]) + ?Sized>(&mut self, change: &mut F) {
        for member in &mut self.members {
            member
                .state
                .chunks_exact_mut(self.dimension)
                .enumerate()
                .for_each(|(block, state)| change(block, state));
        }
        self.stale = self.started;
    }

    /// Resets the ensemble: the next [`begin`](Self::begin) puts every chain at its state.
    pub fn forget(&mut self) {
        (self.started, self.stale, self.slot) = (false, false, 0);
    }

    pub fn chains(&self) -> usize {
        self.members.len()
    }

    pub fn slot(&self) -> usize {
        self.slot
    }

    pub fn next_start<'a>(&'a self, last: &'a [T]) -> &'a [T] {
        if self.started { &self.members[self.slot].state } else { last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// States on one axis of `x^4 / 4`: the curvature between neighbours shows which pairs were used, and in which
    /// order.
    #[test]
    fn pairs_lie_between_neighbours_and_the_last_is_the_lowest() {
        let mut ensemble = Ensemble::new(2, 1, 4);
        for (member, x) in ensemble.members.iter_mut().zip([9.0, 2.0, 3.0, 1.0_f64]) {
            member.state = vec![x, 0.0];
            member.gradient = vec![x.powi(3), 0.0];
            member.potential = vec![x.powi(4) / 4.0];
        }
        let mut inverse = InverseHessian::new(2, 2);
        ensemble.assemble(0, InitialScale::Pairs(0.5), &mut inverse);
        let mut column = [1.0, 1.0];
        inverse.multiply(&mut column);
        // From 2 to 1 the gradient falls by 7, from 3 to 2 by 19; the other axis keeps the smaller scale.
        assert_eq!(inverse.pairs(), 2);
        assert!((column[0] - 1.0 / 7.0).abs() < 1e-12, "{column:?}");
        assert!((column[1] - 1.0 / 19.0).abs() < 1e-12, "{column:?}");
    }
}
