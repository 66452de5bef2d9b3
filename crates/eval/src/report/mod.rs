//! A study as one self-contained HTML file: tables, charts, pictures and audio.

mod media;
mod player;
mod tables;

use crate::plot::{self, Bar, PlotError, Point, escape};
use alphamf::signal::counted;
use std::fmt::Write;

use super::{Abscissa, Evaluation, Metric, Scores, Study};
pub use player::{EXAMPLE_SECONDS, Example, Examples, best_and_worst};

/// Style of the page.
const STYLE: &str = include_str!("page.css");
/// Sorting and filtering of tables, and the players.
const SCRIPT: &str = include_str!("page.js");

/// Renders the page of a study, with audio examples.
///
/// # Errors
/// [`PlotError`]; no study is known to cause one.
pub fn render(study: &Study, examples: &Examples) -> Result<String, PlotError> {
    let protocol = study.evaluations.first().and_then(|evaluation| evaluation.provenance.protocol.as_deref());
    let title =
        protocol.map_or_else(|| "Evaluation".to_owned(), |name| format!("Evaluation: {}", escape(name)));
    let mut body = format!("<h1>{title}</h1>");
    body += &convergence(study)?;
    if !study.comparisons.is_empty() {
        body += &tables::comparisons(study);
    }
    for evaluation in &study.evaluations {
        if study.evaluations.len() > 1 {
            let _ = write!(body, "<h1 class=system>{}</h1>", escape(&evaluation.provenance.system));
        }
        body += &section(evaluation)?;
    }
    body += &player::sections(study, examples);
    body += &tables::all_files(study);
    for evaluation in &study.evaluations {
        body += &definitions(evaluation, study.evaluations.len() > 1);
    }
    Ok(format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <meta name=color-scheme content=\"light dark\"><link rel=icon href=\"data:,\"><title>{title}</title>\
         <style>{STYLE}</style></head><body><main>{body}</main><script>{SCRIPT}</script></body></html>\n"
    ))
}

/// Renders the charts of the traces; empty without traces.
fn convergence(study: &Study) -> Result<String, PlotError> {
    let mut html = String::new();
    for (against, x_title) in
        [(Abscissa::Iterations, "iterations"), (Abscissa::Time, "seconds of processing per second of audio")]
    {
        let curves = study.curves(against);
        if !curves.is_empty() {
            let chart = plot::curves("Convergence", [x_title, "SDR in dB"], &curves)?;
            let _ = write!(html, "<section>{chart}</section>");
        }
    }
    Ok(if html.is_empty() { html } else { format!("<div class=charts>{html}</div>") })
}

fn section(evaluation: &Evaluation) -> Result<String, PlotError> {
    let mut body = lead(evaluation);
    if !evaluation.files.is_empty() {
        body += &tables::summary(&evaluation.summary);
        body += &charts(evaluation)?;
    }
    if !evaluation.failures.is_empty() {
        body += "<section><h2>Files without scores</h2><table><tr><th>File<th>Reason";
        for failure in &evaluation.failures {
            let _ = write!(body, "<tr><td>{}<td>{}", escape(&failure.name), escape(&failure.reason));
        }
        body += "</table></section>";
    }
    Ok(body)
}

fn lead(evaluation: &Evaluation) -> String {
    let provenance = &evaluation.provenance;
    let seconds: f64 = evaluation.files.iter().map(|file| file.duration_seconds).sum();
    let mut lead = format!(
        "<p class=muted>{} scored, {:.1} min of audio",
        counted(evaluation.files.len() as u64, "file"),
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
    for metric in [Metric::Sdr, Metric::SiSdr, Metric::Estoi, Metric::NarrowBandPesq, Metric::WideBandPesq] {
        let Some(summary) = all.get(metric) else { continue };
        let digits = metric.digits();
        let change = summary
            .improvement
            .map(|gain| tables::change(gain.mean, digits, metric.less_is_better()))
            .unwrap_or_default();
        let _ = write!(
            lead,
            "<div class=tile><span class=muted>{metric}</span><b>{:.digits$} <small>{}</small></b>{change}</div>",
            summary.output.mean,
            metric.unit()
        );
    }
    lead + "</div>"
}

fn charts(evaluation: &Evaluation) -> Result<String, PlotError> {
    let mut charts = String::from("<div class=charts>");
    let mut add = |note: &str, chart: &str| {
        let note = if note.is_empty() { String::new() } else { format!("<p class=muted>{note}</p>") };
        let _ = write!(charts, "<section>{chart}{note}</section>");
    };
    let sdr = |scores: &Scores| scores.get(Metric::Sdr).filter(|sdr| sdr.is_finite());
    let scored: Vec<_> = evaluation
        .files
        .iter()
        .filter_map(|file| Some((file, file.input.as_ref().and_then(sdr), sdr(&file.output)?)))
        .collect();
    let left_out = evaluation.files.len() - scored.len();
    let note = match left_out {
        0 => String::new(),
        1 => "1 file with an infinite SDR is left out.".to_owned(),
        _ => format!("{left_out} files with an infinite SDR are left out."),
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

fn definitions(evaluation: &Evaluation, several: bool) -> String {
    let provenance = &evaluation.provenance;
    let of = if several { format!(": {}", escape(&provenance.system)) } else { String::new() };
    let mut list = format!("<section><h2>How it was measured{of}</h2><dl>");
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
