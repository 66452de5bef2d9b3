//! `denoise` on several machines, by MPI.

mod checkpoint;
mod folders;
mod learning;
mod shared;
mod train;

use std::fmt;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use alphamf::ErrorKind;
use alphamf::learning::TrainingError;
use alphamf_cluster::Mpi;
use alphamf_samplers::distributed::Communicator as _;
use clap::{Parser, Subcommand};

/// Speech denoising in the processes started by mpirun.
#[derive(Debug, Parser)]
#[command(name = "denoise-mpi", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train a dictionary on a shared folder of clean speech.
    ///
    /// Writes the same file as `denoise train`.
    Train(train::Arguments),
    /// Denoise recordings in all processes.
    Denoise(shared::Arguments),
    /// Score a denoiser on a corpus in all processes.
    Eval(shared::Arguments),
}

/// Exit code for a wrong command line, as in `denoise`.
const USAGE: u8 = 2;
/// Exit code for invalid recordings, as in `denoise`.
const INPUT: u8 = 3;
/// Exit code for an output that cannot be written, as in `denoise`.
const OUTPUT: u8 = 4;

/// A failure with its own exit code.
#[derive(Debug)]
struct Failure(u8, String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.1)
    }
}

impl std::error::Error for Failure {}

/// Exit code of an error, as in `denoise`.
fn exit_code(error: &anyhow::Error) -> u8 {
    if let Some(Failure(code, _)) = error.downcast_ref() {
        return *code;
    }
    match (error.downcast_ref(), error.downcast_ref().map(TrainingError::kind)) {
        (Some(alphamf_files::Error::Write { .. }), _) => OUTPUT,
        (Some(_), _) | (_, Some(ErrorKind::Input)) => INPUT,
        (_, Some(ErrorKind::Setting)) => USAGE,
        _ => 1,
    }
}

fn main() -> ExitCode {
    let Some(mut ranks) = Mpi::join() else {
        eprintln!("denoise-mpi: MPI is already initialised");
        return ExitCode::FAILURE;
    };
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // All processes have the same command line: one reports it.
            if ranks.rank() == 0 {
                let _ = error.print();
            }
            return if error.use_stderr() { USAGE.into() } else { ExitCode::SUCCESS };
        }
    };
    let done = match &arguments.command {
        Command::Train(arguments) => train::run(arguments, &mut ranks),
        Command::Denoise(arguments) => shared::denoise(arguments, &mut ranks),
        Command::Eval(arguments) => shared::eval(arguments, &mut ranks),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            // A failure common to all processes is reported by the first, which terminates the others.
            if ranks.rank() > 0 {
                thread::sleep(Duration::from_millis(500));
            }
            let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
            eprintln!("denoise-mpi: process {}: {}", ranks.rank(), chain.join(": "));
            // The others may be waiting for a message of this process.
            ranks.abort(exit_code(&error))
        }
    }
}
