//! Handling of files: existing files are kept, unfinished files are removed, and folders are processed.

#[path = "../shared/mod.rs"]
mod shared;

mod at_once;
mod folders;
mod left_out;
mod manifests;
mod names;
mod overwriting;
mod reports;
mod streams;

use shared::*;
use std::path::Path;

/// A short recording.
fn recording(path: &Path) {
    write(path, spec(16_000, 1), noisy(0.3));
}

/// Standard error of a run at fast quality that ends with exit code `code`.
fn table(arguments: &[&Path], options: &[&str], code: i32) -> String {
    let mut command = denoise(arguments);
    command.args(["--quality", "fast"]).args(options);
    stderr_of(command, code)
}
