//! C interface of alphamf. It is documented in the header, `include/alphamf.h`, which cbindgen generates from this crate.
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]
#![allow(non_camel_case_types)] // names as in C
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod boundary;
mod live;
mod settings;
mod stream;
mod track;

pub use live::*;
pub use settings::*;
pub use stream::*;
pub use track::*;

use std::ffi::c_char;

/// Result of a call; the values are the exit codes of the program `denoise`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum alphamf_status {
    /// Success.
    ALPHAMF_OK = 0,
    /// Failure of another kind than those below.
    ALPHAMF_FAILED = 1,
    /// Unknown setting, value out of range, or incompatible settings.
    ALPHAMF_SETTING = 2,
    /// Invalid argument: null pointer, samples that are not finite, unsupported sample rate or number of channels, samples
    /// after the end.
    ALPHAMF_INPUT = 3,
    /// Invalid dictionary.
    ALPHAMF_MODEL = 5,
    /// Cancelled by the progress callback.
    ALPHAMF_CANCELLED = 130,
}

/// Version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn alphamf_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Message of the last failure on this thread; valid until the next failure on it. It is empty before the first failure, and in
/// destructors that run as the thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn alphamf_error() -> *const c_char {
    boundary::last_error()
}
