//! A stream in memory whose bytes can be looked at while a writer has it.

use std::io::Write;
use std::sync::{Arc, Mutex};

/// Clones are one stream.
#[derive(Clone, Default)]
pub struct Stream(Arc<Mutex<Vec<u8>>>);

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Stream {
    /// What was written.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}
