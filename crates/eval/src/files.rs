//! Text files of users, of bounded length.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::EvaluationError;

/// Maximum size of a text file, bytes: a manifest of half a million lines.
const MAX_BYTES: u64 = 64 << 20;

/// Reads the bytes of a text file, up to a limit, as a device may be endless.
pub(super) fn read_text(path: &Path) -> Result<Vec<u8>, EvaluationError> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_BYTES {
            let reason = format!("more than {} MB: expected a text", MAX_BYTES >> 20);
            return Err(io::Error::other(reason));
        }
        Ok(bytes)
    };
    read().map_err(EvaluationError::io(path))
}
