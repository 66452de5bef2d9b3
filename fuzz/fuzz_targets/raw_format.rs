//! Parses the first line as a raw format, and reads the remaining bytes as samples of the format.
#![no_main]

use alphamf_files::{RawFormat, Reader};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|bytes: &[u8]| {
    let line = bytes.iter().position(|&b| b == b'\n').unwrap_or(bytes.len());
    let (format, samples) = bytes.split_at(line);
    let Ok(format) = std::str::from_utf8(format) else { return };
    match format.parse::<RawFormat>() {
        Ok(raw) => {
            let stream = Cursor::new(samples.to_vec());
            let _ = Reader::from_raw_stream("stream", stream, raw).read_all();
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
