//! Several chains of one posterior, their summary and warnings.

#[cfg(test)]
mod tests;

use std::fmt;

use super::checks::check;
use super::diagnostics::{
    Warning, effective_size_bulk, effective_size_tail, energy_fraction, interleaved, mean_and_variance,
    rank_r_hat, standard_error,
};
use super::identity::{IdentitySums, standard_errors};
use super::{Chain, ChainStatistics, Real, Sampler, SamplerError, Step, Target};
use crate::random::SeedTree;

/// Length of every chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Steps of warm-up, whose draws are dropped.
    pub burn_in: usize,
    /// Number of draws kept, at least 4 for each interleaved chain ([`Sampler::chains`]).
    pub draws: usize,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { burn_in: 1000, draws: 1000 }
    }
}

/// Draws of one run of a sampler, with the report of each step.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord<T> {
    draws: Vec<T>,
    steps: Vec<Step>,
    width: usize,
    interleaved: usize,
    identity: IdentitySums,
}

impl<T: Real> RunRecord<T> {
    /// Creates an empty record for `draws` draws of a state of `width` numbers, by a sampler with `chains` interleaved
    /// chains.
    #[must_use]
    pub fn new(width: usize, draws: usize, chains: usize) -> Self {
        Self {
            draws: Vec::with_capacity(width * draws),
            steps: Vec::with_capacity(draws),
            width,
            interleaved: chains,
            identity: IdentitySums::new(width, draws),
        }
    }

    /// Records a draw, its step, and the state and gradient at the start of the step, if known
    /// ([`Sampler::start`]).
    ///
    /// # Panics
    /// If `theta` has another size than the record.
    pub fn add(&mut self, theta: &[T], step: &Step, start: Option<(&[T], &[T])>) {
        assert_eq!(theta.len(), self.width, "size of a draw");
        self.draws.extend_from_slice(theta);
        self.steps.push(*step);
        // Tested moves need no check of their bias.
        if let Some((state, gradient)) = start.filter(|_| !step.tested && step.temperature > 0.0) {
            self.identity.add(state, gradient, step.temperature);
        }
    }

    /// Number of interleaved chains ([`Sampler::chains`]).
    #[must_use]
    pub fn chains(&self) -> usize {
        self.interleaved
    }

    /// The steps, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    fn statistics(&self) -> ChainStatistics {
        let mut all = ChainStatistics::default();
        self.steps.iter().for_each(|step| all.add(step));
        all
    }
}

/// Draws, summary and statistics of several chains: the result of [`sample`].
#[derive(Debug, Clone, PartialEq)]
pub struct SampleResult<T> {
    /// Summary of every parameter of the state.
    pub parameters: Vec<ParameterSummary>,
    /// Statistics of the steps of every run, without burn-in.
    pub statistics: Vec<ChainStatistics>,
    runs: Vec<RunRecord<T>>,
    /// Number of blocks that every step moves.
    moved: usize,
}

/// Summary of one parameter over all chains.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ParameterSummary {
    /// Mean of the draws, equally weighted; not the step-weighted mean of
    /// [`StepSize::Decreasing`](super::StepSize::Decreasing).
    pub mean: f64,
    /// Standard deviation of the draws.
    pub deviation: f64,
    /// Monte Carlo standard error of the mean.
    pub standard_error: f64,
    /// Rank-normalised split R-hat ([`rank_r_hat`]); above 1.01 the chains do not agree.
    pub r_hat: f64,
    /// Bulk effective sample size ([`effective_size_bulk`]): the number of independent draws that estimate the centre
    /// equally well.
    pub effective_size: f64,
    /// Tail effective sample size ([`effective_size_tail`]): the number of independent draws that estimate the 5 % and
    /// 95 % quantiles equally well.
    pub tail_effective_size: f64,
}

/// Limits of the warnings: the largest R-hat, the smallest effective size and the smallest E-BFMI.
const MAX_R_HAT: f64 = 1.01;
const MIN_EFFECTIVE_SIZE: f64 = 400.0;
const MIN_ENERGY_FRACTION: f64 = 0.3;
/// Standard errors beyond which an identity of the target fails.
const MAX_STANDARD_ERRORS: f64 = 5.0;

impl<T: Real> SampleResult<T> {
    /// Summarises runs of equal length and width; the state of each has `blocks` blocks, which count as chains.
    ///
    /// # Panics
    /// If there is no run, runs differ in size, or their width is not a multiple of `blocks`.
    #[must_use]
    pub fn new(runs: Vec<RunRecord<T>>, blocks: usize) -> Self {
        let first = runs.first().map(|run| (run.width, run.steps.len()));
        assert!(
            runs.iter().all(|run| Some((run.width, run.steps.len())) == first) && first.is_some(),
            "runs of one size"
        );
        let width = first.map_or(0, |(width, _)| width);
        assert!(blocks > 0 && width.is_multiple_of(blocks), "{blocks} blocks of a state of {width} numbers");
        let statistics = runs.iter().map(RunRecord::statistics).collect();
        let mut result = Self { parameters: Vec::new(), statistics, runs, moved: blocks };
        result.parameters =
            (0..width / blocks).map(|parameter| result.summarise(parameter, blocks)).collect();
        result
    }

    fn summarise(&self, parameter: usize, blocks: usize) -> ParameterSummary {
        let width = self.runs[0].width / blocks;
        let traces: Vec<Vec<f64>> =
            (0..blocks).flat_map(|block| self.traces_of(block * width + parameter)).collect();
        let (mean, variance) = mean_and_variance(&traces.concat());
        ParameterSummary {
            mean,
            deviation: variance.sqrt(),
            standard_error: standard_error(&traces),
            r_hat: rank_r_hat(&traces),
            effective_size: effective_size_bulk(&traces),
            tail_effective_size: effective_size_tail(&traces),
        }
    }

    fn traces_of(&self, coordinate: usize) -> Vec<Vec<f64>> {
        let trace = |run: &RunRecord<T>| -> Vec<f64> {
            run.draws.iter().skip(coordinate).step_by(run.width).map(|x| x.widen()).collect()
        };
        self.runs.iter().flat_map(|run| interleaved(&trace(run), run.interleaved)).collect()
    }

    /// The draws of a run, one state (`dimension x blocks`) after the other.
    ///
    /// # Panics
    /// If there is no run of this number.
    pub fn draws(&self, run: usize) -> impl ExactSizeIterator<Item = &[T]> {
        self.runs[run].draws.chunks_exact(self.runs[run].width)
    }

    /// The steps of every run.
    pub fn runs(&self) -> impl ExactSizeIterator<Item = &RunRecord<T>> {
        self.runs.iter()
    }

    /// Returns the draws of one coordinate of the state, one row per chain: the input of the
    /// [diagnostics](super::diagnostics). Interleaved chains ([`Sampler::chains`]) have one row each, as each mixes
    /// separately.
    ///
    /// # Panics
    /// If there is no coordinate of this number.
    #[must_use]
    pub fn traces(&self, coordinate: usize) -> Vec<Vec<f64>> {
        assert!(coordinate < self.runs[0].width, "coordinate {coordinate} of {}", self.runs[0].width);
        self.traces_of(coordinate)
    }

    /// E-BFMI of every run ([`energy_fraction`]), the smallest of its interleaved chains; empty for samplers without momenta or
    /// without an acceptance test.
    #[must_use]
    pub fn energy_fractions(&self) -> Vec<f64> {
        let energies =
            |run: &RunRecord<T>| -> Option<Vec<f64>> { run.steps.iter().map(|step| step.energy).collect() };
        let smallest = |run: &RunRecord<T>| {
            let chains = interleaved(&energies(run)?, run.interleaved);
            chains.iter().map(|chain| energy_fraction(chain)).reduce(f64::min)
        };
        self.runs.iter().filter_map(smallest).collect()
    }

    /// The largest R-hat of all parameters; NaN if one is NaN.
    #[must_use]
    pub fn max_r_hat(&self) -> f64 {
        largest(1.0, self.parameters.iter().map(|parameter| parameter.r_hat))
    }

    /// The smallest bulk effective size of all parameters; NaN if one is NaN.
    #[must_use]
    pub fn min_effective_size(&self) -> f64 {
        -largest(f64::NEG_INFINITY, self.parameters.iter().map(|parameter| -parameter.effective_size))
    }

    /// Reasons not to trust the draws, most serious first; empty if there is none.
    ///
    /// Checks, in order: divergences; draws without a test that fail the target's identities by 5 standard errors;
    /// R-hat above 1.01; fewer than 400 effective draws in bulk or tails; E-BFMI below 0.3; trajectories at the maximum
    /// depth.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let total = |count: fn(&ChainStatistics) -> usize| self.statistics.iter().map(count).sum::<usize>();
        let blocks = self.runs[0].width / self.parameters.len().max(1);
        let count = total(|all| all.divergences);
        if count > 0 {
            let all = |holds: fn(&Step) -> bool| self.runs.iter().all(|run| run.steps.iter().all(holds));
            let (tested, has_step) = (all(|step| step.tested), !all(|step| step.step_size == 0.0));
            let steps = self.moved * total(|all| all.steps);
            warnings.push(Warning::Divergences { count, steps, tested, has_step });
        }
        // Finds the parameter with the largest value; NaN, of either sign, counts as the largest.
        let order = |value: f64| if value.is_nan() { f64::INFINITY } else { value };
        let most = |value: &dyn Fn(usize) -> f64| {
            let values = (0..self.parameters.len()).map(|k| (k, value(k)));
            values.max_by(|a, b| order(a.1).total_cmp(&order(b.1)))
        };
        let bias = |parameter: usize| {
            let places = (0..blocks).map(|block| block * self.parameters.len() + parameter);
            let errors = standard_errors(
                places.flat_map(|place| self.runs.iter().map(move |run| (&run.identity, place))),
            );
            // A parameter with a NaN gradient cannot be checked, and must not mask another.
            if errors.is_nan() { 0.0 } else { errors }
        };
        if let Some((parameter, standard_errors)) =
            most(&bias).filter(|(_, errors)| *errors > MAX_STANDARD_ERRORS)
        {
            warnings.push(Warning::Bias { parameter, standard_errors });
        }
        let longer = warnings.is_empty();
        let r_hat = |k: usize| self.parameters[k].r_hat;
        if let Some((parameter, value)) =
            most(&r_hat).filter(|(_, value)| value.is_nan() || *value > MAX_R_HAT)
        {
            warnings.push(Warning::RHat { parameter, value: value.abs(), longer });
        }
        let size = |k: usize| self.parameters[k].effective_size.min(self.parameters[k].tail_effective_size);
        if let Some((parameter, _)) =
            most(&|k| -size(k)).filter(|(k, _)| size(*k).is_nan() || size(*k) < MIN_EFFECTIVE_SIZE)
        {
            let ParameterSummary { effective_size: bulk, tail_effective_size: tail, .. } =
                self.parameters[parameter];
            warnings.push(Warning::EffectiveSize { parameter, bulk, tail, longer });
        }
        let fractions = self.energy_fractions();
        let low =
            fractions.iter().copied().enumerate().filter(|(_, fraction)| *fraction < MIN_ENERGY_FRACTION);
        if let Some((chain, fraction)) = low.min_by(|a, b| a.1.total_cmp(&b.1)) {
            warnings.push(Warning::Energy { chain, fraction });
        }
        let depth_limited = total(|all| all.depth_limited);
        if depth_limited > 0 {
            warnings.push(Warning::Depth { count: depth_limited });
        }
        warnings
    }
}

/// The summary as a table, a row for each parameter.
impl<T: Real> fmt::Display for SampleResult<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>9} {:>10} {:>10} {:>10} {:>7} {:>9} {:>9}",
            "parameter", "mean", "deviation", "std. error", "R-hat", "bulk ESS", "tail ESS"
        )?;
        for (index, of) in self.parameters.iter().enumerate() {
            let [mean, deviation, error] = [of.mean, of.deviation, of.standard_error].map(four_digits);
            let (r_hat, bulk, tail) = (of.r_hat, of.effective_size, of.tail_effective_size);
            write!(
                f,
                "\n{index:>9} {mean:>10} {deviation:>10} {error:>10} {r_hat:>7.3} {bulk:>9.0} {tail:>9.0}"
            )?;
        }
        Ok(())
    }
}

/// Formats a number with four significant digits, in scientific notation if it is very small or large.
fn four_digits(value: f64) -> String {
    match value.abs() {
        size @ 1e-3..1e6 => format!("{value:.*}", (3 - size.log10().floor() as i32).max(0) as usize),
        0.0 => "0".to_owned(),
        _ => format!("{value:.3e}"),
    }
}

/// Runs one chain of `target` from each of the `starts` (`dimension x blocks` each, far apart) and summarises the
/// draws; see [`SampleResult::warnings`]. `sampler` builds the sampler of each chain from a child of `streams`. With
/// the feature `rayon`, chains run in parallel; the result is identical without it.
///
/// ```
/// use alphamf_samplers::random::SeedTree;
/// use alphamf_samplers::{Hmc, HmcSettings, Schedule, from_fn, sample};
/// # fn main() -> Result<(), alphamf_samplers::SamplerError> {
/// // A density proportional to exp(-x^2 / 2 - y^4), by its potential and its gradient.
/// let target = from_fn(2, |theta: &[f64], gradient: &mut [f64]| {
///     let (x, y) = (theta[0], theta[1]);
///     gradient.copy_from_slice(&[x, 4.0 * y.powi(3)]);
///     0.5 * x * x + y.powi(4)
/// });
/// let starts = [vec![-2.0, 1.0], vec![2.0, 1.0], vec![-2.0, -1.0], vec![2.0, -1.0]];
/// let schedule = Schedule { burn_in: 200, draws: 500 };
/// let sampled = sample(&target, &starts, schedule, SeedTree::new(7), |streams| {
///     Hmc::new(2, 1, HmcSettings::default(), streams)
/// })?;
/// assert!(sampled.max_r_hat() < 1.05 && sampled.min_effective_size() > 200.0);
/// assert!((sampled.parameters[0].deviation - 1.0).abs() < 0.1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of [`Chain::new`] and `sampler`; [`SamplerError::Setting`] without a start or with fewer than 4 draws per
/// chain.
pub fn sample<T: Real, G: Target<T> + Clone + Send + Sync, S: Sampler<T>>(
    target: &G,
    starts: &[Vec<T>],
    schedule: Schedule,
    streams: SeedTree,
    sampler: impl Fn(SeedTree) -> Result<S, SamplerError> + Sync,
) -> Result<SampleResult<T>, SamplerError> {
    check("starts", starts.len() as f64, "at least 1", !starts.is_empty())?;
    let run = |(chain, start): (usize, &Vec<T>)| {
        let sampler = sampler(streams.child(chain as u64))?;
        let (chains, (_, blocks)) = (sampler.chains(), sampler.shape());
        // R-hat compares the halves of a chain, which need two draws each.
        let draws = schedule.draws / chains;
        check("draws of each chain", draws as f64, "at least 4", draws >= 4)?;
        let mut record = RunRecord::new(start.len(), schedule.draws, chains);
        let mut chain = Chain::new(target.clone(), sampler, start.clone())?;
        chain.burn_in(schedule.burn_in);
        chain.record(schedule.draws, &mut record);
        Ok((record, blocks))
    };
    #[cfg(feature = "rayon")]
    let runs: Result<Vec<_>, SamplerError> = {
        use rayon::prelude::*;
        starts.par_iter().enumerate().map(run).collect()
    };
    #[cfg(not(feature = "rayon"))]
    let runs: Result<Vec<_>, SamplerError> = starts.iter().enumerate().map(run).collect();
    let (runs, blocks): (Vec<_>, Vec<_>) = runs?.into_iter().unzip();
    // Every number of the state counts as a separate parameter.
    Ok(SampleResult { moved: blocks[0], ..SampleResult::new(runs, 1) })
}

/// Returns the largest of the values and `least`; NaN if one is NaN.
fn largest(least: f64, values: impl Iterator<Item = f64>) -> f64 {
    let larger =
        |largest: f64, value: f64| if largest.is_nan() || value <= largest { largest } else { value };
    values.fold(least, larger)
}
