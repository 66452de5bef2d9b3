//! Pictures and sound for a page, as data URIs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::plot::{Columns, FrequencyScale, LEVEL_RANGE_DB, level};
use alphamf::signal::{SampleFormat, Signal};
use alphamf::transform::{DEFAULT_WINDOW_SECONDS, Stft};
use alphamf_files::Container;

/// The level of the loudest bin in dB, the brightest in the pictures of a recording.
pub(super) fn loudest(signal: &Signal) -> f32 {
    powers(signal).map_or(f32::NEG_INFINITY, |powers| level(powers.largest()))
}

/// Spectrogram of the first channel as a PNG, levels in dB relative to `loudest`; low frequencies
/// at the bottom, time from left to right.
///
/// Empty if the signal cannot be analysed.
pub(super) fn spectrogram(signal: &Signal, loudest: f32) -> String {
    let picture = powers(signal).and_then(|powers| powers.png(480, level, loudest - LEVEL_RANGE_DB, loudest));
    picture.map(|png| uri("image/png", &png)).unwrap_or_default()
}

/// The powers of all bins.
fn powers(signal: &Signal) -> Option<Columns> {
    let stft = Stft::new(signal.sample_rate(), DEFAULT_WINDOW_SECONDS).ok()?;
    let spectrogram = stft.analyse(&signal.channels()[0]);
    let highest = f64::from(signal.sample_rate()) / 2.0;
    let mut columns = Columns::new(spectrogram.bins(), FrequencyScale::Linear, highest);
    for frame in 0..spectrogram.frames() {
        let powers: Vec<f32> = spectrogram.frame(frame).iter().map(|x| x.norm_sqr()).collect();
        columns.push(&powers);
    }
    Some(columns)
}

/// The first channel as a 16-bit WAV file, which every browser plays; empty if it cannot be encoded.
pub(super) fn wav(signal: &Signal) -> String {
    let channel = vec![signal.channels()[0].clone()];
    let mono = Signal::new(signal.sample_rate(), SampleFormat::Int16, channel).ok();
    let bytes = mono.and_then(|mono| alphamf_files::encode(&mono, Container::Wav).ok());
    bytes.map(|bytes| uri("audio/wav", &bytes)).unwrap_or_default()
}

fn uri(kind: &str, bytes: &[u8]) -> String {
    format!("data:{kind};base64,{}", STANDARD.encode(bytes))
}
