//! Tables: scores by condition, of every file, and differences between systems.

use super::escape;
use crate::{ConditionSummary, Evaluation, Study};
use std::fmt::Write;

/// A change, in green or red.
pub(super) fn change(gain: f64, digits: usize, less_is_better: bool) -> String {
    let class = if (gain < 0.0) == less_is_better { "up" } else { "down" };
    format!("<span class={class}>{gain:+.digits$}</span>")
}

/// A field that filters the rows of a table.
fn filter(table: &str, rows: usize) -> String {
    format!(
        "<div class=filter><label>Show rows with <input type=search data-table={table}></label><span class=muted>{rows} \
         of {rows}</span></div>"
    )
}

/// Means with standard errors: conditions down, measures across.
pub(super) fn summary(summary: &[ConditionSummary]) -> String {
    let Some(all) = summary.first() else { return String::new() };
    let mut table =
        String::from("<section><h2>Summary</h2><table class=sortable><thead><tr><th>Condition<th>Files");
    for metric in &all.metrics {
        let unit = metric.metric.unit();
        // The unit is below the name, so that columns are no wider than their numbers.
        let unit = if unit.is_empty() { String::new() } else { format!("<br><small>({unit})</small>") };
        let _ = write!(table, "<th>{}{unit}", metric.metric);
    }
    table += "</thead><tbody>";
    for row in summary {
        let (class, name) = match &row.condition {
            None => (" class=total", "all files".to_owned()),
            Some(condition) => ("", escape(condition)),
        };
        let _ = write!(table, "<tr{class}><td>{name}<td>{}", row.files);
        for column in &all.metrics {
            let Some(summary) = row.get(column.metric) else {
                table += "<td data-v=\"\">";
                continue;
            };
            let digits = summary.metric.digits();
            let mean = summary.output.mean;
            let _ = write!(table, "<td data-v=\"{mean}\">{mean:.digits$}");
            if let Some(error) = summary.output.standard_error {
                let _ = write!(table, " <small>± {error:.digits$}</small>");
            }
            if let Some(gain) = summary.improvement {
                let _ = write!(table, "<br>{}", change(gain.mean, digits, summary.metric.less_is_better()));
            }
        }
    }
    table
        + "</tbody></table><p class=muted>Mean ± standard error over files; below it, the change from the input.</p></section>"
}

/// Scores of every file by every system.
pub(super) fn all_files(study: &Study) -> String {
    let metrics = study.metrics();
    let several = study.evaluations.len() > 1;
    let rows: usize = study.evaluations.iter().map(|evaluation| evaluation.files.len()).sum();
    let mut table = format!(
        "<section><details><summary>All files</summary>{}<table class=sortable id=files><thead><tr><th>File<th>Condition",
        filter("files", rows)
    );
    if several {
        table += "<th>System";
    }
    metrics.iter().for_each(|metric| {
        let _ = write!(table, "<th>{metric}");
    });
    table += "</thead><tbody>";
    for Evaluation { provenance, files, .. } in &study.evaluations {
        for file in files {
            let condition = escape(file.condition.as_deref().unwrap_or_default());
            let _ = write!(table, "<tr><td>{}<td>{condition}", escape(&file.name));
            if several {
                let _ = write!(table, "<td>{}", escape(&provenance.system));
            }
            for metric in &metrics {
                let digits = metric.digits();
                let output = file.output.get(*metric);
                let _ =
                    write!(table, "<td data-v=\"{}\">", output.map(|x| x.to_string()).unwrap_or_default());
                if let Some(input) = file.input.and_then(|input| input.get(*metric)) {
                    let _ = write!(table, "<small>{input:.digits$} →</small> ");
                }
                if let Some(output) = output {
                    let _ = write!(table, "{output:.digits$}");
                }
            }
        }
    }
    table + "</tbody></table></details></section>"
}

/// Differences between systems on the same files.
pub(super) fn comparisons(study: &Study) -> String {
    let mut html = format!(
        "<section><h2>Differences between systems</h2>{}<table class=sortable id=differences><thead><tr><th>Systems\
         <th>Measure<th>Files<th>Difference<th>95 % interval<th>p</thead><tbody>",
        filter("differences", study.comparisons.len())
    );
    for row in &study.comparisons {
        let (comparison, digits) = (&row.comparison, row.metric.digits());
        let mean = comparison.difference.mean;
        let _ = write!(
            html,
            "<tr><td>{} − {}<td>{}<td>{}<td data-v=\"{mean}\">{} {}",
            escape(&row.first),
            escape(&row.second),
            row.metric,
            comparison.files,
            change(mean, digits, row.metric.less_is_better()),
            row.metric.unit(),
        );
        let _ = match comparison.interval {
            Some([low, high]) => write!(html, "<td data-v=\"{low}\">{low:+.digits$} to {high:+.digits$}"),
            None => write!(html, "<td data-v=\"\">"),
        };
        let _ = write!(html, "<td data-v=\"{p}\">{p:.2e}", p = comparison.p_value);
    }
    html + "</tbody></table><p class=muted>Mean difference on the same files, with its 95 % interval by Student's t over \
            files; p by a two-sided sign-flip permutation test. Neither is corrected for the number of rows.</p></section>"
}
