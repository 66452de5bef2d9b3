//! Printing to standard output and standard error.

use super::failure::{Failure, one_line};
use alphamf::signal::counted;
use anyhow::Context;
use std::io::{self, IsTerminal, Write};
use unicode_width::UnicodeWidthStr;

/// Whether standard error is a terminal that can redraw a line.
pub fn is_interactive() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

/// Whether standard error takes colours: it is a terminal, and `NO_COLOR` is not set.
pub fn has_colours() -> bool {
    is_interactive() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Columns of the terminal; 80 where that cannot be determined.
pub fn columns() -> usize {
    #[cfg(unix)]
    let found = rustix::termios::tcgetwinsize(io::stderr()).ok().map(|size| usize::from(size.ws_col));
    #[cfg(not(unix))]
    let found: Option<usize> = None;
    found.filter(|&columns| columns > 0).unwrap_or(80)
}

/// Prints to standard output.
pub fn print(bytes: &[u8]) -> anyhow::Result<()> {
    flushed(|| io::stdout().write_all(bytes))
}

/// Prints to standard output, and flushes it. Fails if the text cannot be written.
pub fn flushed(print: impl FnOnce() -> io::Result<()>) -> anyhow::Result<()> {
    let print = || print().and_then(|()| io::stdout().flush());
    print().with_context(|| Failure::Output("standard output".into()))
}

/// Escapes control characters for a terminal, including those that change the direction of writing. The joiner and the
/// non-joiner are kept, as they are part of Persian and Indian names and of some emoji.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        let is_directional = matches!(character, '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if character.is_control() || is_directional {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Columns that a text takes in a terminal: two for a letter of Chinese, none for an accent.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// Pads a text with spaces to `columns`.
pub fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// A number of files, in words.
pub fn files(count: usize) -> String {
    counted(count as u64, "file")
}

/// Prints a line on standard error.
pub fn say(line: &str) {
    write_error(&format!("{}\n", printable(line)));
}

/// Returns the first error of several outputs, and reports the others. An error does not stop the remaining outputs.
pub fn first_error(written: impl IntoIterator<Item = anyhow::Result<()>>) -> anyhow::Result<()> {
    let mut errors = written.into_iter().filter_map(Result::err);
    let first = errors.next();
    errors.for_each(|error| say(&format!("denoise: {}", one_line(&error))));
    first.map_or(Ok(()), Err)
}

/// Writes to standard error in a single call; ignores errors, as of a closed stream.
pub fn write_error(text: &str) {
    let _unwritten = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn terminals_are_not_controlled_by_names() {
        assert_eq!(printable("a\x1b[2Jb\r\u{202e}c\u{9b}"), "a\\u{1b}[2Jb\\r\\u{202e}c\\u{9b}");
        assert_eq!(
            printable("می\u{200c}خواهم क्\u{200d}ष"),
            "می\u{200c}خواهم क्\u{200d}ष",
            "joiners are letters"
        );
        assert_eq!(printable("\u{200b}\u{200e}\u{200f}"), "\\u{200b}\\u{200e}\\u{200f}");
        assert_eq!(printable("Grüße, 世界 \u{fffd}.wav"), "Grüße, 世界 \u{fffd}.wav");
    }
}
