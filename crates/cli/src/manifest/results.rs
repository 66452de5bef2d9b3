//! The manifest of the results.

use super::Manifest;
use crate::claims::check_replaceable;
use crate::failure::Failure;
use crate::record::{self, Record, Snapshot};
use crate::shard::Shard;
use crate::stats::{Entry, Outcome};
use crate::streams::{begin, check_possible};
use anyhow::{Context, anyhow};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A manifest with the results in place of the recordings.
pub struct ResultManifest<'a> {
    manifest: &'a Manifest,
    /// The folder of the results.
    results: &'a Path,
    /// Name of the manifest below that folder.
    name: PathBuf,
    /// Checksum of all that determines the results.
    settings: &'a str,
    force: bool,
}

impl<'a> ResultManifest<'a> {
    /// Plans the result manifest of `manifest`; `None` for a list of names. Refuses to replace a file that this program
    /// did not write.
    pub fn new(
        manifest: &'a Manifest,
        shard: Option<Shard>,
        results: &'a Path,
        settings: &'a str,
        force: bool,
    ) -> anyhow::Result<Option<Self>> {
        let Some(name) = manifest.result_name() else { return Ok(None) };
        text(results)?;
        let mut whole =
            shard.map_or_else(OsString::new, |shard| format!("{shard}.").replace('/', "-of-").into());
        whole.push(name);
        let this = Self { manifest, results, name: whole.into(), settings, force };
        check_possible(&this.path())?;
        this.check()?;
        Ok(Some(this))
    }

    pub fn path(&self) -> PathBuf {
        self.results.join(&self.name)
    }

    /// Refuses to replace a file that this program did not write.
    fn check(&self) -> anyhow::Result<()> {
        let path = self.path();
        if self.force || !path.exists() {
            return Ok(());
        }
        let record = Record::open(self.results)?;
        let state = record.state(&self.name, &path, self.manifest.path(), self.settings);
        check_replaceable(&state, &path)
    }

    /// Writes the manifest.
    pub fn write(&self, entries: &[Entry]) -> anyhow::Result<()> {
        let Self { manifest, results, name, settings, .. } = self;
        let mut outputs: HashMap<PathBuf, String> = HashMap::new();
        for Entry { input, output, .. } in entries.iter().filter(|entry| entry.outcome != Outcome::Failed) {
            // A result whose path is not UTF-8 is left out; the folder was checked.
            if let Ok(output) = text(output) {
                // Entries may spell one recording in several ways.
                outputs.entry(record::source(input).into()).or_insert_with(|| output.clone());
                outputs.insert(input.clone(), output);
            }
        }
        fs::create_dir_all(results).with_context(|| Failure::Output(results.to_path_buf()))?;
        let content = manifest.of_results(&outputs)?;
        let path = self.path();
        let failed = || Failure::Output(path.clone());
        let mut file = begin(&path, self.force || path.exists()).with_context(failed)?;
        file.write_all(&content).with_context(failed)?;
        // A file that appeared or was edited since the run began is not replaced, either.
        self.check()?;
        let record = Record::open(results)?;
        record.add(name, file.temporary_path(), &Snapshot::of(manifest.path()), settings, &[])?;
        file.persist().with_context(failed)
    }
}

/// The absolute path of a result, in UTF-8 as in manifests.
fn text(output: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(output)?.into_os_string().into_string();
    path.map_err(|_| {
        anyhow!("not UTF-8, as names in a manifest are: choose another folder")
            .context(Failure::Output(output.to_owned()))
    })
}
