//! The controls of the web page.

use super::described::options;
use super::documentation::root;
use alphamf::denoiser::Settings;
use std::fs;

/// The value of an attribute in a tag.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let tag = tag.split('>').next()?;
    tag.split_once(&format!("{name}=\""))?.1.split('"').next()
}

#[test]
fn controls_of_the_page_are_those_of_the_options() {
    let page = fs::read_to_string(root().join("bindings/web/page/index.html")).unwrap();
    let all = options();
    let mut checked = 0;
    for (place, _) in page.match_indices('<') {
        let tag = &page[place + 1..];
        let Some(key) = attribute(tag, "data-option") else { continue };
        let option = all.iter().find(|option| option.key() == key);
        let option = option.unwrap_or_else(|| panic!("{key} is no option"));
        if tag.starts_with("select") {
            let body = tag.split("</select>").next().unwrap();
            let mut offered: Vec<&str> =
                body.split("<option ").skip(1).filter_map(|entry| attribute(entry, "value")).collect();
            let mut words: Vec<&str> = option.words.iter().map(String::as_str).collect();
            let chosen =
                body.split("<option ").find(|entry| entry.split('>').next().unwrap().ends_with("selected"));
            assert_eq!(
                chosen.and_then(|entry| attribute(entry, "value")),
                Some(option.default.as_str()),
                "{key}"
            );
            offered.sort_unstable();
            words.sort_unstable();
            assert_eq!(offered, words, "{key}");
        } else if attribute(tag, "type") == Some("range") {
            let number = |name: &str| attribute(tag, name).unwrap().parse::<f64>().unwrap();
            // Fractions are percentages on the page.
            let unit = if option.value == "FRACTION" { 100.0 } else { 1.0 };
            let (low, high) = option.range.split_once(" to ").unwrap();
            let (low, high) = (unit * low.parse::<f64>().unwrap(), unit * high.parse::<f64>().unwrap());
            assert!(low <= number("min") && number("max") <= high, "{key}");
            let default = option.default.parse().unwrap_or(Settings::default().gain.floor_db);
            assert_eq!(number("value"), unit * default, "{key}");
        }
        checked += 1;
    }
    assert!(checked >= 5, "{checked} controls");
    let strength = all.iter().find(|option| option.name == "strength").unwrap();
    for word in &strength.words {
        assert!(page.contains(&format!("value=\"{word}\"")), "the page does not offer {word}");
    }
}
