//! Convergence diagnostics, and divergence of draws from a known density.
//!
//! The estimators are those of Vehtari and others (2021), "Rank-normalization, folding, and localization: an improved
//! R-hat", and agree with the package `arviz` to rounding. A set of chains is a slice of equally long slices, one
//! number per draw; functions panic if lengths differ, and return NaN if a draw is NaN.

mod warnings;

use num_complex::Complex;

pub use warnings::Warning;

/// Splits the trace of `chains` interleaved chains (HAMCMC, HMC-BFGS and MH-BFGS: see
/// [`Sampler::chains`](super::Sampler::chains)) into equally long chains; drops surplus draws at the end. A draw is
/// correlated with the previous draw of its own chain, `chains` draws earlier, and hardly with its neighbours. An
/// estimate that sums autocorrelations until they vanish would therefore treat the unsplit trace as independent draws.
#[must_use]
pub fn interleaved(trace: &[f64], chains: usize) -> Vec<Vec<f64>> {
    let chains = chains.max(1);
    let rounds = trace.chunks_exact(chains);
    (0..chains).map(|chain| rounds.clone().map(|round| round[chain]).collect()).collect()
}

/// Autocovariances at lags `0 .. n-1`, divided by `n` at every lag.
#[must_use]
pub fn autocovariance(chain: &[f64]) -> Vec<f64> {
    let n = chain.len();
    if n == 0 {
        return Vec::new();
    }
    let mean = chain.iter().sum::<f64>() / n as f64;
    let size = (2 * n).next_power_of_two();
    let (forward, inverse) = (alphamf_fourier::forward::<f64>(size), alphamf_fourier::inverse::<f64>(size));
    let mut padded = forward.make_input_vec();
    padded.iter_mut().zip(chain).for_each(|(to, x)| *to = x - mean);
    let mut spectrum = forward.make_output_vec();
    // The buffers come from the plans, so the transforms cannot fail.
    let transformed = forward.process(&mut padded, &mut spectrum);
    spectrum.iter_mut().for_each(|value| *value = Complex::new(value.norm_sqr(), 0.0));
    let restored = transformed.and_then(|()| inverse.process(&mut spectrum, &mut padded));
    if restored.is_err() {
        return vec![f64::NAN; n];
    }
    padded[..n].iter().map(|value| value / (size as f64 * n as f64)).collect()
}

/// Autocorrelations at lags `0 .. n-1`.
#[must_use]
pub fn autocorrelation(chain: &[f64]) -> Vec<f64> {
    let covariance = autocovariance(chain);
    let variance = covariance.first().copied().unwrap_or(f64::NAN);
    covariance.iter().map(|value| value / variance).collect()
}

/// The effective sample size of the papers, `n / (1 + 2 sum of the first max_lag autocorrelations)` (`quasi-newton-hmc`
/// section 5.1, with `max_lag` 500). It can be negative by chance.
#[must_use]
pub fn effective_size_to_lag(chain: &[f64], max_lag: usize) -> f64 {
    let correlation = autocorrelation(chain);
    let sum: f64 = correlation.iter().skip(1).take(max_lag).sum();
    chain.len() as f64 / (1.0 + 2.0 * sum)
}

/// The mean and the unbiased variance.
#[must_use]
pub fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0))
}

/// Effective sample size of the mean, without splitting or ranks: Geyer's initial monotone sequence over all
/// chains. NaN for fewer than four draws or constant chains.
fn effective_size<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let m = chains.len();
    let n = chains.first().map_or(0, |chain| chain.as_ref().len());
    if m == 0 || n < 4 {
        return f64::NAN;
    }
    let first = chains[0].as_ref()[0];
    if chains.iter().all(|chain| chain.as_ref().iter().all(|&draw| draw == first)) {
        return f64::NAN;
    }
    let covariances: Vec<Vec<f64>> = chains.iter().map(|chain| autocovariance(chain.as_ref())).collect();
    let average = |lag: usize| covariances.iter().map(|c| c[lag]).sum::<f64>() / m as f64;
    let within = average(0) * n as f64 / (n as f64 - 1.0);
    let mut total = within * (n as f64 - 1.0) / n as f64;
    if m > 1 {
        let means: Vec<f64> =
            chains.iter().map(|chain| chain.as_ref().iter().sum::<f64>() / n as f64).collect();
        total += mean_and_variance(&means).1;
    }
    let correlation = |lag: usize| 1.0 - (within - average(lag)) / total;
    let mut rho = vec![0.0; n];
    let (mut even, mut odd) = (1.0, correlation(1));
    (rho[0], rho[1]) = (even, odd);
    let mut t = 1;
    while t + 3 < n && even + odd > 0.0 {
        (even, odd) = (correlation(t + 1), correlation(t + 2));
        if even + odd >= 0.0 {
            (rho[t + 1], rho[t + 2]) = (even, odd);
        }
        t += 2;
    }
    // Lags below `last` have full weight, lag `last` half of it; `last` is 0 if the loop did not run.
    let last = t - 1;
    if even > 0.0 {
        rho[last] = even;
    }
    let mut t = 1;
    while t + 2 < last {
        if rho[t + 1] + rho[t + 2] > rho[t - 1] + rho[t] {
            rho[t + 1] = 0.5 * (rho[t - 1] + rho[t]);
            rho[t + 2] = rho[t + 1];
        }
        t += 2;
    }
    let draws = (m * n) as f64;
    let time = -1.0 + 2.0 * rho[..last].iter().sum::<f64>() + rho[last];
    if rho.iter().any(|rho| rho.is_nan()) {
        return f64::NAN;
    }
    draws / time.max(1.0 / draws.log10())
}

/// Splits every chain into halves; drops the middle draw of a chain of odd length.
#[track_caller]
fn split<C: AsRef<[f64]>>(chains: &[C]) -> Vec<&[f64]> {
    let lengths = || chains.iter().map(|chain| chain.as_ref().len());
    assert!(lengths().all(|length| Some(length) == lengths().next()), "chains of one length");
    let halves = chains.iter().flat_map(|chain| {
        let chain = chain.as_ref();
        let half = chain.len() / 2;
        [&chain[..half], &chain[chain.len() - half..]]
    });
    halves.collect()
}

/// The normal quantile function: Acklam's rational approximation and one step of Halley's method.
fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 5] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 4] = [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416];
    let horner = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |p: f64| {
        let q = (-2.0 * libm::log(p)).sqrt();
        horner(&C, q) / (horner(&D, q) * q + 1.0)
    };
    let x = if p < 0.02425 {
        tail(p)
    } else if p > 1.0 - 0.02425 {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        let r = q * q;
        horner(&A, r) * q / (horner(&B, r) * r + 1.0)
    };
    let error = 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2) - p;
    let u = error * (2.0 * std::f64::consts::PI).sqrt() * libm::exp(0.5 * x * x);
    x - u / (1.0 + 0.5 * x * u)
}

/// Replaces all draws by normal scores of their pooled ranks, ties averaged.
fn rank_normalise<C: AsRef<[f64]>>(chains: &[C]) -> Vec<Vec<f64>> {
    let n = chains.first().map_or(0, |chain| chain.as_ref().len());
    let pooled: Vec<f64> = chains.iter().flat_map(|chain| chain.as_ref().iter().copied()).collect();
    let mut order: Vec<usize> = (0..pooled.len()).collect();
    order.sort_by(|&a, &b| pooled[a].total_cmp(&pooled[b]));
    let mut scores = vec![0.0; pooled.len()];
    let mut first = 0;
    while first < order.len() {
        let tie = order[first..].iter().take_while(|&&k| pooled[k] == pooled[order[first]]).count().max(1);
        let rank = first as f64 + 0.5 * (tie as f64 + 1.0);
        let score = match pooled[order[first]].is_nan() {
            true => f64::NAN,
            false => normal_quantile((rank - 0.375) / (pooled.len() as f64 + 0.25)),
        };
        order[first..first + tie].iter().for_each(|&k| scores[k] = score);
        first += tie;
    }
    scores.chunks(n.max(1)).map(<[f64]>::to_vec).collect()
}

/// Returns the bulk effective sample size: that of the mean of the rank-normalised split chains.
///
/// # Panics
/// If chains differ in length.
#[must_use]
pub fn effective_size_bulk<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    effective_size(&rank_normalise(&split(chains)))
}

/// Returns the tail effective sample size: the smaller of the effective sizes of the 5 % and 95 % quantiles. Each is
/// the effective size of the indicator `draw <= quantile` on the split chains. If the quantile equals the largest draw
/// (discrete parameters), the indicator is `draw < quantile`. In this case arviz counts all draws as below the quantile
/// and as independent.
///
/// # Panics
/// If chains differ in length.
#[must_use]
pub fn effective_size_tail<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let halves = split(chains);
    let mut pooled: Vec<f64> = chains.iter().flat_map(|chain| chain.as_ref().iter().copied()).collect();
    pooled.sort_by(f64::total_cmp);
    if pooled.is_empty() || pooled.iter().any(|draw| draw.is_nan()) {
        return f64::NAN;
    }
    // Interpolates linearly between order statistics, as numpy and arviz do.
    let quantile = |share: f64| {
        let place = share * (pooled.len() - 1) as f64;
        let (low, high) = (pooled[place.floor() as usize], pooled[place.ceil() as usize]);
        low + place.fract() * (high - low)
    };
    let size = |share: f64| {
        let limit = quantile(share);
        let is_largest = pooled.last() == Some(&limit);
        let is_within = |x: f64| if is_largest { x < limit } else { x <= limit };
        let indicators: Vec<Vec<f64>> =
            halves.iter().map(|half| half.iter().map(|&x| f64::from(is_within(x))).collect()).collect();
        effective_size(&indicators)
    };
    size(0.05).min(size(0.95))
}

/// Energy Bayesian fraction of missing information of one chain: the mean squared change of its energy divided by its
/// variance (Betancourt 2016, "Diagnosing suboptimal cotangent disintegrations"). Below 0.3 momenta explore the energy
/// slowly.
#[must_use]
pub fn energy_fraction(energies: &[f64]) -> f64 {
    let changes: f64 = energies.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    let n = energies.len() as f64;
    changes / (mean_and_variance(energies).1 * (n - 1.0))
}

/// Effective sample size of the mean of the split chains.
///
/// # Panics
/// If chains differ in length.
#[must_use]
pub fn effective_size_mean<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    effective_size(&split(chains))
}

/// Monte Carlo standard error of the mean. Split interleaved chains first ([`interleaved`]); otherwise the result is
/// too small.
///
/// # Panics
/// If chains differ in length.
#[must_use]
pub fn standard_error<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let pooled: Vec<f64> = chains.iter().flat_map(|chain| chain.as_ref().iter().copied()).collect();
    (mean_and_variance(&pooled).1 / effective_size_mean(chains)).sqrt()
}

fn potential_scale_reduction<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let n = chains.first().map_or(0, |chain| chain.as_ref().len()) as f64;
    let moments: Vec<(f64, f64)> = chains.iter().map(|chain| mean_and_variance(chain.as_ref())).collect();
    let means: Vec<f64> = moments.iter().map(|(mean, _)| *mean).collect();
    let within = moments.iter().map(|(_, variance)| variance).sum::<f64>() / moments.len() as f64;
    ((mean_and_variance(&means).1 / within) + (n - 1.0) / n).sqrt()
}

/// Split R-hat, without ranks.
///
/// # Panics
/// If chains differ in length.
#[must_use]
pub fn split_r_hat<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    potential_scale_reduction(&split(chains))
}

/// Rank-normalised split R-hat: the larger of the R-hat of the draws and the R-hat of their distances from the median.
///
/// # Panics
/// If chains differ in length.
#[must_use]
pub fn rank_r_hat<C: AsRef<[f64]>>(chains: &[C]) -> f64 {
    let halves = split(chains);
    let mut pooled: Vec<f64> = halves.iter().flat_map(|half| half.iter().copied()).collect();
    pooled.sort_by(f64::total_cmp);
    if pooled.is_empty() {
        return f64::NAN;
    }
    // The number of pooled draws is even: both halves of a chain are equally long.
    let middle = pooled.len() / 2;
    let median = 0.5 * (pooled[middle - 1] + pooled[middle]);
    let folded: Vec<Vec<f64>> =
        halves.iter().map(|half| half.iter().map(|x| (x - median).abs()).collect()).collect();
    let bulk = potential_scale_reduction(&rank_normalise(&halves));
    bulk.max(potential_scale_reduction(&rank_normalise(&folded)))
}

/// A histogram over equal cells of an interval, for the Kullback-Leibler divergence from a known density.
#[derive(Debug, Clone)]
pub struct Histogram {
    low: f64,
    width: f64,
    counts: Vec<f64>,
    total: f64,
}

impl Histogram {
    /// Creates an empty histogram of `cells` equal cells between `low` and `high`.
    ///
    /// # Panics
    /// If `low` is not below `high`, the width is not finite, or `cells` is 0.
    #[must_use]
    pub fn new(low: f64, high: f64, cells: usize) -> Self {
        assert!(
            low < high && (high - low).is_finite() && cells > 0,
            "{cells} cells between {low} and {high}"
        );
        Self { low, width: (high - low) / cells as f64, counts: vec![0.0; cells], total: 0.0 }
    }

    /// Counts one draw; draws outside the interval are ignored.
    pub fn add(&mut self, x: f64) {
        let cell = ((x - self.low) / self.width).floor();
        if cell >= 0.0 && (cell as usize) < self.counts.len() {
            self.total += 1.0;
            self.counts[cell as usize] += 1.0;
        }
    }

    /// Returns `KL(draws || density)` in nats, with both restricted to the interval. `potential` is minus the log
    /// density up to a constant; Simpson's rule in each cell normalises the density over the interval. NaN if no draw
    /// is in the interval.
    #[must_use]
    pub fn divergence(&self, potential: impl Fn(f64) -> f64) -> f64 {
        if self.total == 0.0 {
            return f64::NAN;
        }
        let potentials: Vec<[f64; 3]> = (0..self.counts.len())
            .map(|cell| {
                let left = self.low + cell as f64 * self.width;
                [left, left + 0.5 * self.width, left + self.width].map(&potential)
            })
            .collect();
        // Scales the density to a maximum of 1, so that a constant in the potential causes neither overflow nor
        // underflow.
        let finite = potentials.iter().flatten().filter(|potential| potential.is_finite());
        let least = finite.fold(f64::INFINITY, |a: f64, &b| a.min(b));
        let density = |potential: f64| libm::exp(least - potential);
        // Mass of a cell by Simpson's rule, up to a factor common to all cells.
        let mass = |ends: &[f64; 3]| density(ends[0]) + 4.0 * density(ends[1]) + density(ends[2]);
        let masses: Vec<f64> = potentials.iter().map(mass).collect();
        let normaliser: f64 = masses.iter().sum();
        let cells = self.counts.iter().zip(&masses).filter(|(count, _)| **count > 0.0);
        cells
            .map(|(count, mass)| {
                let share = count / self.total;
                share * libm::log(share * normaliser / mass)
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::normal_quantile;

    #[test]
    fn quantiles_are_those_of_the_normal_law() {
        for (p, expected) in [
            (0.5, 0.0),
            (0.3, -0.5244005127080407),
            (0.025, -1.9599639845400545),
            (0.02, -2.0537489106318225),
            (1e-3, -3.090232306167813),
            (1e-10, -6.361340902404056),
        ] {
            assert!((normal_quantile(p) - expected).abs() < 1e-13, "{p}: {}", normal_quantile(p));
            let above = normal_quantile(1.0 - p) + expected;
            assert!(p < 1e-9 || above.abs() < 1e-12, "{p}: {above}");
        }
    }
}
