//! Documents agree with the options.

use crate::{code_spans, read};

#[test]
fn the_python_page_counts_its_options() {
    let source = read("bindings/python/alphamf/_denoiser.py");
    let class = source.split("class Denoiser:").nth(1).unwrap();
    let signature = class.split("def __init__(").nth(1).unwrap().split(") ->").next().unwrap();
    let count = signature.lines().filter(|line| line.contains(": ") && line.trim().ends_with(',')).count();
    let page = read("bindings/python/README.md");
    assert!(page.contains(&format!("takes {count} of the program's")), "Denoiser has {count} options");
}

/// The value that a text gives after a word, as in `Range: 0 to 1.`, up to the end of the sentence or clause.
fn value_after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.split_once(word)?.1;
    let end = [". ", "; ", ", "].iter().filter_map(|end| rest.find(end)).min();
    Some(end.map_or(rest.trim_end_matches('.'), |end| &rest[..end]))
}

/// Numbers as the guide writes them: with commas, and the greatest seed as a power.
fn as_in_the_guide(value: &str) -> String {
    let number = |word: &str| match word {
        "18446744073709551615" => "2^64 - 1".to_owned(),
        _ if word.len() > 4 && word.chars().all(|digit| digit.is_ascii_digit()) => {
            let (front, back) = word.split_at(word.len() - 3);
            let (front, middle) = front.split_at(front.len().saturating_sub(3));
            [front, middle, back].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",")
        }
        _ => word.to_owned(),
    };
    value.split(' ').map(number).collect::<Vec<_>>().join(" ")
}

/// The names, and the documentation, of the options of `src/options.rs`.
fn documented_options() -> Vec<(String, String)> {
    let source = read("src/options.rs");
    let body = source.split("pub struct Options {").nth(1).unwrap().split("\n}").next().unwrap();
    let (mut options, mut words) = (Vec::new(), String::new());
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            words = words + text.trim() + " ";
        } else if let Some((name, _)) = line.strip_prefix("pub ").and_then(|line| line.split_once(':')) {
            options.push((format!("--{}", name.replace('_', "-")), std::mem::take(&mut words)));
        }
    }
    options
}

#[test]
fn the_guide_has_the_ranges_and_defaults_of_options() {
    let guide = read("docs/guide.md");
    let options = documented_options();
    assert!(options.len() >= 15, "{options:?}");
    let mut compared = 0;
    for (name, words) in options {
        let row = guide.lines().find(|line| line.starts_with(&format!("| `{name}")));
        let row = row.unwrap_or_else(|| panic!("docs/guide.md has no row for {name}"));
        if let Some(range) = value_after(&words, "Range: ") {
            let range = as_in_the_guide(range).replace("--iterations", "`--iterations`");
            assert!(row.contains(&range), "{name}: expected the range {range} in {row}");
            compared += 1;
        }
        let default = value_after(&words, "Default: ").filter(|value| !value.contains(' '));
        if let Some(default) = default {
            assert!(
                row.contains(&format!("default: {default}")),
                "{name}: expected the default {default} in {row}"
            );
            compared += 1;
        }
    }
    assert!(compared > 15, "only {compared} values were compared");
    let row = guide.lines().find(|line| line.starts_with("| `--sampler")).unwrap();
    let kinds = read("crates/samplers/src/kind.rs");
    let names = kinds.lines().filter_map(|line| line.split_once("=> \"")?.1.strip_suffix("\","));
    assert!(names.clone().count() >= 12);
    for name in names {
        assert!(code_spans(row).any(|span| span == name), "--sampler {name} is not in {row}");
    }
    assert_eq!(as_in_the_guide("0 to 1000000"), "0 to 1,000,000");
}
