//! The table of the results.

use crate::inputs::LeftOut;
use crate::recording::Found;
use crate::stats::{Entry, Outcome};
use crate::terminal::{padded, printable, width};
use unicode_width::UnicodeWidthChar;

/// Minimum columns for the name of a file.
const MIN_NAME_COLUMNS: usize = 16;

/// Maximum columns of a line without a terminal: more than a path has, and fewer than can be formatted.
const MAX_COLUMNS: usize = 5_000;

/// Replaces the beginning of a name of more than `room` columns with an ellipsis.
fn shorten(name: &mut String, room: usize) {
    if width(name) <= room {
        return;
    }
    let (mut columns, mut start) = (1, name.len());
    for (index, character) in name.char_indices().rev() {
        columns += character.width().unwrap_or(0);
        if columns > room {
            break;
        }
        start = index;
    }
    // A combining accent without its letter would attach to the ellipsis.
    let rest = name[start..].trim_start_matches(|character: char| character.width() == Some(0));
    *name = format!("…{rest}");
}

/// Formats a line for each file, and a summary line, which also counts failures in `left_out`. Long names are shortened
/// to fit `columns`, the width of the terminal, if there is one.
pub(super) fn table(entries: &[Entry], left_out: &[LeftOut], seconds: f64, columns: Option<usize>) -> String {
    let level = |level: Option<f64>| level.map(|level| format!("{level:.1} dB")).unwrap_or_default();
    let row = |entry: &Entry| -> [String; 6] {
        let name = entry.input.display().to_string();
        let shown = printable(&name);
        let (note, found) = match (&entry.found, &entry.error) {
            (Some(found), _) => (found.notes().join("; "), Some(found)),
            // The first column already holds the name.
            (None, Some(error)) => {
                let error = error.strip_prefix(&format!("{name}: ")).unwrap_or(error);
                (printable(&format!("failed: {error}")), None)
            }
            (None, None) => ("skipped: up to date".to_owned(), None),
        };
        let duration =
            found.map(|found| format!("{:.2} s", found.statistics.duration_seconds)).unwrap_or_default();
        let of = |value: fn(&Found) -> Option<f64>| level(found.and_then(value));
        let snr = of(|found| found.statistics.snr_before_db);
        [
            shown,
            duration,
            snr,
            of(|found| found.statistics.noise_before_dbfs),
            of(|found| found.statistics.noise_after_dbfs),
            note,
        ]
    };
    let mut rows = vec![["file", "length", "SNR before", "noise before", "after", ""].map(str::to_owned)];
    rows.extend(entries.iter().map(row));
    let widest = |column: usize| rows.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let mut widths: [usize; 5] = std::array::from_fn(widest);
    let figures = widths[1..].iter().map(|width| width + 2).sum();
    let columns = columns.unwrap_or(MAX_COLUMNS).min(MAX_COLUMNS);
    let room = columns.saturating_sub(figures).max(MIN_NAME_COLUMNS);
    rows.iter_mut().for_each(|[name, ..]| shorten(name, room));
    widths[0] = widths[0].min(room);
    let mut text = String::new();
    for [name, length, snr, before, after, note] in &rows {
        let [first, second, third, fourth, fifth] = widths;
        let name = padded(name, first);
        let line =
            format!("{name}  {length:>second$}  {snr:>third$}  {before:>fourth$}  {after:>fifth$}  {note}");
        text += line.trim_end();
        text.push('\n');
    }
    let count = |outcome| entries.iter().filter(|entry| entry.outcome == outcome).count();
    text + &format!(
        "{} denoised, {} skipped, {} failed in {seconds:.1} s\n",
        count(Outcome::Denoised),
        count(Outcome::Skipped),
        count(Outcome::Failed) + left_out.iter().filter(|left| left.failed).count()
    )
}

#[cfg(test)]
mod tests {
    use super::{MAX_COLUMNS, shorten, table, width};
    use crate::stats::{Entry, Outcome};

    #[test]
    fn long_names_lose_their_beginning() {
        for (room, expected) in [(12, "a/folder/b.ä"), (11, "…folder/b.ä"), (4, "…b.ä")] {
            let mut name = "a/folder/b.ä".to_owned();
            shorten(&mut name, room);
            assert_eq!(name, expected);
        }
    }

    #[test]
    fn wide_letters_take_two_columns() {
        // The accent is a separate character.
        for (room, expected) in
            [(10, "録音/e\u{301}.wav"), (9, "…音/e\u{301}.wav"), (7, "…/e\u{301}.wav"), (5, "….wav")]
        {
            let mut name = "録音/e\u{301}.wav".to_owned();
            shorten(&mut name, room);
            assert_eq!(name, expected);
            assert!(width(&name) <= room);
        }
        let entry = |name: &str| {
            let (input, output) = (name.into(), name.into());
            Entry { input, output, outcome: Outcome::Skipped, error: None, found: None }
        };
        for columns in [None, Some(60)] {
            let entries = ["a.wav", "録音.wav", "😀.wav", "a-very-long-name-録音.wav"].map(entry);
            let table = table(&entries, &[], 1.0, columns);
            let notes = table.lines().skip(1).filter_map(|line| line.split_once("skipped:"));
            let starts: Vec<usize> = notes.map(|(before, _)| width(before)).collect();
            assert!(starts.len() == 4 && starts.iter().all(|start| *start == starts[0]), "{table}");
        }
    }

    #[test]
    fn a_name_longer_than_any_line_is_shortened_without_a_terminal() {
        let input = "x".repeat(1 << 17).into();
        let outcome = Outcome::Skipped;
        let entry = Entry { input, output: "y".into(), outcome, error: None, found: None };
        for columns in [None, Some(1 << 17), Some(80)] {
            let table = table(std::slice::from_ref(&entry), &[], 1.0, columns);
            let width = table.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(width < MAX_COLUMNS + 50 && table.contains("…x"), "{width} columns");
        }
    }
}
