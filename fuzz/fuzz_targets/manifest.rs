//! Lines of a list of recordings, with either end of a line and a mark of the byte order: all that has a name comes out.
#![no_main]

#[path = "../../crates/cli/src/manifest/names.rs"]
mod names;

use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;

fuzz_target!(|input: (bool, bool, Vec<String>, String)| {
    let (is_marked, is_carriage, lines, rest) = input;
    let end = if is_carriage { "\r\n" } else { "\n" };
    let mark = if is_marked { "\u{feff}" } else { "" };
    let text = format!("{mark}{}{end}{rest}", lines.join(end));
    let found = names::paths(&text);
    assert!(found.iter().all(|path| !path.to_string_lossy().trim().is_empty()));
    let is_plain = |line: &String| !line.contains(['\n', '\r', '\u{feff}']);
    if rest.is_empty() && lines.iter().all(is_plain) {
        let named = lines.iter().filter(|line| !line.trim().is_empty());
        assert!(named.map(PathBuf::from).eq(found));
    }
});
