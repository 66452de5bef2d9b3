//! Speech levels as a table.

use alphamf::denoiser::{SpeechLevel, SpeechLevels};

/// The columns of a table of levels.
pub(super) const HEADER: &str = "channel,start_seconds,low_hz,high_hz,level_dbfs,lower_dbfs,upper_dbfs\n";

/// Adds the levels of a channel, counted from 0, or of all that share one gain; silence is left empty.
pub(super) fn add(table: &mut String, channel: usize, levels: &SpeechLevels) {
    let SpeechLevels { edges_hertz, slot_seconds, first_slot, cells } = levels;
    let bands = edges_hertz.len().saturating_sub(1).max(1);
    for (slot, cells) in (*first_slot..).zip(cells.chunks_exact(bands)) {
        let start = slot as f64 * slot_seconds;
        for (edges, cell) in edges_hertz.windows(2).zip(cells) {
            let (low, high) = (edges[0], edges[1]);
            *table += &format!("{},{start:.1},{low:.1},{high:.1},", channel + 1);
            *table += &match cell {
                Some(SpeechLevel { level_dbfs, lower_dbfs, upper_dbfs }) => {
                    format!("{level_dbfs:.2},{lower_dbfs:.2},{upper_dbfs:.2}\n")
                }
                None => ",,\n".to_owned(),
            };
        }
    }
}
