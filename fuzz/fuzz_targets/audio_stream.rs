//! Any bytes as an audio stream of any format, which cannot be rewound.
#![no_main]

use alphamf_files::Reader;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(init: panic_only_at_home(), |bytes: &[u8]| {
    let Ok(mut reader) = Reader::from_stream("stream", Cursor::new(bytes.to_vec())) else { return };
    for _ in 0..100 {
        match reader.read_block(1_000) {
            Ok(block) if block[0].is_empty() => break,
            Ok(block) => assert!(block.iter().flatten().all(|x| x.is_finite())),
            Err(_) => break,
        }
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
