//! File systems on which names in upper and lower case are one.

use alphamf_files::output::OutputFile;
use std::fs;
use std::path::{Path, PathBuf};

/// What names share that are one where upper and lower case are.
pub fn folded(name: &Path) -> PathBuf {
    name.to_string_lossy().to_lowercase().into()
}

/// Whether names in upper and lower case are one in a folder, which need not exist: the one above it decides then. No, where no
/// file can be made to find out, and so none of these names.
pub fn are_one_in(folder: &Path) -> bool {
    let existing = folder.ancestors().find(|above| above.as_os_str().is_empty() || above.is_dir());
    let probe = existing.and_then(|above| OutputFile::create_new(above.join(".alphamf-letters")).ok());
    let other = |probe: OutputFile| {
        let path = probe.temporary_path();
        let name = path.file_name()?.to_str()?.to_uppercase();
        fs::symlink_metadata(path.with_file_name(name)).ok()
    };
    probe.and_then(other).is_some()
}
