//! Any bytes as an audio stream of any format, which cannot be rewound.
#![no_main]

mod reading;

use alphamf_files::Reader;
use libfuzzer_sys::fuzz_target;
use reading::{panic_only_at_home, read_blocks};
use std::io::Cursor;

fuzz_target!(init: panic_only_at_home(), |bytes: &[u8]| {
    let Ok(mut reader) = Reader::from_stream("stream", Cursor::new(bytes.to_vec())) else { return };
    read_blocks(&mut reader, 100);
});
