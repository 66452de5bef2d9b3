//! Parses arbitrary bytes as the output of ffmpeg, and random sequences of its usual texts and arbitrary bytes.
#![no_main]

#[allow(dead_code, reason = "the program uses the rest")]
#[path = "../../crates/cli/src/ffmpeg/report.rs"]
mod report;
#[path = "../../crates/cli/src/time.rs"]
mod time;

use arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use report::{Report, StreamKind};

/// Texts that occur in the output of ffmpeg.
const WORDS: [&str; 24] = [
    "[info] ",
    "[error] ",
    "[fatal] ",
    "[warning] ",
    "[mov,mp4 @ 0x5] [error] ",
    "[h264 @ 0x1] [info] ",
    "Input #0, mov, from 'file:/dev/fd/0':",
    "Output #0",
    "Stream mapping:",
    "  Duration: 00:00:04.06, start",
    "  Duration: N/A",
    "Duration: ",
    "  Stream #0:0",
    "[0x1](und)",
    ": Audio: aac (LC)",
    ": Video: png (attached pic)",
    ": Subtitle: mov_text",
    ": corrupt input packet",
    "Error while decoding stream",
    "File ended prematurely",
    "Format not on whitelist 'wav'",
    "No space left on device",
    "Estimating duration from bitrate",
    "\n",
];

fuzz_target!(|bytes: &[u8]| {
    look_at(bytes);
    let mut choices = Unstructured::new(bytes);
    let mut text = Vec::new();
    while let (false, Ok(kind)) = (choices.is_empty(), choices.arbitrary::<u8>()) {
        match kind {
            0..170 => text.extend(WORDS[usize::from(kind) % WORDS.len()].bytes()),
            170..190 => text.extend(choices.arbitrary::<f64>().unwrap_or(0.0).to_string().bytes()),
            190..210 => text.extend(choices.arbitrary::<u32>().unwrap_or(0).to_string().bytes()),
            210..240 => text.extend(choices.arbitrary::<&str>().unwrap_or_default().bytes()),
            _ => text.push(kind),
        }
    }
    look_at(&text);
});

fn look_at(text: &[u8]) {
    let report = Report::read(text);
    assert!(report.damaged_packets <= text.len() as u64 && report.errors <= text.len() as u64);
    assert!(report.inputs.len() <= text.len());
    for input in &report.inputs {
        assert!(input.count(StreamKind::Audio) <= input.streams.len() && input.streams.len() <= 256);
    }
}
