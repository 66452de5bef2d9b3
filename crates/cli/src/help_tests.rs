//! Tests of the help, and of the documentation that is generated from it.
//!
//! `ALPHAMF_WRITE=1 cargo test --bin denoise` regenerates that documentation.

mod page;

use super::Arguments;
use alphamf::Options;
use alphamf::denoiser::{GainSettings, Settings, Strength};
use clap::{Arg, Args, Command, CommandFactory};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// An option as its documentation describes it.
struct Described {
    /// Long name, as on the command line.
    name: String,
    short: Option<char>,
    /// Other long names, of the program alone.
    aliases: Vec<String>,
    heading: String,
    /// Names of its values, if they are words.
    words: Vec<String>,
    is_flag: bool,
    value: String,
    summary: String,
    range: String,
    default: String,
    /// What is neither summary, range nor default.
    details: String,
}

impl Described {
    fn of(argument: &Arg) -> Self {
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
    fn key(&self) -> String {
        self.name.replace('-', "_")
    }

    fn is_integer(&self) -> bool {
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
    fn prose(&self) -> String {
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
    fn row(&self, spell: fn(&str) -> String) -> String {
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
fn as_names(text: &str, spell: fn(&str) -> String) -> String {
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

fn as_argument(name: &str) -> String {
    format!("`--{name}`")
}

fn as_key(name: &str) -> String {
    format!("`{}`", name.replace('-', "_"))
}

fn as_plain(name: &str) -> String {
    name.replace('-', "_")
}

/// Options of the denoiser.
fn options() -> Vec<Described> {
    let described = |argument: &Arg| Described { aliases: Vec::new(), ..Described::of(argument) };
    Options::augment_args(Command::new("denoise")).get_arguments().map(described).collect()
}

/// The program and its commands.
fn commands() -> Vec<Command> {
    let mut program = Arguments::command();
    program.build();
    let all =
        program.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect::<Vec<_>>();
    std::iter::once(program).chain(all).collect()
}

const TABLE: &str = "| option | type or values | range | default | effect |\n|---|---|---|---|---|\n";

/// All options of all commands.
fn options_page() -> String {
    let mut page = "# Options\n\n\
        Written from the help of the program; a test compares. Options under Denoising, Model and Sampling, except `--model` and\n\
        `--noise-from`, are those of Python, C, JSON and the web page, too, with `_` in place of `-`. C and the web page have\n\
        no `--no-dither`, as their samples are floats.\n"
        .to_owned();
    for command in commands() {
        let all: Vec<Described> = command
            .get_arguments()
            .filter(|argument| argument.get_long().is_some() && !argument.is_hide_set())
            .map(Described::of)
            .collect();
        let is_program = command.get_name() == "denoise";
        let own: Vec<&Described> = all
            .iter()
            // Commands list what is theirs alone.
            .filter(|option| {
                is_program
                    || !["General", "Denoising", "Model", "Sampling"].contains(&option.heading.as_str())
                    || command.get_name() == "train" && option.heading == "Model"
            })
            .collect();
        if own.is_empty() {
            continue;
        }
        let title = if is_program { String::new() } else { format!("denoise {}: ", command.get_name()) };
        let mut headings: Vec<&str> = Vec::new();
        for option in &own {
            if !headings.contains(&option.heading.as_str()) {
                headings.push(&option.heading);
            }
        }
        for heading in headings {
            let _ = write!(page, "\n## {title}{heading}\n\n{TABLE}");
            own.iter()
                .filter(|option| option.heading == heading)
                .for_each(|option| page += &option.row(as_argument));
        }
    }
    page
}

/// Options of interfaces whose samples are floats, which have no dither, and which take only `of_method` with a published method.
fn options_without_dither(of_method: &str) -> Vec<Described> {
    let mut options = options();
    options.retain(|option| option.name != "no-dither");
    for option in &mut options {
        option.details = option
            .details
            .replace("The seed then affects the dither alone.", "The seed then has no effect.")
            .replace(
                "It drives sampling and dither; with --quality fast, dither alone.",
                "It drives sampling.",
            )
            .replace(
                "--model, --noise-from, --seed, --threads, --mix, --channels and --no-dither.",
                &format!("{of_method}."),
            );
        let prose = option.prose();
        let is_method = option.name == "method";
        assert!(!prose.contains("dither") && is_method == prose.contains(of_method), "{prose}");
    }
    options
}

/// The table of options by their names.
fn options_table(options: &[Described]) -> String {
    TABLE.to_owned() + &options.iter().map(|option| option.row(as_key)).collect::<String>()
}

/// Breaks a text into lines of at most `width` characters, the first after `first` and the others after `next`.
fn wrap(text: &str, first: &str, next: &str, width: usize) -> String {
    let (mut lines, mut line) = (String::new(), first.to_owned());
    let mut is_empty = true;
    for word in text.split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            lines += &line;
            lines.push('\n');
            (line, is_empty) = (next.to_owned(), true);
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    lines + &line + "\n"
}

/// Parameters in the documentation of the Python class.
fn python_parameters() -> String {
    let parameter = |option: &Described| {
        let words = match option.words.is_empty() {
            true => String::new(),
            false => format!(" One of {}.", option.words.join(", ")),
        };
        let text = as_names(&(option.prose() + &words), |name| format!("``{}``", as_plain(name)));
        wrap(&text, &format!("    :param {}: ", option.key()), "        ", 120)
    };
    options().iter().map(parameter).collect()
}

/// Keyword arguments of the Python class.
fn python_arguments() -> String {
    let argument = |option: &Described| {
        let kind = match (option.is_flag, option.words.is_empty(), option.is_integer()) {
            (true, ..) => return format!("        {}: bool = False,\n", option.key()),
            (_, false, _) => "str",
            (_, _, true) => "int",
            _ => "float",
        };
        format!("        {}: Optional[{kind}] = None,\n", option.key())
    };
    options().iter().map(argument).collect()
}

/// The interface of options in TypeScript.
fn web_interface() -> String {
    let member = |option: &Described| {
        let kind = match (option.is_flag, option.words.is_empty()) {
            (true, _) => "boolean".to_owned(),
            (_, false) => option.words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" | "),
            // Numbers are exact up to 2^53.
            _ if option.range.ends_with(&u64::MAX.to_string()) => "number | bigint".to_owned(),
            _ => "number".to_owned(),
        };
        let text = as_names(&option.prose(), as_plain);
        let line = format!("  /** {text} */\n");
        let comment = if line.chars().count() <= 121 {
            line
        } else {
            format!("  /**\n{}   */\n", wrap(&text, "   * ", "   * ", 120))
        };
        format!("{comment}  {}?: {kind};\n", option.key())
    };
    options_without_dither("--model, --seed, --mix and --channels").iter().map(member).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares what lies between two marks of a file with what was generated, or replaces it if that is asked for.
fn compare(file: &str, begin: &str, end: &str, generated: &str) {
    let path = root().join(file);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let (before, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{file}: no {begin:?}"));
    let (found, after) = rest.split_once(end).unwrap_or_else(|| panic!("{file}: no {end:?}"));
    if found != generated && std::env::var_os("ALPHAMF_WRITE").is_some() {
        fs::write(path, [before, begin, generated, end, after].concat()).unwrap();
        return;
    }
    assert!(
        found == generated,
        "{file} differs from src/options.rs: run with ALPHAMF_WRITE=1. Expected:\n{generated}"
    );
}

#[test]
fn documentation_is_that_of_the_options() {
    let page = options_page();
    let first = page.lines().next().unwrap();
    compare("docs/options.md", first, "<!-- end -->\n", &page[first.len()..]);
    let (begin, end) = ("<!-- options -->\n", "<!-- /options -->\n");
    compare("bindings/python/README.md", begin, end, &options_table(&options()));
    let in_c = options_without_dither("--seed, --threads, --mix and --channels");
    compare("bindings/c/README.md", begin, end, &options_table(&in_c));
    let python = "bindings/python/alphamf/_denoiser.py";
    compare(python, "its path, or its bytes.\n", "    :param threads:", &python_parameters());
    compare(python, "model: Optional[Model] = None,\n", "        threads:", &python_arguments());
    let (begin, end) = ("export interface Options {\n", "  /** Bytes of a dictionary");
    compare("bindings/web/index.d.ts", begin, end, &web_interface());
}

fn parse(options: &serde_json::Value) -> Option<Options> {
    serde_json::from_value(options.clone()).ok()
}

/// Whether an option accepts a value.
fn is_taken(option: &Described, value: f64) -> bool {
    let value = if option.is_integer() { serde_json::json!(value as i64) } else { value.into() };
    parse(&serde_json::json!({ option.key(): value })).is_some_and(|options| match options.settings() {
        Ok(_) => true,
        Err(error) => {
            assert!(error.to_string().starts_with(&format!("{} is ", as_key(&option.name))), "{error}");
            false
        }
    })
}

#[test]
fn ranges_are_those_of_the_settings() {
    let mut checked = 0;
    for option in options() {
        let Some((low, high)) = option.range.split_once(" to ") else {
            assert!(option.is_flag || !option.words.is_empty(), "{} has no range", option.name);
            continue;
        };
        if option.name == "seed" {
            assert_eq!(high, u64::MAX.to_string());
            continue;
        }
        let (low, is_open) = low.strip_prefix("above ").map_or((low, false), |low| (low, true));
        // The other is another option.
        let (Ok(low), Ok(high)) = (low.parse::<f64>(), high.parse::<f64>()) else {
            assert_eq!(option.name, "burn-in");
            continue;
        };
        let step = if option.is_integer() { 1.0 } else { 1e-3 };
        assert_eq!(is_taken(&option, low), !is_open, "{} {low}", option.name);
        assert!(is_taken(&option, low + step) && is_taken(&option, high), "{} {high}", option.name);
        assert!(
            !is_taken(&option, low - step) && !is_taken(&option, high * (1.0 + 1e-5) + step),
            "{}",
            option.name
        );
        checked += 1;
    }
    assert!(checked >= 9, "{checked}");
}

#[test]
fn defaults_are_those_of_the_settings() {
    let mut checked = 0;
    // A given number of sweeps is no default: tests in src/options compare the documented ones.
    for option in options().iter().filter(|option| !option.is_flag && option.name != "em-iterations") {
        let value = |text: &str| -> Option<serde_json::Value> {
            if option.words.iter().any(|word| word == text) {
                return Some(text.into());
            }
            text.parse::<i64>().map(Into::into).or_else(|_| text.parse::<f64>().map(Into::into)).ok()
        };
        let (plain, fast) = option
            .default
            .split_once("; with --quality fast, ")
            .map_or((option.default.as_str(), None), |(a, b)| (a, Some(b)));
        let plain = plain.split(';').next().unwrap();
        let Some(plain) = value(plain) else {
            assert!(
                ["floor-db", "method", "alpha-speech", "noise-rank", "step-size"]
                    .contains(&option.name.as_str()),
                "{}",
                option.name
            );
            continue;
        };
        let mut given = serde_json::json!({ option.key(): plain });
        if option.name == "iterations" {
            given["burn_in"] = SETTINGS_BURN_IN.into();
        }
        let given = parse(&given).unwrap();
        assert_eq!(given.settings().unwrap(), Settings::default(), "{}", option.name);
        assert_eq!(given.session(), Options::default().session(), "{}", option.name);
        if let Some(fast) = fast.and_then(value) {
            let given = parse(&serde_json::json!({ "quality": "fast", option.key(): fast })).unwrap();
            assert_eq!(given.settings().unwrap(), Settings::fast(), "{}", option.name);
        }
        checked += 1;
    }
    assert!(checked >= 12, "{checked}");
    let options = options();
    let strength = options.iter().find(|option| option.name == "strength").unwrap();
    for word in &strength.words {
        let chosen: Strength = serde_json::from_value(word.as_str().into()).unwrap();
        let floor_db = -GainSettings::default().with_strength(chosen).floor_db;
        let text = strength.details.replace(" removes", "");
        assert!(text.contains(&format!("{word} {floor_db} dB")), "{word} {floor_db}: {text}");
    }
}

#[test]
fn samplers_that_take_no_minibatch_are_named() {
    let options = options();
    let find = |name: &str| options.iter().find(|option| option.name == name).unwrap();
    let details = &find("minibatch").details;
    let (_, named) = details.split_once("take 1 alone: ").unwrap();
    let mut named: Vec<&str> = named.split('.').next().unwrap().split(", ").collect();
    let refuses = |sampler: &&String| {
        parse(&serde_json::json!({ "sampler": sampler, "minibatch": 0.5 })).unwrap().settings().is_err()
    };
    let mut refusing: Vec<&str> = find("sampler").words.iter().filter(refuses).map(String::as_str).collect();
    refusing.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, refusing);
}

/// Burn-in of the default: half of the sweeps if these are given.
const SETTINGS_BURN_IN: usize = 2;

#[test]
fn every_option_has_a_heading_and_a_short_first_sentence() {
    for command in commands() {
        for argument in command
            .get_arguments()
            .filter(|argument| argument.get_id() != "help" || argument.get_help_heading().is_some())
        {
            let name = format!("{} {}", command.get_name(), argument.get_id());
            let Described { summary, .. } = Described::of(argument);
            let count = summary.split_whitespace().count();
            assert!((1..=10).contains(&count), "{name}: {count} words: {summary}");
            assert!(summary.starts_with(char::is_uppercase) && !summary.contains(". "), "{name}: {summary}");
            // Verbs in the imperative, by their form.
            let verb = summary.split_whitespace().next().unwrap();
            assert!(!verb.ends_with('s') || verb == "Process", "{name}: {summary}");
            assert!(
                !["The", "A", "An", "How", "What", "Whether", "Where"].contains(&verb),
                "{name}: {summary}"
            );
            if argument.get_long().is_some() {
                assert!(argument.get_help_heading().is_some(), "{name} has no heading");
            }
        }
    }
}

#[test]
fn help_is_one_screen_and_all_is_behind_it() {
    let mut program = Arguments::command();
    let short = super::short_help::text();
    let lines: Vec<&str> = short.trim_end().lines().collect();
    assert!((20..=24).contains(&lines.len()), "{} lines:\n{short}", lines.len());
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{short}");
    for option in [
        "-o, --output-dir <DIR>",
        "--strength <HOW>",
        ": gentle, normal, strong\n",
        "--purpose, --for <USE>",
        "--live",
        "train|eval|live|join|merge",
    ] {
        assert!(short.contains(option), "no {option} in\n{short}");
    }
    assert!(!short.contains("--live <"), "a value of a flag in\n{short}");
    let long = program.render_long_help().to_string();
    let headings =
        ["Input and output:", "Denoising:", "Live:", "Reports:", "Model:", "Sampling:", "General:"];
    let places: Vec<usize> = headings
        .iter()
        .map(|heading| {
            long.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no {heading} in\n{long}"))
        })
        .collect();
    assert!(places.is_sorted(), "{places:?}");
    let mut page = Vec::new();
    super::manual::page(None).render(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap().replace("\\-", "-");
    for option in options() {
        let name = format!("--{}", option.name);
        assert!(long.contains(&name) && page.contains(&name), "{name}");
    }
    let live = program.find_subcommand("live").unwrap();
    for argument in live.get_arguments() {
        let name = argument.get_id().as_str();
        let is_used = Options::LIVE.contains(&name) && !["seed", "no_dither"].contains(&name);
        assert!(!Options::names().contains(&name) || argument.is_hide_set() != is_used, "{name}");
    }
    for used in Options::LIVE {
        let name = format!("--{}", used.replace('_', "-"));
        let (_, live) = long.split_once("with low latency").unwrap();
        let (live, _) = live.split_once("--latency <MS>").unwrap();
        assert!(live.contains(&name), "{name} is not in the help of --live");
    }
}

#[test]
fn options_without_effect_are_hidden() {
    for command in commands().iter().filter(|command| ["man", "completions"].contains(&command.get_name())) {
        let options = command.get_arguments().filter(|argument| !argument.is_positional());
        let shown = options.filter(|option| !option.is_hide_set());
        assert_eq!(shown.map(Arg::get_id).collect::<Vec<_>>(), ["help"], "{}", command.get_name());
    }
}
