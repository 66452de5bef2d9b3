//! Helpers of the targets that read audio.

use alphamf_files::Reader;

/// Reads at most `blocks` blocks, as a few bytes of a lossless format may encode hours of silence. Samples must be
/// finite, and an error must have one line.
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

/// Aborts on all panics except those in Symphonia, which the reader catches as outside of fuzzing.
pub fn ignore_symphonia_panics() {
    let abort = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let foreign = panic.location().is_some_and(|place| place.file().contains("symphonia"));
        if !foreign {
            abort(panic);
        }
    }));
}
