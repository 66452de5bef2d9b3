//! Processes of MPI as a [`Communicator`](alphamf_samplers::distributed::Communicator), and work sharing: each part of a job
//! goes to the next idle process.
//!
//! The feature `mpi` needs an MPI library, its headers and libclang.
#![deny(missing_docs)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

#[cfg(feature = "mpi")]
mod communicator;
mod parts;

#[cfg(feature = "mpi")]
pub use communicator::Mpi;
pub use parts::{Post, share_out};
