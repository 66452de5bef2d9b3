#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod cli;

use clap::Parser;
use std::panic;
use std::process::ExitCode;
use std::sync::Mutex;

/// What the last panic said.
static PANIC: Mutex<String> = Mutex::new(String::new());

fn main() -> ExitCode {
    // The library turns panics of foreign decoders into errors: only one that comes as far as here is reported.
    panic::set_hook(Box::new(|panic| {
        tracing::debug!("{panic}");
        if let Ok(mut message) = PANIC.lock() {
            *message = panic.to_string().replace('\n', " ");
        }
    }));
    let arguments = cli::Arguments::parse();
    match panic::catch_unwind(|| cli::run(arguments)) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => {
            cli::say(&format!("denoise: {}", cli::one_line(&error)));
            cli::exit_code(&error).into()
        }
        Err(_) => {
            let message = PANIC.lock().map(|message| message.clone()).unwrap_or_default();
            cli::say(&format!("denoise: a mistake in this program: {message}"));
            ExitCode::FAILURE
        }
    }
}
