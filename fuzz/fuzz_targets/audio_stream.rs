//! Reads arbitrary bytes as an audio stream of any format, without seeking.
#![no_main]

mod reading;

use alphamf_files::Reader;
use libfuzzer_sys::fuzz_target;
use reading::{ignore_symphonia_panics, read_blocks};
use std::io::Cursor;

fuzz_target!(init: ignore_symphonia_panics(), |bytes: &[u8]| {
    let Ok(mut reader) = Reader::from_stream("stream", Cursor::new(bytes.to_vec())) else { return };
    read_blocks(&mut reader, 100);
});
