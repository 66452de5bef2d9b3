//! Options as their documentation describes them.

use crate::Arguments;
use alphamf::Options;
use clap::{Arg, Args, Command, CommandFactory};
use std::fmt::Write;

/// An option as its documentation describes it.
pub(super) struct Described {
    /// Long name, as on the command line.
    pub(super) name: String,
    short: Option<char>,
    /// Other long names, of the program alone.
    aliases: Vec<String>,
    pub(super) heading: String,
    /// Names of its values, if they are words.
    pub(super) words: Vec<String>,
    pub(super) is_flag: bool,
    pub(super) value: String,
    pub(super) summary: String,
    pub(super) range: String,
    pub(super) default: String,
    /// Text other than summary, range and default.
    pub(super) details: String,
}

impl Described {
    pub(super) fn of(argument: &Arg) -> Self {
        let text =
            |help: Option<&clap::builder::StyledStr>| help.map(ToString::to_string).unwrap_or_default();
        let summary = text(argument.get_help());
        let long = text(argument.get_long_help()).replace("\n\n", "\n");
        let (_, rest) = long.split_once('\n').unwrap_or(("", ""));
        let (mut range, mut default) = (String::new(), String::new());
        let mut details = Vec::new();
        for sentence in rest.replace('\n', " ").trim_end_matches('.').split(". ") {
            if let Some(found) = sentence.strip_prefix("Range: ") {
                range = found.to_owned();
            } else if let Some(found) = sentence.strip_prefix("Default: ") {
                default = found.to_owned();
            } else if !sentence.is_empty() {
                details.push(sentence.to_owned());
            }
        }
        if default.is_empty() {
            let values = argument.get_default_values().iter();
            default = values.map(|value| value.to_string_lossy().into_owned()).collect();
        }
        let is_flag = !argument.get_action().takes_values();
        let words = argument.get_possible_values();
        Self {
            name: argument.get_long().unwrap_or(argument.get_id().as_str()).to_owned(),
            short: argument.get_short(),
            aliases: argument
                .get_visible_aliases()
                .unwrap_or_default()
                .iter()
                .map(|&name| name.into())
                .collect(),
            heading: argument.get_help_heading().unwrap_or_default().to_owned(),
            words: if is_flag {
                Vec::new()
            } else {
                words.iter().map(|word| word.get_name().to_owned()).collect()
            },
            is_flag,
            value: argument
                .get_value_names()
                .map(|names| names.iter().map(|name| name.as_str()).collect())
                .unwrap_or_default(),
            summary: summary.trim_end_matches('.').to_owned(),
            range,
            default: if is_flag { "off".to_owned() } else { default },
            details: details.iter().map(|sentence| format!("{sentence}.")).collect::<Vec<_>>().join(" "),
        }
    }

    /// Name in Python, C, JSON and on the web.
    pub(super) fn key(&self) -> String {
        self.name.replace('-', "_")
    }

    pub(super) fn is_integer(&self) -> bool {
        self.value == "N"
    }

    /// Type or values.
    fn kind(&self) -> String {
        match (self.is_flag, self.words.is_empty()) {
            (true, _) => "flag".to_owned(),
            (_, false) => self.words.join(", "),
            _ if self.is_integer() => "integer".to_owned(),
            _ if ["DB", "FRACTION", "STEP", "ALPHA", "MS", "HZ", "S"].contains(&self.value.as_str()) => {
                "number".to_owned()
            }
            _ => self.value.clone(),
        }
    }

    /// All sentences.
    pub(super) fn prose(&self) -> String {
        let mut text = format!("{}.", self.summary);
        for (label, found) in [("Range", &self.range), ("Default", &self.default)] {
            if !(found.is_empty() || self.is_flag) {
                let _ = write!(text, " {label}: {found}.");
            }
        }
        if !self.details.is_empty() {
            text = text + " " + &self.details;
        }
        text
    }

    /// A row of a table; `spell` writes the names of options.
    pub(super) fn row(&self, spell: fn(&str) -> String) -> String {
        let mut name = spell(&self.name);
        if let Some(short) = self.short {
            name = format!("`-{short}`, {name}");
        }
        for alias in &self.aliases {
            name = format!("{name}, {}", as_argument(alias));
        }
        let (range, default) = (as_names(&self.range, spell), as_names(&self.default, spell));
        let text = as_names(&format!("{}. {}", self.summary, self.details), spell);
        format!(
            "| {name} | {} | {range} | {default} | {} |\n",
            self.kind(),
            text.trim_end().replace('|', "\\|")
        )
    }
}

/// Rewrites the options that a text names as arguments.
pub(super) fn as_names(text: &str, spell: fn(&str) -> String) -> String {
    let mut parts = text.split("--");
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end =
            part.find(|letter: char| !(letter.is_ascii_lowercase() || letter == '-')).unwrap_or(part.len());
        written += &spell(&part[..end]);
        written += &part[end..];
    }
    written
}

pub(super) fn as_argument(name: &str) -> String {
    format!("`--{name}`")
}

pub(super) fn as_key(name: &str) -> String {
    format!("`{}`", name.replace('-', "_"))
}

pub(super) fn as_plain(name: &str) -> String {
    name.replace('-', "_")
}

/// Options of the denoiser.
pub(super) fn options() -> Vec<Described> {
    let described = |argument: &Arg| Described { aliases: Vec::new(), ..Described::of(argument) };
    Options::augment_args(Command::new("denoise")).get_arguments().map(described).collect()
}

/// The program and its commands.
pub(super) fn commands() -> Vec<Command> {
    let mut program = Arguments::command();
    program.build();
    let all =
        program.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect::<Vec<_>>();
    std::iter::once(program).chain(all).collect()
}
