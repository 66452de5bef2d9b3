//! Parsing of the command line, and its error messages.

use super::failure::{exit_code, one_line};
use super::{Arguments, short_help, terminal};
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
        // Start of the short help of the program, not of a command. In the long help, a full stop follows.
        let start = format!("{}\n", short_help::about(&Arguments::command()));
        let is_short =
            error.kind() == ErrorKind::DisplayHelp && error.render().to_string().starts_with(&start);
        let printed = match error.use_stderr() {
            true => explain_number(error).exit(),
            false if is_short => terminal::print(short_help::text().as_bytes()),
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

/// Moves a command in front of the general options before it: clap accepts no command after an option.
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

/// Explains the error of an invalid number, such as `0,8` or `80%`, with an example of a valid one.
fn explain_number(error: clap::Error) -> clap::Error {
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

/// The command that a mistyped word most likely means.
pub fn meant_command(word: &str) -> Option<String> {
    /// Similarity threshold of clap.
    const ALIKE: f64 = 0.7;
    let alike = |name: &str| strsim::jaro(word, name);
    let program = Arguments::command();
    let names = program.get_subcommands().map(|command| command.get_name().to_owned());
    let best = names.max_by(|a, b| alike(a).total_cmp(&alike(b)))?;
    (!word.contains(|c| c == '.' || std::path::is_separator(c)) && alike(&best) > ALIKE).then_some(best)
}
