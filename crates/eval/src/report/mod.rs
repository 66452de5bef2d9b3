//! An evaluation as one HTML file that needs nothing else: tables, charts, pictures and sound.

mod media;

use std::fmt::Write;

use super::{Abscissa, ConditionSummary, Evaluation, FileResult, Metric, Study};
use crate::plot::{self, Bar, PlotError, Point};
use alphamf::signal::Signal;

/// Longest stretch of a recording, in seconds, that the page shows and plays.
pub const EXAMPLE_SECONDS: f64 = 20.0;

/// A file to look at and listen to.
#[derive(Debug, Clone)]
pub struct Example {
    /// Its scores.
    pub result: FileResult,
    /// The clean speech.
    pub clean: Signal,
    /// The recording, if there is one.
    pub noisy: Option<Signal>,
    /// What became of it.
    pub denoised: Signal,
}

/// The files to show as examples, by their index: those with the largest and those with the
/// smallest gain in SDR (largest and smallest SDR where recordings were not scored), at most
/// `count` of each, best first and worst first.
#[must_use]
pub fn best_and_worst(files: &[FileResult], count: usize) -> (Vec<usize>, Vec<usize>) {
    let mut order: Vec<(usize, f64)> = files
        .iter()
        .enumerate()
        .filter_map(|(i, file)| {
            let output = file.output.get(Metric::Sdr)?;
            let input = file.input.as_ref().and_then(|input| input.get(Metric::Sdr)).unwrap_or(0.0);
            Some((i, output - input)).filter(|(_, gain)| !gain.is_nan())
        })
        .collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let worst = count.min(order.len() / 2);
    let best = count.min(order.len() - worst);
    (
        order.iter().take(best).map(|(i, _)| *i).collect(),
        order.iter().rev().take(worst).map(|(i, _)| *i).collect(),
    )
}

/// The examples of one evaluation; [`best_and_worst`] chooses them.
#[derive(Debug, Clone, Default)]
pub struct Examples {
    /// Files with the largest gain, best first.
    pub best: Vec<Example>,
    /// Files with the smallest gain, worst first.
    pub worst: Vec<Example>,
}

/// The page of a study, with the examples of each of its evaluations in their order.
///
/// # Errors
/// [`PlotError`]; none is known for any study.
pub fn render(study: &Study, examples: &[Examples]) -> Result<String, PlotError> {
    let protocol = study.evaluations.first().and_then(|evaluation| evaluation.provenance.protocol.as_deref());
    let title =
        protocol.map_or_else(|| "Evaluation".to_owned(), |name| format!("Evaluation: {}", escape(name)));
    let mut body = format!("<h1>{title}</h1>");
    if !study.comparisons.is_empty() {
        body += &comparisons(study)?;
    }
    for (i, evaluation) in study.evaluations.iter().enumerate() {
        if study.evaluations.len() > 1 {
            let _ = write!(body, "<h1 class=system>{}</h1>", escape(&evaluation.provenance.system));
        }
        body += &section(evaluation, examples.get(i).unwrap_or(&Examples::default()))?;
    }
    Ok(format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <meta name=color-scheme content=\"light dark\"><link rel=icon href=\"data:,\"><title>{title}</title>\
         <style>{STYLE}</style></head><body><main>{body}</main></body></html>\n"
    ))
}

fn comparisons(study: &Study) -> Result<String, PlotError> {
    let mut html = String::from("<div class=charts>");
    for (against, x_title) in
        [(Abscissa::Iterations, "iterations"), (Abscissa::Time, "seconds of processing per second of audio")]
    {
        let curves = study.curves(against);
        if !curves.is_empty() {
            let title = "Convergence";
            let chart = plot::curves(title, [x_title, "SDR in dB"], &curves)?;
            let _ = write!(html, "<section>{chart}</section>");
        }
    }
    html += "</div><section><h2>Comparison</h2><table><tr><th>Systems<th>Measure<th>Files<th>Difference<th>p";
    for row in &study.comparisons {
        let comparison = &row.comparison;
        let error =
            comparison.difference.standard_error.map(|error| format!(" ± {error:.2}")).unwrap_or_default();
        let _ = write!(
            html,
            "<tr><td>{} − {}<td>{}<td>{}<td>{:+.2}{error} {}<td>{:.2e}",
            escape(&row.first),
            escape(&row.second),
            row.metric,
            comparison.files,
            comparison.difference.mean,
            row.metric.unit(),
            comparison.p_value
        );
    }
    html += "</table><p class=muted>Mean difference ± standard error on the same files; two-sided sign-flip \
             permutation test.</p></section>";
    Ok(html)
}

fn section(evaluation: &Evaluation, examples: &Examples) -> Result<String, PlotError> {
    let mut body = lead(evaluation);
    if !evaluation.files.is_empty() {
        body += &tables(&evaluation.summary);
        body += &charts(evaluation)?;
    }
    if !evaluation.failures.is_empty() {
        body += "<section><h2>Files without scores</h2><table><tr><th>File<th>Reason";
        for failure in &evaluation.failures {
            let _ = write!(body, "<tr><td>{}<td>{}", escape(&failure.name), escape(&failure.reason));
        }
        body += "</table></section>";
    }
    for (title, examples) in [("Best files", &examples.best), ("Worst files", &examples.worst)] {
        if !examples.is_empty() {
            let _ = write!(body, "<section><h2>{title}</h2>");
            examples.iter().for_each(|example| body += &show_example(example));
            body += "</section>";
        }
    }
    Ok(body + &all_files(evaluation) + &definitions(evaluation))
}

/// Style of the page.
const STYLE: &str = include_str!("page.css");

fn lead(evaluation: &Evaluation) -> String {
    let provenance = &evaluation.provenance;
    let files = evaluation.files.len();
    let seconds: f64 = evaluation.files.iter().map(|file| file.duration_seconds).sum();
    let mut lead = format!(
        "<p class=muted>{files} file{} scored, {:.1} min of audio",
        if files == 1 { "" } else { "s" },
        seconds / 60.0
    );
    if !evaluation.failures.is_empty() {
        let _ = write!(lead, ", {} without scores", evaluation.failures.len());
    }
    if provenance.high_pass_hz > 0.0 {
        let _ = write!(lead, ", everything below {} Hz removed before scoring", provenance.high_pass_hz);
    }
    let _ = write!(lead, "; scored by alphamf {}.</p>", escape(&provenance.version));
    let Some(all) = evaluation.summary.first() else { return lead };
    lead += "<div class=tiles>";
    for metric in [Metric::Sdr, Metric::SiSdr, Metric::Estoi, Metric::WideBandPesq] {
        let Some(summary) = all.get(metric) else { continue };
        let digits = metric.digits();
        let change = summary.improvement.map(|gain| change(gain.mean, digits)).unwrap_or_default();
        let _ = write!(
            lead,
            "<div class=tile><span class=muted>{metric}</span><b>{:.digits$} <small>{}</small></b>{change}</div>",
            summary.output.mean,
            metric.unit()
        );
    }
    lead + "</div>"
}

fn change(gain: f64, digits: usize) -> String {
    let class = if gain < 0.0 { "down" } else { "up" };
    format!("<span class={class}>{gain:+.digits$}</span>")
}

/// One table of means with standard errors: conditions down, measures across.
fn tables(summary: &[ConditionSummary]) -> String {
    let Some(all) = summary.first() else { return String::new() };
    let mut table = String::from("<section><h2>Summary</h2><table><tr><th>Condition<th>Files");
    for metric in &all.metrics {
        let unit = metric.metric.unit();
        let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        let _ = write!(table, "<th>{}{unit}", metric.metric);
    }
    for row in summary {
        let (class, name) = match &row.condition {
            None => (" class=total", "all files".to_owned()),
            Some(condition) => ("", escape(condition)),
        };
        let _ = write!(table, "<tr{class}><td>{name}<td>{}", row.files);
        for column in &all.metrics {
            let Some(summary) = row.get(column.metric) else {
                table += "<td>";
                continue;
            };
            let digits = summary.metric.digits();
            let _ = write!(table, "<td>{:.digits$}", summary.output.mean);
            if let Some(error) = summary.output.standard_error {
                let _ = write!(table, " <small>± {error:.digits$}</small>");
            }
            if let Some(gain) = summary.improvement {
                let _ = write!(table, "<br>{}", change(gain.mean, digits));
            }
        }
    }
    table
        + "</table><p class=muted>Mean ± standard error over files; below it, the change from the input.</p></section>"
}

fn charts(evaluation: &Evaluation) -> Result<String, PlotError> {
    let mut charts = String::from("<div class=charts>");
    let mut add = |note: &str, chart: &str| {
        let note = if note.is_empty() { String::new() } else { format!("<p class=muted>{note}</p>") };
        let _ = write!(charts, "<section>{chart}{note}</section>");
    };
    let sdr = |scores: &super::Scores| scores.get(Metric::Sdr).filter(|sdr| sdr.is_finite());
    let scored: Vec<_> = evaluation
        .files
        .iter()
        .filter_map(|file| Some((file, file.input.as_ref().and_then(sdr), sdr(&file.output)?)))
        .collect();
    let left_out = evaluation.files.len() - scored.len();
    let note = if left_out == 0 {
        String::new()
    } else {
        format!("{left_out} files with an infinite SDR are left out.")
    };
    let points: Vec<Point> = scored
        .iter()
        .filter_map(|(file, input, output)| Some(Point { name: file.name.clone(), x: (*input)?, y: *output }))
        .collect();
    if points.is_empty() {
        let values: Vec<f64> = scored.iter().map(|(.., output)| *output).collect();
        add(&note, &plot::histogram("Distribution of SDR", ["SDR in dB", "files"], &values)?);
        return Ok(charts + "</div>");
    }
    let bars: Vec<Bar> = evaluation
        .summary
        .iter()
        .filter_map(|row| {
            let gain = row.get(Metric::Sdr)?.improvement.filter(|gain| gain.mean.is_finite())?;
            let label = row.condition.clone().unwrap_or_else(|| "all files".into());
            Some(Bar { label, value: gain.mean, error: gain.standard_error.unwrap_or(0.0) })
        })
        .collect();
    let title = "Improvement by condition";
    add("Error bars are one standard error.", &plot::bars(title, "SDR improvement in dB", &bars)?);
    let title = "SDR of output against input";
    add(&note, &plot::scatter(title, ["input SDR in dB", "output SDR in dB"], &points)?);
    let gains: Vec<f64> = points.iter().map(|point| point.y - point.x).collect();
    let title = "Distribution of the improvement";
    add("", &plot::histogram(title, ["SDR improvement in dB", "files"], &gains)?);
    let points: Vec<Point> = evaluation
        .files
        .iter()
        .filter_map(|file| {
            let (x, y) = (file.input.as_ref()?.get(Metric::Estoi)?, file.output.get(Metric::Estoi)?);
            Some(Point { name: file.name.clone(), x, y })
        })
        .collect();
    let title = "ESTOI of output against input";
    add("", &plot::scatter(title, ["input ESTOI, 0 to 1", "output ESTOI, 0 to 1"], &points)?);
    Ok(charts + "</div>")
}

fn show_example(example: &Example) -> String {
    let mut html = format!("<div class=example><h3>{}</h3>", escape(&example.result.name));
    if example.denoised.duration() > EXAMPLE_SECONDS {
        let _ = write!(html, "<p class=muted>The first {EXAMPLE_SECONDS} s.</p>");
    }
    html += "<div class=views>";
    let clean = beginning(&example.clean);
    let loudest = media::loudest(&clean);
    let scores = |scores: Option<&super::Scores>| -> String {
        let show = |metric: Metric| {
            let digits = metric.digits();
            Some(
                format!("{metric} {:.digits$} {}", scores?.get(metric)?, metric.unit()).trim_end().to_owned(),
            )
        };
        [Metric::Sdr, Metric::Estoi].into_iter().filter_map(show).collect::<Vec<_>>().join(" · ")
    };
    let views = [
        ("Recording", example.noisy.as_ref(), scores(example.result.input.as_ref())),
        ("Denoised", Some(&example.denoised), scores(Some(&example.result.output))),
        ("Clean", Some(&example.clean), String::new()),
    ];
    for (label, signal, scores) in views {
        let Some(signal) = signal.map(beginning) else { continue };
        let high = f64::from(signal.sample_rate()) / 2000.0;
        let _ = write!(
            html,
            "<figure><figcaption><b>{label}</b><span class=muted>{scores}</span></figcaption>\
             <div class=picture><span>{high} kHz</span><span>0</span><img src=\"{}\" alt=\"Spectrogram, {label}: 0 to {high} kHz, {:.1} s\"></div>\
             <audio controls preload=metadata src=\"{}\"></audio></figure>",
            media::spectrogram(&signal, loudest),
            signal.duration(),
            media::wav(&signal)
        );
    }
    html + "</div></div>"
}

fn beginning(signal: &Signal) -> Signal {
    let length = ((EXAMPLE_SECONDS * f64::from(signal.sample_rate())) as usize).clamp(1, signal.len());
    let channels = vec![signal.channels()[0][..length].to_vec()];
    signal.with_channels(channels).unwrap_or_else(|_| signal.clone())
}

fn all_files(evaluation: &Evaluation) -> String {
    let metrics: Vec<Metric> = evaluation.metrics.iter().map(|definition| definition.metric).collect();
    let mut table =
        String::from("<section><details><summary>All files</summary><table><tr><th>File<th>Condition");
    metrics.iter().for_each(|metric| {
        let _ = write!(table, "<th>{metric}");
    });
    for file in &evaluation.files {
        let condition = escape(file.condition.as_deref().unwrap_or_default());
        let _ = write!(table, "<tr><td>{}<td>{condition}", escape(&file.name));
        for metric in &metrics {
            let digits = metric.digits();
            table += "<td>";
            if let Some(input) = file.input.and_then(|input| input.get(*metric)) {
                let _ = write!(table, "<small>{input:.digits$} →</small> ");
            }
            if let Some(output) = file.output.get(*metric) {
                let _ = write!(table, "{output:.digits$}");
            }
        }
    }
    table + "</table></details></section>"
}

fn definitions(evaluation: &Evaluation) -> String {
    let provenance = &evaluation.provenance;
    let mut list = String::from("<section><h2>How it was measured</h2><dl>");
    let mut add = |term: &str, text: &str| {
        let _ = write!(list, "<dt>{}<dd>{}", escape(term), escape(text));
    };
    for definition in &evaluation.metrics {
        add(definition.metric.title(), &definition.definition);
    }
    add("Settings", &provenance.settings.to_string());
    if let Some(seed) = provenance.seed {
        add("Seed", &seed.to_string());
    }
    if let Some(checksum) = &provenance.dictionary_sha256 {
        add("Dictionary (SHA-256)", checksum);
    }
    list + "</dl></section>"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
