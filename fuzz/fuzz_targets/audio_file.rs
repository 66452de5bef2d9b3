//! Any bytes as an audio file of any format.
#![no_main]

mod reading;

use alphamf_files::Reader;
use libfuzzer_sys::fuzz_target;
use reading::{panic_only_at_home, read_blocks};
use std::io::Write;

fuzz_target!(init: panic_only_at_home(), |bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let Ok(mut reader) = Reader::open(file.path()) else { return };
    read_blocks(&mut reader, 100);
});
