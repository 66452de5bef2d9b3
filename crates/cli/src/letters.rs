//! Detection of case-insensitive file systems.

use alphamf_files::output::OutputFile;
use std::fs;
use std::path::{Path, PathBuf};

/// Key that names share if they differ in case alone.
pub fn folded(name: &Path) -> PathBuf {
    name.to_string_lossy().to_lowercase().into()
}

/// Whether a folder is case-insensitive; if it does not exist, its closest existing parent. False if no test file can
/// be created, as then no output can be, either.
pub fn is_case_insensitive(folder: &Path) -> bool {
    let existing = folder.ancestors().find(|above| above.as_os_str().is_empty() || above.is_dir());
    let probe = existing.and_then(|above| OutputFile::create_new(above.join(".alphamf-letters")).ok());
    let other = |probe: OutputFile| {
        let path = probe.temporary_path();
        let name = path.file_name()?.to_str()?.to_uppercase();
        fs::symlink_metadata(path.with_file_name(name)).ok()
    };
    probe.and_then(other).is_some()
}
