//! Ranks of MPI, for what the library divides among a
//! [`Communicator`](alphamf_samplers::distributed::Communicator), and parts that are given to the rank that is free.
//!
//! What is of MPI is behind the feature `mpi`: it takes an MPI library, its headers and libclang to compile.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod parts;
#[cfg(feature = "mpi")]
mod ranks;

pub use parts::{Post, share_out};
#[cfg(feature = "mpi")]
pub use ranks::Mpi;
