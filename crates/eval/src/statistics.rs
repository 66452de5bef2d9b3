//! Means, standard errors and paired comparisons.

use rand::Rng;
use serde::{Deserialize, Serialize};

use super::scores::extended;
use super::{FileResult, Metric};
use alphamf::random::SeedTree;

/// A mean over files.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean, infinite if one of the values is.
    #[serde(with = "extended")]
    pub mean: f64,
    /// Its standard error, `s / sqrt(n)`; absent for a single file or an infinite mean.
    pub standard_error: Option<f64>,
}

impl Estimate {
    /// Mean and standard error; `None` for no values or a mean that is undefined (`inf - inf`).
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        if mean.is_nan() {
            return None;
        }
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        let standard_error = (squares / (count - 1.0) / count).sqrt();
        Some(Self { mean, standard_error: Some(standard_error).filter(|error| error.is_finite()) })
    }
}

/// One measure over the files of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricSummary {
    /// The measure.
    pub metric: Metric,
    /// Scores of the recordings, where they were scored.
    pub input: Option<Estimate>,
    /// Scores of the results.
    pub output: Estimate,
    /// Output minus input, file by file.
    pub improvement: Option<Estimate>,
}

/// The files of one condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConditionSummary {
    /// The condition; `None` stands for all files together.
    pub condition: Option<String>,
    /// Number of files.
    pub files: usize,
    /// Every measure that was computed.
    pub metrics: Vec<MetricSummary>,
}

impl ConditionSummary {
    /// The summary of one measure, if it was computed.
    #[must_use]
    pub fn get(&self, metric: Metric) -> Option<&MetricSummary> {
        self.metrics.iter().find(|summary| summary.metric == metric)
    }
}

/// Summarises all files together, then each condition by name if there is more than one.
///
/// Files without a condition count only in the first row.
#[must_use]
pub fn summarise(files: &[FileResult]) -> Vec<ConditionSummary> {
    let mut conditions: Vec<&str> = files.iter().filter_map(|file| file.condition.as_deref()).collect();
    conditions.sort_unstable();
    conditions.dedup();
    let mut rows = vec![condition_summary(None, &files.iter().collect::<Vec<_>>())];
    if conditions.len() > 1 {
        rows.extend(conditions.into_iter().map(|condition| {
            let members: Vec<_> =
                files.iter().filter(|file| file.condition.as_deref() == Some(condition)).collect();
            condition_summary(Some(condition.to_owned()), &members)
        }));
    }
    rows
}

fn condition_summary(condition: Option<String>, files: &[&FileResult]) -> ConditionSummary {
    let summary = |metric: Metric| {
        let values = |score: &dyn Fn(&FileResult) -> Option<f64>| -> Vec<f64> {
            files.iter().filter_map(|file| score(file)).collect()
        };
        let input = |file: &FileResult| file.input.as_ref()?.get(metric);
        let output = |file: &FileResult| file.output.get(metric);
        Some(MetricSummary {
            metric,
            input: Estimate::of(&values(&input)),
            output: Estimate::of(&values(&output))?,
            improvement: Estimate::of(&values(&|file| Some(output(file)? - input(file)?))),
        })
    };
    ConditionSummary {
        condition,
        files: files.len(),
        metrics: Metric::ALL.into_iter().filter_map(summary).collect(),
    }
}

/// Comparison of two denoisers on the same files.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Number of files with finite scores by both denoisers.
    pub files: usize,
    /// Mean of first minus second, with its standard error.
    pub difference: Estimate,
    /// The 95 % interval of that mean by Student's t over files; absent for a single file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Two-sided p-value of the sign-flip permutation test.
    pub p_value: f64,
}

/// Compares paired scores by the sign-flip permutation test of the mean difference.
///
/// Under the hypothesis that the two are exchangeable on every file, both signs of each difference are equally likely.
/// All sign patterns are enumerated up to 16 files; for more files, 100,000 random patterns are drawn from `streams`
/// and the p-value is `(1 + hits) / (1 + draws)`, so never zero. Files that share a sentence are not independent, which
/// makes the p-value optimistic.
///
/// `None` if no pair has finite scores.
#[must_use]
pub fn paired_test(first: &[f64], second: &[f64], streams: SeedTree) -> Option<Comparison> {
    const ENUMERATED: usize = 16;
    const DRAWS: u32 = 100_000;
    let differences: Vec<f64> =
        first.iter().zip(second).map(|(a, b)| a - b).filter(|difference| difference.is_finite()).collect();
    let difference = Estimate::of(&differences)?;
    let observed: f64 = differences.iter().sum::<f64>().abs();
    // Sums of equal numbers in another order may differ by rounding, but must count as hits.
    let threshold = observed - 1e-12 * differences.iter().map(|x| x.abs()).sum::<f64>();
    let flipped = |signs: &mut dyn FnMut() -> bool| -> bool {
        let sum: f64 = differences.iter().map(|x| if signs() { -x } else { *x }).sum();
        sum.abs() >= threshold
    };
    let p_value = if differences.len() <= ENUMERATED {
        let patterns = 1_u32 << differences.len();
        let hits = (0..patterns).filter(|&pattern| {
            let mut bits = pattern;
            flipped(&mut || {
                let sign = bits & 1 == 1;
                bits >>= 1;
                sign
            })
        });
        hits.count() as f64 / f64::from(patterns)
    } else {
        let mut stream = streams.rng(0);
        let (mut bits, mut left) = (0_u64, 0_u32);
        let mut hits = 0_u32;
        for _ in 0..DRAWS {
            hits += u32::from(flipped(&mut || {
                if left == 0 {
                    (bits, left) = (stream.next_u64(), u64::BITS);
                }
                left -= 1;
                (bits >> left) & 1 == 1
            }));
        }
        f64::from(hits + 1) / f64::from(DRAWS + 1)
    };
    let interval = difference.standard_error.map(|error| {
        let reach = student_quantile(differences.len() - 1) * error;
        [difference.mean - reach, difference.mean + reach]
    });
    Some(Comparison { files: differences.len(), difference, interval, p_value })
}

/// The quantile of Student's t at 0.975 for `freedom` degrees of freedom, at least one; accurate to 0.001.
fn student_quantile(freedom: usize) -> f64 {
    const FEW: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];
    if let Some(quantile) = freedom.checked_sub(1).and_then(|index| FEW.get(index)) {
        return *quantile;
    }
    // Cornish and Fisher's expansion around the normal law.
    let (z, n) = (1.959_964_f64, freedom.max(1) as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / n + second / n.powi(2) + third / n.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_means_with_standard_errors() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 6.0]).unwrap();
        assert_eq!(estimate.mean, 3.0);
        assert!((estimate.standard_error.unwrap() - (14.0_f64 / 3.0 / 4.0).sqrt()).abs() < 1e-15);
        assert_eq!(Estimate::of(&[5.0]), Some(Estimate { mean: 5.0, standard_error: None }));
        assert_eq!(Estimate::of(&[]), None);
        let infinite = Estimate::of(&[1.0, f64::INFINITY]).unwrap();
        assert_eq!((infinite.mean, infinite.standard_error), (f64::INFINITY, None));
        assert_eq!(Estimate::of(&[f64::NEG_INFINITY, f64::INFINITY]), None);
    }

    #[test]
    fn few_files_have_an_exact_p_value() {
        // Differences 1, 2, 3: only +++ and --- reach the sum of 6.
        let test = paired_test(&[2.0, 4.0, 6.0], &[1.0, 2.0, 3.0], SeedTree::new(0)).unwrap();
        assert_eq!((test.files, test.difference.mean, test.p_value), (3, 2.0, 0.25));
        // 2 ± 4.303 / sqrt(3).
        let [low, high] = test.interval.unwrap();
        assert!((low - (2.0 - 4.303 / 3_f64.sqrt())).abs() < 1e-12 && (high + low - 4.0).abs() < 1e-12);
        let level = paired_test(&[1.0, 2.0], &[2.0, 1.0], SeedTree::new(0)).unwrap();
        assert_eq!(level.p_value, 1.0);
        assert_eq!(paired_test(&[f64::INFINITY], &[1.0], SeedTree::new(0)), None);
    }

    #[test]
    fn quantiles_of_student_are_those_of_tables() {
        for (freedom, expected) in
            [(1, 12.706), (9, 2.262), (10, 2.228), (20, 2.086), (60, 2.000), (1_000, 1.962)]
        {
            assert!((student_quantile(freedom) - expected).abs() < 1e-3, "{freedom}");
        }
    }

    /// Differences +1 (12 times) and -1 (8 times) make it the two-sided sign test.
    #[test]
    fn many_files_approach_the_exact_p_value() {
        let first: Vec<f64> = (0..20).map(|i| if i < 12 { 1.0 } else { -1.0 }).collect();
        let test = paired_test(&first, &[0.0; 20], SeedTree::new(3)).unwrap();
        // P(|B - 10| >= 2) for B ~ Binomial(20, 1/2).
        let exact = 1.0 - (184_756.0 + 2.0 * 167_960.0) / f64::from(1_u32 << 20);
        assert!((test.p_value - exact).abs() < 0.006, "{} against {exact}", test.p_value);
    }
}
