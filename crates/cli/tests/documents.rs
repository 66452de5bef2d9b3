//! Documents name only options of the program. `docs/options.md`, which lists all of them, is generated.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// All long options in the help of a command, or of `denoise` itself.
fn options(command: Option<&str>) -> BTreeSet<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_denoise"));
    let output = program.args(command).arg("--help").output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    let help = String::from_utf8(output.stdout).unwrap();
    // An option is at the start of its line, and its alias in brackets; other occurrences only refer to it.
    let starts = |line: &&str| line.starts_with('-') || line.starts_with("[alias");
    let lines = help.lines().map(str::trim_start).filter(starts);
    lines.filter_map(long_option).collect()
}

/// The first word of the form `--some-name` in a text.
fn long_option(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("--")?;
    let end = rest.find(|letter: char| !letter.is_ascii_lowercase() && letter != '-').unwrap_or(rest.len());
    (end > 0).then(|| format!("--{}", &rest[..end]))
}

#[test]
fn documents_name_options_of_the_program() {
    let commands = [None, Some("live"), Some("train"), Some("eval"), Some("join"), Some("merge")];
    let known: BTreeSet<String> = commands.into_iter().flat_map(options).collect();
    assert!(known.len() > 50, "{known:?}");
    // Options of cargo and tar.
    let foreign = ["--features", "--locked", "--strip-components"];
    for document in ["README.md", "docs/guide.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
        let text = std::fs::read_to_string(path).unwrap();
        // Every other part is a fenced block, which may contain options of other programs.
        let prose: String = text.split("```").step_by(2).collect();
        let named: BTreeSet<String> = prose.split('`').skip(1).step_by(2).filter_map(long_option).collect();
        assert!(named.len() > 5, "{document}: {named:?}");
        let is_unknown = |name: &&String| !known.contains(*name) && !foreign.contains(&name.as_str());
        let unknown: Vec<_> = named.iter().filter(is_unknown).collect();
        assert!(unknown.is_empty(), "{document} has {unknown:?}, which the program has not");
    }
}

#[test]
fn the_guide_names_the_endings_that_folders_are_searched_for() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, named) = text.split_once("**Searched for** are the endings").unwrap();
    let (named, _) = named.split_once("\n- ").unwrap();
    let named: BTreeSet<&str> = named.split('`').skip(1).step_by(2).map(|name| &name[1..]).collect();
    assert_eq!(named, BTreeSet::from(alphamf_files::EXTENSIONS));
}
