//! Helper of the tests of files.

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Runs ffmpeg in a folder. Returns false and prints a notice if ffmpeg is not installed.
pub fn ffmpeg(folder: &Path, arguments: &[&str]) -> bool {
    let mut command = Command::new("ffmpeg");
    command
        .args(["-nostdin", "-hide_banner", "-loglevel", "error", "-y"])
        .args(arguments)
        .current_dir(folder);
    match command.status() {
        Ok(status) => {
            assert!(status.success(), "{arguments:?}");
            true
        }
        Err(_) => {
            std::io::stderr()
                .write_all(format!("SKIPPED: no ffmpeg to test {arguments:?}\n").as_bytes())
                .unwrap();
            false
        }
    }
}
