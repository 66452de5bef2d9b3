//! Reads files of every container with wrong fields, with and without seeking. The first byte selects the kind; the
//! others are the choices.
#![no_main]

mod reading;
#[path = "../../crates/files/tests/containers/skeleton/mod.rs"]
mod skeleton;

use alphamf_files::Reader;
use libfuzzer_sys::fuzz_target;
use reading::{ignore_symphonia_panics, read_blocks};
use std::io::Cursor;

fuzz_target!(init: ignore_symphonia_panics(), |bytes: &[u8]| {
    let [kind, choices @ ..] = bytes else { return };
    let file = skeleton::file(usize::from(*kind), choices);
    let bytes = || Cursor::new(file.clone());
    for reader in [Reader::from_seekable("file", bytes()), Reader::from_stream("stream", bytes())] {
        let Ok(reader) = reader else { continue };
        let mut reader = reader.salvage(kind % 2 == 0);
        read_blocks(&mut reader, 50);
        let _ = reader.losses().to_string();
    }
});
