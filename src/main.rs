//! `denoise`: the command line of the `alphamf` speech denoiser.

mod cli;

use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
enum Command {
    Eval(cli::eval::EvalArgs),
}

fn main() -> ExitCode {
    let Command::Eval(args) = Command::parse();
    match cli::eval::run(&args) {
        Ok(cli::eval::Outcome::Complete) => ExitCode::SUCCESS,
        Ok(cli::eval::Outcome::SomeFailed) => ExitCode::from(3),
        Err(error) => {
            eprintln!("denoise: {error:#}");
            ExitCode::FAILURE
        }
    }
}
