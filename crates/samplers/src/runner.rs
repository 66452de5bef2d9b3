//! Several chains of one posterior, and what they say of each other.

use super::diagnostics::{effective_size_bulk, interleaved, mean_and_variance, rank_r_hat, standard_error};
use super::{Chain, ChainStatistics, Real, Sampler, SamplerError, Target};

/// How long every chain runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Steps with adaptation on, none of which is kept.
    pub burn_in: usize,
    /// Steps that are kept, at least 4 of every chain that the sampler runs in turn ([`Sampler::chains`]).
    pub draws: usize,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { burn_in: 1000, draws: 1000 }
    }
}

/// What [`sample`] found.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleResult<T> {
    /// What is known of every unknown of the state.
    pub parameters: Vec<ParameterSummary>,
    /// What the steps of every chain did, burn-in left out.
    pub statistics: Vec<ChainStatistics>,
    /// Of every chain, unknowns x draws.
    draws: Vec<Vec<T>>,
    /// How many chains each of them runs in turn.
    interleaved: usize,
}

/// What all chains together say of one unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParameterSummary {
    /// Mean of the draws.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// Monte Carlo standard error of the mean.
    pub standard_error: f64,
    /// Rank-normalised split R-hat ([`rank_r_hat`]): above 1.01 the chains do not agree.
    pub r_hat: f64,
    /// Bulk effective sample size ([`effective_size_bulk`]): independent draws of the same worth.
    pub effective_size: f64,
}

impl<T: Real> SampleResult<T> {
    /// The draws of a chain, one state (`dimension x blocks`) after the other.
    ///
    /// # Panics
    /// If there is no such chain.
    pub fn draws(&self, chain: usize) -> impl ExactSizeIterator<Item = &[T]> {
        self.draws[chain].chunks_exact(self.parameters.len())
    }

    /// The draws of one unknown, a row for each chain: what the [diagnostics](super::diagnostics) take. A sampler that
    /// moves several chains in turn ([`Sampler::chains`]) has as many rows for each start, as these mix each by itself.
    ///
    /// # Panics
    /// If there is no such unknown.
    #[must_use]
    pub fn traces(&self, unknown: usize) -> Vec<Vec<f64>> {
        let trace = |chain| self.draws(chain).map(|theta| theta[unknown].widen()).collect::<Vec<f64>>();
        (0..self.draws.len()).flat_map(|chain| interleaved(&trace(chain), self.interleaved)).collect()
    }

    /// The largest R-hat of all unknowns, NaN if one is.
    #[must_use]
    pub fn max_r_hat(&self) -> f64 {
        let worse = |worst: f64, r_hat: f64| if worst.is_nan() || r_hat <= worst { worst } else { r_hat };
        self.parameters.iter().map(|unknown| unknown.r_hat).fold(1.0, worse)
    }

    /// The smallest effective size of all unknowns.
    #[must_use]
    pub fn min_effective_size(&self) -> f64 {
        self.parameters.iter().map(|unknown| unknown.effective_size).fold(f64::INFINITY, f64::min)
    }
}

/// Runs one chain of `target` from each of the `starts` (`dimension x blocks` each, far apart), and judges what they
/// drew. `sampler` makes the sampler of each chain from its number: give each its own random streams. With the
/// feature `rayon` chains run in parallel; the result is the same without.
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
/// let sampled = sample(&target, &starts, schedule, |chain| {
///     Hmc::new(2, 1, HmcSettings::default(), SeedTree::new(7).child(chain as u64))
/// })?;
/// assert!(sampled.max_r_hat() < 1.05 && sampled.min_effective_size() > 200.0);
/// assert!((sampled.parameters[0].deviation - 1.0).abs() < 0.1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`Chain::new`] and `sampler`; [`SamplerError::Setting`] without a start or with fewer than 4 draws of a chain.
pub fn sample<T: Real, G: Target<T> + Clone + Send + Sync, S: Sampler<T>>(
    target: &G,
    starts: &[Vec<T>],
    schedule: Schedule,
    sampler: impl Fn(usize) -> Result<S, SamplerError> + Sync,
) -> Result<SampleResult<T>, SamplerError> {
    let least = |name, value: usize, least, expected| {
        let value = value as f64;
        if value < least { Err(SamplerError::Setting { name, value, expected }) } else { Ok(()) }
    };
    least("starts", starts.len(), 1.0, "at least 1")?;
    let run = |(chain, start): (usize, &Vec<T>)| {
        let mut draws = Vec::with_capacity(schedule.draws * start.len());
        let sampler = sampler(chain)?;
        let chains = sampler.chains();
        // R-hat compares halves of chains, of two draws each.
        least("draws of each chain", schedule.draws / chains, 4.0, "at least 4")?;
        let mut chain = Chain::new(target.clone(), sampler, start.clone())?;
        chain.burn_in(schedule.burn_in);
        chain.run(schedule.draws, |draw| draws.extend_from_slice(draw.theta));
        Ok((draws, (chain.statistics(), chains)))
    };
    #[cfg(feature = "rayon")]
    let runs: Result<Vec<_>, SamplerError> = {
        use rayon::prelude::*;
        starts.par_iter().enumerate().map(run).collect()
    };
    #[cfg(not(feature = "rayon"))]
    let runs: Result<Vec<_>, SamplerError> = starts.iter().enumerate().map(run).collect();
    let (draws, runs): (Vec<_>, Vec<_>) = runs?.into_iter().unzip();
    let in_turn = runs[0].1;
    let statistics = runs.into_iter().map(|(statistics, _)| statistics).collect();
    let mut sampled = SampleResult { parameters: Vec::new(), statistics, draws, interleaved: in_turn };
    let width = starts[0].len();
    let traces = |unknown: usize| -> Vec<Vec<f64>> {
        let trace = |draws: &Vec<T>| -> Vec<f64> {
            draws.iter().skip(unknown).step_by(width).map(|x| x.widen()).collect()
        };
        sampled.draws.iter().flat_map(|draws| interleaved(&trace(draws), in_turn)).collect()
    };
    let judge = |unknown: usize| {
        let traces = traces(unknown);
        let (mean, variance) = mean_and_variance(&traces.concat());
        ParameterSummary {
            mean,
            deviation: variance.sqrt(),
            standard_error: standard_error(&traces),
            r_hat: rank_r_hat(&traces),
            effective_size: effective_size_bulk(&traces),
        }
    };
    sampled.parameters = (0..width).map(judge).collect();
    Ok(sampled)
}
