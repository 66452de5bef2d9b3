//! Counters of the samplers.

use crate::samplers::Step;
use serde::Serialize;

/// Counts of the samplers over the averaged sweeps.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SamplerStatistics {
    /// Mean step size of the samplers of activations and noise spectra.
    pub step_size: f64,
    /// Mean number of HAMCMC's `M - 1` pairs with positive curvature, which form the metric (`hamcmc-2016`, algorithm 1);
    /// `None` for samplers without memory.
    pub usable_pairs: Option<f64>,
    /// Fraction of the unknowns' moves that were mirrored at zero; `None` without mirroring.
    pub mirrored_fraction: Option<f64>,
    /// Fraction of the unknowns' moves with clipped drift; `None` for samplers that do not count them.
    pub clipped_drift_fraction: Option<f64>,
    /// Acceptance rate of the Metropolis proposals for impulse variables; `None` if they are integrated out.
    pub impulse_acceptance: Option<f64>,
}

/// Counts of the samplers of activations, noise spectra and impulse variables over the averaged sweeps.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct SamplerCounters {
    /// Steps of the samplers, and the sum of their sizes.
    steps: u64,
    step_sizes: f64,
    /// Moved columns (of a frame or a bin), and the pairs of their metrics.
    columns: u64,
    pairs: Option<u64>,
    /// Unknowns moved under mirroring, and those of them that crossed zero.
    unknowns: u64,
    mirrored: u64,
    /// Unknowns of moves with counted drifts, and those of them with clipped drift.
    counted: u64,
    clipped: u64,
    /// Proposals for impulse variables, and accepted ones.
    proposals: u64,
    accepted: u64,
}

impl SamplerCounters {
    /// Statistics of the counts; `None` without steps.
    pub(crate) fn statistics(&self) -> Option<SamplerStatistics> {
        (self.steps > 0).then(|| SamplerStatistics {
            step_size: self.step_sizes / self.steps as f64,
            usable_pairs: self.pairs.map(|pairs| pairs as f64 / self.columns as f64),
            mirrored_fraction: fraction(self.mirrored, self.unknowns),
            clipped_drift_fraction: fraction(self.clipped, self.counted),
            impulse_acceptance: fraction(self.accepted, self.proposals),
        })
    }

    /// Adds the counts of another block or channel.
    pub(crate) fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.step_sizes += other.step_sizes;
        self.columns += other.columns;
        self.pairs = match (self.pairs, other.pairs) {
            (Some(own), Some(others)) => Some(own + others),
            (own, others) => own.or(others),
        };
        self.unknowns += other.unknowns;
        self.mirrored += other.mirrored;
        self.counted += other.counted;
        self.clipped += other.clipped;
        self.proposals += other.proposals;
        self.accepted += other.accepted;
    }

    /// Counts a step that moved `columns` columns by metrics of `pairs` pairs in total.
    pub(super) fn count_step(&mut self, step: &Step, columns: usize, pairs: Option<usize>) {
        self.steps += 1;
        self.step_sizes += step.step_size;
        self.columns += columns as u64;
        if let Some(pairs) = pairs {
            *self.pairs.get_or_insert(0) += pairs as u64;
        }
    }

    /// Counts the unknowns of a step, and those with clipped drift if the sampler reports them.
    pub(super) fn count_clipped(&mut self, unknowns: usize, clipped: Option<usize>) {
        if let Some(clipped) = clipped {
            self.counted += unknowns as u64;
            self.clipped += clipped as u64;
        }
    }

    /// Counts the signs that changed between two successive signed states.
    pub(super) fn count_mirrored(&mut self, before: &[f32], after: &[f32]) {
        let crossed = |(a, b): &(&f32, &f32)| a.is_sign_negative() != b.is_sign_negative();
        self.unknowns += after.len() as u64;
        self.mirrored += before.iter().zip(after).filter(crossed).count() as u64;
    }

    /// Counts accepted and total proposals for impulse variables.
    pub(super) fn count_impulses(&mut self, [accepted, proposals]: [u64; 2]) {
        self.accepted += accepted;
        self.proposals += proposals;
    }
}

fn fraction(part: u64, of: u64) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_counted_by_kind() {
        let step = |step_size| Step { acceptance: 1.0, step_size, ..Step::default() };
        let nothing = SamplerCounters::default();
        assert_eq!(nothing.statistics(), None);
        let mut moves = nothing;
        moves.count_step(&step(0.1), 10, Some(25));
        moves.count_step(&step(0.3), 30, Some(75));
        // Two of five change their sign; a zero that keeps it does not.
        moves.count_mirrored(&[1.0, -1.0, 0.0, 2.0, -3.0], &[-0.5, 1.0, 0.5, 2.5, -0.0]);
        moves.count_impulses([30, 40]);
        moves.count_clipped(8, None);
        assert_eq!(moves.statistics().unwrap().clipped_drift_fraction, None);
        moves.count_clipped(8, Some(2));
        let found = moves.statistics().unwrap();
        assert!((found.step_size - 0.2).abs() < 1e-15);
        assert_eq!(found.usable_pairs, Some(2.5));
        assert_eq!((found.mirrored_fraction, found.impulse_acceptance), (Some(0.4), Some(0.75)));
        // Counts of another block, without memory or mirror, add only to the counters that both blocks have.
        let mut other = SamplerCounters::default();
        other.count_step(&step(0.6), 5, None);
        let found = other.statistics().unwrap();
        assert_eq!(
            (found.usable_pairs, found.mirrored_fraction, found.impulse_acceptance),
            (None, None, None)
        );
        other.count_impulses([0, 20]);
        moves.add(&other);
        let found = moves.statistics().unwrap();
        assert!((found.step_size - 1.0 / 3.0).abs() < 1e-15);
        assert_eq!((found.mirrored_fraction, found.impulse_acceptance), (Some(0.4), Some(0.5)));
        assert_eq!(found.clipped_drift_fraction, Some(0.25));
    }
}
