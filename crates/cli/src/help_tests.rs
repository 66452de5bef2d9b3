//! Tests of the help, and of the documentation that is generated from it.
//!
//! `ALPHAMF_WRITE=1 cargo test --bin denoise` regenerates that documentation.

mod described;
mod documentation;
mod page;

use super::Arguments;
use alphamf::Options;
use alphamf::denoiser::{GainSettings, Settings, Strength};
use clap::{Arg, CommandFactory};
use described::{Described, as_key, commands, options};

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
        // The other bound is an option.
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
