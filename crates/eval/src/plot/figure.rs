//! Pictures above one another over a common time axis, as SVG or PNG.

use super::columns::encode_shades;
use super::{Axis, Columns, colour, encode_png};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use embedded_graphics::Pixel;
use embedded_graphics::draw_target::DrawTarget;
use embedded_graphics::geometry::{OriginDimensions, Point, Size};
use embedded_graphics::mono_font::MonoTextStyle;
use embedded_graphics::mono_font::ascii::FONT_7X13;
use embedded_graphics::pixelcolor::{Rgb888, RgbColor};
use embedded_graphics::prelude::Drawable;
use embedded_graphics::text::{Alignment, Text};
use std::convert::Infallible;
use std::fmt::Write;

const LEFT: usize = 60;
const WIDTH: usize = 1024;
const RIGHT: usize = 100;
const ABOVE: usize = 28;
const HEIGHT: usize = 256;
const BELOW: usize = 24;
const BOTTOM: usize = 24;
const INK: [u8; 3] = [28, 32, 36];

/// Pictures above one another, with axes and colour scales.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Duration, s.
    pub seconds: f64,
    /// Frequency of the highest bin, Hz.
    pub hertz: f64,
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

/// One picture and its scale.
#[derive(Debug, Clone)]
pub struct Panel {
    /// What it shows, in ASCII.
    pub title: String,
    /// The values.
    pub columns: Columns,
    /// The value that is darkest.
    pub low: f32,
    /// The value that is brightest.
    pub high: f32,
    /// What the ends of the scale are called, low and high, in ASCII.
    pub scale: [String; 2],
}

/// A part of the drawing; lengths in pixels from the upper left corner.
enum Element {
    Text {
        x: usize,
        y: usize,
        alignment: Alignment,
        text: String,
    },
    /// A horizontal or vertical line.
    Line {
        x: usize,
        y: usize,
        width: usize,
        height: usize,
    },
    Image {
        x: usize,
        y: usize,
        width: usize,
        height: usize,
        shades: (usize, usize, Vec<u8>),
    },
}

impl Figure {
    /// The figure as an SVG file.
    #[must_use]
    pub fn svg(&self) -> String {
        let (width, height) = self.size();
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"system-ui,sans-serif\" font-size=\"13\">\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"
        );
        let [r, g, b] = INK;
        for element in self.elements() {
            let _ = match element {
                Element::Text { x, y, alignment, text } => {
                    let anchor = match alignment {
                        Alignment::Left => "start",
                        Alignment::Center => "middle",
                        Alignment::Right => "end",
                    };
                    let text = text.replace('&', "&amp;").replace('<', "&lt;");
                    write!(
                        svg,
                        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"rgb({r},{g},{b})\">{text}</text>"
                    )
                }
                Element::Line { x, y, width, height } => write!(
                    svg,
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"rgb({r},{g},{b})\"/>"
                ),
                Element::Image { x, y, width, height, shades } => {
                    let png = encode_shades(shades.0, shades.1, &shades.2).unwrap_or_default();
                    write!(
                        svg,
                        "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
                         preserveAspectRatio=\"none\" href=\"data:image/png;base64,{}\"/>",
                        STANDARD.encode(png)
                    )
                }
            };
        }
        svg + "</svg>\n"
    }

    /// The figure as a PNG file.
    ///
    /// # Errors
    /// None that is known of: whatever the encoder says.
    pub fn png(&self) -> Result<Vec<u8>, png::EncodingError> {
        let (width, height) = self.size();
        let mut canvas = Canvas { width, pixels: vec![[255; 3]; width * height] };
        for element in self.elements() {
            match element {
                Element::Text { x, y, alignment, text } => {
                    let [r, g, b] = INK;
                    let style = MonoTextStyle::new(&FONT_7X13, Rgb888::new(r, g, b));
                    let place = Point::new(x as i32, y as i32);
                    let Ok(_) = Text::with_alignment(&text, place, style, alignment).draw(&mut canvas);
                }
                Element::Line { x, y, width, height } => canvas.fill(x, y, width, height, |_, _| INK),
                Element::Image { x, y, width, height, shades: (columns, rows, shades) } => {
                    let shade =
                        |i: usize, j: usize| shades[j * rows / height * columns + i * columns / width];
                    canvas.fill(x, y, width, height, |i, j| colour(shade(i, j)));
                }
            }
        }
        encode_png(width, height, None, canvas.pixels.as_flattened())
    }

    /// Width and height, pixels.
    fn size(&self) -> (usize, usize) {
        (LEFT + WIDTH + RIGHT, self.panels.len() * (ABOVE + HEIGHT + BELOW) + BOTTOM)
    }

    fn elements(&self) -> Vec<Element> {
        let mut elements = Vec::new();
        let mut text = |x, y, alignment, text: String| elements.push(Element::Text { x, y, alignment, text });
        let times = Axis::over([0.0, self.seconds].into_iter());
        let frequencies = Axis::over([0.0, self.hertz / 1000.0].into_iter());
        let mut others = Vec::new();
        for (index, panel) in self.panels.iter().enumerate() {
            let top = index * (ABOVE + HEIGHT + BELOW) + ABOVE;
            let bottom = top + HEIGHT;
            text(LEFT, top - 8, Alignment::Left, panel.title.clone());
            text(LEFT - 8, top - 8, Alignment::Right, "kHz".to_owned());
            for time in times.ticks().filter(|time| *time <= self.seconds) {
                let x = LEFT + (time / self.seconds * WIDTH as f64) as usize;
                text(x, bottom + 18, Alignment::Center, times.show(time));
                others.push(Element::Line { x, y: bottom, width: 1, height: 5 });
            }
            for frequency in frequencies.ticks().filter(|f| *f <= self.hertz / 1000.0) {
                let y = bottom - (1000.0 * frequency / self.hertz * HEIGHT as f64) as usize;
                text(LEFT - 8, y + 4, Alignment::Right, frequencies.show(frequency));
                others.push(Element::Line { x: LEFT - 5, y, width: 5, height: 1 });
            }
            let shades = panel.columns.shades(panel.low, panel.high);
            if !shades.2.is_empty() {
                others.push(Element::Image { x: LEFT, y: top, width: WIDTH, height: HEIGHT, shades });
            }
            let bar = (1, 256, (0..=255).rev().collect());
            let x = LEFT + WIDTH + 12;
            others.push(Element::Image { x, y: top, width: 12, height: HEIGHT, shades: bar });
            let [low, high] = panel.scale.clone();
            text(x + 18, bottom, Alignment::Left, low);
            text(x + 18, top + 12, Alignment::Left, high);
        }
        let below = self.size().1 - 8;
        text(LEFT + WIDTH / 2, below, Alignment::Center, "time in s".to_owned());
        elements.extend(others);
        elements
    }
}

struct Canvas {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

impl Canvas {
    fn fill(
        &mut self,
        x: usize,
        y: usize,
        width: usize,
        height: usize,
        colour: impl Fn(usize, usize) -> [u8; 3],
    ) {
        for j in 0..height {
            for i in 0..width {
                if let Some(pixel) = self.pixels.get_mut((y + j) * self.width + x + i) {
                    *pixel = colour(i, j);
                }
            }
        }
    }
}

impl OriginDimensions for Canvas {
    fn size(&self) -> Size {
        Size::new(self.width as u32, (self.pixels.len() / self.width) as u32)
    }
}

impl DrawTarget for Canvas {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Pixel<Rgb888>>>(&mut self, pixels: I) -> Result<(), Infallible> {
        for Pixel(Point { x, y }, colour) in pixels {
            if let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y))
                && x < self.width
                && let Some(pixel) = self.pixels.get_mut(y * self.width + x)
            {
                *pixel = [colour.r(), colour.g(), colour.b()];
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_hold_their_pictures_and_labels() {
        let mut columns = Columns::new(4);
        columns.push([0.0, 0.0, 0.0, 1.0]);
        let panel = |title: &str| Panel {
            title: title.to_owned(),
            columns: columns.clone(),
            low: 0.0,
            high: 1.0,
            scale: ["none".to_owned(), "all".to_owned()],
        };
        let figure = Figure { seconds: 2.5, hertz: 8_000.0, panels: vec![panel("one & two"), panel("b")] };
        let svg = figure.svg();
        for part in ["one &amp; two", ">2.5<", ">8<", ">none<", "time in s"] {
            assert!(svg.contains(part), "{part}");
        }
        assert_eq!(svg.matches("<image").count(), 4);
        let png = figure.png().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(&png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((frame.width, frame.height), (1184, 640));
        let pixel = |x: usize, y: usize| &pixels[3 * (y * 1184 + x)..][..3];
        // The highest of four bins is bright in the upper quarter of the picture alone.
        assert_eq!(pixel(LEFT + 500, ABOVE + HEIGHT / 4 - 1), colour(255));
        assert_eq!(pixel(LEFT + 500, ABOVE + HEIGHT / 4), colour(0));
    }
}
