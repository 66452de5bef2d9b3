//! `denoise`: the command line of the `alphamf` speech denoiser.

#![forbid(unsafe_code)]

mod cli;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = cli::Arguments::parse();
    match cli::run(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("denoise: {}", cli::one_line(&error));
            cli::exit_code(&error)
        }
    }
}
