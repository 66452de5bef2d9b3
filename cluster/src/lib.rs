//! Ranks of MPI, for what the library divides among a
//! [`Communicator`](alphamf_samplers::distributed::Communicator).
//!
//! All of it is behind the feature `mpi`: it takes an MPI library, its headers and libclang to compile.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

#[cfg(feature = "mpi")]
mod ranks;

#[cfg(feature = "mpi")]
pub use ranks::Mpi;
