//! Documentation that is generated from the help.

use super::described::{Described, as_argument, as_key, as_names, as_plain, commands, options};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

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
            // Commands list only their own options.
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

/// Options of interfaces with floating-point samples, which have no dither, and accept only `of_method` with a
/// published method.
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

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares the text between two marks of a file with the generated text, or replaces it on request.
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
