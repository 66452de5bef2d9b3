//! Small charts as SVG: for reports, and for the samplers' examples.
//!
//! Their few colours are fixed, so that a page can replace them by its own.

use super::Axis;
use super::canvas::{
    Anchor, Area, Canvas, GRID, INK, MUTED, PALETTE, PlotError, escape, opaque, pixels, svg,
};
use plotters::backend::DrawingBackend;
use plotters::style::{Color, RGBColor};
use std::fmt::Write;

const WIDTH: f64 = 560.0;
/// Font sizes.
const SMALL: f64 = 11.0;

/// One line of [`curves`], with its standard errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Abscissa, mean and standard error (0 for none), in the order of the abscissa.
    pub points: Vec<(f64, f64, f64)>,
}

/// A horizontal bar with its interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Label on the left.
    pub label: String,
    /// Length, from zero.
    pub value: f64,
    /// Half the width of the interval.
    pub error: f64,
}

/// A named point.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Tooltip.
    pub name: String,
    /// Abscissa.
    pub x: f64,
    /// Ordinate.
    pub y: f64,
}

/// An area with two axes.
struct Frame {
    area: Area,
    x: Axis,
    y: Axis,
}

impl Frame {
    fn new(x: Axis, y: Axis, height: f64) -> Self {
        Self {
            area: Area { left: 64.0, top: 30.0, width: WIDTH - 64.0 - 18.0, height: height - 30.0 - 46.0 },
            x,
            y,
        }
    }

    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (self.area.x(self.x.fraction(x)), self.area.y(self.y.fraction(y)))
    }

    /// Draws title, grid, labels, and names of the axes with units.
    fn draw<B: DrawingBackend>(
        &self,
        canvas: &mut Canvas<B>,
        [title, x_title, y_title]: [&str; 3],
    ) -> Result<(), PlotError> {
        let Area { left, top, .. } = self.area;
        let (right, bottom) = (self.area.right(), self.area.bottom());
        draw_title(canvas, title)?;
        for tick in self.x.ticks() {
            let x = self.area.x(self.x.fraction(tick));
            canvas.vertical(x, [top, bottom], GRID)?;
            canvas.text((x, bottom + 16.0), &self.x.label(tick), (Anchor::Middle, false), (SMALL, MUTED))?;
        }
        for tick in self.y.ticks() {
            let y = self.area.y(self.y.fraction(tick));
            canvas.horizontal([left, right], y, GRID)?;
            canvas.text((left - 8.0, y + 4.0), &self.y.label(tick), (Anchor::End, false), (SMALL, MUTED))?;
        }
        canvas.vertical(left, [top, bottom], MUTED)?;
        canvas.horizontal([left, right], bottom, MUTED)?;
        canvas.text(
            (self.area.x(0.5), bottom + 36.0),
            x_title,
            (Anchor::Middle, false),
            (SMALL + 1.0, INK),
        )?;
        canvas.text((left - 46.0, self.area.y(0.5)), y_title, (Anchor::Middle, true), (SMALL + 1.0, INK))
    }
}

fn draw_title<B: DrawingBackend>(canvas: &mut Canvas<B>, title: &str) -> Result<(), PlotError> {
    canvas.text((14.0, 18.0), title, (Anchor::Start, false), (SMALL + 3.0, INK))
}

fn background<B: DrawingBackend>(canvas: &mut Canvas<B>, height: f64) -> Result<(), PlotError> {
    canvas.fill((0.0, 0.0), (WIDTH, height), opaque(RGBColor(255, 255, 255)))
}

/// The colour of a curve; after six, colours repeat.
fn colour(index: usize) -> RGBColor {
    PALETTE[index % PALETTE.len()]
}

/// Draws lines over an abscissa with bands of one standard error. Points that are not finite are omitted.
///
/// # Errors
/// [`PlotError`]; no curves are known to cause one.
pub fn curves(title: &str, [x_title, y_title]: [&str; 2], curves: &[Curve]) -> Result<String, PlotError> {
    let finite = |point: &&(f64, f64, f64)| point.0.is_finite() && point.1.is_finite() && point.2.is_finite();
    let points = || curves.iter().flat_map(|curve| &curve.points).filter(finite);
    let x = Axis::over(points().map(|p| p.0));
    let y = Axis::over(points().flat_map(|p| [p.1 - p.2, p.1 + p.2]));
    // The legend is below the axis, so that it hides nothing.
    let frame = Frame::new(x, y, 340.0);
    let height = 340.0 + 18.0 * curves.len() as f64;
    svg((WIDTH, height), [title, ""], false, |canvas| {
        background(canvas, height)?;
        frame.draw(canvas, [title, x_title, y_title])?;
        for (i, curve) in curves.iter().enumerate() {
            let points: Vec<_> = curve.points.iter().filter(finite).collect();
            if points.iter().any(|point| point.2 > 0.0) {
                let band: Vec<_> = points
                    .iter()
                    .map(|p| {
                        let (x, above) = frame.place(p.0, p.1 + p.2);
                        (x, x, above, frame.place(p.0, p.1 - p.2).1)
                    })
                    .collect();
                canvas.band(&band, colour(i).mix(0.15))?;
            }
            let line: Vec<_> = points.iter().map(|p| frame.place(p.0, p.1)).collect();
            canvas.line(&line, opaque(colour(i)), 1.5)?;
            let y = 340.0 + 18.0 * i as f64;
            canvas.line(&[(64.0, y), (88.0, y)], opaque(colour(i)), 2.0)?;
            let name = canvas.fitted(&curve.name, SMALL, WIDTH - 110.0)?;
            canvas.text((96.0, y + 4.0), &name, (Anchor::Start, false), (SMALL, INK))?;
        }
        Ok(())
    })
}

/// Draws points on axes with equal scales, with the diagonal of no change. Points that are not finite are omitted.
///
/// # Errors
/// [`PlotError`]; no points are known to cause one.
pub fn scatter(title: &str, [x_title, y_title]: [&str; 2], points: &[Point]) -> Result<String, PlotError> {
    let points: Vec<_> = points.iter().filter(|point| point.x.is_finite() && point.y.is_finite()).collect();
    let axis = Axis::over(points.iter().flat_map(|point| [point.x, point.y]));
    let frame = Frame::new(axis, axis, 420.0);
    svg((WIDTH, 420.0), [title, ""], false, |canvas| {
        background(canvas, 420.0)?;
        frame.draw(canvas, [title, x_title, y_title])?;
        let ends = [frame.place(axis.low, axis.low), frame.place(axis.high, axis.high)];
        canvas.line(&ends, opaque(MUTED), 0.75)?;
        for point in points {
            let (x, y) = frame.place(point.x, point.y);
            // A circle with its name as tooltip.
            let mut circle = String::new();
            let _ = writeln!(
                circle,
                "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"{}\" fill=\"#2563C9\" fill-opacity=\"0.65\">\
                 <title>{}: {:.3} to {:.3}</title></circle>",
                pixels(x),
                pixels(y),
                pixels(3.5),
                escape(&point.name),
                point.x,
                point.y
            );
            canvas.overlay(&circle);
        }
        Ok(())
    })
}

/// Draws horizontal bars from zero, with their intervals. Bars whose value or error is not finite are omitted.
///
/// # Errors
/// [`PlotError`]; no bars are known to cause one.
pub fn bars(title: &str, x_title: &str, bars: &[Bar]) -> Result<String, PlotError> {
    const ROW: f64 = 24.0;
    let bars: Vec<_> = bars.iter().filter(|bar| bar.value.is_finite() && bar.error.is_finite()).collect();
    let axis = Axis::over(bars.iter().flat_map(|b| [b.value - b.error, b.value + b.error]).chain([0.0]));
    let area = Area { left: 150.0, top: 30.0, width: WIDTH - 150.0 - 62.0, height: ROW * bars.len() as f64 };
    let height = area.bottom() + 46.0;
    svg((WIDTH, height), [title, ""], false, |canvas| {
        background(canvas, height)?;
        draw_title(canvas, title)?;
        for tick in axis.ticks() {
            let x = area.x(axis.fraction(tick));
            canvas.vertical(x, [area.top, area.bottom()], GRID)?;
            let place = (x, area.bottom() + 16.0);
            canvas.text(place, &axis.label(tick), (Anchor::Middle, false), (SMALL, MUTED))?;
        }
        let x = |value: f64| area.x(axis.fraction(value));
        for (i, bar) in bars.iter().enumerate() {
            let middle = area.top + ROW * (i as f64 + 0.5);
            let label = canvas.fitted(&bar.label, SMALL, area.left - 22.0)?;
            canvas.text((area.left - 10.0, middle + 4.0), &label, (Anchor::End, false), (SMALL, INK))?;
            let (from, to) = (x(bar.value.min(0.0)), x(bar.value.max(0.0)));
            canvas.fill((from, middle - 8.0), (to, middle + 8.0), opaque(PALETTE[0]))?;
            let (from, to) = (x(bar.value - bar.error), x(bar.value + bar.error));
            canvas.fill((from, middle - 0.75), (to, middle + 0.75), opaque(INK))?;
            let value = format!("{:+.2}", bar.value).replace('-', "\u{2212}");
            let place = (to.max(x(0.0)) + 6.0, middle + 4.0);
            canvas.text(place, &value, (Anchor::Start, false), (SMALL, MUTED))?;
        }
        canvas.vertical(x(0.0), [area.top, area.bottom()], MUTED)?;
        canvas.text((area.x(0.5), height - 10.0), x_title, (Anchor::Middle, false), (SMALL + 1.0, INK))
    })
}

/// Draws a histogram with 8 to 24 intervals of equal width. Values that are not finite are omitted.
///
/// # Errors
/// [`PlotError`]; no values are known to cause one.
pub fn histogram(title: &str, [x_title, y_title]: [&str; 2], values: &[f64]) -> Result<String, PlotError> {
    let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let axis = Axis::over(values.iter().copied());
    // Sturges' rule gives too few intervals to show the shape of skewed scores.
    let bins = ((2.0 * (values.len() as f64).cbrt()).ceil() as usize).clamp(8, 24);
    let width = (axis.high - axis.low) / bins as f64;
    let mut counts = vec![0_usize; bins];
    for value in values {
        counts[(((value - axis.low) / width) as usize).min(bins - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(5);
    let frame = Frame::new(axis, Axis::over([0.0, most as f64].into_iter()), 280.0);
    svg((WIDTH, 280.0), [title, ""], false, |canvas| {
        background(canvas, 280.0)?;
        frame.draw(canvas, [title, x_title, y_title])?;
        for (i, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (x0, y0) = frame.place(axis.low + width * i as f64, count as f64);
            let (x1, y1) = frame.place(axis.low + width * (i + 1) as f64, 0.0);
            canvas.fill((x0 + 0.5, y0), (x1 - 0.5, y1), opaque(PALETTE[0]))?;
        }
        Ok(())
    })
}
