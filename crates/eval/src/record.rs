//! The record of an evaluation: scores, files and settings.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::plot::Curve;
use super::{Comparison, ConditionSummary, Estimate, Failure, FileResult, Metric, paired_test, summarise};
use alphamf::random::SeedTree;

/// Origin of the results: all data needed to reproduce them. It must be equal for one run to resume another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of this crate.
    pub version: String,
    /// The scored system: a variant of a protocol, `denoise`, or `enhanced` for files of another program.
    pub system: String,
    /// Name of the protocol, if any.
    pub protocol: Option<String>,
    /// Settings of the denoiser.
    pub settings: serde_json::Value,
    /// Seed of its random numbers.
    pub seed: Option<u64>,
    /// SHA-256 of the dictionary, in hexadecimal.
    pub dictionary_sha256: Option<String>,
    /// High-pass cutoff in Hz applied before scoring, 0 for none.
    pub high_pass_hz: f64,
}

impl Provenance {
    /// The first field in which a recorded provenance differs, as a phrase; `None` if they agree.
    pub(super) fn difference(&self, recorded: &serde_json::Value) -> Option<String> {
        let ours = serde_json::to_value(self).unwrap_or_default();
        first_difference("", &ours, recorded)
    }
}

/// The first field in which `ours` differs from `theirs`, below `name`, as a phrase; `None` if they are equal.
#[must_use]
pub fn first_difference(name: &str, ours: &serde_json::Value, theirs: &serde_json::Value) -> Option<String> {
    use serde_json::Value::{Null, Object};
    match (ours, theirs) {
        (Object(a), Object(b)) => {
            a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).find_map(|key| {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                first_difference(&name, a.get(key).unwrap_or(&Null), b.get(key).unwrap_or(&Null))
            })
        }
        _ if ours == theirs => None,
        _ => Some(format!("{name} was {theirs}, now {ours}")),
    }
}

/// SHA-256 of some bytes, in hexadecimal.
#[must_use]
pub fn checksum(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// SHA-256 of the content of a file of any length, in hexadecimal.
///
/// # Errors
/// If the file cannot be read.
pub fn checksum_of_file(path: impl AsRef<Path>) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut HashWriter(&mut hash))?;
    Ok(hexadecimal(&hash.finalize()))
}

/// A writer into a checksum.
struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Description of a measure in a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The measure.
    pub metric: Metric,
    /// Its unit.
    pub unit: String,
    /// Definition by [`Metric::definition`].
    pub definition: String,
}

/// The record of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Origin of the results.
    pub provenance: Provenance,
    /// Definitions of the measures.
    pub metrics: Vec<Definition>,
    /// Means over all files, then over those of each condition.
    pub summary: Vec<ConditionSummary>,
    /// Every file that was scored, by name.
    pub files: Vec<FileResult>,
    /// Every file that could not be scored.
    pub failures: Vec<Failure>,
}

impl Evaluation {
    /// The record of these results.
    #[must_use]
    pub fn new(provenance: Provenance, files: Vec<FileResult>, failures: Vec<Failure>) -> Self {
        let taken = |metric: &Metric| files.iter().any(|file| file.output.get(*metric).is_some());
        let metrics = Metric::ALL.into_iter().filter(taken).map(|metric| Definition {
            metric,
            unit: metric.unit().to_owned(),
            definition: metric.definition().to_owned(),
        });
        Self { metrics: metrics.collect(), summary: summarise(&files), provenance, files, failures }
    }

    /// Name and score of every file.
    fn scores(&self, metric: Metric) -> impl Iterator<Item = (&str, f64)> {
        self.files.iter().filter_map(move |file| Some((file.name.as_str(), file.output.get(metric)?)))
    }

    fn rows(&self, metrics: &[Metric]) -> impl Iterator<Item = Vec<String>> {
        let provenance = &self.provenance;
        let text = |value: Option<String>| value.unwrap_or_default();
        let definitions: Vec<String> =
            metrics.iter().map(|metric| format!("{}: {}", metric.key(), metric.definition())).collect();
        let common = [
            provenance.high_pass_hz.to_string(),
            provenance.version.clone(),
            text(provenance.protocol.clone()),
            text(provenance.seed.map(|seed| seed.to_string())),
            text(provenance.dictionary_sha256.clone()),
            provenance.settings.to_string(),
            definitions.join("; "),
        ];
        self.files.iter().map(move |file| {
            let mut row = vec![
                file.name.clone(),
                text(file.condition.clone()),
                provenance.system.clone(),
                file.duration_seconds.to_string(),
                text(file.processing_seconds.map(|seconds| seconds.to_string())),
            ];
            for scores in [file.input.as_ref(), Some(&file.output)] {
                row.extend(metrics.iter().map(|metric| {
                    text(scores.and_then(|scores| scores.get(*metric)).map(|score| score.to_string()))
                }));
            }
            row.extend(common.iter().cloned());
            row
        })
    }

    /// Means over the files at every iteration that all files recorded.
    fn curve(&self, against: Abscissa) -> Option<Curve> {
        let first = self.files.first()?;
        let points = first.trace.iter().filter_map(|point| {
            let at = |file: &FileResult| {
                let point = file.trace.iter().find(|p| p.iteration == point.iteration)?;
                Some((point.seconds / file.duration_seconds, point.sdr))
            };
            let (seconds, sdr): (Vec<f64>, Vec<f64>) =
                self.files.iter().map(at).collect::<Option<Vec<_>>>()?.into_iter().unzip();
            let x = match against {
                Abscissa::Iterations => point.iteration as f64,
                Abscissa::Time => Estimate::of(&seconds)?.mean,
            };
            let sdr = Estimate::of(&sdr)?;
            Some((x, sdr.mean, sdr.standard_error.unwrap_or(0.0)))
        });
        let points: Vec<_> = points.collect();
        (!points.is_empty()).then(|| Curve { name: self.provenance.system.clone(), points })
    }
}

/// Several evaluations on the same files, compared in pairs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// One evaluation for each system.
    pub evaluations: Vec<Evaluation>,
    /// Every pair of systems.
    pub comparisons: Vec<SystemComparison>,
}

/// Two systems of a [`Study`] by one measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemComparison {
    /// [`Provenance::system`] of one.
    pub first: String,
    /// [`Provenance::system`] of the other.
    pub second: String,
    /// The measure.
    pub metric: Metric,
    /// First minus second, over the files that both scored.
    pub comparison: Comparison,
}

impl Study {
    /// Maximum number of systems that are compared by every measure.
    pub const MAX_COMPARED: usize = 6;

    /// Compares each evaluation with every later one: by every measure for up to [`MAX_COMPARED`](Self::MAX_COMPARED)
    /// systems, by SDR alone for more.
    #[must_use]
    pub fn new(evaluations: Vec<Evaluation>) -> Self {
        let metrics = if evaluations.len() <= Self::MAX_COMPARED { &Metric::ALL[..] } else { &[Metric::Sdr] };
        let mut comparisons = Vec::new();
        for (i, first) in evaluations.iter().enumerate() {
            let pairs = evaluations[i + 1..]
                .iter()
                .flat_map(|second| metrics.iter().map(move |metric| (second, *metric)));
            for (second, metric) in pairs {
                let scores: HashMap<&str, f64> = first.scores(metric).collect();
                let (a, b): (Vec<f64>, Vec<f64>) =
                    second.scores(metric).filter_map(|(name, b)| Some((*scores.get(name)?, b))).unzip();
                comparisons.extend(paired_test(&a, &b, SeedTree::new(0)).map(|comparison| {
                    SystemComparison {
                        first: first.provenance.system.clone(),
                        second: second.provenance.system.clone(),
                        metric,
                        comparison,
                    }
                }));
            }
        }
        Self { evaluations, comparisons }
    }

    /// The measures that were computed for any system.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        let taken = |metric: &Metric| {
            let mut definitions = self.evaluations.iter().flat_map(|evaluation| &evaluation.metrics);
            definitions.any(|definition| definition.metric == *metric)
        };
        Metric::ALL.into_iter().filter(taken).collect()
    }

    /// As indented JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// As CSV: one line per scored file with its scores, their definitions and their origin, so that lines of several runs
    /// can be joined.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let metrics = self.metrics();
        let mut header: Vec<String> =
            ["file", "condition", "system", "duration_seconds", "processing_seconds"]
                .map(String::from)
                .to_vec();
        for stage in ["input", "output"] {
            header.extend(metrics.iter().map(|metric| format!("{stage}_{}", metric.key())));
        }
        header.extend(
            ["high_pass_hz", "version", "protocol", "seed", "dictionary_sha256", "settings", "definitions"]
                .map(String::from),
        );
        let mut writer = csv::Writer::from_writer(Vec::new());
        let rows = self.evaluations.iter().flat_map(|evaluation| evaluation.rows(&metrics));
        for row in std::iter::once(header).chain(rows) {
            // Writing to memory does not fail, and all rows have the header's length.
            let written = writer.write_record(row.into_iter().map(escape_formula));
            debug_assert!(written.is_ok(), "{written:?}");
        }
        String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
    }

    /// The mean SDR of every system's traces, with standard errors, against iterations or seconds, for
    /// [`plot::curves`](super::plot::curves). Systems without traces are omitted.
    #[must_use]
    pub fn curves(&self, against: Abscissa) -> Vec<Curve> {
        self.evaluations.iter().filter_map(|evaluation| evaluation.curve(against)).collect()
    }
}

/// A CSV cell that no spreadsheet evaluates: text that begins like a formula gets an apostrophe, which spreadsheets hide.
fn escape_formula(cell: String) -> String {
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
    if formula { format!("'{cell}") } else { cell }
}

/// The abscissa of a convergence curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abscissa {
    /// Iterations of the sampler.
    Iterations,
    /// Seconds of processing per second of audio.
    Time,
}
