//! `--manifest`: lists of recordings as names, NeMo's JSON lines, or lhotse's cuts and recordings; and the manifest of
//! the results.

mod results;
#[cfg(test)]
mod tests;

use super::failure::{Failure, usage};
use super::inputs::plain;
use super::record;
use super::streams::{is_standard, name, read_bounded, read_standard_input};
use alphamf_files::Reader;
use anyhow::{Context, anyhow, bail, ensure};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
pub use results::ResultManifest;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Maximum size of a list, also when decompressed: a million recordings.
const MAX_BYTES: u64 = 256 << 20;
const EXPECTED: &str = "expected a name per line, or JSON lines of NeMo or lhotse";
const SAVE: &str = "save the audio to files first (CutSet.save_audios of lhotse)";
/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// A list of recordings.
#[derive(Debug)]
pub struct Manifest {
    path: PathBuf,
    kind: ListFormat,
    compressed: bool,
    text: String,
    recordings: Vec<Listed>,
}

/// A recording in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Path of the recording.
    pub input: PathBuf,
    /// Name in the list.
    pub name: PathBuf,
}

/// Format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListFormat {
    /// A name per line.
    Names,
    /// A JSON object per line with `audio_filepath`.
    Nemo,
    /// A recording in files, or a cut of one, per line, as JSON.
    Lhotse,
}

impl Manifest {
    /// Reads a list. The format is determined by its contents: one that begins with a brace is JSON.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let standard = || name(path, "standard input").to_owned();
        let bytes = match is_standard(path) {
            true => read_standard_input(MAX_BYTES)?,
            false => read_bounded(path, MAX_BYTES)?,
        };
        let bytes = bytes.with_context(|| Failure::Input(standard()))?;
        let manifest = Self::parse(path, bytes).with_context(|| Failure::Unusable(standard()))?;
        if is_standard(path) && manifest.kind != ListFormat::Names {
            return Err(usage(
                "--manifest -: expected a list of names; a manifest of NeMo or lhotse needs a file",
            ));
        }
        Ok(manifest)
    }

    fn parse(path: &Path, mut bytes: Vec<u8>) -> anyhow::Result<Self> {
        let compressed = bytes.starts_with(&GZIP);
        if compressed {
            bytes = decompressed(&bytes, MAX_BYTES)?;
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
            anyhow!("line {line}: not UTF-8 text: save the list as UTF-8")
        })?;
        // The byte order mark is not part of JSON, either.
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let mut manifest =
            Self { path: path.to_owned(), kind: ListFormat::Names, compressed, text, recordings: Vec::new() };
        manifest.recordings = manifest.listed()?;
        ensure!(!manifest.recordings.is_empty(), "no recording in the list");
        Ok(manifest)
    }

    /// Recordings, in the order of the list; cuts may name one repeatedly.
    pub fn recordings(&self) -> &[Listed] {
        &self.recordings
    }

    /// Name of the result manifest, equal to that of this one. A list of names has none.
    pub fn result_name(&self) -> Option<&Path> {
        (self.kind != ListFormat::Names)
            .then(|| Path::new(self.path.file_name().unwrap_or(self.path.as_os_str())))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns this manifest with the results in place of the recordings, without entries that lack a result. `results`
    /// maps inputs, as spelled or as [`record::source`] returns them, to outputs.
    pub fn of_results(&self, results: &HashMap<PathBuf, String>) -> anyhow::Result<Vec<u8>> {
        let mut text = Vec::new();
        let mut rates = HashMap::new();
        for (_, line) in self.lines() {
            let mut entry: Value = serde_json::from_str(line)?;
            let files = files(&mut entry)?.1;
            let output = |file: &&mut String| {
                let input = self.resolve(Path::new(file));
                results.get(&input).or_else(|| results.get(Path::new(&record::source(&input))))
            };
            let outputs: Option<Vec<&String>> = files.iter().map(output).collect();
            let Some(outputs) = outputs else { continue };
            let mut rate = None;
            for (file, output) in files.into_iter().zip(outputs) {
                // Converted files are compressed ones, most of which lhotse decodes with another library, at another
                // rate.
                if self.kind == ListFormat::Lhotse
                    && Path::new(file).extension() != Path::new(output).extension()
                {
                    rate = Some(match rates.entry(output) {
                        Entry::Occupied(known) => *known.get(),
                        Entry::Vacant(new) => *new.insert(Reader::open(output)?.sample_rate()),
                    });
                }
                output.clone_into(file);
            }
            if let (ListFormat::Lhotse, Some(cut)) = (self.kind, entry.as_object_mut()) {
                // The features are those of the noisy recording.
                cut.remove("features");
            }
            if let Some(rate) = rate {
                keep_rate(recording(&mut entry), rate);
            }
            serde_json::to_writer(&mut text, &entry)?;
            text.push(b'\n');
        }
        if !self.compressed {
            return Ok(text);
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&text)?;
        Ok(encoder.finish()?)
    }

    /// Lines that are not empty, with their numbers.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines()).filter(|(_, line)| !line.trim().is_empty())
    }

    /// Determines the kind, and gathers the recordings.
    fn listed(&mut self) -> anyhow::Result<Vec<Listed>> {
        if !self.text.trim_start().starts_with('{') {
            ensure!(!self.text.contains('\0'), "zero bytes in the list: expected one name per line");
            let named = |(_, line)| self.named(Path::new(line));
            let listed: Vec<Listed> = self.lines().map(named).collect();
            // A table, or a JSON array, would otherwise fail line by line.
            if let Some(Listed { name, .. }) = listed.first() {
                let found = listed.iter().any(|listed| listed.input.exists());
                let start: String = name.to_string_lossy().chars().take(80).collect();
                ensure!(found, "no line names a file; the first is {start:?}: {EXPECTED}");
            }
            return Ok(listed);
        }
        let mut kind = None;
        let mut listed = Vec::new();
        for (number, line) in self.lines() {
            let mut read = || -> anyhow::Result<()> {
                let mut entry: Value = serde_json::from_str(line).map_err(|error| {
                    let rest = match error.is_eof() {
                        true => "expected an object per line",
                        false => line.get(error.column().saturating_sub(1)..).unwrap_or_default(),
                    };
                    anyhow!("not JSON: {error}: {rest:.30}")
                })?;
                let (found, files) = files(&mut entry)?;
                ensure!(*kind.get_or_insert(found) == found, "NeMo and lhotse entries in one manifest");
                listed.extend(files.into_iter().map(|file| self.named(Path::new(file))));
                Ok(())
            };
            read().with_context(|| format!("line {number}"))?;
        }
        self.kind = kind.unwrap_or(ListFormat::Names);
        Ok(listed)
    }

    /// The recording of this name in the list.
    fn named(&self, file: &Path) -> Listed {
        Listed { input: self.resolve(file), name: plain(file) }
    }

    /// Path of a listed file: its name or, if no such file exists, that name beside the list, as in NeMo. `-` is a
    /// file, too.
    fn resolve(&self, file: &Path) -> PathBuf {
        let file = if is_standard(file) { Path::new("./-") } else { file };
        let beside = self.path.parent().map(|folder| folder.join(file));
        let beside = beside.filter(|beside| !file.exists() && beside.is_file());
        plain(&beside.unwrap_or_else(|| file.into()))
    }
}

/// The contents of a gzip file, of at most `max_bytes`.
fn decompressed(bytes: &[u8], max_bytes: u64) -> anyhow::Result<Vec<u8>> {
    let mut whole = Vec::new();
    MultiGzDecoder::new(bytes).take(max_bytes + 1).read_to_end(&mut whole)?;
    ensure!(whole.len() as u64 <= max_bytes, "more than {} MB when decompressed", max_bytes >> 20);
    Ok(whole)
}

/// The names of files in an entry.
fn files(entry: &mut Value) -> anyhow::Result<(ListFormat, Vec<&mut String>)> {
    let expect_name = |value: &Value, key: &str| match value {
        Value::String(name) if !name.is_empty() => Ok(()),
        _ => Err(anyhow!("`{key}` is {value}; expected the name of a file")),
    };
    if let Some(file) = entry.get("audio_filepath") {
        expect_name(file, "audio_filepath")?;
        let file = entry.get_mut("audio_filepath").and_then(as_string_mut);
        return Ok((ListFormat::Nemo, file.into_iter().collect()));
    }
    let kind = entry.get("type").and_then(Value::as_str).filter(|kind| kind.ends_with("Cut"));
    if let (Some(kind), None) = (kind, entry.get("recording")) {
        bail!("a {kind} without a recording of its own: {SAVE}");
    }
    ensure!(
        entry.get("recording").or(entry.get("sources")).is_some(),
        "expected an entry of NeMo with `audio_filepath`, or of lhotse with `recording` or `sources`"
    );
    let recording = recording(entry);
    let sources = recording.get_mut("sources").and_then(Value::as_array_mut);
    let sources = sources.filter(|sources| !sources.is_empty()).context("the recording has no `sources`")?;
    for source in &*sources {
        let kind = source.get("type").unwrap_or(&Value::Null);
        ensure!(kind == "file", "a source of type {kind}; expected \"file\": {SAVE}");
        expect_name(source.get("source").unwrap_or(&Value::Null), "source")?;
    }
    let files = sources.iter_mut().filter_map(|source| source.get_mut("source").and_then(as_string_mut));
    Ok((ListFormat::Lhotse, files.collect()))
}

/// The recording of an entry of lhotse: that of a cut, or the entry itself.
fn recording(entry: &mut Value) -> &mut Value {
    if entry.get("recording").is_some() { &mut entry["recording"] } else { entry }
}

/// Lets lhotse resample files of `rate` to the rate that the manifest states. libsndfile, by which lhotse reads Opus, decodes to the
/// rate before encoding; results have the 48 kHz of the decoder.
fn keep_rate(recording: &mut Value, rate: u32) {
    let transforms = recording.get("transforms").and_then(Value::as_array);
    let before = transforms.into_iter().flatten().find_map(|of| of.pointer("/kwargs/source_sampling_rate"));
    let Some(stated) = before.or(recording.get("sampling_rate")).cloned() else { return };
    if stated == rate {
        return;
    }
    let kwargs = json!({"source_sampling_rate": rate, "target_sampling_rate": stated});
    let resample = json!({"name": "Resample", "kwargs": kwargs});
    match recording.get_mut("transforms").and_then(Value::as_array_mut) {
        Some(transforms) => transforms.insert(0, resample),
        None => recording["transforms"] = json!([resample]),
    }
}

fn as_string_mut(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}
