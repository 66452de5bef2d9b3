//! The figure of a recording: before, after, and how sure the denoiser is.

use super::terminal::{Failure, write_whole};
use alphamf::denoiser::{SpeechLevel, SpeechLevels};
use alphamf::transform::{Analyser, InvalidWindow, Spectrogram, Stft};
use alphamf_eval::plot::{Columns, Figure, LEVELS, Panel, level};
use alphamf_files::Layout;
use anyhow::Context;
use std::path::Path;

/// The levels of a recording that comes in blocks, all channels together.
struct Levels {
    analysers: Vec<Analyser>,
    frames: Vec<Spectrogram>,
    columns: Columns,
    /// Samples that are analysed together, so that memory stays small.
    step: usize,
}

impl Levels {
    /// Those of no samples yet, in windows of so many seconds.
    fn new(layout: &Layout, window_seconds: f64) -> Result<Self, InvalidWindow> {
        let (stft, channels) = (Stft::new(layout.sample_rate, window_seconds)?, layout.channels);
        Ok(Self {
            analysers: (0..channels).map(|_| stft.analyser()).collect(),
            frames: vec![Spectrogram::new(stft.bins(), 0); channels],
            columns: Columns::new(stft.bins()),
            step: 64 * stft.hop(),
        })
    }

    /// Bins of a frame.
    fn bins(&self) -> usize {
        self.frames[0].bins()
    }

    /// Takes the next samples of every channel.
    fn push(&mut self, channels: &[Vec<f32>]) {
        let length = channels.first().map_or(0, Vec::len);
        for start in (0..length).step_by(self.step) {
            let end = (start + self.step).min(length);
            for ((analyser, frames), samples) in self.analysers.iter_mut().zip(&mut self.frames).zip(channels)
            {
                analyser.push(&samples[start..end], frames);
            }
            self.draw();
        }
    }

    /// The picture of the whole.
    fn finish(mut self) -> Columns {
        for (analyser, frames) in std::mem::take(&mut self.analysers).into_iter().zip(&mut self.frames) {
            analyser.finish(frames);
        }
        self.draw();
        self.columns
    }

    /// Draws the frames that are complete, of which every channel has as many.
    fn draw(&mut self) {
        let Some(first) = self.frames.first() else { return };
        let (bins, count) = (first.bins(), first.frames());
        for frame in 0..count {
            let power =
                |bin: usize| self.frames.iter().map(move |frames| frames.frame(frame)[bin].norm_sqr());
            self.columns.push((0..bins).map(|bin| level(power(bin).sum())));
        }
        for frames in &mut self.frames {
            *frames = Spectrogram::new(bins, 0);
        }
    }
}

/// The figure of a recording that comes in blocks.
pub struct Drawing {
    before: Levels,
    after: Levels,
    /// Of all channels, or of each.
    deviations: Vec<Columns>,
    /// Widths of the intervals of the voice's level, likewise.
    intervals: Vec<Columns>,
    highest_hertz: f64,
}

impl Drawing {
    /// That of no samples yet, in windows of so many seconds.
    pub fn new(layout: &Layout, window_seconds: f64) -> Result<Self, InvalidWindow> {
        Ok(Self {
            before: Levels::new(layout, window_seconds)?,
            after: Levels::new(layout, window_seconds)?,
            deviations: Vec::new(),
            intervals: Vec::new(),
            highest_hertz: f64::from(layout.sample_rate) / 2.0,
        })
    }

    /// Takes the next samples of every channel, those that are denoised, deviations of the gain (bins x frames), and levels of
    /// the voice.
    pub fn push(
        &mut self,
        before: &[Vec<f32>],
        after: &[Vec<f32>],
        deviations: &[Vec<f32>],
        levels: &[SpeechLevels],
    ) {
        self.before.push(before);
        self.after.push(after);
        let bins = self.before.bins();
        self.deviations.resize(deviations.len(), Columns::new(bins));
        for (columns, values) in self.deviations.iter_mut().zip(deviations) {
            values.chunks_exact(bins).for_each(|frame| columns.push(frame.iter().copied()));
        }
        self.intervals.resize(levels.len(), Columns::new(bins));
        for (columns, levels) in self.intervals.iter_mut().zip(levels) {
            push_widths(columns, levels, bins, self.highest_hertz);
        }
    }

    /// The whole.
    pub fn finish(self, seconds: f64) -> Figure {
        /// A standard deviation that is large for a gain.
        const DEVIATION: f32 = 0.1;
        /// A width that is large for an interval, dB.
        const WIDTH: f32 = 30.0;
        let (before, after) = (self.before.finish(), self.after.finish());
        let loudest = before.largest().max(-200.0);
        let spectrogram = |title: &str, columns: Columns| Panel {
            title: title.to_owned(),
            columns,
            low: loudest - LEVELS,
            high: loudest,
            scale: [format!("-{LEVELS} dB"), "loudest".to_owned()],
        };
        let mut panels = vec![spectrogram("Before", before), spectrogram("After", after)];
        let certainty = [
            ("Posterior standard deviation of the gain", self.deviations, DEVIATION, ""),
            ("Width of the 90% interval of the voice's level", self.intervals, WIDTH, " dB"),
        ];
        for (title, all, high, unit) in certainty {
            let several = all.len() > 1;
            // Without draws there are no deviations; live, there is neither.
            let drawn = all.into_iter().enumerate().filter(|(_, columns)| columns.frames() > 0);
            panels.extend(drawn.map(|(channel, columns)| Panel {
                title: if several { format!("{title}, channel {}", channel + 1) } else { title.to_owned() },
                columns,
                low: 0.0,
                high,
                scale: [format!("0{unit}"), format!("{high}{unit}")],
            }));
        }
        Figure { seconds, hertz: self.highest_hertz, panels }
    }
}

/// Appends the widths of the intervals of levels, dB: every slot is a frame, with those of third octaves at all bins that lie in
/// them.
fn push_widths(columns: &mut Columns, levels: &SpeechLevels, bins: usize, highest_hertz: f64) {
    let SpeechLevels { edges_hertz, cells, .. } = levels;
    let band = |bin: usize| {
        let hertz = (bin as f64 + 0.5) / bins as f64 * highest_hertz;
        edges_hertz.windows(2).position(|edges| (edges[0]..edges[1]).contains(&hertz))
    };
    let bands: Vec<Option<usize>> = (0..bins).map(band).collect();
    let width = |cell: SpeechLevel| (cell.upper_dbfs - cell.lower_dbfs) as f32;
    for cells in cells.chunks_exact(edges_hertz.len().saturating_sub(1).max(1)) {
        columns.push(bands.iter().map(|band| band.and_then(|band| cells[band]).map_or(0.0, width)));
    }
}

/// Whether a file of this name can be drawn: SVG or PNG.
pub fn is_known(path: &Path) -> bool {
    is_svg(path) || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png"))
}

fn is_svg(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"))
}

/// Writes the figure in the format of the file's name.
pub fn write(figure: &Figure, path: &Path) -> anyhow::Result<()> {
    if is_svg(path) {
        return write_whole(path, figure.svg().as_bytes());
    }
    let png = figure.png().with_context(|| Failure::Output(path.to_owned()))?;
    write_whole(path, &png)
}
