//! A Bayesian speech denoiser.
//!
//! The short-time spectrum of a recording is modelled as the sum of two alpha-stable matrix factorisations: speech with a
//! [`Dictionary`] trained on clean speech, and noise estimated from the recording. A [`Denoiser`] samples their posterior
//! and applies the posterior-mean Wiener gain, fused with the log odds of a speech-presence network.
//!
//! ```
//! use alphamf::signal::SampleFormat;
//! use alphamf::{Denoiser, Dictionary, Settings, Signal};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hum: Vec<f32> = (0..8_000).map(|n| 0.1 * (n as f32 * 0.04).sin()).collect();
//! let noisy = Signal::new(8_000, SampleFormat::Float32, vec![hum])?;
//! let denoiser = Denoiser::new(Dictionary::built_in()?, Settings::fast())?;
//! let denoised = denoiser.denoise(&noisy)?;
//! assert_eq!(denoised.signal.len(), noisy.len());
//! # Ok(())
//! # }
//! ```
//!
//! | Type | Use |
//! |---|---|
//! | [`Denoiser`] | whole recordings in memory |
//! | [`Session`] | recordings of any length in blocks, with mix, residual and statistics |
//! | [`LiveDenoiser`] | real-time audio, causally, with 4 to 64 ms of latency, 16 by default |
//! | [`Settings`], [`Options`] | parameters by stage; options by the names of the program |
//!
//! Methods of long computations have a variant `*_with_progress`, which takes a [`ProgressCallback`] that receives the
//! progress and may cancel.
//!
//! The public modules are listed below; ARCHITECTURE.md has all stages. The output is bit-identical for a given seed, on
//! any number of threads, with and without the default feature `rayon`.
//!
//! Related crates: `alphamf-files` reads and writes audio files, `alphamf-eval` computes metrics, and `alphamf-samplers`
//! ([`samplers`]) samples any posterior.
#![deny(missing_debug_implementations, missing_docs, unreachable_pub)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::exit, clippy::print_stderr, clippy::print_stdout))]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::panic, clippy::unwrap_used))]

mod array;
mod decibels;
pub mod denoiser;
mod fields;
mod inference;
mod kernels;
pub mod learning;
pub mod model;
mod options;
mod parallel;
mod presence;
mod range;
pub mod repair;
pub mod stable;
mod tensor_file;
pub mod transform;
mod wiener;

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Compiles the examples of the guide.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
struct LibraryGuide;

/// Internals for benchmarks; not part of the public interface.
#[doc(hidden)]
pub mod internals {
    pub use crate::model::marginal::MarginalTable;
    pub use crate::model::mixture::{Factor, ImpulseVariables, Mixture};
    pub use crate::model::published::ImpulseStep;
    pub use crate::model::workspace::Workspace;
}

pub use alphamf_samplers::{self as samplers, random};
pub use alphamf_signal as signal;
pub use denoiser::{DenoiseError, Denoised, Denoiser, LiveDenoiser, Session, Settings};
pub use model::Dictionary;
#[cfg(feature = "clap")]
#[doc(hidden)]
pub use options::parse_seed;
pub use options::{Method, Options, OptionsError, Purpose, Quality};
pub use signal::progress::{Cancelled, ProgressCallback};
pub use signal::{ErrorKind, Signal};
