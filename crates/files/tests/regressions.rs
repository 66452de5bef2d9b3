//! Files that once caused a decoder to panic, mostly found by fuzzing: each now gives a one-line error or a signal.

use alphamf_files::Reader;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn no_file_found_by_fuzzing_does_harm_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        for is_stream in [false, true] {
            let start = Instant::now();
            let reader = if is_stream {
                Reader::from_stream(&path, Cursor::new(bytes.clone()))
            } else {
                Reader::open(&path)
            };
            let outcome = reader.and_then(|mut reader| {
                for _ in 0..100 {
                    let block = reader.read_block(1_000)?;
                    assert!(block.iter().flatten().all(|x| x.is_finite()));
                }
                Ok(())
            });
            if let Err(error) = outcome {
                let line = error.to_string();
                assert!(line.starts_with(&path.display().to_string()) && !line.contains('\n'), "{line}");
            }
            // Files of a few kilobytes must be read in less than a second.
            assert!(start.elapsed() < Duration::from_secs(1), "{}", path.display());
        }
        count += 1;
    }
    assert!(count >= 7, "{count} files");
}
