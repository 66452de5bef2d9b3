//! Lists of recordings, one path per line.

use std::path::PathBuf;

/// The paths in a text, with or without the mark of the byte order with which some editors begin one, and with either end
/// of a line. Empty lines are none.
pub fn paths(text: &str) -> Vec<PathBuf> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().filter(|line| !line.trim().is_empty()).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_and_the_ends_of_lines_are_no_part_of_a_path() {
        let expected = ["a.wav", " b c.wav", "d.wav"].map(PathBuf::from);
        assert_eq!(paths("\u{feff}a.wav\r\n\n b c.wav\n \t\nd.wav"), expected);
        assert_eq!(paths("\u{feff}"), Vec::<PathBuf>::new());
    }
}
