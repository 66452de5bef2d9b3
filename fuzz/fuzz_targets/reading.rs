//! What targets that read audio share.

use alphamf_files::Reader;

/// Reads so many blocks at most, as a few bytes of a lossless format may stand for hours of silence: samples are finite,
/// errors a line each.
pub fn read_blocks(reader: &mut Reader, blocks: usize) {
    for _ in 0..blocks {
        match reader.read_block(1_000) {
            Ok(block) if block[0].is_empty() => break,
            Ok(block) => assert!(block.iter().flatten().all(|x| x.is_finite())),
            Err(error) => {
                assert!(!error.to_string().contains('\n'));
                break;
            }
        }
    }
}

/// Lets the reader catch what foreign decoders do, as it does outside of fuzzing.
pub fn panic_only_at_home() {
    let abort = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let foreign = panic.location().is_some_and(|place| place.file().contains("symphonia"));
        if !foreign {
            abort(panic);
        }
    }));
}
