//! Tables of scores on the terminal.

use crate::terminal::{files, padded, printable, width};
use alphamf_eval::{ConditionSummary, Estimate, Metric, Study};
use std::fmt::Write;

/// All metrics over all files, then the conditions by the most informative metrics.
pub(super) fn tables(summary: &[ConditionSummary]) -> String {
    let mut text = String::new();
    let Some((all, conditions)) = summary.split_first() else { return text };
    if all.files == 0 {
        return text;
    }
    let _ = writeln!(text, "{:<16}{:>9}{:>18}{:>18}", files(all.files), "input", "output", "change");
    for row in &all.metrics {
        let digits = row.metric.digits();
        let name = match row.metric.unit() {
            "dB" => format!("{} (dB)", row.metric),
            _ => row.metric.to_string(),
        };
        let input = row.input.map(|input| format!("{:.digits$}", input.mean)).unwrap_or_default();
        let with_error = |estimate: Estimate, sign: bool| {
            let error =
                estimate.standard_error.map(|error| format!(" ± {error:.digits$}")).unwrap_or_default();
            if sign {
                format!("{:+.digits$}{error}", estimate.mean)
            } else {
                format!("{:.digits$}{error}", estimate.mean)
            }
        };
        let change = row.improvement.map(|change| with_error(change, true)).unwrap_or_default();
        let output = with_error(row.output, false);
        let _ = writeln!(text, "{}", format!("{name:<16}{input:>9}{output:>18}{change:>18}").trim_end());
    }
    if !conditions.is_empty() {
        // Manifests may contain any text, which is escaped to one line.
        let name = |row: &ConditionSummary| printable(row.condition.as_deref().unwrap_or_default());
        let widths = conditions.iter().map(|row| width(&name(row)));
        // A formatted width has at most 65,535 columns.
        let first = widths.max().unwrap_or(0).max("condition".len()).min(1_000);
        let shown = [Metric::Sdr, Metric::SiSdr, Metric::Estoi];
        let _ = write!(text, "\n{:<first$}{:>7}", "condition", "files");
        shown.iter().for_each(|metric| {
            let _ = write!(text, "{:>17}", metric.title());
        });
        text.push('\n');
        for row in conditions {
            let _ = write!(text, "{}{:>7}", padded(&name(row), first), row.files);
            for metric in shown {
                let digits = metric.digits();
                let cell = row.get(metric).map(|summary| {
                    let change = summary.improvement.map(|gain| format!(" ({:+.digits$})", gain.mean));
                    format!("{:.digits$}{}", summary.output.mean, change.unwrap_or_default())
                });
                let _ = write!(text, "{:>17}", cell.unwrap_or_default());
            }
            text.push('\n');
        }
    }
    text.push('\n');
    text
}

/// The differences between systems by SDR, a line each.
pub(super) fn comparisons(study: &Study) -> String {
    let mut text = String::new();
    // The other metrics are in the report and in JSON.
    for row in study.comparisons.iter().filter(|row| row.metric == Metric::Sdr) {
        let difference = row.comparison.difference;
        let error = difference.standard_error.map(|error| format!(" ± {error:.2}")).unwrap_or_default();
        let _ = writeln!(
            text,
            "{} - {}: {} {:+.2}{error} {} on {}, p = {:.2e} (sign-flip permutation)",
            row.first,
            row.second,
            row.metric,
            difference.mean,
            row.metric.unit(),
            files(row.comparison.files),
            row.comparison.p_value
        );
    }
    text
}
