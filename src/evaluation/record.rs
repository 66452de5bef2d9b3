//! The record of an evaluation: what was measured, of what, how.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{ConditionSummary, EvaluationError, Failure, FileResult, Metric, summarise};

/// What made the results: enough to make them again, and all that must be equal for a run to
/// continue another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of this crate.
    pub version: String,
    /// What was scored: `denoise`, or `enhanced` for the output of another program.
    pub system: String,
    /// Name of the protocol, and of its variant, if there was one.
    pub protocol: Option<String>,
    /// Settings of the denoiser.
    pub settings: serde_json::Value,
    /// Seed of its random numbers.
    pub seed: Option<u64>,
    /// SHA-256 of the dictionary, in hexadecimal.
    pub dictionary_sha256: Option<String>,
    /// Frequency in Hz below which everything was removed before scoring, 0 for none.
    pub high_pass_hz: f64,
}

impl Provenance {
    /// The first field in which a recorded provenance differs, as a phrase; `None` if they agree.
    pub(super) fn difference(&self, recorded: &serde_json::Value) -> Option<String> {
        let ours = serde_json::to_value(self).unwrap_or_default();
        first_difference("", &ours, recorded)
    }
}

fn first_difference(name: &str, ours: &serde_json::Value, theirs: &serde_json::Value) -> Option<String> {
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

/// SHA-256 of a file in hexadecimal.
///
/// # Errors
/// [`EvaluationError::Io`] if it cannot be read.
pub fn checksum(path: &Path) -> Result<String, EvaluationError> {
    let bytes = fs::read(path).map_err(EvaluationError::io(path))?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A measure as a record names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    /// The measure.
    pub metric: Metric,
    /// Its unit.
    pub unit: String,
    /// [`Metric::definition`].
    pub definition: String,
}

/// The record of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// What made the results.
    pub provenance: Provenance,
    /// Definitions of the measures that were taken.
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

    /// As indented JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// As CSV: a line per scored file with its scores, and on every line what they mean and what
    /// made them, so that lines of several runs can be put together.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let provenance = &self.provenance;
        let metrics: Vec<Metric> = self.metrics.iter().map(|definition| definition.metric).collect();
        let mut header = vec!["file", "condition", "duration_seconds", "processing_seconds"];
        header.extend([
            "high_pass_hz",
            "system",
            "version",
            "protocol",
            "seed",
            "dictionary_sha256",
            "settings",
        ]);
        header.push("definitions");
        let mut names: Vec<String> = header[..4].iter().map(ToString::to_string).collect();
        for stage in ["input", "output"] {
            names.extend(metrics.iter().map(|metric| format!("{stage}_{}", metric.key())));
        }
        names.extend(header[4..].iter().map(ToString::to_string));
        let definitions: Vec<String> =
            metrics.iter().map(|metric| format!("{}: {}", metric.key(), metric.definition())).collect();
        let text = |value: Option<String>| value.unwrap_or_default();
        let common = [
            provenance.high_pass_hz.to_string(),
            provenance.system.clone(),
            provenance.version.clone(),
            text(provenance.protocol.clone()),
            text(provenance.seed.map(|seed| seed.to_string())),
            text(provenance.dictionary_sha256.clone()),
            provenance.settings.to_string(),
            definitions.join("; "),
        ];
        let rows = self.files.iter().map(|file| {
            let mut row = vec![
                file.name.clone(),
                text(file.condition.clone()),
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
        });
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in std::iter::once(names).chain(rows) {
            // Writing to memory does not fail, and all rows have the header's length.
            let written = writer.write_record(&row);
            debug_assert!(written.is_ok(), "{written:?}");
        }
        String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
    }
}

/// Writes a file that appears under its name, replacing what was there, when it is complete.
///
/// # Errors
/// [`EvaluationError::Io`]; what was there before then remains.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), EvaluationError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".alphamf-").suffix(".part");
    #[cfg(unix)]
    {
        // As for any new file: what the umask leaves.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder).map_err(EvaluationError::io(path))?;
    file.write_all(bytes).map_err(EvaluationError::io(path))?;
    file.persist(path).map_err(|error| EvaluationError::io(path)(error.error))?;
    Ok(())
}
