//! Every plot of alphamf: figures of recordings, charts of reports and of the samplers' examples.
//!
//! A [`Figure`] shows a recording before and after denoising, as SVG or PNG; [`curves`], [`scatter`], [`bars`] and
//! [`histogram`] are small charts as SVG. Text is set in DejaVu Sans, which is embedded.
//!
//! ```
//! let curve = alphamf_plot::Curve { name: "HMC".to_owned(), points: vec![(0.0, 1.0, 0.1), (1.0, 0.5, 0.1)] };
//! let svg = alphamf_plot::curves("Convergence", ["iterations", "error"], &[curve])?;
//! assert!(svg.starts_with("<svg"));
//! # Ok::<(), alphamf_plot::PlotError>(())
//! ```
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod axis;
mod canvas;
mod charts;
mod columns;
mod figure;
mod scale;
#[cfg(test)]
mod tests;
mod tracks;

pub use axis::Axis;
pub use canvas::{PlotError, escape};
pub use charts::{Bar, Curve, Point, bars, curves, histogram, scatter};
pub use columns::Columns;
pub use figure::{Caption, Figure, SLOT_SECONDS, Stage};
pub use scale::FrequencyScale;
pub use tracks::{Envelope, Means};

/// Range of levels that a spectrogram shows, in dB below its brightest.
pub const LEVEL_RANGE_DB: f32 = 80.0;

/// The level of a power in dB; that of silence is -200.
#[must_use]
pub fn level(power: f32) -> f32 {
    10.0 * (power + 1e-20).log10()
}

/// Colours from faint to loud, evenly spaced: black, violet, red, orange, pale yellow.
const COLOURS: [[u8; 3]; 7] =
    [[0, 0, 4], [34, 11, 84], [101, 21, 110], [174, 48, 92], [228, 90, 49], [251, 155, 6], [252, 255, 164]];

/// The colour of a shade.
fn colour(shade: u8) -> [u8; 3] {
    let place = f32::from(shade) / 255.0 * (COLOURS.len() - 1) as f32;
    let below = (place as usize).min(COLOURS.len() - 2);
    let fraction = place - below as f32;
    std::array::from_fn(|channel| {
        let [a, b] = [COLOURS[below], COLOURS[below + 1]].map(|colour| f32::from(colour[channel]));
        (a + fraction * (b - a)).round() as u8
    })
}

/// Encodes a PNG file of 8-bit indices into a palette, or of colours.
fn encode_png(
    width: usize,
    height: usize,
    palette: Option<Vec<u8>>,
    data: &[u8],
) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width as u32, height as u32);
    encoder.set_depth(png::BitDepth::Eight);
    match palette {
        Some(palette) => {
            encoder.set_color(png::ColorType::Indexed);
            encoder.set_palette(palette);
        }
        None => encoder.set_color(png::ColorType::Rgb),
    }
    let mut writer = encoder.write_header()?;
    writer.write_image_data(data)?;
    writer.finish()?;
    Ok(bytes)
}
