//! Warnings of a run: reasons not to trust its draws.

use std::fmt;

/// A reason not to trust the draws of a run; see [`SampleResult::warnings`](crate::SampleResult::warnings).
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// Steps diverged: an energy error above 1000 nats, a state that is not finite, or a move beyond all bounds.
    Divergences {
        /// Number of divergences, over all chains and blocks.
        count: usize,
        /// Number of steps, over all chains and blocks.
        steps: usize,
        /// Whether the sampler has an acceptance test; without one, diverged moves are among the draws.
        tested: bool,
        /// Whether the sampler has a step size, which may be too long.
        has_step: bool,
    },
    /// R-hat above 1.01, or not a number: the chains do not agree.
    RHat {
        /// The parameter with the largest R-hat.
        parameter: usize,
        /// Its R-hat.
        value: f64,
        /// Whether longer chains may help, as there is no more serious warning.
        longer: bool,
    },
    /// Fewer than 400 effective draws.
    EffectiveSize {
        /// The parameter with the fewest effective draws.
        parameter: usize,
        /// Bulk effective sample size.
        bulk: f64,
        /// Tail effective sample size.
        tail: f64,
        /// Whether longer chains may help, as there is no more serious warning.
        longer: bool,
    },
    /// An energy Bayesian fraction of missing information below 0.3.
    Energy {
        /// The chain with the lowest fraction.
        chain: usize,
        /// Its fraction.
        fraction: f64,
    },
    /// Trajectories of NUTS that ended at the maximum depth.
    Depth {
        /// Number of these trajectories, over all chains.
        count: usize,
    },
    /// The draws of a sampler without an acceptance test fail `E[grad U] = 0` or `E[(theta - mean) grad U] = temperature`.
    Bias {
        /// The parameter with the largest deviation.
        parameter: usize,
        /// The deviation in standard errors.
        standard_errors: f64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = |longer| if longer { "; run longer chains" } else { "" };
        match *self {
            Self::Divergences { count, steps, has_step: false, .. } => write!(
                f,
                "{count} of {steps} steps met a potential or derivatives that are not numbers: draws from there are missing; \
                 correct or reparametrise the target"
            ),
            Self::Divergences { count, steps, .. } if count >= steps => write!(
                f,
                "all {steps} steps diverged: the potential, its gradient or a metric is invalid, or the step is far too long; \
                 check the target first, then shorten the step"
            ),
            Self::Divergences { count, steps, tested: true, .. } => write!(
                f,
                "{count} of {steps} steps diverged: the step is too long where the target is most curved, and draws from \
                 there are missing; raise the target acceptance or reparametrise the target"
            ),
            Self::Divergences { count, steps, tested: false, .. } => write!(
                f,
                "{count} of {steps} steps diverged: the step is too long where the target is most curved, and this sampler \
                 has no acceptance test; shorten the step or use nuts"
            ),
            Self::RHat { parameter, value, longer } => write!(
                f,
                "R-hat of parameter {parameter} is {value:.3}, above 1.01: the chains do not agree{}",
                advice(longer)
            ),
            Self::EffectiveSize { parameter, bulk, tail, longer } => write!(
                f,
                "parameter {parameter} has {bulk:.0} effective draws in the bulk and {tail:.0} in the tails, below 400{}",
                advice(longer)
            ),
            Self::Energy { chain, fraction } => write!(
                f,
                "E-BFMI of chain {chain} is {fraction:.2}, below 0.3: momenta change the energy too little for the target's \
                 tails; reparametrise the target"
            ),
            Self::Depth { count } => write!(
                f,
                "{count} trajectories ended at the maximum tree depth: draws are correct but costly; adapt a dense metric or \
                 reparametrise the target"
            ),
            Self::Bias { parameter, standard_errors } => write!(
                f,
                "the gradient of parameter {parameter} is {standard_errors:.1} standard errors from what it is under the \
                 target: draws are biased by the step, or have not converged; shorten the step or use nuts"
            ),
        }
    }
}
