//! The manual page.

use super::Arguments;
use clap::{Arg, CommandFactory};

/// The manual page of a command.
pub fn page(command: Option<&str>) -> clap_mangen::Man {
    // The `help` command has no page.
    let mut program = Arguments::command().disable_help_subcommand(true);
    program.build();
    let found = command.and_then(|name| program.find_subcommand(name)).cloned();
    let mut page = found.unwrap_or(program);
    // The usage of clap_mangen omits the values of options and all inputs but one.
    let usage = page.render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).to_owned();
    clap_mangen::Man::new(page.override_usage(usage).mut_args(with_all_words))
        .source(concat!("denoise ", env!("CARGO_PKG_VERSION")))
}

/// Adds the help that the manual page omits: the aliases of an option, and a single sentence that `-h` hides.
fn with_all_words(option: Arg) -> Arg {
    let names: Vec<String> =
        option.get_visible_aliases().unwrap_or_default().iter().map(|name| format!("--{name}")).collect();
    let Some(help) = option.get_long_help().or(option.get_help()).map(ToString::to_string) else {
        return option;
    };
    match names.as_slice() {
        [] => option.long_help(help),
        names => option.long_help(format!("{help}\n\n[alias: {}]", names.join(", "))),
    }
}
