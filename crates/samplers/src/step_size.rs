//! Step sizes: fixed, decreasing, and adapted to an acceptance rate.

use super::SamplerError;
use super::checks::check_positive;

/// The step size of a gradient sampler as a function of the iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum StepSize {
    /// Constant.
    Constant(f64),
    /// `(scale / t)^power` at iteration `t = 1, 2, ...`. A power in (1/2, 1] makes the step-weighted average
    /// of the draws converge to the posterior mean (`hamcmc-2016` eq. 12); `hamcmc-2016` uses 0.51.
    Decreasing {
        /// The iteration at which the step is one.
        scale: f64,
        /// The exponent of its decay.
        power: f64,
    },
}

impl StepSize {
    /// The step of iteration `t` (counted from one).
    #[must_use]
    pub fn at(&self, t: u64) -> f64 {
        match *self {
            Self::Constant(step) => step,
            Self::Decreasing { scale, power } => libm::pow(scale / t.max(1) as f64, power),
        }
    }

    pub(super) fn check(&self) -> Result<(), SamplerError> {
        match *self {
            Self::Constant(step) => check_positive("step size", step),
            Self::Decreasing { scale, power } => {
                check_positive("step size scale", scale)?;
                check_positive("step size power", power)?;
                // The power of a finite scale may overflow or underflow.
                check_positive("step size of the first step", self.at(1))
            }
        }
    }
}

/// Dual averaging of the logarithm of the step towards a target acceptance rate (Hoffman and Gelman 2014,
/// section 3.2, with their constants). Active only during adaptation.
#[derive(Debug, Clone)]
pub(super) struct DualAveraging {
    target: f64,
    /// The logarithm of the initial step.
    start: f64,
    centre: f64,
    error: f64,
    log_step: f64,
    log_average: f64,
    count: f64,
}

impl DualAveraging {
    /// Starts at `step`, above 0, and aims for the mean acceptance probability `target`, in (0, 1).
    #[must_use]
    pub fn start(step: f64, target: f64) -> Self {
        let log_step = libm::log(step);
        Self {
            target,
            start: log_step,
            centre: libm::log(10.0) + log_step,
            error: 0.0,
            log_step,
            log_average: log_step,
            count: 0.0,
        }
    }

    /// Starts at a quarter of `step` and stays near it: for samplers without a test, which cannot reject steps that are
    /// too long.
    #[must_use]
    pub fn cautious(step: f64, target: f64) -> Self {
        let low = 0.25 * step;
        Self { centre: libm::log(low), ..Self::start(low, target) }
    }

    /// Restarts from the current step.
    pub fn restart(&mut self) {
        *self = Self::start(self.current(), self.target);
    }

    /// Updates with the acceptance probability of one step.
    pub fn update(&mut self, acceptance: f64) {
        const SHRINKAGE: f64 = 0.05;
        const DELAY: f64 = 10.0;
        const FORGETTING: f64 = 0.75;
        self.count += 1.0;
        let weight = 1.0 / (self.count + DELAY);
        self.error = (1.0 - weight) * self.error + weight * (self.target - acceptance);
        self.log_step = self.centre - self.error * self.count.sqrt() / SHRINKAGE;
        let weight = libm::pow(self.count, -FORGETTING);
        self.log_average = weight * self.log_step + (1.0 - weight) * self.log_average;
    }

    /// The step to try next while adapting.
    #[must_use]
    pub fn current(&self) -> f64 {
        libm::exp(self.log_step)
    }

    /// Returns the averaged step, to keep after adaptation. Returns the initial step after fewer than ten updates,
    /// whose steps are up to ten times as long.
    #[must_use]
    pub fn adapted(&self) -> f64 {
        libm::exp(if self.count < 10.0 { self.start } else { self.log_average })
    }
}

/// The step of a block whose moves are tested: given, or adapted to their acceptance.
#[derive(Debug, Clone)]
pub(super) struct TestedStep {
    averaging: DualAveraging,
    /// The given step, or the result of the last adaptation.
    fixed: f64,
}

impl TestedStep {
    /// Creates a fixed `step`, above 0; adaptation aims for the mean acceptance probability `target`, in (0, 1).
    #[must_use]
    pub fn new(step: f64, target: f64) -> Self {
        Self { averaging: DualAveraging::start(step, target), fixed: step }
    }

    /// The step of the next move.
    #[must_use]
    pub fn next(&self, adapting: bool) -> f64 {
        if adapting { self.averaging.current() } else { self.fixed }
    }

    /// Adapts to the acceptance probability of a move.
    pub fn update(&mut self, acceptance: f64) {
        self.averaging.update(acceptance);
    }

    /// Keeps the adapted step.
    pub fn finish(&mut self) {
        self.fixed = self.averaging.adapted();
    }

    /// Restarts adaptation from the current step, for changed dynamics.
    pub fn restart(&mut self) {
        self.averaging.restart();
    }

    /// Restarts adaptation from `step`.
    pub fn restart_at(&mut self, step: f64) {
        *self = Self::new(step, self.averaging.target);
    }
}

#[cfg(test)]
mod tests {
    use super::DualAveraging;

    /// Hoffman and Gelman (2014), eq. 6, by hand for two updates.
    #[test]
    fn dual_averaging_is_that_of_the_paper() {
        let mut averaging = DualAveraging::start(0.2, 0.8);
        averaging.update(0.8);
        assert!((averaging.current() / 2.0 - 1.0).abs() < 1e-12);
        assert!((averaging.log_average - 2.0_f64.ln()).abs() < 1e-12);
        averaging.update(0.3);
        let log = 2.0_f64.ln() - 0.5 / 12.0 * 2.0_f64.sqrt() / 0.05;
        let weight = 2.0_f64.powf(-0.75);
        let average = weight * log + (1.0 - weight) * 2.0_f64.ln();
        assert!((averaging.current().ln() - log).abs() < 1e-12);
        assert!((averaging.log_average - average).abs() < 1e-12);
        // Two updates are too few for the average.
        assert!((averaging.adapted() - 0.2).abs() < 1e-12);
        (0..8).for_each(|_| averaging.update(0.8));
        assert_eq!(averaging.adapted(), libm::exp(averaging.log_average));
    }
}
