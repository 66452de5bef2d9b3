//! `denoise` on many machines whose ranks talk.

mod checkpoint;
mod folders;
mod learning;
mod shared;
mod train;

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use alphamf_cluster::Mpi;
use alphamf_samplers::distributed::Communicator as _;
use clap::{Parser, Subcommand};

/// Speech denoising on the ranks that mpirun started.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Learn a dictionary from a folder of clean speech that all ranks can read: the file that `denoise train` makes.
    Train(train::Arguments),
    /// Denoise recordings: each rank runs `denoise` for one part of them after the other.
    Denoise(shared::Arguments),
    /// Score a denoiser over a corpus: each rank runs `denoise eval` for one part of it after the other.
    Eval(shared::Arguments),
}

/// A wrong command line, as in `denoise`.
const USAGE: u8 = 2;
/// Recordings that are of no use, likewise.
const INPUT: u8 = 3;

fn main() -> ExitCode {
    let Some(mut ranks) = Mpi::join() else {
        eprintln!("denoise-mpi: MPI has been started before");
        return ExitCode::FAILURE;
    };
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Every rank has the same command line: one tells of it.
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
            // What all ranks meet, the first tells of, and ends the others.
            if ranks.rank() > 0 {
                thread::sleep(Duration::from_millis(500));
            }
            let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
            eprintln!("denoise-mpi: rank {}: {}", ranks.rank(), chain.join(": "));
            // The others may be waiting for a message of this one.
            ranks.abort(1)
        }
    }
}
