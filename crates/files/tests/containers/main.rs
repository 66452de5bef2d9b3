//! Files of every container with wrong fields: readers accept or reject them without a panic, in limited memory and
//! time.

mod memory;
mod skeleton;

use alphamf_files::{Error, Reader};
use std::io::Cursor;
use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

/// Number of files of each kind.
const FILES: usize = 700;
/// Limit on memory, bytes. Decoders need less for tables and packets; sizes declared in a file can be far larger.
const MAX_MEMORY: usize = 32 << 20;
const MAX_TIME: Duration = Duration::from_secs(4);

/// Returns choice bytes of a linear congruential generator.
fn choices(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..4_096).map(|_| next()).collect()
}

/// Reads at most 40 blocks of a file and returns the number of samples per channel.
fn read(bytes: &[u8], is_stream: bool) -> Result<usize, Error> {
    let bytes = Cursor::new(bytes.to_vec());
    let reader =
        if is_stream { Reader::from_stream("file", bytes) } else { Reader::from_seekable("file", bytes) };
    let mut reader = reader?.salvage(true);
    let mut count = 0;
    for _ in 0..40 {
        let block = reader.read_block(1_000)?;
        assert!(block.iter().flatten().all(|x| x.is_finite()));
        if block[0].is_empty() {
            break;
        }
        count += block[0].len();
    }
    let _ = (reader.losses().to_string(), reader.metadata().tags().count());
    Ok(count)
}

#[test]
fn wrong_fields_do_no_harm() {
    let mut failures = Vec::new();
    for kind in 0..skeleton::KINDS.len() {
        // Without wrong fields, every file is readable.
        let right = skeleton::file(kind, &[]);
        for is_stream in [false, true] {
            match read(&right, is_stream) {
                Ok(count) if count >= 50 => {}
                found => panic!("kind {kind}, {is_stream}: {found:?}"),
            }
        }
    }
    panic::set_hook(Box::new(|_| {}));
    for kind in 0..skeleton::KINDS.len() {
        let mut readable = 0;
        for number in 0..FILES {
            let seed = (kind * FILES + number) as u64;
            let bytes = skeleton::file(kind, &choices(seed));
            let (is_stream, began) = (number % 2 == 1, Instant::now());
            let used = memory::start();
            match panic::catch_unwind(AssertUnwindSafe(|| read(&bytes, is_stream))) {
                Ok(found) => readable += usize::from(found.is_ok()),
                Err(_) => failures.push(format!("kind {kind}, seed {seed}: panic")),
            }
            let (most, time) = (memory::most_since(used), began.elapsed());
            if most > MAX_MEMORY || time > MAX_TIME {
                failures.push(format!("kind {kind}, seed {seed}: {most} bytes, {time:?}"));
            }
        }
        println!("kind {kind}: {readable} of {FILES} are read");
        // Some files must be readable, or the test would only reach the start of each reader.
        assert!((FILES / 20..FILES).contains(&readable), "kind {kind}: {readable} files");
    }
    let _ = panic::take_hook();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
