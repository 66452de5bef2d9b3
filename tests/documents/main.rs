//! Documents agree with the repository: links, names, recorded figures, models and options. Their wording is tested,
//! with the program's, in `crates/cli/tests/words.rs`.

mod links;
mod models;
mod options;
mod records;

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold no document or source of this repository.
const SKIPPED: [&str; 6] = ["target", "node_modules", "vendor", "shared", "venv", "licences"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below the root with this extension, relative to it.
fn files(extension: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if entry.file_type().unwrap().is_dir() {
                if !name.starts_with('.') && !SKIPPED.contains(&name.as_ref()) {
                    walk(&path, extension, found);
                }
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    let mut found = Vec::new();
    walk(root(), extension, &mut found);
    found.sort();
    found
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A document without its fenced and indented blocks of code.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        fenced ^= is_fence;
        if !fenced && !is_fence && !line.starts_with("    ") {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// The spans in backticks of a text.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Targets of the inline links of a text, as in `[text](target)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}
