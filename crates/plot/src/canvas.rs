//! Drawing surface of all figures: an SVG document or a bitmap, with common coordinates and font.

use super::columns::encode_shades;
use super::{colour, encode_png};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plotters::backend::{BitMapBackend, DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color, FontStyle, FontTransform, IntoFont, RGBAColor, RGBColor, ShapeStyle, TextStyle, register_font,
};
use std::error::Error;
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::sync::OnceLock;

/// DejaVu Sans, reduced to Latin, Greek and Cyrillic; see `font/LICENSE`.
pub(super) const FONT: &[u8] = include_bytes!("font/DejaVuSans-subset.ttf");
const FAMILY: &str = "DejaVu Sans";
/// Characters of the font.
pub(super) const CHARACTERS: [RangeInclusive<char>; 18] = [
    ' '..='~',
    '\u{a0}'..='\u{17f}',
    '\u{386}'..='\u{38a}',
    '\u{38c}'..='\u{38c}',
    '\u{38e}'..='\u{3a1}',
    '\u{3a3}'..='\u{3ce}',
    '\u{400}'..='\u{45f}',
    '\u{490}'..='\u{491}',
    '\u{2010}'..='\u{2015}',
    '\u{2018}'..='\u{201e}',
    '\u{2020}'..='\u{2022}',
    '\u{2026}'..='\u{2026}',
    '\u{2032}'..='\u{2033}',
    '\u{20ac}'..='\u{20ac}',
    '\u{2192}'..='\u{2192}',
    '\u{2212}'..='\u{2212}',
    '\u{221e}'..='\u{221e}',
    '\u{2264}'..='\u{2265}',
];
/// Combining accents, which follow their letter, as in file names of macOS.
const ACCENTS: RangeInclusive<char> = '\u{300}'..='\u{36f}';
/// Ascent plus descent of the font, relative to its size.
const FONT_HEIGHT: f64 = 1.164;
/// Pixels per unit of the coordinates.
const SCALE: f64 = 2.0;

/// Text and axes.
pub(super) const INK: RGBColor = RGBColor(28, 32, 36);
/// Secondary text.
pub(super) const MUTED: RGBColor = RGBColor(96, 100, 108);
/// Lines of a grid.
pub(super) const GRID: RGBColor = RGBColor(228, 228, 231);
/// Colours of curves; a page may replace them by its own.
pub(super) const PALETTE: [RGBColor; 6] = [
    RGBColor(37, 99, 201),
    RGBColor(194, 87, 12),
    RGBColor(21, 128, 61),
    RGBColor(147, 51, 234),
    RGBColor(190, 24, 93),
    RGBColor(14, 116, 144),
];

/// A figure could not be drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot draw the figure: {0}")]
pub struct PlotError(String);

impl PlotError {
    /// Wraps an error of a backend or of the PNG encoder.
    fn of(error: impl Error) -> Self {
        Self(error.to_string())
    }
}

/// A rectangle, in units from the upper left corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Area {
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// The abscissa at a fraction of the width.
    pub fn x(&self, fraction: f64) -> f64 {
        self.left + fraction * self.width
    }

    /// The ordinate at a fraction of the height, from the bottom.
    pub fn y(&self, fraction: f64) -> f64 {
        self.bottom() - fraction * self.height
    }
}

/// A picture of shades in an area.
struct Image {
    area: Area,
    width: usize,
    height: usize,
    shades: Vec<u8>,
}

/// Where text is anchored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing on one of the backends.
pub(super) struct Canvas<B> {
    backend: B,
    is_bitmap: bool,
    images: Vec<Image>,
    /// SVG elements that plotters cannot draw; unused for bitmaps.
    overlay: String,
}

impl<B: DrawingBackend> Canvas<B> {
    fn new(backend: B, is_bitmap: bool) -> Result<Self, PlotError> {
        static REGISTERED: OnceLock<bool> = OnceLock::new();
        if *REGISTERED.get_or_init(|| register_font(FAMILY, FontStyle::Normal, FONT).is_ok()) {
            Ok(Self { backend, is_bitmap, images: Vec::new(), overlay: String::new() })
        } else {
            Err(PlotError("the built-in font is damaged".to_owned()))
        }
    }

    fn pixel((x, y): (f64, f64)) -> (i32, i32) {
        ((SCALE * x).round() as i32, (SCALE * y).round() as i32)
    }

    /// Fills a rectangle given by two corners, at least one pixel wide and high.
    pub fn fill(&mut self, from: (f64, f64), to: (f64, f64), colour: RGBAColor) -> Result<(), PlotError> {
        let ((x0, y0), (x1, y1)) = (Self::pixel(from), Self::pixel(to));
        let (x1, y1) = (x1.max(x0 + 1), y1.max(y0 + 1));
        let style = ShapeStyle { color: colour, filled: true, stroke_width: 0 };
        self.backend.draw_rect((x0, y0), (x1, y1), &style, true).map_err(PlotError::of)
    }

    /// Draws a thin vertical line.
    pub fn vertical(&mut self, x: f64, [top, bottom]: [f64; 2], colour: RGBColor) -> Result<(), PlotError> {
        self.fill((x - 0.5, top), (x + 0.5, bottom), opaque(colour))
    }

    /// Draws a thin horizontal line.
    pub fn horizontal(&mut self, [left, right]: [f64; 2], y: f64, colour: RGBColor) -> Result<(), PlotError> {
        self.fill((left, y - 0.5), (right, y + 0.5), opaque(colour))
    }

    /// Draws a line of a given width through points.
    pub fn line(&mut self, points: &[(f64, f64)], colour: RGBAColor, width: f64) -> Result<(), PlotError> {
        let stroke_width = (SCALE * width).round().max(1.0) as u32;
        let style = ShapeStyle { color: colour, filled: false, stroke_width };
        let points: Vec<_> = points.iter().copied().map(Self::pixel).collect();
        if !self.is_bitmap {
            return self.backend.draw_path(points, &style).map_err(PlotError::of);
        }
        // For wide lines in bitmaps, plotters extends the inner sides of narrow angles far beyond the points.
        let mut parts = points.windows(2);
        parts.try_for_each(|part| self.backend.draw_path(part.iter().copied(), &style)).map_err(PlotError::of)
    }

    /// Fills the area between two lines: start, end, upper and lower ordinate of each column.
    pub fn band(&mut self, columns: &[(f64, f64, f64, f64)], colour: RGBAColor) -> Result<(), PlotError> {
        if self.is_bitmap {
            return columns
                .iter()
                .try_for_each(|&(start, end, above, below)| self.fill((start, above), (end, below), colour));
        }
        let style = ShapeStyle { color: colour, filled: true, stroke_width: 0 };
        let middle = |(start, end): (f64, f64)| 0.5 * (start + end);
        // At least a pixel high, so that silence is a line.
        let upper = columns.iter().map(|&(start, end, above, _)| (middle((start, end)), above));
        let lower = columns
            .iter()
            .rev()
            .map(|&(start, end, above, below)| (middle((start, end)), below.max(above + 0.5)));
        let points: Vec<_> = upper.chain(lower).map(Self::pixel).collect();
        self.backend.fill_polygon(points, &style).map_err(PlotError::of)
    }

    /// Draws text with the start, middle or end of its baseline at a point; upwards if rotated.
    pub fn text(
        &mut self,
        (x, y): (f64, f64),
        text: &str,
        (anchor, rotated): (Anchor, bool),
        (size, colour): (f64, RGBColor),
    ) -> Result<(), PlotError> {
        let (font, above) = self.font(size);
        let horizontal = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let style = TextStyle::from((FAMILY, font).into_font()).color(&colour);
        let style = style.pos(Pos::new(horizontal, VPos::Top));
        let (place, style) = if rotated {
            ((x - above, y), style.transform(FontTransform::Rotate270))
        } else {
            ((x, y - above), style)
        };
        self.backend.draw_text(text, &style, Self::pixel(place)).map_err(PlotError::of)
    }

    /// Returns the font size for plotters and the offset above the baseline, for a text size.
    fn font(&self, size: f64) -> (f64, f64) {
        if self.is_bitmap {
            (SCALE * size * FONT_HEIGHT, 0.5 * size * FONT_HEIGHT)
        } else {
            (SCALE * size * 1.24, 0.76 * size)
        }
    }

    /// The width of a text.
    pub fn width(&self, text: &str, size: f64) -> Result<f64, PlotError> {
        let style = TextStyle::from((FAMILY, SCALE * size * FONT_HEIGHT).into_font());
        let (width, _) = self.backend.estimate_text_size(text, &style).map_err(PlotError::of)?;
        Ok(f64::from(width) / SCALE)
    }

    /// Shortens a text to a width; the middle is elided if necessary.
    pub fn fitted(&self, text: &str, size: f64, width: f64) -> Result<String, PlotError> {
        let letters = text.chars().map(|c| if c.is_control() { ' ' } else { c });
        let letters: Vec<char> = if self.is_bitmap { in_font(letters).collect() } else { letters.collect() };
        let mut shown: String = letters.iter().collect();
        let mut kept = letters.len();
        while kept > 2 && self.width(&shown, size)? > width {
            kept -= 1.max(kept / 16);
            let (head, tail) = (&letters[..kept.div_ceil(2)], &letters[letters.len() - kept / 2..]);
            shown = head.iter().chain(&['\u{2026}']).chain(tail).collect();
        }
        Ok(shown)
    }

    /// Draws a picture of shades in an area.
    pub fn image(&mut self, area: Area, (width, height): (usize, usize), shades: Vec<u8>) {
        self.images.push(Image { area, width, height, shades });
    }

    /// Adds elements in SVG, in pixels; see [`pixels`].
    pub fn overlay(&mut self, svg: &str) {
        self.overlay += svg;
    }
}

/// Replaces characters missing in the font by question marks, for bitmaps, which have no other font. Combining accents
/// are removed.
pub(super) fn in_font(text: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    let has = |c: char| CHARACTERS.iter().any(|range| range.contains(&c));
    text.filter(|c| !ACCENTS.contains(c)).map(move |c| if has(c) { c } else { '?' })
}

/// A length in pixels.
pub(super) fn pixels(units: f64) -> f64 {
    SCALE * units
}

/// Width and height in whole pixels.
fn size_in_pixels((width, height): (f64, f64)) -> (u32, u32) {
    ((SCALE * width).round() as u32, (SCALE * height).round() as u32)
}

/// Draws an SVG document of this size. The font is embedded if `with_font`, otherwise referenced by name.
pub(super) fn svg(
    size: (f64, f64),
    [title, description]: [&str; 2],
    with_font: bool,
    draw: impl FnOnce(&mut Canvas<SVGBackend>) -> Result<(), PlotError>,
) -> Result<String, PlotError> {
    let (width, height) = size_in_pixels(size);
    let mut svg = String::new();
    let (images, overlay) = {
        let mut canvas = Canvas::new(SVGBackend::with_string(&mut svg, (width, height)), false)?;
        draw(&mut canvas)?;
        canvas.backend.present().map_err(PlotError::of)?;
        (canvas.images, canvas.overlay)
    };
    let start = svg.find('>').map_or(0, |end| end + 1);
    let body = svg[start..].trim_end().trim_end_matches("</svg>");
    let mut document = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" width=\"{}\" height=\"{}\" viewBox=\"0 0 \
         {width} {height}\">\n<title>{}</title>\n<desc>{}</desc>\n",
        size.0,
        size.1,
        escape(title),
        escape(description)
    );
    let face = if with_font {
        let font = STANDARD.encode(FONT);
        format!("@font-face{{font-family:\"{FAMILY}\";src:url(data:font/ttf;base64,{font})}}")
    } else {
        String::new()
    };
    let _ = writeln!(document, "<style>{face}text{{font-family:\"{FAMILY}\",Verdana,sans-serif}}</style>");
    document += body;
    for Image { area, width, height, shades } in images {
        let png = encode_shades(width, height, &shades).unwrap_or_default();
        let [x, y, w, h] = [area.left, area.top, area.width, area.height].map(pixels);
        let _ = writeln!(
            document,
            "<image x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" preserveAspectRatio=\"none\" \
             href=\"data:image/png;base64,{}\"/>",
            STANDARD.encode(png)
        );
    }
    Ok(document + &overlay + "</svg>\n")
}

/// Draws a PNG file of this size, two pixels per unit, on white.
pub(super) fn bitmap(
    size: (f64, f64),
    draw: impl FnOnce(&mut Canvas<BitMapBackend>) -> Result<(), PlotError>,
) -> Result<Vec<u8>, PlotError> {
    let (width, height) = size_in_pixels(size);
    let mut pixels = vec![255; 3 * width as usize * height as usize];
    let images = {
        let mut canvas = Canvas::new(BitMapBackend::with_buffer(&mut pixels, (width, height)), true)?;
        draw(&mut canvas)?;
        canvas.backend.present().map_err(PlotError::of)?;
        canvas.images
    };
    for Image { area, width: columns, height: rows, shades } in images {
        let [left, top, w, h] =
            [area.left, area.top, area.width, area.height].map(|units| (SCALE * units).round() as usize);
        for y in 0..h {
            let row = &shades[(y * rows / h) * columns..][..columns];
            let start = 3 * ((top + y) * width as usize + left);
            for (x, pixel) in pixels[start..start + 3 * w].chunks_exact_mut(3).enumerate() {
                pixel.copy_from_slice(&colour(row[x * columns / w]));
            }
        }
    }
    encode_png(width as usize, height as usize, None, &pixels).map_err(PlotError::of)
}

/// Escapes text for XML and HTML; control characters become spaces.
#[must_use]
pub fn escape(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// An opaque colour.
pub(super) fn opaque(colour: RGBColor) -> RGBAColor {
    colour.mix(1.0)
}
