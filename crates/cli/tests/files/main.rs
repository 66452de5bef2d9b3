//! What becomes of files: nothing that was there is lost, nothing unfinished stays, and folders are worked through.

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

/// What the run of a folder prints.
fn table(arguments: &[&Path], options: &[&str], code: i32) -> String {
    let mut command = denoise(arguments);
    command.args(["--quality", "fast"]).args(options);
    said(command, code)
}
