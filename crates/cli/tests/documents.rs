//! The guide describes every option that the program has, and none that it has not.

use std::collections::BTreeSet;
use std::process::Command;

/// The long options in the help of a command, all of them, or of `denoise` itself.
fn options(command: Option<&str>) -> BTreeSet<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_denoise"));
    let output = program.args(command).arg("--help").output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    let help = String::from_utf8(output.stdout).unwrap();
    // An option stands at the start of its line, another name of it in brackets; elsewhere it is mentioned.
    let starts = |line: &&str| line.starts_with('-') || line.starts_with("[alias");
    let lines = help.lines().map(str::trim_start).filter(starts);
    lines.filter_map(long_option).collect()
}

/// The first word such as `--some-name` of a text.
fn long_option(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("--")?;
    let end = rest.find(|letter: char| !letter.is_ascii_lowercase() && letter != '-').unwrap_or(rest.len());
    (end > 0).then(|| format!("--{}", &rest[..end]))
}

#[test]
fn the_guide_is_that_of_the_program() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    // Every other part lies between fences, where programs of others have options, too.
    let prose: String = guide.split("```").step_by(2).collect();
    let spans: BTreeSet<String> = prose.split('`').skip(1).step_by(2).filter_map(long_option).collect();
    let commands = [None, Some("live"), Some("train"), Some("eval"), Some("join"), Some("merge")];
    let mut known: BTreeSet<String> = commands.into_iter().flat_map(options).collect();
    assert!(known.len() > 50, "{known:?}");
    for clap in ["--help", "--version"] {
        known.remove(clap);
    }
    let missing: Vec<_> = known.difference(&spans).collect();
    assert!(missing.is_empty(), "docs/guide.md lacks {missing:?}");
    // Options of cargo and of other programs.
    let foreign = ["--features", "--help"];
    let unknown: Vec<_> = spans.difference(&known).filter(|name| !foreign.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "docs/guide.md has {unknown:?}, which the program has not");
}
