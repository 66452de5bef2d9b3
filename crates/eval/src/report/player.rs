//! Pictures and players of recordings: all versions play synchronously and can be switched, also blind.

use super::{escape, media};
use crate::plot::LEVEL_RANGE_DB;
use crate::{Evaluation, FileResult, Metric, Scores, Study};
use alphamf::signal::Signal;
use std::fmt::Write;

/// Longest section of a recording, in seconds, that the page shows and plays.
pub const EXAMPLE_SECONDS: f64 = 20.0;

/// A recording in all its versions.
#[derive(Debug, Clone)]
pub struct Example {
    /// Its [`FileResult::name`].
    pub name: String,
    /// The clean speech.
    pub clean: Signal,
    /// The recording, if there is one.
    pub noisy: Option<Signal>,
    /// The result of each system, in the order of [`Study::evaluations`]; absent where a system has none.
    pub denoised: Vec<Option<Signal>>,
}

/// Recordings for a page; [`best_and_worst`] chooses them.
#[derive(Debug, Clone, Default)]
pub struct Examples {
    /// Files with the largest gain, best first.
    pub best: Vec<Example>,
    /// Files with the smallest gain, worst first.
    pub worst: Vec<Example>,
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

/// The sections of all examples.
pub(super) fn sections(study: &Study, examples: &Examples) -> String {
    let mut html = String::new();
    let mut files = study.evaluations.iter().flat_map(|evaluation| &evaluation.files);
    let by = if files.any(|file| file.input.is_some()) { "the change of SDR" } else { "SDR" };
    for (title, examples) in [("Best files", &examples.best), ("Worst files", &examples.worst)] {
        if examples.is_empty() {
            continue;
        }
        let _ = write!(
            html,
            "<section><h2>{title}</h2><p class=muted>By {by}. Keys: space plays, 1 to 9 switch. Blind, the \
             versions are shuffled and without names. Spectrograms show {LEVEL_RANGE_DB} dB below the loudest bin of the \
             clean file.</p>"
        );
        examples.iter().for_each(|example| html += &show(study, example));
        html += "</section>";
    }
    html
}

fn show(study: &Study, example: &Example) -> String {
    let mut html = format!("<div class=example><h3>{}</h3>", escape(&example.name));
    if example.clean.duration() > EXAMPLE_SECONDS {
        let _ = write!(html, "<p class=muted>The first {EXAMPLE_SECONDS} s.</p>");
    }
    html += "<div class=views>";
    let clean = beginning(&example.clean);
    let loudest = media::loudest(&clean);
    let of =
        |evaluation: &Evaluation| evaluation.files.iter().find(|file| file.name == example.name).cloned();
    let input = study.evaluations.iter().find_map(|evaluation| of(evaluation)?.input);
    let mut views = vec![("Before".to_owned(), example.noisy.as_ref(), scores(input.as_ref()))];
    for (evaluation, denoised) in study.evaluations.iter().zip(&example.denoised) {
        let output = of(evaluation).map(|file| file.output);
        views.push((evaluation.provenance.system.clone(), denoised.as_ref(), scores(output.as_ref())));
    }
    views.push(("Clean".to_owned(), Some(&example.clean), String::new()));
    for (label, signal, scores) in views {
        let Some(signal) = signal.map(beginning) else { continue };
        let label = escape(&label);
        let high = f64::from(signal.sample_rate()) / 2000.0;
        let _ = write!(
            html,
            "<figure data-version=\"{label}\"><figcaption><b>{label}</b><span class=muted>{scores}</span></figcaption>\
             <div class=picture><span>{high} kHz</span><span>0</span><span>{:.1} s</span><img src=\"{}\" alt=\"Spectrogram, {label}: 0 to {high} \
             kHz, {:.1} s\"></div><audio controls preload=none src=\"{}\"></audio></figure>",
            signal.duration(),
            media::spectrogram(&signal, loudest),
            signal.duration(),
            media::wav(&signal)
        );
    }
    html + "</div></div>"
}

fn scores(scores: Option<&Scores>) -> String {
    let show = |metric: Metric| {
        let digits = metric.digits();
        Some(format!("{metric} {:.digits$} {}", scores?.get(metric)?, metric.unit()).trim_end().to_owned())
    };
    let shown = [Metric::Sdr, Metric::Estoi].into_iter().filter_map(show).collect::<Vec<_>>().join(" · ");
    shown.replace('-', "\u{2212}")
}

fn beginning(signal: &Signal) -> Signal {
    let length = ((EXAMPLE_SECONDS * f64::from(signal.sample_rate())) as usize).clamp(1, signal.len());
    let channels = vec![signal.channels()[0][..length].to_vec()];
    signal.with_channels(channels).unwrap_or_else(|_| signal.clone())
}
