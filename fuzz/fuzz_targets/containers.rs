//! Files of every container with wrong fields, from a file and as a stream: the kind and the choices.
#![no_main]

#[path = "../../crates/files/tests/containers/skeleton/mod.rs"]
mod skeleton;

use alphamf_files::Reader;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(init: panic_only_at_home(), |bytes: &[u8]| {
    let [kind, choices @ ..] = bytes else { return };
    let file = skeleton::file(usize::from(*kind), choices);
    let bytes = || Cursor::new(file.clone());
    for reader in [Reader::from_seekable("file", bytes()), Reader::from_stream("stream", bytes())] {
        let Ok(reader) = reader else { continue };
        let mut reader = reader.salvage(kind % 2 == 0);
        for _ in 0..50 {
            match reader.read_block(1_000) {
                Ok(block) if block[0].is_empty() => break,
                Ok(block) => assert!(block.iter().flatten().all(|x| x.is_finite())),
                Err(error) => {
                    assert!(!error.to_string().contains('\n'));
                    break;
                }
            }
        }
        let _ = reader.losses().to_string();
    }
});

/// Lets the reader catch what foreign decoders do, as it does outside of fuzzing.
fn panic_only_at_home() {
    let abort = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let foreign = panic.location().is_some_and(|place| place.file().contains("symphonia"));
        if !foreign {
            abort(panic);
        }
    }));
}
