//! Small charts as SVG, which take their colours from the page around them.

use std::fmt::Write;

use super::escape;
use crate::plot::Axis;

/// Style of the charts; the page, or [`standalone`], defines the colours.
pub(super) const STYLE: &str = "\
.chart{font:12px system-ui,sans-serif;max-width:100%;height:auto}\
.chart text{fill:var(--muted)}.chart .label{fill:var(--ink)}\
.chart .grid{stroke:var(--line)}.chart .axis{stroke:var(--muted)}\
.chart .reference{stroke:var(--muted);stroke-dasharray:4 4}\
.chart .bar{fill:var(--c0)}.chart .error{stroke:var(--ink);stroke-width:1.5}\
.chart .dot{fill:var(--c0);fill-opacity:.65}.chart .dot:hover{fill:var(--c1);fill-opacity:1}\
.chart .curve{fill:none;stroke-width:2}.chart .band{fill-opacity:.15;stroke:none}";

/// Colours of a light page.
pub(super) const LIGHT: &str = "--page:#fbfbfa;--card:#fff;--ink:#1c2024;--muted:#60646c;--line:#e4e4e7;\
--c0:#2563c9;--c1:#c2570c;--c2:#15803d;--c3:#9333ea;--good:#15803d;--bad:#b91c1c";

/// Colours of a dark page.
pub(super) const DARK: &str = "--page:#121417;--card:#1a1d21;--ink:#edeef0;--muted:#a3a8b0;--line:#2e3238;\
--c0:#6ea8fe;--c1:#f59e5b;--c2:#4ade80;--c3:#c490fd;--good:#4ade80;--bad:#f87171";

const COLOURS: usize = 4;
const WIDTH: f64 = 560.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 44.0;

/// One line of [`curves`] with its standard errors.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Abscissa, mean and standard error, in the order of the abscissa.
    pub points: Vec<(f64, f64, f64)>,
}

/// A horizontal bar with its error bar.
pub(super) struct Bar {
    pub label: String,
    pub value: f64,
    pub error: f64,
}

/// A named point.
pub(super) struct Point {
    pub name: String,
    pub x: f64,
    pub y: f64,
}

/// Lines of a mean over an abscissa with bands of one standard error, as a whole SVG file.
///
/// Shows the convergence of samplers: scores against iterations or seconds. Points that are not
/// finite are left out. At most four curves have colours of their own.
#[must_use]
pub fn curves(title: &str, x_title: &str, y_title: &str, curves: &[Curve]) -> String {
    standalone(title, &curve_chart(title, x_title, y_title, curves))
}

/// [`curves`] for a page.
pub(super) fn curve_chart(title: &str, x_title: &str, y_title: &str, curves: &[Curve]) -> String {
    let finite = |point: &&(f64, f64, f64)| point.0.is_finite() && point.1.is_finite() && point.2.is_finite();
    let points = || curves.iter().flat_map(|curve| &curve.points).filter(finite);
    let x = Axis::over(points().map(|p| p.0));
    let bands = || points().flat_map(|p| [p.1 - p.2, p.1 + p.2]);
    let (low, high) = bands().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), y| (a.min(y), b.max(y)));
    // Room for the legend below the curves.
    let room = (high > low).then_some(low - 0.08 * curves.len() as f64 * (high - low));
    let y = Axis::over(bands().chain(room));
    let plot = Plot::new(x, y, 340.0);
    let mut body = plot.frame(x_title, y_title);
    for (i, curve) in curves.iter().enumerate() {
        let colour = i % COLOURS;
        let points: Vec<_> = curve.points.iter().filter(finite).collect();
        let place = |x: f64, y: f64| format!("{:.1},{:.1}", plot.x(x), plot.y(y));
        let line: Vec<String> = points.iter().map(|p| place(p.0, p.1)).collect();
        let upper = points.iter().map(|p| place(p.0, p.1 + p.2));
        let lower = points.iter().rev().map(|p| place(p.0, p.1 - p.2));
        let band: Vec<String> = upper.chain(lower).collect();
        let _ = write!(
            body,
            "<polygon class=band style=\"fill:var(--c{colour})\" points=\"{}\"/>\
             <polyline class=curve style=\"stroke:var(--c{colour})\" points=\"{}\"/>",
            band.join(" "),
            line.join(" ")
        );
        let height = plot.height - BOTTOM - 12.0 - 18.0 * (curves.len() - 1 - i) as f64;
        let _ = write!(
            body,
            "<line class=curve style=\"stroke:var(--c{colour})\" x1={x1} x2={x2} y1={y} y2={y} />\
             <text class=label x={x3} y={y4}>{}</text>",
            escape(&curve.name),
            x1 = WIDTH - RIGHT - 110.0,
            x2 = WIDTH - RIGHT - 86.0,
            x3 = WIDTH - RIGHT - 80.0,
            y = height,
            y4 = height + 4.0,
        );
    }
    plot.close(&body, title)
}

/// A chart as a file of its own, in the colours that the viewer prefers.
fn standalone(title: &str, chart: &str) -> String {
    let quoted = quote_attributes(chart);
    let head = format!(
        "<title>{}</title><style>:root{{{LIGHT}}}@media(prefers-color-scheme:dark){{:root{{{DARK}}}}}\
         {STYLE}:root{{background:var(--card)}}</style>",
        escape(title)
    );
    let start = quoted.find('>').map_or(0, |end| end + 1);
    format!(
        "{}{head}{}\n",
        &quoted[..start].replace("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" "),
        &quoted[start..]
    )
}

/// XML wants every attribute quoted; HTML does not, and the charts above are written for it.
fn quote_attributes(html: &str) -> String {
    let mut xml = String::with_capacity(html.len() + html.len() / 4);
    let (mut in_tag, mut in_quotes, mut bare) = (false, false, false);
    for c in html.chars() {
        if bare && (c == ' ' || c == '>') {
            xml.push('"');
            bare = false;
        }
        let start_of_value = in_tag && !in_quotes && !bare && xml.ends_with('=');
        match c {
            '"' if in_tag => in_quotes = !in_quotes,
            '<' => in_tag = true,
            '>' if !in_quotes => in_tag = false,
            _ if start_of_value => {
                xml.push('"');
                bare = true;
            }
            _ => {}
        }
        xml.push(c);
    }
    xml
}

/// Horizontal bars from zero, with error bars of one standard error.
pub(super) fn bars(title: &str, x_title: &str, bars: &[Bar]) -> String {
    const ROW: f64 = 24.0;
    let left = 130.0;
    let height = TOP + BOTTOM + ROW * bars.len() as f64;
    let axis = Axis::over(bars.iter().flat_map(|b| [b.value - b.error, b.value + b.error]).chain([0.0]));
    let x = |value: f64| left + (WIDTH - left - RIGHT - 40.0) * axis.share(value);
    let mut body = String::new();
    let bottom = height - BOTTOM;
    for tick in axis.ticks() {
        let _ = write!(
            body,
            "<line class=grid x1={0:.1} x2={0:.1} y1={TOP} y2={bottom} />\
             <text x={0:.1} y={1} text-anchor=middle>{2}</text>",
            x(tick),
            bottom + 16.0,
            axis.show(tick)
        );
    }
    for (i, bar) in bars.iter().enumerate() {
        let middle = TOP + ROW * (i as f64 + 0.5);
        let (from, to) = (x(bar.value.min(0.0)), x(bar.value.max(0.0)));
        let _ = write!(
            body,
            "<text class=label x={} y={:.1} text-anchor=end>{}</text>\
             <rect class=bar x={from:.1} y={:.1} width={:.1} height={} rx=2 />\
             <line class=error x1={:.1} x2={:.1} y1={middle:.1} y2={middle:.1} />\
             <text x={:.1} y={:.1}>{:+.2}</text>",
            left - 8.0,
            middle + 4.0,
            escape(&bar.label),
            middle - 8.0,
            to - from,
            16,
            x(bar.value - bar.error),
            x(bar.value + bar.error),
            x((bar.value + bar.error).max(0.0)) + 6.0,
            middle + 4.0,
            bar.value,
        );
    }
    let _ = write!(
        body,
        "<line class=axis x1={0:.1} x2={0:.1} y1={TOP} y2={bottom} />\
         <text class=label x={1} y={2} text-anchor=middle>{3}</text>",
        x(0.0),
        (left + WIDTH - RIGHT - 40.0) / 2.0,
        height - 8.0,
        escape(x_title)
    );
    svg(title, height, &body)
}

/// Points over axes of one scale, with the line on which nothing changes.
pub(super) fn scatter(title: &str, x_title: &str, y_title: &str, points: &[Point]) -> String {
    let axis = || Axis::over(points.iter().flat_map(|point| [point.x, point.y]));
    let plot = Plot::new(axis(), axis(), 400.0);
    let mut body = plot.frame(x_title, y_title);
    let (low, high) = (plot.x.low, plot.x.high);
    let _ = write!(
        body,
        "<line class=reference x1={:.1} y1={:.1} x2={:.1} y2={:.1} />",
        plot.x(low),
        plot.y(low),
        plot.x(high),
        plot.y(high)
    );
    for point in points {
        let _ = write!(
            body,
            "<circle class=dot cx={:.1} cy={:.1} r=4><title>{}: {:.3} to {:.3}</title></circle>",
            plot.x(point.x),
            plot.y(point.y),
            escape(&point.name),
            point.x,
            point.y
        );
    }
    plot.close(&body, title)
}

/// How often values fall between the ticks of a fine axis.
pub(super) fn histogram(title: &str, x_title: &str, values: &[f64]) -> String {
    const LEAST: usize = 8;
    const MOST: usize = 24;
    let axis = Axis::over(values.iter().copied());
    // Sturges' rule asks for fewer than shows the shape of skewed scores.
    let bins = (2.0 * (values.len() as f64).cbrt()).ceil() as usize;
    let bins = bins.clamp(LEAST, MOST);
    let width = (axis.high - axis.low) / bins as f64;
    let mut counts = vec![0_usize; bins];
    for value in values {
        counts[(((value - axis.low) / width) as usize).min(bins - 1)] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let plot = Plot::new(axis, Axis::over([0.0, most as f64].into_iter()), 260.0);
    let mut body = plot.frame(x_title, "files");
    for (i, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (from, to) = (plot.x.low + width * i as f64, plot.x.low + width * (i + 1) as f64);
        let _ = write!(
            body,
            "<rect class=bar x={:.1} y={:.1} width={:.1} height={:.1}><title>{from:.2} to {to:.2}: {count} \
             files</title></rect>",
            plot.x(from) + 0.5,
            plot.y(count as f64),
            plot.x(to) - plot.x(from) - 1.0,
            plot.y(0.0) - plot.y(count as f64)
        );
    }
    plot.close(&body, title)
}

fn svg(title: &str, height: f64, body: &str) -> String {
    format!(
        "<svg class=chart viewBox=\"0 0 {WIDTH} {height}\" width={WIDTH} height={height} role=img \
         aria-label=\"{}\">{body}</svg>",
        escape(title)
    )
}

/// A rectangle between two axes.
struct Plot {
    x: Axis,
    y: Axis,
    height: f64,
}

impl Plot {
    fn new(x: Axis, y: Axis, height: f64) -> Self {
        Self { x, y, height }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * self.x.share(value)
    }

    fn y(&self, value: f64) -> f64 {
        self.height - BOTTOM - (self.height - BOTTOM - TOP) * self.y.share(value)
    }

    fn frame(&self, x_title: &str, y_title: &str) -> String {
        let mut body = String::new();
        let (right, bottom) = (WIDTH - RIGHT, self.height - BOTTOM);
        for tick in self.x.ticks() {
            let _ = write!(
                body,
                "<line class=grid x1={0:.1} x2={0:.1} y1={TOP} y2={bottom} />\
                 <text x={0:.1} y={1} text-anchor=middle>{2}</text>",
                self.x(tick),
                bottom + 16.0,
                self.x.show(tick)
            );
        }
        for tick in self.y.ticks() {
            let _ = write!(
                body,
                "<line class=grid x1={LEFT} x2={right} y1={0:.1} y2={0:.1} />\
                 <text x={1} y={2:.1} text-anchor=end>{3}</text>",
                self.y(tick),
                LEFT - 8.0,
                self.y(tick) + 4.0,
                self.y.show(tick)
            );
        }
        let middle = TOP + (bottom - TOP) / 2.0;
        let _ = write!(
            body,
            "<text class=label x={} y={} text-anchor=middle>{}</text>\
             <text class=label x=14 y={middle} text-anchor=middle transform=\"rotate(-90 14 {middle})\">{}</text>",
            LEFT + (right - LEFT) / 2.0,
            self.height - 8.0,
            escape(x_title),
            escape(y_title)
        );
        body
    }

    fn close(&self, body: &str, title: &str) -> String {
        svg(title, self.height, body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_curves_is_well_formed() {
        let curve = |name: &str| Curve {
            name: name.into(),
            points: vec![(0.0, 1.0, 0.1), (f64::NAN, 0.0, 0.0), (10.0, 5.0, 0.2)],
        };
        let text = curves("SDR & time", "time in s", "SDR in dB", &[curve("A<B"), curve("C")]);
        assert!(text.starts_with(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 560 340\""
        ));
        assert!(text.contains("A&lt;B") && text.contains("SDR &amp; time") && !text.contains("NaN"));
        // Every tag that is opened is closed, innermost first, and every attribute is quoted.
        let mut open = Vec::new();
        for tag in text.split('<').skip(1) {
            let inside = tag.split('>').next().unwrap();
            let unquoted: String = inside.split('"').step_by(2).collect();
            assert!(
                unquoted.split('=').skip(1).all(|rest| rest.is_empty() || rest.starts_with([' ', '/'])),
                "{inside}"
            );
            if let Some(name) = inside.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name.to_owned()));
            } else if !inside.ends_with('/') {
                open.push(inside.split(' ').next().unwrap().to_owned());
            }
        }
        assert_eq!(open, Vec::<String>::new());
    }
}
