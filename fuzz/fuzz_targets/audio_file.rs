//! Reads arbitrary bytes as an audio file of any format.
#![no_main]

mod reading;

use alphamf_files::Reader;
use libfuzzer_sys::fuzz_target;
use reading::{ignore_symphonia_panics, read_blocks};
use std::io::Write;

fuzz_target!(init: ignore_symphonia_panics(), |bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let Ok(mut reader) = Reader::open(file.path()) else { return };
    read_blocks(&mut reader, 100);
});
