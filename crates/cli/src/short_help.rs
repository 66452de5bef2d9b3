//! The help of `denoise -h`: common options, a line each, on one screen.

use super::Arguments;
use clap::builder::PossibleValue;
use clap::{Arg, CommandFactory};

/// Names and value of an option, as in `-o, --output-dir <DIR>`; `None` for other arguments.
fn spelled(option: &Arg) -> Option<String> {
    let short = option.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let aliases = option.get_visible_aliases().unwrap_or_default();
    let names: Vec<&str> = std::iter::once(option.get_long()?).chain(aliases).collect();
    let mut name = format!("{short}--{}", names.join(", --"));
    if let Some([value, ..]) = option.get_value_names()
        && option.get_action().takes_values()
    {
        name += &format!(" <{value}>");
    }
    Some(name)
}

/// Summary of an option, and its possible values.
fn summary(option: &Arg) -> Option<String> {
    let summary = option.get_help()?.to_string();
    let words = option.get_possible_values();
    if words.is_empty() || !option.get_action().takes_values() {
        return Some(summary);
    }
    let words: Vec<&str> = words.iter().map(PossibleValue::get_name).collect();
    Some(format!("{summary}: {}", words.join(", ")))
}

/// Summary of the program, in a line.
pub fn about(program: &clap::Command) -> String {
    program.get_about().map(ToString::to_string).unwrap_or_default()
}

/// Text of the help, at most 24 lines of 80 columns.
pub fn text() -> String {
    let mut program = Arguments::command();
    let commands: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
    let commands = format!("<{}> --help", commands.join("|"));
    let usage = program.render_usage().to_string().replace("<COMMAND>", &commands);
    // In the order of their headings in the long help; general options are only there.
    let shown = |option: &&Arg| {
        !option.is_hide_short_help_set() && option.get_help_heading().is_some_and(|name| name != "General")
    };
    let mut headings: Vec<Option<&str>> = Vec::new();
    for option in program.get_arguments() {
        if !headings.contains(&option.get_help_heading()) {
            headings.push(option.get_help_heading());
        }
    }
    let mut options: Vec<&Arg> = program.get_arguments().filter(shown).collect();
    options.sort_by_key(|option| headings.iter().position(|name| *name == option.get_help_heading()));
    let rows: Vec<(String, String)> =
        options.into_iter().filter_map(|option| Some((spelled(option)?, summary(option)?))).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let rows: String = rows.iter().map(|(name, summary)| format!("  {name:width$}  {summary}\n")).collect();
    format!(
        "{}\n\n{usage}\n\n{rows}\n`denoise --help` lists all options, examples and exit codes.\n",
        about(&program)
    )
}
