#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod cli;

use std::panic;
use std::process::ExitCode;
use std::sync::Mutex;

/// Message of the last panic.
static PANIC: Mutex<String> = Mutex::new(String::new());

fn main() -> ExitCode {
    // Panics of foreign decoders become errors in the library: only one that reaches this point is reported.
    panic::set_hook(Box::new(|panic| {
        tracing::debug!("{panic}");
        if let Ok(mut message) = PANIC.lock() {
            *message = panic.to_string().replace('\n', " ");
        }
    }));
    let arguments = match cli::parse() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match panic::catch_unwind(|| cli::run(arguments)) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => {
            cli::say(&format!("denoise: {}", cli::one_line(&error)));
            cli::exit_code(&error).into()
        }
        Err(_) => {
            let message = PANIC.lock().map(|message| message.clone()).unwrap_or_default();
            cli::say(&format!("denoise: internal error: {message}"));
            ExitCode::FAILURE
        }
    }
}
