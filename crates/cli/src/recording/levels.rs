//! `--levels`: speech levels as a table.

use crate::streams::TextOutput;
use alphamf::denoiser::{SpeechLevel, SpeechLevels};
use std::io::{self, Write};
use std::path::Path;

/// The columns of a table of levels.
const HEADER: &str = "channel,start_seconds,low_hz,high_hz,level_dbfs,lower_dbfs,upper_dbfs\n";

/// A table of levels that is written block by block.
pub(super) struct Table(TextOutput);

impl Table {
    /// Opens a table; replaces an existing file if `replace`.
    pub(super) fn create(path: &Path, replace: bool) -> anyhow::Result<Self> {
        let mut sheet = TextOutput::create(path, replace)?;
        sheet.write(|target| target.write_all(HEADER.as_bytes()))?;
        Ok(Self(sheet))
    }

    /// Adds the levels of every channel, or of all together.
    pub(super) fn add(&mut self, found: &[SpeechLevels]) -> anyhow::Result<()> {
        let mut levels = found.iter().enumerate();
        self.0.write(|table| levels.try_for_each(|(channel, levels)| add(table, channel, levels)))
    }

    /// Completes the table.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        self.0.finish()
    }
}

/// Adds the levels of a channel, counted from 0, or of all together; silence is left empty.
fn add(table: &mut dyn Write, channel: usize, levels: &SpeechLevels) -> io::Result<()> {
    let SpeechLevels { edges_hertz, slot_seconds, first_slot, cells } = levels;
    let bands = edges_hertz.len().saturating_sub(1).max(1);
    for (slot, cells) in (*first_slot..).zip(cells.chunks_exact(bands)) {
        let start = slot as f64 * slot_seconds;
        for (edges, cell) in edges_hertz.windows(2).zip(cells) {
            let (low, high) = (edges[0], edges[1]);
            write!(table, "{},{start:.1},{low:.1},{high:.1},", channel + 1)?;
            match cell {
                Some(SpeechLevel { level_dbfs, lower_dbfs, upper_dbfs }) => {
                    writeln!(table, "{level_dbfs:.2},{lower_dbfs:.2},{upper_dbfs:.2}")?
                }
                None => writeln!(table, ",,")?,
            }
        }
    }
    Ok(())
}
