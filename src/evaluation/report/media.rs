//! Pictures and sound for a page, as data URIs.

use std::io::Cursor;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::audio::{DEFAULT_WINDOW_SECONDS, Signal, Stft};

/// Range of levels that a spectrogram shows, in dB below the loudest.
const RANGE: f32 = 70.0;
/// Most columns of a picture; longer recordings keep the louder of neighbouring frames.
const COLUMNS: usize = 1000;

/// Colours from silence to the loudest, evenly spaced: black, violet, red, orange, pale yellow.
const COLOURS: [[u8; 3]; 7] =
    [[0, 0, 4], [34, 11, 84], [101, 21, 110], [174, 48, 92], [228, 90, 49], [251, 155, 6], [252, 255, 164]];

/// The level in dB that is brightest in the pictures of one recording: that of its loudest bin.
pub(super) fn loudest(signal: &Signal) -> f32 {
    levels(signal).1.into_iter().fold(f32::NEG_INFINITY, f32::max)
}

/// Spectrogram of the first channel as a PNG, levels in dB relative to `loudest`; low frequencies
/// at the bottom, one column per frame, the frames up to half the sample rate.
///
/// Empty if the signal cannot be analysed.
pub(super) fn spectrogram(signal: &Signal, loudest: f32) -> String {
    let (bins, levels) = levels(signal);
    if bins == 0 {
        return String::new();
    }
    let frames = levels.len() / bins;
    let merged = frames.div_ceil(COLUMNS);
    let width = frames.div_ceil(merged);
    let mut pixels = vec![0_u8; width * bins];
    for (frame, column) in levels.chunks_exact(bins).enumerate() {
        for (bin, level) in column.iter().enumerate() {
            let shade = (1.0 + (level - loudest) / RANGE).clamp(0.0, 1.0) * 255.0;
            let pixel = &mut pixels[(bins - 1 - bin) * width + frame / merged];
            *pixel = (*pixel).max(shade as u8);
        }
    }
    encode_png(width, bins, &pixels).map(|png| uri("image/png", &png)).unwrap_or_default()
}

/// The bins and, frame by frame, their levels in dB.
fn levels(signal: &Signal) -> (usize, Vec<f32>) {
    let Ok(stft) = Stft::new(signal.sample_rate(), DEFAULT_WINDOW_SECONDS) else {
        return (0, Vec::new());
    };
    let spectrogram = stft.analyse(&signal.channels()[0]);
    let level = |x: &num_complex::Complex<f32>| 10.0 * (x.norm_sqr() + 1e-20).log10();
    (spectrogram.bins(), spectrogram.as_slice().iter().map(level).collect())
}

fn encode_png(width: usize, height: usize, pixels: &[u8]) -> Option<Vec<u8>> {
    let palette: Vec<u8> = (0..=255_u8)
        .flat_map(|shade| {
            let place = f32::from(shade) / 255.0 * (COLOURS.len() - 1) as f32;
            let below = (place as usize).min(COLOURS.len() - 2);
            let share = place - below as f32;
            std::array::from_fn::<u8, 3, _>(|channel| {
                let [a, b] = [COLOURS[below], COLOURS[below + 1]].map(|colour| f32::from(colour[channel]));
                (a + share * (b - a)).round() as u8
            })
        })
        .collect();
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(pixels).ok()?;
    writer.finish().ok()?;
    Some(bytes)
}

/// The first channel as a 16-bit WAV file, which every browser plays.
pub(super) fn wav(signal: &Signal) -> String {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: signal.sample_rate(),
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut bytes = Cursor::new(Vec::new());
    let written = hound::WavWriter::new(&mut bytes, spec).and_then(|mut writer| {
        for sample in &signal.channels()[0] {
            writer.write_sample((sample * 32_767.0).round().clamp(-32_767.0, 32_767.0) as i16)?;
        }
        writer.finalize()
    });
    written.map(|()| uri("audio/wav", &bytes.into_inner())).unwrap_or_default()
}

fn uri(kind: &str, bytes: &[u8]) -> String {
    format!("data:{kind};base64,{}", STANDARD.encode(bytes))
}
