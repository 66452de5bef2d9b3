//! A stream in memory whose bytes remain accessible while a writer owns it.

use std::io::Write;
use std::sync::{Arc, Mutex};

/// A stream in memory; clones share their bytes.
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
    /// Returns a copy of the written bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}
