//! The figure of a recording: before, after and removed, with level and SNR over time.

use super::axis::{time_label, time_ticks};
use super::canvas::{Anchor, Area, Canvas, GRID, INK, MUTED, PALETTE, PlotError, bitmap, opaque, svg};
use super::columns::{Columns, ROWS};
use super::tracks::{Envelope, Means};
use super::{Axis, FrequencyScale, LEVEL_RANGE_DB, level};
use plotters::backend::DrawingBackend;
use plotters::style::{Color, RGBColor};

const WIDTH: f64 = 1_200.0;
const LEFT: f64 = 84.0;
const PLOT: f64 = 1_010.0;
/// Height above the first panel.
const HEAD: f64 = 74.0;
/// Height of a panel's title.
const TITLE: f64 = 26.0;
const WAVEFORM: f64 = 64.0;
const GAP: f64 = 8.0;
const SPECTROGRAM: f64 = 150.0;
const LEVEL: f64 = 130.0;
const SNR: f64 = 110.0;
/// Height below the last panel, for the labels of time.
const FOOT: f64 = 50.0;
/// Font sizes.
const SMALL: f64 = 12.0;
const LARGE: f64 = 20.0;
/// Upper end of the colour scale of the gain's standard deviation.
const MAX_DEVIATION: f32 = 0.2;
/// Number of slots over which the SNR is averaged.
const SNR_SLOTS: usize = 5;

/// Duration of a slot of levels and powers, s.
pub const SLOT_SECONDS: f64 = 0.1;

/// The title of a figure.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Caption {
    /// Name of the recording.
    pub name: String,
    /// Sample rate, Hz.
    pub sample_rate: u32,
    /// Number of channels.
    pub channels: usize,
    /// Duration, s.
    pub seconds: f64,
    /// Estimated signal-to-noise ratio before denoising, dB.
    pub snr_before_db: Option<f64>,
    /// Estimated signal-to-noise ratio after denoising, dB.
    pub snr_after_db: Option<f64>,
}

/// A signal to draw.
#[derive(Debug, Clone)]
pub struct Stage {
    /// Waveform.
    pub envelope: Envelope,
    /// Spectrogram of powers; a sine at full scale has 1 in its bin.
    pub columns: Columns,
}

/// The figure of a recording.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Title.
    pub caption: Caption,
    /// Distance between frames, s.
    pub hop_seconds: f64,
    /// Half the sample rate, Hz.
    pub highest_hertz: f64,
    /// Scale of frequency.
    pub scale: FrequencyScale,
    /// The signals before and after denoising, and the removed signal.
    pub stages: [Stage; 3],
    /// Standard deviation of the gain; its panel is omitted if there are no frames.
    pub deviation: Columns,
    /// Lower end, level and upper end of speech: mean squares in slots of [`SLOT_SECONDS`].
    pub levels: Means<3>,
    /// Mean squares of the result and of the residual, in slots of [`SLOT_SECONDS`].
    pub powers: Means<2>,
}

impl Figure {
    /// Renders an SVG file with embedded font; its `<title>` is the recording's name and its `<desc>`
    /// [`summary`](Self::summary).
    ///
    /// # Errors
    /// [`PlotError`]; no recording is known to cause one.
    pub fn svg(&self) -> Result<String, PlotError> {
        svg(self.size(), [&self.caption.name, &self.summary()], true, |canvas| self.draw(canvas))
    }

    /// Renders a PNG file, 2400 pixels wide.
    ///
    /// # Errors
    /// [`PlotError`]; no recording is known to cause one.
    pub fn png(&self) -> Result<Vec<u8>, PlotError> {
        bitmap(self.size(), |canvas| self.draw(canvas))
    }

    /// Length, rate, channels and SNR in a line.
    #[must_use]
    pub fn summary(&self) -> String {
        let Caption { seconds, sample_rate, channels, snr_before_db, snr_after_db, .. } = &self.caption;
        let kilohertz = f64::from(*sample_rate) / 1000.0;
        let channels = match channels {
            1 => "mono".to_owned(),
            2 => "stereo".to_owned(),
            count => format!("{count} channels"),
        };
        let step = match *seconds {
            ..1.0 => 0.01,
            ..600.0 => 0.1,
            _ => 1.0,
        };
        let length = time_label(*seconds, step, *seconds >= 3_600.0);
        let mut line = format!("{length}, {kilohertz} kHz, {channels}");
        let number = |value: f64| format!("{value:.1} dB").replace('-', "\u{2212}");
        if let Some(before) = snr_before_db {
            line += &format!("; estimated SNR {} before", number(*before));
            if let Some(after) = snr_after_db {
                line += &format!(", {} after", number(*after));
            }
        }
        line
    }

    fn has_deviation(&self) -> bool {
        self.deviation.frames() > 0
    }

    fn size(&self) -> (f64, f64) {
        let mut height = HEAD + 3.0 * (TITLE + WAVEFORM + GAP + SPECTROGRAM) + TITLE + SNR + FOOT;
        if self.has_deviation() {
            height += TITLE + SPECTROGRAM;
        }
        if !self.levels.is_empty() {
            height += TITLE + LEVEL;
        }
        (WIDTH, height)
    }

    fn draw<B: DrawingBackend>(&self, canvas: &mut Canvas<B>) -> Result<(), PlotError> {
        let (width, height) = self.size();
        canvas.fill((0.0, 0.0), (width, height), opaque(RGBColor(255, 255, 255)))?;
        let start = (Anchor::Start, false);
        let name = canvas.fitted(&self.caption.name, LARGE, WIDTH - 2.0 * LEFT)?;
        canvas.text((LEFT, 36.0), &name, start, (LARGE, INK))?;
        canvas.text((LEFT, 60.0), &self.summary(), start, (SMALL + 2.0, MUTED))?;
        let mut top = HEAD;
        let mut panel = |height: f64, above: f64| {
            let area = Area { left: LEFT, top: top + above, width: PLOT, height };
            top = area.bottom();
            area
        };
        let loudest = self.stages[0].columns.largest().max(self.stages[1].columns.largest());
        // Silence is black, even in a silent recording.
        let high = (10.0 * (level(loudest) / 10.0).ceil()).max(level(0.0) + LEVEL_RANGE_DB);
        let peak = self.stages.iter().map(|stage| stage.envelope.peak()).fold(0.0, f32::max);
        let bar_top = HEAD + TITLE + WAVEFORM + GAP;
        let mut bar_bottom = bar_top;
        for (title, stage) in ["Before", "After", "Removed"].into_iter().zip(&self.stages) {
            let area = panel(WAVEFORM, TITLE);
            Self::title(canvas, area, title)?;
            self.waveform(canvas, area, &stage.envelope, peak)?;
            let area = panel(SPECTROGRAM, GAP);
            self.spectrogram(canvas, area, &stage.columns, |power| {
                (level(power) - (high - LEVEL_RANGE_DB)) / LEVEL_RANGE_DB
            })?;
            bar_bottom = area.bottom();
        }
        let bar = Area { left: LEFT + PLOT + 14.0, top: bar_top, width: 14.0, height: bar_bottom - bar_top };
        let levels = Axis { low: f64::from(high - LEVEL_RANGE_DB), high: f64::from(high), step: 10.0 };
        Self::colour_bar(canvas, bar, &levels, "level of a bin in dBFS (a sine at full scale has 0)")?;
        if self.has_deviation() {
            let area = panel(SPECTROGRAM, TITLE);
            Self::title(canvas, area, "Posterior standard deviation of the gain")?;
            self.spectrogram(canvas, area, &self.deviation, |deviation| deviation / MAX_DEVIATION)?;
            let bar = Area { left: bar.left, width: bar.width, ..area };
            let deviations = Axis { low: 0.0, high: f64::from(MAX_DEVIATION), step: 0.05 };
            Self::colour_bar(canvas, bar, &deviations, "gain, 0 to 1")?;
        }
        if !self.levels.is_empty() {
            let area = panel(LEVEL, TITLE);
            Self::title(canvas, area, "Speech level (line) and its 90 % interval (band)")?;
            self.speech_level(canvas, area)?;
        }
        let area = panel(SNR, TITLE);
        Self::title(canvas, area, "Estimated SNR before denoising: result to removed, over 0.5 s or more")?;
        self.snr(canvas, area)?;
        let (ticks, step) = time_ticks(self.caption.seconds);
        let with_hours = self.caption.seconds >= 3_600.0;
        for time in ticks {
            let label = time_label(time, step, with_hours);
            let place = (self.x(area, time), area.bottom() + 18.0);
            canvas.text(place, &label, (Anchor::Middle, false), (SMALL, MUTED))?;
        }
        let unit = if with_hours { "time in h:mm:ss" } else { "time in m:ss" };
        canvas.text((area.x(0.5), area.bottom() + 38.0), unit, (Anchor::Middle, false), (SMALL, INK))
    }

    fn title<B: DrawingBackend>(canvas: &mut Canvas<B>, area: Area, title: &str) -> Result<(), PlotError> {
        canvas.text((area.left, area.top - 7.0), title, (Anchor::Start, false), (SMALL + 1.0, INK))
    }

    /// The abscissa of a time.
    fn x(&self, area: Area, seconds: f64) -> f64 {
        area.x(if self.caption.seconds > 0.0 { seconds / self.caption.seconds } else { 0.0 })
    }

    /// Draws the left and lower axis, and ticks of time.
    fn frame<B: DrawingBackend>(
        &self,
        canvas: &mut Canvas<B>,
        area: Area,
        unit: &str,
    ) -> Result<(), PlotError> {
        let (left, bottom) = (area.left, area.bottom());
        canvas.fill((left - 1.0, area.top), (left, bottom + 1.0), opaque(MUTED))?;
        canvas.fill((left - 1.0, bottom), (area.right(), bottom + 1.0), opaque(MUTED))?;
        for time in time_ticks(self.caption.seconds).0 {
            let x = self.x(area, time);
            canvas.vertical(x, [bottom, bottom + 4.0], MUTED)?;
        }
        let middle = (left - 54.0, area.y(0.5));
        canvas.text(middle, unit, (Anchor::Middle, true), (SMALL, INK))
    }

    /// Draws a label on the left, with its tick.
    fn tick<B: DrawingBackend>(
        canvas: &mut Canvas<B>,
        area: Area,
        y: f64,
        label: &str,
    ) -> Result<(), PlotError> {
        canvas.horizontal([area.left - 5.0, area.left], y, MUTED)?;
        canvas.text((area.left - 9.0, y + 4.5), label, (Anchor::End, false), (SMALL, MUTED))
    }

    fn waveform<B: DrawingBackend>(
        &self,
        canvas: &mut Canvas<B>,
        area: Area,
        envelope: &Envelope,
        peak: f32,
    ) -> Result<(), PlotError> {
        // In steps of 6 dB, so that half the height has a round label.
        let highest = (6.0 * (20.0 * f64::from(peak).max(1e-5).log10() / 6.0 - 1e-9).ceil()).max(-96.0);
        let limit = 10_f64.powf(highest / 20.0);
        let y = |sample: f64| area.y(0.5 + 0.5 * (sample / limit).clamp(-1.0, 1.0));
        canvas.horizontal([area.left, area.right()], y(0.0), GRID)?;
        let columns: Vec<_> = envelope
            .columns()
            .map(|(start, end, low, high)| (area.x(start), area.x(end), y(high.into()), y(low.into())))
            .collect();
        canvas.band(&columns, opaque(PALETTE[0]))?;
        let label = |decibels: f64| format!("{:.0}", decibels + 0.0).replace('-', "\u{2212}");
        // The label of the lower end would touch that of the spectrogram, so it is empty.
        for (place, label) in
            [(1.0, label(highest)), (0.5, "\u{2212}\u{221e}".to_owned()), (0.0, String::new())]
        {
            Self::tick(canvas, area, area.y(place), &label)?;
        }
        self.frame(canvas, area, "dBFS")
    }

    fn spectrogram<B: DrawingBackend>(
        &self,
        canvas: &mut Canvas<B>,
        area: Area,
        columns: &Columns,
        place: impl Fn(f32) -> f32,
    ) -> Result<(), PlotError> {
        let width = area.width.round() as usize;
        let shades = columns.shades(width, self.caption.seconds / self.hop_seconds, place);
        if !shades.is_empty() {
            canvas.image(area, (width, ROWS), shades);
        }
        for kilohertz in self.scale.ticks(self.highest_hertz, 8) {
            let y = area.y(self.scale.fraction(1000.0 * kilohertz, self.highest_hertz));
            Self::tick(canvas, area, y, &kilohertz.to_string())?;
        }
        self.frame(canvas, area, "kHz")
    }

    fn colour_bar<B: DrawingBackend>(
        canvas: &mut Canvas<B>,
        bar: Area,
        axis: &Axis,
        unit: &str,
    ) -> Result<(), PlotError> {
        canvas.image(bar, (1, 256), (0..=255).rev().collect());
        for value in axis.ticks() {
            let y = bar.y(axis.fraction(value));
            canvas.horizontal([bar.right(), bar.right() + 5.0], y, MUTED)?;
            let place = (bar.right() + 9.0, y + 4.5);
            canvas.text(place, &axis.label(value), (Anchor::Start, false), (SMALL, MUTED))?;
        }
        canvas.text((bar.right() + 58.0, bar.y(0.5)), unit, (Anchor::Middle, true), (SMALL, INK))
    }

    /// Draws horizontal lines and labels of an axis, and vertical lines at the labels of time.
    fn grid<B: DrawingBackend>(
        &self,
        canvas: &mut Canvas<B>,
        area: Area,
        axis: &Axis,
    ) -> Result<(), PlotError> {
        for time in time_ticks(self.caption.seconds).0 {
            let x = self.x(area, time);
            canvas.vertical(x, [area.top, area.bottom()], GRID)?;
        }
        for value in axis.ticks() {
            let y = area.y(axis.fraction(value));
            canvas.horizontal([area.left, area.right()], y, GRID)?;
            Self::tick(canvas, area, y, &axis.label(value))?;
        }
        Ok(())
    }

    /// The abscissa of a time in slots.
    fn slot(&self, area: Area, slots: f64) -> f64 {
        self.x(area, slots * SLOT_SECONDS).min(area.right())
    }

    /// Computes the points of a line through columns; a single column is drawn with its width.
    fn run<const N: usize>(
        &self,
        area: Area,
        columns: &[(f64, [f64; N])],
        reach: f64,
        y: impl Fn([f64; N]) -> f64,
    ) -> Vec<(f64, f64)> {
        let point = |(at, values): (f64, [f64; N])| (self.slot(area, at), y(values));
        match *columns {
            [(at, values)] => [at - reach, at + reach].map(|at| point((at, values))).into(),
            _ => columns.iter().copied().map(point).collect(),
        }
    }

    fn speech_level<B: DrawingBackend>(&self, canvas: &mut Canvas<B>, area: Area) -> Result<(), PlotError> {
        let decibels = |power: f64| 10.0 * power.log10();
        let loudest = self.levels.columns().map(|(_, [.., upper])| upper).fold(0.0, f64::max);
        let high = if loudest > 0.0 { (10.0 * (decibels(loudest) / 10.0).ceil()).max(-150.0) } else { 0.0 };
        let axis = Axis { low: high - 60.0, high, step: 20.0 };
        let y = |power: f64| area.y(axis.fraction(decibels(power)).clamp(0.0, 1.0));
        self.grid(canvas, area, &axis)?;
        let columns: Vec<_> = self.levels.columns().collect();
        let reach = reach(&columns);
        // Silence leaves a gap.
        for run in columns.split(|(_, [_, level, _])| *level <= 0.0).filter(|run| !run.is_empty()) {
            let band: Vec<_> = run
                .iter()
                .map(|(at, [lower, _, upper])| {
                    (self.slot(area, at - reach), self.slot(area, at + reach), y(*upper), y(*lower))
                })
                .collect();
            canvas.band(&band, PALETTE[0].mix(0.25))?;
            let line = self.run(area, run, reach, |[_, level, _]| y(level));
            canvas.line(&line, opaque(PALETTE[0]), 1.0)?;
        }
        self.frame(canvas, area, "dBFS")
    }

    fn snr<B: DrawingBackend>(&self, canvas: &mut Canvas<B>, area: Area) -> Result<(), PlotError> {
        let axis = Axis { low: -20.0, high: 40.0, step: 20.0 };
        self.grid(canvas, area, &axis)?;
        let columns = self.powers.smoothed(SNR_SLOTS);
        let reach = reach(&columns);
        let y = |[result, removed]: [f64; 2]| {
            let decibels = 10.0 * (result / removed.max(1e-30)).max(1e-30).log10();
            area.y(axis.fraction(decibels).clamp(0.0, 1.0))
        };
        let silent = |(_, [result, removed]): &(f64, [f64; 2])| result + removed <= 0.0;
        for run in columns.split(silent).filter(|run| !run.is_empty()) {
            let line = self.run(area, run, reach, y);
            canvas.line(&line, opaque(PALETTE[1]), 1.5)?;
        }
        self.frame(canvas, area, "dB")
    }
}

/// Half the width of a column, in slots.
fn reach<T>(columns: &[(f64, T)]) -> f64 {
    columns.get(1).map_or(0.5, |(second, _)| 0.5 * (second - columns[0].0))
}
