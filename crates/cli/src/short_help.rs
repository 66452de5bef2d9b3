//! The help of `denoise -h`: common options, a line each, on one screen.

use super::failure::{exit_code, one_line};
use super::{Arguments, terminal};
use clap::builder::PossibleValue;
use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, CommandFactory, Parser};
use std::error::Error as _;
use std::ffi::OsString;
use std::num::{ParseFloatError, ParseIntError};
use std::process::ExitCode;

/// Parses the command line. `Err` holds the exit code of help and of the version, which are printed; a wrong command line ends the
/// program, as in [`Parser::parse`].
pub fn parse() -> Result<Arguments, ExitCode> {
    Arguments::try_parse_from(command_first(std::env::args_os().collect())).map_err(|error| {
        // That of the program, not of a command; a full stop and more follow in the long help.
        let start = format!("{}\n", about(&Arguments::command()));
        let is_short =
            error.kind() == ErrorKind::DisplayHelp && error.render().to_string().starts_with(&start);
        let printed = match error.use_stderr() {
            true => in_plain_words(error).exit(),
            false if is_short => terminal::print(text().as_bytes()),
            false => terminal::flushed(|| error.print()),
        };
        match printed {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                terminal::say(&format!("denoise: {}", one_line(&error)));
                exit_code(&error).into()
            }
        }
    })
}

/// A command line with a command before the general options in front of it: clap takes no command after an option.
fn command_first(mut line: Vec<OsString>) -> Vec<OsString> {
    let program = Arguments::command();
    let general = |word: &str| {
        let is_named = |option: &&Arg| match word.strip_prefix("--") {
            Some(long) => option.get_long() == Some(long),
            None => option.get_short().is_some_and(|short| word == format!("-{short}")),
        };
        program.get_arguments().filter(|option| option.is_global_set()).find(is_named)
    };
    let mut place = 1;
    while let Some(word) = line.get(place).and_then(|word| word.to_str()) {
        if program.find_subcommand(word).is_some() {
            line[1..=place].rotate_right(1);
            break;
        }
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        let Some(option) = general(name) else { break };
        place += if option.get_action().takes_values() && value.is_none() { 2 } else { 1 };
    }
    line
}

/// The error of a command line; what is no number, such as `0,8` and `80%`, or no whole one, with an example of one.
fn in_plain_words(error: clap::Error) -> clap::Error {
    let expected = error.source().and_then(|source| match source {
        source if source.is::<ParseFloatError>() => Some("a number such as 0.8"),
        source if source.is::<ParseIntError>() => Some("a whole number such as 8, not below 0"),
        _ => None,
    });
    let context = |kind| error.get(kind).map(ToString::to_string);
    let Some((argument, value)) = context(ContextKind::InvalidArg).zip(context(ContextKind::InvalidValue))
    else {
        return error;
    };
    let Some(expected) = expected else { return error };
    let message = format!(
        "invalid value '{value}' for '{argument}': expected {expected}\n\n\
         For more information, try '--help'.\n"
    );
    clap::Error::raw(error.kind(), message)
}

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

/// What an option does, and the words that it takes.
fn summary(option: &Arg) -> Option<String> {
    let summary = option.get_help()?.to_string();
    let words = option.get_possible_values();
    if words.is_empty() || !option.get_action().takes_values() {
        return Some(summary);
    }
    let words: Vec<&str> = words.iter().map(PossibleValue::get_name).collect();
    Some(format!("{summary}: {}", words.join(", ")))
}

/// What the program does, in a line.
fn about(program: &clap::Command) -> String {
    program.get_about().map(ToString::to_string).unwrap_or_default()
}

/// At most 24 lines of 80 columns.
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
